//! Logins with a password: those of model clients, and those at model servers.

use refrain_pg::auth::{AuthRequest, AuthStep, Method, NONCE_BYTES, Proving};
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write::{self, Report};

use crate::backend::Stage;
use crate::directory::Form;
use crate::world::{Happening, World};

/// The longest time that a client takes for its part of a login, in microseconds.
const THINKS_MOST: u64 = 20_000;

/// How far the login at a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The server waits for more.
    Open,
    /// The engine has proved who it is.
    Done,
    /// The server refuses the engine, and has said so.
    Refused,
}

impl World {
    /// Begins a client's login, where clients have passwords.
    pub(crate) fn begin_exchange(&mut self, number: usize) {
        if self.plan.logins.is_none() {
            return;
        }
        let password = self.choose_password(number);
        let now = self.now;
        let client = &mut self.clients[number];
        let mut random = [0; NONCE_BYTES];
        client.rng.fill(&mut random);
        client.exchange.began = now;
        client.exchange.begin(&client.user, password, &random);
    }

    /// Lets a client answer a message of its login. True if the client is let in by the message.
    pub(crate) fn client_proves(&mut self, number: usize, body: &[u8]) -> bool {
        match self.clients[number].exchange.answer(body) {
            Ok(None) => {
                self.clients[number].exchange.is_let_in = true;
                self.check_let_in(number);
                return true;
            }
            Ok(Some(said)) if !said.is_empty() => {
                let hangs = self.plan.logins.as_ref().is_some_and(|plan| plan.hangs);
                let client = &mut self.clients[number];
                if !(hangs && client.rng.chance(100)) {
                    let delay = client.rng.below(THINKS_MOST);
                    self.later(delay, Happening::Says(number, said));
                }
            }
            Ok(Some(_)) => {}
            Err(why) => self.violate("login", || format!("client {number}: {why}")),
        }
        false
    }

    /// Has a server ask for the password of its user, if servers do.
    pub(crate) fn backend_asks(&mut self, number: usize) -> Proof {
        let Some(plan) = self.plan.logins.as_ref().filter(|plan| plan.servers_ask) else {
            return Proof::Done;
        };
        let backend = &self.backends[number];
        let user = plan.user(&backend.session.database, &backend.user);
        let Some(credential) = self.lookups.directory.credential(&user) else {
            return self.backend_refuses(number);
        };
        let method = if plan.form == Form::Md5 { Method::Md5 } else { Method::Scram };
        let mut random = [0; NONCE_BYTES];
        self.rng.fill(&mut random);
        self.backend_judges(number, Proving::start(method, &credential, &random))
    }

    /// Lets a server take what has come of a login.
    pub(crate) fn backend_proves(&mut self, number: usize, proving: Proving) -> Proof {
        let Some((tag, body)) = self.backends[number].input.take() else {
            self.backends[number].proving = Some(proving);
            return Proof::Open;
        };
        if tag != front::PASSWORD {
            self.violate("protocol", || format!("{} in a login", tag as char));
        }
        self.backend_judges(number, proving.receive(&body))
    }

    /// Writes the next messages of a login at a server.
    fn backend_judges(&mut self, number: usize, step: AuthStep) -> Proof {
        let backend = &mut self.backends[number];
        let requests = match step {
            AuthStep::Send(request, proving) => {
                backend.proving = Some(proving);
                vec![request]
            }
            AuthStep::Failed(_) => return self.backend_refuses(number),
            AuthStep::Done(_, requests) => requests,
        };
        let out = &mut backend.session.out;
        // The session says Ok itself when it begins.
        let said = requests.iter().filter(|request| **request != AuthRequest::Ok);
        said.for_each(|request| request.write(out));
        backend.session.flush();
        if backend.proving.is_some() { Proof::Open } else { Proof::Done }
    }

    fn backend_refuses(&mut self, number: usize) -> Proof {
        self.faults.logins += 1;
        let backend = &mut self.backends[number];
        let message = format!("password authentication failed for user \"{}\"", backend.user);
        let report = Report { severity: "FATAL", sqlstate: "28P01", message: &message, hint: "" };
        write::error(&mut backend.session.out, &report);
        Proof::Refused
    }

    /// Notes that the engine gives up a login at a server: it knows no password that fits.
    pub(crate) fn note_given_up(&mut self, number: usize) {
        let backend = &self.backends[number];
        if backend.stage == Stage::Opening && backend.proving.is_some() {
            self.faults.logins += 1;
        }
    }
}

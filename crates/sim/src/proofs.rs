//! Logins with a password at model servers.

use refrain_pg::auth::{AuthRequest, AuthStep, Method, NONCE_BYTES, Proving};
use refrain_pg_wire::write::{self, Report};

use crate::backend::{Backend, Stage};
use crate::directory::{Directory, Form};
use crate::logins::LoginPlan;
use crate::rng::Rng;

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

impl Backend {
    /// Asks for the password of the server's user, if servers do.
    pub(crate) fn ask_proof(
        &mut self,
        plan: Option<&LoginPlan>,
        directory: &Directory,
        rng: &mut Rng,
    ) -> Proof {
        let Some(plan) = plan.filter(|plan| plan.servers_ask) else { return Proof::Done };
        let user = plan.user(&self.session.database, &self.user);
        let Some(credential) = directory.credential(&user) else { return self.refuse_proof() };
        let method = if plan.form == Form::Md5 { Method::Md5 } else { Method::Scram };
        let mut random = [0; NONCE_BYTES];
        rng.fill(&mut random);
        self.judge_proof(Proving::start(method, &credential, &random))
    }

    /// Writes the next messages of a login.
    pub(crate) fn judge_proof(&mut self, step: AuthStep) -> Proof {
        let requests = match step {
            AuthStep::Send(request, proving) => {
                self.proving = Some(proving);
                vec![request]
            }
            AuthStep::Failed(_) => return self.refuse_proof(),
            AuthStep::Done(_, requests) => requests,
        };
        let out = &mut self.session.out;
        // The session says Ok itself when it begins.
        let said = requests.iter().filter(|request| **request != AuthRequest::Ok);
        said.for_each(|request| request.write(out));
        self.session.flush();
        if self.proving.is_some() { Proof::Open } else { Proof::Done }
    }

    fn refuse_proof(&mut self) -> Proof {
        let message = format!("password authentication failed for user \"{}\"", self.user);
        let report = Report { severity: "FATAL", sqlstate: "28P01", message: &message, hint: "" };
        write::error(&mut self.session.out, &report);
        Proof::Refused
    }

    /// Whether the engine gives a login up that ends now: it knows no password that fits.
    pub(crate) fn is_given_up(&self) -> bool {
        self.stage == Stage::Opening && self.proving.is_some()
    }
}

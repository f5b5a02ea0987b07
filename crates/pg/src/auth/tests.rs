//! The two halves against each other, against published vectors, and against rubbish.
//!
//! Here are the parts that the tests share: [`meet`] runs a whole login, `Login` on one side and
//! `Proving` on the other, with nothing between them.

mod binding;
mod malformed;
mod pairs;
mod vectors;

use super::*;

pub(super) const CLIENTS_RANDOM: [u8; NONCE_BYTES] = [7; NONCE_BYTES];
pub(super) const SERVERS_RANDOM: [u8; NONCE_BYTES] = [9; NONCE_BYTES];

/// The verifier that PostgreSQL 15 made of alice's password `pencil`.
pub(super) const ALICE: &str = "SCRAM-SHA-256$4096:TgBFWONF8iwXk4FS6v6NPA==$\
    L1EXVtSAvGz1dsVIEgzt7ZhnKitxXQSoV5DZxfmzB5c=:X88FFqgzxTJcZbfcqaTdaiT+F1qfGTq7Tr4PWs+QNfs=";

pub(super) fn password(text: impl AsRef<[u8]>) -> Password {
    Password::new(text).unwrap()
}

pub(super) fn seed() -> Seed {
    Seed::new([3; 32])
}

/// Returns Alice's credential, with the password `pencil` stored in the given form.
pub(super) fn alice(form: Form) -> Credential {
    let stored = match form {
        Form::Password => StoredSecret::Password(password("pencil")),
        Form::Md5 => StoredSecret::Md5(Md5Hash::of(&password("pencil"), "alice")),
        Form::Scram => StoredSecret::parse(ALICE).unwrap(),
        Form::Unknown(like) => return Credential::unknown("alice", like, &seed()),
    };
    Credential::prepare("alice", stored, &seed())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Password,
    Md5,
    Scram,
    Unknown(Like),
}

pub(super) const SCRAM_4096: Like = Like::Scram { iterations: 4096 };
pub(super) const FORMS: [Form; 6] = [
    Form::Password,
    Form::Md5,
    Form::Scram,
    Form::Unknown(Like::Password),
    Form::Unknown(Like::Md5),
    Form::Unknown(SCRAM_4096),
];

/// How a login ended, and all that was said: requests as `pg-wire` would be handed them.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) end: End,
    pub(super) said: Vec<AuthRequest>,
}

#[derive(Debug)]
pub(super) enum End {
    In(Authenticated),
    Refused(AuthError),
    GaveUp(LoginError),
}

impl Met {
    pub(super) fn is_in(&self) -> bool {
        matches!(self.end, End::In(_))
    }

    pub(super) fn authenticated(self) -> Authenticated {
        match self.end {
            End::In(authenticated) => authenticated,
            other => panic!("not let in: {other:?}"),
        }
    }
}

pub(super) fn meet(method: Method, credential: &Credential, secret: Secret) -> Met {
    meet_again(method, credential, secret, &mut None)
}

pub(super) fn meet_again(
    method: Method,
    credential: &Credential,
    secret: Secret,
    salted: &mut Option<Salted>,
) -> Met {
    let mut said = Vec::new();
    let mut login = Login::new(credential.user(), secret, &CLIENTS_RANDOM);
    let mut step = Proving::start(method, credential, &SERVERS_RANDOM);
    loop {
        let (request, proving) = match step {
            AuthStep::Send(request, proving) => (request, proving),
            AuthStep::Failed(refusal) => return Met { end: End::Refused(refusal), said },
            AuthStep::Done(authenticated, last) => {
                let end = listen_out(login, &last, salted)
                    .map_or_else(End::GaveUp, |()| End::In(authenticated));
                said.extend(last);
                return Met { end, said };
            }
        };
        said.push(request.clone());
        step = match answer(login, &request, salted) {
            Ok(Reply::Send(body, next)) => {
                login = next;
                proving.receive(&body)
            }
            Ok(other) => panic!("login has nothing to say to {request:?}: {other:?}"),
            Err(error) => return Met { end: End::GaveUp(error), said },
        };
    }
}

/// Hands the login all that the server says at the end.
fn listen_out(
    mut login: Login,
    last: &[AuthRequest],
    salted: &mut Option<Salted>,
) -> Result<(), LoginError> {
    for request in last {
        login = match answer(login, request, salted)? {
            Reply::Wait(login) => login,
            Reply::LoggedIn => return Ok(()),
            Reply::Send(_, login) => panic!("{login:?} talks back to {request:?}"),
        };
    }
    panic!("the server's last word is not Ok: {last:?}");
}

/// Passes a request on as `pg-wire` would: names of mechanisms become bytes.
pub(super) fn answer(
    login: Login,
    request: &AuthRequest,
    salted: &mut Option<Salted>,
) -> Result<Reply, LoginError> {
    let names;
    let asks = match request {
        AuthRequest::Ok => ServerAsks::Ok,
        AuthRequest::CleartextPassword => ServerAsks::CleartextPassword,
        AuthRequest::Md5 { salt } => ServerAsks::Md5 { salt: *salt },
        AuthRequest::Sasl { mechanisms } => {
            names = mechanisms.join("\0") + "\0\0";
            ServerAsks::Sasl { mechanisms: names.as_bytes() }
        }
        AuthRequest::SaslContinue(body) => ServerAsks::SaslContinue(body),
        AuthRequest::SaslFinal(body) => ServerAsks::SaslFinal(body),
    };
    login.answer(asks, salted)
}

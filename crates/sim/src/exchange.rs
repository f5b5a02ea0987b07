//! A model client's part of a login with a password: the exchange of `refrain_pg::auth`, whose own
//! tests hold it against PostgreSQL's.

use refrain_pg::auth::{Login, NONCE_BYTES, Password, Reply, Salted, Secret};
use refrain_pg_wire::back::Authentication;
use refrain_pg_wire::write;

/// A client's part of a login.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// The password that the client gives.
    pub(crate) password: String,
    /// When the client has connected, and when its login has begun.
    pub(crate) connected: u64,
    pub(crate) began: u64,
    /// Whether the client was told that its password is right.
    pub(crate) is_let_in: bool,
    login: Option<Login>,
    salted: Option<Salted>,
}

impl Exchange {
    /// Begins the login of a user with a password.
    pub(crate) fn begin(&mut self, user: &str, password: String, random: &[u8; NONCE_BYTES]) {
        let secret = Password::new(&password).map_or(Secret::None, Secret::Password);
        self.login = Some(Login::new(user, secret, random));
        self.password = password;
    }

    /// Answers a message. Returns what to send; nothing if the client is let in.
    pub(crate) fn answer(&mut self, body: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let asked = Authentication::read(body).map_err(|_| "a malformed message".to_owned())?;
        let login = self.login.take().ok_or_else(|| "a message too many".to_owned())?;
        match login.answer(asked.into(), &mut self.salted).map_err(|error| error.to_string())? {
            Reply::Send(body, login) => {
                self.login = Some(login);
                let mut out = Vec::new();
                write::password(&mut out, &body);
                Ok(Some(out))
            }
            Reply::Wait(login) => {
                self.login = Some(login);
                Ok(Some(Vec::new()))
            }
            Reply::LoggedIn => Ok(None),
        }
    }
}

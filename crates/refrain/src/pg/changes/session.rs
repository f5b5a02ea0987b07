//! OwnSession: the messages of a server to a connection of Refrain's own, from the login on. It has
//! no socket.

use refrain_config::ChannelBinding;
use refrain_pg::auth::{Login, Md5Hash, NONCE_BYTES, Password, Reply, Salted, Secret};
use refrain_pg_wire::back::{self as read, Authentication, Fields, field};
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::{Header, startup, write};
use refrain_pool::secured::Secured;

use crate::random;

/// Bytes of a CopyData message that are looked at, at most. The relation that has changed stands in
/// front of its row.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of another message.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// The name under which Refrain is known at the server.
const APPLICATION: &str = "refrain changes";

/// A user who logs in, where, and by which password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: String,
    pub(super) database: String,
    pub(super) password: Option<String>,
    pub(super) binding: ChannelBinding,
    /// Further startup parameters.
    pub(super) parameters: Vec<(String, String)>,
}

impl Account {
    fn secret(&self) -> Secret {
        let Some(password) = &self.password else { return Secret::None };
        match Md5Hash::parse(password) {
            Some(hash) => Secret::Md5(hash),
            None => Password::new(password).map_or(Secret::None, Secret::Password),
        }
    }
}

/// A message of a server that matters.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerSaid<'a> {
    /// It waits for the next command.
    Ready,
    /// A row of an answer.
    Row(&'a [u8]),
    /// The stream has begun.
    Streams,
    /// A piece of the stream, or its beginning.
    Piece(&'a [u8]),
}

/// A session with a server.
pub(super) struct OwnSession {
    account: Account,
    login: Option<Login>,
    salted: Option<Salted>,
    /// The beginning of a message that is not whole.
    inbox: Vec<u8>,
    /// Bytes to come that nobody looks at.
    skips: usize,
    /// The number of the server's process.
    pub(super) pid: u32,
}

impl OwnSession {
    /// Begins a session, and appends the startup packet. `more` are parameters of this connection.
    pub(super) fn begin(account: &Account, more: &[(&str, &str)], out: &mut Vec<u8>) -> Self {
        let own = [
            ("user", &*account.user),
            ("database", &*account.database),
            ("application_name", APPLICATION),
        ];
        let configured = account.parameters.iter().map(|(name, value)| (&**name, &**value));
        let all = own.into_iter().chain(configured).chain(more.iter().copied());
        startup::write(out, 0, all.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        Self {
            account: account.clone(),
            login: None,
            salted: None,
            inbox: Vec::new(),
            skips: 0,
            pid: 0,
        }
    }

    /// Takes in bytes of the server. Answers go to `out`.
    ///
    /// # Errors
    /// The server's error, or why the session cannot go on.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        secured: Option<&Secured>,
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(ServerSaid<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let skipped = self.skips.min(bytes.len());
        self.skips -= skipped;
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.extend_from_slice(&bytes[skipped..]);
        let mut at = 0;
        while let Some(header) = Header::parse(&inbox[at..]).map_err(|it| it.to_string())? {
            let length = header.message_bytes();
            let there = length.min(inbox.len() - at);
            let is_piece = header.tag == back::COPY_DATA;
            if !is_piece && length > MESSAGE_BYTES_MAX {
                return Err("a message of the server is too long".to_owned());
            }
            if there < length && !(is_piece && there >= HEAD_BYTES_MAX) {
                break;
            }
            let body = &inbox[at + HEADER_BYTES..at + there.min(HEAD_BYTES_MAX.max(HEADER_BYTES))];
            let body = if is_piece { body } else { &inbox[at + HEADER_BYTES..at + there] };
            self.message(header.tag, body, secured, out, sink)?;
            self.skips = length - there;
            at += there;
        }
        inbox.drain(..at);
        self.inbox = inbox;
        Ok(())
    }

    fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        secured: Option<&Secured>,
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(ServerSaid<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        match tag {
            back::AUTHENTICATION => self.prove(body, secured, out),
            back::ERROR_RESPONSE => {
                let message = Fields(body).get(field::MESSAGE).unwrap_or_default();
                Err(String::from_utf8_lossy(message).into_owned())
            }
            back::BACKEND_KEY_DATA => {
                self.pid = read::backend_key(body).map_err(|error| error.to_string())?.0;
                Ok(())
            }
            back::READY_FOR_QUERY => sink(ServerSaid::Ready),
            back::DATA_ROW => sink(ServerSaid::Row(body)),
            back::COPY_BOTH_RESPONSE => sink(ServerSaid::Streams),
            back::COPY_DATA => sink(ServerSaid::Piece(body)),
            back::COPY_DONE => Err("the server has ended the stream".to_owned()),
            _ => Ok(()),
        }
    }

    /// Answers a request for authentication.
    fn prove(
        &mut self,
        body: &[u8],
        secured: Option<&Secured>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let asked = Authentication::read(body).map_err(|error| error.to_string())?;
        // Not before: the first request settles whether the connection is encrypted.
        let login = self.login.take().unwrap_or_else(|| {
            let mut random = [0; NONCE_BYTES];
            random::fill(&mut random);
            let Account { user, binding, .. } = &self.account;
            Login::new(user, self.account.secret(), &random).over(secured, *binding)
        });
        match login.answer(asked.into(), &mut self.salted).map_err(|error| error.to_string())? {
            Reply::Send(body, next) => {
                write::password(out, &body);
                self.login = Some(next);
            }
            Reply::Wait(next) => self.login = Some(next),
            Reply::LoggedIn => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> OwnSession {
        let account = Account {
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: None,
            binding: ChannelBinding::Disable,
            parameters: Vec::new(),
        };
        OwnSession::begin(&account, &[("replication", "database")], &mut Vec::new())
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write::message(&mut out, tag, |out| out.extend_from_slice(body));
        out
    }

    /// Returns what is said of bytes that come in pieces of this length.
    fn said(bytes: &[u8], length: usize) -> Result<Vec<String>, String> {
        let (mut session, mut said) = (session(), Vec::new());
        for piece in bytes.chunks(length) {
            session.receive(piece, None, &mut Vec::new(), &mut |it| {
                said.push(match it {
                    ServerSaid::Piece(body) => format!("piece {}", body.len()),
                    it => format!("{it:?}"),
                });
                Ok(())
            })?;
        }
        Ok(said)
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let bytes = [
            message(back::AUTHENTICATION, &[0; 4]),
            message(back::BACKEND_KEY_DATA, &[0, 0, 0, 9, 1, 2, 3, 4]),
            message(back::READY_FOR_QUERY, b"I"),
            message(back::COPY_BOTH_RESPONSE, &[0; 3]),
            message(back::COPY_DATA, b"short"),
            message(back::DATA_ROW, b"\0\x01"),
        ]
        .concat();
        let due = ["Ready", "Streams", "piece 5", "Row([0, 1])"];
        for length in 1..=bytes.len() {
            assert_eq!(said(&bytes, length).unwrap(), due);
        }
    }

    #[test]
    fn of_a_long_piece_the_beginning_is_looked_at() {
        let mut bytes = message(back::COPY_DATA, &vec![7; 5_000_000]);
        bytes.extend(message(back::COPY_DATA, b"next"));
        for length in [999, 65_536, 70_000, bytes.len()] {
            let said = said(&bytes, length).unwrap();
            let head: usize = said[0].strip_prefix("piece ").unwrap().parse().unwrap();
            assert!((60_000..=HEAD_BYTES_MAX).contains(&head), "{said:?}");
            assert_eq!(said[1..], ["piece 4"]);
        }
    }

    #[test]
    fn errors_end_the_session() {
        let refusal = message(back::ERROR_RESPONSE, b"SFATAL\0C28P01\0Mno\0\0");
        assert_eq!(said(&refusal, 5).unwrap_err(), "no");
        assert!(said(&message(back::COPY_DONE, b""), 5).is_err());
        assert!(said(&message(back::DATA_ROW, &vec![0; 2 * MESSAGE_BYTES_MAX]), 99).is_err());
    }
}

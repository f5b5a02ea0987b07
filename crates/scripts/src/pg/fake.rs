//! A model server that answers each message by its tag, without a thought.

use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};
use refrain_pg_wire::{Header, frame};

/// A text with this in it is Refrain's question about statements; the answer has no rows.
const ASKS: &[u8] = b"pg_proc";
/// A text with this in it fails.
pub(super) const FAILS: &[u8] = b"boom";

/// A server's session.
pub(super) struct PgServer {
    greeted: bool,
    status: Status,
    /// Whether the statement parsed last returns no rows.
    empty: bool,
    /// Whether messages are skipped up to the next Sync.
    skipping: bool,
}

impl Default for PgServer {
    fn default() -> Self {
        Self { greeted: false, status: Status::Idle, empty: false, skipping: false }
    }
}

impl PgServer {
    /// Appends what a server says to whole messages.
    pub(super) fn answer(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if !self.greeted {
            self.greeted = true;
            return greet(out);
        }
        while let Ok(Some(header)) = Header::parse(bytes) {
            let body = &bytes[frame::HEADER_BYTES..header.message_bytes()];
            bytes = &bytes[header.message_bytes()..];
            self.message(header.tag, body, out);
        }
        assert!(bytes.is_empty(), "the engine sends small messages whole");
    }

    fn message(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) {
        if self.skipping && tag != front::SYNC {
            return;
        }
        match tag {
            front::QUERY => self.query(body, out),
            front::PARSE if contains(body, FAILS) => {
                fail(out);
                self.skipping = true;
            }
            front::PARSE => {
                self.empty = contains(body, ASKS);
                write::bare(out, back::PARSE_COMPLETE);
            }
            front::BIND => write::bare(out, back::BIND_COMPLETE),
            front::CLOSE => write::bare(out, back::CLOSE_COMPLETE),
            front::DESCRIBE => {
                if body.first() == Some(&refrain_pg_wire::tag::STATEMENT) {
                    let none = |out: &mut Vec<u8>| out.extend_from_slice(&[0, 0]);
                    write::message(out, back::PARAMETER_DESCRIPTION, none);
                }
                write::text_columns(out, &["abalance"]);
            }
            front::EXECUTE if self.empty => write::command_complete(out, b"SELECT 0"),
            front::EXECUTE => row(out),
            front::SYNC => {
                self.skipping = false;
                write::ready(out, self.status);
            }
            front::COPY_DATA | front::FLUSH => {}
            front::COPY_DONE => {
                write::command_complete(out, b"COPY 4");
                write::ready(out, self.status);
            }
            other => panic!("the model server does not know {:?}", char::from(other)),
        }
    }

    fn query(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if text.starts_with(b"COPY") {
            let text_format = |out: &mut Vec<u8>| out.extend_from_slice(&[0, 0, 0]);
            return write::message(out, back::COPY_IN_RESPONSE, text_format);
        }
        if text.starts_with(b"BEGIN") {
            self.status = Status::Transaction;
            write::command_complete(out, b"BEGIN");
        } else if text.starts_with(b"COMMIT") {
            self.status = Status::Idle;
            write::command_complete(out, b"COMMIT");
        } else {
            write::text_columns(out, &["abalance"]);
            row(out);
        }
        write::ready(out, self.status);
    }
}

fn greet(out: &mut Vec<u8>) {
    write::authentication(out, 0, b"");
    let settings = [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("server_version", "15.0"),
    ];
    for (name, value) in settings {
        write::parameter_status(out, name.as_bytes(), value.as_bytes());
    }
    write::backend_key(out, 1, b"key!");
    write::ready(out, Status::Idle);
}

fn row(out: &mut Vec<u8>) {
    write::text_row(out, [Some("1234")].into_iter());
    write::command_complete(out, b"SELECT 1");
}

fn fail(out: &mut Vec<u8>) {
    let message = "it did";
    write::error(out, &Report { severity: "ERROR", sqlstate: "42601", message, hint: "" });
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

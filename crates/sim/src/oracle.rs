//! The oracle of a client: a private session of the model server that gets the same bytes. Its
//! replies are the replies that the client must get.
//!
//! The private session reads the client's messages one at a time, and only as far as replies have
//! come through the proxy. The moment at which a cancel request takes effect cannot be foretold,
//! and the oracle need not guess it: when the client sees that its statement was cancelled, and has
//! asked for that, the private session's statement is cancelled at the same message.
//!
//! The oracle rules out replies of other clients (pgdog #759); lost, reordered and invented
//! replies; one ReadyForQuery too many or few (pgcat #137, pgbouncer #52); settings and statements
//! that are not the client's own; and cancels that hit another client (pgdog #1505, pgbouncer
//! #141).

use std::collections::VecDeque;

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};

use crate::fault::Fault;
use crate::frames::Frames;
use crate::rows::{self, RowId};
use crate::session::Session;

/// A message in the form in which messages are compared: tag and body.
type Message = (u8, Vec<u8>);

/// A client's private session.
#[derive(Debug, Default)]
pub struct Oracle {
    session: Session,
    asked: Frames,
    expected: VecDeque<Message>,
    /// Reports of settings that the client has got before the private session sends them. They may
    /// come in any order and at any time: a server sends them at the end of a segment, which the
    /// engine may add.
    early: Vec<Message>,
    /// The last message that the private session handled.
    last: Message,
    /// Number of cancel requests that were sent and have not taken effect yet.
    pub cancels: u32,
}

impl Oracle {
    /// Creates an oracle for a session with these settings, which expects the replies to the login.
    pub fn begin(settings: &[(String, String)]) -> Self {
        let mut oracle = Self::default();
        if let Err(mut fault) = oracle.session.begin(settings, 0, &[0; 4]) {
            fault.fatal = true;
            // The proxy accepts the login first, and then reports that the settings are refused.
            write::authentication(&mut oracle.session.out, 0, &[]);
            oracle.session.fail(&fault);
        }
        oracle.collect();
        oracle
    }

    /// Takes bytes that the client has sent.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.asked.push(bytes);
        self.settle();
    }

    /// Whether the client has every reply that it can wait for.
    pub fn is_settled(&self) -> bool {
        self.expected.is_empty() && self.asked.peek().is_none()
    }

    /// Whether the last message that the private session handled is a query string.
    pub(crate) fn runs_query(&self) -> bool {
        self.last.0 == front::QUERY
    }

    /// Whether the private session waits for COPY data.
    pub fn is_copying(&self) -> bool {
        self.session.is_copying()
    }

    /// Whether the private session is over.
    pub fn has_ended(&self) -> bool {
        self.session.has_ended() && self.expected.is_empty()
    }

    /// Checks a message that the client has got.
    ///
    /// # Errors
    /// If another message was expected.
    pub fn check(&mut self, tag: u8, body: &[u8]) -> Result<(), String> {
        if is_in_the_way(tag, body) {
            // The private session meets no such thing. It goes on as if its client had had the
            // statement cancelled.
            self.cancels += 1;
            return self.check(back::ERROR_RESPONSE, &cancelled());
        }
        let actual = normal(tag, body);
        let reports = |message: &Message| message.0 == back::PARAMETER_STATUS;
        if reports(&actual) {
            let mut due = self.expected.iter().take_while(|message| reports(message));
            match due.position(|message| *message == actual) {
                Some(at) => drop(self.expected.remove(at)),
                None => self.early.push(actual),
            }
            self.settle();
            return Ok(());
        }
        if self.expected.is_empty() {
            let hit = self.cancels > 0 && is_cancelled(tag, body);
            self.advance(hit);
        }
        while let Some(early) = self.early.iter().position(|it| self.expected.front() == Some(it)) {
            self.early.swap_remove(early);
            self.expected.pop_front();
        }
        if tag == back::READY_FOR_QUERY
            && let Some((tag, body)) = self.early.pop()
        {
            return Err(format!("got {}, which is not so", show(tag, &body)));
        }
        let expected = self.expected.pop_front();
        let fits = expected.as_ref() == Some(&actual)
            || self.forgives(expected.as_ref(), &actual)
            || self.is_hit_late(expected.as_ref(), &actual)
            || self.is_refused_early(expected.as_ref(), &actual);
        if fits {
            self.settle();
            return Ok(());
        }
        let expected = expected.map_or("nothing".to_owned(), |(tag, body)| show(tag, &body));
        Err(format!("got {}, expected {expected}", show(tag, &actual.1)))
    }

    /// True if a difference in a failed transaction is allowed. The engine may refuse another
    /// message than a server alone, as long as it refuses one: it answers some Parse messages
    /// itself, which succeed, and adds others, which fail. After an error a server refuses or
    /// ignores all messages up to Sync (manual, "Extended Query").
    fn forgives(&mut self, expected: Option<&Message>, actual: &Message) -> bool {
        let Some(expected) = expected.filter(|_| self.session.has_failed()) else { return false };
        let asked = self.last.0;
        if is_aborted(actual) {
            self.expected.clear();
            self.session.skip(matches!(asked, front::PARSE | front::BIND | front::DESCRIBE));
            return matches!(expected.0, back::ERROR_RESPONSE | back::PARAMETER_DESCRIPTION);
        }
        if is_aborted(expected) && asked == front::PARSE && actual.0 == back::PARSE_COMPLETE {
            self.session.skip(false);
            return self.session.parse_anyway(&self.last.1);
        }
        false
    }

    /// True if a cancel request has hit a query string after its columns were sent; or a block,
    /// behind a request in it that may have reset settings: the engine restores settings of the
    /// startup packet there.
    fn is_hit_late(&mut self, expected: Option<&Message>, actual: &Message) -> bool {
        let (asked, tag) = (self.last.0, expected.map(|(tag, _)| *tag));
        let ends = [front::QUERY, front::SYNC, front::FUNCTION_CALL].contains(&asked);
        let restores = ends && self.session.is_in_block() && tag == Some(back::READY_FOR_QUERY);
        let runs = asked == front::QUERY && tag == Some(back::DATA_ROW);
        let fails = asked == front::QUERY && tag == Some(back::ERROR_RESPONSE);
        let hit = self.cancels > 0 && is_cancelled(actual.0, &actual.1);
        if !((runs || fails || restores) && hit) {
            return false;
        }
        self.cancels -= 1;
        if fails {
            // One error comes in the place of another. The replies after it are the same.
            return true;
        }
        self.expected.clear();
        self.session.interrupt_query();
        self.collect();
        self.expected.pop_front().as_ref() == Some(actual)
    }

    /// True if a failed transaction refuses a Bind that has not arrived as a whole: the engine puts
    /// a Parse in front of it, which the server refuses.
    fn is_refused_early(&mut self, expected: Option<&Message>, actual: &Message) -> bool {
        let binds = expected.is_none() && self.asked.tag() == Some(front::BIND);
        let refused = binds && self.session.has_failed() && is_aborted(actual);
        if refused {
            self.session.skip(true);
        }
        refused
    }

    /// Returns what the client's transactions have written that are acknowledged by now: the row,
    /// and the writer.
    pub(crate) fn take_written(&mut self) -> Vec<(RowId, String)> {
        self.session.rows.take_news()
    }

    /// Returns the next expected message in words.
    pub fn awaits(&self) -> String {
        let next = self.expected.front();
        let asked = self.asked.peek().map(|(tag, _)| tag as char);
        let next = next.map(|(tag, body)| show(*tag, body));
        format!("expects {next:?}, asked {asked:?}")
    }

    /// Lets the session handle messages until it sends a reply. If `hit`, a cancel request hits the
    /// first message that one can hit.
    fn advance(&mut self, mut hit: bool) {
        if hit && self.session.is_copying() {
            self.session.interrupt_copy();
            hit = false;
            self.cancels -= 1;
            self.collect();
        }
        while self.expected.is_empty() {
            let asked = self.asked.take();
            let Some((tag, body)) = asked.or_else(|| self.intruder()) else { return };
            let hits =
                hit && (self.session.is_interruptible(tag) || self.session.may_report_cancel(tag));
            if hits {
                hit = false;
                self.cancels -= 1;
            }
            self.session.handle(tag, &body, hits);
            self.last = (tag, body);
            self.collect();
        }
    }

    /// Returns a message that does not belong into a COPY, with an empty body. The engine refuses
    /// it by its tag and need not wait for its body.
    fn intruder(&self) -> Option<Message> {
        let tag = self.asked.tag().filter(|_| self.session.is_copying())?;
        let copies = [front::COPY_DATA, front::COPY_DONE, front::COPY_FAIL];
        let belongs = copies.contains(&tag) || matches!(tag, front::SYNC | front::FLUSH);
        (!belongs).then(|| (tag, Vec::new()))
    }

    /// Lets the session handle messages that bring no reply.
    fn settle(&mut self) {
        while self.expected.is_empty()
            && let Some((tag, _)) = self.asked.peek()
            && self.session.is_silent(tag)
            && let Some((tag, body)) = self.asked.take()
        {
            self.session.handle(tag, &body, false);
        }
    }

    fn collect(&mut self) {
        let mut replies = Frames::default();
        replies.push(&self.session.take_all());
        while let Some((tag, body)) = replies.take() {
            self.expected.push_back(normal(tag, &body));
        }
    }
}

/// Whether a message is the error of an aborted transaction.
fn is_aborted((tag, body): &Message) -> bool {
    *tag == back::ERROR_RESPONSE && Fields(body).sqlstate() == b"25P02"
}

/// Whether a message says that a statement was cancelled on request.
pub fn is_cancelled(tag: u8, body: &[u8]) -> bool {
    let fields = Fields(body);
    let words = fields.get(refrain_pg_wire::back::field::MESSAGE).unwrap_or(b"");
    tag == back::ERROR_RESPONSE && fields.sqlstate() == b"57014" && words.starts_with(b"cancel")
}

/// Whether a message says that a statement was in the way of what a standby replays.
fn is_in_the_way(tag: u8, body: &[u8]) -> bool {
    tag == back::ERROR_RESPONSE
        && Fields(body).sqlstate() == Fault::in_the_way().sqlstate.as_bytes()
}

/// Returns the body of the error of a statement that was cancelled.
fn cancelled() -> Vec<u8> {
    let Fault { sqlstate, message, .. } = Fault::cancelled();
    let mut out = Vec::new();
    let report = Report { severity: "ERROR", sqlstate, message: &message, hint: "" };
    write::error(&mut out, &report);
    out.split_off(HEADER_BYTES)
}

/// Returns a message without keys, process IDs, the position of errors and the versions of rows,
/// which may differ.
fn normal(tag: u8, body: &[u8]) -> Message {
    let body = match tag {
        back::BACKEND_KEY_DATA => Vec::new(),
        back::NOTIFICATION_RESPONSE => body.get(4..).unwrap_or_default().to_vec(),
        back::ERROR_RESPONSE => {
            let mut body = body.to_vec();
            if let Some(at) = body.windows(2).position(|pair| pair == b"\0P") {
                body.truncate(at);
            }
            body
        }
        back::DATA_ROW => {
            let mut body = body.to_vec();
            rows::hide(&mut body);
            body
        }
        _ => body.to_vec(),
    };
    (tag, body)
}

/// Returns a message in words.
pub fn show(tag: u8, body: &[u8]) -> String {
    let shown = &body[..body.len().min(120)];
    format!("{} {:?}", tag as char, String::from_utf8_lossy(shown))
}

//! What a client must see: what a private session of the model server says to the same bytes.
//!
//! The private session reads the client's messages one at a time, and only as far as replies have come in
//! through the proxy. So a cancel request, whose moment nobody can foretell, needs no guess: where the
//! client sees that its statement was cancelled, and it has asked for that, the private session's is
//! cancelled at the same message.
//!
//! Rules out: replies of other clients (pgdog #759), replies out of order, lost or made up, one ReadyForQuery too
//! many or few (pgcat #137, pgbouncer #52), settings and statements that are not the client's own, and cancels
//! that hit a bystander (pgdog #1505, pgbouncer #141).

use std::collections::VecDeque;

use refrain_wire::back::Fields;
use refrain_wire::tag::{back, front};

use crate::frames::Frames;
use crate::session::Session;

/// A message as it is compared.
type Message = (u8, Vec<u8>);

/// A client's private session.
#[derive(Debug, Default)]
pub struct Oracle {
    session: Session,
    asked: Frames,
    expected: VecDeque<Message>,
    /// The message that was answered last.
    last: Message,
    /// Cancel requests that were sent and have hit nothing yet.
    pub cancels: u32,
}

impl Oracle {
    /// A session that begins with these settings; the expected greeting.
    pub fn begin(settings: &[(String, String)]) -> Self {
        let mut oracle = Self::default();
        if let Err(mut fault) = oracle.session.begin(settings, 0, &[0; 4]) {
            fault.fatal = true;
            // Through the proxy a client is let in first, and then hears that its settings are refused.
            refrain_wire::write::authentication(&mut oracle.session.out, 0, &[]);
            oracle.session.fail(&fault);
        }
        oracle.collect();
        oracle
    }

    /// The client has sent this.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.asked.push(bytes);
        self.settle();
    }

    /// Whether the client has every reply that it can wait for.
    pub fn is_settled(&self) -> bool {
        self.expected.is_empty() && self.asked.peek().is_none()
    }

    /// Whether the private session waits for COPY data.
    pub fn is_copying(&self) -> bool {
        self.session.is_copying()
    }

    /// Whether the private session is over.
    pub fn has_ended(&self) -> bool {
        self.session.has_ended() && self.expected.is_empty()
    }

    /// The client has got this message.
    ///
    /// # Errors
    /// What it should have got.
    pub fn check(&mut self, tag: u8, body: &[u8]) -> Result<(), String> {
        let actual = normal(tag, body);
        if self.expected.is_empty() {
            let hit = self.cancels > 0 && is_cancelled(tag, body);
            self.advance(hit);
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

    /// In a failed transaction the engine may differ from a server alone in which message is refused, as long as
    /// one is (after an error all up to Sync is refused or ignored, manual, "Extended Query"): a Parse that it answers itself is not, and one that it adds is.
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

    /// A cancel request may hit a query string that has told its columns already.
    fn is_hit_late(&mut self, expected: Option<&Message>, actual: &Message) -> bool {
        let runs = expected.is_some_and(|(tag, _)| *tag == back::DATA_ROW);
        let fails = expected.is_some_and(|(tag, _)| *tag == back::ERROR_RESPONSE);
        let hit = self.cancels > 0 && is_cancelled(actual.0, &actual.1);
        if !((runs || fails) && hit && self.last.0 == front::QUERY) {
            return false;
        }
        self.cancels -= 1;
        if fails {
            // It is one error in the place of another: what follows is the same.
            return true;
        }
        self.expected.clear();
        self.session.interrupt_query();
        self.collect();
        self.expected.pop_front().as_ref() == Some(actual)
    }

    /// A Bind that a failed transaction refuses need not have come whole: the Parse that is put in front of it is.
    fn is_refused_early(&mut self, expected: Option<&Message>, actual: &Message) -> bool {
        let binds = expected.is_none() && self.asked.tag() == Some(front::BIND);
        let refused = binds && self.session.has_failed() && is_aborted(actual);
        if refused {
            self.session.skip(true);
        }
        refused
    }

    /// What is expected next, in words.
    pub fn awaits(&self) -> String {
        let next = self.expected.front();
        let asked = self.asked.peek().map(|(tag, _)| tag as char);
        let next = next.map(|(tag, body)| show(*tag, body));
        format!("expects {next:?}, asked {asked:?}")
    }

    /// Has the session answer messages until there is something to expect; the first that can be hit by a
    /// cancel request is, if one has.
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
                hit && (self.session.is_interruptible(tag) || self.session.ends_in_vain(tag));
            if hits {
                hit = false;
                self.cancels -= 1;
            }
            self.session.handle(tag, &body, hits);
            self.last = (tag, body);
            self.collect();
        }
    }

    /// What does not belong into a COPY is refused by its first byte: the engine need not wait for the rest.
    fn intruder(&self) -> Option<Message> {
        let tag = self.asked.tag().filter(|_| self.session.is_copying())?;
        let copies = [front::COPY_DATA, front::COPY_DONE, front::COPY_FAIL];
        let belongs = copies.contains(&tag) || matches!(tag, front::SYNC | front::FLUSH);
        (!belongs).then(|| (tag, Vec::new()))
    }

    /// Has the session read on over messages that bring no reply.
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

/// Whether this says that the transaction has failed before.
fn is_aborted((tag, body): &Message) -> bool {
    *tag == back::ERROR_RESPONSE && Fields(body).sqlstate() == b"25P02"
}

/// Whether this says that a statement was cancelled on request.
pub fn is_cancelled(tag: u8, body: &[u8]) -> bool {
    let fields = Fields(body);
    let words = fields.get(refrain_wire::back::field::MESSAGE).unwrap_or(b"");
    tag == back::ERROR_RESPONSE && fields.sqlstate() == b"57014" && words.starts_with(b"cancel")
}

/// A message without what may differ: keys and process IDs, and the position of errors.
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
        _ => body.to_vec(),
    };
    (tag, body)
}

/// A message in words.
pub fn show(tag: u8, body: &[u8]) -> String {
    let shown = &body[..body.len().min(120)];
    format!("{} {:?}", tag as char, String::from_utf8_lossy(shown))
}

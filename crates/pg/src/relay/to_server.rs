//! From the client to its server: the first half of the hot path.
//!
//! [`Link::requests`] walks the messages in the buffer in which they arrived. Most messages are
//! passed on as they are. A Parse goes through [`crate::messages::parse`], the other messages that
//! name a statement through [`crate::messages::bind`], and query strings through
//! [`crate::messages::simple_query`]. Each message that is sent adds an [`OutstandingRequest`] to
//! the server's queue: the reply that the server owes from then on.
//!
//! Refrain parses a message just as far as its names. The bytes behind the names are copied, and
//! bytes that have not arrived yet are streamed later: a message may be a gigabyte, but the buffers
//! stay small.
//!
//! After an error in an extended message the server ignores everything up to the next Sync. Refrain
//! ignores the same messages from the moment it reads the error. A message that the server ignores
//! must not change Refrain's record of the server (E37).

use refrain_sql::{Kind, Traits};

use refrain_wire::front::{self as read, NAME_BYTES_MAX, Target};
use refrain_wire::tag::front;
use refrain_wire::write::{self, Report};

use crate::ground::disconnect::DisconnectReason;
use crate::ground::inbox::Rest;
use crate::pipeline::outstanding::{
    Copying, FakeReply, OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq,
};
use crate::relay::link::{Link, Stop};
use crate::relay::message::Message;
use crate::settings::session::{self, SettingsMut};
use crate::state::client::{Ahead, Barrier};
use crate::statements::of_client::Name;
use crate::statements::statement::Statement;

/// Most requests that may be outstanding on one server; further messages of the client wait.
/// PostgreSQL sends replies at the latest when 8 kB of them have gathered, so a full queue always
/// shrinks.
const OUTSTANDING_MAX: usize = 16 * 1024;

impl Link<'_> {
    /// Handles as much of a client's input as possible. Returns the number of bytes handled, and
    /// why it stopped.
    pub(crate) fn requests(&mut self, input: &[u8]) -> (usize, Stop) {
        let mut at = 0;
        loop {
            at += self.pass_rest(&input[at..]);
            match self.request(&input[at..]) {
                Ok(used) => at += used,
                Err(stop) => return (at, stop),
            }
        }
    }

    /// Passes on the rest of a message whose beginning has been handled. Returns the number of
    /// bytes taken.
    #[inline]
    fn pass_rest(&mut self, input: &[u8]) -> usize {
        let inbox = &mut self.client.inbox;
        if inbox.rest == 0 {
            return 0;
        }
        let count = inbox.take_rest(input);
        if inbox.rest_goes == Rest::On {
            self.out().extend_from_slice(&input[..count]);
        }
        count
    }

    /// Handles one message. Returns the number of bytes of input that it took.
    fn request(&mut self, input: &[u8]) -> Result<usize, Stop> {
        if self.client.inbox.rest > 0 {
            return Err(Stop::More);
        }
        let Some(message) = Message::read(input)? else { return Err(Stop::More) };
        let used = self.deal_with(&message, &input[message.bytes.len()..])?;
        // A message that is not passed on is dropped here. The part of it that has not arrived must
        // be dropped too.
        if !message.complete && self.client.inbox.rest == 0 {
            self.client.inbox.expect(message.missing(), Rest::Nowhere);
        }
        Ok(used)
    }

    /// Sends a message to its handler, unless the message has to wait or is ignored. `next` is the
    /// input behind it.
    #[inline]
    fn deal_with(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        if self.client.skipping {
            return self.skip(message);
        }
        match self.server.outstanding.copying() {
            // The server waits for COPY data and sends no reply before it has the data. Waiting for
            // replies here would never end, so a message that does not belong into COPY ends the
            // session at once (E43).
            Copying::In if self.server.outstanding.awaits_data() => {
                return match intrudes(message) {
                    true => Err(self.intruded(message.header.tag)),
                    // The server ignores Syncs amid COPY data (E42), so no reply would ever shrink
                    // the queue.
                    false if self.server.outstanding.len() >= OUTSTANDING_MAX => {
                        Err(Stop::End(DisconnectReason::ClientProtocol))
                    }
                    false => self.dispatch(message, next),
                };
            }
            // The server is counting the Syncs that a failed COPY has not skipped (E42). Until then
            // nobody knows how many replies are owed, and no message may be added.
            Copying::Counting => return Err(Stop::Replies),
            // The client has ended its COPY data, but the COPY has not succeeded or failed yet. See
            // `ends_copy`.
            _ if self.server.outstanding.ends_copy() && intrudes(message) => {
                return Err(Stop::Replies);
            }
            _ => {}
        }
        if self.server.outstanding.len() >= OUTSTANDING_MAX || self.is_barred() || self.is_to_wait()
        {
            return Err(Stop::Replies);
        }
        self.dispatch(message, next)
    }

    /// Ends the session of a client that sent another message amid COPY data, with PostgreSQL's
    /// error for it. The server does not get the message: a cancel request may have ended the COPY
    /// meanwhile, and then the server would run the message.
    pub(crate) fn intruded(&mut self, tag: u8) -> Stop {
        let message = format!("unexpected message type 0x{tag:02X} during COPY from stdin");
        let report = Report { severity: "ERROR", sqlstate: "08P01", message: &message, hint: "" };
        write::error(self.ports.out(self.client.conn), &report);
        Stop::End(DisconnectReason::Synchronization)
    }

    /// Calls the handler of a message by its tag. The most frequent tags stand first.
    #[inline]
    fn dispatch(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        match message.header.tag {
            front::BIND => self.bind(message),
            front::EXECUTE => self.execute(message),
            front::SYNC => self.sync(message),
            front::QUERY => self.query(message),
            front::DESCRIBE => self.describe(message),
            front::PARSE => self.parse(message, next),
            front::CLOSE => self.close(message),
            // PostgreSQL refuses a Flush with a body, except amid a COPY. So Refrain cannot know
            // whether the server would owe an error, and ends the session.
            front::FLUSH if message.header.body > 0 => {
                Err(Stop::End(DisconnectReason::ClientProtocol))
            }
            front::FLUSH => Ok(self.pass(message)),
            front::FUNCTION_CALL => {
                self.ends_early();
                let calls = self.suspect_function(message.body());
                let seq = self.server.outstanding.next_seq();
                self.client.suspicion.evidence.send(calls, seq..seq + 1);
                self.owe(OutstandingRequest::new(RequestKind::FunctionCall, ReplyAction::Forward));
                Ok(self.pass(message))
            }
            front::COPY_DATA => Ok(self.pass(message)),
            front::COPY_DONE | front::COPY_FAIL => Ok(self.copy_end(message)),
            front::TERMINATE => Err(Stop::End(DisconnectReason::Terminated)),
            _ => Err(Stop::End(DisconnectReason::ClientProtocol)),
        }
    }

    /// Whether the client's next message has to wait for a message that may drop all statements, or
    /// make one (E46).
    #[inline]
    fn is_barred(&mut self) -> bool {
        let Some(barrier) = &mut self.client.barrier else { return false };
        if self.server.outstanding.owes(barrier.seq) {
            return true;
        }
        let restores = barrier.restores.take();
        self.client.barrier = None;
        if let Some(first) = restores {
            self.restore_apart(&first);
        }
        false
    }

    /// Whether the client's next message has to wait for a request of Refrain's own. Autoprepare
    /// may run a statement in place of a query string and then have to run the string itself. While
    /// Refrain asks the server what the client's code left in the session ([`crate::relay::look`]),
    /// the session may have other settings than the client's.
    #[inline]
    fn is_to_wait(&self) -> bool {
        self.client.suspicion.asked.is_some()
            || self.server.run.as_ref().is_some_and(|run| run.holds())
    }

    /// Makes the client's next message wait for the reply to request `seq`, if that request may
    /// drop all statements or make one, or if the settings `restores` are to be restored once it
    /// has succeeded.
    #[inline]
    pub(crate) fn bar(
        &mut self,
        seq: Seq,
        traits: Traits,
        commands: u8,
        restores: Option<Box<SettingsMut>>,
    ) {
        // PREPARE is among them: a Parse behind it may give the same name, which fails if the
        // PREPARE succeeds.
        let all = Traits::DISCARD_ALL | Traits::DEALLOCATE_ALL | Traits::PREPARE;
        if traits.intersects(all) || restores.is_some() {
            let commands = u32::from(commands);
            self.client.barrier = Some(Barrier { seq, commands, drops: Vec::new(), restores });
        }
    }

    /// Drops a message that the server would ignore after an error: all up to the next Sync.
    fn skip(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match message.header.tag {
            front::SYNC => {
                let used = self.sync(message)?;
                self.client.skipping = false;
                Ok(used)
            }
            // Refrain put a Parse in front of this Query, and the Parse failed. With PostgreSQL
            // alone the Query itself would have failed, and would have ended the segment.
            front::QUERY if self.client.ahead == Ahead::Prepared => Ok(self.ends_in_vain(message)),
            front::TERMINATE => Err(Stop::End(DisconnectReason::Terminated)),
            _ => Ok(message.bytes.len()),
        }
    }

    /// Passes a message on as it is. Returns the number of bytes of input that it took.
    #[inline]
    pub(crate) fn pass(&mut self, message: &Message<'_>) -> usize {
        self.out().extend_from_slice(message.bytes);
        self.pass_missing(message)
    }

    /// Streams the part of a message that has not arrived yet to the server, once it comes.
    #[inline]
    pub(crate) fn pass_missing(&mut self, message: &Message<'_>) -> usize {
        if !message.complete {
            self.client.inbox.expect(message.missing(), Rest::On);
        }
        message.bytes.len()
    }

    /// Handles Sync.
    #[inline]
    fn sync(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        // PostgreSQL refuses a Sync with a body, except amid a COPY. Replies to come tell whether a
        // COPY is under way.
        if message.header.body > 0 && !self.server.outstanding.is_empty() {
            return Err(Stop::Replies);
        } else if message.header.body > 0 && self.server.outstanding.copying() != Copying::No {
            return Err(Stop::End(DisconnectReason::ClientProtocol));
        }
        self.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        Ok(self.pass(message))
    }

    /// Handles Execute.
    fn execute(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        let portal = read::execute_portal(message.whole(NAME_BYTES_MAX + 5)?)?;
        let seq = self.server.outstanding.next_seq();
        self.client.suspicion.evidence.execute(portal, seq);
        // `Client::portals` has just the portals whose statements may change the session
        // (`Statement::acts`). No other portal needs any care.
        let Some(cached) = self.client.portals.get(portal).cloned() else {
            self.owe(OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward));
            return Ok(self.pass(message));
        };
        self.execute_acting(message, &cached.statement)
    }

    /// Handles Execute of a statement that may change the session: SET, DEALLOCATE, DISCARD and
    /// others.
    fn execute_acting(
        &mut self,
        message: &Message<'_>,
        statement: &Statement,
    ) -> Result<usize, Stop> {
        let (text, scan) = (statement.text(), &statement.scan);
        if let Kind::Deallocate(name) = scan.kind {
            self.deallocate_portal(Name::from_slice(&name.fold(text)))?;
        }
        let named = self.lend_name(statement)?;
        self.note_settings(text, scan);
        self.note_drained(text, scan);
        let traits = scan.traits | named;
        let seq = self
            .owe(OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward).with(traits));
        self.bar(seq, scan.traits, 1, None);
        let used = self.pass(message);
        match self.first_settings(text, scan) {
            // A statement that runs outside of transaction blocks ends its own transaction. The
            // settings are restored behind it, in a transaction of their own, and the client's next
            // message waits for that.
            Some(first) if scan.traits.contains(Traits::ALONE) => {
                if let Some(barrier) = &mut self.client.barrier {
                    barrier.restores = Some(first);
                }
            }
            Some(first) => self.run_internal(&session::restore(&first), Purpose::Environment),
            None => {}
        }
        Ok(used)
    }

    /// Handles Describe.
    fn describe(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match Target::read(message.whole(NAME_BYTES_MAX + 2)?)? {
            Target::Statement(name) => self.describe_statement(message, name),
            Target::Portal(name) => {
                self.describe_portal(name);
                Ok(self.pass(message))
            }
            Target::Unknown => {
                self.owe(OutstandingRequest::new(
                    RequestKind::DescribePortal,
                    ReplyAction::Forward,
                ));
                Ok(self.pass(message))
            }
        }
    }

    /// Handles Close.
    fn close(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match Target::read(message.whole(NAME_BYTES_MAX + 2)?)? {
            Target::Statement(name) if self.client.managed => self.close_statement(message, name),
            Target::Statement(name) => {
                self.close_unmanaged(name);
                self.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
                Ok(self.pass(message))
            }
            Target::Portal(_) | Target::Unknown => {
                self.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
                Ok(self.pass(message))
            }
        }
    }

    /// Handles CopyDone and CopyFail. PostgreSQL ignores both where no COPY is under way or to
    /// come.
    fn copy_end(&mut self, message: &Message<'_>) -> usize {
        let outstanding = &self.server.outstanding;
        if !outstanding.is_empty() || outstanding.copying() != Copying::No {
            self.server.outstanding.push_copy_end();
        }
        self.pass(message)
    }

    /// Answers a Close without the server. Returns the number of bytes of input that it took.
    pub(crate) fn closed(&mut self, message: &Message<'_>) -> usize {
        self.pool().counters.closes_answered += 1;
        self.fake(RequestKind::Close, FakeReply::Close);
        message.bytes.len()
    }

    /// Appends the header of a message whose first `old` bytes of body become `new` bytes.
    pub(crate) fn rewritten_header(&mut self, message: &Message<'_>, old: usize, new: usize) {
        let body = message.header.body as usize - old + new;
        let body = u32::try_from(body).unwrap_or(u32::MAX - 4);
        write::header(self.out(), message.header.tag, body);
    }
}

/// Whether a message must not come while the server waits for COPY data. PostgreSQL ends the
/// session if one does.
fn intrudes(message: &Message<'_>) -> bool {
    use front::{BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE};
    let all = [BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE];
    all.contains(&message.header.tag)
}

//! From the client to its server: the first half of the hot path.
//!
//! [`Link::requests`] walks the messages where they arrived. Most are passed on as they are; those that
//! name a statement go through [`crate::messages::parse`], query strings through [`crate::messages::simple_query`]. Each message sent
//! adds to the server's list of outstanding requests what it makes the server owe.
//!
//! A message is looked at only as far as its names. What stands behind them is copied through, and if it
//! has not arrived yet it streams: a message may be a gigabyte, the buffers stay small.
//!
//! After an error in an extended message the server ignores everything up to Sync. So does this side, from
//! the moment it sees the error: what the server would ignore must not change what is known of it (E37).

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

/// Entries a list of outstanding requests may have; more of a client's messages wait. PostgreSQL sends replies at the latest when
/// 8 kB of them have gathered, so a full list of outstanding requests always shrinks.
const LEDGER_MAX: usize = 16 * 1024;

impl Link<'_> {
    /// Deals with as much of a client's input as it can; says how many bytes that was, and why it stopped.
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

    /// Passes on the rest of a message whose beginning has been dealt with.
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

    /// Deals with one message; says how many bytes of input it took.
    fn request(&mut self, input: &[u8]) -> Result<usize, Stop> {
        if self.client.inbox.rest > 0 {
            return Err(Stop::More);
        }
        let Some(message) = Message::read(input)? else { return Err(Stop::More) };
        let used = self.deal_with(&message, &input[message.bytes.len()..])?;
        // What is not passed on ends here, and so does what has not come of it.
        if !message.complete && self.client.inbox.rest == 0 {
            self.client.inbox.expect(message.missing(), Rest::Nowhere);
        }
        Ok(used)
    }

    #[inline]
    fn deal_with(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        if self.client.skipping {
            return self.skip(message);
        }
        match self.server.outstanding.copying() {
            // No reply comes before its data: there is nothing to wait for.
            Copying::In if self.server.outstanding.awaits_data() => {
                return match intrudes(message) {
                    true => Err(self.intruded(message.header.tag)),
                    // Syncs without end: nothing would ever be struck off.
                    false if self.server.outstanding.len() >= LEDGER_MAX => {
                        Err(Stop::End(DisconnectReason::ClientProtocol))
                    }
                    false => self.dispatch(message, next),
                };
            }
            Copying::Counting => return Err(Stop::Replies),
            _ if self.server.outstanding.ends_copy() && intrudes(message) => {
                return Err(Stop::Replies);
            }
            _ => {}
        }
        if self.server.outstanding.len() >= LEDGER_MAX || self.is_barred() || self.is_to_wait() {
            return Err(Stop::Replies);
        }
        self.dispatch(message, next)
    }

    /// Says so in its words. The message is not passed on: a cancel request may have ended the COPY meanwhile.
    pub(crate) fn intruded(&mut self, tag: u8) -> Stop {
        let message = format!("unexpected message type 0x{tag:02X} during COPY from stdin");
        let report = Report { severity: "ERROR", sqlstate: "08P01", message: &message, hint: "" };
        write::error(self.ports.out(self.client.conn), &report);
        Stop::End(DisconnectReason::Synchronization)
    }

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
            // PostgreSQL refuses one with a body, but not amid a COPY: what it would owe is not known.
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

    /// Whether what the client says next depends on a message that may drop all statements (E46).
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

    /// Whether a statement is run in the place of a text, which may have to be run itself, or the session is looked at: it
    /// may have other settings than the client's.
    #[inline]
    fn is_to_wait(&self) -> bool {
        self.client.suspicion.asked.is_some()
            || self.server.run.as_ref().is_some_and(|run| run.holds())
    }

    /// Has the client wait behind a message that may drop all statements or make one, or behind whose success `restores` are to
    /// be put back.
    #[inline]
    pub(crate) fn bar(
        &mut self,
        seq: Seq,
        traits: Traits,
        commands: u8,
        restores: Option<Box<SettingsMut>>,
    ) {
        // PREPARE takes names that a Parse behind it may give.
        let all = Traits::DISCARD_ALL | Traits::DEALLOCATE_ALL | Traits::PREPARE;
        if traits.intersects(all) || restores.is_some() {
            let commands = u32::from(commands);
            self.client.barrier = Some(Barrier { seq, commands, drops: Vec::new(), restores });
        }
    }

    /// Drops what the server would ignore.
    fn skip(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match message.header.tag {
            front::SYNC => {
                let used = self.sync(message)?;
                self.client.skipping = false;
                Ok(used)
            }
            front::QUERY if self.client.ahead == Ahead::Prepared => Ok(self.ends_in_vain(message)),
            front::TERMINATE => Err(Stop::End(DisconnectReason::Terminated)),
            _ => Ok(message.bytes.len()),
        }
    }

    /// Passes a message on as it is; says how many bytes of input it took.
    #[inline]
    pub(crate) fn pass(&mut self, message: &Message<'_>) -> usize {
        self.out().extend_from_slice(message.bytes);
        self.pass_missing(message)
    }

    /// Has the part of a message that has not arrived follow its beginning.
    #[inline]
    pub(crate) fn pass_missing(&mut self, message: &Message<'_>) -> usize {
        if !message.complete {
            self.client.inbox.expect(message.missing(), Rest::On);
        }
        message.bytes.len()
    }

    #[inline]
    fn sync(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        // PostgreSQL refuses one with a body, but not amid a COPY: whether there is one has to be known.
        if message.header.body > 0 && !self.server.outstanding.is_empty() {
            return Err(Stop::Replies);
        } else if message.header.body > 0 && self.server.outstanding.copying() != Copying::No {
            return Err(Stop::End(DisconnectReason::ClientProtocol));
        }
        self.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        Ok(self.pass(message))
    }

    fn execute(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        let portal = read::execute_portal(message.whole(NAME_BYTES_MAX + 5)?)?;
        let seq = self.server.outstanding.next_seq();
        self.client.suspicion.evidence.execute(portal, seq);
        let Some(cached) = self.client.portals.get(portal).cloned() else {
            self.owe(OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward));
            return Ok(self.pass(message));
        };
        self.execute_acting(message, &cached.statement)
    }

    /// Executes a statement that may do something to the session.
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
            // It ends its transaction at once; the client waits for that.
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

    /// CopyDone and CopyFail.
    fn copy_end(&mut self, message: &Message<'_>) -> usize {
        let outstanding = &self.server.outstanding;
        if !outstanding.is_empty() || outstanding.copying() != Copying::No {
            self.server.outstanding.push_copy_end();
        }
        self.pass(message)
    }

    /// Answers a Close that the server need not hear of.
    pub(crate) fn closed(&mut self, message: &Message<'_>) -> usize {
        self.pool().counters.closes_answered += 1;
        self.fake(RequestKind::Close, FakeReply::Close);
        message.bytes.len()
    }

    /// Appends a message's header for a body whose front was rewritten: `old` bytes became `new`.
    pub(crate) fn rewritten_header(&mut self, message: &Message<'_>, old: usize, new: usize) {
        let body = message.header.body as usize - old + new;
        let body = u32::try_from(body).unwrap_or(u32::MAX - 4);
        write::header(self.out(), message.header.tag, body);
    }
}

/// Whether a message may not come while the server waits for data: PostgreSQL ends the session over it.
fn intrudes(message: &Message<'_>) -> bool {
    use front::{BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE};
    let all = [BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE];
    all.contains(&message.header.tag)
}

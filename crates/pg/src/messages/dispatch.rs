//! From the client to its server: the first half of the hot path.
//!
//! [`Link::requests`] walks the messages in the buffer in which they arrived. Most messages are
//! passed on as they are. A Parse goes through [`crate::messages::parse`], the other messages that
//! name a statement through [`crate::messages::bind`], and query strings through
//! [`crate::messages::simple_query`]. Each message that is sent adds an [`OutstandingRequest`] to
//! the server's queue: the reply that the server owes from then on.
//!
//! After an error in an extended message the server ignores everything up to the next Sync. Refrain
//! ignores the same messages from the moment it reads the error. A message that the server ignores
//! must not change Refrain's record of the server (E37).

use refrain_pg_wire::front::{self as read, NAME_BYTES_MAX, Parse, Target};
use refrain_pg_wire::tag::front;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_sql::{Kind, Traits};

use crate::ground::name::Name;
use crate::messages::fits::describe_portal;
use crate::messages::malformed::refused;
use crate::messages::named::{first_settings_by_name, lend_name};
use crate::messages::parse::parse;
use crate::messages::simple_query::{ends_early, note_drained};
use crate::messages::unmanaged::{close_unmanaged, parse_long, parse_unmanaged};
use crate::pipeline::outstanding::{
    Copying, Outstanding, OutstandingRequest, Purpose, ReplyAction, RequestKind,
};
use crate::relay::knowledge::note_settings;
use crate::relay::link::{Link, Stop};
use crate::relay::look::suspect_function;
use crate::relay::message::Message;
use crate::relay::restore::{first_settings, restore_unseen};
use crate::relay::to_server::bar;
use crate::state::client::reading::Ahead;
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

    /// Handles one message. Returns the number of bytes of input that it took.
    pub(crate) fn request(&mut self, input: &[u8]) -> Result<usize, Stop> {
        if self.client.inbox.rest > 0 {
            return Err(Stop::More);
        }
        let Some(message) = Message::read(input)? else { return Err(Stop::More) };
        if !message.complete {
            self.check_length(&message)?;
        }
        let used = match self.handle(&message, &input[message.bytes.len()..]) {
            Err(Stop::End(DisconnectReason::ClientProtocol)) => self.pass_malformed(&message)?,
            result => result?,
        };
        // A message that is not passed on is dropped here. The part of it that has not arrived must
        // be dropped too.
        if !message.complete && self.client.inbox.rest == 0 {
            self.client.inbox.expect(message.missing(), Rest::Nowhere);
        }
        Ok(used)
    }

    /// Ends the session if a message is too long. The least `max_packet_size` is longer than what
    /// is read at once, so all such messages come in parts.
    #[inline(never)]
    fn check_length(&mut self, message: &Message<'_>) -> Result<(), Stop> {
        let most = self.pipe.pool().settings.options.max_packet_size;
        match most.is_some_and(|most| message.header.message_bytes() > most) {
            true => Err(Stop::End(DisconnectReason::MessageTooLong)),
            false => Ok(()),
        }
    }

    /// Passes on a message for which a handler would end the session, if PostgreSQL refuses it.
    #[cold]
    pub(crate) fn pass_malformed(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        let outstanding = &self.pipe.server.session.outstanding;
        match refused(message) {
            Some(kind) if outstanding.copying() == Copying::No => {
                if kind == RequestKind::Query {
                    ends_early(&mut self.pipe, &mut self.client.session);
                }
                self.pipe.owe(OutstandingRequest::new(kind, ReplyAction::Forward));
                Ok(self.pass(message))
            }
            _ => Err(Stop::End(DisconnectReason::ClientProtocol)),
        }
    }

    /// Sends a message to its handler, unless the message has to wait or is ignored. `next` is the
    /// input behind it.
    #[inline]
    pub(crate) fn handle(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        if self.client.session.reading.is_skipping() {
            return self.skip(message);
        }
        match self.pipe.server.session.outstanding.copying() {
            // The server waits for COPY data and sends no reply before it has the data. Waiting for
            // replies here would never end, so a message that does not belong into COPY ends the
            // session at once (E43).
            Copying::In if self.pipe.server.session.outstanding.awaits_data() => {
                return match intrudes(message) {
                    true => Err(self.intruded(message.header.tag)),
                    // The server ignores Syncs amid COPY data (E42), so no reply would ever shrink
                    // the queue.
                    false if self.pipe.server.session.outstanding.len() >= OUTSTANDING_MAX => {
                        Err(Stop::End(DisconnectReason::ClientProtocol))
                    }
                    false => self.dispatch(message, next),
                };
            }
            // The server is counting the Syncs that a failed COPY has not skipped (E42). Until then
            // the number of outstanding replies is unknown, and no message may be added.
            Copying::Counting => return Err(Stop::Replies),
            // The client has ended its COPY data, but the COPY has not succeeded or failed yet. See
            // `ends_copy`.
            _ if self.pipe.server.session.outstanding.ends_copy() && intrudes(message) => {
                return Err(Stop::Replies);
            }
            _ => {}
        }
        if self.pipe.server.session.outstanding.len() >= OUTSTANDING_MAX
            || self.is_barred()
            || self.is_to_wait()
        {
            return Err(Stop::Replies);
        }
        self.dispatch(message, next)
    }

    /// Calls the handler of a message by its tag. The most frequent tags stand first.
    #[inline]
    pub(crate) fn dispatch(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        match message.header.tag {
            front::BIND => self.bind(message, next),
            front::EXECUTE => self.execute(message),
            front::SYNC => self.sync(message),
            front::QUERY if self.client.session.login.refuses_queries() => {
                Err(Stop::End(DisconnectReason::QueryDisallowed))
            }
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
                let calls =
                    suspect_function(&mut self.pipe, &mut self.client.session, message.body());
                ends_early(&mut self.pipe, &mut self.client.session);
                self.pipe.sends_unknown();
                let seq = self.pipe.server.session.outstanding.next_seq();
                self.client.session.evidence.send(calls, seq..seq + 1);
                self.pipe
                    .owe(OutstandingRequest::new(RequestKind::FunctionCall, ReplyAction::Forward));
                if self.client.session.reading.unseen.is_some() {
                    restore_unseen(&mut self.pipe, &mut self.client.session, seq);
                }
                Ok(self.pass(message))
            }
            front::COPY_DATA => Ok(self.pass(message)),
            front::COPY_DONE | front::COPY_FAIL => Ok(self.copy_end(message)),
            front::TERMINATE => Err(Stop::End(DisconnectReason::Terminated)),
            _ => Err(Stop::End(DisconnectReason::ClientProtocol)),
        }
    }

    /// Drops a message that the server would ignore after an error: all up to the next Sync.
    pub(crate) fn skip(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match message.header.tag {
            front::SYNC => {
                let used = self.sync(message)?;
                self.client.session.reading.synced();
                Ok(used)
            }
            // Refrain put a Parse in front of this Query, and the Parse failed. With PostgreSQL
            // alone the Query itself would have failed, and would have ended the segment.
            front::QUERY if self.client.session.reading.ahead() == Ahead::Prepared => {
                Ok(self.end_refused_in_segment(message))
            }
            front::TERMINATE => Err(Stop::End(DisconnectReason::Terminated)),
            _ => Ok(message.bytes.len()),
        }
    }

    /// Handles Sync.
    #[inline]
    pub(crate) fn sync(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        if message.header.body > 0 {
            check_sync_with_body(&self.pipe.server.session.outstanding)?;
        }
        let seq = self.pipe.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        if self.client.session.reading.unseen.is_some() {
            restore_unseen(&mut self.pipe, &mut self.client.session, seq);
        }
        Ok(self.pass(message))
    }
}

/// Checks a Sync with a body, which PostgreSQL refuses, except amid a COPY. Replies to come tell
/// whether a COPY is under way.
#[cold]
fn check_sync_with_body(outstanding: &Outstanding) -> Result<(), Stop> {
    match outstanding.copying() {
        _ if !outstanding.is_empty() => Err(Stop::Replies),
        Copying::No => Ok(()),
        _ => Err(Stop::End(DisconnectReason::ClientProtocol)),
    }
}

impl Link<'_> {
    /// Handles Execute.
    pub(crate) fn execute(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        let portal = read::execute_portal(message.whole(NAME_BYTES_MAX + 5)?)?;
        let seq = self.pipe.server.session.outstanding.next_seq();
        self.client.session.evidence.execute(portal, seq);
        // `Client::portals` has just the portals whose statements may change the session
        // (`Statement::acts`). No other portal needs any care.
        let Some(cached) = self.client.session.portals.get(portal).cloned() else {
            self.pipe.owe(OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward));
            return Ok(self.pass(message));
        };
        self.execute_acting(message, &cached.statement)
    }

    /// Handles Execute of a statement that may change the session: SET, DEALLOCATE, DISCARD and
    /// others.
    pub(crate) fn execute_acting(
        &mut self,
        message: &Message<'_>,
        statement: &Statement,
    ) -> Result<usize, Stop> {
        let (text, scan) = (statement.text(), &statement.scan);
        if let Kind::Deallocate(name) = scan.kind {
            self.deallocate_portal(Name::from_slice(&name.fold(text)))?;
        }
        let named = lend_name(&mut self.pipe, &mut self.client.session, statement)?;
        note_settings(&mut self.pipe, &mut self.client.session, text, scan);
        note_drained(self.client.conn(), &mut self.pipe, text, scan);
        if refrain_sql::writes::may_commit(scan) {
            self.pipe.may_commit();
        }
        let traits = scan.traits | named;
        let seq = self
            .pipe
            .owe(OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward).with(traits));
        if scan.kind == Kind::TransactionEnd || scan.traits.contains(Traits::DISCARD_ALL) {
            self.pipe.server.session.outstanding.ends_transaction(seq);
        }
        bar(&mut self.client.session.reading, seq, scan.traits, 1, None);
        let used = self.pass(message);
        match first_settings(&self.client.session.settings, text, scan)
            .or_else(|| first_settings_by_name(&mut self.client.session, statement))
        {
            // A statement that runs outside of transaction blocks ends its own transaction. The
            // settings are restored behind it, in a transaction of their own, and the client's next
            // message waits for that.
            Some(first) if scan.traits.contains(Traits::ALONE) => {
                self.client.session.reading.restore_when_lifted(first);
            }
            Some(first) => {
                let text = self.pipe.server.session.settings.restoring(&first);
                self.pipe.run_internal(&text, Purpose::Environment);
            }
            None => {}
        }
        Ok(used)
    }

    /// Handles Parse. `next` is the input behind it.
    pub(crate) fn parse(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        let most = self.pipe.pool().settings.options.max_client_statement_bytes;
        let conn = self.client.conn();
        let (pipe, session) = (&mut self.pipe, &mut self.client.session);
        // A text of megabytes is not kept for other servers (E13): the client keeps this server
        // instead.
        if message.header.body as usize > most {
            parse_long(pipe, session, message);
            return Ok(self.pass(message));
        }
        let read = Parse::read(message.whole(most)?)?;
        if session.statements.are_managed() {
            return parse(conn, pipe, session, message, &read, next);
        }
        parse_unmanaged(pipe, session, &read);
        Ok(self.pass(message))
    }

    /// Handles Describe.
    pub(crate) fn describe(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match Target::read(message.whole(NAME_BYTES_MAX + 2)?)? {
            Target::Statement(name) => self.describe_statement(message, name),
            Target::Portal(name) => {
                describe_portal(&mut self.pipe, name);
                Ok(self.pass(message))
            }
            Target::Unknown => {
                self.pipe.owe(OutstandingRequest::new(
                    RequestKind::DescribePortal,
                    ReplyAction::Forward,
                ));
                Ok(self.pass(message))
            }
        }
    }

    /// Handles Close.
    pub(crate) fn close(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        match Target::read(message.whole(NAME_BYTES_MAX + 2)?)? {
            Target::Statement(name) if self.client.session.statements.are_managed() => {
                self.close_statement(message, name)
            }
            Target::Statement(name) => {
                close_unmanaged(&mut self.client.session, name);
                self.pipe.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
                Ok(self.pass(message))
            }
            Target::Portal(_) | Target::Unknown => {
                self.pipe.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
                Ok(self.pass(message))
            }
        }
    }

    /// Handles CopyDone and CopyFail. PostgreSQL ignores both where no COPY is under way or to
    /// come.
    pub(crate) fn copy_end(&mut self, message: &Message<'_>) -> usize {
        let outstanding = &self.pipe.server.session.outstanding;
        if !outstanding.is_empty() || outstanding.copying() != Copying::No {
            self.pipe.server.session.outstanding.push_copy_end();
        }
        self.pass(message)
    }
}

/// Whether a message must not come while the server waits for COPY data. PostgreSQL ends the
/// session if one does.
fn intrudes(message: &Message<'_>) -> bool {
    use front::{BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE};
    let all = [BIND, CLOSE, DESCRIBE, EXECUTE, FUNCTION_CALL, PARSE, QUERY, TERMINATE];
    all.contains(&message.header.tag)
}

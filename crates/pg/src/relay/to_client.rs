//! From the server to its client: the second half of the hot path.
//!
//! One scanner reads the header of every message. The queue of outstanding requests says which
//! request each reply answers, and whether the client gets it. Messages that the client gets
//! unchanged are copied in runs. A run ends where a message is skipped, rewritten or inserted. A
//! long row streams through; Refrain never holds it in full.
//!
//! An unexpected reply ends the server's connection: a guess could give one client another client's
//! row. Notices, notifications and ParameterStatus may come at any time and answer no request.
//! [`crate::relay::reports`] handles the latter, and the messages that are too long to be held.

use refrain_sql::Tag;
use refrain_wire::Header;
use refrain_wire::back::Status;
use refrain_wire::tag::back;

use crate::pipeline::outstanding::{
    OutstandingRequest, Purpose, ReplyAction, RequestKind, Settled,
};
use crate::relay::forward::{Goes, Halt, LOOKED_INTO_MAX, ServerInput, rest_of, restores};
use crate::relay::link::Link;
use crate::relay::words::Words;
use crate::settings::session::SETTINGS_BYTES_MAX;

impl Link<'_> {
    /// Handles as much of a server's output as possible. Returns the number of bytes handled, and
    /// why it stopped.
    pub(crate) fn replies(&mut self, input: &[u8]) -> (usize, Halt) {
        let mut run = ServerInput { input, from: 0, at: 0 };
        let halt = loop {
            if let Err(halt) = self.reply(&mut run) {
                break halt;
            }
        };
        self.flush(&mut run);
        self.take_reported();
        (run.at, halt)
    }

    /// Handles one message, whole or not.
    #[inline]
    fn reply(&mut self, run: &mut ServerInput<'_>) -> Result<(), Halt> {
        self.take_rest(run);
        let input = &run.input[run.at..];
        let Some(header) = Header::parse(input)? else { return Err(Halt::More) };
        let length = header.message_bytes();
        if input.len() >= length {
            let body = &input[refrain_wire::frame::HEADER_BYTES..length];
            return self.message(run, header, body);
        }
        // Rows that answer Refrain's own queries about settings must be read here, so they may not
        // stream.
        let asked =
            [ReplyAction::Skip(Purpose::ReadSettings), ReplyAction::Skip(Purpose::SyncSettings)];
        let ours = self
            .pipe
            .server
            .session
            .outstanding
            .front()
            .is_some_and(|entry| asked.contains(&entry.action));
        let long = length > SETTINGS_BYTES_MAX;
        if streams(header.tag) && !(ours && header.tag == back::DATA_ROW && !long) {
            // A row of settings longer than `SETTINGS_BYTES_MAX` is not kept: the settings count as
            // unknown.
            if ours && header.tag == back::DATA_ROW {
                self.pipe.server.session.settings.read_too_much();
            }
            self.begin_stream(run, header)
        } else if length <= LOOKED_INTO_MAX {
            Err(Halt::More)
        } else {
            self.large(run, header)
        }
    }

    /// Handles a message that has arrived in full.
    #[inline]
    fn message(
        &mut self,
        run: &mut ServerInput<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), Halt> {
        let length = header.message_bytes();
        match header.tag {
            back::DATA_ROW => {
                self.release(run);
                let settled = self.pipe.server.session.outstanding.settle(header.tag)?;
                self.advance(run, length, action(&settled.entry, header.tag));
                match settled.entry.action {
                    ReplyAction::Skip(Purpose::ReadSettings) => self.read_settings_row(body),
                    ReplyAction::Skip(Purpose::SyncSettings) => self.sync_settings_row(body),
                    _ => {}
                }
                Ok(())
            }
            back::NOTICE_RESPONSE if self.is_binding() && self.holds_notice(body) => {
                self.advance(run, length, Goes::Nowhere);
                Ok(())
            }
            back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE => {
                if header.tag == back::NOTIFICATION_RESPONSE {
                    // PostgreSQL sends notifications between transactions. So the transaction of an
                    // autoprepared statement has been committed, and no error can follow what was
                    // held back.
                    self.release(run);
                }
                let goes = self.unasked(header.tag);
                let end = run.at + length;
                if header.tag == back::NOTIFICATION_RESPONSE && goes == Goes::On {
                    self.name_sender(run)?;
                }
                self.advance(run, end - run.at, goes);
                Ok(())
            }
            back::PARAMETER_STATUS => self.setting(run, length, body),
            back::ERROR_RESPONSE => self.failed(run, &Words::read(body, 0), length),
            back::READY_FOR_QUERY => self.ready(run, length, body),
            tag => self.settled(run, tag, length, body),
        }
    }

    /// Decides whether the client gets a notice or a notification that comes now.
    fn unasked(&self, tag: u8) -> Goes {
        self.pipe.server.session.outstanding.front().map_or(Goes::On, |entry| unasked(entry, tag))
    }

    /// Sends the replies of an autoprepared statement that were held back until it was known that
    /// no error follows.
    #[inline]
    fn release(&mut self, run: &mut ServerInput<'_>) {
        if let Some(held) = self.held_replies() {
            self.flush(run);
            self.pipe.ports.out(self.client.conn()).extend_from_slice(&held);
        }
    }

    /// Whether the server is binding the values of an autoprepared statement.
    fn is_binding(&self) -> bool {
        let ours = ReplyAction::Skip(Purpose::Autoprepare);
        self.pipe
            .server
            .session
            .outstanding
            .front()
            .is_some_and(|e| e.kind == RequestKind::Bind && e.action == ours)
    }

    /// Handles a reply that answers the oldest outstanding request, in full or in part.
    fn settled(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt> {
        let settled = self.pipe.server.session.outstanding.settle(tag)?;
        self.look_into(tag, &settled, body);
        if tag == back::BIND_COMPLETE {
            self.release_notices(run);
        }
        // Replies to an extended query that a query string would not bring, or would bring later.
        let unsaid = match tag {
            back::NO_DATA => settled.entry.action == ReplyAction::Rows,
            back::ROW_DESCRIPTION | back::COMMAND_COMPLETE => {
                self.holds_back(&settled.entry, &run.input[run.at..], length)
            }
            back::PARAMETER_DESCRIPTION => {
                self.holds_parameters(&settled.entry, &run.input[run.at..][..length])
            }
            _ => false,
        };
        let described = settled.entry.kind == RequestKind::DescribeStatement && settled.done;
        if tag == back::COMMAND_COMPLETE && !unsaid || described {
            self.release(run);
        }
        self.advance(run, length, if unsaid { Goes::Nowhere } else { action(&settled.entry, tag) });
        if let (ReplyAction::Instead(made), back::COMMAND_COMPLETE) = (settled.entry.action, tag) {
            self.flush(run);
            self.answered_there(made);
        }
        if settled.done {
            self.take_reported();
            match (settled.entry.kind, settled.entry.action) {
                (RequestKind::Execute, ReplyAction::Skip(Purpose::ReadSettings)) => {
                    self.read_settings_ends()
                }
                // The server has counted the Syncs that a failed COPY did not skip (E42).
                (RequestKind::Syncs, _) => {
                    self.flush(run);
                    self.syncs_counted();
                }
                _ => {}
            }
            self.settle(settled.seq);
            self.fake_due(run);
        }
        // The client sent another message before its COPY began. PostgreSQL would end the session
        // at that message, but Refrain answered it itself, so the server never sees it. Refrain
        // ends the session in its place (E43).
        if tag == back::COPY_IN_RESPONSE
            && let Some(made) = self.pipe.server.session.outstanding.fake_reply_amid_copy()
        {
            self.flush(run);
            self.intruded(made.answers());
            return Err(Halt::Intruded);
        }
        Ok(())
    }

    /// Learns from the contents of a reply: what a command did, what a statement returns.
    #[inline]
    fn look_into(&mut self, tag: u8, settled: &Settled, body: &[u8]) {
        match (tag, settled.entry.kind) {
            (back::COMMAND_COMPLETE, _) => self.completed(&settled.entry, settled.seq, body),
            (back::FUNCTION_CALL_RESPONSE, _) => self.function_called(settled.seq, body),
            // The portal is not complete, but calls for its rows so far have taken effect: a lock,
            // a setting.
            (back::PORTAL_SUSPENDED, _) if !settled.entry.traits.is_empty() => {
                self.completed_specially(Tag::Select, settled.entry.traits);
            }
            (back::PARSE_COMPLETE, _) => {
                let id = settled.entry.statement;
                self.for_client_statement(id, |statement| statement.held.cached().accept());
            }
            (back::BIND_COMPLETE, _) => self.run_is_bound(),
            (back::PARAMETER_DESCRIPTION, _) => self.parameters_described(body),
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribeStatement) => {
                self.run_is_described();
                self.described(&settled.entry, settled.seq, body);
            }
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribePortal) => {
                self.described(&settled.entry, settled.seq, body);
            }
            _ => {}
        }
    }

    /// Handles ReadyForQuery, which ends a segment: the messages up to a Sync, or those of one
    /// Query.
    #[inline]
    fn ready(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        let status = Status::read(body)?;
        let settled = self.pipe.server.session.outstanding.settle(back::READY_FOR_QUERY)?;
        self.take_reported();
        self.pipe.server.session.outstanding.ready(status);
        if status == Status::Idle {
            let outstanding = &self.pipe.server.session.outstanding;
            self.client.session.transaction_ends(|segment| outstanding.is_over(segment));
        }
        if status == Status::Idle && self.pipe.server.session.transaction.take_schema() {
            // Other sessions see the new schema from this commit on. A statement that they have
            // planned since the command ran was planned for the old one.
            self.pipe.pool().shared.protocol.schema_change();
        }
        if status == Status::Idle {
            let session = &mut self.pipe.server.session;
            drop(session.transaction.end_defining(&session.outstanding));
        }
        if status == Status::Idle && self.pipe.server.session.transaction.take_defaults() {
            self.renew();
        }
        self.release(run);
        self.settle(settled.seq);
        // After a RESET the client's startup settings are restored behind it. The client gets
        // ReadyForQuery, and hears of settings, once that is done.
        let behind = settled.entry.action == ReplyAction::Held;
        let held = behind && self.restores_behind(settled.seq);
        if restores(&settled.entry) || behind && !held {
            self.flush(run);
            self.tell_settings();
        }
        if self.client.session.settings.have_changed() {
            self.settings_are_reported();
        }
        let goes = action(&settled.entry, back::READY_FOR_QUERY);
        self.advance(run, length, if held { Goes::Nowhere } else { goes });
        self.fake_due(run);
        match settled.entry.action {
            ReplyAction::Skip(Purpose::Reset) => self.pipe.server.session.reset(),
            ReplyAction::Skip(_) => {}
            _ if held => {}
            _ => {
                let pool = self.pipe.core_state.pool(self.pipe.server.pool());
                let took = pool.request_over(self.client, self.pipe.server, self.pipe.now);
                self.run_ends(took);
                self.unnamed_ends(took);
            }
        }
        Err(Halt::Ready)
    }

    /// Handles the beginning of a row, or of another message that Refrain does not read.
    fn begin_stream(&mut self, run: &mut ServerInput<'_>, header: Header) -> Result<(), Halt> {
        if header.tag == back::DATA_ROW {
            self.release(run);
        }
        let goes = match header.tag {
            tag @ (back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE) => self.unasked(tag),
            tag => action(&self.pipe.server.session.outstanding.settle(tag)?.entry, tag),
        };
        let missing = header.message_bytes() - (run.input.len() - run.at);
        if header.tag == back::NOTIFICATION_RESPONSE && goes == Goes::On {
            self.name_sender(run)?;
        }
        let there = run.input.len() - run.at;
        self.pipe.server.inbox.expect(missing, rest_of(goes));
        self.advance(run, there, goes);
        Err(Halt::More)
    }
}

/// Whether messages of this type are passed on in pieces, unread.
fn streams(tag: u8) -> bool {
    matches!(
        tag,
        back::DATA_ROW
            | back::COPY_DATA
            | back::FUNCTION_CALL_RESPONSE
            | back::NOTICE_RESPONSE
            | back::NOTIFICATION_RESPONSE
    )
}

/// Decides whether the client gets a reply. Where the server ran another query in place of the
/// client's, the client gets its ReadyForQuery alone: the rest is a fake reply.
#[inline]
fn action(entry: &OutstandingRequest, tag: u8) -> Goes {
    let ours = matches!(entry.action, ReplyAction::Instead(_)) && tag != back::READY_FOR_QUERY;
    if entry.action.is_for_client() && !ours { Goes::On } else { Goes::Nowhere }
}

/// Decides whether the client gets a notice or a notification that comes while `entry` is the
/// oldest request.
fn unasked(entry: &OutstandingRequest, tag: u8) -> Goes {
    match entry.action {
        // The autoprepared statement runs in place of the client's query string.
        ReplyAction::Skip(Purpose::Autoprepare) => Goes::On,
        // The server has not got the client's settings yet: what comes now is not from the client's
        // session.
        ReplyAction::Skip(Purpose::SyncSettings) => Goes::Nowhere,
        // A notification answers no request. It is for the client, who has listened.
        _ if tag == back::NOTIFICATION_RESPONSE => Goes::On,
        _ => action(entry, tag),
    }
}

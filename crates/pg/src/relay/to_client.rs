//! From the server to its client: the second half of the hot path.
//!
//! [`crate::relay::reader`] reads; this file says what a client gets of it, and what Refrain learns
//! from it.
//!
//! An unexpected reply ends the server's connection: a guess could give one client another client's
//! row. Notices, notifications and ParameterStatus may come at any time and answer no request.
//! [`crate::relay::reports`] handles the latter.

use refrain_pg_wire::Header;
use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::back;

use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq, Settled,
};
use crate::pipeline::purposes::{Done, Rows, Unasked};
use crate::relay::described::{described, parameters_described, refuse_behind};
use crate::relay::effects::{completed, function_called, suspended};
use crate::relay::follow::sync_settings_row;
use crate::relay::knowledge::settings_are_reported;
use crate::relay::link::{Link, for_client_statement};
use crate::relay::pipe::{Pipeline, write_fake};
use crate::relay::reader::{Goes, Halt, Reader, ServerInput, rest_of};
use crate::relay::replayed::{has_other_columns, replayed_row};
use crate::relay::reports::{
    read_settings_ends, read_settings_row, restores, take_reported, tell_report,
};
use crate::relay::restore::{restore_again, restore_settings_behind, restored, tell_settings};
use crate::relay::run::{held_notices, held_replies, hold_back, hold_notice_back, run_ends};
use crate::relay::turn::drop_answered_parse;
use crate::relay::unnamed_run::{hold_parameters, run_is_described, unnamed_ends};
use crate::relay::words::Words;
use crate::settings::session::SETTINGS_BYTES_MAX;
use crate::statements::columns::Expected;

/// Bytes of the beginning of a NotificationResponse: its header, and the process ID of the sender.
const SENDER_BYTES: usize = refrain_pg_wire::frame::HEADER_BYTES + size_of::<u32>();

impl<'a> Reader<'a> for Link<'a> {
    #[inline]
    fn pipe(&mut self) -> &mut Pipeline<'a> {
        &mut self.pipe
    }

    #[inline]
    fn copy(&mut self, bytes: &[u8]) {
        self.pipe.ports.out(self.client.conn()).extend_from_slice(bytes);
    }

    #[inline]
    fn fake_reply(&mut self, reply: FakeReply) {
        write_fake(self.pipe.ports.out(self.client.conn()), reply);
    }

    #[inline]
    fn make_final(&mut self, seq: Seq) {
        self.settle(seq);
    }

    fn awaits_row(&mut self, length: usize) -> bool {
        // Rows that answer Refrain's own queries about settings must be read here, so they may not
        // stream.
        let own = self.pipe.server.session.outstanding.front().and_then(|entry| entry.action.own());
        let ours = own.is_some_and(|own| own.rows != Rows::Nothing);
        let long = length > SETTINGS_BYTES_MAX;
        // A row of settings longer than `SETTINGS_BYTES_MAX` is not kept: the settings count as
        // unknown.
        if ours && long {
            self.pipe.server.session.settings.read_too_much();
        }
        ours && !long
    }

    fn begin_stream(&mut self, run: &mut ServerInput<'_>, header: Header) -> Result<(), Halt> {
        let most = self.pipe.pool().settings.options.max_packet_size;
        if most.is_some_and(|most| header.message_bytes() > most) {
            return Err(Halt::TooLong);
        }
        if header.tag == back::DATA_ROW {
            self.release(run);
        }
        let goes = match header.tag {
            tag @ (back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE) => {
                may_pass(&self.pipe, tag)
            }
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

    #[inline]
    fn row(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        self.release(run);
        let settled = self.pipe.server.session.outstanding.settle(back::DATA_ROW)?;
        self.advance(run, length, action(&settled.entry, back::DATA_ROW));
        match settled.entry.action.own().map(|own| own.rows) {
            Some(Rows::Settings) => {
                read_settings_row(&mut self.pipe, &mut self.client.session, body);
            }
            Some(Rows::Synced) => sync_settings_row(
                self.client.conn(),
                &mut self.pipe,
                &mut self.client.session,
                body,
            ),
            Some(Rows::Replayed) => {
                return replayed_row(&mut self.pipe, &self.client.session, body);
            }
            Some(Rows::Nothing) | None => {}
        }
        Ok(())
    }

    fn unasked(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt> {
        if tag == back::NOTICE_RESPONSE
            && is_binding(&self.pipe)
            && hold_notice_back(&mut self.pipe.server.session, body)
        {
            self.advance(run, length, Goes::Nowhere);
            return Ok(());
        }
        if tag == back::NOTIFICATION_RESPONSE {
            // PostgreSQL sends notifications between transactions. So the transaction of an
            // autoprepared statement has been committed, and no error can follow what was held
            // back.
            self.release(run);
        }
        let goes = may_pass(&self.pipe, tag);
        let end = run.at + length;
        if tag == back::NOTIFICATION_RESPONSE && goes == Goes::On {
            self.name_sender(run)?;
        }
        self.advance(run, end - run.at, goes);
        Ok(())
    }

    fn reported(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<Goes, Halt> {
        self.pipe.note_state(name, value);
        tell_report(&mut self.pipe, &mut self.client.session, name, value)
    }

    #[inline]
    fn intern_reports(&mut self) {
        take_reported(self.client.conn(), &mut self.pipe, &mut self.client.session);
    }

    fn error(&mut self, words: &Words<'_>) -> Result<bool, Halt> {
        self.take_error(words)
    }

    #[inline]
    fn ready(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        let status = Status::read(body)?;
        let settled = self.pipe.server.session.outstanding.settle(back::READY_FOR_QUERY)?;
        take_reported(self.client.conn(), &mut self.pipe, &mut self.client.session);
        if self.pipe.server.session.transaction.is_writing() {
            // From now on the client reads what it has written, where replies are kept.
            self.client.session.results.note_write(self.pipe.now);
        }
        self.pipe.becomes_ready(status);
        if status == Status::Idle {
            let outstanding = &self.pipe.server.session.outstanding;
            self.client.session.transaction_ends(|segment| outstanding.is_over(segment));
        }
        self.release(run);
        self.settle(settled.seq);
        // After a RESET the client's startup settings are restored behind it. The client gets
        // ReadyForQuery, and hears of settings, once that is done.
        let behind = settled.entry.action == ReplyAction::Held;
        let restored = restores(&settled.entry);
        let held = behind
            && restore_settings_behind(&mut self.pipe, &mut self.client.session, settled.seq)
            || restored
                && restore_again(
                    &mut self.pipe,
                    &mut self.client.session.reading,
                    &settled.entry,
                    settled.seq,
                );
        if (restored || behind) && !held {
            self.flush(run);
            tell_settings(self.client.conn(), &mut self.pipe, &mut self.client.session.settings);
        }
        if self.client.session.settings.have_changed() {
            settings_are_reported(&self.pipe, &mut self.client.session.settings);
        }
        let goes = action(&settled.entry, back::READY_FOR_QUERY);
        self.advance(run, length, if held { Goes::Nowhere } else { goes });
        // Behind the client's request on a shared server stands that of another client.
        if self.pipe.server.requests_behind() == 0 {
            self.fake_due(run);
        }
        match settled.entry.action {
            ReplyAction::Skip(_) => {}
            _ if held => {}
            _ => {
                let pool = self.pipe.core_state.pool_in_use(self.pipe.server.pool());
                let took = pool.request_over(self.client, self.pipe.server, self.pipe.now);
                if self.pipe.server.session.front.segment_ends() {
                    run_ends(&mut self.pipe, took);
                    unnamed_ends(&mut self.pipe, &mut self.client.session, took);
                }
                if let Some(read) = self.client.session.read.take() {
                    read.learn_cost(took, self.client.session.read_bytes + run.at as u64);
                }
            }
        }
        Err(Halt::Ready)
    }

    fn settled(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt> {
        let settled = self.pipe.server.session.outstanding.settle(tag)?;
        self.look_into(tag, &settled, body);
        // Replies to an extended query that a query string would not bring, or would bring later.
        let watched = self.pipe.server.session.front.is_watched();
        let unsaid = watched && self.holds_back(run, tag, length, &settled.entry)
            || tag == back::NO_DATA && settled.entry.action == ReplyAction::Rows;
        let described = settled.entry.kind == RequestKind::DescribeStatement && settled.done;
        if tag == back::COMMAND_COMPLETE && !unsaid || described {
            self.release(run);
        }
        self.advance(run, length, if unsaid { Goes::Nowhere } else { action(&settled.entry, tag) });
        if described && !self.pipe.server.session.expected.met {
            self.pipe.server.session.expected = Expected::ANYTHING;
            self.flush(run);
            if has_other_columns(self) {
                return Err(Halt::Elsewhere);
            }
            refuse_behind(
                self.client.conn(),
                &mut self.pipe,
                &mut self.client.session,
                &settled.entry,
            );
        }
        if let (ReplyAction::Instead(made), back::COMMAND_COMPLETE) = (settled.entry.action, tag) {
            self.flush(run);
            self.answered_there(made);
        }
        if settled.done {
            take_reported(self.client.conn(), &mut self.pipe, &mut self.client.session);
            match (settled.entry.kind, settled.entry.action) {
                (RequestKind::Execute, ReplyAction::Skip(purpose)) => self.executed(purpose, body),
                // The server has counted the Syncs that a failed COPY did not skip (E42).
                (RequestKind::Syncs, _) => {
                    self.flush(run);
                    self.syncs_counted();
                }
                (RequestKind::Parse, ReplyAction::Forward) => {
                    drop_answered_parse(self.client, &self.pipe.server.session.outstanding);
                }
                _ => {}
            }
            self.settle(settled.seq);
            self.fake_due(run);
        } else if settled.entry.kind == RequestKind::Query && settled.entry.action.is_for_client() {
            // Of a query of Refrain's own, which stands in front, the client gets nothing.
            self.client.session.begin_reply();
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
}

impl Link<'_> {
    /// Sends the client the fake reply to its query: the server has run the one in its place.
    fn answered_there(&mut self, made: FakeReply) {
        if made == FakeReply::DeallocateAll {
            self.client.session.statements.forget_named();
        }
        write_fake(self.pipe.ports.out(self.client.conn()), made);
    }

    /// Handles the completion of an Execute of Refrain's own.
    fn executed(&mut self, purpose: Purpose, body: &[u8]) {
        match purpose.treatment().done {
            Done::Read => {
                let conn = self.client.conn();
                read_settings_ends(conn, &mut self.pipe, &mut self.client.session);
            }
            Done::Restored => restored(&mut self.client.session, body),
            Done::Nothing | Done::Compared | Done::Reset => {}
        }
    }
}

/// Decides whether the client gets a notice or a notification that comes now.
fn may_pass(pipe: &Pipeline<'_>, tag: u8) -> Goes {
    pipe.server.session.outstanding.front().map_or(Goes::On, |entry| unasked(entry, tag))
}

impl Link<'_> {
    /// Handles a reply to a statement that runs in place of a text. True if the reply is held back.
    #[inline(never)]
    fn holds_back(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        entry: &OutstandingRequest,
    ) -> bool {
        let (server, reply) = (&mut self.pipe.server.session, &run.input[run.at..]);
        match tag {
            back::BIND_COMPLETE => {
                server.front.values_are_bound();
                self.release_notices(run);
                false
            }
            back::ROW_DESCRIPTION | back::COMMAND_COMPLETE => {
                hold_back(server, entry, reply, length)
            }
            back::PARAMETER_DESCRIPTION => hold_parameters(server, entry, &reply[..length]),
            _ => false,
        }
    }

    /// Sends the replies of an autoprepared statement that were held back until it was known that
    /// no error follows.
    #[inline]
    fn release(&mut self, run: &mut ServerInput<'_>) {
        if self.pipe.server.session.front.is_watched() {
            self.release_held(run);
        }
    }

    #[inline(never)]
    fn release_held(&mut self, run: &mut ServerInput<'_>) {
        if let Some(held) = held_replies(&mut self.pipe.server.session) {
            self.flush(run);
            self.pipe.ports.out(self.client.conn()).extend_from_slice(&held);
        }
    }

    /// Replaces the process ID in a notification that the client's own session has sent. The client
    /// knows its session by the process ID that Refrain gave it. If so, handles the beginning of
    /// the notification.
    fn name_sender(&mut self, run: &mut ServerInput<'_>) -> Result<(), Halt> {
        let Some(begun) = run.input[run.at..].first_chunk::<SENDER_BYTES>() else {
            return Err(Halt::More);
        };
        let (head, pid) = begun.split_at(refrain_pg_wire::frame::HEADER_BYTES);
        if *pid != self.pipe.server.pid().to_be_bytes() {
            return Ok(());
        }
        self.flush(run);
        let own = self.client.pid().to_be_bytes();
        let out = self.pipe.ports.out(self.client.conn());
        out.extend_from_slice(head);
        out.extend_from_slice(&own);
        self.advance(run, SENDER_BYTES, Goes::Nowhere);
        Ok(())
    }

    /// Sends the notices of an autoprepared statement that were held back: its values are bound
    /// now, so the query string will not be run again, which would raise them a second time.
    #[inline]
    fn release_notices(&mut self, run: &mut ServerInput<'_>) {
        if let Some(notices) = held_notices(&mut self.pipe.server.session) {
            self.flush(run);
            self.pipe.ports.out(self.client.conn()).extend_from_slice(&notices);
        }
    }
}

/// Whether the server is binding the values of an autoprepared statement.
fn is_binding(pipe: &Pipeline<'_>) -> bool {
    let ours = ReplyAction::Skip(Purpose::Autoprepare);
    pipe.server
        .session
        .outstanding
        .front()
        .is_some_and(|e| e.kind == RequestKind::Bind && e.action == ours)
}

impl Link<'_> {
    /// Learns from the contents of a reply: what a command did, what a statement returns.
    #[inline]
    fn look_into(&mut self, tag: u8, settled: &Settled, body: &[u8]) {
        let (pipe, session) = (&mut self.pipe, &mut self.client.session);
        let Settled { entry, seq, .. } = settled;
        match (tag, entry.kind) {
            (back::COMMAND_COMPLETE, _) => completed(pipe, session, entry, *seq, body),
            (back::FUNCTION_CALL_RESPONSE, _) => function_called(session, *seq, body),
            (back::PORTAL_SUSPENDED, _) => suspended(pipe, session, entry),
            (back::PARSE_COMPLETE, _) => {
                for_client_statement(&mut session.statements, entry.statement, |statement| {
                    statement.held.cached().accept()
                });
            }
            (back::BIND_COMPLETE, _) => pipe.server.session.front.binds(entry.statement),
            (back::PARAMETER_DESCRIPTION, _) => parameters_described(pipe, body),
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribeStatement) => {
                run_is_described(&mut pipe.server.session);
                described(pipe, session, entry, *seq, body);
            }
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribePortal) => {
                described(pipe, session, entry, *seq, body);
            }
            _ => {}
        }
    }
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
    match entry.action.own().map(|own| own.unasked) {
        Some(Unasked::All) => Goes::On,
        Some(Unasked::Nothing) => Goes::Nowhere,
        // A notification answers no request. It is for the client, who has listened.
        _ if tag == back::NOTIFICATION_RESPONSE => Goes::On,
        _ => action(entry, tag),
    }
}

//! Simple queries: Refrain passes them on unchanged, except queries that name prepared statements.
//!
//! A client's statements have other names on the server. So Refrain handles DEALLOCATE itself (E46,
//! E48), and rewrites EXECUTE of a statement that was prepared by Parse (E51). Any other effect
//! that a text may have on the session is noted with its outstanding request ([`Traits`]). Refrain
//! acts on it once the server has reported success: a text that failed did nothing.

use refrain_pool::Conn;
use std::rc::Rc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::{front as read, write};
use refrain_sql::{Kind, Scan, Traits};

use crate::autoprepare::send::autoprepare;
use crate::ground::name::Name;
use crate::messages::check::Use;
use crate::messages::fits::{Fit, fit};
use crate::messages::meaning::meant;
use crate::messages::named::{Lent, bar_drops, first_settings_of, lend_named};
use crate::messages::prepare::ensure_named;
use crate::messages::refuse::refuse;
use crate::messages::unmanaged::query_unmanaged;
use crate::messages::wait::{wait_for_reading, wait_until_quiet};
use crate::pipeline::outstanding::{
    FakeReply, Outstanding, OutstandingRequest, Purpose, Refusal, ReplyAction, RequestKind, Seq,
};
use crate::relay::knowledge::note_settings;
use crate::relay::link::{Link, Stop};
use crate::relay::look::suspect;
use crate::relay::message::Message;
use crate::relay::pipe::{Pipeline, write_fake};
use crate::relay::restore::{first_settings, restore_unseen};
use crate::relay::to_server::{bar, forget_unnamed, rewritten_header};
use crate::relay::unread::watch_rest;
use crate::relay::writes::sends_text;
use crate::settings::queries::Restores;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::reading::{Ahead, Reading};
use crate::statements::of_client::ByName;
use crate::statements::of_core::CachedStatement;

impl Link<'_> {
    /// Handles Query.
    pub(crate) fn query(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        if message.awaits_text() {
            return Err(Stop::More);
        }
        // Refrain has put a Parse in front of this very query, and the server has refused it.
        // PostgreSQL would have refused the query in its place (E33).
        if is_refused_ahead(
            &self.pipe.server.session.outstanding,
            &mut self.client.session.reading,
        )? {
            return Ok(self.end_refused(message));
        }
        let text = match message.complete {
            true => read::query_text(message.body())?,
            false => message.body(),
        };
        let backslash = self.client.session.settings.reads_backslash();
        let scan = self.client.session.results.take_scan();
        let scan = scan.unwrap_or_else(|| refrain_sql::scan_with(text, backslash));
        sends_text(&mut self.pipe, &self.client.session, text, &scan, message.complete);
        if self.client.session.statements.are_managed()
            && let Some(used) = self.speaks_of_statements(message, text, &scan)?
        {
            return Ok(used);
        }
        if !self.client.session.statements.are_managed() {
            query_unmanaged(&mut self.pipe, &mut self.client.session, text, &scan);
        }
        if scan.traits.contains(Traits::PREPARE) && refuses_prepare(&mut self.pipe) {
            return Ok(refuse(&mut self.pipe, message, RequestKind::Query, Refusal::Prepare));
        }
        let mut lent = match self.client.session.statements.are_managed() {
            true => lend_named(&mut self.pipe, &mut self.client.session, message, text, &scan)?,
            false => Lent::default(),
        };
        let conn = self.client.conn();
        let (pipe, session) = (&mut self.pipe, &mut self.client.session);
        let first_entry = pipe.server.session.outstanding.next_seq();
        let autoprepared = autoprepare(conn, pipe, session, message, text, &scan)?;
        let calls = suspect(pipe, session, &scan);
        if let Some(used) = autoprepared {
            let sent = first_entry..pipe.server.session.outstanding.next_seq();
            session.evidence.send(calls, sent);
            return Ok(used);
        }
        let first =
            Restores::both(first_settings(&session.settings, text, &scan), lent.first.take());
        forget_unnamed(pipe, &mut session.statements);
        note_settings(pipe, session, text, &scan);
        note_drained(conn, pipe, text, &scan);
        ends_early(pipe, session);
        let action = if first.is_some() { ReplyAction::Held } else { ReplyAction::Forward };
        let segment = pipe.server.session.outstanding.segment();
        let seq = pipe.owe(
            OutstandingRequest::new(RequestKind::Query, action).with(scan.traits | lent.traits),
        );
        session.evidence.send(calls, seq..seq + 1);
        if !message.complete {
            watch_rest(session, text, &scan, (seq, segment));
        }
        bar(&mut session.reading, seq, scan.traits, scan.statements, first);
        bar_drops(&mut session.reading, seq, lent);
        if session.reading.unseen.is_some() {
            restore_unseen(pipe, session, seq);
        }
        Ok(self.pass(message))
    }
}

/// Marks the server to be closed after a Query or FunctionCall behind extended messages without a
/// Sync. PostgreSQL 18 answers the Sync after that as if the transaction were over, and the next
/// command with XX000. That command must not be another client's (E38). Nor is it a query that
/// restores settings: the status of its ReadyForQuery would be another.
pub(crate) fn ends_early(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    if pipe.server.session.outstanding.is_open() {
        pipe.server.close_later();
        session.reading.unseen = None;
    }
}

/// Starts to drain the databases that a text names, if PostgreSQL refuses the text while other
/// sessions are connected to them (DROP DATABASE): idle servers disconnect. PostgreSQL waits
/// five seconds for them, and then fails with 55006 (`CountOtherDBBackends`).
pub(crate) fn note_drained(conn: Conn, pipe: &mut Pipeline<'_>, text: &[u8], scan: &Scan) {
    if scan.traits.contains(Traits::DRAINS) {
        for database in refrain_sql::databases_to_drain(text) {
            pipe.core_state.database_drain.ask(&database, conn, pipe.now);
        }
    }
}

impl Link<'_> {
    /// Handles a query that names a statement of the client: DEALLOCATE or EXECUTE. Returns `None`
    /// for any other query.
    fn speaks_of_statements(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        scan: &Scan,
    ) -> Result<Option<usize>, Stop> {
        let name = match scan.kind {
            // Just the beginning of the text has arrived: more commands may follow, which the
            // server has to run.
            Kind::DeallocateAll | Kind::Deallocate(_) if !message.complete => return Ok(None),
            Kind::DeallocateAll => return self.deallocate_all(message, scan.traits),
            Kind::Deallocate(name)
            | Kind::Execute(name)
            | Kind::ExplainExecute(name)
            | Kind::CreateAsExecute(name)
                if !name.is_long() =>
            {
                name
            }
            // Of a long name PostgreSQL says that it truncates the name: the server has to see it.
            _ => return Ok(None),
        };
        wait_until_quiet(&self.pipe.server.session.outstanding)?;
        let folded = Name::from_slice(&name.fold(text));
        if !self.client.session.statements.contains(&folded) {
            return Ok(None);
        }
        // A failed transaction refuses the query in any case (25P02).
        if self.pipe.server.session.outstanding.status() == Status::Failed {
            return Ok(None);
        }
        if matches!(scan.kind, Kind::Deallocate(_)) {
            return Ok(Some(self.deallocate(message, &folded, scan.traits)));
        }
        let Some(cached) = meant(&mut self.pipe, &mut self.client.session, &folded)? else {
            return Ok(None);
        };
        let span = name.of(text);
        let start = span.as_ptr() as usize - text.as_ptr() as usize;
        if !fits_query(&mut self.pipe, &mut self.client.session, &folded, &cached)? {
            return Ok(Some(refuse(&mut self.pipe, message, RequestKind::Query, Refusal::Stale)));
        }
        prepare_ahead(&mut self.pipe, &mut self.client.session, &cached)?;
        let range = start..start + span.len();
        if matches!(scan.kind, Kind::Execute(_) | Kind::CreateAsExecute(_)) {
            note_settings(
                &mut self.pipe,
                &mut self.client.session,
                cached.statement.text(),
                &cached.statement.scan,
            );
        }
        Ok(Some(self.execute_by_sql(message, range, &cached, scan, &folded)))
    }

    /// Handles `DEALLOCATE name` for a statement of the client. The server keeps the statement:
    /// other clients may have it too (E48). Within a transaction block, or behind extended messages
    /// without a Sync, the server runs another query in its place, since a query string has side
    /// effects there ([`ask_instead`]).
    fn deallocate(&mut self, message: &Message<'_>, name: &Name, traits: Traits) -> usize {
        if self
            .client
            .session
            .statements
            .named(name)
            .is_some_and(|own| own.lent() != ByName::Nothing)
        {
            // The server was lent a statement of this very name (E51): DEALLOCATE drops that there.
            forget_unnamed(&mut self.pipe, &mut self.client.session.statements);
            ends_early(&mut self.pipe, &mut self.client.session);
            let seq = self.pipe.owe(
                OutstandingRequest::new(RequestKind::Query, ReplyAction::Forward).with(traits),
            );
            self.close_name(name, seq);
            return self.pass(message);
        }
        if self.pipe.server.session.outstanding.status() == Status::Idle
            && !self.pipe.server.session.outstanding.is_open()
        {
            drop(self.client.session.statements.remove(name));
            return self.answer(message, FakeReply::Deallocate);
        }
        let seq =
            ask_instead(&mut self.pipe, &mut self.client.session, FakeReply::Deallocate, traits);
        self.close_name(name, seq);
        message.bytes.len()
    }

    /// Handles DEALLOCATE ALL: forgets the client's statements and keeps the server's (E46). If the
    /// client also has prepared statements by SQL, these are the server's alone, and the server has
    /// to run the command.
    fn deallocate_all(
        &mut self,
        message: &Message<'_>,
        traits: Traits,
    ) -> Result<Option<usize>, Stop> {
        wait_until_quiet(&self.pipe.server.session.outstanding)?;
        let outstanding = &self.pipe.server.session.outstanding;
        let native = outstanding.status() == Status::Failed || outstanding.is_open();
        if native || self.client.session.pins.has(Pins::PREPARED) {
            return Ok(None);
        }
        if outstanding.status() == Status::Idle {
            self.client.session.statements.forget_named();
            return Ok(Some(self.answer(message, FakeReply::DeallocateAll)));
        }
        let seq =
            ask_instead(&mut self.pipe, &mut self.client.session, FakeReply::DeallocateAll, traits);
        bar(&mut self.client.session.reading, seq, traits, 1, None);
        Ok(Some(message.bytes.len()))
    }

    /// Answers a query without the server. No transaction block may be open.
    fn answer(&mut self, message: &Message<'_>, made: FakeReply) -> usize {
        self.client.session.statements.drop_unnamed();
        let out = self.pipe.ports.out(self.client.conn());
        write_fake(out, made);
        write::ready(out, self.pipe.server.session.outstanding.status());
        message.bytes.len()
    }
}

/// Makes the server run `SELECT ''` in place of a query that Refrain answers. Within a transaction
/// any query string has side effects: it drops the unnamed portal, takes the snapshot, and commits
/// what was run without a Sync.
fn ask_instead(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    made: FakeReply,
    traits: Traits,
) -> Seq {
    forget_unnamed(pipe, &mut session.statements);
    write::query(pipe.out(), b"SELECT ''");
    pipe.owe(OutstandingRequest::new(RequestKind::Query, ReplyAction::Instead(made)).with(traits))
}

/// Whether the statement that a query runs by this name returns the columns that the client's Parse
/// found (E67). If that is not known, asks the server, and the query waits.
fn fits_query(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
    cached: &Rc<CachedStatement>,
) -> Result<bool, Stop> {
    if pipe.server.session.has(&cached.statement).is_none() {
        wait_for_reading(pipe, session, cached)?;
    }
    // SQL needs a name for it, so it is worth one.
    cached.used();
    let open = pipe.server.session.outstanding.is_open();
    let fit = fit(pipe, session, name, cached, &Use::Query);
    if fit.is_err() {
        // A Parse that fails must not make the server skip the query.
        if pipe.server.session.outstanding.is_open() && !open {
            pipe.end_segment(Purpose::Prepare);
        }
        session.reading.prepare_ahead();
    }
    Ok(!matches!(fit?, Fit::Stale(_)))
}

/// Prepares a statement that the query names, and waits for the reply if a segment is open. If that
/// Parse failed amid a segment, PostgreSQL would skip the query and everything behind it up to a
/// Sync, which it does not do for the client's query alone.
fn prepare_ahead(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    cached: &Rc<CachedStatement>,
) -> Result<(), Stop> {
    let lacks = pipe.server.session.has(&cached.statement).is_none();
    if lacks {
        wait_for_reading(pipe, session, cached)?;
    }
    if lacks && pipe.server.session.outstanding.is_open() {
        session.reading.prepare_ahead();
        ensure_named(pipe, &session.settings, cached);
        return Err(Stop::Replies);
    }
    Ok(())
}

/// Whether the server has refused the Parse that Refrain put in front of this query. Waits while
/// that is not known.
fn is_refused_ahead(outstanding: &Outstanding, reading: &mut Reading) -> Result<bool, Stop> {
    if reading.ahead() == Ahead::Nothing {
        return Ok(false);
    }
    wait_until_quiet(outstanding)?;
    Ok(reading.end_ahead())
}

impl Link<'_> {
    /// Ends a query whose Parse, in a segment of its own, the server has refused. The client has
    /// got that error; now it gets ReadyForQuery.
    fn end_refused(&mut self, message: &Message<'_>) -> usize {
        self.client.session.statements.drop_unnamed();
        write::ready(
            self.pipe.ports.out(self.client.conn()),
            self.pipe.server.session.outstanding.status(),
        );
        message.bytes.len()
    }

    /// Ends a query whose Parse, amid a segment, has failed. The client has got that error. A Sync
    /// ends the segment in place of the query.
    pub(crate) fn end_refused_in_segment(&mut self, message: &Message<'_>) -> usize {
        self.client.session.reading.end_ahead();
        self.client.session.reading.synced();
        self.client.session.statements.drop_unnamed_now(&self.pipe.server.session.outstanding);
        write::sync(self.pipe.out());
        self.pipe.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        message.bytes.len()
    }

    /// Handles SQL EXECUTE of a statement that was prepared by Parse (E51): prepares it if the
    /// server lacks it, and sends the query with the server's name. The Parse gets a Sync of its
    /// own where no segment is open: if it fails, the server must not skip the query.
    fn execute_by_sql(
        &mut self,
        message: &Message<'_>,
        name: std::ops::Range<usize>,
        cached: &Rc<CachedStatement>,
        scan: &Scan,
        folded: &[u8],
    ) -> usize {
        let open = self.pipe.server.session.outstanding.is_open();
        let calls = suspect(&mut self.pipe, &mut self.client.session, &cached.statement.scan);
        ensure_named(&mut self.pipe, &self.client.session.settings, cached);
        if self.pipe.server.session.outstanding.is_open() && !open {
            self.pipe.end_segment(Purpose::Prepare);
        }
        let mut called = vec![b'"'];
        cached.statement.write_name(&mut called, cached.statement.generation());
        called.push(b'"');
        forget_unnamed(&mut self.pipe, &mut self.client.session.statements);
        rewritten_header(&mut self.pipe, message, name.len(), called.len());
        let body = message.body();
        for part in [&body[..name.start], &called, &body[name.end..]] {
            self.pipe.out().extend_from_slice(part);
        }
        let segment = self.pipe.server.session.outstanding.segment();
        let first = first_settings_of(&mut self.client.session, scan.kind, folded);
        let action = if first.is_some() { ReplyAction::Held } else { ReplyAction::Forward };
        let seq = self.pipe.owe(
            OutstandingRequest::new(RequestKind::Query, action)
                .with(scan.traits | cached.statement.scan.traits)
                .about(cached.statement.id)
                .called(folded),
        );
        self.client.session.evidence.send(calls, seq..seq + 1);
        if !message.complete {
            watch_rest(&mut self.client.session, message.body(), scan, (seq, segment));
        }
        bar(&mut self.client.session.reading, seq, scan.traits, 1, first);
        if self.client.session.reading.unseen.is_some() {
            restore_unseen(&mut self.pipe, &mut self.client.session, seq);
        }
        self.pass_missing(message)
    }

    /// Forgets a statement of the client, unless request `seq` fails or is skipped.
    fn close_name(&mut self, name: &Name, seq: Seq) {
        let (statements, outstanding) =
            (&mut self.client.session.statements, &self.pipe.server.session.outstanding);
        if let Some(old) = statements.remove(name) {
            statements.closed(seq, name.clone(), old, outstanding);
        }
    }
}

/// Whether the option `sql_prepare` refuses PREPARE (E50). A session pool allows it: there the
/// client keeps its server.
fn refuses_prepare(pipe: &mut Pipeline<'_>) -> bool {
    let options = &pipe.pool().settings.options;
    options.sql_prepare == refrain_config::SqlPrepare::Error
        && options.pool_mode != refrain_config::PoolMode::Session
}

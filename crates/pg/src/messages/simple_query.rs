//! Simple queries: passed on as they are, except those that speak of prepared statements by name.
//!
//! A client's statements have other names on the server, so DEALLOCATE is dealt with here (E46, E48), and
//! EXECUTE of a protocol statement is rewritten (E51). Whatever else a text may do to the session is noted in
//! the list of outstanding requests and acted upon when the server says that it was done: a text that failed did nothing.

use std::rc::Rc;

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::back::Status;
use refrain_wire::{front as read, write};

use crate::messages::named::Lent;
use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Purpose, Refusal, ReplyAction, RequestKind, Seq,
};
use crate::pipeline::undo::{ClientUndo, ServerUndo};
use crate::relay::link::{Link, Stop, write_fake};
use crate::relay::message::Message;
use crate::state::client::{Ahead, Pins};
use crate::statements::of_client::{ByName, Name};
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::Unnamed;

impl Link<'_> {
    /// Query.
    pub(crate) fn query(&mut self, message: &Message<'_>) -> Result<usize, Stop> {
        if message.awaits_text() {
            return Err(Stop::More);
        }
        if self.is_refused_ahead()? {
            return Ok(self.end_refused(message));
        }
        let text = match message.complete {
            true => read::query_text(message.body())?,
            false => message.body(),
        };
        let scan = refrain_sql::scan_with(text, self.client.settings.reads.backslash);
        if self.client.managed
            && let Some(used) = self.speaks_of_statements(message, text, &scan)?
        {
            return Ok(used);
        }
        if !self.client.managed {
            self.query_unmanaged(text, &scan);
        }
        if scan.traits.contains(Traits::PREPARE) && self.refuses_prepare() {
            return Ok(self.refuse(message, RequestKind::Query, Refusal::Prepare));
        }
        let lent = match self.client.managed {
            true => self.lend_named(message, text, &scan)?,
            false => Lent::default(),
        };
        let first_entry = self.server.outstanding.next_seq();
        let autoprepared = self.autoprepare(message, text, &scan)?;
        let calls = self.suspect(&scan);
        if let Some(used) = autoprepared {
            let sent = first_entry..self.server.outstanding.next_seq();
            self.client.suspicion.evidence.send(calls, sent);
            return Ok(used);
        }
        // Of a text of which only the beginning has come it is not known what it goes back to.
        let first = self.first_settings(text, &scan).filter(|_| message.complete);
        self.forget_unnamed();
        self.note_settings(text, &scan);
        self.note_drained(text, &scan);
        self.ends_early();
        let action = if first.is_some() { ReplyAction::Held } else { ReplyAction::Forward };
        let seq = self.owe(
            OutstandingRequest::new(RequestKind::Query, action).with(scan.traits | lent.traits),
        );
        self.client.suspicion.evidence.send(calls, seq..seq + 1);
        self.bar(seq, scan.traits, scan.statements, first);
        self.bar_drops(seq, lent);
        let used = self.pass(message);
        Ok(used)
    }

    /// A Query or FunctionCall behind extended messages without a Sync. PostgreSQL 18 answers the Sync after it as if
    /// the transaction were over, and the next command with XX000: that must not be another client's (E38).
    pub(crate) fn ends_early(&mut self) {
        self.server.close_needed |= self.server.outstanding.is_open();
    }

    /// Any query string drops the unnamed statement, whatever comes of it.
    pub(crate) fn forget_unnamed(&mut self) {
        let seq = self.server.outstanding.next_seq();
        let skippable = self.server.outstanding.is_open();
        let segment = self.server.outstanding.segment();
        self.client.unnamed_changed = segment;
        let old = self.client.unnamed.take();
        // What a segment before would bring back is dropped as well: that ends here.
        if skippable || !self.client.undos.is_empty() {
            self.client.undos.push(seq, ClientUndo::Unnamed(old));
        }
        let none = Unnamed::none_since(segment);
        let old = std::mem::replace(&mut self.server.statements.unnamed, none);
        if skippable && old.id != 0 {
            self.server.undos.push(seq, ServerUndo::Unnamed(old));
        }
    }

    /// A text that fails while anybody else is connected to a database: idle servers are to leave it.
    pub(crate) fn note_drained(&mut self, text: &[u8], scan: &Scan) {
        if scan.traits.contains(Traits::DRAINS) {
            for database in refrain_sql::databases_to_drain(text) {
                self.core_state.database_drain.ask(&database, self.client.conn, self.now);
            }
        }
    }

    /// Deals with a query that names a statement of the client's; `None` for any other.
    fn speaks_of_statements(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        scan: &Scan,
    ) -> Result<Option<usize>, Stop> {
        let name = match scan.kind {
            // Of a text of which only the beginning has come it is not known whether it says no more than that.
            Kind::DeallocateAll | Kind::Deallocate(_) if !message.complete => return Ok(None),
            Kind::DeallocateAll => return self.deallocate_all(message, scan.traits),
            Kind::Deallocate(name)
            | Kind::Execute(name)
            | Kind::ExplainExecute(name)
            | Kind::CreateAsExecute(name) => name,
            _ => return Ok(None),
        };
        self.wait_until_quiet()?;
        let folded = Name::from_slice(&name.fold(text));
        if !self.client.names.contains(&folded) {
            return Ok(None);
        }
        if self.server.outstanding.status() == Status::Failed {
            return Ok(None);
        }
        if matches!(scan.kind, Kind::Deallocate(_)) {
            return Ok(Some(self.deallocate(message, &folded, scan.traits)));
        }
        let found = self.client.names.get(&folded).map(|s| s.held.cached().clone());
        let Some(cached) = found else { return Ok(None) };
        let span = name.of(text);
        let start = span.as_ptr() as usize - text.as_ptr() as usize;
        self.prepare_ahead(&cached)?;
        let range = start..start + span.len();
        if matches!(scan.kind, Kind::Execute(_) | Kind::CreateAsExecute(_)) {
            self.note_settings(cached.statement.text(), &cached.statement.scan);
        }
        Ok(Some(self.execute_by_sql(message, range, &cached, scan.traits, &folded)))
    }

    /// DEALLOCATE of one of the client's statements. The server keeps it, for others may have it too; but within a block,
    /// or behind extended messages without a Sync, whose transaction ends with it, the server sees a query.
    fn deallocate(&mut self, message: &Message<'_>, name: &Name, traits: Traits) -> usize {
        if self.client.names.get(name).is_some_and(|own| own.lent != ByName::Nothing) {
            // The server has something by this name as well.
            self.forget_unnamed();
            self.ends_early();
            let seq = self.owe(
                OutstandingRequest::new(RequestKind::Query, ReplyAction::Forward).with(traits),
            );
            self.close_name(name, seq);
            return self.pass(message);
        }
        if self.server.outstanding.status() == Status::Idle && !self.server.outstanding.is_open() {
            self.client.names.remove(name);
            return self.answer(message, FakeReply::Deallocate);
        }
        let seq = self.ask_instead(FakeReply::Deallocate, traits);
        self.close_name(name, seq);
        message.bytes.len()
    }

    /// A client that has statements by SQL as well has them on this server: it must hear of it.
    fn deallocate_all(
        &mut self,
        message: &Message<'_>,
        traits: Traits,
    ) -> Result<Option<usize>, Stop> {
        self.wait_until_quiet()?;
        let outstanding = &self.server.outstanding;
        let native = outstanding.status() == Status::Failed || outstanding.is_open();
        if native || self.client.pins.has(Pins::PREPARED) {
            return Ok(None);
        }
        if outstanding.status() == Status::Idle {
            drop(self.client.names.take());
            return Ok(Some(self.answer(message, FakeReply::DeallocateAll)));
        }
        let seq = self.ask_instead(FakeReply::DeallocateAll, traits);
        self.bar(seq, traits, 1, None);
        Ok(Some(message.bytes.len()))
    }

    /// What is answered here needs to know how the transaction stands.
    pub(crate) fn wait_until_quiet(&self) -> Result<(), Stop> {
        if self.server.outstanding.is_empty() { Ok(()) } else { Err(Stop::Replies) }
    }

    /// Answers a query in the server's place, outside any transaction block.
    fn answer(&mut self, message: &Message<'_>, made: FakeReply) -> usize {
        self.client.unnamed = None;
        let out = self.ports.out(self.client.conn);
        write_fake(out, made);
        write::ready(out, self.server.outstanding.status());
        message.bytes.len()
    }

    /// Has the server run a query in the place of one that it is not to see. Within a transaction any query string
    /// leaves a trace: the unnamed portal is gone, the snapshot is taken, and what was run without a Sync is committed.
    fn ask_instead(&mut self, made: FakeReply, traits: Traits) -> Seq {
        self.forget_unnamed();
        write::query(self.out(), b"SELECT ''");
        self.owe(
            OutstandingRequest::new(RequestKind::Query, ReplyAction::Instead(made)).with(traits),
        )
    }

    /// The server has run what it was asked instead.
    pub(crate) fn answered_there(&mut self, made: FakeReply) {
        if made == FakeReply::DeallocateAll {
            drop(self.client.names.take());
        }
        write_fake(self.ports.out(self.client.conn), made);
    }

    /// Amid an open segment a Parse that fails has the query skipped as well, and all behind it up to a Sync. So there
    /// the query waits for it.
    fn prepare_ahead(&mut self, cached: &Rc<CachedStatement>) -> Result<(), Stop> {
        let lacks = self.server.has(&cached.statement).is_none();
        if lacks {
            self.wait_for_reading(cached)?;
        }
        if lacks && self.server.outstanding.is_open() {
            self.client.ahead = Ahead::Prepared;
            self.ensure_named(cached);
            return Err(Stop::Replies);
        }
        Ok(())
    }

    /// Whether what was prepared for this query was refused. While it is not known, the query waits.
    fn is_refused_ahead(&mut self) -> Result<bool, Stop> {
        if self.client.ahead == Ahead::Nothing {
            return Ok(false);
        }
        self.wait_until_quiet()?;
        Ok(std::mem::replace(&mut self.client.ahead, Ahead::Nothing) == Ahead::Refused)
    }

    /// What was prepared for a query string in a segment of its own has been refused, of which the client has heard.
    fn end_refused(&mut self, message: &Message<'_>) -> usize {
        self.client.unnamed = None;
        write::ready(self.ports.out(self.client.conn), self.server.outstanding.status());
        message.bytes.len()
    }

    /// What was prepared for a query has failed, of which the client has heard: its transaction ends with that, as it
    /// would have with the query.
    pub(crate) fn ends_in_vain(&mut self, message: &Message<'_>) -> usize {
        self.client.ahead = Ahead::Nothing;
        self.client.skipping = false;
        self.client.unnamed = None;
        self.client.unnamed_changed = self.server.outstanding.segment();
        write::sync(self.out());
        self.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        message.bytes.len()
    }

    /// EXECUTE of a protocol statement: prepared first, with a Sync of its own, so that a Parse that fails
    /// does not have the query skipped; then the query with the name that the server knows.
    fn execute_by_sql(
        &mut self,
        message: &Message<'_>,
        name: std::ops::Range<usize>,
        cached: &Rc<CachedStatement>,
        traits: Traits,
        folded: &[u8],
    ) -> usize {
        let open = self.server.outstanding.is_open();
        let calls = self.suspect(&cached.statement.scan);
        self.ensure_named(cached);
        if self.server.outstanding.is_open() && !open {
            self.end_segment(Purpose::Prepare);
        }
        let mut called = vec![b'"'];
        cached.statement.write_name(&mut called, cached.statement.generation());
        called.push(b'"');
        self.forget_unnamed();
        self.rewritten_header(message, name.len(), called.len());
        let body = message.body();
        for part in [&body[..name.start], &called, &body[name.end..]] {
            self.out().extend_from_slice(part);
        }
        let seq = self.owe(
            OutstandingRequest::new(RequestKind::Query, ReplyAction::Forward)
                .with(traits | cached.statement.scan.traits)
                .about(cached.statement.id)
                .called(folded),
        );
        self.client.suspicion.evidence.send(calls, seq..seq + 1);
        self.pass_missing(message)
    }

    /// A statement of the client's is gone, unless the message fails.
    fn close_name(&mut self, name: &Name, seq: Seq) {
        if let Some(old) = self.client.names.remove(name) {
            self.server.outstanding.extend(&mut self.client.changed);
            self.undoable(seq, ClientUndo::Closed(name.clone(), old));
        }
    }

    fn refuses_prepare(&mut self) -> bool {
        let options = &self.pool().settings.options;
        options.sql_prepare == refrain_config::SqlPrepare::Error
            && options.pool_mode != refrain_config::PoolMode::Session
    }

    /// Has the server fail in the place of a message that is not passed on, so that a transaction fails with it; the
    /// words are put in on the way back.
    pub(crate) fn refuse(
        &mut self,
        message: &Message<'_>,
        kind: RequestKind,
        why: Refusal,
    ) -> usize {
        let name = self.core_state.shared.registry.no_statement();
        let out = self.ports.out(self.server.conn);
        if kind == RequestKind::Query {
            let mut text = b"EXECUTE \"".to_vec();
            text.extend_from_slice(&name);
            text.push(b'"');
            write::query(out, &text);
        } else {
            write::describe_statement(out, &name);
        }
        self.owe(OutstandingRequest::new(kind, ReplyAction::Refuse(why)));
        message.bytes.len()
    }
}

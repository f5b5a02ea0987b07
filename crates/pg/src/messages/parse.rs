//! Parse, Bind, Describe and Close of statements: what the client calls them, what the server does.
//!
//! A Bind finds its statement in the client's map, and the server's set says whether the server has it. If
//! not, a Parse goes out in the same write, just before the Bind, and its reply is swallowed: no extra
//! round trip, no extra Sync (E32). A statement used once goes through the server's unnamed statement; from
//! its second use on it is worth a name there (E88).
//!
//! A fact that an earlier segment may still make undone is not relied on. Where the server's state is in
//! doubt, `Close` and `Parse` are right either way; where the client's is, its input waits ([`Stop::Gate`]).
//!
//! Errors are raised by the server wherever possible: an error made up here would let half a
//! pipeline commit (E34, E35).

use std::rc::Rc;
use std::sync::Arc;

use refrain_sql::Kind;
use refrain_wire::back::Status;
use refrain_wire::front::Parse;
use refrain_wire::write;

use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Purpose, Refusal, ReplyAction, RequestKind,
};
use crate::pipeline::undo::{ClientUndo, ServerUndo};
use crate::relay::link::{Called, Link, Stop};
use crate::relay::message::Message;
use crate::settings::session::{self, SettingsKnowledge};
use crate::state::client::Pins;
use crate::statements::columns::{Columns, Found};
use crate::statements::of_client::{ClientRef, ClientStatement, Name};
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::{ServerRef, ServerStatement, Unnamed};
use crate::statements::statement::{Identity, Statement, reads_constants};

impl Link<'_> {
    /// Parse. `next` is what has come behind it.
    pub(crate) fn parse(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        if !self.client.managed {
            return self.parse_unmanaged(message);
        }
        let most = self.pool().settings.options.max_client_statement_bytes;
        if message.header.body as usize > most {
            return Ok(self.parse_unkept(message));
        }
        let parse = Parse::read(message.whole(most)?)?;
        if matches!(self.client.knowledge, SettingsKnowledge::Unknown(..)) {
            let text = parse.tail.split(|&byte| byte == 0).next().unwrap_or_default();
            if reads_constants(text, refrain_sql::scan(text).traits) {
                self.know_settings()?;
            }
        }
        if parse.name.is_empty() {
            return self.parse_unnamed(message, &parse, next);
        }
        if self.client.names.contains(parse.name) {
            return self.parse_again(message, &parse);
        }
        // A Close that an earlier segment may still undo: the name may be taken after all.
        if self.server.outstanding.touches(&self.client.changed) {
            return Err(Stop::Replies);
        }
        self.pool().counters.client_parses += 1;
        if self.is_over_quota(parse.tail.len()) {
            return Ok(self.refuse(message, RequestKind::Parse, Refusal::Quota));
        }
        let cached = self.intern_parse(parse.tail)?;
        self.wait_in_doubt(&cached)?;
        if self.client.pins.has(Pins::PREPARED) {
            self.parse_by_name(&parse, &cached, next);
            return Ok(message.bytes.len());
        }
        let known = self.parse_is_known(&cached)?;
        let seq = if known {
            self.server.outstanding.extend(&mut self.client.changed);
            self.pool().counters.parses_answered += 1;
            self.fake(RequestKind::Parse, FakeReply::Parse)
        } else {
            self.server.outstanding.extend(&mut self.client.parsed);
            self.send_parse(&cached, ReplyAction::Forward)
        };
        let called = match known || cached.is_worth_a_name() {
            true => Called::Named(cached.statement.generation()),
            false => Called::Unnamed,
        };
        let name = Name::from_slice(parse.name);
        self.undoable(seq, ClientUndo::Named(name.clone()));
        let statement = self.client_statement(cached.clone(), called);
        self.client.names.insert(name, statement);
        if !known {
            self.ask_behind_parse(called, &cached, parse.name, next);
        }
        Ok(message.bytes.len())
    }

    /// A Parse that is passed on as it is: statements are not managed, or it is too large to be kept.
    pub(crate) fn parse_unkept(&mut self, message: &Message<'_>) -> usize {
        if self.client.managed {
            // The statement exists on this server alone.
            self.client.pins.add(Pins::PREPARED);
            self.client.unnamed = None;
            self.server.statements.unnamed = Unnamed::NONE;
            self.pool().counters.statements_not_kept += 1;
        }
        self.server.dirty = true;
        self.pool().counters.server_parses += 1;
        self.owe(OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward));
        self.pass(message)
    }

    fn parse_unnamed(
        &mut self,
        message: &Message<'_>,
        parse: &Parse<'_>,
        next: &[u8],
    ) -> Result<usize, Stop> {
        self.pool().counters.client_parses += 1;
        let cached = self.intern_parse(parse.tail)?;
        let outstanding = &self.server.outstanding;
        let fails = outstanding.status() == Status::Failed || outstanding.may_have_failed();
        let known = !fails && self.unnamed_is(&cached);
        let seq = if known {
            self.pool().counters.parses_answered += 1;
            self.fake(RequestKind::Parse, FakeReply::Parse)
        } else {
            self.send_parse_unnamed(&cached, ReplyAction::Forward)
        };
        self.client.unnamed_changed = self.server.outstanding.segment();
        let statement = self.client_statement(cached.clone(), Called::Unnamed);
        let old = self.client.unnamed.replace(statement);
        self.undoable(seq, ClientUndo::Unnamed(old));
        if !known {
            self.ask_behind_parse(Called::Unnamed, &cached, b"", next);
        }
        Ok(message.bytes.len())
    }

    /// A Parse of a name that is taken. PostgreSQL looks at the text first and then says 42P05: it is made to, by
    /// parsing the new text under a name that is taken there (E4).
    fn parse_again(&mut self, message: &Message<'_>, parse: &Parse<'_>) -> Result<usize, Stop> {
        self.wait_until_settled()?;
        let Some(old) = self.client.names.get(parse.name) else { return Err(Stop::Replies) };
        let id = old.held.cached().statement.id;
        let name = self.core_state.shared.registry.internal();
        self.take_name(&name);
        write::parse(self.out(), &name, parse.tail);
        self.owe(
            OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward)
                .about(id)
                .called(parse.name),
        );
        Ok(message.bytes.len())
    }

    /// A statement that was closed to make room may be there still, if its Close is skipped: that has to be known
    /// before it is prepared again.
    fn wait_in_doubt(&self, cached: &CachedStatement) -> Result<(), Stop> {
        let id = cached.statement.id;
        let closed = |undo: &ServerUndo| matches!(undo, ServerUndo::Evicted(slot) if slot.served.statement().id == id);
        if self.server.statements.peek(id).is_none() && self.server.undos.iter().any(closed) {
            return Err(Stop::Replies);
        }
        Ok(())
    }

    pub(crate) fn is_over_quota(&mut self, bytes: usize) -> bool {
        let (count, used) = (self.client.names.len(), self.client.names.bytes());
        let options = &self.pool().settings.options;
        count >= options.max_client_statements as usize
            || used + bytes > options.max_client_statement_bytes
    }

    /// The statement with this text and these types, in the client's environment.
    pub(crate) fn intern(&mut self, tail: &[u8]) -> Rc<CachedStatement> {
        let identity = Identity { pool: self.server.pool, env: self.client.env(), tail };
        let unsure = matches!(self.client.knowledge, SettingsKnowledge::Unknown(..));
        let shared = self.core_state.shared.clone();
        let pool = self.core_state.pool(self.server.pool);
        let schema_version = pool.shared.schema_version();
        let small = tail.len() <= pool.settings.options.max_cached_statement_bytes;
        let room = shared.registry.bytes() <= shared.options().general.max_statement_bytes;
        if !small || !room || unsure {
            pool.counters.statements_not_kept += 1;
            let statement = Arc::new(shared.registry.make(identity));
            let cached = Rc::new(CachedStatement::new(statement, self.client.current()));
            if unsure {
                // Kept where it was parsed: nobody can say under which settings to do that again.
                cached.used();
            }
            cached.statement.start_schema_version(schema_version);
            return cached;
        }
        let cached =
            self.core_state.statements.intern(&shared.registry, identity, self.client.current());
        let statement = &cached.statement;
        if statement.schema_version() < schema_version {
            // The schema changed since this generation began: a new client must not get an old plan (E65), nor be told
            // that a server has accepted the text.
            if statement.is_new() {
                statement.start_schema_version(schema_version);
            } else if statement.begin_generation(statement.generation(), schema_version) {
                self.pool().counters.statements_renewed += 1;
            }
        }
        cached
    }

    /// A client's statement that has what the Parse of this copy found.
    pub(crate) fn client_statement(
        &self,
        cached: Rc<CachedStatement>,
        called: Called,
    ) -> ClientStatement {
        let (statements, generation) = (&self.server.statements, cached.statement.generation());
        let found = match called {
            Called::Unnamed => statements.unnamed.found,
            Called::Named(_) => {
                statements.peek(cached.statement.id).map(|slot| slot.found).unwrap_or_default()
            }
        };
        let columns = found.columns;
        ClientStatement::new(ClientRef::new(cached), generation, columns)
    }

    /// What a Parse that is sent next finds.
    fn found(&self, statement: &Statement) -> Found {
        let (server, parse) = (self.server.serial, self.server.outstanding.next_seq());
        let settled = !statement.returns;
        let columns = if settled { Columns::Fixed } else { Columns::Of { server, parse } };
        Found { columns, ..Found::default() }
    }

    /// Whether a Parse of this statement can be answered here.
    fn parse_is_known(&mut self, cached: &CachedStatement) -> Result<bool, Stop> {
        let statement = &cached.statement;
        if self.server.has(statement).is_none() {
            return Ok(false);
        }
        let outstanding = &self.server.outstanding;
        // In a failed transaction PostgreSQL refuses a Parse, unless it is of what ends it (E3).
        match outstanding.status() {
            Status::Idle if !outstanding.may_have_failed() => Ok(true),
            Status::Transaction if !outstanding.has_unsettled() => Ok(true),
            Status::Failed if outstanding.is_empty() => {
                Ok(statement.scan.kind == Kind::TransactionEnd)
            }
            Status::Idle | Status::Transaction | Status::Failed => Err(Stop::Replies),
        }
    }

    pub(crate) fn unnamed_is(&self, cached: &CachedStatement) -> bool {
        let unnamed = self.server.statements.unnamed;
        unnamed.id == cached.statement.id
            && unnamed.generation == cached.statement.generation()
            && !self.server.outstanding.is_unsettled(unnamed.segment)
    }

    /// Sends a Parse, under the internal name where the statement is worth one.
    fn send_parse(&mut self, cached: &Rc<CachedStatement>, action: ReplyAction) -> u64 {
        if cached.is_worth_a_name() {
            self.send_parse_named(cached, action)
        } else {
            self.send_parse_unnamed(cached, action)
        }
    }

    fn send_parse_named(&mut self, cached: &Rc<CachedStatement>, action: ReplyAction) -> u64 {
        self.make_room(cached.statement.id, cached.statement.tail.len());
        self.send_parse_there(cached, action)
    }

    fn send_parse_there(&mut self, cached: &Rc<CachedStatement>, action: ReplyAction) -> u64 {
        let statement = &cached.statement;
        let (id, generation) = (statement.id, statement.generation());
        let mut name = std::mem::take(&mut self.core_state.scratch);
        name.clear();
        statement.write_name(&mut name, generation);
        write::parse(self.ports.out(self.server.conn), &name, &statement.tail);
        self.core_state.scratch = name;
        self.pool().counters.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(OutstandingRequest::new(RequestKind::Parse, action).about(id));
        let segment = self.server.outstanding.segment();
        let served = ServerRef::new(statement.clone());
        let slot =
            ServerStatement { served, generation, segment, doubtful: false, auto: false, found };
        self.server.statements.insert(slot);
        self.undoable_there(seq, ServerUndo::Prepared(id));
        seq
    }

    pub(crate) fn send_parse_unnamed(
        &mut self,
        cached: &Rc<CachedStatement>,
        action: ReplyAction,
    ) -> u64 {
        let statement = &cached.statement;
        write::parse(self.ports.out(self.server.conn), b"", &statement.tail);
        self.pool().counters.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(OutstandingRequest::new(RequestKind::Parse, action).about(statement.id));
        let unnamed = Unnamed {
            id: statement.id,
            generation: statement.generation(),
            segment: self.server.outstanding.segment(),
            found,
        };
        let old = std::mem::replace(&mut self.server.statements.unnamed, unnamed);
        self.undoable_there(seq, ServerUndo::Unnamed(old));
        seq
    }

    /// Closes what has to go before a statement can be prepared: an older copy of it, or the least recently
    /// used statement. In stream, right before the Parse: a portal made from it lives on (E25).
    fn make_room(&mut self, id: u64, bytes: usize) {
        if let Some(old) = self.server.statements.remove(id) {
            self.send_close(old);
        }
        let options = &self.core_state.pool(self.server.pool).settings.options;
        let (count, most) = (options.max_server_statements, options.max_server_statement_bytes);
        while let Some(old) = self.server.statements.evict(bytes, count, most) {
            self.pool().counters.evictions += 1;
            self.send_close(old);
        }
    }

    pub(crate) fn send_close(&mut self, mut old: ServerStatement) {
        // If this Close is skipped, so may have been the Parse before it.
        old.doubtful |= self.server.outstanding.is_unsettled(old.segment);
        let mut name = std::mem::take(&mut self.core_state.scratch);
        name.clear();
        old.served.statement().write_name(&mut name, old.generation);
        write::close_statement(self.ports.out(self.server.conn), &name);
        self.core_state.scratch = name;
        let id = old.served.statement().id;
        let seq = self.owe_us(RequestKind::Close, Purpose::Prepare, id);
        self.undoable_there(seq, ServerUndo::Evicted(old));
    }

    pub(crate) fn count_hit(&mut self) {
        self.server.hits += 1;
        self.pool().counters.prepare_hits += 1;
    }

    /// Sends the statement that the server lacks, and that the client calls `name`.
    pub(crate) fn prepare_for(&mut self, name: &[u8], cached: &Rc<CachedStatement>) -> Called {
        self.server.misses += 1;
        self.pool().counters.prepare_misses += 1;
        let action = ReplyAction::Skip(Purpose::Prepare);
        if self.is_foreign(cached) {
            return self.prepare_foreign(cached);
        }
        // The client's unnamed statement stays one: it is planned and forgotten as such (E19).
        if !name.is_empty() && cached.used() {
            self.send_parse_named(cached, action);
            Called::Named(cached.statement.generation())
        } else {
            self.send_parse_unnamed(cached, action);
            Called::Unnamed
        }
    }

    /// Whether a statement was parsed under settings that the client has changed since, and that decide how its
    /// constants are read.
    pub(crate) fn is_foreign(&self, cached: &CachedStatement) -> bool {
        // A failed transaction refuses it whatever they are.
        !session::read_alike(&cached.settings, self.client.current())
            && cached.statement.has_constants()
            && !self.server.outstanding.has_failed()
    }

    /// Prepares a statement under the settings of its Parse, which decide what its text means (E57), and goes back
    /// to the client's. In a segment of its own where there is none yet, so as not to count in the client's.
    fn prepare_foreign(&mut self, cached: &Rc<CachedStatement>) -> Called {
        let (own, other) = (self.client.current().clone(), cached.settings.clone());
        let alone = !self.server.outstanding.is_open() && self.server.outstanding.is_empty();
        self.run_internal(&session::reading(&own, &other), Purpose::Environment);
        self.send_parse_named(cached, ReplyAction::Skip(Purpose::Prepare));
        self.run_internal(&session::reading(&other, &own), Purpose::Return);
        if alone {
            self.end_segment(Purpose::Prepare);
        }
        Called::Named(cached.statement.generation())
    }

    /// Sees that the server has the statement under its internal name.
    pub(crate) fn ensure_named(&mut self, cached: &Rc<CachedStatement>) {
        let statement = &cached.statement;
        if self.server.has(statement).is_some() {
            return;
        }
        if self.is_foreign(cached) {
            self.prepare_foreign(cached);
        } else {
            self.send_parse_named(cached, ReplyAction::Skip(Purpose::Prepare));
        }
    }

    /// The statement that a client means by a name, `None` for one it has not.
    #[inline]
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<Option<Rc<CachedStatement>>, Stop> {
        let outstanding = &self.server.outstanding;
        let unsettled = match name.is_empty() {
            true => outstanding.is_unsettled(self.client.unnamed_changed),
            false => {
                outstanding.touches(&self.client.changed)
                    || outstanding.touches(&self.client.parsed)
            }
        };
        if unsettled {
            return Err(Stop::Replies);
        }
        let found = match name.is_empty() {
            true => self.client.unnamed.as_mut(),
            false => self.client.names.get(name),
        };
        let cached = found.map(|statement| statement.held.cached().clone());
        if let Some(cached) = &cached {
            self.wait_in_doubt(cached)?;
            self.wait_for_foreign(name, cached)?;
        }
        Ok(cached)
    }

    /// Holds up what uses a statement that the server lacks: see [`Self::gate_reading`].
    fn wait_for_foreign(&mut self, name: &[u8], cached: &CachedStatement) -> Result<(), Stop> {
        let there = match name.is_empty() {
            true => self.unnamed_is(cached),
            false => self.server.has(&cached.statement).is_some(),
        };
        if there { Ok(()) } else { self.wait_for_reading(cached) }
    }

    /// Whether a statement has to be prepared under other settings than the client's of now, and which those are, can
    /// only be said when they are known: what is under way may change them, or take a change back.
    pub(crate) fn wait_for_reading(&mut self, cached: &CachedStatement) -> Result<(), Stop> {
        let unsure =
            matches!(self.client.knowledge, SettingsKnowledge::Unknown(_, since) if since.reads);
        if !cached.statement.has_constants() || !unsure && !self.is_foreign(cached) {
            return Ok(());
        }
        self.know_settings()?;
        let ready = self.server.outstanding.is_empty() || !self.is_foreign(cached);
        if ready { Ok(()) } else { Err(Stop::Replies) }
    }
}

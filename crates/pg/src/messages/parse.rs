//! Parse: a client's statement is recorded under the client's name, and prepared on the server
//! where it is needed.
//!
//! [`crate::messages::bind`] finds the statement of a message among the client's statements. The
//! server's statements say whether the server has it. If not, Refrain puts a Parse right before the
//! message, in the same write, and skips the reply: no extra round trip and no extra Sync (E32). A
//! statement that is used once goes through the server's unnamed statement. From its second use on
//! it gets a name on servers: a name costs the server memory for as long as it is kept (E88).
//!
//! A change that an earlier segment may still undo is not relied on. If the server's state is in
//! doubt, a Close and a Parse are right either way. If the client's is in doubt, its input waits
//! ([`Stop::Replies`]).
//!
//! The server raises errors wherever possible. An error made by Refrain would leave the server's
//! transaction open, and the messages before the error would commit (E34, E35).

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
    /// Handles Parse. `next` is the input behind it.
    pub(crate) fn parse(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        if !self.client.managed {
            return self.parse_unmanaged(message);
        }
        let most = self.pool().settings.options.max_client_statement_bytes;
        // A text of megabytes is not kept for other servers (E13): the client keeps this server
        // instead.
        if message.header.body as usize > most {
            return Ok(self.parse_unkept(message));
        }
        let parse = Parse::read(message.whole(most)?)?;
        // The settings decide how the server reads constants in the text (E57), and so which
        // statement this is. If the client may have changed them, Refrain first learns what they
        // are.
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
        // An earlier segment may still undo a Close: the name may be taken after all.
        if self.server.outstanding.touches(&self.client.changed) {
            return Err(Stop::Replies);
        }
        self.pool().counters.client_parses += 1;
        if self.is_over_quota(parse.tail.len()) {
            return Ok(self.refuse(message, RequestKind::Parse, Refusal::Quota));
        }
        let cached = self.intern_parse(parse.tail)?;
        self.wait_in_doubt(&cached)?;
        // The client may also have prepared statements by SQL on this server, and one of these may
        // have the name: the server has to decide (E50).
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

    /// Passes a Parse on as it is: the client's statements are not managed, or the text is too
    /// large to be kept (E13).
    pub(crate) fn parse_unkept(&mut self, message: &Message<'_>) -> usize {
        if self.client.managed {
            // The statement exists on this server alone, so the client keeps the server.
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

    /// Handles Parse of the unnamed statement. Refrain answers it if the server's unnamed statement
    /// is the same (E18), and else sends it on: the client's next Bind may come to another server,
    /// which then gets the text again (E15).
    fn parse_unnamed(
        &mut self,
        message: &Message<'_>,
        parse: &Parse<'_>,
        next: &[u8],
    ) -> Result<usize, Stop> {
        self.pool().counters.client_parses += 1;
        let cached = self.intern_parse(parse.tail)?;
        let outstanding = &self.server.outstanding;
        // A failed transaction refuses a Parse (E3), so a fake reply would be wrong there.
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

    /// Handles Parse of a name that the client has already given. PostgreSQL first analyses the
    /// text and then refuses the name (42P05). Refrain makes the server do just that: it sends the
    /// new text under an internal name that is taken (E4).
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

    /// Waits while nobody knows whether the server has a statement that Refrain closed there to
    /// make room. An error before the Close would skip it, and the statement would still be there
    /// (E24).
    fn wait_in_doubt(&self, cached: &CachedStatement) -> Result<(), Stop> {
        let id = cached.statement.id;
        let closed = |undo: &ServerUndo| matches!(undo, ServerUndo::Evicted(slot) if slot.served.statement().id == id);
        if self.server.statements.peek(id).is_none() && self.server.undos.iter().any(closed) {
            return Err(Stop::Replies);
        }
        Ok(())
    }

    /// Whether one more statement of `bytes` exceeds what the client may have.
    pub(crate) fn is_over_quota(&mut self, bytes: usize) -> bool {
        let (count, used) = (self.client.names.len(), self.client.names.bytes());
        let options = &self.pool().settings.options;
        count >= options.max_client_statements as usize
            || used + bytes > options.max_client_statement_bytes
    }

    /// Returns the statement with this text and these parameter types, in the client's environment:
    /// the shared one, unless the text is too large, the registry is full, or the client's settings
    /// are unknown.
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
                // The statement gets a name on this server at once, and so stays there: Refrain
                // does not know under which settings to parse it again.
                cached.used();
            }
            cached.statement.start_schema_version(schema_version);
            return cached;
        }
        let cached =
            self.core_state.statements.intern(&shared.registry, identity, self.client.current());
        let statement = &cached.statement;
        if statement.schema_version() < schema_version {
            // The schema may have changed since this generation of the statement began. A new
            // client must not get a plan for the old schema (E65), nor a fake ParseComplete for a
            // text that the server would refuse now.
            if statement.is_new() {
                statement.start_schema_version(schema_version);
            } else if statement.begin_generation(statement.generation(), schema_version) {
                self.pool().counters.statements_renewed += 1;
            }
        }
        cached
    }

    /// Returns a new client statement, which returns the columns that the server's copy does.
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

    /// Returns what is known of the columns that the next Parse will find: nothing but which Parse
    /// it is, if the statement returns rows.
    fn found(&self, statement: &Statement) -> Found {
        let (server, parse) = (self.server.serial, self.server.outstanding.next_seq());
        let settled = !statement.returns;
        let columns = if settled { Columns::Fixed } else { Columns::Of { server, parse } };
        Found { columns, ..Found::default() }
    }

    /// Whether Refrain can answer a Parse of this statement by a fake reply: the server has it, and
    /// would accept a Parse.
    fn parse_is_known(&mut self, cached: &CachedStatement) -> Result<bool, Stop> {
        let statement = &cached.statement;
        if self.server.has(statement).is_none() {
            return Ok(false);
        }
        let outstanding = &self.server.outstanding;
        // In a failed transaction PostgreSQL refuses a Parse, except that of a statement which ends
        // the transaction (E3).
        match outstanding.status() {
            Status::Idle if !outstanding.may_have_failed() => Ok(true),
            Status::Transaction if !outstanding.has_unsettled() => Ok(true),
            Status::Failed if outstanding.is_empty() => {
                Ok(statement.scan.kind == Kind::TransactionEnd)
            }
            Status::Idle | Status::Transaction | Status::Failed => Err(Stop::Replies),
        }
    }

    /// Whether the server's unnamed statement is this one for certain, in its current generation.
    pub(crate) fn unnamed_is(&self, cached: &CachedStatement) -> bool {
        let unnamed = self.server.statements.unnamed;
        unnamed.id == cached.statement.id
            && unnamed.generation == cached.statement.generation()
            && !self.server.outstanding.is_unsettled(unnamed.segment)
    }

    /// Sends a Parse: under the internal name if the statement is worth one (E88), else as the
    /// unnamed statement.
    fn send_parse(&mut self, cached: &Rc<CachedStatement>, action: ReplyAction) -> u64 {
        if cached.is_worth_a_name() {
            self.send_parse_named(cached, action)
        } else {
            self.send_parse_unnamed(cached, action)
        }
    }

    /// Sends a Parse under the internal name, behind what has to be closed first.
    fn send_parse_named(&mut self, cached: &Rc<CachedStatement>, action: ReplyAction) -> u64 {
        self.make_room(cached.statement.id, cached.statement.tail.len());
        self.send_parse_there(cached, action)
    }

    /// Writes the Parse under the internal name, and records that the server has the statement
    /// unless the Parse fails.
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

    /// Sends a Parse of the server's unnamed statement.
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

    /// Closes an older copy of a statement that is about to be prepared, and the least recently
    /// used statements beyond the server's limits. The Close stands right before the Parse, so
    /// messages sent earlier still find their statements, and portals made from them live on (E25).
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

    /// Sends a Close of a server's statement, and records how to undo that.
    pub(crate) fn send_close(&mut self, mut old: ServerStatement) {
        // An error that skips this Close may have skipped the Parse of the statement too (E24).
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

    /// Counts a use of a statement that the server had.
    pub(crate) fn count_hit(&mut self) {
        self.server.hits += 1;
        self.pool().counters.prepare_hits += 1;
    }

    /// Prepares a statement that the server lacks and that the client calls `name`. Returns the
    /// name it got on the server.
    pub(crate) fn prepare_for(&mut self, name: &[u8], cached: &Rc<CachedStatement>) -> Called {
        self.server.misses += 1;
        self.pool().counters.prepare_misses += 1;
        let action = ReplyAction::Skip(Purpose::Prepare);
        if self.is_foreign(cached) {
            return self.prepare_foreign(cached);
        }
        // The client's unnamed statement stays unnamed: PostgreSQL plans it for the values at hand,
        // and drops it with the next one (E19).
        if !name.is_empty() && cached.used() {
            self.send_parse_named(cached, action);
            Called::Named(cached.statement.generation())
        } else {
            self.send_parse_unnamed(cached, action);
            Called::Unnamed
        }
    }

    /// Whether a statement was parsed under other settings than the client has now, and these
    /// decide how the server reads its constants (E57).
    pub(crate) fn is_foreign(&self, cached: &CachedStatement) -> bool {
        // A failed transaction refuses a Parse under any settings.
        !session::read_alike(&cached.settings, self.client.current())
            && cached.statement.has_constants()
            && !self.server.outstanding.has_failed()
    }

    /// Prepares a statement under the settings of its Parse, which decide what its text means
    /// (E57), and then goes back to the client's settings. If no segment is open, this gets a
    /// segment of its own: PostgreSQL must not count it among the client's commands.
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

    /// Prepares the statement under its internal name, unless the server has it.
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

    /// Returns the client's statement of this name, `None` if it has none. Waits while an earlier
    /// segment may undo a change to it.
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

    /// Waits as [`Self::wait_for_reading`] does, if the server lacks the statement.
    fn wait_for_foreign(&mut self, name: &[u8], cached: &CachedStatement) -> Result<(), Stop> {
        let there = match name.is_empty() {
            true => self.unnamed_is(cached),
            false => self.server.has(&cached.statement).is_some(),
        };
        if there { Ok(()) } else { self.wait_for_reading(cached) }
    }

    /// Waits until the client's settings are known, if the statement's constants depend on them
    /// (E57). Requests under way may change the settings, or take a change back. Then Refrain knows
    /// whether to prepare it under other settings.
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

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

use crate::client::Pins;
use crate::columns::{Columns, Found};
use crate::ledger::{Entry, Fate, Made, Owed, Purpose, Refusal};
use crate::message::Message;
use crate::names::{ClientStatement, Held, Name};
use crate::settings::{self, Standing};
use crate::slots::{Served, Slot, Unnamed};
use crate::statement::{Identity, Statement, reads_constants};
use crate::talk::{Called, Stop, Talk};
use crate::texts::Local;
use crate::undo::{ClientUndo, ServerUndo};

impl Talk<'_> {
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
        if matches!(self.client.standing, Standing::Unsure(..)) {
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
        if self.server.ledger.touches(&self.client.changed) {
            return Err(Stop::Gate);
        }
        self.pool().counters.client_parses += 1;
        if self.is_over_quota(parse.tail.len()) {
            return Ok(self.refuse(message, Owed::Parse, Refusal::Quota));
        }
        let local = self.intern_parse(parse.tail)?;
        self.gate_in_doubt(&local)?;
        if self.client.pins.has(Pins::PREPARED) {
            self.parse_by_name(&parse, &local, next);
            return Ok(message.bytes.len());
        }
        let known = self.parse_is_known(&local)?;
        let seq = if known {
            self.server.ledger.extend(&mut self.client.changed);
            self.pool().counters.parses_answered += 1;
            self.make_up(Owed::Parse, Made::Parse)
        } else {
            self.server.ledger.extend(&mut self.client.parsed);
            self.send_parse(&local, Fate::Forward)
        };
        let called = match known || local.is_worth_a_name() {
            true => Called::Named(local.statement.generation()),
            false => Called::Unnamed,
        };
        let name = Name::from_slice(parse.name);
        self.undoable(seq, ClientUndo::Named(name.clone()));
        let statement = self.client_statement(local.clone(), called);
        self.client.names.insert(name, statement);
        if !known {
            self.ask_behind_parse(called, &local, parse.name, next);
        }
        Ok(message.bytes.len())
    }

    /// A Parse that is passed on as it is: statements are not managed, or it is too large to be kept.
    pub(crate) fn parse_unkept(&mut self, message: &Message<'_>) -> usize {
        if self.client.managed {
            // The statement exists on this server alone.
            self.client.pins.add(Pins::PREPARED);
            self.client.unnamed = None;
            self.server.slots.unnamed = Unnamed::NONE;
            self.pool().counters.uncached += 1;
        }
        self.server.dirty = true;
        self.pool().counters.server_parses += 1;
        self.owe(Entry::new(Owed::Parse, Fate::Forward));
        self.pass(message)
    }

    fn parse_unnamed(
        &mut self,
        message: &Message<'_>,
        parse: &Parse<'_>,
        next: &[u8],
    ) -> Result<usize, Stop> {
        self.pool().counters.client_parses += 1;
        let local = self.intern_parse(parse.tail)?;
        let ledger = &self.server.ledger;
        let fails = ledger.status() == Status::Failed || ledger.may_have_failed();
        let known = !fails && self.unnamed_is(&local);
        let seq = if known {
            self.pool().counters.parses_answered += 1;
            self.make_up(Owed::Parse, Made::Parse)
        } else {
            self.send_parse_unnamed(&local, Fate::Forward)
        };
        self.client.unnamed_changed = self.server.ledger.segment();
        let statement = self.client_statement(local.clone(), Called::Unnamed);
        let old = self.client.unnamed.replace(statement);
        self.undoable(seq, ClientUndo::Unnamed(old));
        if !known {
            self.ask_behind_parse(Called::Unnamed, &local, b"", next);
        }
        Ok(message.bytes.len())
    }

    /// A Parse of a name that is taken. PostgreSQL looks at the text first and then says 42P05: it is made to, by
    /// parsing the new text under a name that is taken there (E4).
    fn parse_again(&mut self, message: &Message<'_>, parse: &Parse<'_>) -> Result<usize, Stop> {
        self.gate_until_settled()?;
        let Some(old) = self.client.names.get(parse.name) else { return Err(Stop::Gate) };
        let id = old.held.local().statement.id;
        let name = self.hub.shared.registry.aside();
        self.take_name(&name);
        write::parse(self.out(), &name, parse.tail);
        self.owe(Entry::new(Owed::Parse, Fate::Forward).about(id).called(parse.name));
        Ok(message.bytes.len())
    }

    /// A statement that was closed to make room may be there still, if its Close is skipped: that has to be known
    /// before it is prepared again.
    fn gate_in_doubt(&self, local: &Local) -> Result<(), Stop> {
        let id = local.statement.id;
        let closed = |undo: &ServerUndo| matches!(undo, ServerUndo::Evicted(slot) if slot.served.statement().id == id);
        if self.server.slots.peek(id).is_none() && self.server.undos.iter().any(closed) {
            return Err(Stop::Gate);
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
    pub(crate) fn intern(&mut self, tail: &[u8]) -> Rc<Local> {
        let identity = Identity { pool: self.server.pool, env: self.client.env(), tail };
        let unsure = matches!(self.client.standing, Standing::Unsure(..));
        let shared = self.hub.shared.clone();
        let pool = self.hub.pool(self.server.pool);
        let epoch = pool.shared.epoch();
        let small = tail.len() <= pool.settings.options.max_cached_statement_bytes;
        let room = shared.registry.bytes() <= shared.options().general.max_statement_bytes;
        if !small || !room || unsure {
            pool.counters.uncached += 1;
            let statement = Arc::new(shared.registry.make(identity));
            let local = Rc::new(Local::new(statement, self.client.current()));
            if unsure {
                // Kept where it was parsed: nobody can say under which settings to do that again.
                local.used();
            }
            local.statement.start_epoch(epoch);
            return local;
        }
        let local = self.hub.texts.intern(&shared.registry, identity, self.client.current());
        let statement = &local.statement;
        if statement.epoch() < epoch {
            // The schema changed since this generation began: a new client must not get an old plan (E65), nor be told
            // that a server has accepted the text.
            if statement.is_new() {
                statement.start_epoch(epoch);
            } else if statement.begin_generation(statement.generation(), epoch) {
                self.pool().counters.generations += 1;
            }
        }
        local
    }

    /// A client's statement that has what the Parse of this copy found.
    pub(crate) fn client_statement(&self, local: Rc<Local>, called: Called) -> ClientStatement {
        let (slots, generation) = (&self.server.slots, local.statement.generation());
        let found = match called {
            Called::Unnamed => slots.unnamed.found,
            Called::Named(_) => {
                slots.peek(local.statement.id).map(|slot| slot.found).unwrap_or_default()
            }
        };
        let columns = found.columns;
        ClientStatement::new(Held::new(local), generation, columns)
    }

    /// What a Parse that is sent next finds.
    fn found(&self, statement: &Statement) -> Found {
        let (server, parse) = (self.server.serial, self.server.ledger.next_seq());
        let settled = !statement.returns;
        let columns = if settled { Columns::Fixed } else { Columns::Of { server, parse } };
        Found { columns, ..Found::default() }
    }

    /// Whether a Parse of this statement can be answered here.
    fn parse_is_known(&mut self, local: &Local) -> Result<bool, Stop> {
        let statement = &local.statement;
        if self.server.has(statement).is_none() {
            return Ok(false);
        }
        let ledger = &self.server.ledger;
        // In a failed transaction PostgreSQL refuses a Parse, unless it is of what ends it (E3).
        match ledger.status() {
            Status::Idle if !ledger.may_have_failed() => Ok(true),
            Status::Transaction if !ledger.has_unsettled() => Ok(true),
            Status::Failed if ledger.is_empty() => Ok(statement.scan.kind == Kind::TransactionEnd),
            Status::Idle | Status::Transaction | Status::Failed => Err(Stop::Gate),
        }
    }

    pub(crate) fn unnamed_is(&self, local: &Local) -> bool {
        let unnamed = self.server.slots.unnamed;
        unnamed.id == local.statement.id
            && unnamed.generation == local.statement.generation()
            && !self.server.ledger.is_unsettled(unnamed.segment)
    }

    /// Sends a Parse, under the internal name where the statement is worth one.
    fn send_parse(&mut self, local: &Rc<Local>, fate: Fate) -> u64 {
        if local.is_worth_a_name() {
            self.send_parse_named(local, fate)
        } else {
            self.send_parse_unnamed(local, fate)
        }
    }

    fn send_parse_named(&mut self, local: &Rc<Local>, fate: Fate) -> u64 {
        self.make_room(local.statement.id, local.statement.tail.len());
        self.send_parse_there(local, fate)
    }

    fn send_parse_there(&mut self, local: &Rc<Local>, fate: Fate) -> u64 {
        let statement = &local.statement;
        let (id, generation) = (statement.id, statement.generation());
        let mut name = std::mem::take(&mut self.hub.scratch);
        name.clear();
        statement.write_name(&mut name, generation);
        write::parse(self.ports.out(self.server.conn), &name, &statement.tail);
        self.hub.scratch = name;
        self.pool().counters.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(Entry::new(Owed::Parse, fate).about(id));
        let segment = self.server.ledger.segment();
        let served = Served::new(statement.clone());
        let slot = Slot { served, generation, segment, doubtful: false, auto: false, found };
        self.server.slots.insert(slot);
        self.undoable_there(seq, ServerUndo::Prepared(id));
        seq
    }

    pub(crate) fn send_parse_unnamed(&mut self, local: &Rc<Local>, fate: Fate) -> u64 {
        let statement = &local.statement;
        write::parse(self.ports.out(self.server.conn), b"", &statement.tail);
        self.pool().counters.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(Entry::new(Owed::Parse, fate).about(statement.id));
        let unnamed = Unnamed {
            id: statement.id,
            generation: statement.generation(),
            segment: self.server.ledger.segment(),
            found,
        };
        let old = std::mem::replace(&mut self.server.slots.unnamed, unnamed);
        self.undoable_there(seq, ServerUndo::Unnamed(old));
        seq
    }

    /// Closes what has to go before a statement can be prepared: an older copy of it, or the least recently
    /// used statement. In stream, right before the Parse: a portal made from it lives on (E25).
    fn make_room(&mut self, id: u64, bytes: usize) {
        if let Some(old) = self.server.slots.remove(id) {
            self.send_close(old);
        }
        let options = &self.hub.pool(self.server.pool).settings.options;
        let (count, most) = (options.max_server_statements, options.max_server_statement_bytes);
        while let Some(old) = self.server.slots.evict(bytes, count, most) {
            self.pool().counters.evictions += 1;
            self.send_close(old);
        }
    }

    pub(crate) fn send_close(&mut self, mut old: Slot) {
        // If this Close is skipped, so may have been the Parse before it.
        old.doubtful |= self.server.ledger.is_unsettled(old.segment);
        let mut name = std::mem::take(&mut self.hub.scratch);
        name.clear();
        old.served.statement().write_name(&mut name, old.generation);
        write::close_statement(self.ports.out(self.server.conn), &name);
        self.hub.scratch = name;
        let id = old.served.statement().id;
        let seq = self.owe_us(Owed::Close, Purpose::Prepare, id);
        self.undoable_there(seq, ServerUndo::Evicted(old));
    }

    pub(crate) fn count_hit(&mut self) {
        self.server.hits += 1;
        self.pool().counters.prepare_hits += 1;
    }

    /// Sends the statement that the server lacks, and that the client calls `name`.
    pub(crate) fn prepare_for(&mut self, name: &[u8], local: &Rc<Local>) -> Called {
        self.server.misses += 1;
        self.pool().counters.prepare_misses += 1;
        let fate = Fate::Swallow(Purpose::Prepare);
        if self.is_foreign(local) {
            return self.prepare_foreign(local);
        }
        // The client's unnamed statement stays one: it is planned and forgotten as such (E19).
        if !name.is_empty() && local.used() {
            self.send_parse_named(local, fate);
            Called::Named(local.statement.generation())
        } else {
            self.send_parse_unnamed(local, fate);
            Called::Unnamed
        }
    }

    /// Whether a statement was parsed under settings that the client has changed since, and that decide how its
    /// constants are read.
    pub(crate) fn is_foreign(&self, local: &Local) -> bool {
        // A failed transaction refuses it whatever they are.
        !settings::read_alike(&local.profile, self.client.current())
            && local.statement.has_constants()
            && !self.server.ledger.has_failed()
    }

    /// Prepares a statement under the settings of its Parse, which decide what its text means (E57), and goes back
    /// to the client's. In a segment of its own where there is none yet, so as not to count in the client's.
    fn prepare_foreign(&mut self, local: &Rc<Local>) -> Called {
        let (own, other) = (self.client.current().clone(), local.profile.clone());
        let alone = !self.server.ledger.is_open() && self.server.ledger.is_empty();
        self.run_aside(&settings::reading(&own, &other), Purpose::Environment);
        self.send_parse_named(local, Fate::Swallow(Purpose::Prepare));
        self.run_aside(&settings::reading(&other, &own), Purpose::Return);
        if alone {
            self.end_segment(Purpose::Prepare);
        }
        Called::Named(local.statement.generation())
    }

    /// Sees that the server has the statement under its internal name.
    pub(crate) fn ensure_named(&mut self, local: &Rc<Local>) {
        let statement = &local.statement;
        if self.server.has(statement).is_some() {
            return;
        }
        if self.is_foreign(local) {
            self.prepare_foreign(local);
        } else {
            self.send_parse_named(local, Fate::Swallow(Purpose::Prepare));
        }
    }

    /// The statement that a client means by a name, `None` for one it has not.
    #[inline]
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<Option<Rc<Local>>, Stop> {
        let ledger = &self.server.ledger;
        let unsettled = match name.is_empty() {
            true => ledger.is_unsettled(self.client.unnamed_changed),
            false => ledger.touches(&self.client.changed) || ledger.touches(&self.client.parsed),
        };
        if unsettled {
            return Err(Stop::Gate);
        }
        let found = match name.is_empty() {
            true => self.client.unnamed.as_mut(),
            false => self.client.names.get(name),
        };
        let local = found.map(|statement| statement.held.local().clone());
        if let Some(local) = &local {
            self.gate_in_doubt(local)?;
            self.gate_foreign(name, local)?;
        }
        Ok(local)
    }

    /// Holds up what uses a statement that the server lacks: see [`Self::gate_reading`].
    fn gate_foreign(&mut self, name: &[u8], local: &Local) -> Result<(), Stop> {
        let there = match name.is_empty() {
            true => self.unnamed_is(local),
            false => self.server.has(&local.statement).is_some(),
        };
        if there { Ok(()) } else { self.gate_reading(local) }
    }

    /// Whether a statement has to be prepared under other settings than the client's of now, and which those are, can
    /// only be said when they are known: what is under way may change them, or take a change back.
    pub(crate) fn gate_reading(&mut self, local: &Local) -> Result<(), Stop> {
        let unsure = matches!(self.client.standing, Standing::Unsure(_, since) if since.reads);
        if !local.statement.has_constants() || !unsure && !self.is_foreign(local) {
            return Ok(());
        }
        self.know_settings()?;
        let ready = self.server.ledger.is_empty() || !self.is_foreign(local);
        if ready { Ok(()) } else { Err(Stop::Gate) }
    }
}

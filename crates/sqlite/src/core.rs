//! The state that a connection shares with its statements.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::ffi as sqlite;

use crate::authorizer::Authorizer;
use crate::cache::{Cache, Kept, StatementFacts};
use crate::error::{Error, Interruption};
use crate::ffi::{Compiled, Handle, Idle, Live};
use crate::interrupt::Interrupter;
use crate::limits::Meter;
use crate::text::Text;

/// A statement that looks at the schema and at nothing else; SQLite compiles it again when the
/// schema has changed.
const PROBE: &str = "SELECT 1 FROM sqlite_schema LIMIT 0";

/// A parked run.
pub(crate) struct Suspended {
    pub(crate) live: Live<'static>,
    pub(crate) facts: Box<StatementFacts>,
    /// True if a step was made.
    pub(crate) stepped: bool,
}

/// The inside of a connection. The fields with statements come first, as they must be dropped
/// before the handle.
pub(crate) struct Core {
    pub(crate) cache: RefCell<Cache>,
    pub(crate) suspended: RefCell<HashMap<u64, Suspended, foldhash::fast::RandomState>>,
    probe: RefCell<Option<Idle>>,
    /// How often [`PROBE`] found another schema.
    epoch: Cell<u64>,
    /// True if statements that write are refused.
    pub(crate) read_only: Cell<bool>,
    /// True if a limit of steps or length has stopped anything since the last look at this.
    pub(crate) outgrown: Cell<bool>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) interrupter: Interrupter,
    pub(crate) handle: Handle,
}

impl Core {
    pub(crate) fn new(
        handle: Handle,
        cache: Cache,
        authorizer: Arc<Authorizer>,
        meter: Arc<Meter>,
    ) -> Result<Core, Error> {
        let probe = handle.prepare(PROBE, true)?.idle;
        let interrupter =
            Interrupter::new(handle.connection().get_interrupt_handle(), meter.clone());
        Ok(Core {
            cache: RefCell::new(cache),
            suspended: RefCell::default(),
            probe: RefCell::new(probe),
            epoch: Cell::new(0),
            read_only: Cell::new(false),
            outgrown: Cell::new(false),
            authorizer,
            meter,
            interrupter,
            handle,
        })
    }

    /// Returns a number that changes with the schema. Looks at the file, as any connection may have
    /// changed it.
    pub(crate) fn look_at_schema(&self) -> Result<u64, Error> {
        let mut probe = self.probe.borrow_mut();
        if let Some(idle) = probe.take() {
            let mut live = idle.start();
            let stepped = live.step(self.handle.index());
            let idle = live.finish();
            self.epoch.set(u64::from(idle.reprepares()));
            *probe = Some(idle);
            stepped?;
        }
        Ok(self.epoch.get())
    }

    /// Returns that number as of the last look.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// Returns the first statement of a text, kept or compiled, and its length in the text.
    pub(crate) fn prepare(&self, text: &Text<'_>) -> Result<(Option<Kept>, usize), Error> {
        if let Some(found) = self.find(text) {
            let length = found.idle.sql().len();
            return Ok((Some(found), length));
        }
        let begun = Instant::now();
        let persistent = self.cache.borrow().was_seen(text.hash());
        let compiled = self.compile(text.sql(), persistent)?;
        let Some(idle) = compiled.idle else { return Ok((None, compiled.length)) };
        let whole = compiled.length == text.sql().len();
        let own = if whole { *text } else { Text::new(idle.sql()) };
        let hash = own.hash();
        let mut facts = Box::new(StatementFacts::new(hash, false, self.epoch(), begun));
        facts.keep = self.cache.borrow_mut().compiled(&own, facts.prepare);
        facts.costly = self.authorizer.take_costly();
        Ok((Some(Kept { idle, facts }), compiled.length))
    }

    fn compile(&self, sql: &str, persistent: bool) -> Result<Compiled, Error> {
        self.authorizer.take_costly();
        self.handle.prepare(sql, persistent).map_err(|mut error| {
            if error.primary_code() == sqlite::SQLITE_INTERRUPT {
                let reason = self.meter.take_reason().unwrap_or(Interruption::Cancel);
                error.interruption = Some(reason);
            }
            self.note_outgrown(&error);
            error
        })
    }

    /// Remembers that a limit of steps or length has stopped a statement. If that happened while a
    /// translation looked up the schema, the translation's result says nothing about the text.
    pub(crate) fn note_outgrown(&self, error: &Error) {
        let stopped = error.is_too_long() || error.interruption == Some(Interruption::Steps);
        self.outgrown.set(stopped || self.outgrown.get());
    }

    /// Returns a kept statement that is all of a text, or its beginning up to a semicolon.
    ///
    /// SQLite splits where a semicolon ends a statement. A kept text that ends in one was split
    /// there before, and would be again: what comes behind it makes no difference.
    fn find(&self, text: &Text<'_>) -> Option<Kept> {
        let mut cache = self.cache.borrow_mut();
        if let Some(found) = cache.take(text) {
            return Some(found);
        }
        let ends = text.sql().match_indices(';').map(|(place, _)| place + 1);
        let parts = ends.filter(|end| *end < text.sql().len()).take(PARTS_MAX);
        parts.map(|end| Text::new(&text.sql()[..end])).find_map(|part| cache.take(&part))
    }

    /// Compiles a statement again if the schema has changed since it was compiled. Returns true if
    /// it did.
    pub(crate) fn refresh(&self, kept: &mut Kept) -> Result<bool, Error> {
        let epoch = self.look_at_schema()?;
        if kept.facts.epoch == epoch {
            return Ok(false);
        }
        let begun = Instant::now();
        let anew = self.compile(kept.idle.sql(), kept.facts.keep)?;
        let facts = &mut kept.facts;
        facts.costly = self.authorizer.take_costly();
        facts.recompiled += 1 + u64::from(kept.idle.reprepares());
        facts.reprepares = 0;
        facts.epoch = epoch;
        facts.prepare = begun.elapsed();
        self.cache.borrow_mut().recompiled(facts.prepare);
        if let Some(idle) = anew.idle {
            kept.idle = idle;
        }
        Ok(true)
    }

    /// Finalises all statements, then closes the file.
    pub(crate) fn close(self) -> Result<(), Error> {
        let Core { cache, suspended, probe, handle, .. } = self;
        drop((cache, suspended, probe));
        handle.close()
    }

    /// Takes back a statement whose run is over.
    pub(crate) fn give_back(&self, kept: Kept) {
        self.cache.borrow_mut().give_back(kept);
    }

    /// Discards all parked runs.
    pub(crate) fn discard_suspended(&self) {
        for (_, Suspended { live, facts, .. }) in self.suspended.borrow_mut().drain() {
            self.give_back(Kept { idle: live.finish(), facts });
        }
    }
}

/// The most beginnings of a text that are looked up before it is compiled.
const PARTS_MAX: usize = 8;

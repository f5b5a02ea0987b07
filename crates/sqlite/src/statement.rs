//! Statements: idle ([`Statement`]), running ([`Run`]) and parked ([`Parked`]).
//!
//! A statement belongs to its connection. When it is dropped it goes back there, to be kept or
//! finalised. Step first and describe after (rule 8): a step compiles the statement again when the
//! schema has changed, so the names and types of columns are certain once the first step is made. A
//! caller that must describe before it runs calls [`Statement::refresh`].

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::ffi as sqlite;

use crate::cache::{Kept, Memo, StatementFacts};
use crate::core::{Core, Suspended};
use crate::error::{Error, Interruption};
use crate::ffi::{Asking, Live, Raw};
use crate::text::first_word;
use crate::value::{Type, Value};

/// Of so many runs one is timed, beginning with the first: reading the clock is not free.
const TIMED_EVERY: u64 = 16;

/// The number of the next parked run, over all connections.
static NEXT_PARKED: AtomicU64 = AtomicU64::new(0);

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is a row: see [`Run::column`].
    Row,
    /// There are no more rows.
    Done,
}

/// A compiled statement that is not running. Goes back to its connection when dropped.
pub struct Statement<'c> {
    core: &'c Core,
    /// None while it is dropped or started, else set.
    kept: Option<Kept>,
}

/// A running statement; `'b` is the lifetime of its parameters' memory.
///
/// Dropping it resets the statement, which goes back to its connection.
pub struct Run<'c, 'b> {
    core: &'c Core,
    /// None while it is dropped, parked or finished, else set.
    parts: Option<(Live<'b>, Box<StatementFacts>)>,
    state: RunState,
    /// True for a VACUUM, which may attach a file without a name.
    is_vacuum: bool,
    /// When it began, if it is timed.
    begun: Option<Instant>,
    rows: u64,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunState {
    Binding,
    Stepping,
    Ended,
}

/// A run parked in the middle of its rows. [`crate::Connection::resume`] takes it up again.
///
/// Its statement and its snapshot of the database stay with the connection until the run is resumed
/// or discarded there.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Parked(u64);

/// The methods of a statement in any state.
macro_rules! description {
    () => {
        /// Returns the text, as SQLite split it off.
        pub fn sql(&self) -> &str {
            self.raw().sql()
        }

        /// Returns the number of parameters: the largest number among them.
        pub fn parameter_count(&self) -> usize {
            self.raw().parameter_count()
        }

        /// Returns the name of a parameter, from 1, with its sigil; none for a plain `?`.
        pub fn parameter_name(&self, index: usize) -> Option<&str> {
            self.raw().parameter_name(index)
        }

        /// True if running it changes no file. `BEGIN` and `COMMIT` change none by themselves.
        pub fn readonly(&self) -> bool {
            self.raw().readonly()
        }

        /// True for an EXPLAIN or an EXPLAIN QUERY PLAN.
        pub fn is_explain(&self) -> bool {
            self.raw().is_explain()
        }

        /// Returns the number of columns of its rows; 0 if it gives no rows.
        pub fn column_count(&self) -> usize {
            self.raw().column_count()
        }

        /// Returns the name of a column, from 0.
        pub fn column_name(&self, column: usize) -> Option<&str> {
            self.raw().column_name(column)
        }

        /// Returns the type that the table declares, if the column is a table's.
        pub fn column_decltype(&self, column: usize) -> Option<&str> {
            self.raw().column_decltype(column)
        }

        /// Returns database, table and column, if the column is a table's.
        pub fn column_origin(&self, column: usize) -> Option<(&str, &str, &str)> {
            self.raw().column_origin(column)
        }

        /// True if a single step of it may take long, so that counting steps does not bound its
        /// time.
        pub fn is_costly(&self) -> bool {
            self.facts().costly
        }

        /// Returns a number that changes whenever the statement was compiled again: an earlier
        /// description may be outdated then.
        pub fn generation(&self) -> u64 {
            self.facts().recompiled + u64::from(self.raw().reprepares())
        }

        /// Returns the result of `make`, remembered as long as the statement is kept and not
        /// compiled again. `subject` is a number of the caller's for what the value is about. There
        /// is one memo for each statement: one of another subject or type replaces it.
        ///
        /// # Errors
        /// The error of `make`, which is not remembered.
        pub fn memo<T, E, F>(&mut self, subject: u64, make: F) -> Result<Arc<T>, E>
        where
            T: Any + Send + Sync,
            F: FnOnce(&Self) -> Result<T, E>,
        {
            let generation = self.generation();
            let known = self.facts().memo.as_ref();
            let known = known.filter(|it| (it.generation, it.subject) == (generation, subject));
            if let Some(value) = known.and_then(|memo| memo.value.clone().downcast().ok()) {
                return Ok(value);
            }
            let value = Arc::new(make(self)?);
            self.facts_mut().memo = Some(Memo { generation, subject, value: value.clone() });
            Ok(value)
        }
    };
}

impl<'c> Statement<'c> {
    pub(crate) fn new(core: &'c Core, kept: Kept) -> Statement<'c> {
        Statement { core, kept: Some(kept) }
    }

    description!();

    /// Makes the statement's description current: looks at the schema, and compiles the statement
    /// again if any connection has changed it. Returns true if it did.
    ///
    /// A caller needs this to describe a statement without running it, and for nothing else.
    pub fn refresh(&mut self) -> Result<bool, Error> {
        let core = self.core;
        self.kept.as_mut().map_or(Ok(false), |kept| core.refresh(kept))
    }

    /// Begins a run. The caller binds parameters, then steps.
    pub fn start<'b>(mut self) -> Run<'c, 'b> {
        let parts = self.kept.take().map(|kept| (kept.idle.start(), kept.facts));
        Run::new(self.core, parts, RunState::Binding)
    }

    fn raw(&self) -> &Raw {
        &self.kept().idle
    }

    fn facts(&self) -> &StatementFacts {
        &self.kept().facts
    }

    fn facts_mut(&mut self) -> &mut StatementFacts {
        &mut self.kept.as_mut().expect("a statement has it until dropped").facts
    }

    fn kept(&self) -> &Kept {
        self.kept.as_ref().expect("a statement has it until dropped")
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.core.give_back(kept);
        }
    }
}

impl<'c, 'b> Run<'c, 'b> {
    fn new(
        core: &'c Core,
        parts: Option<(Live<'b>, Box<StatementFacts>)>,
        state: RunState,
    ) -> Run<'c, 'b> {
        Run { core, parts, state, is_vacuum: false, begun: None, rows: 0 }
    }

    description!();

    /// Binds a parameter, from 1, to a value that is not copied. A parameter that is not bound is
    /// NULL.
    pub fn bind(&mut self, index: usize, value: Value<'b>) -> Result<(), Error> {
        self.live_mut().bind(index, value)
    }

    /// Binds a parameter, from 1, to a value that SQLite copies, so that the run can be parked.
    pub fn bind_copied(&mut self, index: usize, value: Value<'_>) -> Result<(), Error> {
        self.live_mut().bind_copied(index, value)
    }

    /// Binds all parameters, in their order.
    pub fn bind_all(&mut self, values: &[Value<'b>]) -> Result<(), Error> {
        let count = self.parameter_count();
        if values.len() != count {
            let message = format!("{} values for {count} parameters", values.len());
            return Err(Error::new(sqlite::SQLITE_RANGE, message));
        }
        values.iter().zip(1..).try_for_each(|(value, index)| self.bind(index, *value))
    }

    /// Runs to the next row. After the last row, and after an error, it stays done.
    pub fn step(&mut self) -> Result<Step, Error> {
        match self.state {
            RunState::Ended => return Ok(Step::Done),
            RunState::Binding => self.begin()?,
            RunState::Stepping => {}
        }
        let Some((live, facts)) = &mut self.parts else { return Ok(Step::Done) };
        // A statement that writes is stopped between two steps alone: it must be able to read the
        // pages that it rolls back.
        let asking = live.readonly().then(|| Asking::begin(&self.core.meter));
        let counting = self.core.handle.counting();
        let stepped = live.step(self.core.handle.index());
        drop(counting);
        drop(asking);
        let stepped = match stepped {
            Ok(true) => {
                self.rows += 1;
                return Ok(Step::Row);
            }
            Ok(false) => Ok(Step::Done),
            Err(mut error) => {
                let reason = self.core.meter.take_reason();
                error = match (error.primary_code(), reason) {
                    (sqlite::SQLITE_INTERRUPT, reason) => {
                        error.stopped_by(reason.unwrap_or(Interruption::Cancel))
                    }
                    (sqlite::SQLITE_BUSY, Some(reason)) => error.stopped_by(reason),
                    _ => error,
                };
                facts.spoiled = error.spoils();
                self.core.note_outgrown(&error);
                Err(error)
            }
        };
        self.state = RunState::Ended;
        if self.is_vacuum {
            self.core.authorizer.end_vacuum();
        }
        stepped
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.state = RunState::Stepping;
        if self.core.read_only.get() && !self.readonly() {
            self.state = RunState::Ended;
            let message = "cannot write in a read-only transaction";
            return Err(Error::new(sqlite::SQLITE_READONLY, message));
        }
        if !self.facts().keep && first_word(self.sql()).eq_ignore_ascii_case("VACUUM") {
            self.is_vacuum = self.core.authorizer.begin_vacuum();
        }
        let facts = self.facts_mut();
        facts.calls += 1;
        if facts.calls % TIMED_EVERY == 1 {
            self.begun = Some(Instant::now());
        }
        Ok(())
    }

    /// Returns a column of the row, from 0, as it is stored; NULL where there is none.
    pub fn column(&self, column: usize) -> Value<'_> {
        self.live().column(column)
    }

    /// Returns the storage class of a column of the row.
    pub fn column_type(&self, column: usize) -> Type {
        self.live().column_type(column)
    }

    /// Returns its text with the bound values in the place of parameters; none if there is no
    /// memory for it.
    pub fn expanded(&self) -> Option<String> {
        self.live().expanded()
    }

    /// Returns how many rows it gave so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the run; the statement can be started again.
    pub fn finish(mut self) -> Statement<'c> {
        let kept = self.end();
        Statement { core: self.core, kept }
    }

    fn end(&mut self) -> Option<Kept> {
        let (live, mut facts) = self.parts.take()?;
        facts.rows += self.rows;
        if let Some(begun) = self.begun {
            let now = Instant::now();
            facts.timed += 1;
            facts.run += now - begun;
            facts.last_used = now;
        }
        Some(Kept { idle: live.finish(), facts })
    }

    fn raw(&self) -> &Raw {
        self.live()
    }

    fn facts(&self) -> &StatementFacts {
        &self.parts.as_ref().expect("a run has them until dropped").1
    }

    fn facts_mut(&mut self) -> &mut StatementFacts {
        &mut self.parts.as_mut().expect("a run has them until dropped").1
    }

    fn live(&self) -> &Live<'b> {
        &self.parts.as_ref().expect("a run has them until dropped").0
    }

    fn live_mut(&mut self) -> &mut Live<'b> {
        &mut self.parts.as_mut().expect("a run has them until dropped").0
    }
}

impl<'c> Run<'c, 'static> {
    /// True if the description matches the file's present schema. For a run that has made no step.
    pub fn is_current(&self) -> Result<bool, Error> {
        Ok(self.core.look_at_schema()? == self.facts().epoch)
    }

    /// Parks the run with its place in the rows. Its parameters must have been copied, or live for
    /// ever.
    pub fn park(mut self) -> Parked {
        let id = NEXT_PARKED.fetch_add(1, Ordering::Relaxed);
        if let Some((live, mut facts)) = self.parts.take() {
            facts.rows += self.rows;
            let stepped = self.state != RunState::Binding;
            self.core.suspended.borrow_mut().insert(id, Suspended { live, facts, stepped });
        }
        Parked(id)
    }

    /// Returns a parked run, if it is still there: it goes on after its last row.
    pub(crate) fn resume(core: &'c Core, parked: Parked) -> Option<Run<'c, 'static>> {
        let Suspended { live, facts, stepped } = core.suspended.borrow_mut().remove(&parked.0)?;
        let state = if stepped { RunState::Stepping } else { RunState::Binding };
        Some(Run::new(core, Some((live, facts)), state))
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        if let Some(kept) = self.end() {
            self.core.give_back(kept);
        }
    }
}

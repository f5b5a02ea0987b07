//! Statements as a server has them: under a name, or unnamed. The set of all is in
//! [`crate::state::server`], which also knows what may undo a change to it.

use std::hash::Hasher;

use crate::ground::ids::Segment;
use crate::statements::columns::{Columns, Found};
use crate::statements::statement::{Generation, Statement, spread};

/// Executions of a statement that PostgreSQL plans for their values before it considers a generic
/// plan.
const PLANNED: u8 = 5;

/// A server's reference to a statement: it counts the server in, and out when it is dropped.
#[derive(Debug)]
pub(crate) struct ServerRef {
    statement: Statement,
    /// How often the server ran it for simple queries; at most [`PLANNED`] are counted.
    runs: u8,
    /// Bytes of the server's memory that it is taken to need.
    memory: usize,
}

impl ServerRef {
    /// Counts the server in.
    pub(crate) fn new(statement: Statement) -> Self {
        statement.add_server();
        let memory = statement.memory();
        Self { statement, runs: 0, memory }
    }

    /// Returns the statement.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Returns the bytes of the server's memory that it is taken to need.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Returns these bytes as they are known now.
    pub(crate) fn weigh(&mut self) -> usize {
        self.memory = self.statement.memory();
        self.memory
    }

    /// Counts a run for a simple query. True if PostgreSQL plans this run for its values in any
    /// case.
    pub(crate) fn run(&mut self) -> bool {
        let planned = self.runs < PLANNED;
        self.runs += u8::from(planned);
        planned
    }
}

impl Drop for ServerRef {
    fn drop(&mut self) {
        self.statement.drop_server();
    }
}

/// A statement that a server has under a name.
#[derive(Debug)]
pub(crate) struct ServerStatement {
    /// The statement.
    pub(crate) served: ServerRef,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that prepared it.
    pub(crate) segment: Segment,
    /// Whether the server may have dropped it: then Refrain closes it and prepares it anew before
    /// it is used.
    pub(crate) doubtful: bool,
    /// Whether autoprepare has put it there, for simple queries.
    pub(crate) auto: bool,
    /// The columns and parameters that its Parse found.
    pub(crate) found: Found,
}

impl ServerStatement {
    /// Returns the bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        self.served.statement().tail().len()
    }
}

/// The unnamed statement of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    /// The statement's ID; zero if there is none, or if it is unknown.
    pub(crate) id: u64,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that parsed it.
    pub(crate) segment: Segment,
    /// The columns and parameters that its Parse found.
    pub(crate) found: Found,
}

impl Unnamed {
    /// No unnamed statement, or an unknown one, since a segment that is over.
    pub(crate) const NONE: Self = Self {
        id: 0,
        generation: 0,
        segment: 0,
        found: Found { columns: Columns::Fixed, parameters: 0, asked: 0 },
    };
}

impl Unnamed {
    /// Returns the record for no unnamed statement since this segment.
    pub(crate) fn none_since(segment: Segment) -> Self {
        Self { segment, ..Self::NONE }
    }
}

/// Spreads statement IDs over a table.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, id: u64) {
        self.0 = spread(id);
    }
}

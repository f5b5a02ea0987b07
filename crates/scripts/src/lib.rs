//! Each protocol's engine in one process with model clients and a model server, and nothing
//! between them.
//!
//! For measuring what the engine itself costs: allocations (`tests/allocations`) and
//! instructions (`examples/scripts.rs`). The model servers answer with bytes that do not depend on
//! anything, so that nearly nothing is spent outside the engine. All that belongs to the engine is
//! called through the three `measured_…` functions of each protocol, which are never inlined: a
//! profiler can tell them from the rest.
//!
//! The crate depends on nothing but the engines, since its optimised build is one of the longest of
//! the test suite.

#![forbid(unsafe_code)]

pub mod mysql;
pub mod pg;

/// A conversation of clients that can be repeated without end.
pub trait Script {
    /// An engine at work on one script.
    type World;

    /// Returns the facts that do not depend on the protocol.
    fn facts(&self) -> Facts;

    /// Logs the script's clients in and says what it says beforehand.
    fn begin(&self) -> Self::World;

    /// Runs the script once. Returns the number of bytes that the clients got.
    fn run(&self, world: &mut Self::World) -> usize;
}

/// The facts of a script that do not depend on its protocol.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its name in reports.
    pub name: &'static str,
    /// Transactions in one run.
    pub transactions: u64,
    /// Whether a run allocates nothing once the world is warm.
    pub lean: bool,
}

/// The number of a client, and the bytes that it sends.
type Said = (usize, Vec<u8>);

//! The hot path allocates nothing.
//!
//! Once clients, statements and servers are warm, a query, an execution and a PREPARE whose reply
//! is known take no memory from the allocator and give none back, in the engine and in its ports.

mod common;
#[path = "../../pg/tests/common/counting.rs"]
mod counting;

use crate::common::{Script, World, scripts};
use crate::counting::Counting;

/// Transactions before counting: tables and buffers have their sizes then.
const WARM_UP: u64 = 1_000;
/// Transactions that are counted.
const COUNTED: u64 = 10_000;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests to the allocator in each transaction.
fn requests(script: &Script) -> f64 {
    let mut world = World::new(script);
    let bytes = world.run(script);
    for _ in 0..WARM_UP.div_ceil(script.transactions) {
        assert_eq!(world.run(script), bytes, "{}: every run is alike", script.name);
    }
    let runs = COUNTED.div_ceil(script.transactions);
    let before = counting::requests();
    for _ in 0..runs {
        world.run(script);
    }
    (counting::requests() - before) as f64 / (runs * script.transactions) as f64
}

#[test]
fn the_hot_path_allocates_nothing() {
    let scripts = scripts();
    let found: Vec<_> = scripts.iter().map(|script| (script, requests(script))).collect();
    for (script, requests) in &found {
        println!("{}: {requests} a transaction", script.name);
    }
    for (script, requests) in found {
        assert!(!script.lean || requests == 0.0, "{}: {requests} requests", script.name);
    }
}

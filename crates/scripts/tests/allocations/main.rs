//! The hot path allocates nothing.
//!
//! Once clients, statements and servers are warm, a transaction takes no memory from the allocator
//! and gives none back, in the engine and in its ports. With PostgreSQL's protocol it is simple,
//! extended or prepared, and may have to prepare its statement on its server first, unless the
//! columns of that have to be waited for. With MySQL's it is a query, an execution or a PREPARE
//! whose reply is known.

mod counting;

use refrain_scripts::{Script, mysql, pg};

use crate::counting::Counting;

/// Transactions before counting: tables and buffers have their sizes then.
const WARM_UP: u64 = 1_000;
/// Transactions that are counted.
const COUNTED: u64 = 10_000;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the requests to the allocator in each transaction.
fn requests(script: &impl Script) -> f64 {
    let (facts, mut world) = (script.facts(), script.begin());
    let bytes = script.run(&mut world);
    for _ in 0..WARM_UP.div_ceil(facts.transactions) {
        assert_eq!(script.run(&mut world), bytes, "{}: every run is alike", facts.name);
    }
    let runs = COUNTED.div_ceil(facts.transactions);
    let before = counting::requests();
    for _ in 0..runs {
        script.run(&mut world);
    }
    (counting::requests() - before) as f64 / (runs * facts.transactions) as f64
}

fn allocates_nothing(scripts: &[impl Script]) {
    let found: Vec<_> = scripts.iter().map(|script| (script.facts(), requests(script))).collect();
    for (script, requests) in found {
        assert!(!script.lean || requests == 0.0, "{}: {requests} requests", script.name);
    }
}

#[test]
fn the_hot_path_of_postgresql_allocates_nothing() {
    allocates_nothing(&pg::scripts());
}

#[test]
fn the_hot_path_of_mysql_allocates_nothing() {
    allocates_nothing(&mysql::scripts());
}

//! The benchmark of kept statements: `cargo bench -p refrain-sqlite` prints a table in Markdown.
//!
//! The times are CPU times of the threads that run queries. Many short passes of all variants take
//! turns, and the table has medians, of times and of ratios within one pass. It compares this crate
//! with rusqlite's `prepare_cached`, and with go-sqlite3's `_stmt_cache_size` if there is Go.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod cpu;
mod golang;
mod kinds;
mod lookup;
mod table;
mod world;

/// Number of passes; odd, so that there is a median.
const PASSES: usize = 21;

fn main() {
    // `cargo test --benches` only asks whether it runs.
    let passes = if std::env::args().any(|argument| argument == "--bench") { PASSES } else { 1 };
    let world = world::World::new();
    lookup::run(&world, passes);
    kinds::run(passes);
    kinds::run_one_offs(passes);
}

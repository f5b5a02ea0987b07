//! What a kept statement saves: `cargo bench -p refrain-sqlite`, a table in Markdown.
//!
//! CPU time of the threads that run queries, as the kernel counts it; many short passes of all
//! variants take turns, and what is printed is the median, of times and of ratios within one pass.
//! Beside ours: rusqlite's `prepare_cached`, and go-sqlite3 with `_stmt_cache_size` if there is Go.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod cpu;
mod golang;
mod kinds;
mod lookup;
mod table;
mod world;

/// Passes; odd, so that there is a median.
const PASSES: usize = 21;

fn main() {
    // `cargo test --benches` only asks whether it runs.
    let passes = if std::env::args().any(|argument| argument == "--bench") { PASSES } else { 1 };
    let world = world::World::new();
    lookup::run(&world, passes);
    kinds::run(passes);
    kinds::run_one_offs(passes);
}

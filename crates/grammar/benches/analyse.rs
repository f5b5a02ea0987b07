//! The cost of an analysis, once per normalized query and in a thread of its own: `cargo bench -p
//! refrain-grammar --bench analyse`. One core.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use refrain_grammar::PgGrammar;
use refrain_sql::normalize::{Grammar, normalize};

fn main() {
    let point = "SELECT abalance FROM pgbench_accounts WHERE aid = 12345678".to_owned();
    let mapper = "SELECT \"posts\".\"id\", \"posts\".\"title\", \"posts\".\"body\" FROM \"posts\" \
                  WHERE \"posts\".\"author_id\" = 42 AND \"posts\".\"created_at\" > \
                  '2024-01-01 00:00:00' ORDER BY \"posts\".\"id\" DESC LIMIT 20 OFFSET 40";
    let rows = (0..100).map(|n| format!("({n}, 'name {n}', 'value', {n}.5, 7, NULL)"));
    let insert =
        format!("INSERT INTO t (a, b, c, d, e, f) VALUES {}", rows.collect::<Vec<_>>().join(", "));
    println!(
        "Analysis of a query by PostgreSQL's grammar, µs:\n\n| text | bytes | literals | analysed |"
    );
    println!("|---|--:|--:|--:|");
    for (name, text) in
        [("point select", point.as_str()), ("mapper", mapper), ("insert of 100 rows", &insert)]
    {
        let mut spans = Vec::new();
        normalize(text.as_bytes(), &FixedState::with_seed(7), 1000, &mut spans)
            .expect("a normalized query");
        let analysed = best(|| drop(black_box(PgGrammar.analyse(black_box(text), &spans))));
        println!("| {name} | {} | {} | {analysed:.0} |", text.len(), spans.len());
    }
}

/// Microseconds per turn, of the best one.
fn best(mut turn: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..1_000 {
        let start = Instant::now();
        turn();
        best = best.min(start.elapsed());
    }
    best.as_secs_f64() * 1e6
}

//! How long a scan takes: `cargo bench -p refrain-sql`. Best of several rounds, one core.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

const TEXTS: &[&str] = &[
    "SELECT 1",
    "BEGIN",
    "COMMIT",
    "SET search_path TO app, public",
    "SELECT id, name, email FROM users WHERE id = $1 AND active LI",
    "SELECT abalance FROM pgbench_accounts WHERE aid = 1234567890;",
    "INSERT INTO orders (id, customer, total) VALUES ($1, $2, $3);",
    "UPDATE pgbench_accounts SET abalance = abalance + -4711 WHERE aid = 99;",
    "CREATE TEMP TABLE t (a int, b text) ON COMMIT DROP",
    "SELECT \"posts\".\"id\", \"posts\".\"title\", \"posts\".\"body\" FROM \"posts\" WHERE \"posts\".\"author_id\" = 42 AND \
     \"posts\".\"created_at\" > '2024-01-01 00:00:00' ORDER BY \"posts\".\"id\" DESC LIMIT 20 OFFSET 40 /* app=web */",
];

fn main() {
    const TURNS: u32 = 1_000_000;
    for text in TEXTS {
        let best = (0..7)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..TURNS {
                    black_box(refrain_sql::scan(black_box(text.as_bytes())));
                }
                start.elapsed()
            })
            .min()
            .unwrap_or_default();
        let nanos = best.as_nanos() as f64 / f64::from(TURNS);
        println!("{nanos:7.1} ns  {:4} bytes  {}", text.len(), &text[..text.len().min(60)]);
    }
}

//! The cost of a query with a known normalized query, before bytes are sent: `cargo bench -p
//! refrain-sql --bench normalize`. One core.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use refrain_sql::normalize::{Edit, Mentions, Plan, Sample, Slot, Span, normalize};

fn main() {
    let point = "SELECT abalance FROM pgbench_accounts WHERE aid = 12345678;".to_owned();
    let mapper = "SELECT \"posts\".\"id\", \"posts\".\"title\", \"posts\".\"body\" FROM \"posts\" \
                  WHERE \"posts\".\"author_id\" = 42 AND \"posts\".\"created_at\" > \
                  '2024-01-01 00:00:00' ORDER BY \"posts\".\"id\" DESC LIMIT 20 OFFSET 40";
    let columns = |from: usize| {
        let names = (from..from + 54).map(|n| format!("\"invoices\".\"column_{n}\" AS t0_c{n}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let long = format!(
        "SELECT {} FROM invoices INNER JOIN customers ON customers.id = invoices.customer_id AND \
         customers.state = 'active' WHERE invoices.total >= 99.5 AND invoices.kind IN (1, 2, 3) \
         AND (customers.name LIKE 'A%' OR customers.id = -7) LIMIT 21",
        columns(10)
    );
    let rows = (0..100).map(|n| format!("({n}, 'name {n}', 'value', {n}.5, 7, NULL)"));
    let insert =
        format!("INSERT INTO t (a, b, c, d, e, f) VALUES {}", rows.collect::<Vec<_>>().join(", "));
    println!("A text of a known normalized query, ns for all steps up to here:\n");
    println!("| text | bytes | literals | spans and hash | compared | values |");
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, text) in [
        ("point select", point.as_str()),
        ("mapper", mapper),
        ("mapper, long", &long),
        ("insert of 100 rows", &insert),
    ] {
        measure(name, text.as_bytes());
    }
}

fn measure(name: &str, text: &[u8]) {
    let seed = RandomState::default();
    let mut spans: Vec<Span> = Vec::new();
    let mut values = Vec::new();
    normalize(text, &seed, 1000, &mut spans).expect("a normalized query");
    let sample = Sample::new(text, &spans);
    let slot = |span: &Span| Slot::Parameter { oid: span.class.oid(false), edit: Edit::None };
    let plan = Plan {
        slots: spans.iter().map(slot).collect(),
        frozen: false,
        mentions: Mentions::default(),
    };
    let find = best(|| {
        black_box(normalize(black_box(text), &seed, 1000, &mut spans).is_ok());
    });
    let hit = best(|| {
        black_box(normalize(black_box(text), &seed, 1000, &mut spans).is_ok());
        black_box(sample.matches(text, &spans));
    });
    let whole = best(|| {
        black_box(normalize(black_box(text), &seed, 1000, &mut spans).is_ok());
        black_box(sample.matches(text, &spans));
        values.clear();
        for bound in plan.bound(&spans) {
            black_box(bound.value(text, true, &mut values).is_ok());
        }
    });
    let (bytes, literals) = (text.len(), spans.len());
    println!("| {name} | {bytes} | {literals} | {find:.0} | {hit:.0} | {whole:.0} |");
}

/// Nanoseconds per turn, of the best round. Rounds are many and short: some fit between two
/// interruptions.
fn best(mut turn: impl FnMut()) -> f64 {
    const TURNS: u32 = 100;
    let mut best = Duration::MAX;
    for _ in 0..5_000 {
        let start = Instant::now();
        for _ in 0..TURNS {
            turn();
        }
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / f64::from(TURNS)
}

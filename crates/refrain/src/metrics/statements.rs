//! The metrics of the statements that took most time.

use refrain_pg::snapshot::StatementView;

use super::text::{Text, seconds};

/// Characters of a text that are shown.
const TEXT_MAX: usize = 120;

/// A counter of a statement: its name, its help text, and the function that reads it.
type Counter = (&'static str, &'static str, fn(&StatementView) -> u64);

const COUNTERS: [Counter; 3] = [
    ("calls", "Commands of the statement that were completed.", |it| it.figures.counts.calls),
    ("rows", "Rows that the statement returned or changed.", |it| it.figures.counts.rows),
    ("errors", "Commands of the statement that failed.", |it| it.figures.counts.errors),
];

/// Writes the figures of the statements that took most time, so many of them.
pub(super) fn write(text: &mut Text, mut statements: Vec<StatementView>, most: usize) {
    let time = |it: &StatementView| it.figures.counts.time_us;
    statements.retain(|it| it.figures.counts.calls + it.figures.counts.errors > 0);
    statements.sort_by_key(|it| (std::cmp::Reverse(time(it)), it.id));
    statements.truncate(most);
    if statements.is_empty() {
        return;
    }
    let rows: Vec<_> = statements.iter().map(|it| (it, it.id.to_string(), shown(it))).collect();
    for (name, help, value) in COUNTERS {
        let name = format!("refrain_statement_{name}_total");
        text.family(&name, "counter", help);
        for row in &rows {
            text.sample(&name, &labels(row), value(row.0));
        }
    }
    let name = "refrain_statement_seconds";
    text.family(name, "summary", "Time from a command of the statement to its completion.");
    for row in &rows {
        let (labels, figures) = (labels(row), &row.0.figures);
        for (quantile, part) in [("0.5", 0.5), ("0.99", 0.99)] {
            let labels = [&labels[..], &[("quantile", quantile)]].concat();
            text.sample(name, &labels, seconds(figures.quantile_us(part)));
        }
        text.sample(&format!("{name}_sum"), &labels, seconds(figures.counts.time_us));
        text.sample(&format!("{name}_count"), &labels, figures.counts.calls);
    }
}

/// Returns the labels of a statement with its number and text.
fn labels<'a>(
    (statement, id, shown): &'a (&StatementView, String, String),
) -> [(&'static str, &'a str); 4] {
    let (database, user) = (&*statement.database, &*statement.user);
    [("database", database), ("user", user), ("statement", id), ("text", shown)]
}

/// Returns the beginning of a statement's text, on one line.
fn shown(statement: &StatementView) -> String {
    let words = statement.text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

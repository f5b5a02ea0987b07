//! The metrics of replication streams, by database.

use refrain_pg::ChangesView;
use refrain_pool::stats::Histogram;

use super::text::Text;

/// A figure of a stream: its name, type and help text, and the function that reads it.
type StreamFigure = (&'static str, &'static str, &'static str, fn(&ChangesView) -> u64);

const FIGURES: [StreamFigure; 9] = [
    ("live", "gauge", "1 if the replication stream of the database is live, else 0.", |view| {
        (view.state == "live").into()
    }),
    ("proofs_total", "counter", "Proofs that all commits up to a moment were heard of.", |view| {
        view.proofs
    }),
    ("snapshots_total", "counter", "Snapshots that show which commits are visible.", |view| {
        view.snapshots
    }),
    ("commits_total", "counter", "Commits with changes that the stream has brought.", |view| {
        view.commits
    }),
    (
        "voids_total",
        "counter",
        "Tables, names of tables and databases whose replies such a commit has voided.",
        |view| view.voids,
    ),
    ("losses_total", "counter", "Times that the stream was lost, or could not begin.", |view| {
        view.losses
    }),
    ("doubts", "gauge", "Commits that may not be visible to others yet.", |view| view.doubts),
    ("tables", "gauge", "Tables that replies read whose rule depends on the stream.", |view| {
        view.tables
    }),
    (
        "uncovered_tables",
        "gauge",
        "Those of them whose changes are not in the stream (SHOW CACHE COVERAGE).",
        |view| view.uncovered,
    ),
];

/// A histogram of a stream: its name, its help text, and the function that reads it.
type StreamTimes = (&'static str, &'static str, fn(&ChangesView) -> &Histogram);

const TIMES: [StreamTimes; 2] = [
    ("lag", "Time until a proof, from its question on, in seconds.", |view| &view.lag),
    ("proof_age", "Age of a proof when the next one came, in seconds.", |view| &view.age),
];

/// Writes the figures of all streams that are followed.
pub(super) fn write(text: &mut Text, streams: &[ChangesView]) {
    if streams.is_empty() {
        return;
    }
    for (name, kind, help, value) in FIGURES {
        let name = format!("refrain_cache_changes_{name}");
        text.family(&name, kind, help);
        for view in streams {
            text.sample(&name, &[("database", &view.database)], value(view));
        }
    }
    for (name, help, histogram) in TIMES {
        let name = format!("refrain_cache_changes_{name}_seconds");
        text.family(&name, "histogram", help);
        for view in streams {
            text.histogram(&name, &[("database", &view.database)], histogram(view));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_its_figures() {
        let view = |database: &str, state| ChangesView {
            database: database.to_owned(),
            state,
            uncovered: 3,
            ..ChangesView::default()
        };
        let mut text = Text::new(false);
        write(&mut text, &[]);
        write(&mut text, &[view("one", "live"), view("two", "starting")]);
        let text = text.end();
        for line in [
            "refrain_cache_changes_live{database=\"one\"} 1",
            "refrain_cache_changes_live{database=\"two\"} 0",
            "refrain_cache_changes_uncovered_tables{database=\"two\"} 3",
            "refrain_cache_changes_lag_seconds_count{database=\"one\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert_eq!(
            text.matches("# TYPE refrain_cache_changes_proof_age_seconds histogram").count(),
            1
        );
    }
}

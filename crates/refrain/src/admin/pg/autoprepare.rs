//! Autoprepare in the console's listings.
//!
//! Each core has normalized queries of its own. The listing has one row for each text: it adds up
//! the counters, and shows the state of the core that has seen the text most often.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_grammar::{Effect, Explained};
use refrain_pg::Snapshot;
use refrain_pg::snapshot::NormalizedQueryRow;
use refrain_sql::normalize::Reason;

use crate::admin::table::{Column, Listing, bigint, int, nullable, signed, table, text};
use crate::console::{Part, Reply};

/// `SHOW AUTOPREPARE`: normalized queries, the most seen first.
pub(in crate::admin) const TEMPLATES: Listing<NormalizedQueryRow> = Listing {
    columns: &[
        text("database", |row| row.database.to_string()),
        text("user", |row| row.user.to_string()),
        text("state", |row| row.state.to_owned()),
        text("reason", |row| row.reason.clone()),
        bigint("seen", |row| row.seen),
        bigint("hits", |row| row.hits),
        signed("time_saved_us", |row| row.time_saved_us),
        int("slow_texts", |row| row.slow_texts),
        int("kept", |row| row.kept),
        bigint("demotions", |row| row.demotions),
        text("protocol", |row| row.protocol.to_owned()),
        text("template", |row| row.query.clone()),
    ],
    rows: |view| merged(&view.snapshots),
};

/// Returns the columns for a literal of a text: its place, the decision on it, and the reason.
fn literals<'a>() -> [Column<Explained<'a>>; 5] {
    [
        int("position", |row| row.place as u64),
        text("literal", |row| row.literal.to_owned()),
        text("class", |row| row.class.name().to_owned()),
        text("decision", |row| match row.effect {
            Effect::Keep | Effect::Never => "keep".to_owned(),
            Effect::Parameter => "parameter".to_owned(),
        }),
        text("reason", |row| reason_text(row.reason)),
    ]
}

fn reason_text(reason: &Reason) -> String {
    format!("{}: {}", reason.name, reason.text)
}

/// The outcome for a text: whether autoprepare would prepare it, and why.
struct Outcome {
    template: Option<String>,
    decision: &'static str,
    reason: String,
}

const OUTCOME: &[Column<Outcome>] = &[
    nullable("template", |row| row.template.clone()),
    text("decision", |row| row.decision.to_owned()),
    text("reason", |row| row.reason.clone()),
];

/// Returns the reply to `EXPLAIN AUTOPREPARE`: the decision on each literal of a text, and then
/// the one on the text. A server has the last word about whether it can prepare the text in this
/// form.
pub(in crate::admin) fn explain(sql: &str, literals_max: usize) -> Reply {
    let mut reply = Reply::new();
    let outcome = match refrain_grammar::explain(sql, literals_max) {
        Ok(explanation) => {
            reply.push(Part::Rows(table(&literals(), &explanation.literals)));
            reply.push(Part::Done("EXPLAIN".into()));
            let reason = "if its verification by a server succeeds".to_owned();
            Outcome { template: Some(explanation.normalized), decision: "prepare", reason }
        }
        Err(why) => Outcome { template: None, decision: "run as sent", reason: reason_text(why) },
    };
    reply.push(Part::Rows(table(OUTCOME, &[outcome])));
    reply.push(Part::Done("EXPLAIN".into()));
    reply
}

/// Returns the normalized queries of all cores, added up by text, the most seen first.
pub(super) fn merged(snapshots: &[Snapshot]) -> Vec<NormalizedQueryRow> {
    let mut rows: BTreeMap<_, NormalizedQueryRow> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.protocol.normalized_queries) {
        let (database, user) = (Arc::clone(&part.database), Arc::clone(&part.user));
        let key = (database, user, part.query.clone(), part.protocol);
        match rows.get_mut(&key) {
            Some(sum) => add(sum, part),
            None => drop(rows.insert(key, part.clone())),
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.seen));
    rows
}

fn add(sum: &mut NormalizedQueryRow, part: &NormalizedQueryRow) {
    if part.seen > sum.seen {
        sum.state = part.state;
        sum.reason.clone_from(&part.reason);
    }
    sum.seen += part.seen;
    sum.hits += part.hits;
    sum.time_saved_us += part.time_saved_us;
    sum.slow_texts += part.slow_texts;
    sum.kept = sum.kept.max(part.kept);
    sum.demotions += part.demotions;
}

#[cfg(test)]
mod tests {
    use refrain_pool::{Core, Now};

    use super::*;

    fn row(query: &str, state: &'static str, seen: u64) -> NormalizedQueryRow {
        NormalizedQueryRow {
            database: "app".into(),
            user: "me".into(),
            query: query.to_owned(),
            protocol: "simple",
            state,
            reason: String::new(),
            seen,
            hits: seen / 2,
            time_saved_us: -10,
            slow_texts: 1,
            kept: 1,
            demotions: 0,
        }
    }

    fn core(number: u16, normalized_queries: Vec<NormalizedQueryRow>) -> Snapshot {
        Snapshot {
            core: Core(number),
            now: Now(0),
            forgotten: refrain_pg::Counters::default(),
            pools: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            protocol: refrain_pg::snapshot::CoreView {
                normalized_queries,
                time_saved_us: 0,
                cache_rules: vec![],
                repeats: vec![],
            },
            commands: Vec::new(),
            connections: 0,
            logging_in: 0,
        }
    }

    #[test]
    fn the_templates_of_all_cores_are_added_up() {
        let first = vec![row("select $1", "counting", 2), row("table t", "never", 3)];
        let rows = merged(&[core(0, first), core(1, vec![row("select $1", "ready", 8)])]);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (&*row.query, row.state, row.seen, row.hits, row.time_saved_us, row.kept))
            .collect();
        assert_eq!(
            shown,
            [("select $1", "ready", 10, 5, -20, 1), ("table t", "never", 3, 1, -10, 1)]
        );
    }
}

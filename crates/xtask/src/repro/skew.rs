//! A table in which one key has nearly all rows. The plan for that key walks along the primary key
//! and stops at the first row. The generic plan, which is made for a rare value, fetches all rows
//! of the key and takes the smallest.

use anyhow::Result;

use super::Plan;
use super::figures::Outcome;
use super::house::House;
use super::load::outcome;
use super::verdict::Verdict;
use crate::soak::dice::Dice;

use crate::bench::session::Session;

/// Number of rows of the key 0.
const FREQUENT: u64 = 190_000;
/// Number of keys that have one row each.
const RARE: u64 = 10_000;

/// Measures queries of which `percent` in a hundred are about the frequent key.
pub(super) fn run(plan: &Plan, percent: u64) -> Result<Verdict> {
    let house = House::start(plan, &setup(), "")?;
    let request = |session: &mut Session, dice: &mut Dice| -> Result<Outcome> {
        let key = if dice.percent(percent) { 0 } else { 1 + dice.below(RARE) };
        let text = format!("SELECT min(id) FROM skew WHERE k = {key}");
        let first = if key == 0 { 1 } else { FREQUENT + key };
        Ok(outcome(&session.query(&text)?, Some(&first.to_string())))
    };
    let rounds = house.rounds(plan, &request, |_| Ok(()))?;
    house.print_autoprepare()?;
    Ok(rounds.not_slower())
}

/// Returns SQL that creates the table. The frequent key's rows come first, then the rare keys in
/// their order. So PostgreSQL's estimate of an index scan for an unknown value is as cheap as that
/// for a rare value.
fn setup() -> String {
    format!(
        "CREATE TABLE skew (id int PRIMARY KEY, k int NOT NULL, v text NOT NULL); \
         INSERT INTO skew SELECT n, greatest(0, n - {FREQUENT}), 'value ' || n \
         FROM generate_series(1, {}) n; \
         CREATE INDEX ON skew (k); ANALYZE skew",
        FREQUENT + RARE
    )
}

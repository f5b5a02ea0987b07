//! One key has nearly all rows. The plan for it walks along the primary key and stops at the first row; the plan that PostgreSQL
//! keeps, since nearly all values are rare, fetches all rows of the key and takes the smallest.

use anyhow::Result;

use super::Plan;
use super::figures::Outcome;
use super::house::House;
use super::load::outcome;
use super::verdict::Verdict;
use crate::soak::dice::Dice;

use crate::bench::session::Session;

/// Rows that the key 0 has.
const FREQUENT: u64 = 190_000;
/// Keys that have one row each.
const RARE: u64 = 10_000;

/// So many of a hundred queries are about the frequent key.
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

/// The frequent key's rows come first, and the rare ones in their order: so a scan of an index for a value whose rows
/// nobody has counted seems as cheap as one for a rare value.
fn setup() -> String {
    format!(
        "CREATE TABLE skew (id int PRIMARY KEY, k int NOT NULL, v text NOT NULL); \
         INSERT INTO skew SELECT n, greatest(0, n - {FREQUENT}), 'value ' || n \
         FROM generate_series(1, {}) n; \
         CREATE INDEX ON skew (k); ANALYZE skew",
        FREQUENT + RARE
    )
}

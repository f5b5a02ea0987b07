//! A lookup in a table of 200 list partitions. With a literal PostgreSQL plans for the one
//! partition that has the value. A generic plan has all partitions, and each execution locks them
//! all.

use anyhow::Result;

use super::Plan;
use super::figures::Outcome;
use super::house::House;
use super::load::outcome;
use super::verdict::Verdict;
use crate::soak::dice::Dice;

use crate::bench::session::Session;

/// Number of partitions, each for one region.
const REGIONS: u64 = 200;
/// Number of rows of each partition.
const ROWS: u64 = 500;

/// Measures lookups by region and key.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    let house = House::start(plan, &setup(), "")?;
    let request = |session: &mut Session, dice: &mut Dice| -> Result<Outcome> {
        let (region, id) = (dice.below(REGIONS), dice.below(ROWS));
        let text = format!("SELECT v FROM sales WHERE region = {region} AND id = {id}");
        Ok(outcome(&session.query(&text)?, Some(&format!("{region} {id}"))))
    };
    let rounds = house.rounds(plan, &request, |_| Ok(()))?;
    house.print_autoprepare()?;
    Ok(rounds.not_slower())
}

fn setup() -> String {
    let mut sql = "CREATE TABLE sales (region int NOT NULL, id int NOT NULL, v text NOT NULL, \
                   PRIMARY KEY (region, id)) PARTITION BY LIST (region); "
        .to_owned();
    for region in 0..REGIONS {
        sql += &format!("CREATE TABLE s{region} PARTITION OF sales FOR VALUES IN ({region}); ");
    }
    sql + &format!(
        "INSERT INTO sales SELECT r, n, r || ' ' || n FROM generate_series(0, {}) r, \
         generate_series(0, {}) n; ANALYZE",
        REGIONS - 1,
        ROWS - 1
    )
}

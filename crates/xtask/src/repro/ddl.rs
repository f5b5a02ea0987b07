//! Schema changes under transactions whose queries autoprepare prepares (B1, B2): no transaction
//! may fail that would not fail directly.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::session::Session;
use crate::soak::dice::Dice;

use super::Plan;
use super::figures::Outcome;
use super::house::{DATABASE, House, Rounds, WAYS, Way};
use super::load::outcome;
use super::verdict::Verdict;

/// Number of rows of the table in [`outside`].
const ROWS: u64 = 1_000;
/// Number of rows of the table in [`through`], which rewrites it.
const REWRITTEN: u64 = 300_000;
/// Number of columns that are added and dropped in a turn.
const CHANGES: u32 = 20;
/// Time between two changes.
const REST: Duration = Duration::from_millis(100);
/// The longest that a session with schema changes waits for a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds and drops columns directly at the server while transactions read all columns.
pub(super) fn outside(plan: &Plan) -> Result<Verdict> {
    let house = House::start(plan, &setup(ROWS), "")?;
    let request = |session: &mut Session, dice: &mut Dice| -> Result<Outcome> {
        let id = 1 + dice.below(ROWS);
        block(session, &[&format!("SELECT * FROM t WHERE id = {id}")])
    };
    let rounds = house.rounds(plan, &request, |_| change(house.port(Way::Direct)))?;
    house.print_autoprepare()?;
    Ok(none_lost(&rounds))
}

/// Rewrites a table, and adds and drops columns, by the same way as the clients' queries.
pub(super) fn through(plan: &Plan) -> Result<Verdict> {
    let house = House::start(plan, &setup(REWRITTEN), "")?;
    let request = |session: &mut Session, dice: &mut Dice| -> Result<Outcome> {
        let id = 1 + dice.below(REWRITTEN);
        let read = format!("SELECT * FROM t WHERE id = {id}");
        block(session, &[&read, &format!("UPDATE t SET n = n + 1 WHERE id = {id}")])
    };
    let rounds = house.rounds(plan, &request, |way| {
        thread::sleep(REST);
        let mut session = Session::open(house.port(way), DATABASE, PATIENCE)?;
        run(&mut session, "ALTER TABLE t ADD COLUMN big text DEFAULT md5(random()::text)")?;
        run(&mut session, "ALTER TABLE t DROP COLUMN big")?;
        change(house.port(way))
    })?;
    house.print_autoprepare()?;
    Ok(none_lost(&rounds))
}

fn setup(rows: u64) -> String {
    format!(
        "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL); \
         INSERT INTO t SELECT n, 0 FROM generate_series(1, {rows}) n; ANALYZE t"
    )
}

/// Runs one transaction, which counts as failed if a statement in it fails.
fn block(session: &mut Session, texts: &[&str]) -> Result<Outcome> {
    session.query("BEGIN")?;
    let mut failed = None;
    for text in texts {
        let answer = session.query(text)?;
        if failed.is_none() && !answer.errors.is_empty() {
            failed = Some(outcome(&answer, None));
        }
    }
    session.query(if failed.is_some() { "ROLLBACK" } else { "COMMIT" })?;
    Ok(failed.unwrap_or(Outcome::Right))
}

/// Adds and drops a column again and again.
fn change(port: u16) -> Result<()> {
    let mut session = Session::open(port, DATABASE, PATIENCE)?;
    for _ in 0..CHANGES {
        run(&mut session, "ALTER TABLE t ADD COLUMN z int")?;
        thread::sleep(REST);
        run(&mut session, "ALTER TABLE t DROP COLUMN z")?;
        thread::sleep(REST);
    }
    Ok(())
}

fn run(session: &mut Session, text: &str) -> Result<()> {
    let answer = session.query(text)?;
    ensure!(answer.errors.is_empty(), "{text}: {:?}", answer.errors);
    Ok(())
}

fn none_lost(rounds: &Rounds) -> Verdict {
    let mut verdict = Verdict::default();
    for way in WAYS {
        let figures = rounds.of(way);
        let all = figures.answered() as u64 + figures.failed;
        let what = format!("{way}: {} of {all} transactions failed", figures.failed);
        verdict.check(what, figures.failed == 0 && all > 0);
    }
    verdict
}

//! The canary: a client that makes no mistakes, and checks all its replies.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::session::{self, Answer, Session};
use crate::soak::dice::Dice;

use super::door::Door;
use super::tally::Tally;

/// Time in which PostgreSQL recovers from a crash.
const RECOVERY: Duration = Duration::from_secs(5);
/// A word in every value that a canary asks for.
pub(super) const WORD: &str = "canary";

/// Runs sessions until the run is over. Every wrong reply and error is a finding, unless PostgreSQL
/// itself has crashed meanwhile, which `crashes` counts.
pub(super) fn run(
    door: Door<'_>,
    database: &str,
    seed: u64,
    tally: &Tally,
    crashes: impl Fn() -> usize,
) {
    let mut dice = Dice::new(seed);
    let (mut number, mut known) = (0, 0);
    while !tally.is_over() {
        let begun = Instant::now();
        let ended = session(door, database, &mut dice, &mut number, tally);
        let Err(error) = ended else { continue };
        // PostgreSQL logs a crash a moment later.
        thread::sleep(Duration::from_millis(300));
        let all = crashes();
        if std::mem::replace(&mut known, all) < all {
            thread::sleep(RECOVERY);
        } else {
            let waited = begun.elapsed().as_millis();
            tally.wrong.add(format!("canary of {database}, after {waited} ms: {error:#}"));
        }
    }
}

fn session(
    door: Door<'_>,
    database: &str,
    dice: &mut Dice,
    number: &mut u64,
    tally: &Tally,
) -> Result<()> {
    let mut session = Session::log_in(door.open(*number)?, database)?;
    session
        .send(&session::parse("s", "select $1::text || '-s', n from generate_series(1, 3) n"))?;
    session.send(&session::sync())?;
    ensure!(session.answer()?.errors.is_empty(), "a Parse is refused");
    for _ in 0..=dice.below(200) {
        if tally.is_over() {
            break;
        }
        *number += 1;
        request(&mut session, dice, *number)?;
        tally.requests.fetch_add(1, Relaxed);
    }
    session.close()
}

fn request(session: &mut Session, dice: &mut Dice, number: u64) -> Result<()> {
    let tag = format!("{WORD}-{number}");
    match dice.below(4) {
        0 => {
            let rows = dice.rows();
            let text = format!("select '{tag}', n from generate_series(1, {rows}) n");
            check(&session.query(&text)?, &tag, rows)
        }
        1 => {
            session.send(&session::run("s", &[&tag]))?;
            check(&session.answer()?, &format!("{tag}-s"), 3)
        }
        2 => {
            ensure!(session.query("begin")?.tags == ["BEGIN"], "no transaction begins");
            let text = format!("select '{tag}', 1");
            check(&session.query(&text)?, &tag, 1)?;
            ensure!(session.query("commit")?.tags == ["COMMIT"], "no transaction is committed");
            Ok(())
        }
        _ => {
            let answer = session.query("select 1/0")?;
            ensure!(
                answer.errors.iter().map(|(code, _)| code.as_str()).eq(["22012"]),
                "{:?} for a division by zero",
                answer.errors
            );
            Ok(())
        }
    }
}

fn check(answer: &Answer, tag: &str, rows: u64) -> Result<()> {
    ensure!(answer.errors.is_empty(), "{:?} for {tag}", answer.errors);
    let right = answer.rows.iter().zip(1u64..).all(|(row, number)| {
        let values: [&[u8]; 2] = [tag.as_bytes(), &number.to_string().into_bytes()];
        row.iter().eq(values)
    });
    let (count, first) = (answer.rows.len(), answer.rows.first());
    ensure!(right && count as u64 == rows, "{count} rows for {rows} of {tag}, the first {first:?}");
    Ok(())
}

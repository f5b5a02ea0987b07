//! The canary: a client that does nothing wrong, and knows what it has to be answered.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::session::{self, Answer, Session};
use crate::soak::dice::Dice;

use super::tally::Tally;

/// Nobody waits longer than this for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which PostgreSQL is there again after it has died.
const RECOVERY: Duration = Duration::from_secs(5);
/// Stands in every value that a canary asks for.
pub(super) const SONG: &str = "canary";

/// Asks until all is over; whatever is not as it should be is a finding, unless PostgreSQL itself has died meanwhile:
/// `deaths` counts that.
pub(super) fn sing(
    port: u16,
    database: &str,
    seed: u64,
    tally: &Tally,
    deaths: impl Fn() -> usize,
) {
    let mut dice = Dice::new(seed);
    let (mut number, mut known) = (0, 0);
    while !tally.is_over() {
        let begun = Instant::now();
        let sung = session(port, database, &mut dice, &mut number, tally);
        let Err(error) = sung else { continue };
        // It says so a moment later.
        thread::sleep(Duration::from_millis(300));
        let died = deaths();
        if std::mem::replace(&mut known, died) < died {
            thread::sleep(RECOVERY);
        } else {
            let waited = begun.elapsed().as_millis();
            tally.wrong.add(format!("canary of {database}, after {waited} ms: {error:#}"));
        }
    }
}

fn session(
    port: u16,
    database: &str,
    dice: &mut Dice,
    number: &mut u64,
    tally: &Tally,
) -> Result<()> {
    let mut session = Session::open(port, database, PATIENCE)?;
    session
        .send(&session::parse("s", "select $1::text || '-s', n from generate_series(1, 3) n"))?;
    session.send(&session::sync())?;
    ensure!(session.answer()?.errors.is_empty(), "a Parse is refused");
    for _ in 0..=dice.below(200) {
        if tally.is_over() {
            break;
        }
        *number += 1;
        song(&mut session, dice, *number)?;
        tally.songs.fetch_add(1, Relaxed);
    }
    session.close()
}

fn song(session: &mut Session, dice: &mut Dice, number: u64) -> Result<()> {
    let tag = format!("{SONG}-{number}");
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

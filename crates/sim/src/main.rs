//! `sim`: runs seeds of the simulation, or replays one.
//!
//!     sim --seeds 10000 [--from N] [--plant NAME] [--twice]
//!     sim --seed 42 --trace [--lines 40] [--plant NAME]

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use refrain_sim::lookups::Tally;
use refrain_sim::panics::quiet_panics;
use refrain_sim::plant::{PLANTS, Plant};
use refrain_sim::run::{Report, run, run_twice};
use refrain_sim::world::Sharing;

/// The arguments of the command line.
#[derive(Debug, Default)]
struct Asked {
    seeds: u64,
    from: u64,
    one: Option<u64>,
    trace: bool,
    twice: bool,
    lines: usize,
    plant: Option<Plant>,
    stop_after: u64,
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(why) => {
            say(&why);
            return ExitCode::from(2);
        }
    };
    quiet_panics(|seed, text| {
        if cfg!(panic = "abort") {
            say(&format!("seed {seed}: assertion: {text}"));
        }
    });
    match asked.one {
        Some(seed) => replay(seed, &asked),
        None => many(&asked),
    }
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked { seeds: 1000, lines: 40, stop_after: 20, ..Asked::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or(format!("{word}: a number is missing"))?;
            value.parse::<u64>().map_err(|_| format!("{word}: {value} is not a number"))
        };
        match word.as_str() {
            "--seeds" => asked.seeds = number()?,
            "--from" => asked.from = number()?,
            "--seed" => asked.one = Some(number()?),
            "--lines" => asked.lines = usize::try_from(number()?).unwrap_or(40),
            "--stop-after" => asked.stop_after = number()?,
            "--trace" => asked.trace = true,
            "--twice" => asked.twice = true,
            "--plant" => {
                let name = words.next().unwrap_or_default();
                let names: Vec<&str> = PLANTS.iter().map(|(name, _)| *name).collect();
                let known = || format!("--plant: one of {}", names.join(", "));
                asked.plant = Some(Plant::named(&name).ok_or_else(known)?);
            }
            _ => {
                return Err("sim [--seeds N] [--from N] [--twice] [--stop-after N] | \
                    --seed N [--trace] [--lines N]; both: [--plant NAME]"
                    .to_owned());
            }
        }
    }
    Ok(asked)
}

fn replay(seed: u64, asked: &Asked) -> ExitCode {
    let lines = if asked.trace { asked.lines } else { 0 };
    let report = run(seed, asked.plant, lines);
    report.lines.iter().for_each(|line| say(line));
    say(&format!("seed {seed}: {} events, hash {:016x}", report.events, report.hash));
    outcome(&report)
}

fn outcome(report: &Report) -> ExitCode {
    match &report.violation {
        Some(violation) => {
            say(&format!("seed {}: {violation}", report.seed));
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn many(asked: &Asked) -> ExitCode {
    let begun = Instant::now();
    let (mut done, mut violations, mut events, mut promotions) = (0, 0, 0, 0);
    let (mut sharing, mut logins) = (Sharing::default(), Tally::default());
    for seed in asked.from..asked.from + asked.seeds {
        let report =
            if asked.twice { run_twice(seed, asked.plant) } else { run(seed, asked.plant, 0) };
        done += 1;
        events += report.events;
        sharing.add(report.sharing);
        logins.add(report.logins);
        promotions += report.promotions;
        if report.violation.is_some() {
            violations += 1;
            outcome(&report);
            if violations == asked.stop_after {
                break;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!("{done} seeds, {violations} violations, {events} events, {seconds:.1} seconds"));
    let Sharing { shared, resent, moved, hits, overtaken, away, returned } = sharing;
    say(&format!("requests: {shared} shared, {resent} resent, {moved} moved"));
    say(&format!("replies: {hits} from the cache, {overtaken} overtaken by writes"));
    let Tally { let_in, refused, unavailable, late, lookups } = logins;
    say(&format!(
        "logins: {let_in} let in, {refused} refused, {unavailable} without an answer, {late} too \
         late; {lookups} lookups"
    ));
    say(&format!("hosts: {promotions} promoted; {away} reads on standbys, {returned} sent back"));
    if violations > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn say(line: &str) {
    // If standard output is closed, there is no place to report that.
    let _ = writeln!(std::io::stdout(), "{line}");
}

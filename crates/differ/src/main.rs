//! Command line of the differential test: runs episodes, reports and shrinks differences.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports on standard output")]

use refrain_differ::client::{Stop, Tally};
use refrain_differ::console::Counters;
use refrain_differ::episode::{Failure, Outcome, generate};
use refrain_differ::mask::MASKS;
use refrain_differ::options::{Options, help};
use refrain_differ::passes::PASSES;
use refrain_differ::report;
use refrain_differ::rng::Rng;
use refrain_differ::setup::Admin;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() || args.iter().any(|arg| arg == "--help") {
        println!("{}", help());
        return ExitCode::from(2);
    }
    match Options::parse(args).and_then(|options| run(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("differ: {error}");
            ExitCode::from(2)
        }
    }
}

#[derive(Default)]
struct Totals {
    episodes: u64,
    segments: u64,
    messages: u64,
    differences: u64,
    tally: Tally,
}

/// Runs all episodes and returns the number of those that differed.
fn run(options: &Options) -> Result<u64, String> {
    let plan = &options.plan;
    let mut admin = Admin::new(&plan.peers)?;
    let mut totals = Totals::default();
    let before = Counters::ask(&plan.peers);
    let started = Instant::now();
    while totals.segments < options.segments && totals.differences < options.keep_going {
        let seed = match options.replay {
            Some(seed) => seed,
            None => Rng::derive(options.seed, totals.episodes),
        };
        let outcome = generate(plan, &mut admin, seed)?;
        totals.add(&outcome);
        if options.verbose && options.replay.is_some() {
            report::print_steps(&outcome.steps);
        }
        match &outcome.stop {
            None | Some(Stop::Passed) => {}
            Some(Stop::Broken(error)) => {
                report::print_steps(&outcome.steps);
                return Err(format!("episode {seed}: {error}"));
            }
            Some(Stop::Differs(difference)) => {
                totals.differences += 1;
                let mut failure = Failure::new(plan, &mut admin, seed, &difference.what);
                let again = (!options.whole).then_some(&mut failure);
                report::difference(seed, &outcome.steps, difference, again);
            }
        }
        if options.replay.is_some() {
            break;
        }
    }
    if options.verbose {
        report::kinds("PostgreSQL's", &totals.tally);
    }
    totals.print(started.elapsed().as_secs_f64());
    match before.and_then(|before| Ok(Counters::ask(&plan.peers)?.since(before))) {
        Ok(counted) if counted.shared < options.shared => {
            Err(format!("the proxy shared {} requests, not {}", counted.shared, options.shared))
        }
        Ok(counted) if counted.hits < options.hits => {
            Err(format!("the proxy's cache gave {} replies, not {}", counted.hits, options.hits))
        }
        Ok(Counters { shared, resent, hits }) => {
            println!(
                "the proxy shared {shared} requests, sent {resent} again, and gave {hits} replies \
                 from its cache"
            );
            Ok(totals.differences)
        }
        Err(error) if options.shared > 0 || options.hits > 0 => Err(error),
        // A server, for a test of this program, has no such counters.
        Err(_) => Ok(totals.differences),
    }
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.episodes += 1;
        self.segments += outcome.segments;
        self.messages += outcome.messages;
        self.tally.add(&outcome.tally);
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    fn print(&self, seconds: f64) {
        println!(
            "{} differences in {} segments ({} messages, {} episodes), {:.0} segments/s",
            self.differences,
            self.segments,
            self.messages,
            self.episodes,
            self.segments as f64 / seconds
        );
        let rules = MASKS.iter().map(|mask| (mask.name, mask.reason)).chain(PASSES);
        report::rules(rules, &self.tally);
    }
}

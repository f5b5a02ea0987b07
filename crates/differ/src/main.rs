//! Command line of the differential test: runs episodes, reports and shrinks differences.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports on standard output")]

use refrain_differ::client::{Difference, Stop, Tally};
use refrain_differ::console::Counters;
use refrain_differ::episode::{Failure, Outcome, generate};
use refrain_differ::mask::MASKS;
use refrain_differ::options::{Options, help};
use refrain_differ::passes::PASSES;
use refrain_differ::plan::Step;
use refrain_differ::reply::Frame;
use refrain_differ::rng::Rng;
use refrain_differ::setup::Admin;
use refrain_differ::shrink::shrink;
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
            print_steps(&outcome.steps);
        }
        match &outcome.stop {
            None | Some(Stop::Passed) => {}
            Some(Stop::Broken(error)) => {
                print_steps(&outcome.steps);
                return Err(format!("episode {seed}: {error}"));
            }
            Some(Stop::Differs(difference)) => {
                totals.differences += 1;
                report(options, &mut admin, seed, &outcome, difference);
            }
        }
        if options.replay.is_some() {
            break;
        }
    }
    if options.verbose {
        totals.print_replies();
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

    fn print_replies(&self) {
        let all: Vec<_> =
            self.tally.replies.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        println!("PostgreSQL's replies: {}", all.join(", "));
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
        for ((name, reason), uses) in rules.zip(self.tally.uses).filter(|(_, uses)| *uses > 0) {
            println!("  {uses} times {name}: {reason}");
        }
    }
}

fn report(
    options: &Options,
    admin: &mut Admin,
    seed: u64,
    outcome: &Outcome,
    difference: &Difference,
) {
    println!("DIFFERENCE in episode {seed}, step {}: {}", outcome.steps.len(), difference.what);
    println!("again: the same options with --replay {seed}");
    println!("the last step was");
    print_steps(&outcome.steps[outcome.steps.len().saturating_sub(1)..]);
    print_both(difference);
    if options.whole {
        return;
    }
    let mut failure = Failure::new(&options.plan, admin, seed, &difference.what);
    match shrink(&mut failure, &outcome.steps) {
        None => println!("not the same when run again: it may depend on the choice of server"),
        Some((steps, difference)) => {
            println!("shrunk from {} to {} steps:", outcome.steps.len(), steps.len());
            print_steps(&steps);
            print_both(&difference);
        }
    }
    println!();
}

fn print_steps(steps: &[Step]) {
    for (number, step) in steps.iter().enumerate() {
        println!(" step {}", number + 1);
        print!("{step}");
    }
}

fn print_both(difference: &Difference) {
    print_frames("direct", &difference.direct);
    print_frames("proxied", &difference.proxied);
}

fn print_frames(side: &str, frames: &[Frame]) {
    println!(" {side}:");
    frames.iter().take(40).for_each(|frame| println!("    {frame}"));
    if frames.len() > 40 {
        println!("    … {} more", frames.len() - 40);
    }
}

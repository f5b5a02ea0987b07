//! Command line of the differential test: runs episodes, reports and shrinks differences.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool reports on standard output")]

use refrain_differ::rng::Rng;
use refrain_differ::shrink::shrink;
use refrain_differ_mysql::client::{Difference, Stop, Tally};
use refrain_differ_mysql::episode::{Failure, Outcome, generate};
use refrain_differ_mysql::mask::MASKS;
use refrain_differ_mysql::options::{Options, help};
use refrain_differ_mysql::packet::Packet;
use refrain_differ_mysql::passes::PASSES;
use refrain_differ_mysql::plan::Step;
use refrain_differ_mysql::setup::Admin;
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
            println!("differ-mysql: {error}");
            ExitCode::from(2)
        }
    }
}

#[derive(Default)]
struct Totals {
    episodes: u64,
    commands: u64,
    differences: u64,
    tally: Tally,
}

/// Runs all episodes and returns the number of those that differed.
fn run(options: &Options) -> Result<u64, String> {
    let plan = &options.plan;
    let mut admin = Admin::new(&plan.peers)?;
    let mut totals = Totals::default();
    let started = Instant::now();
    while totals.commands < options.segments && totals.differences < options.keep_going {
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
    Ok(totals.differences)
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.episodes += 1;
        self.commands += outcome.commands;
        self.tally.add(&outcome.tally);
    }

    fn print_replies(&self) {
        let all: Vec<_> =
            self.tally.replies.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        println!("the server's replies: {}", all.join(", "));
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    fn print(&self, seconds: f64) {
        println!(
            "{} differences in {} commands ({} episodes), {:.0} commands/s",
            self.differences,
            self.commands,
            self.episodes,
            self.commands as f64 / seconds
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
    print_packets("direct", &difference.direct);
    print_packets("proxied", &difference.proxied);
}

fn print_packets(side: &str, packets: &[Packet]) {
    println!(" {side}:");
    packets.iter().take(40).for_each(|packet| println!("    {packet}"));
    if packets.len() > 40 {
        println!("    … {} more", packets.len() - 40);
    }
}

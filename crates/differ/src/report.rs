//! The report of a run, in any protocol: differences with their steps, and counts.

#![expect(clippy::print_stdout, reason = "the programs print what they find")]

use crate::outcome::{Difference, Tally};
use crate::shrink::{Failed, shrink};
use std::fmt::Display;

/// The most replies of a side that are printed.
const REPLIES_MAX: usize = 40;

/// Prints a difference, and the shortest steps that have it, if the episode can be run again.
pub fn difference<F, R>(
    seed: u64,
    steps: &[F::Step],
    difference: &Difference<R>,
    again: Option<&mut F>,
) where
    F: Failed<Difference = Difference<R>>,
    F::Step: Display,
    R: Display,
{
    println!("DIFFERENCE in episode {seed}, step {}: {}", steps.len(), difference.what);
    println!("again: the same options with --replay {seed}");
    println!("the last step was");
    print_steps(&steps[steps.len().saturating_sub(1)..]);
    print_both(difference);
    let Some(failed) = again else { return };
    match shrink(failed, steps) {
        None => println!("not the same when run again: it may depend on the choice of server"),
        Some((shorter, difference)) => {
            println!("shrunk from {} to {} steps:", steps.len(), shorter.len());
            print_steps(&shorter);
            print_both(&difference);
        }
    }
    println!();
}

/// Prints steps, with their numbers.
pub fn print_steps<S: Display>(steps: &[S]) {
    for (number, step) in steps.iter().enumerate() {
        println!(" step {}", number + 1);
        print!("{step}");
    }
}

fn print_both<R: Display>(difference: &Difference<R>) {
    print_replies("direct", &difference.direct);
    print_replies("proxied", &difference.proxied);
}

fn print_replies<R: Display>(side: &str, replies: &[R]) {
    println!(" {side}:");
    replies.iter().take(REPLIES_MAX).for_each(|reply| println!("    {reply}"));
    if replies.len() > REPLIES_MAX {
        println!("    … {} more", replies.len() - REPLIES_MAX);
    }
}

/// Prints how often each kind of reply came from a server.
pub fn kinds<const N: usize>(server: &str, tally: &Tally<N>) {
    let all: Vec<_> =
        tally.replies.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    println!("{server} replies: {}", all.join(", "));
}

/// Prints the masks and passes that were needed, each with its name and reason, in their order.
pub fn rules<'a, const N: usize>(
    rules: impl Iterator<Item = (&'a str, &'a str)>,
    tally: &Tally<N>,
) {
    for ((name, reason), uses) in rules.zip(tally.uses).filter(|(_, uses)| *uses > 0) {
        println!("  {uses} times {name}: {reason}");
    }
}

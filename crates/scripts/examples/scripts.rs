//! Runs one script: what `cargo xtask bench instructions` counts.
//!
//! `scripts PROTOCOL` lists those of `pg` or `mysql`, with the transactions in a run of each and
//! whether it allocates nothing; `scripts PROTOCOL NAME RUNS` runs one. Scripts of `pg` take
//! options of the program from the variable `SCRIPT_OPTIONS`, to see what one of them costs.

#![expect(clippy::print_stdout, reason = "it is run by hand and by xtask")]

use refrain_scripts::{Script, mysql, pg};

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["pg", rest @ ..] => list_or_run(pg::scripts(), rest),
        ["mysql", rest @ ..] => list_or_run(mysql::scripts(), rest),
        _ => panic!("pg or mysql"),
    }
}

fn list_or_run<S: Script + Send + 'static>(all: Vec<S>, arguments: &[&str]) {
    let &[name, runs] = arguments else {
        for script in all.iter().map(Script::facts) {
            println!("{}\t{}\t{}", script.name, script.transactions, script.lean);
        }
        return;
    };
    let runs: u64 = runs.parse().expect("a number of runs");
    let mut named = all.into_iter().filter(|script| script.facts().name == name);
    let script = named.next().expect("a script of this name");
    // The stack of a thread begins at a page. Where the first one begins depends on the path of the
    // program and on the environment, and the C library copies with fewer instructions what lies
    // well, so the counts would differ from folder to folder.
    let counted = std::thread::spawn(move || run(&script, runs));
    counted.join().expect("the script runs");
}

/// Runs a script once, and then so many times more.
fn run(script: &impl Script, runs: u64) {
    let mut world = script.begin();
    let bytes = script.run(&mut world);
    for _ in 0..runs {
        assert_eq!(script.run(&mut world), bytes, "every run is alike");
    }
}

//! Every `sslmode` of every client library, through Refrain: who is let in and how, who is refused
//! and in whose words, and what Refrain logs.
//!
//! A table of connections (`cases.rs`) is tried by each library (`library.rs`), which runs as one
//! program for all of them. A library that lacks something has a row that says why. `in` counts
//! if the server behind Refrain answers over TLS, and if Refrain's own console says that the client
//! is encrypted, or that it is not.

mod mode;
mod program;
mod relay;
mod middle;
mod library;
mod world;
mod cases;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::{self, Tally};

use self::cases::{Case, Due};
use self::library::{Ability, LIBRARIES, Library};
use self::program::{Answer, Program};
use self::world::{DATABASES, World};

/// The longest that a line of the log may take.
const LOG_MAX: Duration = Duration::from_secs(10);

/// Tries every connection by every library, or by those whose names begin with `only`.
///
/// # Errors
/// If a server or a program cannot run.
pub fn run(only: Option<&str>) -> Result<Tally> {
    let world = World::start()?;
    let mut tally = Tally::default();
    for library in LIBRARIES {
        if only.is_some_and(|name| !library.name.starts_with(name)) {
            continue;
        }
        println!("--- {}", library.name);
        for (ability, why) in library.lacks {
            println!("lacks   {ability:?}: {why}");
        }
        tally += tried(&world, library).with_context(|| library.name)?;
    }
    Ok(tally)
}

fn tried(world: &World, library: &Library) -> Result<Tally> {
    let mut program = Program::start((library.program)()?)?;
    let mut tally = Tally::default();
    for (number, case) in cases::of(library).iter().enumerate() {
        let name = format!("{}-{number}", library.name);
        match attempt(world, library, &mut program, case, &name)? {
            Ok(()) => {
                println!("ok      {}", case.name);
                tally.passed += 1;
            }
            Err(wrong) => {
                command::tell_failure(&format!("FAILED  {}: {wrong}", case.name));
                tally.failed += 1;
            }
        }
    }
    Ok(tally)
}

/// Makes one connection, and says what is wrong with what came of it.
fn attempt(
    world: &World,
    library: &Library,
    program: &mut Program,
    case: &Case,
    name: &str,
) -> Result<Result<(), String>> {
    let refrain = world.refrain(case.door)?;
    let before = refrain.log().len();
    let mut options = vec![
        ("host", "localhost".to_owned()),
        ("port", world.port(case.door)?.to_string()),
        ("name", name.to_owned()),
    ];
    if !case.options.iter().any(|(name, _)| *name == "database") {
        options.push(("database", DATABASES[0].0.to_owned()));
    }
    for (name, value) in library.options.iter().chain(&case.options) {
        let is_file = matches!(*name, "root" | "cert" | "key");
        options.push((name, if is_file { world.file(value) } else { (*value).to_owned() }));
    }
    let answer = program.connect(&options)?;
    if let Err(wrong) = judge(world, library, case, name, &answer)? {
        return Ok(Err(format!("{wrong}; Refrain's log: {}", &refrain.log()[before..])));
    }
    let Some(words) = case.logged else { return Ok(Ok(())) };
    let started = Instant::now();
    while !is_logged(&refrain.log()[before..], words) {
        if started.elapsed() > LOG_MAX {
            let log = refrain.log();
            return Ok(Err(format!("{words:?} is not in the log: {}", &log[before..])));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(Ok(()))
}

/// Whether a line has these words and the address of a client.
fn is_logged(log: &str, words: &str) -> bool {
    log.lines().any(|line| line.contains(words) && line.contains("127.0.0.1:"))
}

/// Says what is wrong with an answer.
fn judge(
    world: &World,
    library: &Library,
    case: &Case,
    name: &str,
    answer: &Answer,
) -> Result<Result<(), String>> {
    let is_due = match (&case.due, answer) {
        (Due::In { is_encrypted, version }, Answer::In(told)) => {
            let tls = world.encryption(case.door, name)?;
            let is_so = tls.as_ref().map(|tls| !tls.is_empty()) == Some(*is_encrypted);
            if !is_so {
                return Ok(Err(format!("{:?} is due, and the console says {tls:?}", case.due)));
            }
            *told == format!("{version} encrypted")
        }
        (Due::Told(state, words), Answer::Refused(its_state, its_words)) => {
            let is_state = state == its_state || !library.has(Ability::Sqlstate);
            is_state && its_words.contains(words)
        }
        (Due::Said(words), Answer::Refused(_, its_words)) => {
            words.iter().any(|words| its_words.contains(words))
        }
        _ => false,
    };
    Ok(if is_due { Ok(()) } else { Err(format!("{:?} is due, and it is {answer:?}", case.due)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_has_words_and_address() {
        let line = "WARN client disconnected: it broke cause=tls client=1 peer=127.0.0.1:5";
        assert!(is_logged(&format!("another\n{line}\n"), "it broke"));
        assert!(!is_logged(line, "it did not"));
        assert!(!is_logged("WARN it broke\nINFO peer=127.0.0.1:5\n", "it broke"));
    }

    #[test]
    fn no_two_connections_of_a_library_have_the_same_name() {
        for library in LIBRARIES {
            let mut names: Vec<_> = cases::of(library).into_iter().map(|case| case.name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{}", library.name);
        }
    }
}

//! Counts of what the hot path costs: instructions by script, and the length of the reading tour.
//!
//! The tour (`docs/LIFE_OF_A_QUERY.md`) is the way of one pooled, prepared query. It is measured by
//! what that query runs, not by the files that the page names.

mod lines;
mod count;
mod kept;

use std::process::Command;

use anyhow::Result;

use crate::command::{self, Tally};

use self::count::Scripts;
use self::kept::{CEILING, Counts};

/// The script of the tour.
const TOUR: &str = "prepared hit";
/// A file of which more lines run belongs to the tour.
const GLANCE_LINES: usize = 20;

/// Counts all and writes the file of the repository, if `write` asks for it.
pub fn bench(write: bool) -> Result<()> {
    let counts = counted()?;
    if write { counts.keep() } else { Ok(()) }
}

/// Compares the counts with those that the repository keeps. With another compiler than theirs, a
/// change is told and counts for nothing.
pub fn check() -> Result<Tally> {
    let (counts, kept) = (counted()?, Counts::kept()?);
    let changes = counts.changes_since(&kept);
    changes.iter().for_each(|change| println!("{change}"));
    if counts.compiler != kept.compiler {
        println!("the kept counts are those of {}", kept.compiler);
        return Ok(Tally { passed: 1, failed: 0 });
    }
    let failed = u32::try_from(changes.len())?;
    Ok(Tally { passed: u32::try_from(counts.rows.len())?.saturating_sub(failed), failed })
}

fn counted() -> Result<Counts> {
    let scripts = Scripts::build()?;
    let mut rows = scripts.instructions()?;
    let files = scripts.lines(TOUR)?;
    println!("\nlines run by {TOUR}:");
    files.iter().for_each(|file| println!("{:>5} {}", file.lines, file.path));
    let long = files.iter().filter(|file| file.lines > GLANCE_LINES).count();
    let lines: usize = files.iter().map(|file| file.lines).sum();
    let measured = [
        (format!("files of more than {GLANCE_LINES} lines run"), long),
        ("lines run".to_owned(), lines),
    ];
    for (name, number) in measured {
        println!("{CEILING}{name}: {number}");
        rows.push((format!("{CEILING}{name}"), u64::try_from(number)?));
    }
    let compiler = command::output(Command::new("rustc").arg("--version"))?;
    Ok(Counts { compiler: compiler.trim().to_owned(), rows })
}

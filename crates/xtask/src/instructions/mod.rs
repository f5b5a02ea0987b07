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

/// A protocol whose scripts are counted.
struct Counted {
    /// The protocol, as the program calls it.
    name: &'static str,
    /// The file with the counts.
    file: &'static str,
    /// The script of the tour, if the protocol has one.
    tour: Option<&'static str>,
}

/// The protocols.
const COUNTED: &[Counted] = &[
    Counted { name: "pg", file: "crates/pg/instructions.txt", tour: Some("prepared hit") },
    Counted { name: "mysql", file: "crates/mysql/instructions.txt", tour: None },
];
/// A file of which more lines run belongs to the tour.
const GLANCE_LINES: usize = 20;

/// Counts all and writes the files of the repository, if `write` asks for it.
pub fn bench(write: bool) -> Result<()> {
    let scripts = Scripts::build()?;
    for protocol in COUNTED {
        let counts = counted(&scripts, protocol)?;
        if write {
            counts.keep(protocol.file)?;
        }
    }
    Ok(())
}

/// Builds the program whose instructions count.
///
/// # Errors
/// It cannot be built.
pub fn build() -> Result<()> {
    Scripts::build().map(drop)
}

/// Compares the counts with those that the repository keeps. With another compiler than theirs, a
/// change is told and counts for nothing.
pub fn check() -> Result<Tally> {
    let (scripts, mut tally) = (Scripts::build()?, Tally::default());
    for protocol in COUNTED {
        tally += compared(&scripts, protocol)?;
    }
    Ok(tally)
}

fn compared(scripts: &Scripts, protocol: &Counted) -> Result<Tally> {
    let (counts, kept) = (counted(scripts, protocol)?, Counts::kept(protocol.file)?);
    let is_same_compiler = counts.compiler == kept.compiler;
    let tell =
        if is_same_compiler { command::tell_failure } else { |change: &str| println!("{change}") };
    let changes = counts.changes_since(&kept);
    changes.iter().for_each(|change| tell(&format!("{}: {change}", protocol.file)));
    if !is_same_compiler {
        println!("the kept counts are those of {}", kept.compiler);
        return Ok(Tally::PASSED);
    }
    let failed = u32::try_from(changes.len())?;
    Ok(Tally { passed: u32::try_from(counts.rows.len())?.saturating_sub(failed), failed })
}

fn counted(scripts: &Scripts, protocol: &Counted) -> Result<Counts> {
    println!("\n{}", protocol.name);
    let mut rows = scripts.instructions(protocol.name)?;
    if let Some(tour) = protocol.tour {
        rows.extend(measured(scripts, protocol.name, tour)?);
    }
    let compiler = command::output(Command::new("rustc").arg("--version"))?;
    Ok(Counts { compiler: compiler.trim().to_owned(), rows })
}

/// Returns the length of the tour.
fn measured(scripts: &Scripts, protocol: &str, tour: &str) -> Result<Vec<(String, u64)>> {
    let files = scripts.lines(protocol, tour)?;
    println!("\nlines run by {tour}:");
    files.iter().for_each(|file| println!("{:>5} {}", file.lines, file.path));
    let long = files.iter().filter(|file| file.lines > GLANCE_LINES).count();
    let lines: usize = files.iter().map(|file| file.lines).sum();
    let measured = [
        (format!("files of more than {GLANCE_LINES} lines run"), long),
        ("lines run".to_owned(), lines),
    ];
    measured
        .into_iter()
        .map(|(name, number)| {
            println!("{CEILING}{name}: {number}");
            Ok((format!("{CEILING}{name}"), u64::try_from(number)?))
        })
        .collect()
}

//! The lines of code that a program runs again and again, by callgrind's file and the program's
//! debug information.
//!
//! callgrind names the address of each instruction that ran. A function that the compiler has put
//! into another one has lines of its own there: each instruction stands for its line, and for the
//! lines of the calls that were put in around it. The format of the file:
//! <https://valgrind.org/docs/manual/cl-format.html>.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};

/// A file of the workspace, and how many of its lines ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileLines {
    /// The path from `crates/` on.
    pub(super) path: String,
    /// The number of lines that ran.
    pub(super) lines: usize,
}

/// Returns the files of the workspace of which a program ran lines at least `times` times, those
/// with most such lines first.
pub(super) fn run(program: &Path, callgrind: &str, times: u64) -> Result<Vec<FileLines>> {
    let unread = |error| anyhow!("debug information of {}: {error}", program.display());
    let loader = Loader::new(program).map_err(unread)?;
    let mut ran: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for address in addresses(program, callgrind, times) {
        let mut frames = loader.find_frames(address).map_err(unread)?;
        while let Some(frame) = frames.next().map_err(|error| unread(error.into()))? {
            let place = frame.location.and_then(|place| Some((place.file?, place.line?)));
            if let Some((file, line)) =
                place.and_then(|(file, line)| Some((of_workspace(file)?, line)))
            {
                ran.entry(file.to_owned()).or_default().insert(line);
            }
        }
    }
    let counted = ran.into_iter().map(|(path, lines)| FileLines { path, lines: lines.len() });
    let mut files: Vec<_> = counted.collect();
    files.sort_by(|one, other| other.lines.cmp(&one.lines).then(one.path.cmp(&other.path)));
    Ok(files)
}

/// Returns the addresses of the program's own instructions that ran at least `times` times.
fn addresses(program: &Path, callgrind: &str, times: u64) -> BTreeSet<u64> {
    let (mut is_own, mut is_call, mut found) = (false, false, BTreeSet::new());
    for line in callgrind.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "ob" => is_own = Path::new(value) == program,
                // The cost of the line behind it is the callee's.
                "calls" => is_call = true,
                _ => {}
            }
        } else if let Some((address, cost)) = instruction(line)
            && !std::mem::take(&mut is_call)
            && is_own
            && cost >= times
        {
            found.insert(address);
        }
    }
    found
}

/// Returns the address and the cost of an instruction: `0xADDRESS LINE COST`.
fn instruction(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("0x")?.split(' ');
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.nth(1)?.parse().ok()?))
}

/// Returns the path of a source of this workspace from `crates/` on; `None` for tests, for the
/// scripts themselves and for the sources of others.
fn of_workspace(path: &str) -> Option<&str> {
    let at = path.rfind("crates/").filter(|at| *at == 0 || path[..*at].ends_with('/'))?;
    let is_ours = at == 0 || !path.starts_with("/rustc/") && !path.contains("/library/");
    let mut parts = path[at..].split('/').skip(1);
    let is_measured = parts.next() != Some("scripts") && parts.next() == Some("src");
    (is_ours && is_measured).then_some(&path[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_the_program_that_ran_often_count() {
        let text = "events: Ir\n\nob=/x/scripts\nfl=/x/crates/pg/src/a.rs\nfn=one\n0x10 1 30\n\
                    0x14 2 3\ncfn=two\ncalls=5 0x20 70\n0x18 3 900\nob=/lib/libc.so.6\n0x1c 0 99\n\
                    ob=/x/scripts\n0x20 7 10\ntotals: 920\n";
        let found = addresses(Path::new("/x/scripts"), text, 10);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [0x10, 0x20]);
    }

    #[test]
    fn sources_of_tests_and_of_others_do_not_count() {
        let ours = Some("crates/pg/src/a.rs");
        assert_eq!(of_workspace("/x/crates/pg/src/a.rs"), ours);
        assert_eq!(of_workspace("crates/pg/src/a.rs"), ours);
        let others = [
            "/x/crates/pg/tests/a.rs",
            "/x/crates/scripts/src/a.rs",
            "/rustc/1/library/stdarch/crates/core_arch/src/a.rs",
        ];
        assert_eq!(others.map(of_workspace), [None; 3]);
    }
}

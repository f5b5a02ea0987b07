//! The table of seconds: the time of each part, as `CONTRIBUTING.md` keeps it.
//!
//! A part whose time more than doubles fails. What is judged is the time of processors in
//! programs, since other work on the machine lengthens the rest. All of a run's parts together say
//! how fast the machine is, so what counts is how a part has changed against the others.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::workspace;

use super::report::Spent;

/// The page with the table.
const PAGE: &str = "CONTRIBUTING.md";
/// The first line of the table.
const HEAD: &str = "| part | seconds | of processors | of these in the kernel |";
/// The second line of the table.
const RULE: &str = "|---|--:|--:|--:|";
/// A part fails if its time is so many times what the table has.
const RISE_MAX: f64 = 2.0;
/// A part that is kept with less counts as if it were kept with this, in seconds.
const FLOOR: f64 = 10.0;
/// With fewer parts than this the speed of the machine is unknown.
const PARTS_MIN: usize = 4;

/// The time of parts, by their names.
type Table = BTreeMap<String, Spent>;

/// Returns the parts that have become slow against the others, in words, and the number of parts
/// that were compared.
///
/// # Errors
/// The page has no table.
pub(super) fn risen(measured: &[(&str, Spent)]) -> Result<(Vec<String>, usize)> {
    Ok(compared(&rows(&page()?)?, measured))
}

/// Writes the time of these parts into the table. Rows of `names` that have not run stay, others
/// go.
///
/// # Errors
/// The page has no table, or cannot be written.
pub(super) fn keep(names: &[&str], measured: &[(&str, Spent)]) -> Result<()> {
    let page = page()?;
    let mut table = rows(&page)?;
    table.extend(measured.iter().map(|(name, spent)| ((*name).to_owned(), *spent)));
    let lines = names.iter().filter_map(|name| Some(row(name, table.get(*name)?)));
    let text = [HEAD.to_owned(), RULE.to_owned()].into_iter().chain(lines);
    let text = text.collect::<Vec<_>>().join("\n");
    let (before, rest) = page.split_once(HEAD).context("no table")?;
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    fs::write(workspace::root().join(PAGE), format!("{before}{text}\n\n{after}"))?;
    Ok(())
}

fn page() -> Result<String> {
    fs::read_to_string(workspace::root().join(PAGE)).with_context(|| format!("no {PAGE}"))
}

fn row(name: &str, spent: &Spent) -> String {
    let all = (spent.user + spent.system).as_secs_f64();
    let (wall, system) = (spent.wall.as_secs_f64(), spent.system.as_secs_f64());
    format!("| `{name}` | {wall:.0} | {all:.0} | {system:.0} |")
}

fn rows(page: &str) -> Result<Table> {
    let (_, rest) = page.split_once(HEAD).with_context(|| format!("{PAGE} has no table"))?;
    let lines = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| read(line).with_context(|| format!("no row of times: {line}"))).collect()
}

fn read(line: &str) -> Result<(String, Spent)> {
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    ensure!(cells.len() == 4, "it has {} columns", cells.len());
    let seconds = |cell: &str| Ok::<_, anyhow::Error>(Duration::from_secs(cell.parse()?));
    let (wall, all, system) = (seconds(cells[1])?, seconds(cells[2])?, seconds(cells[3])?);
    let user = all.saturating_sub(system);
    Ok((cells[0].trim_matches('`').to_owned(), Spent { wall, user, system }))
}

fn compared(kept: &Table, measured: &[(&str, Spent)]) -> (Vec<String>, usize) {
    let both = measured.iter().filter_map(|(name, spent)| {
        let kept = kept.get(*name)?.user.as_secs_f64().max(FLOOR);
        Some((*name, spent.user.as_secs_f64(), kept))
    });
    let both: Vec<_> = both.collect();
    // Parts below the floor say nothing about the machine.
    let long = both.iter().filter(|(_, _, kept)| *kept > FLOOR);
    let mut ratios: Vec<_> = long.map(|(_, now, kept)| now / kept).collect();
    if ratios.len() < PARTS_MIN {
        return (Vec::new(), 0);
    }
    ratios.sort_by(f64::total_cmp);
    let usual = ratios[ratios.len() / 2];
    let is_slow = |(_, now, kept): &&(&str, f64, f64)| now / kept > RISE_MAX * usual;
    let words = |(name, now, kept): &(&str, f64, f64)| {
        format!(
            "FAILED {name}: {now:.0} s of processors in programs, {kept:.0} s are kept; it is \
             {usual:.1} times what is kept for the part in the middle"
        )
    };
    (both.iter().filter(is_slow).map(words).collect(), both.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(user: u64) -> Spent {
        let [wall, user, system] = [90, user, 7].map(Duration::from_secs);
        Spent { wall, user, system }
    }

    fn kept(seconds: &[(&str, u64)]) -> Table {
        seconds.iter().map(|(name, user)| ((*name).to_owned(), spent(*user))).collect()
    }

    fn slow(seconds: &[u64]) -> Vec<String> {
        let names = ["a", "b", "c", "d", "e", "f"];
        let table = kept(&[("a", 20), ("b", 40), ("c", 100), ("d", 50), ("e", 1)]);
        let measured: Vec<_> =
            names.iter().zip(seconds).map(|(name, user)| (*name, spent(*user))).collect();
        let (found, _) = compared(&table, &measured);
        found.iter().map(|words| words.split(':').next().unwrap()[7..].to_owned()).collect()
    }

    #[test]
    fn a_part_that_doubles_is_found_on_a_machine_of_any_speed() {
        assert!(slow(&[20, 40, 100, 50, 1, 500]).is_empty());
        assert!(slow(&[38, 79, 100, 50, 19]).is_empty());
        assert_eq!(slow(&[20, 81, 100, 50, 1]), ["b"]);
        assert_eq!(slow(&[20, 40, 100, 50, 21]), ["e"]);
        assert!(slow(&[60, 120, 300, 150, 50]).is_empty());
        assert_eq!(slow(&[60, 120, 300, 301, 61]), ["d", "e"]);
        assert_eq!(slow(&[10, 41, 50, 25, 9]), ["b"]);
    }

    #[test]
    fn a_few_parts_are_not_compared() {
        assert!(slow(&[20, 40, 900]).is_empty());
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let page = format!("# A\n\n{HEAD}\n{RULE}\n{}\n\nmore\n", row("a-b", &spent(12)));
        assert_eq!(rows(&page).unwrap(), kept(&[("a-b", 12)]));
        assert!(rows("# A\n").is_err());
        assert!(rows(&format!("{HEAD}\n{RULE}\n| `a` | many | 1 | 0 |\n")).is_err());
    }

    #[test]
    fn the_page_has_a_table() {
        assert!(!rows(&page().unwrap()).unwrap().is_empty());
    }
}

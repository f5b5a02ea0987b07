//! The last warnings and errors, for those who look at the program later.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Most lines that are kept.
const LINES_MAX: usize = 50;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Keeps a line of the log, in its form as a text.
pub(super) fn keep(line: String) {
    add(&mut LINES.lock().unwrap_or_else(PoisonError::into_inner), line);
}

fn add(lines: &mut VecDeque<String>, line: String) {
    if lines.len() >= LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// Returns the last warnings and errors, the newest first: time, level and words of each.
pub(crate) fn warnings() -> Vec<[String; 3]> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    lines.iter().rev().map(|line| split(line)).collect()
}

fn split(line: &str) -> [String; 3] {
    let (time, rest) = line.trim_end().split_once(' ').unwrap_or_default();
    let (level, words) = rest.trim_start().split_once(' ').unwrap_or_default();
    [time, level, words].map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_a_level_and_words() {
        let line = "2026-01-31T23:59:59.5Z  WARN it is so cause=x\n";
        assert_eq!(split(line), ["2026-01-31T23:59:59.5Z", "WARN", "it is so cause=x"]);
        assert_eq!(split(""), [""; 3]);
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let mut lines = VecDeque::new();
        (0..=LINES_MAX).for_each(|number| add(&mut lines, format!("line {number}")));
        assert_eq!((lines.len(), &*lines[0]), (LINES_MAX, "line 1"));
    }
}

//! The trace of a run: one line for each event, and a hash of all events.
//!
//! The hash folds the engines' actions and every byte that an engine sends: two runs of a seed that
//! differ there differ in the hash. Lines are written only if the caller asks for them.

use std::collections::VecDeque;
use std::fmt::Display;

/// The most lines that are kept.
const LINES: usize = 1_000_000;

/// The trace of a run.
#[derive(Debug, Default)]
pub struct Trace {
    /// Whether lines are kept.
    pub on: bool,
    lines: VecDeque<String>,
    hash: u64,
}

impl Trace {
    /// Creates an empty trace, which keeps lines if `on`.
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// Folds numbers and bytes into the hash.
    pub fn fold(&mut self, numbers: [u64; 3], bytes: &[u8]) {
        for number in numbers {
            self.mix(number);
        }
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Returns the hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Keeps a line: time, event, place and details.
    pub fn line(
        &mut self,
        now: u64,
        what: &str,
        place: impl Display,
        more: impl FnOnce() -> String,
    ) {
        if !self.on {
            return;
        }
        let place = place.to_string();
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{now:>9} {what:<10} {place:<16} {}", more()));
    }

    /// Returns the last lines.
    pub fn lines(&self, count: usize) -> impl Iterator<Item = &str> {
        let skipped = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skipped).map(String::as_str)
    }
}

/// Returns the length of bytes and their first part as text.
pub fn brief(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(400)];
    let text: String = shown
        .iter()
        .map(|&b| if (b' '..=b'~').contains(&b) { char::from(b) } else { '.' })
        .collect();
    format!("{:>5} {text}", bytes.len())
}

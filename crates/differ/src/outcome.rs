//! The outcome of an episode, in any protocol: why it ended, and counts of what was compared.

use std::collections::BTreeMap;

/// A difference between the two sides. `R` is a reply, or a part of one.
#[derive(Clone, Debug)]
pub struct Difference<R> {
    /// A description in a few words. A shorter sequence counts only if its description is the same.
    pub what: String,
    /// The direct session's replies to the step.
    pub direct: Vec<R>,
    /// The proxied session's replies to the step.
    pub proxied: Vec<R>,
}

/// Why an episode ends before its last step.
#[derive(Clone, Debug)]
pub enum Stop<R> {
    /// The two sides differ.
    Differs(Box<Difference<R>>),
    /// They differ in a way that a pass allows, and cannot be compared further.
    Passed,
    /// The server did not behave as the test expects.
    Broken(String),
}

/// Counts of a run: uses of each of `N` masks and passes, and replies seen.
#[derive(Clone, Debug)]
pub struct Tally<const N: usize> {
    /// How often each mask, then each pass, was needed.
    pub uses: [u64; N],
    /// The server's replies by kind, with their errors.
    pub replies: BTreeMap<String, u64>,
}

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self { uses: [0; N], replies: BTreeMap::new() }
    }
}

impl<const N: usize> Tally<N> {
    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        for (total, uses) in self.uses.iter_mut().zip(other.uses) {
            *total += uses;
        }
        for (kind, count) in &other.replies {
            *self.replies.entry(kind.clone()).or_default() += count;
        }
    }
}

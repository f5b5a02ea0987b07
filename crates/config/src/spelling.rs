//! The message for a name that is not known, such as that of an option: the name that was probably
//! meant.

use crate::pool::PoolOptions;
use crate::table::{Row, Table};

fn names<T: Table>() -> impl Iterator<Item = &'static str> {
    T::ROWS.iter().map(|row: &Row<T>| row.name)
}

/// Returns the name that was probably meant by one that is none of them.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (steps, other) = names.into_iter().map(|other| (distance(name, other), other)).min()?;
    (steps <= other.len() / 3).then_some(other)
}

/// Returns the error for an unknown name, with the most similar option.
pub(crate) fn unknown<T: Table>(name: &str) -> String {
    let others = names::<T>().chain(names::<PoolOptions>());
    match nearest(name, others) {
        Some(other) => format!("no such option; did you mean {other}?"),
        None => "no such option".to_owned(),
    }
}

/// Returns the edit distance of two words: how many letters must be inserted, removed or replaced,
/// or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 0..one.len() {
        let mut next = vec![i + 1];
        for j in 0..other.len() {
            let replaced = row[j] + usize::from(one[i] != other[j]);
            let mut steps = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j] {
                steps = steps.min(before[j - 1] + 1);
            }
            next.push(steps);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_are_missing_wrong_too_many_or_swapped_are_one_step() {
        let steps = |one| distance(one, "show");
        let all = ["show", "sow", "shop", "shhow", "shwo", "hswo", "", "shoutw"].map(steps);
        assert_eq!(all, [0, 1, 1, 1, 1, 2, 4, 2]);
        assert_eq!(nearest("shwo", ["set", "show"]), Some("show"));
        assert_eq!(nearest("slow", ["set"]), None);
    }
}

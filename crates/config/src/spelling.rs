//! The message for a name that is no option: the option that was probably meant.

use crate::pool::PoolOptions;
use crate::table::{Row, Table};

fn names<T: Table>() -> impl Iterator<Item = &'static str> {
    T::ROWS.iter().map(|row: &Row<T>| row.name)
}

/// Returns the error for an unknown name, with the most similar option.
pub(crate) fn unknown<T: Table>(name: &str) -> String {
    let others = names::<T>().chain(names::<PoolOptions>());
    let near = others.map(|other| (distance(name, other), other)).min();
    match near {
        Some((steps, other)) if steps <= other.len() / 3 => {
            format!("no such option; did you mean {other}?")
        }
        _ => "no such option".to_owned(),
    }
}

/// Returns the edit distance of two words: how many letters must be inserted, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for j in 0..other.len() {
            let changed = diagonal + usize::from(letter != other[j]);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

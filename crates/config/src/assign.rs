//! Values that an operator sets on the console, in place of those of the configuration.
//!
//! A value is put among the entries of the file, which are then read and checked as ever. So a
//! value that is set means what it would mean in the file, and the same values are refused. Names
//! are those of `SHOW CONFIG`; PgBouncer's names are taken too, with PgBouncer's values.

use crate::equivalent::{CACHE, POOL};
use crate::error::{Error, Errors};
use crate::general::General;
use crate::pool::PoolOptions;
use crate::table::Table;
use crate::value::{Entry, Given};

/// The one option outside of the tables of the program and of pools: its name in `SHOW CONFIG`, its
/// section and its name there.
pub(crate) const CACHE_MEMORY: (&str, &str, &str) = ("cache.memory", CACHE, "memory");

/// A value that is set on the console.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub(crate) key: String,
    pub(crate) value: String,
    /// The meaning in PgBouncer's files; `None` if PgBouncer has no such key, or if it stands for
    /// no single option.
    pub(crate) theirs: Option<Result<(Spot, Option<Given>), &'static str>>,
}

/// The place of an option: its section, or `None` at the top of a file, and its name.
pub(crate) type Spot = (Option<&'static str>, &'static str);

impl Assignment {
    /// Returns the name of the key that is set.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the option's place, and its value as a file would have it; `None` if the value means
    /// that the option is not set.
    fn given(&self) -> Result<(Spot, Option<Given>), String> {
        let text = Given::Text(self.value.clone());
        let own = spot(&self.key).map(|spot| (spot, takes(spot.1, &text)));
        match (own, &self.theirs) {
            (Some((spot, Ok(()))), _) => Ok((spot, Some(text))),
            // `10` is a time by PgBouncer's reading alone.
            (_, Some(Ok((spot, given)))) => Ok((*spot, given.clone())),
            (Some((_, Err(why))), _) => Err(why),
            (None, Some(Err(why))) => Err((*why).to_owned()),
            (None, None) => Err("is a key of PgBouncer that acts in an ini alone".to_owned()),
        }
    }
}

/// Returns the place of an option by its name in `SHOW CONFIG`.
pub(crate) fn spot(name: &str) -> Option<Spot> {
    let (shown, section, own) = CACHE_MEMORY;
    let of_program = General::row(name).map(|row| (None, row.name));
    let of_pool = PoolOptions::row(name).map(|row| (Some(POOL), row.name));
    of_program.or(of_pool).or((name == shown).then_some((Some(section), own)))
}

/// Checks that an option takes a value.
fn takes(name: &str, given: &Given) -> Result<(), String> {
    match (General::row(name), PoolOptions::row(name)) {
        (Some(row), _) => row.set(&mut General::default(), given),
        (None, Some(row)) => row.set(&mut PoolOptions::default(), given),
        // The option of the cache is read with its section.
        (None, None) => Ok(()),
    }
}

/// Puts values among the entries of a file, in place of those that are there.
///
/// # Errors
/// The values that their options do not take.
pub(crate) fn put<'a>(
    root: &mut Vec<Entry>,
    set: impl IntoIterator<Item = &'a Assignment>,
) -> Result<(), Errors> {
    let mut errors = Vec::new();
    for assignment in set {
        match assignment.given() {
            Ok((spot, given)) => put_one(root, spot, given),
            Err(message) => {
                let option = assignment.key.clone();
                errors.push(Error { line: None, option, message, file: None });
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}

fn put_one(root: &mut Vec<Entry>, (section, name): Spot, given: Option<Given>) {
    let entries = match section {
        None => root,
        Some(section) => table(root, section),
    };
    entries.retain(|entry| entry.name != name);
    entries.extend(given.map(|given| Entry { name: name.to_owned(), line: None, given }));
}

/// Returns the entries of a section, which is added if it is missing.
fn table<'a>(root: &'a mut Vec<Entry>, section: &str) -> &'a mut Vec<Entry> {
    let is_table = |entry: &Entry| entry.name == section && matches!(entry.given, Given::Table(_));
    let at = root.iter().rposition(is_table).unwrap_or_else(|| {
        let given = Given::Table(Vec::new());
        root.push(Entry { name: section.to_owned(), line: None, given });
        root.len() - 1
    });
    match &mut root[at].given {
        Given::Table(entries) => entries,
        _ => unreachable!("the section is a table"),
    }
}

//! The entries of the TOML file that does the same as a `pgbouncer.ini`, in the making, and what
//! there is to tell about them.

use std::path::PathBuf;

use super::keys::{Key, Outcome, PROGRAM, Table, find};
use super::sections::{Sections, Setting};
use super::values::{Kind, Within, integer};
use crate::general::General;
use crate::machine::Machine;
use crate::pool::PoolOptions;
use crate::table::{Row, Table as Options};
use crate::value::{Entry, Given};

/// Something that an operator should know about a line.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) place: usize,
    /// The key, by its path.
    pub(super) key: String,
    pub(super) message: String,
    /// Whether the line asks for something that Refrain does not do.
    pub(super) is_warning: bool,
}

/// The entries of a TOML file in the making.
pub(super) struct Draft<'a> {
    pub(super) sections: &'a Sections,
    pub(super) machine: &'a dyn Machine,
    /// The working directory, to which paths are relative.
    pub(super) directory: PathBuf,
    pub(super) program: Vec<Entry>,
    pub(super) pool: Vec<Entry>,
    pub(super) databases: Vec<Entry>,
    pub(super) users: Vec<Entry>,
    pub(super) peers: Vec<Entry>,
    pub(super) told: Vec<Told>,
    pub(super) errors: Vec<(Option<usize>, String, String)>,
}

impl<'a> Draft<'a> {
    /// Begins with nothing.
    pub(super) fn new(sections: &'a Sections, machine: &'a dyn Machine) -> Self {
        let mut errors = sections.errors.clone();
        let directory = machine.directory().unwrap_or_else(|error| {
            errors.push((None, String::new(), format!("no working directory: {error}")));
            PathBuf::new()
        });
        let (program, pool, databases, users, peers) = Default::default();
        let told = Vec::new();
        Self { sections, machine, directory, program, pool, databases, users, peers, told, errors }
    }

    /// Returns the value of a key of `[pgbouncer]`, and its place if the file sets it.
    pub(super) fn value(&self, name: &str) -> (&'a str, Option<usize>) {
        match self.sections.program.iter().find(|set| set.key.name == name) {
            Some(set) => (&set.value, Some(set.place)),
            None => (find(PROGRAM, name).and_then(|key| key.default).unwrap_or_default(), None),
        }
    }

    /// Returns the value of a key of `[pgbouncer]` that is a whole number.
    pub(super) fn number(&mut self, name: &str) -> i64 {
        let (text, place) = self.value(name);
        integer(text, Within::Program).unwrap_or_else(|| {
            self.fail(place, name, "expected a whole number");
            0
        })
    }

    /// Adds an error about a key of `[pgbouncer]`.
    pub(super) fn fail(&mut self, place: Option<usize>, key: &str, message: impl Into<String>) {
        self.errors.push((place, format!("pgbouncer.{key}"), message.into()));
    }

    /// Tells the operator something about a key of `[pgbouncer]`, if the file sets it.
    pub(super) fn warn(&mut self, place: Option<usize>, key: &str, message: impl Into<String>) {
        let Some(place) = place else { return };
        let (key, message) = (format!("pgbouncer.{key}"), message.into());
        self.told.push(Told { place, key, message, is_warning: true });
    }

    /// Sets an option of the program, unless it is Refrain's default.
    pub(super) fn set(&mut self, option: &str, given: Given, place: Option<usize>) {
        put::<General>(&mut self.program, option, given, place);
    }

    /// Sets an option of pools, unless it is Refrain's default.
    pub(super) fn set_pool(&mut self, option: &str, given: Given, place: Option<usize>) {
        put::<PoolOptions>(&mut self.pool, option, given, place);
    }

    /// Sets all options that are keys of `[pgbouncer]`, and tells of the keys that are none.
    pub(super) fn plain_keys(&mut self) {
        for key in PROGRAM {
            let (value, place) = self.value(key.name);
            if let Outcome::Option(table, option, kind) = key.outcome {
                match kind.read(value, Within::Program, &self.directory) {
                    Ok(None) => {}
                    Ok(Some(given)) if table == Table::Program => self.set(option, given, place),
                    Ok(Some(given)) => self.set_pool(option, given, place),
                    Err(message) => self.fail(place, key.name, message),
                }
            }
            if let Some(place) = place {
                self.tell(key, value, place, &format!("pgbouncer.{}", key.name));
            }
        }
    }

    /// Tells of a key that is not an option, if its value is not PgBouncer's default.
    pub(super) fn tell(&mut self, key: &Key, value: &str, place: usize, path: &str) {
        if key.default.is_some_and(|default| is_same(default, value)) {
            return;
        }
        let Outcome::Needless(why) = key.outcome else { return };
        let message = format!("has nothing to do here: {why}");
        self.told.push(Told { place, key: path.to_owned(), message, is_warning: false });
    }

    /// Reads a value of a connection string; `None` if it is not set, or wrong.
    pub(super) fn read(&mut self, kind: Kind, setting: &Setting, path: &str) -> Option<Given> {
        let Setting { key, value, place } = setting;
        kind.read(value, Within::Connection, &self.directory).unwrap_or_else(|message| {
            self.errors.push((Some(*place), format!("{path}.{}", key.name), message.to_owned()));
            None
        })
    }
}

/// Whether two texts are the same word or number.
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one.eq_ignore_ascii_case(other)
        || number(one).is_some_and(|one| number(other).is_some_and(|other| one == other))
}

/// Makes an entry.
pub(super) fn entry(name: &str, given: Given, line: Option<usize>) -> Entry {
    Entry { name: name.to_owned(), line, given }
}

/// Whether an option of the program takes a value.
pub(super) fn takes(option: &str, given: &Given) -> bool {
    let set = |row: &Row<General>| row.set(&mut General::default(), given).is_ok();
    General::row(option).is_some_and(set)
}

fn put<T: Options>(entries: &mut Vec<Entry>, name: &str, given: Given, line: Option<usize>) {
    let is_default = T::row(name).is_some_and(|row: &Row<T>| {
        let mut table = T::default();
        row.set(&mut table, &given).is_ok() && (row.same)(&table, &T::default())
    });
    if !is_default {
        entries.push(entry(name, given, line));
    }
}

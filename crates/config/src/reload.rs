//! What a reload would change, and `SHOW CONFIG`.

use crate::database::{Database, DatabaseKeys};
use crate::general::General;
use crate::options::Options;
use crate::pool::{PoolOptions, PoolOverrides};
use crate::table::{Row, Table, When};
use crate::user::{User, UserKeys};

/// An option that differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The option as it would be found in the file, such as `databases.app.pool_size`, or the
    /// section (`databases.app`) where that is new or gone.
    pub key: String,
    /// Its old value; `None` when it was not set there. Secrets are shown as `***`.
    pub old: Option<String>,
    /// Its new value; `None` when it is no longer set there.
    pub new: Option<String>,
    /// From when on the new value counts.
    pub when: When,
}

/// A row of `SHOW CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRow {
    /// The option.
    pub key: &'static str,
    /// Its value, as it would be written in the file.
    pub value: String,
    /// Its default, as it would be written in the file.
    pub default: &'static str,
    /// Whether a reload changes it.
    pub changeable: bool,
    /// What it is, in a sentence.
    pub doc: String,
    /// What its number is of: `bytes`, `time`, `percent`; empty for counts and words.
    pub unit: &'static str,
}

impl Options {
    /// The rows of `SHOW CONFIG`: the program's options, then the defaults of pools.
    pub fn rows(&self) -> Vec<ConfigRow> {
        let mut rows = config_rows(&self.general);
        rows.extend(config_rows(&self.defaults));
        rows
    }

    /// What differs in `new`, and from when on it counts.
    pub fn differences(&self, new: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        compare("", &self.general, &new.general, &mut changes);
        compare("pool.", &self.defaults, &new.defaults, &mut changes);
        let databases = Entries { section: "databases", name: |d: &Database| &d.name };
        for (path, old, new) in databases.in_both(&self.databases, &new.databases, &mut changes) {
            compare(&path, &DatabaseKeys::of(old), &DatabaseKeys::of(new), &mut changes);
            compare_overrides(&path, &old.overrides, &new.overrides, &mut changes);
        }
        let users = Entries { section: "users", name: |u: &User| &u.name };
        for (path, old, new) in users.in_both(&self.users, &new.users, &mut changes) {
            compare(&path, &UserKeys::of(old), &UserKeys::of(new), &mut changes);
            compare_overrides(&path, &old.pool, &new.pool, &mut changes);
        }
        changes
    }

    /// These options as they count until the program is started again: `new`, but with the old
    /// values of what changes on restart alone.
    #[must_use]
    pub fn reloaded(&self, mut new: Self) -> Self {
        for row in General::ROWS.iter().filter(|row| row.when == When::Restart) {
            (row.copy)(&mut new.general, &self.general);
        }
        new
    }
}

fn config_rows<T: Table>(table: &T) -> Vec<ConfigRow> {
    let config_row = |row: &Row<T>| ConfigRow {
        key: row.name,
        value: (row.show)(table),
        default: row.default.unwrap_or_default(),
        changeable: row.when != When::Restart,
        doc: row.summary(),
        unit: row.unit,
    };
    T::ROWS.iter().map(config_row).collect()
}

fn compare<T: Table>(path: &str, old: &T, new: &T, changes: &mut Vec<Change>) {
    for row in T::ROWS.iter().filter(|row| !(row.same)(old, new)) {
        changes.push(Change {
            key: format!("{path}{}", row.name),
            old: Some((row.show)(old)),
            new: Some((row.show)(new)),
            when: row.when,
        });
    }
}

fn compare_overrides(
    path: &str,
    old: &PoolOverrides,
    new: &PoolOverrides,
    changes: &mut Vec<Change>,
) {
    for row in PoolOptions::ROWS {
        let (old, new) = (old.shown(row.name), new.shown(row.name));
        if old != new {
            changes.push(Change { key: format!("{path}{}", row.name), old, new, when: row.when });
        }
    }
}

/// The named entries of a section.
struct Entries<T: 'static> {
    section: &'static str,
    name: fn(&T) -> &String,
}

impl<T> Entries<T> {
    /// Reports those that came or went; returns those in both, with the path of their options.
    fn in_both<'a>(
        &self,
        old: &'a [T],
        new: &'a [T],
        changes: &mut Vec<Change>,
    ) -> Vec<(String, &'a T, &'a T)> {
        let find = |among: &'a [T], wanted: &T| {
            among.iter().find(|entry| (self.name)(entry) == (self.name)(wanted))
        };
        let change = |entry: &T, came: bool| Change {
            key: format!("{}.{}", self.section, (self.name)(entry)),
            old: (!came).then(|| "present".to_owned()),
            new: came.then(|| "present".to_owned()),
            when: When::Reload,
        };
        let mut both = Vec::new();
        for entry in old {
            match find(new, entry) {
                None => changes.push(change(entry, false)),
                Some(other) => {
                    both.push((format!("{}.{}.", self.section, (self.name)(entry)), entry, other));
                }
            }
        }
        changes.extend(new.iter().filter(|e| find(old, e).is_none()).map(|e| change(e, true)));
        both
    }
}

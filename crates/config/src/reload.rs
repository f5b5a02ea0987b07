//! The changes that a reload would make, and `SHOW CONFIG`.

use std::collections::{BTreeMap, BTreeSet};

use crate::assign::CACHE_MEMORY;
use crate::cache::CacheRule;
use crate::database::{Database, DatabaseKeys};
use crate::general::General;
use crate::hba::Hba;
use crate::options::Options;
use crate::peer::Peer;
use crate::pool::{PoolOptions, PoolOverrides};
use crate::table::{Row, Table, When};
use crate::user::{User, UserKeys};
use crate::value::Value;

/// An option that differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The option by its path in the file, such as `databases.app.pool_size`, or the section
    /// (`databases.app`) if that is new or removed.
    pub key: String,
    /// Its old value; `None` if it was not set. Secrets are shown as `***`.
    pub old: Option<String>,
    /// Its new value; `None` if it is no longer set.
    pub new: Option<String>,
    /// When the new value takes effect.
    pub when: When,
}

/// A row of `SHOW CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRow {
    /// Name of the option.
    pub key: &'static str,
    /// Its value, as it would be written in a file.
    pub value: String,
    /// Its default, as it would be written in a file.
    pub default: &'static str,
    /// True if a reload changes it.
    pub changeable: bool,
    /// Its documentation, in one sentence.
    pub doc: String,
    /// The unit of its number: `bytes`, `time`, `percent`; empty for counts and words.
    pub unit: &'static str,
}

impl Options {
    /// Returns the rows of `SHOW CONFIG`: the options of the program, then the defaults of pools.
    pub fn rows(&self) -> Vec<ConfigRow> {
        let mut rows = config_rows(&self.general);
        rows.extend(config_rows(&self.defaults));
        let of_cache = config_rows(&self.cache.options);
        rows.extend(of_cache.into_iter().map(|row| ConfigRow { key: CACHE_MEMORY.0, ..row }));
        rows
    }

    /// Returns the options that differ in `new`, and when each takes effect.
    pub fn differences(&self, new: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        compare("", &self.general, &new.general, &mut changes);
        compare("pool.", &self.defaults, &new.defaults, &mut changes);
        compare("cache.", &self.cache.options, &new.cache.options, &mut changes);
        compare_rules(&self.cache.rules, &new.cache.rules, &mut changes);
        self.compare_hba(new, &mut changes);
        let databases = Entries { section: "databases", name: |d: &Database| &d.name };
        for (path, old, new) in databases.in_both(&self.databases, &new.databases, &mut changes) {
            compare(&path, &DatabaseKeys::of(old), &DatabaseKeys::of(new), &mut changes);
            compare_overrides(&path, &old.overrides, &new.overrides, &mut changes);
        }
        let peers = Entries { section: "peers", name: |peer: &Peer| &peer.name };
        for (path, old, new) in peers.in_both(&self.peers, &new.peers, &mut changes) {
            if old.place != new.place {
                let (key, shown) = (format!("{path}host"), |peer: &Peer| Some(peer.shown()));
                let (old, new) = (shown(old), shown(new));
                changes.push(Change { key, old, new, when: When::Reload });
            }
        }
        let users = Entries { section: "users", name: |u: &User| &u.name };
        for (path, old, new) in users.in_both(&self.users, &new.users, &mut changes) {
            compare(&path, &UserKeys::of(old), &UserKeys::of(new), &mut changes);
            compare_overrides(&path, &old.pool, &new.pool, &mut changes);
        }
        changes
    }

    /// Reports groups that differ, and rules of authentication that have changed in their files.
    fn compare_hba(&self, new: &Self, changes: &mut Vec<Change>) {
        let when = When::NewConnections;
        let (old_groups, new_groups) = (&self.groups.0, &new.groups.0);
        let names: BTreeSet<_> = old_groups.keys().chain(new_groups.keys()).collect();
        for name in names {
            let shown = |groups: &BTreeMap<_, Vec<String>>| groups.get(name).map(Value::show);
            let (old, new) = (shown(old_groups), shown(new_groups));
            if old != new {
                changes.push(Change { key: format!("groups.{name}"), old, new, when });
            }
        }
        if self.hba != new.hba {
            let shown = |hba: &Hba| Some(format!("{} rules", hba.rules().len()));
            let (old, new) = (shown(&self.hba), shown(&new.hba));
            changes.push(Change { key: "rules of hba".to_owned(), old, new, when });
        }
    }

    /// Returns the options that apply until the program is restarted: `new`, but with the old
    /// values of options that change on restart only.
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

/// Compares the rules of the cache, by their numbers.
fn compare_rules(old: &[CacheRule], new: &[CacheRule], changes: &mut Vec<Change>) {
    for number in 0..old.len().max(new.len()) {
        let key = format!("cache.rules.{}", number + 1);
        match (old.get(number), new.get(number)) {
            (Some(old), Some(new)) => compare(&format!("{key}."), old, new, changes),
            (old, new) => {
                let there = |rule: Option<&CacheRule>| rule.map(|_| "present".to_owned());
                let (old, new) = (there(old), there(new));
                changes.push(Change { key, old, new, when: When::Reload });
            }
        }
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
    /// Reports entries that are new or removed. Returns those in both, with the path of their
    /// options.
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

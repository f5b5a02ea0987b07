//! The state of a session of the model server that a rollback restores: settings and objects.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::Fault;

/// Settings that the server reports, with their defaults.
pub const REPORTED: [(&str, &str); 9] = [
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("default_transaction_read_only", "off"),
    ("server_encoding", "UTF8"),
    ("server_version", "18.0"),
    ("standard_conforming_strings", "on"),
];
/// Settings that the server does not report, with their defaults.
const UNREPORTED: [(&str, &str); 5] = [
    ("extra_float_digits", "1"),
    ("lock_timeout", "0"),
    ("search_path", "\"$user\", public"),
    ("statement_timeout", "0"),
    ("work_mem", "4MB"),
];

/// The state that a rollback restores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Settings of the session.
    pub set: BTreeMap<String, String>,
    /// Settings of the transaction.
    pub local: BTreeMap<String, String>,
    /// Temporary tables.
    pub temps: BTreeSet<String>,
    /// Channels.
    pub listens: BTreeSet<String>,
    /// Notifications that COMMIT will send.
    pub notes: Vec<(String, String)>,
}

impl State {
    /// Returns the value of a setting, or `None` if there is no such setting.
    pub fn value(&self, base: &BTreeMap<String, String>, name: &str) -> Option<String> {
        let name = name.to_ascii_lowercase();
        let own = self.local.get(&name).or_else(|| self.set.get(&name)).or_else(|| base.get(&name));
        own.cloned().or_else(|| default_of(&name).map(str::to_owned))
    }

    /// Whether a setting was set, for the session or for the transaction.
    pub fn is_set(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.set.contains_key(&name) || self.local.contains_key(&name)
    }

    /// Changes a setting, for SET and `set_config`.
    pub fn assign(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), Fault> {
        let name = name.to_ascii_lowercase();
        let known = default_of(&name).is_some() || name.contains('.');
        if !known {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(Fault::new("42704", message));
        }
        if matches!(&*name, "server_version" | "server_encoding") {
            return Err(Fault::new("55P02", format!("parameter \"{name}\" cannot be changed")));
        }
        let Some(value) = value else {
            self.local.remove(&name);
            match default_of(&name).filter(|_| local) {
                Some(default) => drop(self.local.insert(name, default.to_owned())),
                None => drop(self.set.remove(&name)),
            }
            return Ok(());
        };
        if value.contains("bad") {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            return Err(Fault::new("22023", message));
        }
        let value = canonical(&name, value);
        if local {
            self.local.insert(name, value);
        } else {
            self.local.remove(&name);
            self.set.insert(name, value);
        }
        Ok(())
    }

    /// Gives settings these values, unless they were set. Returns the rows of the query that does.
    pub fn restore(&mut self, settings: &[[String; 2]]) -> Result<Vec<Vec<String>>, Fault> {
        let mut rows = Vec::new();
        for [name, value] in settings {
            if !self.is_set(name) {
                self.assign(name, Some(value), false)?;
                rows.push(vec![value.clone()]);
            }
        }
        Ok(rows)
    }

    /// Removes the state that DISCARD ALL removes.
    pub fn discard(&mut self) {
        *self = Self::default();
    }
}

fn default_of(name: &str) -> Option<&'static str> {
    let all = REPORTED.iter().chain(&UNREPORTED);
    all.clone().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// Returns a value in the form in which it is shown.
fn canonical(name: &str, value: &str) -> String {
    match (name, value) {
        ("datestyle", "german") => "German, DMY".to_owned(),
        ("work_mem", "8192kB") => "8MB".to_owned(),
        _ => value.to_owned(),
    }
}

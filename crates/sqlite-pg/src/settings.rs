//! The run-time parameters of a session.
//!
//! Most parameters mean nothing to SQLite; they are kept because clients set and read them. A value
//! is refused if it would change the replies in a way that a session does not support: another
//! encoding, strings with backslashes, dates in another order of parts.
//!
//! As in PostgreSQL, ROLLBACK undoes what its transaction set, and any end of the transaction
//! undoes SET LOCAL. A savepoint undoes nothing here.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::command::Assignment;
use crate::failure::{Failure, state};

/// A parameter that every session has.
struct SettingRow {
    name: &'static str,
    default: &'static str,
    takes: Takes,
    /// True if ParameterStatus reports a change.
    reported: bool,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Anything,
    /// `on` or `off`.
    Switch,
    /// A time; a number without a unit is in milliseconds.
    Milliseconds,
    /// One of these, compared by letters and digits in any case; SHOW gives the first.
    Only(&'static [&'static str]),
    /// Values that begin with this.
    Beginning(&'static str),
    /// Schemas: those in which names without a schema are found here.
    Path,
    /// None: it cannot be set.
    Nothing,
}

const fn row(
    name: &'static str,
    default: &'static str,
    takes: Takes,
    reported: bool,
) -> SettingRow {
    SettingRow { name, default, takes, reported }
}

/// The PostgreSQL version that drivers read, to decide which features they use.
pub(crate) const VERSION: &str = "15.0";

const SETTINGS: &[SettingRow] = &[
    row("application_name", "", Takes::Anything, true),
    row("bytea_output", "hex", Takes::Only(&["hex"]), false),
    row("client_encoding", "UTF8", Takes::Only(&["UTF8", "UNICODE"]), true),
    row("client_min_messages", "notice", Takes::Anything, false),
    row("DateStyle", "ISO, MDY", Takes::Beginning("ISO"), true),
    row("default_table_access_method", "heap", Takes::Only(&["heap"]), false),
    row("default_transaction_deferrable", "off", Takes::Switch, false),
    row("default_transaction_isolation", "serializable", Takes::Anything, false),
    row("default_transaction_read_only", "off", Takes::Switch, true),
    row("escape_string_warning", "on", Takes::Switch, false),
    row("extra_float_digits", "1", Takes::Anything, false),
    row("idle_in_transaction_session_timeout", "0", Takes::Milliseconds, false),
    row("idle_session_timeout", "0", Takes::Milliseconds, false),
    row("in_hot_standby", "off", Takes::Nothing, true),
    row("integer_datetimes", "on", Takes::Nothing, true),
    row("IntervalStyle", "postgres", Takes::Anything, true),
    row("is_superuser", "off", Takes::Nothing, true),
    row("jit", "off", Takes::Switch, false),
    row("lc_collate", "C", Takes::Nothing, false),
    row("lc_ctype", "C", Takes::Nothing, false),
    row("lc_messages", "C", Takes::Anything, false),
    row("lc_monetary", "C", Takes::Anything, false),
    row("lc_numeric", "C", Takes::Anything, false),
    row("lc_time", "C", Takes::Anything, false),
    row("lock_timeout", "0", Takes::Milliseconds, false),
    row("max_identifier_length", "63", Takes::Nothing, false),
    row("max_index_keys", "32", Takes::Nothing, false),
    row("plan_cache_mode", "force_generic_plan", Takes::Anything, false),
    row("role", "none", Takes::Only(&["none"]), false),
    row("row_security", "on", Takes::Switch, false),
    row("search_path", "public", Takes::Path, false),
    row("server_encoding", "UTF8", Takes::Nothing, true),
    row("server_version", VERSION, Takes::Nothing, true),
    row("server_version_num", "150000", Takes::Nothing, false),
    row("session_authorization", "", Takes::Nothing, true),
    row("standard_conforming_strings", "on", Takes::Only(&["on", "true", "yes", "1"]), true),
    row("statement_timeout", "0", Takes::Milliseconds, false),
    row("synchronous_commit", "on", Takes::Anything, false),
    row("TimeZone", "UTC", Takes::Anything, true),
    row("transaction_isolation", "serializable", Takes::Anything, false),
    row("transaction_read_only", "off", Takes::Switch, false),
    row("work_mem", "4MB", Takes::Anything, false),
];

fn row_of(name: &str) -> Option<&'static SettingRow> {
    SETTINGS.iter().find(|row| row.name.eq_ignore_ascii_case(name))
}

/// Values that differ from the defaults, by names in lower case.
type SettingValues = BTreeMap<String, String>;

/// The parameters of one session.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The values of the startup packet, which RESET restores.
    start: SettingValues,
    now: SettingValues,
    /// The values before the transaction first set one.
    before: Option<SettingValues>,
    /// The values that SET LOCAL hides, oldest first.
    covered: Vec<(String, Option<String>)>,
    /// True if anything has changed since the last look at this.
    changed: bool,
}

impl Settings {
    /// Makes the parameters of a session from those of its startup packet.
    ///
    /// # Errors
    /// A value is refused.
    pub(crate) fn begin<'a>(
        user: &str,
        version: &str,
        given: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Failure> {
        let mut settings = Self::default();
        for (name, value) in given {
            let (name, value) = checked(name, value)?;
            settings.start.insert(name, value);
        }
        settings.start.insert("session_authorization".to_owned(), user.to_owned());
        settings.start.insert("server_version".to_owned(), version.to_owned());
        settings.now.clone_from(&settings.start);
        Ok(settings)
    }

    /// Returns the value of a parameter, by its name in any case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        let set = self.now.get(&name).map(String::as_str);
        set.or_else(|| row_of(&name).map(|row| row.default))
    }

    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// There is no parameter of this name.
    pub(crate) fn show(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).ok_or_else(|| unknown(name))
    }

    /// Returns a parameter's name as SHOW writes it.
    pub(crate) fn title(name: &str) -> &str {
        row_of(name).map_or(name, |row| row.name)
    }

    /// Returns all parameters with their values, and whether the session has set them.
    pub(crate) fn all(&self) -> Vec<(&str, &str, bool)> {
        let known = SETTINGS.iter().map(|row| row.name);
        let own = self.now.keys().map(String::as_str).filter(|name| row_of(name).is_none());
        let is_set = |name: &str| {
            let name = name.to_ascii_lowercase();
            self.now.get(&name) != self.start.get(&name)
        };
        known.chain(own).map(|name| (name, self.get(name).unwrap_or(""), is_set(name))).collect()
    }

    /// Returns the parameters that ParameterStatus reports, with their values.
    pub(crate) fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = SETTINGS.iter().filter(|row| row.reported);
        reported.map(|row| (row.name, self.get(row.name).unwrap_or("").to_owned())).collect()
    }

    /// True if anything has changed since the last look at this.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// True if a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("on")
    }

    /// Returns a time, or none if it is zero, which is the default of every time. `name` is in
    /// lower case, because every statement calls this.
    pub(crate) fn duration(&self, name: &'static str) -> Option<Duration> {
        let milliseconds = milliseconds(self.now.get(name)?)?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Sets a parameter. With `in_transaction`, a rollback undoes it.
    ///
    /// # Errors
    /// The parameter is unknown, or does not take the value.
    pub(crate) fn set(&mut self, change: &Assignment, in_transaction: bool) -> Result<(), Failure> {
        let (name, value) = match &change.value {
            // A role may become itself.
            Some(value)
                if change.name.eq_ignore_ascii_case("role")
                    && self.start.get("session_authorization") == Some(value) =>
            {
                ("role".to_owned(), Some(value.clone()))
            }
            Some(value) => {
                let (name, value) = checked(&change.name, value)?;
                (name, Some(value))
            }
            None => {
                self.show(&change.name)?;
                let name = change.name.to_ascii_lowercase();
                let value = self.start.get(&name).cloned();
                (name, value)
            }
        };
        if change.local && !in_transaction {
            return Ok(());
        }
        if in_transaction {
            self.before.get_or_insert_with(|| self.now.clone());
        }
        if change.local {
            self.covered.push((name.clone(), self.now.get(&name).cloned()));
        } else {
            self.covered.retain(|(covered, _)| *covered != name);
        }
        put(&mut self.now, name, value);
        self.changed = true;
        Ok(())
    }

    /// Restores all values of the startup packet.
    pub(crate) fn reset_all(&mut self, in_transaction: bool) {
        if in_transaction {
            self.before.get_or_insert_with(|| self.now.clone());
        }
        self.covered.clear();
        self.now.clone_from(&self.start);
        self.changed = true;
    }

    /// Ends a transaction: undoes SET LOCAL, and all changes if it was rolled back.
    pub(crate) fn transaction_ended(&mut self, committed: bool) {
        let before = self.before.take();
        let covered = std::mem::take(&mut self.covered);
        self.changed |= before.is_some();
        if !committed && let Some(before) = before {
            self.now = before;
            return;
        }
        for (name, value) in covered.into_iter().rev() {
            put(&mut self.now, name, value);
        }
    }
}

fn put(values: &mut SettingValues, name: String, value: Option<String>) {
    match value {
        Some(value) => drop(values.insert(name, value)),
        None => drop(values.remove(&name)),
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(state::NO_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// Returns a parameter's name in lower case and its value as SHOW gives it.
fn checked(name: &str, value: &str) -> Result<(String, String), Failure> {
    let Some(row) = row_of(name) else {
        // Names with a dot are custom parameters, which any client may set.
        let own = name.contains('.');
        let pair = || (name.to_ascii_lowercase(), value.to_owned());
        return if own { Ok(pair()) } else { Err(unknown(name)) };
    };
    let bad = || {
        let message = format!("invalid value for parameter \"{}\": \"{value}\"", row.name);
        Failure::new(state::BAD_PARAMETER_VALUE, message)
    };
    let shown = match row.takes {
        Takes::Anything => value.to_owned(),
        Takes::Switch => {
            let on = crate::decode::boolean(value).ok_or_else(bad)?;
            (if on { "on" } else { "off" }).to_owned()
        }
        Takes::Milliseconds => {
            milliseconds(value).ok_or_else(bad)?;
            value.to_owned()
        }
        Takes::Only(values) => {
            let plain = value.replace(|letter: char| !letter.is_alphanumeric(), "");
            let known = values.iter().any(|known| known.eq_ignore_ascii_case(&plain));
            let shown = values.first().copied().filter(|_| known);
            let only =
                || bad().hint(format!("only {} is supported", values.first().unwrap_or(&"")));
            shown.ok_or_else(only)?.to_owned()
        }
        Takes::Beginning(start) => {
            let begins = value.get(..start.len()).is_some_and(|v| v.eq_ignore_ascii_case(start));
            if !begins {
                return Err(bad().hint(format!("only {start} is supported")));
            }
            if value.len() == start.len() { row.default.to_owned() } else { value.to_owned() }
        }
        Takes::Path => {
            let found = |part: &str| {
                let part = part.trim().trim_matches('"');
                ["", "public", "$user", "pg_catalog", "pg_temp", "information_schema"]
                    .contains(&part)
            };
            if !value.split(',').all(found) {
                let message = format!("search_path \"{value}\" is not supported");
                return Err(Failure::unsupported(message)
                    .hint("write the schema in front of each name: app.t"));
            }
            value.to_owned()
        }
        Takes::Nothing => {
            let message = format!("parameter \"{}\" cannot be changed", row.name);
            return Err(Failure::new("55P02", message));
        }
    };
    Ok((row.name.to_ascii_lowercase(), shown))
}

/// Reads a time in milliseconds: a number, with a unit or without.
fn milliseconds(value: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("min", 60_000), ("s", 1000), ("h", 3_600_000), ("d", 86_400_000)];
    let value = value.trim();
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((value.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((value, 1));
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &mut Settings, name: &str, value: &str, local: bool) -> Result<(), Failure> {
        let value = Some(value.to_owned());
        settings.set(&Assignment { name: name.to_owned(), value, local }, true)
    }

    #[test]
    fn a_rollback_undoes_what_was_set() {
        let given = [("TimeZone", "Europe/Berlin")];
        let mut settings = Settings::begin("ann", "15.0", given.into_iter()).unwrap();
        assert_eq!(settings.get("timezone"), Some("Europe/Berlin"));
        set(&mut settings, "timezone", "UTC", false).unwrap();
        settings.transaction_ended(false);
        assert_eq!(settings.get("TIMEZONE"), Some("Europe/Berlin"));
        set(&mut settings, "application_name", "a", false).unwrap();
        set(&mut settings, "work_mem", "1MB", true).unwrap();
        settings.transaction_ended(true);
        assert_eq!(settings.get("application_name"), Some("a"));
        assert_eq!(settings.get("work_mem"), Some("4MB"));
        settings.reset_all(false);
        assert_eq!(settings.get("application_name"), Some(""));
        assert_eq!(settings.get("session_authorization"), Some("ann"));
    }

    #[test]
    fn what_would_change_results_is_refused() {
        let mut settings = Settings::default();
        for (name, value, sqlstate) in [
            ("client_encoding", "LATIN1", "22023"),
            ("standard_conforming_strings", "off", "22023"),
            ("DateStyle", "German", "22023"),
            ("server_version", "1", "55P02"),
            ("nosuch", "1", "42704"),
            ("statement_timeout", "soon", "22023"),
        ] {
            assert_eq!(set(&mut settings, name, value, false).unwrap_err().sqlstate, sqlstate);
        }
        set(&mut settings, "my.own", "x", false).unwrap();
        set(&mut settings, "statement_timeout", "2s", false).unwrap();
        assert_eq!(settings.duration("statement_timeout"), Some(Duration::from_secs(2)));
    }
}

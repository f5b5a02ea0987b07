//! Parts of the generator that `--with` and `--without` switch by name.
//!
//! A feature is off by default if a pooler in transaction mode cannot get it right by its nature,
//! or if it makes the outcome depend on which server a client gets.

use std::collections::BTreeSet;
use std::fmt;

/// A part of the generator that can be switched.
pub struct Feature {
    /// The name on the command line.
    pub name: &'static str,
    /// Whether the generator uses the feature without `--with`.
    pub default: bool,
    /// The help text: what the feature adds.
    pub doc: &'static str,
}

/// Returns a row of a table of features.
#[must_use]
pub const fn feature(name: &'static str, default: bool, doc: &'static str) -> Feature {
    Feature { name, default, doc }
}

/// Returns the lines of `--help` about the features of a table.
#[must_use]
pub fn help(table: &[Feature]) -> String {
    let line = |feature: &Feature| {
        let mark = if feature.default { "on " } else { "off" };
        format!("      {:<19}{mark}  {}\n", feature.name, feature.doc)
    };
    table.iter().map(line).collect()
}

/// All features.
pub const FEATURES: [Feature; 42] = [
    feature("set-reported", true, "SET, RESET, SET LOCAL of settings the server reports"),
    feature("set-unreported", true, "SET and RESET of search_path, work_mem, statement_timeout, …"),
    feature("env-pipe", true, "a SET and a Parse that depends on it, pipelined"),
    feature("deallocate", true, "SQL DEALLOCATE of protocol statements, by name and ALL"),
    feature("discard", true, "DISCARD ALL, PLANS, SEQUENCES, TEMP"),
    feature("ddl", true, "CREATE, ALTER, DROP of the client's own table t3 and of its indexes"),
    feature("outside", true, "DDL by a third connection, straight to the server"),
    feature("functions", true, "DDL in functions: called, in DO, in VALUES and in COPY"),
    feature("domains", true, "columns and casts of domains and enums"),
    feature("copy", true, "COPY in and out, simple and extended, ended early or badly"),
    feature("function-call", true, "FunctionCall messages"),
    feature("portals", true, "named portals, row limits, cursors"),
    feature(
        "sql-execute",
        true,
        "SQL EXECUTE, EXPLAIN and CREATE TABLE AS EXECUTE of protocol statements, as extended messages too",
    ),
    feature("execute-any", false, "SQL EXECUTE of any statement, which may end PostgreSQL itself"),
    feature("pins", true, "PREPARE, LISTEN, temporary tables, advisory locks, WITH HOLD"),
    feature("reconnect", true, "clients that leave, politely or not, and come back"),
    feature("startup-params", true, "reported settings in the start-up packet"),
    feature("burst", true, "steps of several clients in flight at once"),
    feature("large", true, "results and parameters of tens of kilobytes"),
    feature("vacuum", true, "VACUUM, which refuses to run in a transaction or pipeline"),
    feature(
        "stale",
        false,
        "shape changes under prepared statements; 0A000 on one side ends an episode",
    ),
    feature(
        "frozen",
        false,
        "literals bound under other settings than those of their Parse, and what has them analysed \
         again: another path, DDL, ANALYZE, DISCARD PLANS",
    ),
    feature(
        "roles",
        true,
        "SET ROLE, SESSION AUTHORIZATION, row security, rights that come and go",
    ),
    feature("role-paths", true, "names that mean something else to another role or path"),
    feature("encoded", false, "client encodings, with values of settings outside of ASCII"),
    feature("custom", true, "parameters of the user's own, also in row security"),
    feature("placeholders", false, "parameters of the user's own that only other clients have set"),
    feature("defaults", true, "defaults of transactions, limits of time and the like"),
    feature("temp-paths", true, "objects that are temporary because of the search_path"),
    feature("long-texts", false, "commands on both sides of byte 65,536 of a text"),
    feature("resets", false, "further commands behind a RESET in one query string"),
    feature(
        "namespace",
        true,
        "SQL PREPARE under protocol names, EXECUTE or DEALLOCATE among commands",
    ),
    feature("calls", true, "functions, triggers and DO that change the session"),
    feature("hidden", false, "set_config of unreported settings, DEALLOCATE ALL inside DO"),
    feature("longnames", true, "statement names past 63 bytes, which PostgreSQL cuts"),
    feature("malformed", true, "messages with impossible bodies"),
    feature("streams", true, "messages in an order that no driver sends"),
    feature("startup-unreported", false, "work_mem in the start-up packet"),
    feature("startup-options", false, "all that `options` of the start-up packet may have"),
    feature("startup-role", false, "a role in the start-up packet"),
    feature(
        "neighbours",
        false,
        "with reads: clients read the tables of others, whose writes are over",
    ),
    feature("reads", false, "the same few short reads by all clients at once, most of the time"),
];

/// The features in use, of a table of features.
#[derive(Clone)]
pub struct Features {
    table: &'static [Feature],
    used: BTreeSet<&'static str>,
}

impl Default for Features {
    fn default() -> Self {
        Self::of(&FEATURES)
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.used.fmt(f)
    }
}

impl Features {
    /// Takes those of a table that are on by default.
    #[must_use]
    pub fn of(table: &'static [Feature]) -> Self {
        let used = table.iter().filter(|feature| feature.default);
        Self { table, used: used.map(|feature| feature.name).collect() }
    }

    /// True if the feature is in use.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        debug_assert!(self.table.iter().any(|feature| feature.name == name), "no feature {name}");
        self.used.contains(name)
    }

    /// Switches the features of a comma-separated list of names; `all` names every feature.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn switch(&mut self, names: &str, on: bool) -> Result<(), String> {
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let known: Vec<_> =
                self.table.iter().filter(|f| f.name == name || name == "all").collect();
            if known.is_empty() {
                return Err(format!("no feature is called {name:?}"));
            }
            for feature in known {
                if on {
                    self.used.insert(feature.name);
                } else {
                    self.used.remove(feature.name);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Features;

    #[test]
    fn features_are_switched_by_name() {
        let mut features = Features::default();
        assert!(features.has("copy") && !features.has("stale"));
        features.switch("copy,ddl", false).unwrap();
        features.switch("stale", true).unwrap();
        assert!(!features.has("copy") && features.has("stale"));
        assert!(features.switch("nonsense", true).is_err());
        features.switch("all", false).unwrap();
        assert!(!features.has("pins"));
    }
}

//! The variables of a session.

use std::collections::BTreeMap;

/// Character sets that clients may have, each with its collations: the default first.
pub const SETS: &[(&str, &[&str])] = &[
    ("utf8mb4", &["utf8mb4_0900_ai_ci", "utf8mb4_bin", "utf8mb4_general_ci"]),
    ("latin1", &["latin1_swedish_ci", "latin1_bin"]),
];

/// The collations that a login may name, by number: that of the server first.
pub const COLLATIONS: &[(u8, &str, &str)] = &[
    (255, "utf8mb4", "utf8mb4_0900_ai_ci"),
    (45, "utf8mb4", "utf8mb4_general_ci"),
    (46, "utf8mb4", "utf8mb4_bin"),
    (8, "latin1", "latin1_swedish_ci"),
    (47, "latin1", "latin1_bin"),
];

/// The variables with which a session begins.
const FIRST: &[(&str, &str)] = &[
    ("autocommit", "ON"),
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("collation_connection", "utf8mb4_0900_ai_ci"),
    ("lock_wait_timeout", "50"),
    ("max_prepared_stmt_count", "16382"),
    ("session_track_schema", "ON"),
    ("session_track_state_change", "OFF"),
    ("session_track_system_variables", LISTED),
    ("session_track_transaction_info", "OFF"),
    ("sql_mode", "STRICT"),
    ("time_zone", "SYSTEM"),
];

/// The variables whose changes a session reports at first.
const LISTED: &str = "time_zone,autocommit,character_set_client,character_set_results,\
                      character_set_connection";

/// The variables that decide what a text means when it is prepared.
const MEANINGFUL: &[&str] = &[
    "character_set_client",
    "character_set_connection",
    "collation_connection",
    "sql_mode",
    "time_zone",
];

/// The variables of a session, by name.
#[derive(Clone, Debug)]
pub struct Variables(BTreeMap<&'static str, String>);

impl Default for Variables {
    fn default() -> Self {
        Self(FIRST.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
    }
}

impl Variables {
    /// Returns a variable's value.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether there is such a variable.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets a variable. Returns the value as the server prints it; `None` if there is no such
    /// variable.
    pub fn set(&mut self, name: &str, value: &str) -> Option<String> {
        let switch = name == "autocommit"
            || name == "session_track_schema"
            || name == "session_track_state_change";
        let value = match value {
            "0" if switch => "OFF",
            "1" if switch => "ON",
            other => other,
        };
        let slot = self.0.get_mut(name)?;
        value.clone_into(slot);
        if name == "character_set_connection" {
            let collation = default_collation(value).to_owned();
            self.0.insert("collation_connection", collation);
        }
        Some(value.to_owned())
    }

    /// Sets what SET NAMES sets.
    pub fn set_names(&mut self, set: &str, collation: &str) {
        for name in ["character_set_client", "character_set_results", "character_set_connection"] {
            self.set(name, set);
        }
        self.set("collation_connection", collation);
    }

    /// Returns all, in order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Returns those that no tracker is, in words.
    pub fn printed(&self) -> String {
        let shown = self.all().filter(|(name, _)| !name.starts_with("session_track"));
        shown.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
    }

    /// Returns those that decide what a text means, in words.
    pub fn environment(&self) -> String {
        let values = MEANINGFUL.iter().map(|name| self.get(name));
        values.collect::<Vec<_>>().join(",")
    }
}

/// Returns the collation that a character set has by default.
pub fn default_collation(set: &str) -> &'static str {
    SETS.iter().find(|(name, _)| *name == set).map_or("", |(_, collations)| collations[0])
}

//! The settings of a session that follow a client from server to server: its default schema, the
//! option for several statements in a text, and session variables.
//!
//! Servers report every change of a variable, with the value as SHOW VARIABLES prints it
//! (`session_track_system_variables`), so nothing is read from texts. Of the variables, settings
//! have those that differ from the server's [`Base`].

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use refrain_pool::seed::Seed;

use crate::sweep::Sweep;

/// The value of each session variable as a session begins with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    variables: BTreeMap<Box<[u8]>, Arc<[u8]>>,
    /// The collations by number: name, and character set.
    collations: BTreeMap<u16, Collation>,
}

/// A collation's name, and its character set.
type Collation = (Box<[u8]>, Box<[u8]>);

/// The settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    /// The default schema.
    pub(crate) schema: Option<Box<[u8]>>,
    /// Whether a text may have several statements.
    pub(crate) has_several: bool,
    /// The variables that differ from the base.
    changed: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

/// The statement that asks for the values of all variables.
pub(crate) const VARIABLES: &[u8] = b"SHOW SESSION VARIABLES";

/// The statement that asks MariaDB for the variables that a session can set, but for the list of
/// what is to be reported: that is longer than a value may be there, which leaves a warning. LIMIT
/// is for sessions with a `sql_select_limit`, and no client's character set is in binary values.
pub(crate) const SETTABLE_OF_MARIADB: &[u8] = b"SELECT \
    CONVERT(LOWER(variable_name) USING binary), CONVERT(session_value USING binary) \
    FROM information_schema.system_variables \
    WHERE variable_scope <> 'GLOBAL' AND read_only = 'NO' \
    AND variable_name <> 'session_track_system_variables' LIMIT 18446744073709551615";

/// The same for MySQL, which does not tell the variables that no session can set. Their values are
/// the global ones, as the third column says.
pub(crate) const SETTABLE_OF_MYSQL: &[u8] = b"SELECT CONVERT(variable_name USING binary), \
    CONVERT(s.variable_value USING binary), s.variable_value <=> g.variable_value \
    FROM performance_schema.session_variables AS s \
    LEFT JOIN performance_schema.global_variables AS g USING (variable_name) \
    LIMIT 18446744073709551615";

/// Variables that a session has for one statement, or that are no setting: their values as reported
/// are not those to set.
const UNTRACKED: &[&str] = &[
    // These two come with the schema.
    "character_set_database",
    "collation_database",
    "error_count",
    "gtid_next",
    "identity",
    "insert_id",
    "last_gtid",
    "last_insert_id",
    // It is that of the connection to a primary that `default_master_connection` names.
    "max_relay_log_size",
    "session_track_gtids",
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
    "session_track_transaction_info",
    "statement_id",
    "timestamp",
    "transaction_allow_batching",
    "warning_count",
    "wsrep_gtid_seq_no",
];
/// Beginnings of the names of such variables.
const UNTRACKED_PREFIXES: &[&str] = &["rand_seed", "pseudo_", "in_", "server_audit_"];

/// Variables that do not change what a text means when it is prepared.
const HARMLESS: &[&str] = &[
    "autocommit",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "lock_wait_timeout",
    "max_execution_time",
    "max_statement_time",
    "net_read_timeout",
    "net_write_timeout",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "wait_timeout",
];

/// The version of MySQL that goes by the types of a statement's first execution for good.
const FIXES_TYPES: [u32; 3] = [8, 0, 22];

/// The version of MySQL with which COM_RESET_CONNECTION sets IGNORE_SPACE again for a client that
/// has asked for that at its login: 9.7 does, 8.0.15 does not.
const RESETS_TO_LOGIN: [u32; 3] = [9, 0, 0];

/// The word in the version of MariaDB, whatever the case.
const MARIADB: &[u8] = b"mariadb";

/// Character sets that no client can have.
const NO_CLIENT_HAS: &[&str] = &["ucs2", "utf16", "utf16le", "utf32"];
/// Character sets in which a byte of a character may be a backslash or a quote.
const MULTIBYTE_QUOTES: &[&str] = &["big5", "cp932", "gb18030", "gbk", "sjis"];

/// Whether a change of a variable stays on the server. Those that say what is reported are not
/// among them: Refrain sets these itself.
pub(crate) fn stays(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    !is_tracked(&name) && !name.starts_with(b"session_track_")
}

/// Whether a variable is one whose changes follow the client.
fn is_tracked(name: &[u8]) -> bool {
    let begins = |prefix: &&str| name.starts_with(prefix.as_bytes());
    !UNTRACKED_PREFIXES.iter().any(begins) && !UNTRACKED.iter().any(|it| it.as_bytes() == name)
}

/// Whether a variable may change what a text means when it is prepared.
fn is_meaningful(name: &[u8]) -> bool {
    !HARMLESS.iter().any(|other| other.as_bytes() == name)
}

impl Base {
    /// Takes in a row of SHOW SESSION VARIABLES.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.variables.insert(name.into(), value.into());
    }

    /// Takes in a row of SHOW COLLATION: name, character set, number.
    pub(crate) fn add_collation(&mut self, row: &[Box<[u8]>]) {
        let [name, character_set, number, ..] = row else { return };
        if let Some(number) = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()) {
            self.collations.insert(number, (name.clone(), character_set.clone()));
        }
    }

    /// Returns a variable's value.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.variables.get(name).map(|value| &**value)
    }

    /// Returns a variable's value, to be shared.
    pub(crate) fn shared(&self, name: &[u8]) -> Arc<[u8]> {
        self.variables.get(name).cloned().unwrap_or_default()
    }

    /// Returns a variable's value that is a number.
    pub(crate) fn number(&self, name: &[u8]) -> Option<usize> {
        std::str::from_utf8(self.value(name)?).ok()?.parse().ok()
    }

    fn version(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.value(b"version").unwrap_or_default())
    }

    /// Whether the server is MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        let version = self.value(b"version").unwrap_or_default();
        version.windows(MARIADB.len()).any(|part| part.eq_ignore_ascii_case(MARIADB))
    }

    /// Whether a prepared statement goes by the types of its first execution for good.
    pub(crate) fn fixes_types(&self) -> bool {
        !self.is_mariadb() && self.numbers() >= FIXES_TYPES
    }

    /// Whether a reset sets IGNORE_SPACE for a client that has asked for that at its login.
    pub(crate) fn resets_to_login(&self) -> bool {
        !self.is_mariadb() && self.numbers() >= RESETS_TO_LOGIN
    }

    /// Returns the numbers of the version.
    fn numbers(&self) -> [u32; 3] {
        let version = self.version();
        let mut numbers =
            version.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
        std::array::from_fn(|_| numbers.next().unwrap_or_default())
    }

    /// Whether changes of a variable follow the client.
    pub(crate) fn tracks(&self, name: &[u8]) -> bool {
        is_tracked(name) && self.variables.contains_key(name)
    }

    /// Returns the statement that has the server report all that a client may change.
    pub(crate) fn tracking(&self) -> Vec<u8> {
        let mut text = b"SET SESSION session_track_schema=ON, session_track_state_change=ON, \
            session_track_transaction_info='CHARACTERISTICS', \
            session_track_system_variables='"
            .to_vec();
        let names = self.variables.keys().filter(|name| is_tracked(name));
        for (at, name) in names.enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(name);
        }
        text.push(b'\'');
        text
    }
}

impl Settings {
    /// Makes settings with all variables as in the base.
    pub(crate) fn new(schema: Option<&[u8]>, has_several: bool) -> Self {
        Self { schema: schema.map(Into::into), has_several, ..Self::default() }
    }

    /// Notes the value of a variable.
    pub(crate) fn set(&mut self, base: &Base, name: &[u8], value: &[u8]) {
        if base.value(name) == Some(value) {
            self.changed.remove(name);
        } else {
            self.changed.insert(name.into(), value.into());
        }
    }

    /// Sets the collation that a client named at its login. Servers take their own for one that
    /// they do not know, or that no client can have.
    pub(crate) fn set_collation(&mut self, base: &Base, number: u16) {
        let Some((name, character_set)) = base.collations.get(&number) else { return };
        if NO_CLIENT_HAS.iter().any(|other| other.as_bytes() == &**character_set) {
            return;
        }
        for variable in
            ["character_set_client", "character_set_connection", "character_set_results"]
        {
            self.set(base, variable.as_bytes(), character_set);
        }
        self.set(base, b"collation_connection", name);
    }

    /// Takes over how other settings differ from those before them.
    pub(crate) fn follow(&mut self, before: &Self, after: &Self) {
        if before.schema != after.schema {
            self.schema.clone_from(&after.schema);
        }
        let names = before.changed.keys().chain(after.changed.keys());
        for name in names.filter(|name| before.changed.get(*name) != after.changed.get(*name)) {
            match after.changed.get(name) {
                Some(value) => self.changed.insert(name.clone(), value.clone()),
                None => self.changed.remove(name),
            };
        }
    }

    /// Adds IGNORE_SPACE to `sql_mode`.
    pub(crate) fn ignore_space(&mut self, base: &Base) {
        let mode = base.value(b"sql_mode").unwrap_or_default();
        if mode.split(|&byte| byte == b',').any(|part| part == b"IGNORE_SPACE") {
            return;
        }
        let comma = if mode.is_empty() { &b""[..] } else { b"," };
        self.set(base, b"sql_mode", &[mode, comma, b"IGNORE_SPACE"].concat());
    }

    /// Whether a quotation mark is that of a name.
    pub(crate) fn has_ansi_quotes(&self, base: &Base) -> bool {
        let mode = self.changed.get(&b"sql_mode"[..]).map(|mode| &**mode);
        let mode = mode.or_else(|| base.value(b"sql_mode")).unwrap_or_default();
        mode.split(|&byte| byte == b',').any(|part| part == b"ANSI_QUOTES")
    }

    /// Whether a byte of a character in the client's texts may be a quote or a backslash.
    pub(crate) fn has_multibyte_quotes(&self) -> bool {
        let set = self.changed.get(&b"character_set_client"[..]);
        set.is_some_and(|set| MULTIBYTE_QUOTES.iter().any(|other| other.as_bytes() == &**set))
    }

    /// Returns the settings of a session that was reset: it keeps its schema, and the option.
    pub(crate) fn reset(&self) -> Self {
        Self::new(self.schema.as_deref(), self.has_several)
    }

    /// Returns the settings that decide what a text means when it is prepared.
    pub(crate) fn environment(&self) -> Self {
        Self { has_several: false, ..self.in_environment(self, true) }
    }

    /// Whether a text that is prepared under these settings means what it does in an environment. A
    /// text that means something without a schema means the same under any.
    pub(crate) fn are_in(&self, environment: &Self) -> bool {
        let meaningful = |settings: &'_ Self| {
            settings.changed.iter().filter(|(name, _)| is_meaningful(name)).count()
        };
        let has_schema = environment.schema.is_none() || environment.schema == self.schema;
        let changed = &environment.changed;
        has_schema
            && changed.iter().all(|(name, value)| self.changed.get(name) == Some(value))
            && meaningful(self) == changed.len()
    }

    /// Whether [`Self::environment`] is this one.
    pub(crate) fn have_environment(&self, environment: &Self) -> bool {
        self.schema == environment.schema && self.are_in(environment)
    }

    /// Returns these settings with those of an environment in place of the ones that decide what a
    /// text means.
    pub(crate) fn put_in(&self, environment: &Self) -> Self {
        self.in_environment(environment, false)
    }

    fn in_environment(&self, environment: &Self, alone: bool) -> Self {
        let its = environment.changed.iter().filter(|(name, _)| is_meaningful(name));
        let kept = self.changed.iter().filter(|(name, _)| !alone && !is_meaningful(name));
        let changed = its.chain(kept).map(|(name, value)| (name.clone(), value.clone())).collect();
        let schema = environment.schema.clone().or_else(|| self.schema.clone());
        Self { schema, has_several: self.has_several, changed }
    }

    /// Returns the statement that gives a session with the settings `from` the variables of these;
    /// `None` if it has them.
    pub(crate) fn statement(&self, from: &Self, base: &Base) -> Option<Vec<u8>> {
        let undone = from.changed.keys().filter(|name| !self.changed.contains_key(*name));
        let undone = undone.filter_map(|name| Some((&**name, base.value(name)?)));
        let set =
            self.changed.iter().filter(|(name, value)| from.changed.get(*name) != Some(value));
        let set = set.map(|(name, value)| (&**name, &**value));
        let mut all: Vec<_> = undone.chain(set).collect();
        for pair in WITH_COLLATION {
            self.join(&mut all, pair, base);
        }
        all.sort_unstable();
        if all.is_empty() {
            return None;
        }
        let mut text = b"SET ".to_vec();
        for (at, (name, value)) in all.into_iter().enumerate() {
            text.extend_from_slice(if at > 0 { b", @@session." } else { b"@@session." });
            text.extend_from_slice(name);
            text.push(b'=');
            put_value(&mut text, name, value);
        }
        Some(text)
    }

    /// Completes values that are set by a character set or its collation: each of the two sets the
    /// other, and the collation is set behind the character set.
    fn join<'a>(
        &'a self,
        all: &mut Vec<(&'a [u8], &'a [u8])>,
        pair: &'static WithCollation,
        base: &'a Base,
    ) {
        let WithCollation { character_set, collation, is_asked_for } = *pair;
        let has = |all: &[(&[u8], &[u8])], name: &[u8]| all.iter().any(|(its, _)| *its == name);
        if !has(all, character_set) && !has(all, collation) {
            return;
        }
        let own = |name: &[u8]| self.changed.get(name).map(|value| &**value);
        if let (Some(set), None, false) = (own(character_set), own(collation), is_asked_for) {
            // The collation is the character set's default.
            if has(all, collation) {
                all.retain(|(name, _)| *name != collation && *name != character_set);
                all.push((character_set, set));
            }
        } else if has(all, character_set) && !has(all, collation) {
            let value = own(collation).or_else(|| base.value(collation));
            all.extend(value.map(|value| (collation, value)));
        }
    }

    /// Notes that a server has reported one of a character set and its collation, and has set the
    /// other by itself.
    pub(crate) fn forget_other(&mut self, reported: &[u8]) {
        for WithCollation { character_set, collation, is_asked_for } in WITH_COLLATION {
            let other = match reported {
                name if name == *character_set => collation,
                name if name == *collation => character_set,
                _ => continue,
            };
            if !is_asked_for {
                self.changed.remove(*other);
            }
        }
    }
}

/// A character set and its collation. Servers report the one that was set.
struct WithCollation {
    character_set: &'static [u8],
    collation: &'static [u8],
    /// Whether the server is asked for the collation behind a report of the character set.
    is_asked_for: bool,
}

const WITH_COLLATION: &[WithCollation] = &[
    WithCollation {
        character_set: b"character_set_connection",
        collation: b"collation_connection",
        is_asked_for: true,
    },
    WithCollation {
        character_set: b"character_set_server",
        collation: b"collation_server",
        is_asked_for: false,
    },
];

/// Values that are no string, though they are printed as one: the variable, the value as it is
/// printed, and as it is written. NULL is printed as nothing; where a variable takes an empty
/// string as well, that means the same.
const WORDS: &[(&str, &str, &str)] = &[
    ("character_set_results", "", "NULL"),
    ("default_tmp_storage_engine", "", "NULL"),
    ("enforce_storage_engine", "", "NULL"),
    ("innodb_ft_user_stopword_table", "", "NULL"),
    ("innodb_tmpdir", "", "NULL"),
    ("system_versioning_asof", "DEFAULT", "DEFAULT"),
];

/// Appends a value as it is written in a statement. The server prints numbers as they are written.
fn put_value(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && digits.iter().filter(|byte| **byte == b'.').count() <= 1;
    let printed = |row: &&(&str, &str, &str)| (row.0.as_bytes(), row.1.as_bytes()) == (name, value);
    if let Some((_, _, written)) = WORDS.iter().find(printed) {
        return text.extend_from_slice(written.as_bytes());
    }
    if is_number {
        return text.extend_from_slice(value);
    }
    put_string(text, value);
}

/// Appends a string as it is written in a statement.
pub(crate) fn put_string(text: &mut Vec<u8>, value: &[u8]) {
    // A string of hexadecimal digits means the same under every `sql_mode` and character set.
    if value.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'\'' | b'\\')) {
        text.push(b'\'');
        text.extend_from_slice(value);
        return text.push(b'\'');
    }
    text.extend_from_slice(b"x'");
    for byte in value {
        text.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    text.push(b'\'');
}

/// The settings that the sessions of a core have. Those that are equal are the same in memory, so
/// that a server that has a client's settings is known by a pointer.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    known: HashSet<Arc<Settings>, Seed>,
    sweep: Sweep,
}

impl Interned {
    /// Makes an empty table.
    pub(crate) fn new(seed: Seed) -> Self {
        Self { known: HashSet::with_hasher(seed), sweep: Sweep::default() }
    }

    /// Puts the settings that sessions share in place of equal ones.
    pub(crate) fn intern(&mut self, settings: &mut Arc<Settings>) {
        if let Some(known) = self.known.get(settings) {
            settings.clone_from(known);
            return;
        }
        if self.sweep.is_due(self.known.len()) {
            self.known.retain(|settings| Arc::strong_count(settings) > 1);
            self.sweep.done(self.known.len());
        }
        self.known.insert(settings.clone());
    }
}

/// Changes settings that a session shares with others.
pub(crate) fn edit(settings: &mut Arc<Settings>, change: impl FnOnce(&mut Settings)) {
    change(Arc::make_mut(settings));
}

#[cfg(test)]
mod tests;

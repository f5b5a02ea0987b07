//! Refuses actions that a client's statement may not do.
//!
//! Refrain serves one database file. Without this, `ATTACH` reads and writes any file that the
//! process can, and so does `VACUUM INTO`, which attaches its target. SQLite asks the
//! [`Authorizer`] about each action of a statement while it compiles the statement.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The ways in which a client may use a PRAGMA.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PragmaUse {
    /// Without an argument: the client reads the value.
    Ask,
    /// With an argument as well.
    Argument,
}

/// The PRAGMAs that a client may use. All others could change how the file is kept, the connection
/// of the next client, or the safety of either.
const PRAGMAS: &[(&str, PragmaUse)] = &[
    ("application_id", PragmaUse::Argument),
    ("auto_vacuum", PragmaUse::Ask),
    ("busy_timeout", PragmaUse::Ask),
    ("cache_size", PragmaUse::Ask),
    ("collation_list", PragmaUse::Ask),
    ("compile_options", PragmaUse::Ask),
    ("data_version", PragmaUse::Ask),
    ("database_list", PragmaUse::Ask),
    ("defer_foreign_keys", PragmaUse::Argument),
    ("encoding", PragmaUse::Ask),
    ("foreign_key_check", PragmaUse::Argument),
    ("foreign_key_list", PragmaUse::Argument),
    ("foreign_keys", PragmaUse::Ask),
    ("freelist_count", PragmaUse::Ask),
    ("function_list", PragmaUse::Ask),
    ("index_info", PragmaUse::Argument),
    ("index_list", PragmaUse::Argument),
    ("index_xinfo", PragmaUse::Argument),
    ("integrity_check", PragmaUse::Argument),
    ("journal_mode", PragmaUse::Ask),
    ("module_list", PragmaUse::Ask),
    ("optimize", PragmaUse::Argument),
    ("page_count", PragmaUse::Ask),
    ("page_size", PragmaUse::Ask),
    ("pragma_list", PragmaUse::Ask),
    ("quick_check", PragmaUse::Argument),
    ("schema_version", PragmaUse::Ask),
    ("synchronous", PragmaUse::Ask),
    ("table_info", PragmaUse::Argument),
    ("table_list", PragmaUse::Argument),
    ("table_xinfo", PragmaUse::Argument),
    ("user_version", PragmaUse::Argument),
    ("wal_checkpoint", PragmaUse::Argument),
];

/// SQLite's functions whose time grows with the length of their arguments and no faster, and which
/// read no table. Sorted. A function that the connection was given counts as one of these, unless
/// it is in [`COSTLY`].
const CHEAP: &[&str] = &[
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_object",
    "json_quote",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_insert_rowid",
    "last_value",
    "lead",
    "length",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "max",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "rank",
    "round",
    "row_number",
    "sign",
    "sin",
    "sinh",
    "sqlite_version",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "total_changes",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
];

/// Refrain's functions whose time grows faster.
const COSTLY: &[&str] = &["regexp"];

/// Tables whose rows need a read of the whole file.
const COSTLY_TABLES: &[&str] = &[
    "dbstat",
    "pragma_foreign_key_check",
    "pragma_integrity_check",
    "pragma_optimize",
    "pragma_quick_check",
    "pragma_wal_checkpoint",
];

/// Functions that reach outside of the database.
const FUNCTIONS: &[&str] = &["load_extension", "fts3_tokenizer"];

/// The owner of the statements that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trust {
    /// A client's.
    Client,
    /// A client's `VACUUM`, which attaches a file without a name while it runs.
    Vacuum,
    /// Refrain's own.
    Full,
}

/// Answers SQLite's questions; shared with the callback.
pub(crate) struct Authorizer {
    trust: AtomicU8,
    /// True if a statement was compiled of which a single step may take long, since the last look
    /// at this.
    costly: AtomicBool,
    /// Functions that the connection was given.
    given: Mutex<Vec<String>>,
}

impl Authorizer {
    pub(crate) fn new() -> Arc<Authorizer> {
        let (costly, given) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Authorizer { trust: AtomicU8::new(Trust::Client as u8), costly, given })
    }

    /// Sets how far statements are trusted, until the result is dropped.
    pub(crate) fn trust(&self, trust: Trust) -> Trusting<'_> {
        Trusting { authorizer: self, before: self.trust.swap(trust as u8, Ordering::Relaxed) }
    }

    /// Notes that a client's `VACUUM` begins. Returns true if that changed anything.
    pub(crate) fn begin_vacuum(&self) -> bool {
        self.replace(Trust::Client, Trust::Vacuum)
    }

    /// Notes that a client's `VACUUM` is over.
    pub(crate) fn end_vacuum(&self) {
        self.replace(Trust::Vacuum, Trust::Client);
    }

    fn replace(&self, old: Trust, new: Trust) -> bool {
        let (old, new) = (old as u8, new as u8);
        self.trust.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that the connection was given a function.
    pub(crate) fn give(&self, function: &str) {
        if !is_in(COSTLY, function) {
            self.given().push(function.to_owned());
        }
    }

    fn given(&self) -> MutexGuard<'_, Vec<String>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a statement was compiled, since the last call, of which a single step may take long.
    /// All other steps are short, and steps are counted.
    pub(crate) fn take_costly(&self) -> bool {
        self.costly.swap(false, Ordering::Relaxed)
    }

    fn is_costly(&self, action: &AuthAction<'_>) -> bool {
        match action {
            AuthAction::Function { function_name: name } => {
                CHEAP.binary_search(name).is_err()
                    && !self.given().iter().any(|given| given == name)
            }
            AuthAction::Read { table_name, .. } => is_in(COSTLY_TABLES, table_name),
            AuthAction::Select
            | AuthAction::Recursive
            | AuthAction::Insert { .. }
            | AuthAction::Update { .. }
            | AuthAction::Transaction { .. }
            | AuthAction::Savepoint { .. } => false,
            // SQLite empties, drops or indexes a table in one step, and a PRAGMA may read the whole
            // file.
            _ => true,
        }
    }

    /// Decides whether a statement may do this.
    pub(crate) fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        if self.is_costly(&context.action) {
            self.costly.store(true, Ordering::Relaxed);
        }
        let trust = self.trust.load(Ordering::Relaxed);
        let allowed = match context.action {
            _ if trust == Trust::Full as u8 => true,
            AuthAction::Attach { filename } => trust == Trust::Vacuum as u8 && filename.is_empty(),
            AuthAction::Detach { .. } => trust == Trust::Vacuum as u8,
            AuthAction::Function { function_name } => !is_in(FUNCTIONS, function_name),
            AuthAction::Pragma { pragma_name, pragma_value } => {
                may_use(pragma_name, pragma_value.is_some())
            }
            AuthAction::Unknown { .. } => false,
            _ => true,
        };
        if allowed { Authorization::Allow } else { Authorization::Deny }
    }
}

/// Restores the earlier trust when dropped.
pub(crate) struct Trusting<'g> {
    authorizer: &'g Authorizer,
    before: u8,
}

impl Drop for Trusting<'_> {
    fn drop(&mut self) {
        self.authorizer.trust.store(self.before, Ordering::Relaxed);
    }
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn may_use(name: &str, with_argument: bool) -> bool {
    let row = PRAGMAS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
    row.is_some_and(|row| row.1 == PragmaUse::Argument || !with_argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(CHEAP.is_sorted());
    }
}

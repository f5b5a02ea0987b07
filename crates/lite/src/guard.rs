//! What a statement of a client may not do, whoever the client is.
//!
//! A database file is served, and no other: without this, `ATTACH` reads and writes any file that
//! the process can, and so does `VACUUM INTO`, which attaches what it writes. SQLite asks the
//! [`Guard`] for each thing a statement does while it compiles it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// What a PRAGMA may be used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// To ask, with nothing behind its name.
    Ask,
    /// With an argument as well.
    Argument,
}

/// The PRAGMAs that a client may use. All others could change how the file is kept, the
/// connection of the next client, or what is safe.
const PRAGMAS: &[(&str, Use)] = &[
    ("application_id", Use::Argument),
    ("auto_vacuum", Use::Ask),
    ("busy_timeout", Use::Ask),
    ("cache_size", Use::Ask),
    ("collation_list", Use::Ask),
    ("compile_options", Use::Ask),
    ("data_version", Use::Ask),
    ("database_list", Use::Ask),
    ("defer_foreign_keys", Use::Argument),
    ("encoding", Use::Ask),
    ("foreign_key_check", Use::Argument),
    ("foreign_key_list", Use::Argument),
    ("foreign_keys", Use::Ask),
    ("freelist_count", Use::Ask),
    ("function_list", Use::Ask),
    ("index_info", Use::Argument),
    ("index_list", Use::Argument),
    ("index_xinfo", Use::Argument),
    ("integrity_check", Use::Argument),
    ("journal_mode", Use::Ask),
    ("module_list", Use::Ask),
    ("optimize", Use::Argument),
    ("page_count", Use::Ask),
    ("page_size", Use::Ask),
    ("pragma_list", Use::Ask),
    ("quick_check", Use::Argument),
    ("schema_version", Use::Ask),
    ("synchronous", Use::Ask),
    ("table_info", Use::Argument),
    ("table_list", Use::Argument),
    ("table_xinfo", Use::Argument),
    ("user_version", Use::Argument),
    ("wal_checkpoint", Use::Argument),
];

/// Functions that reach outside of the database.
const FUNCTIONS: &[&str] = &["load_extension", "fts3_tokenizer"];

/// Whose statements are compiled just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trust {
    /// A client's.
    Client,
    /// A client's `VACUUM`, which attaches a file without a name while it runs.
    Vacuum,
    /// Our own.
    Full,
}

/// The answer to SQLite's questions; shared with the callback.
pub(crate) struct Guard {
    trust: AtomicU8,
}

impl Guard {
    pub(crate) fn new() -> Arc<Guard> {
        Arc::new(Guard { trust: AtomicU8::new(Trust::Client as u8) })
    }

    /// Trusts statements differently until the result is dropped.
    pub(crate) fn trust(&self, trust: Trust) -> Trusting<'_> {
        Trusting { guard: self, before: self.trust.swap(trust as u8, Ordering::Relaxed) }
    }

    /// A `VACUUM` of a client begins; whether that makes a difference.
    pub(crate) fn begin_vacuum(&self) -> bool {
        self.replace(Trust::Client, Trust::Vacuum)
    }

    /// It is over.
    pub(crate) fn end_vacuum(&self) {
        self.replace(Trust::Vacuum, Trust::Client);
    }

    fn replace(&self, old: Trust, new: Trust) -> bool {
        let (old, new) = (old as u8, new as u8);
        self.trust.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether a statement may do this.
    pub(crate) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
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

/// Puts back what was trusted before, whatever happens in between.
pub(crate) struct Trusting<'g> {
    guard: &'g Guard,
    before: u8,
}

impl Drop for Trusting<'_> {
    fn drop(&mut self) {
        self.guard.trust.store(self.before, Ordering::Relaxed);
    }
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn may_use(name: &str, with_argument: bool) -> bool {
    let row = PRAGMAS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
    row.is_some_and(|row| row.1 == Use::Argument || !with_argument)
}

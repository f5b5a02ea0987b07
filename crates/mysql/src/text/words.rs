//! The words that say what a text may do.

use super::Verb;
use crate::pins::Pins;

/// The meaning of a word.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// It may leave this behind.
    Pin(Pins),
    /// It may leave this behind if it begins a statement.
    PinAsVerb(Pins),
    /// It may leave this behind in a statement that begins with SET.
    PinInSet(Pins),
    /// It is a verb.
    Verb(Verb),
    /// It may change a table.
    Define,
    /// The table is a view, or a trigger changes.
    View,
    /// It may change a table, which may be a view.
    Rename,
    /// It may do anything.
    Run,
    /// It runs a procedure.
    Call,
    /// It runs a text that is not known.
    RunText,
    /// It may run triggers.
    Fire,
    /// It may insert rows.
    Insert,
    /// It may ask for a file.
    Load,
    /// It may change what the server reports.
    Wish,
    /// It sets variables for the time of one statement behind SET (MariaDB).
    SetForOne,
    /// It asks about the statement before if it is called without an argument.
    AskBack,
    /// It asks for a number of rows if it is called without an argument.
    AskFoundRows,
    /// It asks for the number that a row got, as a call without an argument or as a variable.
    AskInsertId,
    /// It asks about the statement before if it is a variable of the system.
    AskBackAsVariable,
    /// It asks for the number of the session if it is called.
    AskNumber,
    /// It ends the session in a statement that ends a transaction, unless NO stands in front.
    Release,
    /// It asks about the statement before in one that begins with this.
    AskBackBehind(Verb),
}

/// The words, in order.
pub(super) const WORDS: &[(&str, Meaning)] = &[
    ("alter", Meaning::Define),
    ("backup", Meaning::PinAsVerb(Pins::GLOBAL_LOCK)),
    ("call", Meaning::Call),
    ("commit", Meaning::Verb(Verb::End)),
    ("connection_id", Meaning::AskNumber),
    ("create", Meaning::Run),
    ("delete", Meaning::Fire),
    ("diagnostics", Meaning::AskBackBehind(Verb::Get)),
    ("drop", Meaning::Define),
    ("error_count", Meaning::AskBackAsVariable),
    ("errors", Meaning::AskBackBehind(Verb::Show)),
    ("execute", Meaning::RunText),
    ("flush", Meaning::PinAsVerb(Pins::GLOBAL_LOCK)),
    ("found_rows", Meaning::AskFoundRows),
    ("get", Meaning::Verb(Verb::Get)),
    ("get_lock", Meaning::Pin(Pins::USER_LOCK)),
    ("grant", Meaning::Define),
    ("handler", Meaning::PinAsVerb(Pins::HANDLER)),
    ("identity", Meaning::AskInsertId),
    ("insert", Meaning::Insert),
    ("kill", Meaning::Verb(Verb::Kill)),
    ("last_insert_id", Meaning::AskInsertId),
    ("load", Meaning::Load),
    ("lock", Meaning::PinAsVerb(Pins::GLOBAL_LOCK)),
    ("release", Meaning::Release),
    ("rename", Meaning::Rename),
    ("replace", Meaning::Insert),
    ("revoke", Meaning::Define),
    ("role", Meaning::PinInSet(Pins::ROLE)),
    ("rollback", Meaning::Verb(Verb::End)),
    ("row_count", Meaning::AskBack),
    ("savepoint", Meaning::Verb(Verb::Savepoint)),
    ("select", Meaning::Verb(Verb::Select)),
    ("session_track_schema", Meaning::Wish),
    ("session_track_state_change", Meaning::Wish),
    ("session_track_system_variables", Meaning::Wish),
    ("session_track_transaction_info", Meaning::Wish),
    ("set", Meaning::Verb(Verb::Set)),
    ("show", Meaning::Verb(Verb::Show)),
    ("statement", Meaning::SetForOne),
    // Servers do not report one that is made of a query.
    ("temporary", Meaning::Pin(Pins::VARIABLES)),
    ("trigger", Meaning::View),
    ("unlock", Meaning::Verb(Verb::Unlock)),
    ("update", Meaning::Fire),
    ("use", Meaning::Verb(Verb::Use)),
    ("view", Meaning::View),
    ("warning_count", Meaning::AskBackAsVariable),
    ("warnings", Meaning::AskBackBehind(Verb::Show)),
    ("with", Meaning::Verb(Verb::Select)),
    ("xa", Meaning::PinAsVerb(Pins::XA)),
];

/// The longest word of the table.
pub(super) const WORD_BYTES_MAX: usize = 30;

/// Returns the meaning of a word of the table.
pub(super) fn meaning(word: &[u8]) -> Option<Meaning> {
    let mut lower = [0; WORD_BYTES_MAX];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let at = WORDS.binary_search_by(|(other, _)| other.as_bytes().cmp(lower)).ok()?;
    Some(WORDS[at].1)
}

//! Refusals: errors that say something of the standby, and nothing of the read that meets them.
//!
//! A read that meets one of them behind its first reply runs on the primary, if the reply can be
//! taken back. All other errors are the client's. Most of them would come again on the primary,
//! after the same work: a division by zero, a limit of temporary files or of memory. Others were
//! meant to end the read.

use refrain_pg_wire::back::Fields;

/// The end of a statement or of a session, by an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Statement,
    Session,
}

/// The refusals, by what ends with them, and their SQLSTATE or the class of that.
///
/// 57P01 is none: a standby that shuts down says the same words to a session as one on which
/// somebody has called `pg_terminate_backend`, and a read that was ended so is not to begin again.
const REFUSALS: [(Ends, &[u8]); 7] = [
    // The read is in the way of what the standby replays, or each waits for the other.
    (Ends::Statement, b"40"),
    // The read does something for which a server must not be a standby.
    (Ends::Statement, b"25006"),
    // A standby has no serializable transactions, and no unlogged tables.
    (Ends::Statement, b"0A000"),
    // A function or an object can be used behind the recovery alone.
    (Ends::Statement, b"55000"),
    // The read is in the way, and the statement cannot be ended without the session.
    (Ends::Session, b"40001"),
    // Another session has crashed, and the server ends all.
    (Ends::Session, b"57P02"),
    // The server starts, stops or recovers, and takes no sessions.
    (Ends::Session, b"57P03"),
];

/// Errors that stop a read: a cancel or the timeout of a statement, and that of a transaction. Who
/// asked for that does not want the read to run on.
const STOPS: [&[u8]; 2] = [b"57014", b"25P04"];

/// Whether an error behind the first reply to a read says something of the standby alone.
pub(crate) fn is_of_standby(fields: &Fields<'_>) -> bool {
    let ends = if fields.is_fatal() { Ends::Session } else { Ends::Statement };
    REFUSALS.iter().any(|(it, code)| *it == ends && fields.sqlstate().starts_with(code))
}

/// Whether an error stops a read for its client: the read runs nowhere else.
pub(crate) fn is_stop(fields: &Fields<'_>) -> bool {
    STOPS.contains(&fields.sqlstate())
}

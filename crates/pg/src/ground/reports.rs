//! The errors that clients get when their sessions end.
//!
//! The words are those of [`message`], unless they name a database, a user or a message: then the
//! caller of [`report_in_words`] has them.
//!
//! The SQLSTATEs and the words are PostgreSQL's own where PostgreSQL has such an ending (appendix
//! "PostgreSQL Error Codes"). Where the proxy gave up, SQLSTATEs are of class 08.

use refrain_pg_wire::write::Report;
use refrain_pool::client_counts::LimitReached;
use refrain_pool::disconnect::DisconnectReason;

/// Returns the error for a reason, or `None` if the client gets no error.
pub(crate) fn report(cause: DisconnectReason) -> Option<Report<'static>> {
    report_in_words(cause, message(cause)?)
}

/// Returns the error for a reason with other words than those of the table, or `None` if the client
/// gets no error.
pub(crate) fn report_in_words(cause: DisconnectReason, message: &str) -> Option<Report<'_>> {
    let sqlstate = sqlstate(cause)?;
    Some(Report { severity: "FATAL", sqlstate, message, hint: "" })
}

/// Returns the SQLSTATE that the log has for a reason: that of the client's error, or that of
/// PostgreSQL's own line if there is no client any more.
pub(crate) fn logged_sqlstate(cause: DisconnectReason) -> Option<&'static str> {
    match cause {
        DisconnectReason::ClientGone => Some("08006"),
        _ => sqlstate(cause),
    }
}

/// Returns the error for a client that waits for a server and gets none. The client may be `ready`,
/// or log in.
pub(crate) fn no_server(cause: DisconnectReason, ready: bool) -> Report<'static> {
    let mut report = report(cause).expect("clients are told that there is no server");
    if cause == DisconnectReason::ServerDown && !ready {
        // PostgreSQL's code for a login that may succeed later.
        report.sqlstate = "57P03";
    }
    report
}

/// Returns PostgreSQL's words for a login of one client too many.
pub(crate) fn too_many_connections(reached: LimitReached, database: &str, user: &str) -> String {
    match reached {
        LimitReached::Database => format!("too many connections for database \"{database}\""),
        LimitReached::User => format!("too many connections for role \"{user}\""),
    }
}

/// Returns the SQLSTATE for a reason, or `None` if the client gets no error.
fn sqlstate(cause: DisconnectReason) -> Option<&'static str> {
    let sqlstate = match cause {
        DisconnectReason::Terminated
        | DisconnectReason::ClientGone
        | DisconnectReason::Settings
        | DisconnectReason::Tls => {
            return None;
        }
        DisconnectReason::ClientProtocol
        | DisconnectReason::Synchronization
        | DisconnectReason::QueryWaitTimeout
        | DisconnectReason::ServerProtocol
        | DisconnectReason::TransactionInStatementMode => "08P01",
        DisconnectReason::ClientVersion => "0A000",
        DisconnectReason::Login => "28P01",
        DisconnectReason::UserLookup => "57P03",
        DisconnectReason::UnknownDatabase => "3D000",
        DisconnectReason::DisabledDatabase => "55000",
        DisconnectReason::TooManyClients
        | DisconnectReason::TooManyWaiting
        | DisconnectReason::CrowdedOut => "53300",
        DisconnectReason::LoginTimeout | DisconnectReason::QueryTimeout => "57014",
        DisconnectReason::ClientIdleTimeout | DisconnectReason::IdleSessionTimeout => "57P05",
        DisconnectReason::IdleTransactionTimeout => "25P03",
        DisconnectReason::TransactionTimeout => "25P04",
        DisconnectReason::ServerDown
        | DisconnectReason::ServerLogin
        | DisconnectReason::ServerGone => "08006",
        DisconnectReason::Killed | DisconnectReason::Removed | DisconnectReason::Shutdown => {
            "57P01"
        }
    };
    Some(sqlstate)
}

/// Returns the words for a reason, or `None` if the client gets no error. No words say which part
/// of a login was wrong.
fn message(cause: DisconnectReason) -> Option<&'static str> {
    let message = match cause {
        DisconnectReason::Terminated
        | DisconnectReason::ClientGone
        | DisconnectReason::Tls
        | DisconnectReason::Settings => {
            return None;
        }
        DisconnectReason::ClientProtocol => "invalid message",
        DisconnectReason::Synchronization => {
            "terminating connection because protocol synchronization was lost"
        }
        DisconnectReason::ClientVersion => "unsupported frontend protocol",
        DisconnectReason::Login => "password authentication failed",
        DisconnectReason::UserLookup => "could not look up the user",
        DisconnectReason::UnknownDatabase => "database does not exist",
        DisconnectReason::DisabledDatabase => "database is not currently accepting connections",
        DisconnectReason::TooManyClients => "sorry, too many clients already",
        DisconnectReason::TooManyWaiting => "too many clients wait for a server",
        DisconnectReason::LoginTimeout => "canceling authentication due to timeout",
        DisconnectReason::CrowdedOut => "too many connections that have not logged in",
        DisconnectReason::QueryTimeout => "query timeout",
        DisconnectReason::QueryWaitTimeout => "query_wait_timeout",
        DisconnectReason::ClientIdleTimeout => "client idle timeout",
        DisconnectReason::IdleSessionTimeout => {
            "terminating connection due to idle-session timeout"
        }
        DisconnectReason::IdleTransactionTimeout => {
            "terminating connection due to idle-in-transaction timeout"
        }
        DisconnectReason::TransactionTimeout => "terminating connection due to transaction timeout",
        DisconnectReason::ServerDown => "could not connect to server",
        DisconnectReason::ServerLogin => "server login failed",
        DisconnectReason::ServerGone => "the server closed the connection unexpectedly",
        DisconnectReason::ServerProtocol => "the server broke the protocol",
        DisconnectReason::TransactionInStatementMode => {
            "transaction blocks are not allowed in statement pooling mode"
        }
        DisconnectReason::Killed | DisconnectReason::Removed | DisconnectReason::Shutdown => {
            "terminating connection due to administrator command"
        }
    };
    Some(message)
}

/// Returns the words that the log has for the reason with this key.
pub fn logged_words(key: &str) -> Option<&'static str> {
    let cause = DisconnectReason::of_key(key)?;
    match cause {
        DisconnectReason::Terminated => Some("it ended the session"),
        DisconnectReason::ClientGone => Some("its connection broke"),
        DisconnectReason::Tls => Some("could not accept SSL connection"),
        DisconnectReason::Settings => Some("a server refused its settings"),
        DisconnectReason::Killed => Some("an administrator ended its session"),
        DisconnectReason::Removed => Some("its user or database is no longer configured"),
        DisconnectReason::Shutdown => Some("Refrain is shutting down"),
        _ => message(cause),
    }
}

//! The errors that clients get when their sessions end.
//!
//! The words are those of the table in `refrain_pool::disconnect`, unless they name a database, a
//! user or a message: then the caller of [`report_in_words`] has them.
//!
//! The SQLSTATEs are PostgreSQL's own where PostgreSQL has such an ending (appendix "PostgreSQL
//! Error Codes"), and of class 08 where the proxy gave up.

use refrain_pool::counts::LimitReached;
use refrain_pool::disconnect::DisconnectReason;
use refrain_wire::write::Report;

/// Returns the error for a reason, or `None` if the client gets no error.
pub(crate) fn report(cause: DisconnectReason) -> Option<Report<'static>> {
    report_in_words(cause, cause.message()?)
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

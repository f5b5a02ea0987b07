//! The errors that clients get when their sessions end: one table, in two vocabularies.
//!
//! `pooler_errors` chooses the column. In PostgreSQL's, the SQLSTATEs and the words are
//! PostgreSQL's own where PostgreSQL has such an ending (appendix "PostgreSQL Error Codes"); where
//! the proxy gave up, SQLSTATEs are of class 08. PgBouncer's column has the words of its
//! `disconnect_client`, whose SQLSTATE is 08P01. Where PgBouncer has no such ending, both are the
//! same.
//!
//! Words that depend on more than the reason are the caller's in PostgreSQL's column, and the table
//! has PgBouncer's ([`PoolerError`]). The log has PostgreSQL's SQLSTATEs in any case: they tell
//! more errors apart.

use std::borrow::Cow;

use refrain_config::PoolerErrors;
use refrain_pg_wire::write::Report;
use refrain_pool::client_counts::LimitReached;
use refrain_pool::disconnect::DisconnectReason;

/// An error of Refrain's own that a client can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolerError {
    /// The session ends for this reason, and there is no more to say.
    End(DisconnectReason),
    /// The login names no user.
    NoUserName,
    /// The login is in the clear, and has to be encrypted.
    Unencrypted,
    /// The login asks for version 2 of the protocol.
    OldProtocol,
    /// No rule is for the client.
    NoRule,
    /// A rule rejects the client.
    Rejected,
    /// The client has no certificate, or one for another name.
    Certificate,
    /// The client's process belongs to another user.
    Peer,
    /// The user is not known, and nobody asks who it is.
    Untrusted,
    /// The exchange of SCRAM has failed.
    Sasl,
    /// The console is not for the user.
    Console,
    /// There are too many pools.
    NoPool,
    /// The database has as many clients as it may have.
    DatabaseClients,
    /// The user has as many clients as it may have.
    UserClients,
    /// The client comes during a shutdown.
    Late,
    /// An error that PgBouncer does not have.
    PostgreSqls,
}

/// The words that a vocabulary has for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The client gets no error.
    Nothing,
    /// This SQLSTATE and these words. A name stands in the place of `{}`.
    Error(&'static str, &'static str),
    /// The SQLSTATE and the words that the caller has.
    Callers,
    /// The same as PostgreSQL's.
    Same,
}

/// An error, and what each vocabulary has for it: PostgreSQL's and PgBouncer's.
type Row = (PoolerError, Said, Said);

/// Makes the row of a reason.
const fn ends(
    cause: DisconnectReason,
    sqlstate: &'static str,
    words: &'static str,
    pgbouncer: Said,
) -> Row {
    (PoolerError::End(cause), Said::Error(sqlstate, words), pgbouncer)
}

/// Makes PgBouncer's error.
const fn pooler(words: &'static str) -> Said {
    Said::Error("08P01", words)
}

/// Makes the row of an error whose words in PostgreSQL's column are the caller's.
const fn worded(error: PoolerError, pgbouncer: &'static str) -> Row {
    (error, Said::Callers, pooler(pgbouncer))
}

const ADMINISTRATOR: &str = "terminating connection due to administrator command";

/// All errors.
const ERRORS: &[Row] = &[
    (PoolerError::End(DisconnectReason::Terminated), Said::Nothing, Said::Same),
    (PoolerError::End(DisconnectReason::ClientGone), Said::Nothing, Said::Same),
    (PoolerError::End(DisconnectReason::Tls), Said::Nothing, Said::Same),
    (PoolerError::End(DisconnectReason::Settings), Said::Nothing, Said::Same),
    ends(DisconnectReason::ClientProtocol, "08P01", "invalid message", pooler("unknown pkt")),
    ends(
        DisconnectReason::Synchronization,
        "08P01",
        "terminating connection because protocol synchronization was lost",
        Said::Same,
    ),
    ends(DisconnectReason::ClientVersion, "0A000", "unsupported frontend protocol", Said::Same),
    // No words say which part of a login was wrong.
    ends(
        DisconnectReason::Login,
        "28P01",
        "password authentication failed",
        pooler("password authentication failed"),
    ),
    ends(
        DisconnectReason::UserLookup,
        "57P03",
        "could not look up the user",
        pooler("bouncer config error"),
    ),
    ends(
        DisconnectReason::UnknownDatabase,
        "3D000",
        "database does not exist",
        pooler("no such database: {}"),
    ),
    ends(
        DisconnectReason::DisabledDatabase,
        "55000",
        "database is not currently accepting connections",
        pooler("database \"{}\" is disabled"),
    ),
    ends(
        DisconnectReason::TooManyClients,
        "53300",
        "sorry, too many clients already",
        pooler("no more connections allowed (max_client_conn)"),
    ),
    ends(
        DisconnectReason::TooManyWaiting,
        "53300",
        "too many clients wait for a server",
        Said::Same,
    ),
    ends(
        DisconnectReason::LoginTimeout,
        "57014",
        "canceling authentication due to timeout",
        pooler("client_login_timeout"),
    ),
    ends(
        DisconnectReason::CrowdedOut,
        "53300",
        "too many connections that have not logged in",
        Said::Same,
    ),
    ends(DisconnectReason::QueryTimeout, "57014", "query timeout", pooler("query timeout")),
    ends(
        DisconnectReason::QueryWaitTimeout,
        "08P01",
        "query_wait_timeout",
        pooler("query_wait_timeout"),
    ),
    ends(
        DisconnectReason::ClientIdleTimeout,
        "57P05",
        "client idle timeout",
        pooler("client_idle_timeout"),
    ),
    // A setting of the session's own says so, which is PostgreSQL's.
    ends(
        DisconnectReason::IdleSessionTimeout,
        "57P05",
        "terminating connection due to idle-session timeout",
        Said::Same,
    ),
    ends(
        DisconnectReason::IdleTransactionTimeout,
        "25P03",
        "terminating connection due to idle-in-transaction timeout",
        pooler("idle transaction timeout"),
    ),
    ends(
        DisconnectReason::TransactionTimeout,
        "25P04",
        "terminating connection due to transaction timeout",
        pooler("transaction timeout"),
    ),
    ends(
        DisconnectReason::ServerDown,
        "08006",
        "could not connect to server",
        pooler("server login has been failing, cached error: connect failed (server_login_retry)"),
    ),
    ends(
        DisconnectReason::ServerLogin,
        "08006",
        "server login failed",
        pooler("server login failed: wrong password type"),
    ),
    ends(
        DisconnectReason::ServerGone,
        "08006",
        "the server closed the connection unexpectedly",
        pooler("server conn crashed?"),
    ),
    ends(
        DisconnectReason::ServerProtocol,
        "08P01",
        "the server broke the protocol",
        pooler("bad pkt header"),
    ),
    ends(
        DisconnectReason::TransactionInStatementMode,
        "08P01",
        "transaction blocks are not allowed in statement pooling mode",
        pooler("transaction blocks not allowed in statement pooling mode"),
    ),
    ends(
        DisconnectReason::QueryDisallowed,
        "0A000",
        "simple queries are switched off (disable_pqexec)",
        pooler("PQexec disallowed"),
    ),
    ends(
        DisconnectReason::MessageTooLong,
        "54000",
        "the message is longer than max_packet_size",
        pooler("bad packet header"),
    ),
    ends(
        DisconnectReason::ServerObsolete,
        "57P01",
        ADMINISTRATOR,
        pooler("database configuration changed"),
    ),
    ends(DisconnectReason::Killed, "57P01", ADMINISTRATOR, pooler("admin forced disconnect")),
    ends(DisconnectReason::Removed, "57P01", ADMINISTRATOR, pooler("database removed")),
    ends(DisconnectReason::Shutdown, "57P01", ADMINISTRATOR, pooler("server shutting down")),
    worded(PoolerError::NoUserName, "no username supplied"),
    worded(PoolerError::Unencrypted, "SSL required"),
    worded(PoolerError::OldProtocol, "old V2 protocol not supported"),
    worded(PoolerError::NoRule, "no authentication method is found"),
    worded(PoolerError::Rejected, "login rejected"),
    worded(PoolerError::Certificate, "certificate authentication failed"),
    worded(PoolerError::Peer, "unix socket login rejected"),
    worded(PoolerError::Untrusted, "\"trust\" authentication failed"),
    worded(PoolerError::Sasl, "SASL authentication failed"),
    worded(PoolerError::Console, "not allowed"),
    (
        PoolerError::NoPool,
        Said::Error("53300", "sorry, too many clients already"),
        pooler("no memory for pool"),
    ),
    worded(PoolerError::DatabaseClients, "client connections exceeded (max_db_client_connections)"),
    worded(PoolerError::UserClients, "client connections exceeded (max_user_client_connections)"),
    worded(PoolerError::Late, "server shutting down"),
    (PoolerError::PostgreSqls, Said::Callers, Said::Same),
];

/// Returns what PostgreSQL's vocabulary and PgBouncer's have for an error.
fn both(error: PoolerError) -> (Said, Said) {
    let row = ERRORS.iter().find(|(its, ..)| *its == error);
    let (_, postgresql, pgbouncer) = *row.expect("every error has a row");
    (postgresql, if pgbouncer == Said::Same { postgresql } else { pgbouncer })
}

/// Returns the error for a reason, or `None` if the client gets no error.
pub(crate) fn report(errors: PoolerErrors, cause: DisconnectReason) -> Option<Report<'static>> {
    let (postgresql, pgbouncer) = both(PoolerError::End(cause));
    let said = match (errors, pgbouncer) {
        // There is no name to say.
        (PoolerErrors::PgBouncer, Said::Error(_, words)) if words.contains("{}") => postgresql,
        (PoolerErrors::PgBouncer, said) => said,
        (PoolerErrors::PostgreSql, _) => postgresql,
    };
    match said {
        Said::Error(sqlstate, message) => {
            Some(Report { severity: "FATAL", sqlstate, message, hint: "" })
        }
        _ => None,
    }
}

/// Returns PostgreSQL's error for a reason with other words than those of the table, or `None` if
/// the client gets no error.
pub(crate) fn report_in_words(cause: DisconnectReason, message: &str) -> Option<Report<'_>> {
    let sqlstate = sqlstate(cause)?;
    Some(Report { severity: "FATAL", sqlstate, message, hint: "" })
}

/// Returns PgBouncer's SQLSTATE and words for an error that the caller has in PostgreSQL's words.
/// `None` if `errors` are PostgreSQL's, or if PgBouncer has no such error. `name` is that of the
/// database or the user that the error is about.
pub(crate) fn in_other_words(
    errors: PoolerErrors,
    error: PoolerError,
    name: &str,
) -> Option<(&'static str, Cow<'static, str>)> {
    if errors == PoolerErrors::PostgreSql {
        return None;
    }
    let (postgresql, pgbouncer) = both(error);
    match pgbouncer {
        said if said == postgresql => None,
        Said::Error(sqlstate, words) if words.contains("{}") => {
            Some((sqlstate, words.replacen("{}", name, 1).into()))
        }
        Said::Error(sqlstate, words) => Some((sqlstate, words.into())),
        Said::Nothing | Said::Callers | Said::Same => None,
    }
}

/// Returns the SQLSTATE that the log has for a reason: PostgreSQL's, also if there is no client any
/// more.
pub(crate) fn logged_sqlstate(cause: DisconnectReason) -> Option<&'static str> {
    match cause {
        DisconnectReason::ClientGone => Some("08006"),
        _ => sqlstate(cause),
    }
}

/// Returns the error for a client that waits for a server and gets none. The client may be `ready`,
/// or log in.
pub(crate) fn no_server(
    errors: PoolerErrors,
    cause: DisconnectReason,
    ready: bool,
) -> Report<'static> {
    let mut report = report(errors, cause).expect("clients are told that there is no server");
    if cause == DisconnectReason::ServerDown && !ready && errors == PoolerErrors::PostgreSql {
        // PostgreSQL's code for a login that may succeed later.
        report.sqlstate = "57P03";
    }
    report
}

/// Returns the error for a login of one client too many, and PostgreSQL's words for it.
pub(crate) fn too_many_connections(
    reached: LimitReached,
    database: &str,
    user: &str,
) -> (PoolerError, String) {
    match reached {
        LimitReached::Database => {
            let message = format!("too many connections for database \"{database}\"");
            (PoolerError::DatabaseClients, message)
        }
        LimitReached::User => {
            (PoolerError::UserClients, format!("too many connections for role \"{user}\""))
        }
    }
}

/// Returns PostgreSQL's SQLSTATE for a reason, or `None` if the client gets no error.
fn sqlstate(cause: DisconnectReason) -> Option<&'static str> {
    report(PoolerErrors::PostgreSql, cause).map(|report| report.sqlstate)
}

/// Returns the words that the log has for the reason with this key.
pub fn logged_words(key: &str) -> Option<&'static str> {
    let cause = DisconnectReason::of_key(key)?;
    match cause {
        DisconnectReason::Terminated => Some("it ended the session"),
        DisconnectReason::ClientGone => Some("its connection broke"),
        DisconnectReason::Tls => Some("could not accept SSL connection"),
        DisconnectReason::Settings => Some("a server refused its settings"),
        DisconnectReason::ServerObsolete => Some("its server is not to be used any more"),
        DisconnectReason::Killed => Some("an administrator ended its session"),
        DisconnectReason::Removed => Some("its user or database is no longer configured"),
        DisconnectReason::Shutdown => Some("Refrain is shutting down"),
        _ => report(PoolerErrors::PostgreSql, cause).map(|report| report.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_one_row() {
        for (at, (error, ..)) in ERRORS.iter().enumerate() {
            assert!(ERRORS[..at].iter().all(|(other, ..)| other != error), "{error:?}");
        }
        let reasons = ERRORS.iter().filter(|(error, ..)| matches!(error, PoolerError::End(_)));
        assert_eq!(reasons.count(), DisconnectReason::Shutdown as usize + 1);
    }

    #[test]
    fn the_page_has_the_words_of_both() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pgbouncer.md");
        let page = std::fs::read_to_string(path).unwrap();
        for (error, postgresql, pgbouncer) in ERRORS {
            let Said::Error(_, theirs) = pgbouncer else { continue };
            assert!(page.contains(&theirs.replace("{}", "shop")), "{error:?}: {theirs}");
            // The table has the words with names in them.
            if let Said::Error(sqlstate, ours) = postgresql
                && !theirs.contains("{}")
            {
                assert!(page.contains(ours) && page.contains(sqlstate), "{error:?}: {ours}");
            }
        }
    }

    #[test]
    fn each_vocabulary_has_its_own_words() {
        let said = |errors, cause| report(errors, cause).map(|it| (it.sqlstate, it.message));
        let idle = DisconnectReason::IdleTransactionTimeout;
        let words = "terminating connection due to idle-in-transaction timeout";
        assert_eq!(said(PoolerErrors::PostgreSql, idle), Some(("25P03", words)));
        let words = "idle transaction timeout";
        assert_eq!(said(PoolerErrors::PgBouncer, idle), Some(("08P01", words)));
        assert_eq!(said(PoolerErrors::PgBouncer, DisconnectReason::Terminated), None);
        let unknown = PoolerError::End(DisconnectReason::UnknownDatabase);
        let named = in_other_words(PoolerErrors::PgBouncer, unknown, "{shop}");
        assert_eq!(named, Some(("08P01", "no such database: {shop}".into())));
        assert_eq!(in_other_words(PoolerErrors::PostgreSql, unknown, "shop"), None);
        let synchronization = PoolerError::End(DisconnectReason::Synchronization);
        assert_eq!(in_other_words(PoolerErrors::PgBouncer, synchronization, ""), None);
    }
}

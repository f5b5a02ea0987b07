//! What ended, and what follows from it.
//!
//! An ending answers four questions: its cause (a closed set: metric label and log key), what the
//! client is told, what becomes of the server, and whether it may be tried again. The words and
//! SQLSTATEs are PostgreSQL's own where PostgreSQL has such an ending, and 08xxx where it is the
//! proxy between that gave up. Which part of a login was wrong is never said.

use refrain_wire::write::Report;

/// Why a session, or a request for one, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisconnectReason {
    /// The client said goodbye.
    Terminated,
    /// The client's connection broke.
    ClientGone,
    /// The client broke the protocol.
    ClientProtocol,
    /// It said something else where the server waits for its COPY data.
    Synchronization,
    /// The client's protocol version is not spoken.
    ClientVersion,
    /// Wrong password, unknown user, or a user without one.
    Login,
    /// No such database is configured.
    UnknownDatabase,
    /// Too many clients.
    TooManyClients,
    /// Too many clients wait for a server.
    TooManyWaiting,
    /// The client took too long to log in.
    LoginTimeout,
    /// The client had not logged in, and had to make way for others.
    CrowdedOut,
    /// A query took too long.
    QueryTimeout,
    /// Waiting for a server took too long.
    QueryWaitTimeout,
    /// The client was idle for too long.
    ClientIdleTimeout,
    /// The client left a transaction idle for too long.
    IdleTransactionTimeout,
    /// A transaction took too long.
    TransactionTimeout,
    /// The server cannot be reached.
    ServerDown,
    /// The server refused the proxy.
    ServerLogin,
    /// The server's connection broke while it worked for the client.
    ServerGone,
    /// The server broke the protocol.
    ServerProtocol,
    /// A transaction block in statement mode.
    TransactionInStatementMode,
    /// The operator closed it.
    Killed,
    /// Its user or its database is not configured any more.
    Removed,
    /// The process is about to end.
    Shutdown,
}

/// One row of the table of endings.
struct Row {
    cause: DisconnectReason,
    key: &'static str,
    /// SQLSTATE and words; empty where the client is told nothing.
    sqlstate: &'static str,
    message: &'static str,
}

const fn row(
    cause: DisconnectReason,
    key: &'static str,
    sqlstate: &'static str,
    message: &'static str,
) -> Row {
    Row { cause, key, sqlstate, message }
}

/// The table of endings. SQLSTATEs: appendix "PostgreSQL Error Codes".
const TABLE: &[Row] = &[
    row(DisconnectReason::Terminated, "terminated", "", ""),
    row(DisconnectReason::ClientGone, "client_gone", "", ""),
    row(DisconnectReason::ClientProtocol, "client_protocol", "08P01", "invalid message"),
    row(
        DisconnectReason::Synchronization,
        "synchronization",
        "08P01",
        "terminating connection because protocol synchronization was lost",
    ),
    row(
        DisconnectReason::ClientVersion,
        "client_version",
        "0A000",
        "unsupported frontend protocol",
    ),
    row(DisconnectReason::Login, "login", "28P01", "password authentication failed"),
    row(DisconnectReason::UnknownDatabase, "unknown_database", "3D000", "database does not exist"),
    row(
        DisconnectReason::TooManyClients,
        "too_many_clients",
        "53300",
        "sorry, too many clients already",
    ),
    row(
        DisconnectReason::TooManyWaiting,
        "too_many_waiting",
        "53300",
        "too many clients wait for a server",
    ),
    row(
        DisconnectReason::LoginTimeout,
        "login_timeout",
        "57014",
        "canceling authentication due to timeout",
    ),
    row(
        DisconnectReason::CrowdedOut,
        "crowded_out",
        "53300",
        "too many connections that have not logged in",
    ),
    row(DisconnectReason::QueryTimeout, "query_timeout", "57014", "query timeout"),
    row(DisconnectReason::QueryWaitTimeout, "query_wait_timeout", "08P01", "query_wait_timeout"),
    row(DisconnectReason::ClientIdleTimeout, "client_idle_timeout", "57P05", "client idle timeout"),
    row(
        DisconnectReason::IdleTransactionTimeout,
        "idle_transaction_timeout",
        "25P03",
        "terminating connection due to idle-in-transaction timeout",
    ),
    row(
        DisconnectReason::TransactionTimeout,
        "transaction_timeout",
        "25P04",
        "terminating connection due to transaction timeout",
    ),
    row(DisconnectReason::ServerDown, "server_down", "08006", "could not connect to server"),
    row(DisconnectReason::ServerLogin, "server_login", "08006", "server login failed"),
    row(
        DisconnectReason::ServerGone,
        "server_gone",
        "08006",
        "the server closed the connection unexpectedly",
    ),
    row(
        DisconnectReason::ServerProtocol,
        "server_protocol",
        "08P01",
        "the server broke the protocol",
    ),
    row(
        DisconnectReason::TransactionInStatementMode,
        "transaction_in_statement_mode",
        "08P01",
        "transaction blocks are not allowed in statement pooling mode",
    ),
    row(
        DisconnectReason::Killed,
        "killed",
        "57P01",
        "terminating connection due to administrator command",
    ),
    row(
        DisconnectReason::Removed,
        "removed",
        "57P01",
        "terminating connection due to administrator command",
    ),
    row(
        DisconnectReason::Shutdown,
        "shutdown",
        "57P01",
        "terminating connection due to administrator command",
    ),
];

impl DisconnectReason {
    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.cause == self).expect("every cause has a row")
    }

    /// Metric label and log key.
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// Why, in words, of the cause with this key; for the log.
    pub fn words(key: &str) -> Option<&'static str> {
        let row = TABLE.iter().find(|row| row.key == key)?;
        Some(match row.cause {
            Self::Terminated => "it ended the session",
            Self::ClientGone => "its connection broke",
            Self::Killed => "an administrator ended its session",
            Self::Removed => "its user or database is no longer configured",
            Self::Shutdown => "Refrain is shutting down",
            _ => row.message,
        })
    }

    /// What the client is told, or `None` where it is told nothing.
    pub fn report(self) -> Option<Report<'static>> {
        let Row { sqlstate, message, .. } = *self.row();
        let report = Report { severity: "FATAL", sqlstate, message, hint: "" };
        (!sqlstate.is_empty()).then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_row_and_a_sound_sqlstate() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|r| r.cause != row.cause && r.key != row.key));
            assert!(matches!(row.sqlstate.len(), 0 | 5), "{}", row.key);
            assert_eq!(row.sqlstate.is_empty(), row.message.is_empty());
        }
        assert_eq!(DisconnectReason::Shutdown.row().cause, DisconnectReason::Shutdown);
        assert_eq!(TABLE.len(), DisconnectReason::Shutdown as usize + 1);
    }
}

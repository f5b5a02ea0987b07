//! Reasons for which sessions end.
//!
//! A reason has a key, which is the label of a metric and stands in the log, and the words that the
//! client is told. Where PostgreSQL has such an ending, the words are PostgreSQL's own. The
//! protocol adds the code of the error. No words say which part of a login was wrong.

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
    /// What the client is told; empty where it is told nothing.
    message: &'static str,
}

const fn row(cause: DisconnectReason, key: &'static str, message: &'static str) -> Row {
    Row { cause, key, message }
}

/// The table of endings.
const TABLE: &[Row] = &[
    row(DisconnectReason::Terminated, "terminated", ""),
    row(DisconnectReason::ClientGone, "client_gone", ""),
    row(DisconnectReason::ClientProtocol, "client_protocol", "invalid message"),
    row(
        DisconnectReason::Synchronization,
        "synchronization",
        "terminating connection because protocol synchronization was lost",
    ),
    row(DisconnectReason::ClientVersion, "client_version", "unsupported frontend protocol"),
    row(DisconnectReason::Login, "login", "password authentication failed"),
    row(DisconnectReason::UnknownDatabase, "unknown_database", "database does not exist"),
    row(DisconnectReason::TooManyClients, "too_many_clients", "sorry, too many clients already"),
    row(DisconnectReason::TooManyWaiting, "too_many_waiting", "too many clients wait for a server"),
    row(DisconnectReason::LoginTimeout, "login_timeout", "canceling authentication due to timeout"),
    row(
        DisconnectReason::CrowdedOut,
        "crowded_out",
        "too many connections that have not logged in",
    ),
    row(DisconnectReason::QueryTimeout, "query_timeout", "query timeout"),
    row(DisconnectReason::QueryWaitTimeout, "query_wait_timeout", "query_wait_timeout"),
    row(DisconnectReason::ClientIdleTimeout, "client_idle_timeout", "client idle timeout"),
    row(
        DisconnectReason::IdleTransactionTimeout,
        "idle_transaction_timeout",
        "terminating connection due to idle-in-transaction timeout",
    ),
    row(
        DisconnectReason::TransactionTimeout,
        "transaction_timeout",
        "terminating connection due to transaction timeout",
    ),
    row(DisconnectReason::ServerDown, "server_down", "could not connect to server"),
    row(DisconnectReason::ServerLogin, "server_login", "server login failed"),
    row(
        DisconnectReason::ServerGone,
        "server_gone",
        "the server closed the connection unexpectedly",
    ),
    row(DisconnectReason::ServerProtocol, "server_protocol", "the server broke the protocol"),
    row(
        DisconnectReason::TransactionInStatementMode,
        "transaction_in_statement_mode",
        "transaction blocks are not allowed in statement pooling mode",
    ),
    row(DisconnectReason::Killed, "killed", "terminating connection due to administrator command"),
    row(
        DisconnectReason::Removed,
        "removed",
        "terminating connection due to administrator command",
    ),
    row(
        DisconnectReason::Shutdown,
        "shutdown",
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

    /// Returns what the client is told, in words, or `None` where it is told nothing. The protocol
    /// adds its code.
    pub fn message(self) -> Option<&'static str> {
        Some(self.row().message).filter(|message| !message.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_row() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|r| r.cause != row.cause && r.key != row.key));
        }
        assert_eq!(DisconnectReason::Shutdown.row().cause, DisconnectReason::Shutdown);
        assert_eq!(TABLE.len(), DisconnectReason::Shutdown as usize + 1);
    }
}

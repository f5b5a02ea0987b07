//! Reasons for which sessions end.
//!
//! A reason has a key, which stands in the log, and the words of the error that the client gets. If
//! PostgreSQL has such an ending, the words are PostgreSQL's own. The protocol adds the code of the
//! error. No words say which part of a login was wrong.

/// The reason for which a session, or a login, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisconnectReason {
    /// The client ended its session.
    Terminated,
    /// The client's connection broke.
    ClientGone,
    /// The client broke the protocol.
    ClientProtocol,
    /// The client sent another message while the server waits for COPY data.
    Synchronization,
    /// The client asked for a protocol version that Refrain does not speak.
    ClientVersion,
    /// The handshake for the encryption of the client's connection failed.
    Tls,
    /// The client gave a wrong password, or an unknown user, or a user without a password.
    Login,
    /// A server refused the client's settings.
    Settings,
    /// The database could not be asked about the client's user.
    UserLookup,
    /// The client asked for a database that is not configured.
    UnknownDatabase,
    /// There are too many clients.
    TooManyClients,
    /// Too many clients wait for a server.
    TooManyWaiting,
    /// The client took too long to log in.
    LoginTimeout,
    /// The client had not logged in, and had to make way for others.
    CrowdedOut,
    /// A query took too long.
    QueryTimeout,
    /// The client waited too long for a server.
    QueryWaitTimeout,
    /// The client was idle for too long.
    ClientIdleTimeout,
    /// The client was idle for longer than a setting of its session allows.
    IdleSessionTimeout,
    /// The client left a transaction idle for too long.
    IdleTransactionTimeout,
    /// A transaction took too long.
    TransactionTimeout,
    /// The server cannot be reached.
    ServerDown,
    /// The server refused Refrain's login.
    ServerLogin,
    /// The server's connection broke while it worked for the client.
    ServerGone,
    /// The server broke the protocol.
    ServerProtocol,
    /// The client began a transaction block in statement mode.
    TransactionInStatementMode,
    /// The operator ended the session.
    Killed,
    /// The client's user or database is not configured any more.
    Removed,
    /// Refrain is shutting down.
    Shutdown,
}

/// Why a server could not be connected or logged in to.
#[derive(Clone, Copy, Debug)]
pub struct ConnectFailure<'a> {
    /// The cause, for the log and for clients.
    pub cause: DisconnectReason,
    /// The reason in words, for the log.
    pub why: &'a str,
    /// Whether a later attempt may succeed though nobody changes the configuration.
    pub is_outage: bool,
}

/// A row of the table of endings.
struct Row {
    cause: DisconnectReason,
    key: &'static str,
    /// The words of the client's error; empty if the client gets none.
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
    row(DisconnectReason::Tls, "tls", ""),
    row(DisconnectReason::Login, "login", "password authentication failed"),
    row(DisconnectReason::Settings, "settings", ""),
    row(DisconnectReason::UserLookup, "user_lookup", "could not look up the user"),
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
        DisconnectReason::IdleSessionTimeout,
        "idle_session_timeout",
        "terminating connection due to idle-session timeout",
    ),
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

    /// Returns the key that stands in the log.
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// Returns the words for the log of the reason with this key.
    pub fn words(key: &str) -> Option<&'static str> {
        let row = TABLE.iter().find(|row| row.key == key)?;
        Some(match row.cause {
            Self::Terminated => "it ended the session",
            Self::ClientGone => "its connection broke",
            Self::Tls => "could not accept SSL connection",
            Self::Settings => "a server refused its settings",
            Self::Killed => "an administrator ended its session",
            Self::Removed => "its user or database is no longer configured",
            Self::Shutdown => "Refrain is shutting down",
            _ => row.message,
        })
    }

    /// Returns the words of the client's error, or `None` if the client gets none. The protocol
    /// adds the code of the error.
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

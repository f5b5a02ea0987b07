//! Reasons for which sessions end.
//!
//! A reason has a key, which stands in the log. The protocol has the error that the client gets:
//! its code and its words.

/// The reason for which a session, or a login, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisconnectReason {
    /// The client ended its session.
    Terminated,
    /// The client's connection broke.
    ClientGone,
    /// The client broke the protocol.
    ClientProtocol,
    /// The client sent something else while its server waits for the rest of some data.
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
    /// The operator has disabled the database that the client asked for.
    DisabledDatabase,
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
    /// The client sent a simple query, and such queries are switched off.
    QueryDisallowed,
    /// The client, or its server, sent a message that is too long.
    MessageTooLong,
    /// The client's server is not to be used any more.
    ServerObsolete,
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
    /// The prospects of later attempts.
    pub kind: FailureKind,
    /// The server's own error, as the protocol has it, if the server refuses the login and will do
    /// so again ([`crate::refusal`]).
    pub refusal: Option<&'a [u8]>,
}

/// The prospects of later attempts, after one to connect or log in to a server has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// They fail as well, until somebody changes the configuration.
    Lasting,
    /// They may succeed by themselves: nobody can log in to the host now.
    Outage,
    /// They may succeed by themselves: the host has no room for one more server.
    Full,
    /// The host is not in the state that the pool wants. Another host may be.
    Unsuited,
}

/// The reasons, each with its key.
const KEYS: &[(DisconnectReason, &str)] = &[
    (DisconnectReason::Terminated, "terminated"),
    (DisconnectReason::ClientGone, "client_gone"),
    (DisconnectReason::ClientProtocol, "client_protocol"),
    (DisconnectReason::Synchronization, "synchronization"),
    (DisconnectReason::ClientVersion, "client_version"),
    (DisconnectReason::Tls, "tls"),
    (DisconnectReason::Login, "login"),
    (DisconnectReason::Settings, "settings"),
    (DisconnectReason::UserLookup, "user_lookup"),
    (DisconnectReason::UnknownDatabase, "unknown_database"),
    (DisconnectReason::DisabledDatabase, "disabled_database"),
    (DisconnectReason::TooManyClients, "too_many_clients"),
    (DisconnectReason::TooManyWaiting, "too_many_waiting"),
    (DisconnectReason::LoginTimeout, "login_timeout"),
    (DisconnectReason::CrowdedOut, "crowded_out"),
    (DisconnectReason::QueryTimeout, "query_timeout"),
    (DisconnectReason::QueryWaitTimeout, "query_wait_timeout"),
    (DisconnectReason::ClientIdleTimeout, "client_idle_timeout"),
    (DisconnectReason::IdleSessionTimeout, "idle_session_timeout"),
    (DisconnectReason::IdleTransactionTimeout, "idle_transaction_timeout"),
    (DisconnectReason::TransactionTimeout, "transaction_timeout"),
    (DisconnectReason::ServerDown, "server_down"),
    (DisconnectReason::ServerLogin, "server_login"),
    (DisconnectReason::ServerGone, "server_gone"),
    (DisconnectReason::ServerProtocol, "server_protocol"),
    (DisconnectReason::TransactionInStatementMode, "transaction_in_statement_mode"),
    (DisconnectReason::QueryDisallowed, "query_disallowed"),
    (DisconnectReason::MessageTooLong, "message_too_long"),
    (DisconnectReason::ServerObsolete, "server_obsolete"),
    (DisconnectReason::Killed, "killed"),
    (DisconnectReason::Removed, "removed"),
    (DisconnectReason::Shutdown, "shutdown"),
];

impl DisconnectReason {
    /// Returns the key that stands in the log.
    pub fn key(self) -> &'static str {
        let (_, key) = KEYS.iter().find(|(cause, _)| *cause == self).expect("every cause has one");
        key
    }

    /// Returns the reason with this key.
    pub fn of_key(key: &str) -> Option<Self> {
        let (cause, _) = KEYS.iter().find(|(_, its)| *its == key)?;
        Some(*cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_key() {
        for (index, (cause, key)) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|(other, its)| other != cause && its != key));
            assert_eq!((cause.key(), DisconnectReason::of_key(key)), (*key, Some(*cause)));
        }
        assert_eq!(KEYS.len(), DisconnectReason::Shutdown as usize + 1);
    }
}

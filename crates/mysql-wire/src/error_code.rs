//! The errors that Refrain sends or has to recognize: number and SQLSTATE.
//!
//! (MySQL, "Server Error Message Reference"; MariaDB, "MariaDB Error Code Reference".)

/// A server's error: its number, and the SQLSTATE that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The number.
    pub number: u16,
    /// The SQLSTATE.
    pub sqlstate: [u8; 5],
}

/// Declares the errors of servers, and the table of them.
macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $sqlstate:literal;)*) => {
        $($(#[$doc])*
        pub const $name: ErrorCode = ErrorCode { number: $number, sqlstate: *$sqlstate };)*

        /// Every error that MySQL has.
        pub const ALL: &[ErrorCode] = &[$($name),*];
    };
}

errors! {
    /// There are as many connections as `max_connections` allows.
    CON_COUNT = 1040, b"08004";
    /// A packet of a login is not as it must be.
    HANDSHAKE = 1043, b"08S01";
    /// The user may not use the database.
    DBACCESS_DENIED = 1044, b"42000";
    /// The password is wrong, or there is no such user.
    ACCESS_DENIED = 1045, b"28000";
    /// A command that the server does not know or does not serve.
    UNKNOWN_COM = 1047, b"08S01";
    /// There is no such database.
    BAD_DB = 1049, b"42000";
    /// The server shuts down.
    SERVER_SHUTDOWN = 1053, b"08S01";
    /// A text that the parser refuses.
    PARSE = 1064, b"42000";
    /// A text without a statement.
    EMPTY_QUERY = 1065, b"42000";
    /// No session has the number that KILL names.
    NO_SUCH_THREAD = 1094, b"HY000";
    /// KILL names another user's session.
    KILL_DENIED = 1095, b"HY000";
    /// An error without a number of its own.
    UNKNOWN = 1105, b"HY000";
    /// The host has had too many connections that were interrupted before a login.
    HOST_IS_BLOCKED = 1129, b"HY000";
    /// The host may not connect.
    HOST_NOT_PRIVILEGED = 1130, b"HY000";
    /// There is no such table.
    NO_SUCH_TABLE = 1146, b"42S02";
    /// The server may not be asked for the statement in this version or by this option.
    NOT_ALLOWED_COMMAND = 1148, b"42000";
    /// A packet is longer than `max_allowed_packet`.
    NET_PACKET_TOO_LARGE = 1153, b"08S01";
    /// A packet has another sequence id than it must have.
    NET_PACKETS_OUT_OF_ORDER = 1156, b"08S01";
    /// Nothing can be read from a connection.
    NET_READ_ERROR = 1158, b"08S01";
    /// The client sent nothing for too long.
    NET_READ_INTERRUPTED = 1159, b"08S01";
    /// There is no such variable of the system.
    UNKNOWN_SYSTEM_VARIABLE = 1193, b"HY000";
    /// A user has as many connections as `max_user_connections` allows.
    TOO_MANY_USER_CONNECTIONS = 1203, b"42000";
    /// COM_STMT_EXECUTE does not fit its statement, such as a first one without types.
    WRONG_ARGUMENTS = 1210, b"HY000";
    /// The transaction was rolled back in favour of another one.
    LOCK_DEADLOCK = 1213, b"40001";
    /// A user has reached one of its limits for an hour.
    USER_LIMIT_REACHED = 1226, b"42000";
    /// The user lacks a right that the statement needs.
    SPECIFIC_ACCESS_DENIED = 1227, b"42000";
    /// A variable cannot have this value.
    WRONG_VALUE_FOR_VAR = 1231, b"42000";
    /// A part of SQL that the server does not have.
    NOT_SUPPORTED_YET = 1235, b"42000";
    /// A variable cannot be set, or not in this way.
    INCORRECT_GLOBAL_LOCAL_VAR = 1238, b"HY000";
    /// A number that no prepared statement has.
    UNKNOWN_STMT_HANDLER = 1243, b"HY000";
    /// The client cannot log in by a method that the server asks for.
    NOT_SUPPORTED_AUTH_MODE = 1251, b"08004";
    /// KILL QUERY or a time limit has ended the statement.
    QUERY_INTERRUPTED = 1317, b"70100";
    /// COM_STMT_FETCH names a statement without a cursor.
    STMT_HAS_NO_OPEN_CURSOR = 1421, b"HY000";
    /// Another server, which the server reads from, cannot be reached.
    CONNECT_TO_FOREIGN_DATA_SOURCE = 1429, b"HY000";
    /// The server has as many prepared statements as `max_prepared_stmt_count` allows.
    MAX_PREPARED_STMT_COUNT_REACHED = 1461, b"42000";
    /// The client has to encrypt its connection.
    SECURE_TRANSPORT_REQUIRED = 3159, b"HY000";
    /// A client without the means for them would get results of a procedure.
    SP_BADSELECT = 1312, b"0A000";
    /// The server prepared a statement anew three times, and it still did not fit its tables.
    NEED_REPREPARE = 1615, b"HY000";
    /// A packet ends before its fields do, or has values of no known types (MySQL).
    MALFORMED_PACKET = 1835, b"HY000";
    /// A statement took longer than `max_execution_time` (MySQL).
    QUERY_TIMEOUT = 3024, b"HY000";
    /// The server is in offline mode (MySQL).
    SERVER_OFFLINE_MODE = 3032, b"HY000";
    /// The session was killed (MySQL).
    SESSION_WAS_KILLED = 3169, b"HY000";
    /// A server's connection is shared, so that it cannot serve the text (MySQL Router).
    CONNECTION_IS_SHARED = 3566, b"HY000";
    /// The client was idle for longer than `wait_timeout` (MySQL).
    CLIENT_INTERACTION_TIMEOUT = 4031, b"HY000";
}

/// The session was killed (MariaDB, which alone has this number).
pub const CONNECTION_KILLED: ErrorCode = ErrorCode { number: 1927, sqlstate: *b"70100" };

/// A statement took longer than `max_statement_time` (MariaDB, which alone has this number).
pub const STATEMENT_TIMEOUT: ErrorCode = ErrorCode { number: 1969, sqlstate: *b"70100" };

/// A client's library lost its connection in the middle of a command; a proxy sends it.
pub const SERVER_LOST: ErrorCode = ErrorCode { number: 2013, sqlstate: *b"08S01" };

/// A client's library could not connect; a router sends it in place of a greeting.
pub const CONN_HOST_ERROR: ErrorCode = ErrorCode { number: 2003, sqlstate: *b"HY000" };

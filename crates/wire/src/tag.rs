//! The first byte of each message. The one place where they are spelled.

/// Messages that a client (frontend) sends.
pub mod front {
    /// Binds parameters to a statement, making a portal.
    pub const BIND: u8 = b'B';
    /// Closes a statement or portal.
    pub const CLOSE: u8 = b'C';
    /// A piece of a COPY stream.
    pub const COPY_DATA: u8 = b'd';
    /// The end of a COPY stream.
    pub const COPY_DONE: u8 = b'c';
    /// The failure of a COPY stream.
    pub const COPY_FAIL: u8 = b'f';
    /// Asks for the shape of a statement or portal.
    pub const DESCRIBE: u8 = b'D';
    /// Runs a portal.
    pub const EXECUTE: u8 = b'E';
    /// Asks the server to send what it has.
    pub const FLUSH: u8 = b'H';
    /// Calls a function by its OID ("fast path").
    pub const FUNCTION_CALL: u8 = b'F';
    /// Prepares a statement.
    pub const PARSE: u8 = b'P';
    /// PasswordMessage, SASLInitialResponse, SASLResponse, GSSResponse.
    pub const PASSWORD: u8 = b'p';
    /// A simple query.
    pub const QUERY: u8 = b'Q';
    /// Ends a batch of extended messages.
    pub const SYNC: u8 = b'S';
    /// Ends the session.
    pub const TERMINATE: u8 = b'X';
}

/// Messages that a server (backend) sends.
pub mod back {
    /// Any of the Authentication messages.
    pub const AUTHENTICATION: u8 = b'R';
    /// The key with which a session's statement is cancelled.
    pub const BACKEND_KEY_DATA: u8 = b'K';
    /// Answers Bind.
    pub const BIND_COMPLETE: u8 = b'2';
    /// Answers Close.
    pub const CLOSE_COMPLETE: u8 = b'3';
    /// A statement ran to its end.
    pub const COMMAND_COMPLETE: u8 = b'C';
    /// COPY in both directions has begun (replication).
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    /// A piece of a COPY stream.
    pub const COPY_DATA: u8 = b'd';
    /// The end of a COPY stream.
    pub const COPY_DONE: u8 = b'c';
    /// The server waits for COPY data.
    pub const COPY_IN_RESPONSE: u8 = b'G';
    /// The server is about to send COPY data.
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    /// A row.
    pub const DATA_ROW: u8 = b'D';
    /// Answers an empty query.
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    /// An error.
    pub const ERROR_RESPONSE: u8 = b'E';
    /// Answers a function call.
    pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
    /// The server speaks an older minor version than asked for.
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    /// Answers Describe of what returns no rows.
    pub const NO_DATA: u8 = b'n';
    /// A notice or warning.
    pub const NOTICE_RESPONSE: u8 = b'N';
    /// A notification (LISTEN, NOTIFY).
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    /// The parameter types of a statement.
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    /// The value of a reported setting.
    pub const PARAMETER_STATUS: u8 = b'S';
    /// Answers Parse.
    pub const PARSE_COMPLETE: u8 = b'1';
    /// A portal stopped at its row limit.
    pub const PORTAL_SUSPENDED: u8 = b's';
    /// The server waits for the next request.
    pub const READY_FOR_QUERY: u8 = b'Z';
    /// The columns of the rows to come.
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// What Describe and Close speak of: a statement.
pub const STATEMENT: u8 = b'S';
/// What Describe and Close speak of: a portal.
pub const PORTAL: u8 = b'P';

//! The first byte of each message. No other file spells these letters.

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
    /// Asks for the parameters and columns of a statement, or the columns of a portal.
    pub const DESCRIBE: u8 = b'D';
    /// Runs a portal.
    pub const EXECUTE: u8 = b'E';
    /// Asks the server to send its pending replies.
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
    /// One of the Authentication messages.
    pub const AUTHENTICATION: u8 = b'R';
    /// The key for cancelling a statement of the session.
    pub const BACKEND_KEY_DATA: u8 = b'K';
    /// Answers Bind.
    pub const BIND_COMPLETE: u8 = b'2';
    /// Answers Close.
    pub const CLOSE_COMPLETE: u8 = b'3';
    /// A statement has completed.
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
    /// The server supports an older minor version than the client asked for.
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    /// Answers Describe of a statement or portal that returns no rows.
    pub const NO_DATA: u8 = b'n';
    /// A notice or warning.
    pub const NOTICE_RESPONSE: u8 = b'N';
    /// A notification (LISTEN, NOTIFY).
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    /// The parameter types of a statement.
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    /// The value of a run-time parameter that the server reports.
    pub const PARAMETER_STATUS: u8 = b'S';
    /// Answers Parse.
    pub const PARSE_COMPLETE: u8 = b'1';
    /// A portal stopped at its row limit.
    pub const PORTAL_SUSPENDED: u8 = b's';
    /// The server waits for the next request.
    pub const READY_FOR_QUERY: u8 = b'Z';
    /// The columns of the rows that follow.
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// Messages within the CopyData messages of a replication connection.
pub mod replication {
    /// A piece of the stream that a walsender sends (XLogData).
    pub const DATA: u8 = b'w';
    /// A walsender tells how far it is (primary keepalive message).
    pub const KEEPALIVE: u8 = b'k';
    /// A client tells a walsender how far it is (standby status update).
    pub const STATUS: u8 = b'r';
}

/// Messages of the output plug-in `pgoutput`, within the pieces of a stream.
pub mod pgoutput {
    /// The beginning of a transaction that has been committed.
    pub const BEGIN: u8 = b'B';
    /// Its end.
    pub const COMMIT: u8 = b'C';
    /// A relation whose changes follow.
    pub const RELATION: u8 = b'R';
    /// A row was inserted.
    pub const INSERT: u8 = b'I';
    /// A row was updated.
    pub const UPDATE: u8 = b'U';
    /// A row was deleted.
    pub const DELETE: u8 = b'D';
    /// Relations were truncated.
    pub const TRUNCATE: u8 = b'T';
    /// A part of a transaction that may still be under way.
    pub const STREAM_START: u8 = b'S';
    /// The end of that part.
    pub const STREAM_STOP: u8 = b'E';
    /// A transaction that came in parts has been committed.
    pub const STREAM_COMMIT: u8 = b'c';
    /// A message that a session has written into the log.
    pub const MESSAGE: u8 = b'M';
    /// A transaction that came in parts, or a subtransaction of one, has been rolled back.
    pub const STREAM_ABORT: u8 = b'A';
}

/// The object of a Describe or Close: a statement.
pub const STATEMENT: u8 = b'S';
/// The object of a Describe or Close: a portal.
pub const PORTAL: u8 = b'P';

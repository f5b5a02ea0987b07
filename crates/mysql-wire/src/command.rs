//! The first byte of each command. No other file spells these bytes.
//!
//! (MySQL, "Command Phase" and "enum_server_command"; MariaDB, "Text Protocol" and "Binary
//! Protocol".)

/// Ends the session; the server closes the connection without a reply.
pub const QUIT: u8 = 0x01;
/// Changes the default database.
pub const INIT_DB: u8 = 0x02;
/// Runs a text.
pub const QUERY: u8 = 0x03;
/// Asks for the columns of a table. Deprecated, and still served.
pub const FIELD_LIST: u8 = 0x04;
/// Does what FLUSH does. MySQL 8.4 has it no more.
pub const REFRESH: u8 = 0x07;
/// Stops the server. MySQL 8.4 has it no more.
pub const SHUTDOWN: u8 = 0x08;
/// Asks for a line of statistics, which is the reply's whole payload.
pub const STATISTICS: u8 = 0x09;
/// Does what SHOW PROCESSLIST does. MySQL 8.4 has it no more.
pub const PROCESS_INFO: u8 = 0x0A;
/// Does what KILL does. MySQL 8.4 has it no more.
pub const PROCESS_KILL: u8 = 0x0C;
/// Makes the server write to its log.
pub const DEBUG: u8 = 0x0D;
/// Asks for an OK packet.
pub const PING: u8 = 0x0E;
/// Logs in as another user on the same connection.
pub const CHANGE_USER: u8 = 0x11;
/// Asks for a stream of the binary log.
pub const BINLOG_DUMP: u8 = 0x12;
/// Registers a replica.
pub const REGISTER_SLAVE: u8 = 0x15;
/// Prepares a statement.
pub const STMT_PREPARE: u8 = 0x16;
/// Executes a prepared statement.
pub const STMT_EXECUTE: u8 = 0x17;
/// Appends to the value of a parameter. No reply.
pub const STMT_SEND_LONG_DATA: u8 = 0x18;
/// Forgets a prepared statement. No reply.
pub const STMT_CLOSE: u8 = 0x19;
/// Forgets the long data and the cursor of a prepared statement.
pub const STMT_RESET: u8 = 0x1A;
/// Allows or forbids several statements in a text.
pub const SET_OPTION: u8 = 0x1B;
/// Fetches rows of a cursor.
pub const STMT_FETCH: u8 = 0x1C;
/// Asks for a stream of the binary log, from a GTID.
pub const BINLOG_DUMP_GTID: u8 = 0x1E;
/// Makes the session as new, but for its default database.
pub const RESET_CONNECTION: u8 = 0x1F;
/// Copies a server's data (MySQL).
pub const CLONE: u8 = 0x20;
/// Subscribes to a stream of group replication (MySQL).
pub const SUBSCRIBE_GROUP_REPLICATION_STREAM: u8 = 0x21;
/// Executes a prepared statement with several sets of parameters (MariaDB).
pub const STMT_BULK_EXECUTE: u8 = 0xFA;

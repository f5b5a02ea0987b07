//! The errors that Refrain sends to clients: number, SQLSTATE and words, in one table by reason.
//!
//! The numbers are those of the server that a client believes to be connected to, where MySQL and
//! MariaDB differ: a number of one may mean something else in the other.

use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::ErrPacket;
use refrain_pool::disconnect::DisconnectReason;

/// The product that a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Brand {
    /// MySQL, and whatever does not say that it is MariaDB.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// An error without a place for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Number and SQLSTATE.
    pub code: ErrorCode,
    /// The message.
    pub words: &'static str,
}

impl Fixed {
    const fn new(code: ErrorCode, words: &'static str) -> Self {
        Self { code, words }
    }

    /// Appends the ERR packet. Returns the sequence id of the next packet.
    pub fn write(self, out: &mut Vec<u8>, sequence: u8) -> u8 {
        write(out, sequence, self.code, self.words.as_bytes())
    }
}

/// Appends an ERR packet. Returns the sequence id of the next packet.
pub fn write(out: &mut Vec<u8>, sequence: u8, code: ErrorCode, words: &[u8]) -> u8 {
    packet::message(out, sequence, |out| ErrPacket::new(code, words).write(out))
}

/// A packet has another sequence id than it must have.
pub const OUT_OF_ORDER: Fixed =
    Fixed::new(error_code::NET_PACKETS_OUT_OF_ORDER, "Got packets out of order");
/// A login that is none.
pub const BAD_HANDSHAKE: Fixed = Fixed::new(error_code::HANDSHAKE, "Bad handshake");
/// An empty command, or one that Refrain does not serve.
pub const UNKNOWN_COMMAND: Fixed = Fixed::new(error_code::UNKNOWN_COM, "Unknown command");
/// A command that ends before its fields do.
pub const MALFORMED: Fixed =
    Fixed::new(error_code::MALFORMED_PACKET, "Malformed communication packet.");
/// There are as many clients as there may be.
pub const TOO_MANY: Fixed = Fixed::new(error_code::CON_COUNT, "Too many connections");
/// Another client has used the server since the statement that the text asks about.
pub const DIAGNOSTICS_GONE: Fixed = Fixed::new(
    error_code::CONNECTION_IS_SHARED,
    "The diagnostics of the last statement are gone: ask for them in its transaction",
);

/// A prepared statement cannot be executed any more as it is.
pub const NEEDS_REPREPARE: Fixed =
    Fixed::new(error_code::NEED_REPREPARE, "Prepared statement needs to be re-prepared");

/// KILL QUERY has ended the statement.
pub const INTERRUPTED: Fixed =
    Fixed::new(error_code::QUERY_INTERRUPTED, "Query execution was interrupted");

/// The errors of both products by the reason for which a session ends; `None` for what a client is
/// not told, since it has left or no bytes of it can be read.
type Row = (DisconnectReason, Option<Fixed>, Option<Fixed>);

/// Makes a row of an error that both products have.
const fn both(reason: DisconnectReason, code: ErrorCode, words: &'static str) -> Row {
    let error = Some(Fixed::new(code, words));
    (reason, error, error)
}

const fn silent(reason: DisconnectReason) -> Row {
    (reason, None, None)
}

/// Makes the row of a time that a statement may take.
const fn too_slow(reason: DisconnectReason) -> Row {
    let words = "Query execution was interrupted, maximum statement execution time exceeded";
    let mariadb = "Query execution was interrupted (max_statement_time exceeded)";
    (
        reason,
        Some(Fixed::new(error_code::QUERY_TIMEOUT, words)),
        Some(Fixed::new(error_code::STATEMENT_TIMEOUT, mariadb)),
    )
}

/// Makes the row of a session that is ended from outside.
const fn killed(reason: DisconnectReason) -> Row {
    (
        reason,
        Some(Fixed::new(error_code::SESSION_WAS_KILLED, "Session was killed")),
        Some(Fixed::new(error_code::CONNECTION_KILLED, "Connection was killed")),
    )
}

/// Makes the row of a session that was idle for too long. MariaDB, which has no number for it,
/// calls all that it ends itself killed.
const fn idle(reason: DisconnectReason) -> Row {
    let words = "The client was disconnected by the server because of inactivity. See wait_timeout \
                 and interactive_timeout for configuring this behavior.";
    (
        reason,
        Some(Fixed::new(error_code::CLIENT_INTERACTION_TIMEOUT, words)),
        Some(Fixed::new(error_code::CONNECTION_KILLED, "Connection was killed")),
    )
}

/// Words for a client that speaks an old protocol.
const TOO_OLD: &str = "Client does not support authentication protocol requested by server; \
                       consider upgrading MySQL client";
const TOO_OLD_MARIADB: &str = "Client does not support authentication protocol requested by \
                               server; consider upgrading MariaDB client";
/// Makes the row of a server that is not there. MariaDB's client refuses numbers of its own library
/// that come from a server: it says that the packet is malformed, and drops the words.
const fn no_server(reason: DisconnectReason) -> Row {
    let code = error_code::CONNECT_TO_FOREIGN_DATA_SOURCE;
    let mariadb = "Unable to connect to foreign data source: the database server";
    (
        reason,
        Some(Fixed::new(error_code::CONN_HOST_ERROR, "Can't connect to MySQL server")),
        Some(Fixed::new(code, mariadb)),
    )
}

/// Makes the row of a server that has gone in the middle of a command.
const fn lost(reason: DisconnectReason) -> Row {
    let mysql = "Lost connection to MySQL server during query";
    let mariadb = "Got an error reading communication packets";
    (
        reason,
        Some(Fixed::new(error_code::SERVER_LOST, mysql)),
        Some(Fixed::new(error_code::NET_READ_ERROR, mariadb)),
    )
}

/// Every reason.
const ROWS: &[Row] = &[
    silent(DisconnectReason::Terminated),
    silent(DisconnectReason::ClientGone),
    both(DisconnectReason::ClientProtocol, MALFORMED.code, MALFORMED.words),
    both(DisconnectReason::Synchronization, OUT_OF_ORDER.code, OUT_OF_ORDER.words),
    (
        DisconnectReason::ClientVersion,
        Some(Fixed::new(error_code::NOT_SUPPORTED_AUTH_MODE, TOO_OLD)),
        Some(Fixed::new(error_code::NOT_SUPPORTED_AUTH_MODE, TOO_OLD_MARIADB)),
    ),
    both(
        DisconnectReason::Tls,
        error_code::SECURE_TRANSPORT_REQUIRED,
        "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
    ),
    // A login says the user's name; see `access_denied`.
    both(DisconnectReason::Login, error_code::ACCESS_DENIED, "Access denied"),
    both(DisconnectReason::Settings, error_code::UNKNOWN, "The server refuses the settings"),
    both(DisconnectReason::UserLookup, error_code::UNKNOWN, "The user could not be looked up"),
    // A login says the database's name; see `unknown_database`.
    both(DisconnectReason::UnknownDatabase, error_code::BAD_DB, "Unknown database"),
    both(DisconnectReason::DisabledDatabase, error_code::UNKNOWN, "The database is disabled"),
    both(DisconnectReason::TooManyClients, TOO_MANY.code, TOO_MANY.words),
    both(DisconnectReason::TooManyWaiting, TOO_MANY.code, TOO_MANY.words),
    both(
        DisconnectReason::LoginTimeout,
        error_code::NET_READ_INTERRUPTED,
        "Got timeout reading communication packets",
    ),
    both(DisconnectReason::CrowdedOut, TOO_MANY.code, TOO_MANY.words),
    too_slow(DisconnectReason::QueryTimeout),
    both(DisconnectReason::QueryWaitTimeout, TOO_MANY.code, TOO_MANY.words),
    idle(DisconnectReason::ClientIdleTimeout),
    idle(DisconnectReason::IdleSessionTimeout),
    idle(DisconnectReason::IdleTransactionTimeout),
    too_slow(DisconnectReason::TransactionTimeout),
    no_server(DisconnectReason::ServerDown),
    no_server(DisconnectReason::ServerLogin),
    lost(DisconnectReason::ServerGone),
    lost(DisconnectReason::ServerProtocol),
    both(
        DisconnectReason::TransactionInStatementMode,
        error_code::UNKNOWN,
        "Transactions are not allowed in statement mode",
    ),
    // Clients of MySQL have no such limits.
    both(DisconnectReason::QueryDisallowed, error_code::UNKNOWN, "The query is not allowed"),
    both(DisconnectReason::MessageTooLong, error_code::UNKNOWN, "The message is too long"),
    killed(DisconnectReason::ServerObsolete),
    killed(DisconnectReason::Killed),
    killed(DisconnectReason::Removed),
    both(DisconnectReason::Shutdown, error_code::SERVER_SHUTDOWN, "Server shutdown in progress"),
];

/// Returns the error of MySQL for a reason, for the log.
pub(crate) fn of_static(reason: DisconnectReason) -> Option<&'static Fixed> {
    let (_, mysql, _) = ROWS.iter().find(|(its, ..)| *its == reason)?;
    mysql.as_ref()
}

/// Returns the error of a session that ends for a reason; `None` if its client is told nothing.
pub fn of(reason: DisconnectReason, brand: Brand) -> Option<Fixed> {
    let (_, mysql, mariadb) = ROWS.iter().find(|(its, ..)| *its == reason)?;
    match brand {
        Brand::MySql => *mysql,
        Brand::MariaDb => *mariadb,
    }
}

/// Returns the error of a login that ends for a reason. It differs for a client that breaks the
/// protocol.
pub fn in_login(reason: DisconnectReason, brand: Brand) -> Option<Fixed> {
    match reason {
        DisconnectReason::ClientProtocol => Some(BAD_HANDSHAKE),
        _ => of(reason, brand),
    }
}

/// Returns the words for a wrong password, and for an unknown user.
pub fn access_denied(user: &str, host: &str, with_password: bool) -> String {
    let with = if with_password { "YES" } else { "NO" };
    format!("Access denied for user '{user}'@'{host}' (using password: {with})")
}

/// Returns the words for a user who may not use a database.
pub fn database_denied(user: &str, host: &str, database: &str) -> String {
    format!("Access denied for user '{user}'@'{host}' to database '{database}'")
}

/// Returns the words for a database that is not configured.
pub fn unknown_database(database: &str) -> String {
    format!("Unknown database '{database}'")
}

/// Returns the words for a number that no prepared statement has. `command` is the command's
/// function in MariaDB; MySQL looks at the number before it comes to that.
pub fn unknown_statement(number: u32, command: &str, brand: Brand) -> String {
    let place = match brand {
        Brand::MySql => "mysql_stmt_precheck",
        Brand::MariaDb => command,
    };
    format!("Unknown prepared statement handler ({number}) given to {place}")
}

/// Returns the words for a statement that is one too many.
pub fn too_many_statements(most: u32) -> String {
    format!("Can't create more than max_prepared_stmt_count statements (current value: {most})")
}

/// Returns the error for a command that ends before its fields do.
pub fn malformed(brand: Brand) -> Fixed {
    match brand {
        Brand::MySql => MALFORMED,
        Brand::MariaDb => Fixed::new(MALFORMED.code, "Malformed communication packet"),
    }
}

/// Returns the error for a COM_STMT_EXECUTE that does not fit its statement, such as a first one
/// without types.
pub fn unfit_execution(brand: Brand) -> Fixed {
    let words = "Incorrect arguments to mysqld_stmt_execute";
    match brand {
        Brand::MySql => MALFORMED,
        Brand::MariaDb => Fixed::new(error_code::WRONG_ARGUMENTS, words),
    }
}

/// Returns the words for COM_STMT_FETCH of a statement without a cursor.
pub fn no_cursor(number: u32, brand: Brand) -> String {
    let end = match brand {
        Brand::MySql => ".",
        Brand::MariaDb => "",
    };
    format!("The statement ({number}) has no open cursor{end}")
}

/// Returns the words for KILL with a number that nobody has.
pub fn unknown_thread(number: u64) -> String {
    format!("Unknown thread id: {number}")
}

/// Returns the words for KILL with the number of another user's client.
pub fn not_owner(number: u64) -> String {
    format!("You are not owner of thread {number}")
}

/// Returns the words for a part of SQL that Refrain does not serve.
pub fn not_supported(what: &str, brand: Brand) -> String {
    let name = match brand {
        Brand::MySql => "MySQL",
        Brand::MariaDb => "MariaDB",
    };
    format!("This version of {name} doesn't yet support '{what}'")
}

#[cfg(test)]
mod tests {
    use refrain_mysql_wire::packet;

    use super::*;

    const BRANDS: [Brand; 2] = [Brand::MySql, Brand::MariaDb];

    #[test]
    fn each_reason_has_one_row() {
        for (index, (reason, ..)) in ROWS.iter().enumerate() {
            assert_eq!(*reason as usize, index, "{reason:?}");
        }
        assert_eq!(ROWS.len(), DisconnectReason::Shutdown as usize + 1);
    }

    #[test]
    fn an_error_is_what_a_server_of_the_brand_says() {
        let number = |reason, brand| of(reason, brand).map(|error| error.code.number);
        for (reason, mysql, mariadb) in [
            (DisconnectReason::QueryTimeout, 3024, 1969),
            (DisconnectReason::TransactionTimeout, 3024, 1969),
            (DisconnectReason::ClientIdleTimeout, 4031, 1927),
            (DisconnectReason::Killed, 3169, 1927),
            (DisconnectReason::Shutdown, 1053, 1053),
            (DisconnectReason::TooManyClients, 1040, 1040),
            (DisconnectReason::ServerDown, 2003, 1429),
            (DisconnectReason::ServerGone, 2013, 1158),
            (DisconnectReason::ClientVersion, 1251, 1251),
        ] {
            assert_eq!(BRANDS.map(|brand| number(reason, brand)), [Some(mysql), Some(mariadb)]);
        }
        assert_eq!(number(DisconnectReason::Terminated, Brand::MySql), None);
        assert_eq!(in_login(DisconnectReason::ClientProtocol, Brand::MySql), Some(BAD_HANDSHAKE));
    }

    #[test]
    fn words_fit_a_packet_and_its_place() {
        for (reason, ..) in ROWS {
            for error in BRANDS.into_iter().filter_map(|brand| of(*reason, brand)) {
                let mut out = Vec::new();
                assert_eq!(error.write(&mut out, 255), 0);
                let packet = packet::split(&out).expect("a packet");
                assert_eq!(packet.header.sequence, 255);
                let read = ErrPacket::read(packet.payload).expect("an error");
                assert_eq!(read, ErrPacket::new(error.code, error.words.as_bytes()));
                assert!(error.words.len() < 512, "MYSQL_ERRMSG_SIZE");
            }
        }
    }
}

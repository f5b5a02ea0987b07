//! A client's session at the console: its prepared statements, and the reply to each command.
//!
//! A command is answered here, or the program is asked for it. Only one is under way at a time.

use std::collections::HashMap;

use refrain_mysql_wire::command;
use refrain_mysql_wire::error_code;
use refrain_mysql_wire::packet::message;
use refrain_mysql_wire::prepared::{self, LAST_PREPARED};
use refrain_mysql_wire::reply::{EofPacket, OkPacket, first};
use refrain_mysql_wire::request::{MULTI_STATEMENTS_OFF, MULTI_STATEMENTS_ON};
use refrain_mysql_wire::{Capabilities, Status};

use super::opening::{self, About};
use super::reply::{self, ConsoleReply, Form, Needed, ReplyPart};
use crate::errors::{self, Brand};

/// The most statements of a session.
const STATEMENTS_MAX: u32 = 1000;

/// The session of a client of the console, as far as the protocol knows it.
#[derive(Debug)]
pub(crate) struct ConsoleSession {
    brand: Brand,
    capabilities: Capabilities,
    /// Whether a text may have several commands.
    has_several: bool,
    /// The texts of the statements by their numbers.
    statements: HashMap<u32, String>,
    /// The greatest number that a statement has had.
    greatest: u32,
    /// The number of the statement of the last PREPARE, if that has succeeded.
    latest: Option<u32>,
    /// The text that the program tells the columns of.
    preparing: Option<String>,
}

/// The next step behind a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Nothing: the client has its reply, if the command has one.
    Read,
    /// The program is asked for the reply to a command.
    Ask(String, Form),
    /// The client leaves.
    Leave,
    /// The client logs in again.
    ChangeUser,
}

impl ConsoleSession {
    /// Makes a session with these capabilities.
    pub(crate) fn new(brand: Brand, capabilities: Capabilities) -> Self {
        Self {
            brand,
            capabilities,
            has_several: capabilities.has(Capabilities::MULTI_STATEMENTS),
            statements: HashMap::new(),
            greatest: 0,
            latest: None,
            preparing: None,
        }
    }

    /// Handles a command. Appends the reply if it takes nothing of the program.
    pub(crate) fn command(
        &mut self,
        payload: &[u8],
        about: &About<'_>,
        out: &mut Vec<u8>,
    ) -> NextStep {
        let (byte, body) = payload.split_first().map_or((0, payload), |(byte, body)| (*byte, body));
        match byte {
            command::QUIT => return NextStep::Leave,
            command::CHANGE_USER => return NextStep::ChangeUser,
            command::QUERY => return self.run(text(body), Needed::Text, about, out),
            command::STMT_PREPARE => return self.prepare(text(body), about, out),
            command::STMT_EXECUTE => return self.execute(body, about, out),
            command::STMT_SEND_LONG_DATA => {}
            command::STMT_CLOSE => self.close(body),
            command::STMT_RESET => match self.named(body) {
                Ok(_) => ok(out),
                Err(number) => self.unknown(number, "mysqld_stmt_reset", out),
            },
            command::STMT_FETCH => self.fetch(body, out),
            command::PING => ok(out),
            command::RESET_CONNECTION => {
                self.statements.clear();
                ok(out);
            }
            command::SET_OPTION => self.set_option(body, out),
            command::INIT_DB => self.write(&opening::used(&text(body)), out),
            _ => {
                errors::UNKNOWN_COMMAND.write(out, 1);
            }
        }
        NextStep::Read
    }

    /// Passes the program's reply on.
    pub(crate) fn reply(&mut self, reply: ConsoleReply, out: &mut Vec<u8>) {
        match (self.preparing.take(), reply) {
            (Some(text), ConsoleReply::Columns(columns)) => self.add(text, &columns, out),
            (preparing, ConsoleReply::Packets(packets)) => {
                out.extend_from_slice(&packets);
                self.latest = self.latest.filter(|_| preparing.is_none());
            }
            // Only a PREPARE asks for columns.
            (None, ConsoleReply::Columns(_)) => {}
        }
    }

    fn form(&self, wanted: Needed) -> Form {
        Form { wanted, capabilities: self.capabilities, has_several: self.has_several }
    }

    /// Appends a reply of one part.
    fn write(&self, part: &ReplyPart, out: &mut Vec<u8>) {
        self.write_as(Needed::Text, part, out);
    }

    fn write_as(&self, wanted: Needed, part: &ReplyPart, out: &mut Vec<u8>) {
        if let ConsoleReply::Packets(packets) =
            reply::in_form(std::slice::from_ref(part), &self.form(wanted))
        {
            out.extend_from_slice(&packets);
        }
    }

    fn run(
        &mut self,
        text: String,
        wanted: Needed,
        about: &About<'_>,
        out: &mut Vec<u8>,
    ) -> NextStep {
        match opening::answer(&text, about) {
            Some(part) => self.write_as(wanted, &part, out),
            None => return NextStep::Ask(text, self.form(wanted)),
        }
        NextStep::Read
    }

    fn prepare(&mut self, text: String, about: &About<'_>, out: &mut Vec<u8>) -> NextStep {
        self.latest = None;
        if self.statements.len() >= STATEMENTS_MAX as usize || self.greatest == LAST_PREPARED - 1 {
            let words = errors::too_many_statements(STATEMENTS_MAX);
            errors::write(out, 1, error_code::MAX_PREPARED_STMT_COUNT_REACHED, words.as_bytes());
            return NextStep::Read;
        }
        match opening::answer(&text, about) {
            Some(part @ ReplyPart::Refused(..)) => self.write(&part, out),
            Some(ReplyPart::Rows(rows)) => self.add(text, &rows.columns, out),
            Some(ReplyPart::Done(_)) => self.add(text, &[], out),
            None => {
                self.preparing = Some(text.clone());
                return NextStep::Ask(text, self.form(Needed::Columns));
            }
        }
        NextStep::Read
    }

    /// Adds a statement, and tells the client of it.
    fn add(&mut self, text: String, columns: &[reply::Column], out: &mut Vec<u8>) {
        self.greatest += 1;
        self.latest = Some(self.greatest);
        self.statements.insert(self.greatest, text);
        reply::prepared(out, self.greatest, columns, self.capabilities);
    }

    /// Returns the text of the statement that a command names; the number, if there is none.
    fn named(&self, body: &[u8]) -> Result<&String, u32> {
        let number = prepared::statement(body).map_or(0, |(number, _)| number);
        let is_latest = number == LAST_PREPARED && self.brand == Brand::MariaDb;
        let number = self.latest.filter(|_| is_latest).unwrap_or(number);
        self.statements.get(&number).ok_or(number)
    }

    fn unknown(&self, number: u32, function: &str, out: &mut Vec<u8>) {
        let words = errors::unknown_statement(number, function, self.brand);
        errors::write(out, 1, error_code::UNKNOWN_STMT_HANDLER, words.as_bytes());
    }

    // A statement has no parameters, so nothing else of the command matters.
    fn execute(&mut self, body: &[u8], about: &About<'_>, out: &mut Vec<u8>) -> NextStep {
        match self.named(body).cloned() {
            Ok(text) => self.run(text, Needed::Binary, about, out),
            Err(number) => {
                self.unknown(number, "mysqld_stmt_execute", out);
                NextStep::Read
            }
        }
    }

    fn close(&mut self, body: &[u8]) {
        if let Some((number, _)) = prepared::statement(body) {
            self.statements.remove(&number);
        }
    }

    // All rows come with the execution.
    fn fetch(&self, body: &[u8], out: &mut Vec<u8>) {
        let number = prepared::statement(body).map_or(0, |(number, _)| number);
        if self.named(body).is_err() {
            return self.unknown(number, "mysqld_stmt_fetch", out);
        }
        let words = errors::no_cursor(number, self.brand);
        errors::write(out, 1, error_code::STMT_HAS_NO_OPEN_CURSOR, words.as_bytes());
    }

    fn set_option(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let option = body.first_chunk::<2>().map(|option| u16::from_le_bytes(*option));
        self.has_several = match option {
            Some(MULTI_STATEMENTS_ON) => true,
            Some(MULTI_STATEMENTS_OFF) => false,
            _ => {
                errors::UNKNOWN_COMMAND.write(out, 1);
                return;
            }
        };
        let status = Status::AUTOCOMMIT;
        message(out, 1, |out| match self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            true => OkPacket { status, ..OkPacket::default() }.write(
                out,
                first::EOF,
                Capabilities::NONE,
            ),
            false => EofPacket { warnings: 0, status }.write(out),
        });
    }
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

fn ok(out: &mut Vec<u8>) {
    let ok = OkPacket { status: Status::AUTOCOMMIT, ..OkPacket::default() };
    message(out, 1, |out| ok.write(out, first::OK, Capabilities::NONE));
}

#[cfg(test)]
mod tests {
    use refrain_mysql_wire::packet;

    use super::*;
    use crate::console::reply::{Column, ValueKind};

    const ABOUT: About<'static> =
        About { version: "8.0.15", number: 7, user: "ann", database: "refrain" };

    /// Returns the step behind a command, and the first bytes of the reply's payloads.
    fn say(session: &mut ConsoleSession, byte: u8, body: &[u8]) -> (NextStep, Vec<u8>) {
        let mut out = Vec::new();
        let payload = [&[byte], body].concat();
        let next = session.command(&payload, &ABOUT, &mut out);
        (next, firsts(&out))
    }

    fn firsts(mut bytes: &[u8]) -> Vec<u8> {
        let mut firsts = Vec::new();
        while let Some(one) = packet::split(bytes) {
            firsts.push(one.payload[0]);
            bytes = one.rest;
        }
        assert!(bytes.is_empty());
        firsts
    }

    fn session() -> ConsoleSession {
        ConsoleSession::new(Brand::MySql, Capabilities::PROTOCOL_41)
    }

    fn error(byte: u8, body: &[u8]) -> u16 {
        let mut out = Vec::new();
        let payload = [&[byte], body].concat();
        session().command(&payload, &ABOUT, &mut out);
        let one = packet::split(&out).expect("a packet");
        refrain_mysql_wire::reply::ErrPacket::read(one.payload).expect("an error").number
    }

    #[test]
    fn a_command_goes_to_the_program_and_what_sets_up_a_session_does_not() {
        let mut session = session();
        let (next, out) = say(&mut session, command::QUERY, b"SHOW POOLS");
        assert_eq!(next, NextStep::Ask("SHOW POOLS".to_owned(), session.form(Needed::Text)));
        assert!(out.is_empty());
        let (next, out) = say(&mut session, command::QUERY, b"SET NAMES utf8mb4");
        assert_eq!((next, out), (NextStep::Read, vec![0]));
        for silent in [command::STMT_CLOSE, command::STMT_SEND_LONG_DATA] {
            assert_eq!(say(&mut session, silent, b"\x09\0\0\0"), (NextStep::Read, vec![]));
        }
        assert_eq!(say(&mut session, command::PING, b"").1, [0]);
        assert_eq!(say(&mut session, command::INIT_DB, b"pgbouncer").1, [0]);
        assert_eq!(say(&mut session, command::SET_OPTION, b"\0\0").1, [0xFE]);
        assert!(session.has_several);
        assert_eq!(say(&mut session, command::QUIT, b"").0, NextStep::Leave);
    }

    #[test]
    fn errors_are_those_of_a_server() {
        assert_eq!(error(command::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0"), 1243);
        assert_eq!(error(command::STMT_FETCH, b"\x01\0\0\0\x01\0\0\0"), 1243);
        assert_eq!(error(command::STMT_RESET, b""), 1243);
        assert_eq!(error(command::INIT_DB, b"shop"), 1049);
        assert_eq!(error(command::FIELD_LIST, b"pools\0"), 1047);
        assert_eq!(error(command::SET_OPTION, b"\x07\0"), 1047);
        assert_eq!(error(command::QUERY, b"select @@nothing"), 1193);
    }

    #[test]
    fn a_statement_is_prepared_once_the_program_knows_its_columns() {
        let mut session = session();
        let (next, _) = say(&mut session, command::STMT_PREPARE, b"SHOW POOLS");
        assert_eq!(next, NextStep::Ask("SHOW POOLS".to_owned(), session.form(Needed::Columns)));
        let mut out = Vec::new();
        let columns = vec![Column { name: "database".to_owned(), kind: ValueKind::Text }];
        session.reply(ConsoleReply::Columns(columns), &mut out);
        assert_eq!(firsts(&out), [0, 3, 0xFE]);
        let (next, _) = say(&mut session, command::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0");
        assert_eq!(next, NextStep::Ask("SHOW POOLS".to_owned(), session.form(Needed::Binary)));
        assert_eq!(say(&mut session, command::STMT_FETCH, b"\x01\0\0\0\x01\0\0\0").1, [0xFF]);
        say(&mut session, command::STMT_CLOSE, b"\x01\0\0\0");
        let (_, out) = say(&mut session, command::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0");
        assert_eq!(out, [0xFF]);
    }

    #[test]
    fn a_statement_that_the_program_refuses_is_none() {
        let mut session = session();
        say(&mut session, command::STMT_PREPARE, b"SHOW NOTHING");
        let mut out = Vec::new();
        session.reply(ConsoleReply::Packets(b"\x01\0\0\x01\xff".to_vec()), &mut out);
        assert_eq!(firsts(&out), [0xFF]);
        assert!(session.statements.is_empty() && session.preparing.is_none());
        let (_, out) = say(&mut session, command::STMT_PREPARE, b"SELECT @@sql_mode");
        assert_eq!(out, [0, 3, 0xFE]);
        let (next, out) = say(&mut session, command::STMT_EXECUTE, b"\x01\0\0\0\0\x01\0\0\0");
        assert_eq!((next, out), (NextStep::Read, vec![1, 3, 0xFE, 0, 0xFE]));
    }

    /// Libraries of MariaDB send an execution behind a PREPARE without a wait.
    #[test]
    fn an_execution_of_the_last_statement_is_none_behind_a_refused_prepare() {
        let mut session = ConsoleSession::new(Brand::MariaDb, Capabilities::PROTOCOL_41);
        let last = b"\xff\xff\xff\xff\0\x01\0\0\0";
        assert_eq!(say(&mut session, command::STMT_PREPARE, b"BEGIN").1, [0]);
        assert_eq!(say(&mut session, command::STMT_EXECUTE, last).1, [0]);
        say(&mut session, command::STMT_PREPARE, b"SHOW NOTHING");
        session.reply(ConsoleReply::Packets(b"\x01\0\0\x01\xff".to_vec()), &mut Vec::new());
        assert_eq!(say(&mut session, command::STMT_EXECUTE, last), (NextStep::Read, vec![0xFF]));
    }

    #[test]
    fn statements_have_an_end() {
        let mut session = session();
        for _ in 0..STATEMENTS_MAX {
            assert_eq!(say(&mut session, command::STMT_PREPARE, b"BEGIN").1, [0]);
        }
        assert_eq!(say(&mut session, command::STMT_PREPARE, b"BEGIN").1, [0xFF]);
        say(&mut session, command::RESET_CONNECTION, b"");
        assert_eq!(say(&mut session, command::STMT_PREPARE, b"BEGIN").1, [0]);
    }
}

//! A server of MySQL that does as it is told: a text says what its reply is.

use std::collections::HashMap;

use refrain_mysql_wire::handshake::{AuthReply, HandshakeV10, Login};
use refrain_mysql_wire::prepared::{Execute, PrepareOk};
use refrain_mysql_wire::reply::{EofPacket, ErrPacket, Head, OkPacket, first};
use refrain_mysql_wire::track::{Change, Changes};
use refrain_mysql_wire::{Capabilities, Status, command, error_code, packet};

use crate::packets::lossy;

/// The capabilities that the model offers.
const OFFERED: Capabilities = Capabilities::from_bits(0x01FF_F7FF);

/// A type with which the model takes an execution for malformed.
pub(crate) const MALFORMED_TYPE: u8 = 99;

/// A server's session.
#[derive(Debug, Default)]
pub(crate) struct Model {
    agreed: Option<Capabilities>,
    /// The commands that have come, in words.
    pub(crate) log: Vec<String>,
    in_transaction: bool,
    is_manual: bool,
    /// The number that LAST_INSERT_ID() tells.
    insert_id: u64,
    schema: String,
    /// The number of the statement that was prepared last.
    statements: u32,
    /// The statements that are there.
    prepared: HashMap<u32, Prepared>,
    unread: Vec<u8>,
    /// Whether the commands stay unanswered for now.
    pub(crate) is_silent: bool,
    /// How many numbers are left out between statements.
    pub(crate) skips: u32,
    /// Whether nothing can be prepared.
    pub(crate) refuses: bool,
    /// The version, if the server is MySQL.
    pub(crate) version: &'static str,
    /// How many statements come before the one that KILL hits, which has come late.
    pub(crate) struck_behind: Option<u32>,
    /// Whether a file is on its way.
    file: Option<Vec<u8>>,
    /// The rows of the catalog.
    pub(crate) catalog: &'static [&'static [&'static str]],
    /// A variable that a server of MySQL has changed, and its value. The next answer to a command
    /// that does nothing tells them.
    due: Option<(String, String)>,
    /// The values that a report is to tell, if the server is MariaDB and tells any: with the next
    /// report of any.
    untold: Option<Vec<(String, String)>>,
    /// The `sql_mode` that is set without a report; empty for the first one.
    mode: String,
}

/// A statement of a server.
#[derive(Debug, Default)]
struct Prepared {
    text: String,
    parameters: u16,
    types: Option<Vec<u8>>,
    long: Vec<u8>,
    /// The rows that a cursor has left.
    cursor: Option<u32>,
}

impl Model {
    /// Makes a new server of one of the two.
    pub(crate) fn of(is_mariadb: bool) -> Self {
        Self { untold: is_mariadb.then(Vec::new), ..Self::default() }
    }

    /// Returns the first packet.
    pub(crate) fn greeting(&self) -> Vec<u8> {
        let version: &[u8] = match self.untold {
            Some(_) => b"5.5.5-10.11.14-MariaDB-model",
            None => b"8.0.15-model",
        };
        let greeting = HandshakeV10 {
            version,
            connection_id: 7,
            nonce: *b"abcdefghijklmnopqrst",
            capabilities: OFFERED,
            collation: 45,
            status: Status::AUTOCOMMIT,
            plugin: b"mysql_native_password",
        };
        let mut out = Vec::new();
        packet::message(&mut out, 0, |out| greeting.write(out));
        out
    }

    fn status(&self) -> Status {
        let mut status = if self.is_manual { Status(0) } else { Status::AUTOCOMMIT };
        if self.in_transaction {
            status = status.with(Status::IN_TRANS);
        }
        status
    }

    fn agreed(&self) -> Capabilities {
        self.agreed.unwrap_or(Capabilities::NONE)
    }

    /// Returns how many packets have come that are unanswered.
    pub(crate) fn unanswered(&self) -> usize {
        let packets =
            std::iter::successors(packet::split(&self.unread), |packet| packet::split(packet.rest));
        packets.count()
    }

    /// Takes bytes from Refrain. Returns the answer, and whether the server closes then.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        self.unread.extend_from_slice(bytes);
        self.go_on()
    }

    /// Answers what is there.
    pub(crate) fn go_on(&mut self) -> (Vec<u8>, bool) {
        let (mut out, mut closes) = (Vec::new(), false);
        if self.is_silent {
            return (out, closes);
        }
        let unread = std::mem::take(&mut self.unread);
        let mut rest = &unread[..];
        let mut message = Vec::new();
        let mut kept = rest;
        while let Some(packet) = packet::split(rest) {
            rest = packet.rest;
            message.extend_from_slice(packet.payload);
            if packet.header.is_continued() {
                continue;
            }
            kept = rest;
            closes |= self.message(packet.header.sequence, &std::mem::take(&mut message), &mut out);
        }
        self.unread = kept.to_vec();
        (out, closes)
    }

    fn message(&mut self, sequence: u8, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let mut reply = Reply { out, sequence: sequence.wrapping_add(1), is_binary: false };
        if self.agreed.is_none() {
            let Ok(Login::Response(response)) = Login::read(payload, OFFERED) else {
                panic!("no login: {payload:?}")
            };
            self.agreed = Some(response.capabilities);
            let ok = AuthReply::Ok(OkPacket { status: self.status(), ..OkPacket::default() });
            reply.put(|out| ok.write(out, response.capabilities));
            return false;
        }
        if let Some(mut file) = self.file.take() {
            if !payload.is_empty() {
                file.extend_from_slice(payload);
                self.file = Some(file);
                return false;
            }
            self.log.push(format!("FILE {}", lossy(&file)));
            // Its bytes are its rows, the last of which has this number. The reply does not tell.
            self.insert_id = file.len() as u64;
            self.ok(&mut reply, &[], Status(0));
            return false;
        }
        let (&command, body) = payload.split_first().expect("a command");
        self.command(command, body, &mut reply)
    }

    /// Whether KILL hits a command. Some leave it for the next one.
    fn is_hit(&mut self, command: u8) -> bool {
        let is_left = matches!(
            command,
            command::QUIT
                | command::PING
                | command::INIT_DB
                | command::SET_OPTION
                | command::STMT_CLOSE
                | command::STMT_SEND_LONG_DATA
        );
        if is_left {
            return false;
        }
        let behind = self.struck_behind.take();
        self.struck_behind = behind.and_then(|count| count.checked_sub(1));
        behind == Some(0)
    }

    fn command(&mut self, command: u8, body: &[u8], reply: &mut Reply<'_>) -> bool {
        let text = lossy(body);
        if self.is_hit(command) {
            self.log.push(format!("HIT {text}"));
            reply.err(error_code::QUERY_INTERRUPTED);
            return false;
        }
        match command {
            command::QUIT => {
                self.log.push("QUIT".into());
                return true;
            }
            command::PING => {
                self.log.push("PING".into());
                self.tell_due(reply);
            }
            command::INIT_DB => {
                self.log.push(format!("INIT_DB {text}"));
                if text.starts_with("no") {
                    reply.err(error_code::BAD_DB);
                } else {
                    self.schema.clone_from(&text);
                    self.ok(reply, &[Change::Schema(body)], Status(0));
                }
            }
            command::RESET_CONNECTION => {
                self.log.push("RESET".into());
                (self.in_transaction, self.is_manual, self.insert_id) = (false, false, 0);
                self.prepared.clear();
                self.ok(reply, &[], Status(0));
            }
            command::SET_OPTION => {
                self.log.push(format!("SET_OPTION {}", body[0]));
                let status = self.status();
                reply.put(|out| EofPacket { warnings: 0, status }.write_for(out, true));
            }
            command::QUERY => return self.query(&text, reply),
            _ => self.statement(command, body, reply),
        }
        false
    }

    /// Handles a command of prepared statements.
    fn statement(&mut self, command: u8, body: &[u8], reply: &mut Reply<'_>) {
        match command {
            command::STMT_PREPARE => {
                self.log.push(format!("PREPARE {}", lossy(body)));
                self.prepare(lossy(body), reply);
            }
            command::STMT_CLOSE => {
                self.log.push(format!("CLOSE {}", body[0]));
                self.prepared.remove(&u32::from(body[0]));
            }
            command::STMT_EXECUTE => self.execute(body, reply),
            command::STMT_SEND_LONG_DATA => {
                self.log.push(format!("LONG {} {}", body[0], lossy(&body[6..])));
                if let Some(prepared) = self.prepared.get_mut(&u32::from(body[0])) {
                    prepared.long.extend_from_slice(&body[6..]);
                }
            }
            command::STMT_RESET => {
                self.log.push(format!("STMT_RESET {}", body[0]));
                match self.prepared.get_mut(&u32::from(body[0])) {
                    Some(prepared) => {
                        prepared.long.clear();
                        prepared.cursor = None;
                        self.ok(reply, &[], Status(0));
                    }
                    None => reply.err(error_code::UNKNOWN_STMT_HANDLER),
                }
            }
            command::STMT_FETCH => {
                self.log.push(format!("FETCH {}", body[0]));
                let prepared = self.prepared.get_mut(&u32::from(body[0]));
                let Some(left) = prepared.and_then(|prepared| prepared.cursor.as_mut()) else {
                    reply.err(error_code::STMT_HAS_NO_OPEN_CURSOR);
                    return;
                };
                *left -= 1;
                let flag = if *left > 0 { Status::CURSOR_EXISTS } else { Status::LAST_ROW_SENT };
                let deprecated = self.agreed().has(Capabilities::DEPRECATE_EOF);
                let eof = EofPacket { warnings: 0, status: self.status().with(flag) };
                reply.put(|out| out.extend_from_slice(&[0, 0, 1, b'r']));
                reply.put(|out| eof.write_for(out, deprecated));
            }
            other => panic!("command {other:#x}"),
        }
    }

    /// Prepares a text: `?` is a parameter.
    fn prepare(&mut self, text: String, reply: &mut Reply<'_>) {
        self.statements += 1 + self.skips;
        if text.starts_with("refused") && self.schema != "shop" || self.refuses {
            return reply.err(error_code::PARSE);
        }
        let parameters = text.matches('?').count() as u16;
        let head = PrepareOk {
            statement: self.statements,
            columns: 0,
            parameters,
            warnings: u16::from(text.starts_with("warned")),
            defined: true,
        };
        let (agreed, status) = (self.agreed(), self.status());
        reply.put(|out| head.write(out, agreed));
        for _ in 0..parameters {
            reply.put(|out| out.extend_from_slice(b"\x03def\x00\x00\x00"));
        }
        if parameters > 0 && !agreed.has(Capabilities::DEPRECATE_EOF) {
            reply.put(|out| EofPacket { warnings: 0, status }.write(out));
        }
        let prepared = Prepared { text, parameters, ..Prepared::default() };
        self.prepared.insert(self.statements, prepared);
    }

    /// Executes a statement.
    fn execute(&mut self, body: &[u8], reply: &mut Reply<'_>) {
        let id = u32::from_le_bytes([body[0], body[1], body[2], body[3]]);
        let Some(prepared) = self.prepared.get_mut(&id) else {
            self.log.push(format!("EXECUTE {id} unknown"));
            return reply.err(error_code::UNKNOWN_STMT_HANDLER);
        };
        let head = Execute::read(body, prepared.parameters, Capabilities::NONE, true);
        let head = head.expect("an execution").expect("all of it");
        if head.types.is_some_and(|types| types[0] == MALFORMED_TYPE) {
            self.log.push(format!("EXECUTE {id} malformed"));
            return reply.err(error_code::MALFORMED_PACKET);
        }
        if let Some(types) = head.types {
            prepared.types = Some(types.to_vec());
        }
        let mut told = format!("EXECUTE {id}");
        for types in prepared.types.iter().filter(|_| prepared.parameters > 0) {
            told += &format!(" as {}", types[0]);
            told += if head.types.is_some() { "" } else { " still" };
        }
        if !prepared.long.is_empty() {
            told += &format!(" long {}", lossy(&std::mem::take(&mut prepared.long)));
        }
        self.log.push(told);
        if prepared.parameters > 0 && prepared.types.is_none() {
            return reply.err(error_code::WRONG_ARGUMENTS);
        }
        if head.flags == Execute::CURSOR_READ_ONLY {
            prepared.cursor = Some(2);
            let deprecated = self.agreed().has(Capabilities::DEPRECATE_EOF);
            let status = self.status().with(Status::CURSOR_EXISTS);
            reply.put(|out| out.push(1));
            reply.put(|out| out.extend_from_slice(b"\x03def\x00\x00\x00"));
            return reply.put(|out| EofPacket { warnings: 0, status }.write_for(out, deprecated));
        }
        let text = prepared.text.replace('?', "");
        reply.is_binary = true;
        for word in text.split_whitespace() {
            self.word(word, Status(0), reply);
        }
    }

    /// Runs a text: each word of it is a result.
    fn query(&mut self, text: &str, reply: &mut Reply<'_>) -> bool {
        if let Some(rest) = text.strip_prefix("SET SESSION session_track_schema=ON") {
            self.log.push(format!("TRACK {}", rest.split('\'').nth(3).unwrap_or_default()));
            self.ok(reply, &[], Status(0));
            return false;
        }
        match text {
            _ if text == "SHOW SESSION VARIABLES" || text.contains("variable_name") => {
                self.variables(reply);
                return false;
            }
            TELL | TELL_STATE => {
                self.tell(text == TELL, reply);
                return false;
            }
            "SHOW COLLATION" => {
                self.rows(reply, COLLATIONS, Status(0));
                return false;
            }
            _ if text.starts_with("(SELECT _binary'trigger'") => {
                let user: &[&str] = &["user", "", ""];
                return self.tells("CATALOG", &[self.catalog, &[user]].concat(), reply);
            }
            _ if text.starts_with("SELECT @@session_track_schema") => {
                return self.tells(text, &[&["1", "0", "OFF", "autocommit"]], reply);
            }
            "SELECT @@collation_connection LIMIT 1" => {
                return self.tells(text, &[&["utf8mb4_bin"]], reply);
            }
            _ => {}
        }
        if text == "SELECT LAST_INSERT_ID() LIMIT 1" {
            self.log.push(text.into());
            let number = self.insert_id.to_string();
            self.rows(reply, &[&[&*number]], Status(0));
            return false;
        }
        if text == "DO (SELECT 1 FROM (SELECT 1) AS t)" {
            self.log.push(text.into());
            self.ok(reply, &[], Status(0));
            return false;
        }
        if let Some(number) = text.strip_prefix("SET @@session.last_insert_id=") {
            self.log.push(text.into());
            self.insert_id = number.parse().expect("a number");
            self.ok(reply, &[], Status(0));
            return false;
        }
        self.log.push(if text.len() > 80 { format!("{} bytes", text.len()) } else { text.into() });
        if text == "DO 0" || text.starts_with("SET @@sql_mode=") {
            return self.sets(text, reply);
        }
        if text.starts_with("SET @@session.") {
            self.is_manual = text.contains("autocommit='OFF'");
            self.ok(reply, &[], Status(0));
            return false;
        }
        let words: Vec<_> = text.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let more = if at + 1 < words.len() { Status::MORE_RESULTS_EXISTS } else { Status(0) };
            if self.word(word, more, reply) {
                return true;
            }
            if *word == "err" || self.file.is_some() {
                break;
            }
        }
        false
    }

    /// Does nothing, or sets `sql_mode` without naming its scope. Returns false: all goes on.
    fn sets(&mut self, text: &str, reply: &mut Reply<'_>) -> bool {
        let Some(mode) = text.strip_prefix("SET @@sql_mode=") else {
            self.tell_due(reply);
            return false;
        };
        mode.clone_into(&mut self.mode);
        let told = Change::SystemVariable { name: b"sql_mode", value: mode.as_bytes() };
        // MariaDB reports what is set with the word SESSION, or without the two signs.
        let changes = if self.untold.is_some() { &[][..] } else { &[told][..] };
        self.ok(reply, changes, Status(0));
        false
    }

    /// Notes a question of Refrain's own, and answers. Returns false: the server goes on.
    fn tells(&mut self, asked: &str, rows: &[&[&str]], reply: &mut Reply<'_>) -> bool {
        self.log.push(asked.into());
        self.rows(reply, rows, Status(0));
        false
    }

    /// Reports what is untold, with a variable that stays as it is; or the state alone.
    fn tell(&mut self, all: bool, reply: &mut Reply<'_>) {
        self.log.push(if all { "TELL" } else { "TELL_STATE" }.into());
        let Some(untold) = &mut self.untold else { return self.ok(reply, &[], Status(0)) };
        if !all {
            return self.ok(reply, &[Change::State(b"1")], Status(0));
        }
        let untold = std::mem::take(untold);
        let mut changes: Vec<_> = untold
            .iter()
            .map(|(name, value)| Change::SystemVariable {
                name: name.as_bytes(),
                value: value.as_bytes(),
            })
            .collect();
        if !changes.is_empty() {
            changes.push(Change::State(b"1"));
        }
        changes.push(Change::SystemVariable { name: b"lock_wait_timeout", value: b"50" });
        self.ok(reply, &changes, Status(0));
    }

    /// Tells the values of all variables.
    fn variables(&self, reply: &mut Reply<'_>) {
        let version = if self.untold.is_some() { "10-MariaDB" } else { self.version };
        let of_version: &[&str] = &["version", version];
        let mode: &[&str] = &["sql_mode", if self.mode.is_empty() { "STRICT" } else { &self.mode }];
        self.rows(reply, &[VARIABLES, &[mode, of_version]].concat(), Status(0));
    }

    /// Changes a variable without a word, which the next answer to a command that does nothing
    /// tells.
    fn becomes_due(&mut self, name: &str, value: &str, more: Status, reply: &mut Reply<'_>) {
        self.due = Some((name.to_owned(), value.to_owned()));
        self.ok(reply, &[], more);
    }

    /// Answers a command that does nothing.
    fn tell_due(&mut self, reply: &mut Reply<'_>) {
        let due = self.due.take();
        let changes: Vec<_> = due
            .iter()
            .map(|(name, value)| Change::SystemVariable {
                name: name.as_bytes(),
                value: value.as_bytes(),
            })
            .collect();
        self.ok(reply, &changes, Status(0));
    }

    /// Changes a variable without a word.
    fn change(&mut self, name: &str, value: &str) {
        let untold = self.untold.as_mut().expect("it is MariaDB");
        untold.push((name.to_owned(), value.to_owned()));
    }

    /// Inserts a row with this number.
    fn inserts(&self, value: &str, more: Status, reply: &mut Reply<'_>) {
        let outcome = value.parse().expect("a number");
        let ok = OkPacket {
            last_insert_id: outcome,
            affected_rows: 1,
            status: self.status().with(more),
            ..OkPacket::default()
        };
        let agreed = self.agreed();
        reply.put(|out| ok.write(out, first::OK, agreed));
    }

    /// Makes the number of a row, tells one that the statement names, or tells the last one.
    fn numbers(&mut self, word: &str, value: &str, more: Status, reply: &mut Reply<'_>) {
        match word {
            "insert" => {
                self.insert_id = value.parse().expect("a number");
                self.inserts(value, more, reply);
            }
            "replace" => self.inserts(value, more, reply),
            _ => {
                let number = self.insert_id.to_string();
                self.rows(reply, &[&[&*number]], more);
            }
        }
    }

    /// Sends so many rows, or one behind which something has changed.
    fn some_rows(&self, word: &str, value: &str, more: Status, reply: &mut Reply<'_>) {
        let (count, more) = match word {
            "noted" => (1, more.with(Status::SESSION_STATE_CHANGED)),
            _ => (value.parse().expect("a number"), more),
        };
        self.rows(reply, &vec![&["r"][..]; count], more);
    }

    /// Sends a row of this many bytes.
    fn long_row(&self, value: &str, more: Status, reply: &mut Reply<'_>) {
        let value = vec![0xFE; value.parse().expect("a number")];
        let mut row = match value.len() {
            ..0x100_0000 => vec![0xFD],
            _ => vec![0xFE],
        };
        let length = value.len().to_le_bytes();
        row.extend_from_slice(&length[..if row[0] == 0xFD { 3 } else { 8 }]);
        row.extend_from_slice(&value);
        reply.put(|out| out.push(1));
        reply.put(|out| out.extend_from_slice(b"\x03def\x00\x00\x00"));
        reply.put(|out| out.extend_from_slice(&row));
        let eof = EofPacket { warnings: 0, status: self.status().with(more) };
        reply.put(|out| eof.write_for(out, true));
    }

    fn word(&mut self, word: &str, more: Status, reply: &mut Reply<'_>) -> bool {
        let (word, value) = word.split_once(':').unwrap_or((word, ""));
        match word {
            "insert" | "replace" | "LAST_INSERT_ID()" => {
                self.numbers(word, value, more, reply);
                return false;
            }
            "deadlock" => {
                self.in_transaction = false;
                reply.err(error_code::PARSE);
                return false;
            }
            "begin" => self.in_transaction = true,
            "commit" => self.in_transaction = false,
            "err" => {
                reply.err(error_code::PARSE);
                return false;
            }
            "rows" | "noted" => {
                self.some_rows(word, value, more, reply);
                return false;
            }
            "long" => {
                self.long_row(value, more, reply);
                return false;
            }
            "file" => {
                reply.put(|out| Head::LocalInfile(value.as_bytes()).write(out, Capabilities::NONE));
                self.file = Some(Vec::new());
                return false;
            }
            "gone" => return true,
            "half" => {
                reply.out.extend_from_slice(&[200, 0, 0, reply.sequence, 1]);
                return true;
            }
            "odd" => {
                reply.put(|out| out.extend_from_slice(&[first::EOF, 1]));
                return false;
            }
            _ => {}
        }
        let (name, set) = value.split_once('=').unwrap_or((value, ""));
        if name == "autocommit" {
            self.is_manual = set == "OFF";
        }
        let variable = Change::SystemVariable { name: name.as_bytes(), value: set.as_bytes() };
        match word {
            "untold" => self.change(name, set),
            "due" => self.becomes_due(name, set, more, reply),
            // From now on no change is reported.
            "untracked" => self.untold = None,
            // The commands behind this one stay unanswered.
            "last" => self.is_silent = true,
            "set" => self.ok(reply, &[variable, Change::State(b"1")], more),
            "use" => {
                value.clone_into(&mut self.schema);
                self.ok(reply, &[Change::Schema(value.as_bytes()), Change::State(b"1")], more);
            }
            "changed" => self.ok(reply, &[], more.with(Status::METADATA_CHANGED)),
            "warned" => {
                let ok = OkPacket { status: self.status(), warnings: 1, ..OkPacket::default() };
                let agreed = self.agreed();
                reply.put(|out| ok.write(out, first::OK, agreed));
            }
            "state" => self.ok(reply, &[Change::State(b"1")], more),
            "next" => {
                let text = Change::TransactionCharacteristics(value.as_bytes());
                self.ok(reply, &[text], more);
            }
            _ => self.ok(reply, &[], more),
        }
        false
    }

    fn ok(&self, reply: &mut Reply<'_>, changes: &[Change<'_>], more: Status) {
        let mut block = Vec::new();
        changes.iter().for_each(|change| change.write(&mut block));
        let changed = if block.is_empty() { Status(0) } else { Status::SESSION_STATE_CHANGED };
        let status = self.status().with(more).with(changed);
        let ok = OkPacket { status, changes: Changes(&block), ..OkPacket::default() };
        let agreed = self.agreed();
        reply.put(|out| ok.write(out, first::OK, agreed));
    }

    fn rows(&self, reply: &mut Reply<'_>, rows: &[&[&str]], more: Status) {
        let columns = rows.first().map_or(1, |row| row.len());
        let deprecated = self.agreed().has(Capabilities::DEPRECATE_EOF);
        let eof = EofPacket { warnings: 0, status: self.status().with(more) };
        reply.put(|out| out.push(columns as u8));
        (0..columns).for_each(|_| reply.put(|out| out.extend_from_slice(b"\x03def\x00\x00\x00")));
        if !deprecated {
            reply.put(|out| eof.write(out));
        }
        let is_binary = reply.is_binary;
        for row in rows {
            reply.put(|out| {
                out.extend_from_slice(if is_binary { &[0, 0] } else { &[] });
                for value in *row {
                    out.push(value.len() as u8);
                    out.extend_from_slice(value.as_bytes());
                }
            });
        }
        reply.put(|out| eof.write_for(out, deprecated));
    }
}

/// An EOF packet of either form.
trait WriteFor {
    fn write_for(&self, out: &mut Vec<u8>, deprecated: bool);
}

impl WriteFor for EofPacket {
    fn write_for(&self, out: &mut Vec<u8>, deprecated: bool) {
        let ok = OkPacket { status: self.status, ..OkPacket::default() };
        if deprecated { ok.write(out, first::EOF, Capabilities::NONE) } else { self.write(out) }
    }
}

/// The reply under way.
struct Reply<'a> {
    out: &'a mut Vec<u8>,
    sequence: u8,
    /// Whether rows are those of a prepared statement.
    is_binary: bool,
}

impl Reply<'_> {
    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = packet::message(self.out, self.sequence, fill);
    }

    fn err(&mut self, code: error_code::ErrorCode) {
        self.put(|out| ErrPacket::new(code, b"as told").write(out));
    }
}

const TELL: &str = "SET @@session.session_track_state_change=OFF, \
    @@session.lock_wait_timeout=@@session.lock_wait_timeout";
const TELL_STATE: &str = "SET @@session.session_track_state_change=ON";

const VARIABLES: &[&[&str]] = &[
    &["autocommit", "ON"],
    &["character_set_client", "utf8mb4"],
    &["character_set_connection", "utf8mb4"],
    &["character_set_results", "utf8mb4"],
    &["collation_connection", "utf8mb4_general_ci"],
    &["lock_wait_timeout", "50"],
    &["session_track_schema", "ON"],
    &["session_track_state_change", "OFF"],
    &["session_track_system_variables", "autocommit,sql_mode"],
    &["session_track_transaction_info", "OFF"],
    &["timestamp", "1.5"],
];

const COLLATIONS: &[&[&str]] =
    &[&["latin1_swedish_ci", "latin1", "8"], &["utf8mb4_general_ci", "utf8mb4", "45"]];

//! A session of the model server: what a real one keeps, and what it says of that.
//!
//! A client's oracle runs a private session of the same kind. So whatever a client gets that its
//! own session would not have said is an error of Refrain.

use std::collections::{BTreeMap, BTreeSet};

use crate::prepared::Prepared;
use crate::reply::{Change, Outcome, Reply};
use crate::variables::Variables;
use crate::wire::{Message, com, flag};

/// A lie of the server, with which a right engine acts like one with a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    /// None.
    #[default]
    None,
    /// Characteristics of the next transaction are not reported.
    NoCharacteristics,
    /// The answer to PING has the flags that were told last.
    OldStatus,
    /// The option for several statements stays as it is.
    KeepsOption,
    /// A prepared statement's number is told as if no number had been left out.
    ForetoldNumber,
    /// The collation is told that the server begins with.
    FirstCollation,
    /// COM_RESET_CONNECTION does nothing.
    NoReset,
    /// Settings are not set.
    NoSettings,
    /// The schema stays as it is.
    NoSchema,
}

/// What a session has done that others may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A row was written.
    Wrote(String),
    /// A row was written and will remain.
    Committed(String),
    /// A row was written and will not remain.
    Undone(String),
}

/// A transaction.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// The rows that it has written.
    pub wrote: Vec<String>,
    /// Whether it reads only.
    pub reads_only: bool,
    /// Its characteristics.
    pub characteristics: String,
    /// Whether a statement has begun it, and no BEGIN.
    pub is_implicit: bool,
}

/// A session.
#[derive(Debug, Default)]
pub struct Session {
    /// What was agreed on, once the login is over.
    pub agreed: Option<u32>,
    /// The variables.
    pub variables: Variables,
    /// The default schema.
    pub schema: Option<String>,
    /// Whether a text may have several statements.
    pub has_several: bool,
    /// The transaction that is open.
    pub transaction: Option<Transaction>,
    /// The characteristics of the next one.
    pub next: String,
    /// The savepoints, each with the number of rows that were written before it.
    pub savepoints: Vec<(String, usize)>,
    /// Variables of the user, temporary tables, locks by name, and open handlers.
    pub own: BTreeSet<String>,
    /// Whether tables are locked.
    pub locks_tables: bool,
    /// The prepared statements, by number.
    pub statements: BTreeMap<u32, Prepared>,
    /// The number that was given last.
    pub last_number: u32,
    /// The numbers that are left out before the next statement.
    pub jump: u32,
    /// How many statements were prepared.
    pub attempts: u32,
    /// The number of the row that was written last.
    pub insert_id: u64,
    /// The number of rows that the last statement has written.
    pub row_count: i64,
    /// The warnings of the last statement.
    pub warnings: Vec<String>,
    /// The tag of the text whose file is on its way, and what has come of it.
    pub file: Option<(String, Vec<u8>)>,
    /// The changes that are not reported yet.
    pub changes: Vec<Change>,
    /// The characteristics and the letters that were reported last.
    pub told: (String, String),
    /// What others may see.
    pub news: Vec<News>,
    /// Whether the session has ended.
    pub ended: bool,
    /// How the server lies.
    pub lie: Lie,
    /// The flags that were told last.
    pub last_status: u16,
}

impl Session {
    /// Returns the status flags.
    pub fn status(&self) -> u16 {
        let mut status = 0;
        if self.variables.get("autocommit") == "ON" {
            status |= flag::AUTOCOMMIT;
        }
        if self.variables.get("sql_mode").contains("NO_BACKSLASH_ESCAPES") {
            status |= flag::NO_BACKSLASH_ESCAPES;
        }
        if let Some(transaction) = &self.transaction {
            status |= flag::IN_TRANS;
            if transaction.reads_only {
                status |= flag::IN_TRANS_READONLY;
            }
        }
        status
    }

    /// Handles a message.
    pub fn handle(&mut self, message: &Message) -> Reply {
        let Some(agreed) = self.agreed else { return self.log_in(message) };
        let mut reply = Reply::to(message.last, agreed);
        if let Some((tag, mut file)) = self.file.take() {
            if message.payload.is_empty() {
                self.load(&mut reply, &tag, &file);
            } else {
                file.extend_from_slice(&message.payload);
                self.file = Some((tag, file));
            }
            return reply;
        }
        if message.first != 0 {
            reply.sequence = 0;
            reply.err(1156, "08S01", "Got packets out of order");
            reply.closes = true;
            return reply;
        }
        let Some((&command, body)) = message.payload.split_first() else {
            reply.err(1047, "08S01", "Unknown command");
            return reply;
        };
        self.command(command, body, &mut reply);
        self.ended |= reply.closes;
        reply
    }

    fn command(&mut self, command: u8, body: &[u8], reply: &mut Reply) {
        let text = String::from_utf8_lossy(body);
        match command {
            com::QUIT => reply.closes = true,
            com::PING => {
                let status =
                    if self.lie == Lie::OldStatus { self.last_status } else { self.status() };
                reply.ok(0, Outcome { status, ..Outcome::default() }, &[]);
            }
            com::INIT_DB => self.use_schema(&text, reply),
            com::QUERY => self.text(&text, reply),
            com::RESET_CONNECTION => {
                self.reset();
                self.ok(reply, Outcome::default());
            }
            com::SET_OPTION => {
                if self.lie != Lie::KeepsOption {
                    self.has_several = body.first() == Some(&0);
                }
                self.end_of_rows(reply, 0);
            }
            com::PREPARE
            | com::EXECUTE
            | com::LONG_DATA
            | com::CLOSE
            | com::STMT_RESET
            | com::FETCH => self.statement(command, body, reply),
            _ => reply.err(1047, "08S01", "Unknown command"),
        }
    }

    /// Makes the session as new, but for the schema and the option.
    pub fn reset(&mut self) {
        if self.lie == Lie::NoReset {
            return;
        }
        self.roll_back();
        *self = Self {
            agreed: self.agreed,
            schema: self.schema.take(),
            has_several: self.has_several,
            last_number: self.last_number,
            jump: self.jump,
            attempts: self.attempts,
            news: std::mem::take(&mut self.news),
            lie: self.lie,
            last_status: self.last_status,
            ..Self::default()
        };
    }

    /// Sets the schema, and tells it.
    pub fn use_schema(&mut self, name: &str, reply: &mut Reply) {
        if name.starts_with("no") {
            return reply.err(1049, "42000", &format!("Unknown database '{name}'"));
        }
        if self.lie != Lie::NoSchema {
            self.schema = Some(name.to_owned());
        }
        self.row_count = 0;
        self.changed_schema(name);
        self.ok(reply, Outcome::default());
    }

    /// Notes that the schema was set.
    pub fn changed_schema(&mut self, name: &str) {
        if self.variables.get("session_track_schema") == "ON" {
            self.changes.push(Change::Schema(name.to_owned()));
        }
        self.changed_state();
    }

    /// Notes that something has changed.
    pub fn changed_state(&mut self) {
        let is_tracked = self.variables.get("session_track_state_change") == "ON";
        if is_tracked && !self.changes.contains(&Change::State) {
            self.changes.push(Change::State);
        }
    }

    /// Notes that a variable was set.
    pub fn changed_variable(&mut self, name: &str, value: &str) {
        let listed = self.variables.get("session_track_system_variables");
        if listed.split(',').any(|one| one.trim() == name) {
            self.changes.push(Change::Variable(name.to_owned(), value.to_owned()));
        }
        self.changed_state();
    }

    /// Notes how the transaction stands, if that was not told.
    fn look_at_transaction(&mut self) {
        let wish = self.variables.get("session_track_transaction_info").to_owned();
        if wish == "OFF" {
            return;
        }
        let mut letters = *b"________";
        let mut characteristics = self.next.clone();
        if let Some(transaction) = &self.transaction {
            letters[0] = if transaction.is_implicit { b'I' } else { b'T' };
            if !transaction.wrote.is_empty() {
                letters[4] = b'W';
            }
            if !transaction.is_implicit {
                characteristics = format!("{}START TRANSACTION;", transaction.characteristics);
            }
        }
        if self.locks_tables {
            letters[7] = b'L';
        }
        let letters = String::from_utf8_lossy(&letters).into_owned();
        if self.lie == Lie::NoCharacteristics {
            characteristics.clear();
        }
        if wish == "CHARACTERISTICS" && self.told.0 != characteristics {
            self.told.0.clone_from(&characteristics);
            self.changes.push(Change::Characteristics(characteristics));
        }
        if self.told.1 != letters && !(self.told.1.is_empty() && letters == "________") {
            self.told.1.clone_from(&letters);
            self.changes.push(Change::Transaction(letters));
        }
    }

    /// Ends a result that has no rows.
    pub fn ok(&mut self, reply: &mut Reply, outcome: Outcome) {
        self.look_at_transaction();
        let changes = std::mem::take(&mut self.changes);
        let status = self.status() | outcome.status;
        self.last_status = status & !flag::MORE_RESULTS;
        reply.ok(0, Outcome { status, ..outcome }, &changes);
    }

    /// Ends rows. Changes are reported now only if they end with an OK packet.
    pub fn end_of_rows(&mut self, reply: &mut Reply, more: u16) {
        let status = self.status() | more;
        self.last_status = self.status();
        if !reply.is_new() {
            return reply.eof(0, status);
        }
        self.look_at_transaction();
        let changes = std::mem::take(&mut self.changes);
        reply.ok(0xFE, Outcome { status, ..Outcome::default() }, &changes);
    }

    /// Ends the transaction. What it has written remains.
    pub fn commit(&mut self) {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            self.news.extend(transaction.wrote.into_iter().map(News::Committed));
        }
    }

    /// Ends the transaction. Nothing that it has written remains.
    pub fn roll_back(&mut self) {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            self.news.extend(transaction.wrote.into_iter().map(News::Undone));
        }
    }

    /// Returns all of the state that a proxy could get wrong, in words.
    pub fn state(&self) -> String {
        let transaction = self.transaction.as_ref().map(|open| {
            let Transaction { wrote, reads_only, characteristics, is_implicit } = open;
            format!("{wrote:?} {reads_only} {characteristics} {is_implicit}")
        });
        let Self { schema, has_several, next, savepoints, own, locks_tables, .. } = self;
        let variables = self.variables.printed();
        format!(
            "{schema:?} several {has_several} {variables} in {transaction:?} next {next:?} \
             savepoints {savepoints:?} own {own:?} locks {locks_tables}"
        )
    }

    /// Returns what must not be there when a server goes to another client, in words.
    pub fn leftovers(&self) -> String {
        let mut left: Vec<String> = self.own.iter().cloned().collect();
        left.extend(self.transaction.as_ref().map(|_| "a transaction".to_owned()));
        left.extend((!self.next.is_empty()).then(|| self.next.clone()));
        left.extend(self.savepoints.iter().map(|(name, _)| name.clone()));
        left.extend(self.locks_tables.then(|| "locked tables".to_owned()));
        left.join(", ")
    }
}

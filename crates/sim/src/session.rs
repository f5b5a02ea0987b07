//! A session of the model server, which is strict about the protocol.
//!
//! A session takes messages one at a time and returns replies as bytes. Every server of the
//! simulated world is such a session, and so is the oracle of each client, whose replies the client
//! must get. This module does not know the engine, time or chance.
//!
//! Sources: the manual, "Message Flow", and replies of PostgreSQL 15 and 18 (`tests/model.rs`).

use std::collections::BTreeMap;
use std::rc::Rc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::Parse;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;

use crate::directory::Directory;
use crate::fault::Fault;
use crate::hosts::Stand;
use crate::lang::{self, Statement};
use crate::rows::Rows;
use crate::state::{REPORTED, State};

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    /// The statement; `None` for an empty text.
    pub statement: Option<Statement>,
    /// Number of parameters.
    pub params: usize,
    /// The meaning of its constants under the settings of its Parse.
    pub frozen: String,
    /// Whether SQL PREPARE created it.
    pub by_sql: bool,
}

/// A portal.
#[derive(Debug)]
pub(crate) struct Portal {
    pub(crate) prepared: Rc<Prepared>,
    pub(crate) arguments: Vec<String>,
    /// The remaining rows, once the portal has begun to run.
    pub(crate) rows: Option<Vec<Vec<String>>>,
}

/// A cursor WITH HOLD.
#[derive(Debug)]
pub(crate) struct Held {
    /// The remaining rows.
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether the transaction that declared the cursor has committed.
    pub(crate) kept: bool,
}

/// The state of a session's transaction, with the state to which a rollback returns.
#[derive(Clone, Debug, Default)]
pub(crate) enum Transaction {
    #[default]
    None,
    /// An implicit transaction, for the messages up to Sync or for one query string.
    Implicit(Rc<State>),
    /// A transaction block.
    Block(Rc<State>),
    /// A failed transaction block, which accepts only its end.
    Failed,
}

/// A running COPY FROM STDIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyIn {
    pub(crate) rows: usize,
    pub(crate) extended: bool,
}

/// The catalog's answer to the question about statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Catalog {
    /// It is true.
    #[default]
    Honest,
    /// It has no objections: [`crate::plant::Plant::BlindReads`].
    Blind,
    /// It does not say what statements change: [`crate::plant::Plant::NoTargets`].
    NoTargets,
}

/// A session.
#[derive(Debug, Default)]
pub struct Session {
    pub(crate) out: Vec<u8>,
    /// The rows of the server, and the session's number among those of the server.
    pub(crate) rows: Rows,
    pub(crate) number: usize,
    /// The state of the session's host now.
    pub(crate) stand: Stand,
    /// The users of the server, and the database of the session.
    pub(crate) directory: Directory,
    pub(crate) database: String,
    /// The number of bytes of `out` that a real server would have sent by now.
    pub(crate) ready: usize,
    pub(crate) base: BTreeMap<String, String>,
    pub(crate) state: Rc<State>,
    pub(crate) transaction: Transaction,
    pub(crate) statements: BTreeMap<String, Rc<Prepared>>,
    pub(crate) portals: BTreeMap<String, Portal>,
    /// The last reported value of each reported setting.
    reported: BTreeMap<&'static str, String>,
    pub(crate) holds: BTreeMap<String, Held>,
    pub(crate) delivered: Vec<(String, String)>,
    pub(crate) locks: u32,
    pub(crate) copying: Option<CopyIn>,
    pub(crate) skipping: bool,
    /// Whether an Execute has run a command in the implicit transaction.
    pub(crate) piped: bool,
    pub(crate) ended: bool,
    /// Whether the session only pretends to run texts marked as planted; see [`crate::plant`].
    pub pretends: bool,
    /// The answers of the catalog.
    pub catalog: Catalog,
}

impl Session {
    /// Answers a startup packet whose login succeeds.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn begin(
        &mut self,
        settings: &[(String, String)],
        pid: u32,
        key: &[u8],
    ) -> Result<(), Fault> {
        let mut given = State::default();
        for (name, value) in settings {
            given.assign(name, Some(value), false)?;
        }
        self.base = given.set;
        write::authentication(&mut self.out, 0, &[]);
        for (name, _) in REPORTED {
            let value = self.setting(name);
            write::parameter_status(&mut self.out, name.as_bytes(), value.as_bytes());
            self.reported.insert(name, value);
        }
        write::backend_key(&mut self.out, pid, key);
        write::ready(&mut self.out, Status::Idle);
        self.ready = self.out.len();
        Ok(())
    }

    /// Returns the replies that a real server would have sent by now.
    pub fn take_output(&mut self) -> Vec<u8> {
        let ready = std::mem::take(&mut self.ready);
        let rest = self.out.split_off(ready);
        std::mem::replace(&mut self.out, rest)
    }

    /// Returns all replies so far, sent or not.
    pub fn take_all(&mut self) -> Vec<u8> {
        self.ready = 0;
        std::mem::take(&mut self.out)
    }

    /// Marks all replies so far as sent.
    pub(crate) fn flush(&mut self) {
        self.ready = self.out.len();
    }

    /// Whether the session has ended itself.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the session's transaction has failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.transaction, Transaction::Failed)
    }

    /// Whether a transaction block is open that has not failed.
    pub(crate) fn is_in_block(&self) -> bool {
        matches!(self.transaction, Transaction::Block(_))
    }

    /// Sets whether the session ignores all messages up to Sync.
    pub(crate) fn skip(&mut self, skips: bool) {
        self.skipping = skips;
    }

    /// Checks that a standby may run a statement.
    pub(crate) fn check_stand(&self, statement: &Statement) -> Result<(), Fault> {
        if !(self.stand.is_standby && statement.changes()) {
            return Ok(());
        }
        Err(Fault::new("25006", "cannot execute a command that writes in a read-only transaction"))
    }

    /// Handles a Parse although the transaction has failed.
    pub(crate) fn parse_anyway(&mut self, body: &[u8]) -> bool {
        let Ok(parse) = Parse::read(body) else { return false };
        let name = String::from_utf8_lossy(parse.name).into_owned();
        let statement = lang::parse(&String::from_utf8_lossy(parse.text())).pop();
        let prepared = self.prepare(statement, false);
        self.statements.insert(name, Rc::new(prepared));
        true
    }

    /// Whether the session waits for COPY data.
    pub fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Whether the session is outside of transactions and COPY, and does not skip to Sync.
    pub fn is_quiet(&self) -> bool {
        matches!(self.transaction, Transaction::None) && self.copying.is_none() && !self.skipping
    }

    /// Returns the session's state that belongs to one client, in words; empty if there is none.
    pub fn leftovers(&self) -> String {
        let mut left = Vec::new();
        let state = &*self.state;
        let mut note = |is: bool, what: &str| is.then(|| left.push(what.to_owned()));
        note(!self.is_quiet(), "an open transaction");
        note(!state.temps.is_empty(), "temporary tables");
        note(!state.listens.is_empty(), "LISTEN");
        note(!self.holds.is_empty(), "held cursors");
        note(self.locks > 0, "advisory locks");
        let prepared = self.statements.values().any(|prepared| prepared.by_sql);
        note(prepared, "statements prepared by SQL");
        left.join(", ")
    }

    /// Whether this message brings no reply in the session's present state.
    pub fn is_silent(&self, tag: u8) -> bool {
        let copy = matches!(tag, front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL);
        match tag {
            front::TERMINATE => self.copying.is_none(),
            front::SYNC | front::FLUSH if self.copying.is_some() => true,
            front::COPY_DATA => true,
            front::SYNC => false,
            front::FLUSH => true,
            _ if self.skipping => true,
            _ if copy => self.copying.is_none(),
            _ => false,
        }
    }

    /// Whether a cancel request can hit the session while it handles this message.
    pub fn is_interruptible(&self, tag: u8) -> bool {
        let works = matches!(
            tag,
            front::QUERY
                | front::PARSE
                | front::BIND
                | front::EXECUTE
                | front::DESCRIBE
                | front::FUNCTION_CALL
        );
        works && !self.skipping && self.copying.is_none()
    }

    /// Whether the reply to this message may be the first to report a cancel: the request may have
    /// hit a message of the proxy before, and failed the transaction.
    pub fn may_report_cancel(&self, tag: u8) -> bool {
        matches!(tag, front::SYNC | front::CLOSE) && !self.skipping && self.copying.is_none()
    }

    /// Cancels the SELECT of a query string that has begun to return rows.
    pub fn interrupt_query(&mut self) {
        self.finish(Err(Fault::cancelled()));
    }

    /// Ends a query string, function call or segment: commits an implicit transaction and sends
    /// ReadyForQuery.
    pub(crate) fn finish(&mut self, result: Result<(), Fault>) {
        match result {
            Ok(()) if matches!(self.transaction, Transaction::Implicit(_)) => self.commit(),
            Ok(()) => {}
            Err(fault) => self.fail(&fault),
        }
        if self.ended {
            return;
        }
        let outside = matches!(self.transaction, Transaction::None);
        if outside {
            for (channel, payload) in std::mem::take(&mut self.delivered) {
                write::message(&mut self.out, back::NOTIFICATION_RESPONSE, |out| {
                    out.extend_from_slice(&7u32.to_be_bytes());
                    write::string(out, channel.as_bytes());
                    write::string(out, payload.as_bytes());
                });
            }
        }
        for (name, _) in REPORTED {
            let value = self.setting(name);
            if self.reported.get(name) != Some(&value) {
                write::parameter_status(&mut self.out, name.as_bytes(), value.as_bytes());
                self.reported.insert(name, value);
            }
        }
        let status = match self.transaction {
            Transaction::None | Transaction::Implicit(_) => Status::Idle,
            Transaction::Block(_) => Status::Transaction,
            Transaction::Failed => Status::Failed,
        };
        write::ready(&mut self.out, status);
        self.ready = self.out.len();
    }

    /// Sends an error and rolls the transaction back.
    pub(crate) fn fail(&mut self, fault: &Fault) {
        let severity = if fault.fatal { "FATAL" } else { "ERROR" };
        let report =
            write::Report { severity, sqlstate: fault.sqlstate, message: &fault.message, hint: "" };
        write::error(&mut self.out, &report);
        self.ready = self.out.len();
        self.ended |= fault.fatal;
        self.abort();
    }

    /// Checks that the transaction has not failed, unless the statement ends it.
    pub(crate) fn admit(&self, statement: &Statement) -> Result<(), Fault> {
        let failed = matches!(self.transaction, Transaction::Failed);
        if failed && !statement.ends_transaction() { Err(Fault::aborted()) } else { Ok(()) }
    }

    pub(crate) fn begin_implicit(&mut self) {
        if matches!(self.transaction, Transaction::None) {
            self.transaction = Transaction::Implicit(self.state.clone());
        }
    }

    /// Commits the transaction.
    pub(crate) fn commit(&mut self) {
        self.transaction = Transaction::None;
        self.piped = false;
        self.rows.commit(self.number);
        self.portals.clear();
        self.holds.values_mut().for_each(|held| held.kept = true);
        let state = &self.state;
        if !state.local.is_empty() || !state.notes.is_empty() {
            let state = Rc::make_mut(&mut self.state);
            state.local.clear();
            let notes = std::mem::take(&mut state.notes);
            let heard = notes.into_iter().filter(|(channel, _)| state.listens.contains(channel));
            self.delivered.extend(heard);
        }
    }

    /// Rolls back the transaction's changes. A block has then failed, an implicit transaction is
    /// over.
    fn abort(&mut self) {
        let (saved, then) = match std::mem::take(&mut self.transaction) {
            Transaction::None => (None, Transaction::None),
            Transaction::Implicit(saved) => (Some(saved), Transaction::None),
            Transaction::Block(saved) => (Some(saved), Transaction::Failed),
            Transaction::Failed => (None, Transaction::Failed),
        };
        self.transaction = then;
        self.piped = false;
        self.rows.rollback(self.number);
        self.portals.clear();
        self.holds.retain(|_, held| held.kept);
        if let Some(saved) = saved {
            self.state = saved;
        }
    }

    /// Rolls the transaction back and ends it.
    pub(crate) fn rollback(&mut self) {
        self.abort();
        self.transaction = Transaction::None;
    }

    pub(crate) fn prepare(&self, statement: Option<Statement>, by_sql: bool) -> Prepared {
        let params = statement.as_ref().map_or(0, Statement::params);
        Prepared { statement, params, frozen: self.frozen(), by_sql }
    }

    /// Returns the shown value of a setting.
    pub(crate) fn setting(&self, name: &str) -> String {
        self.state.value(&self.base, name).unwrap_or_default()
    }

    /// Returns the meaning that the present settings give to a constant at its Parse.
    pub(crate) fn frozen(&self) -> String {
        format!("{}/{}", self.setting("datestyle"), self.setting("timezone"))
    }

    pub(crate) fn portal(&mut self, name: &[u8]) -> Result<&mut Portal, Fault> {
        let name = String::from_utf8_lossy(name);
        let message = format!("portal \"{name}\" does not exist");
        self.portals.get_mut(&*name).ok_or_else(|| Fault::new("34000", message))
    }
}

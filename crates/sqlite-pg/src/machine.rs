//! The state of a session, and what the session does with each message.
//!
//! A [`Machine`] runs on the loop of many clients as long as nothing takes long, and moves as a
//! whole to a thread when something does. A message that has to go on elsewhere is not consumed and
//! leaves no trace here; the thread handles it again from its beginning.
//!
//! What always holds: a message is consumed once all its replies are in the output, or once the
//! rest of them is kept in `rows`, `simple`, `copy` or a portal. Outside of a transaction an idle
//! session does not have the right to write, and has a connection only for open portals and
//! temporary tables.

mod bounds;
mod writing;
mod rows;
mod commands;
mod compiling;
mod copying;
mod simple;
mod parameter_types;
mod extended;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use refrain_sqlite::{Connection, Parked};
use refrain_wire::frame::{HEADER_BYTES, Header};
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::backend::{Backend, Pool};
use crate::context::Context;
use crate::copy::CopyIn;
use crate::failure::Failure;
use crate::prepared::{Portal, Prepared};
use crate::runs_on::RunsOn;
use crate::transaction::Transaction;
use crate::write_queue::Permit;

use bounds::{OUTPUT_ON_THREAD, is_long};
use rows::Rows;
use simple::Simple;

/// Objects by the name that the client gave them. The hasher is a fast one: a client that finds
/// colliding names slows only itself down.
type ByName<T> = HashMap<Vec<u8>, T, foldhash::fast::RandomState>;

/// Says what a machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The machine waits for more bytes from the client.
    Input,
    /// The machine has to go on on a thread, as something takes long.
    Thread,
    /// The machine needs the right to write, and a thread.
    Writer,
    /// The output is full: the client has to read first.
    OutputRoom,
    /// The session is over.
    Close,
}

/// Says why a message was not handled to its end.
pub(crate) enum Stop {
    /// It failed; the client gets this error.
    Failed(Failure),
    /// It goes on elsewhere or later, with what it needs.
    Needs(Need),
    /// Its statement was translated for a schema that is gone; it has done nothing yet.
    Stale,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The result of handling a message.
pub(crate) type Outcome = Result<(), Stop>;

/// The state of a session.
pub(crate) struct Machine {
    pool: Arc<Pool>,
    pub(crate) context: Arc<Context>,
    connection: Option<Box<Connection>>,
    /// True if the connection has temporary tables, which belong to this session alone.
    has_temporary: bool,
    /// True if the open transaction has changed the schema, which other sessions do not see yet.
    changed_schema: bool,
    /// The right to write.
    pub(crate) permit: Option<Permit>,
    /// The error to raise instead of writing: the wait for the right to write has ended in vain.
    pub(crate) write_refused: Option<Failure>,
    /// The error to raise: the wait for a thread has ended in vain.
    pub(crate) wait_ended: Option<Failure>,
    /// When the running statement began; none if `statement_timeout` does not limit it.
    began: Option<Instant>,
    transaction: Transaction,
    statements: ByName<Arc<Prepared>>,
    portals: ByName<Portal>,
    /// The compiled form of the statement that was last prepared or described, kept until the next
    /// one or Sync.
    held: Option<(Arc<Prepared>, Parked)>,
    rows: Option<Rows>,
    simple: Option<Simple>,
    copy: Option<CopyIn>,
    /// True after an error in an extended message: messages up to Sync are skipped.
    skipping: bool,
    /// The values of ParameterStatus that the client got last.
    reported: Vec<(&'static str, String)>,
    runs_on: RunsOn,
    /// True if the loop serves no other client.
    pub(crate) alone: bool,
    /// When the write that runs on the loop began.
    writes_since: Option<Instant>,
}

impl Machine {
    pub(crate) fn new(pool: Arc<Pool>, context: Arc<Context>) -> Self {
        let reported = context.settings().reported();
        Self {
            pool,
            context,
            connection: None,
            has_temporary: false,
            changed_schema: false,
            permit: None,
            write_refused: None,
            wait_ended: None,
            began: None,
            transaction: Transaction::default(),
            statements: ByName::default(),
            portals: ByName::default(),
            held: None,
            rows: None,
            simple: None,
            copy: None,
            skipping: false,
            reported,
            runs_on: RunsOn::Loop,
            alone: false,
            writes_since: None,
        }
    }

    /// True if nothing is open and nothing runs.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.connection.is_none() && self.permit.is_none() && self.rows.is_none()
    }

    /// Returns the pool that connections come from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the backend of the file that is served.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.pool.backend
    }

    /// Handles as many messages as it can. Returns the number of bytes used, and what the machine
    /// waits for.
    pub(crate) fn run(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        runs_on: RunsOn,
    ) -> (usize, Need) {
        self.runs_on = runs_on;
        let context = self.context.clone();
        context.control.begin();
        let done = context.enter(runs_on == RunsOn::Loop, || self.work(input, out));
        if matches!(done.1, Need::Input | Need::Close) {
            context.control.end();
        }
        done
    }

    fn work(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Need) {
        let mut used = self.give_up(input, out);
        loop {
            match self.go_on(out) {
                Ok(()) => {}
                Err(Stop::Needs(need)) => return (used, need),
                Err(Stop::Failed(failure)) => self.failed(&failure, out),
                Err(Stop::Stale) => self.failed(&Failure::stale_plan(), out),
            }
            let rest = input.get(used..).unwrap_or_default();
            let (header, body) = match message(rest, self.pool.longest_message()) {
                Ok(Some(message)) => message,
                Ok(None) => return (used, Need::Input),
                Err(failure) => {
                    failure.write(out, "FATAL");
                    return (used, Need::Close);
                }
            };
            if self.runs_on == RunsOn::Loop && is_long(&header) {
                self.begins();
                return (used, Need::Thread);
            }
            let behind = rest.get(header.message_bytes()..).unwrap_or_default();
            let mark = out.len();
            match self.message(header.tag, body, behind, out) {
                Ok(()) => {}
                Err(Stop::Needs(need)) => {
                    if matches!(need, Need::Thread | Need::Writer) {
                        // A thread handles the message again, so its replies so far must go.
                        out.truncate(mark);
                    }
                    return (used, need);
                }
                Err(Stop::Failed(failure)) => self.failed(&failure, out),
                Err(Stop::Stale) => self.failed(&Failure::stale_plan(), out),
            }
            used += header.message_bytes();
            if self.rows.is_none() && self.simple.is_none() {
                self.began = None;
            }
        }
    }

    /// Ends what has waited for a thread in vain: the running statement, else the next message.
    /// Returns the bytes of that message.
    fn give_up(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let Some(failure) = self.wait_ended.take() else { return 0 };
        self.began = None;
        if self.rows.is_some() || self.simple.is_some() {
            self.failed(&failure, out);
            return 0;
        }
        let Ok(Some((header, _))) = message(input, usize::MAX) else { return 0 };
        self.failed(&failure, out);
        if header.tag == front::QUERY {
            self.skipping = false;
            self.ready(out);
        }
        header.message_bytes()
    }

    /// Goes on with a statement that an earlier message began.
    fn go_on(&mut self, out: &mut Vec<u8>) -> Outcome {
        loop {
            if self.rows.is_some() {
                self.more_rows(out)?;
            } else if self.simple.is_some() && self.copy.is_none() {
                self.more_simple(out)?;
            } else {
                return Ok(());
            }
        }
    }

    fn message(&mut self, tag: u8, body: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        if self.copy.is_some() {
            return self.copy_message(tag, body, out);
        }
        match tag {
            front::SYNC => self.sync(out),
            front::TERMINATE => Err(Stop::Needs(Need::Close)),
            // PostgreSQL skips queries and function calls as well (`ignore_till_sync` in
            // `PostgresMain`).
            _ if self.skipping => Ok(()),
            front::QUERY => self.query(body, out),
            front::PARSE => self.parse(body, out),
            front::BIND => self.bind(body, out),
            front::DESCRIBE => self.describe(body, behind, out),
            front::EXECUTE => self.execute(body, behind, out),
            front::CLOSE => self.close(body, out),
            front::FLUSH | front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => Ok(()),
            front::FUNCTION_CALL => {
                Failure::unsupported("function calls by OID are not supported").write(out, "ERROR");
                self.end_failed();
                self.ready(out);
                Ok(())
            }
            other => {
                let message = format!("invalid frontend message type {other}");
                Failure::protocol(message).write(out, "FATAL");
                Err(Stop::Needs(Need::Close))
            }
        }
    }

    /// Reports an error. It ends a simple query; after an extended message everything is skipped
    /// until Sync.
    fn failed(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.began = None;
        self.pool.failed(failure);
        failure.write(out, "ERROR");
        self.rows = None;
        self.copy = None;
        self.end_failed();
        if self.simple.take().is_some() {
            self.ready(out);
        } else {
            self.skipping = true;
        }
    }

    /// Ends or fails the transaction after an error.
    fn end_failed(&mut self) {
        if let Some(connection) = &self.connection {
            connection.discard_parked();
        }
        self.transaction.fail(self.connection.as_deref());
        self.portals.clear();
        if !self.transaction.is_block() {
            self.context.settings().transaction_ended(false);
        }
        self.settle();
    }

    /// Handles Sync. It commits the transaction, unless BEGIN began it.
    fn sync(&mut self, out: &mut Vec<u8>) -> Outcome {
        self.skipping = false;
        self.let_go();
        if let Err(failure) = self.end_implicit() {
            self.pool.failed(&failure);
            failure.write(out, "ERROR");
            self.end_failed();
        }
        self.ready(out);
        Ok(())
    }

    /// Commits the open transaction. Returns false if the transaction had failed and was rolled
    /// back. What was written must have gone to the file that is served, so the file is checked
    /// before and after.
    ///
    /// # Errors
    /// SQLite refused to commit, or the file is gone. The transaction is over then.
    fn commit_open(&mut self) -> Result<bool, Failure> {
        let connection = self.connection.as_deref();
        let writer = connection.filter(|_| self.permit.is_some() && self.transaction.is_open());
        if let Some(Err(gone)) = writer.map(|writer| self.pool.check(writer)) {
            self.transaction.rollback(connection);
            return Err(gone);
        }
        let kept = self.transaction.commit(connection)?;
        writer.filter(|_| kept).map_or(Ok(()), |writer| self.pool.check_commit(writer))?;
        Ok(kept)
    }

    /// Ends a transaction that no BEGIN began.
    fn end_implicit(&mut self) -> Result<(), Failure> {
        if self.transaction.is_block() {
            return Ok(());
        }
        self.portals.clear();
        if let Some(connection) = &self.connection {
            connection.discard_parked();
        }
        let committed = self.commit_open();
        self.context.settings().transaction_ended(committed.is_ok());
        self.context.forget_now();
        self.settle();
        committed.map(drop)
    }

    /// Gives back the right to write and the connection, where no transaction or temporary table
    /// needs them.
    fn settle(&mut self) {
        if !self.transaction.is_open() {
            self.stop_writing();
            self.changed_schema = false;
        }
        if self.transaction.is_open() || self.has_temporary || !self.portals.is_empty() {
            return;
        }
        if let Some(connection) = self.connection.take() {
            self.context.control.works_on(None);
            // Portals of a transaction block in which nothing ran may still have parked runs.
            connection.discard_parked();
            self.pool.put(connection);
        }
    }

    /// Gives up the right to write; the next session in the queue gets it.
    fn stop_writing(&mut self) {
        if self.permit.take().is_some() {
            self.wrote_here();
            self.pool.wrote();
        }
    }

    /// Appends ReadyForQuery, and before it a ParameterStatus for each changed parameter.
    fn ready(&mut self, out: &mut Vec<u8>) {
        self.tell_settings(out);
        write::ready(out, self.transaction.status());
    }

    /// Appends a ParameterStatus for each reported parameter whose value is not the one that the
    /// client got last.
    fn tell_settings(&mut self, out: &mut Vec<u8>) {
        let mut settings = self.context.settings();
        if !settings.take_changed() {
            return;
        }
        let now = settings.reported();
        for (told, now) in self.reported.iter().zip(&now) {
            if told != now {
                write::parameter_status(out, now.0.as_bytes(), now.1.as_bytes());
            }
        }
        self.transaction.default_read_only = settings.is_on("default_transaction_read_only");
        self.reported = now;
    }

    /// True if the session may see another schema than other sessions do.
    fn sees_alone(&self) -> bool {
        self.has_temporary || self.changed_schema
    }

    /// Closes the connection, and with it the session's temporary tables. No other session may have
    /// it.
    fn close_connection(&mut self) {
        self.has_temporary = false;
        self.context.control.works_on(None);
        if let Some(connection) = self.connection.take() {
            self.pool.close(connection);
        }
    }

    /// Returns the session's connection, or takes one from the pool.
    fn connect(&mut self) -> Result<Box<Connection>, Stop> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        // Opening a file may wait for a lock, and takes as long as ten reads: a thread does it.
        if self.runs_on == RunsOn::Loop && !self.pool.has_idle() {
            return Err(Stop::Needs(Need::Thread));
        }
        let connection = self.pool.take(self.runs_on)?;
        self.context.control.works_on(Some(connection.interrupter()));
        Ok(connection)
    }

    /// Runs `work` with the session's connection, within the limits of where the machine runs.
    fn with<R>(
        &mut self,
        work: impl FnOnce(&mut Self, &Connection) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        self.begins();
        let connection = self.connect()?;
        self.limit(&connection);
        let done = work(self, &connection);
        self.connection = Some(connection);
        done
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.transaction.rollback(self.connection.as_deref());
        if self.has_temporary {
            return self.close_connection();
        }
        self.context.control.works_on(None);
        if let Some(connection) = self.connection.take() {
            connection.discard_parked();
            self.pool.put(connection);
        }
    }
}

/// Returns the first message in `bytes`; none if it is not complete.
fn message(bytes: &[u8], longest: usize) -> Result<Option<(Header, &[u8])>, Failure> {
    let header = Header::parse(bytes).map_err(|bad| Failure::protocol(bad.to_string()))?;
    let Some(header) = header else { return Ok(None) };
    if header.message_bytes() > longest {
        let message = format!("a message of {} bytes is too long", header.message_bytes());
        return Err(Failure::new("54000", message).hint("sqlite_max_length bounds it"));
    }
    let body = bytes.get(HEADER_BYTES..header.message_bytes());
    Ok(body.map(|body| (header, body)))
}

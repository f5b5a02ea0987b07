//! The state of a session. The files of this folder handle its messages; `dispatch.rs` picks one of
//! them for each message.
//!
//! A [`Machine`] runs on the loop of many clients as long as nothing takes long, and moves as a
//! whole to a thread when something does. A message that has to go on elsewhere is not consumed and
//! leaves no trace here; the thread handles it again from its beginning.
//!
//! Always true: a message is consumed once all its replies are in the output, or once the rest of
//! them is kept in `rows`, `simple`, `copy` or a portal. Outside of a transaction an idle session
//! does not have the right to write, and has a connection only for open portals and temporary
//! tables.

mod bounds;
mod writing;
mod ending;
mod query_text;
mod rows;
mod commands;
mod compiling;
mod copying;
mod simple;
mod parameter_types;
mod extended;
mod dispatch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use refrain_pg_wire::frame::{HEADER_BYTES, Header};
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Parked};

use crate::backend::{Backend, Pool};
use crate::calendar;
use crate::context::Context;
use crate::copy::CopyIn;
use crate::failure::Failure;
use crate::prepared::{Portal, Prepared};
use crate::runs_on::RunsOn;
use crate::transaction::Transaction;
use crate::write_queue::Permit;

use query_text::Simple;
use rows::Rows;

/// Objects by the name that the client gave them. The hasher is a fast one: a client that finds
/// colliding names slows only itself down.
type ByName<T> = HashMap<Vec<u8>, T, foldhash::fast::RandomState>;

/// The resource that a machine waits for.
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

/// The reason why a message was not handled to its end.
pub(crate) enum Stop {
    /// It failed; the client gets this error.
    Failed(Failure),
    /// It goes on elsewhere or later, with the resource that it needs.
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
    /// The error to raise instead of writing, if the session did not get the right to write.
    pub(crate) write_refused: Option<Failure>,
    /// The error to raise, if the machine did not get a thread.
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

    /// True if a statement goes on without more input.
    pub(crate) fn has_work(&self) -> bool {
        self.rows.is_some() || self.simple.is_some()
    }

    /// Returns the pool that connections come from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the backend of the file that is served.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.pool.backend
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
        calendar::note_zone(settings.get("timezone").unwrap_or_default());
        let now = settings.reported();
        for (old, now) in self.reported.iter().zip(&now) {
            if old != now {
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
        // A statement on a thread may have taken one since the session left.
        self.context.shared.advisory.session_ended(self.context.pid);
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
        return Err(Failure::new("54000", message).hint("sqlite_max_length limits it"));
    }
    let body = bytes.get(HEADER_BYTES..header.message_bytes());
    Ok(body.map(|body| (header, body)))
}

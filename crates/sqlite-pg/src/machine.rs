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

mod access;
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

use refrain_pg_wire::frame::{HEADER_BYTES, Header};
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Parked};

use crate::backend::Pool;
use crate::calendar;
use crate::context::Context;
use crate::copy::CopyIn;
use crate::failure::Failure;
use crate::prepared::{Portal, Prepared};
use crate::runs_on::RunsOn;

use access::Access;
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
    pub(crate) access: Access,
    /// The error to raise, if the machine did not get a thread.
    pub(crate) wait_ended: Option<Failure>,
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
}

impl Machine {
    pub(crate) fn new(pool: Arc<Pool>, context: Arc<Context>) -> Self {
        let reported = context.settings().reported();
        Self {
            access: Access::new(pool, context),
            wait_ended: None,
            statements: ByName::default(),
            portals: ByName::default(),
            held: None,
            rows: None,
            simple: None,
            copy: None,
            skipping: false,
            reported,
        }
    }

    /// True if nothing is open and nothing runs.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.access.connection.is_none() && self.access.permit.is_none() && self.rows.is_none()
    }

    /// True if a statement goes on without more input.
    pub(crate) fn has_work(&self) -> bool {
        self.rows.is_some() || self.simple.is_some()
    }

    /// Appends ReadyForQuery, and before it a ParameterStatus for each changed parameter.
    fn ready(&mut self, out: &mut Vec<u8>) {
        self.tell_settings(out);
        write::ready(out, self.access.transaction.status());
    }

    /// Appends a ParameterStatus for each reported parameter whose value is not the one that the
    /// client got last.
    fn tell_settings(&mut self, out: &mut Vec<u8>) {
        let mut settings = self.access.context.settings();
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
        self.access.transaction.default_read_only = settings.is_on("default_transaction_read_only");
        self.reported = now;
    }

    /// Runs `work` with the session's connection, within the limits of where the machine runs.
    fn with<R>(
        &mut self,
        work: impl FnOnce(&mut Self, &Connection) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        self.access.begins();
        let connection = self.access.connect()?;
        self.access.limit(&connection);
        let done = work(self, &connection);
        self.access.connection = Some(connection);
        done
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.access.transaction.rollback(self.access.connection.as_deref());
        // A statement on a thread may have taken one since the session left.
        self.access.context.shared.advisory.session_ended(self.access.context.pid);
        if self.access.has_temporary {
            return self.access.close_connection();
        }
        self.access.context.control.works_on(None);
        if let Some(connection) = self.access.connection.take() {
            connection.discard_parked();
            self.access.pool.put(connection);
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

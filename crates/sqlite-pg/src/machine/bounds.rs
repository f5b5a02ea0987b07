//! Limits of a statement on the loop, and the way of a statement that exceeds them.

use std::time::Instant;

use refrain_pg_wire::frame::Header;
use refrain_pg_wire::tag::front;
use refrain_sqlite::{Connection, Error, Interruption, Limits};

use crate::failure::Failure;
use crate::prepared::Portal;

use super::access::Access;
use super::{ByName, Need, RunsOn, Stop};

/// Instructions of SQLite's virtual machine that a statement may take on the loop: about a
/// millisecond.
const STEPS_ON_LOOP: u32 = 100_000;
/// The same for a statement that writes: its changes have to reach the disk as well.
const STEPS_OF_WRITES_ON_LOOP: u32 = 10_000;
/// The longest text, blob or row that a statement may meet on the loop, in bytes.
const LENGTH_ON_LOOP: usize = 128 * 1024;
/// The longest message that is read on the loop, in bytes.
const MESSAGE_ON_LOOP: usize = 64 * 1024;
/// The longest SQL text that is read on the loop, in bytes: PostgreSQL's grammar, the translation
/// and SQLite's compiler take about three microseconds for each byte.
const TEXT_ON_LOOP: usize = 4 * 1024;
/// Bytes of output beyond which a statement leaves the loop.
const OUTPUT_ON_LOOP: usize = 64 * 1024;
/// Bytes of output beyond which a statement on a thread waits for the client to read.
pub(super) const OUTPUT_ON_THREAD: usize = 256 * 1024;

/// True if a message is too long for the loop.
pub(super) fn is_long(header: &Header) -> bool {
    let most = match header.tag {
        front::QUERY | front::PARSE => TEXT_ON_LOOP,
        _ => MESSAGE_ON_LOOP,
    };
    header.message_bytes() > most
}

/// True if a portal has more parameters than the loop may free.
pub(super) fn holds_much(portals: &ByName<Portal>) -> bool {
    portals.values().any(|portal| portal.bind.len() > MESSAGE_ON_LOOP)
}

impl Access {
    /// Sets the limits of the next statement on the connection.
    pub(super) fn limit(&self, connection: &Connection) {
        let on_loop = self.runs_on == RunsOn::Loop;
        let writes = self.permit.is_some();
        let steps = on_loop.then_some(if writes { STEPS_OF_WRITES_ON_LOOP } else { STEPS_ON_LOOP });
        let length = on_loop.then_some(LENGTH_ON_LOOP);
        // A statement on the loop never waits for a lock, so it needs no limit.
        let lock = (!on_loop).then(|| self.context.settings().duration("lock_timeout")).flatten();
        let deadline = self.deadline();
        connection.set_limits(Limits { steps, deadline, length, lock, keeps_wal: on_loop });
    }

    /// Notes when a statement begins, unless one runs already.
    pub(super) fn begins(&mut self) {
        if self.began.is_none() && self.context.settings().duration("statement_timeout").is_some() {
            self.began = Some(Instant::now());
        }
    }

    /// Returns when `statement_timeout` ends the running statement.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let began = self.began?;
        let timeout = self.context.settings().duration("statement_timeout")?;
        began.checked_add(timeout)
    }

    /// Turns an error of SQLite's into a [`Stop`]: a statement that takes too much for the loop
    /// runs again on a thread, any other error goes to the client.
    pub(super) fn stop(&self, error: &Error, text: &[u8]) -> Stop {
        let long = error.interruption == Some(Interruption::Steps);
        let large = self.runs_on == RunsOn::Loop && error.is_too_long();
        if self.context.take_wants_thread() || long || large {
            return Stop::Needs(Need::Thread);
        }
        Stop::Failed(Failure::of_sqlite(error, text))
    }

    /// Turns an error at compiling into a [`Stop`], in the same way.
    pub(super) fn not_compiled(&self, connection: &Connection, failure: Failure) -> Stop {
        if connection.take_outgrown() && self.runs_on == RunsOn::Loop {
            return Stop::Needs(Need::Thread);
        }
        Stop::Failed(failure)
    }

    /// Returns the bytes of output at which a statement pauses.
    pub(super) fn output_max(&self) -> usize {
        match self.runs_on {
            RunsOn::Loop => OUTPUT_ON_LOOP,
            RunsOn::Thread => OUTPUT_ON_THREAD,
        }
    }
}

//! The message on a side connection to PostgreSQL: a CancelRequest. Nothing else is said there.
//!
//! PostgreSQL sends the signal before it closes the connection of the request, and ignores a signal
//! that arrives while the server waits for a query. So once PostgreSQL has closed the connection,
//! the cancel cannot hit the server's next client.

use refrain_pg_wire::startup;

/// A CancelRequest.
#[derive(Debug)]
pub struct CancelRequest {
    /// The server's process ID, which the request names.
    pid: u32,
    /// The server's cancel key, which the request shows.
    key: Box<[u8]>,
}

impl CancelRequest {
    /// Makes the request for the server with this process ID and key.
    pub(crate) fn new(pid: u32, key: &[u8]) -> Self {
        Self { pid, key: key.into() }
    }

    /// Writes the request.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        startup::write_cancel(out, self.pid, &self.key);
    }
}

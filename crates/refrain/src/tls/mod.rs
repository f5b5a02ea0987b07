//! TLS: a step from bytes to bytes between the kernel driver and the engine. Neither of the two
//! sees a record.
//!
//! ```text
//! kernel ──records──► Session::receive ──bytes in the clear──► engine
//! kernel ◄──records── Session::next    ◄──bytes in the clear── engine's ports
//! ```
//!
//! rustls does the handshakes and the records, without buffers of its own: a core decrypts all that
//! it receives in one scratch buffer, and encrypts in one batch all that the engine has queued for
//! a connection in a turn. An idle connection keeps keys, and a record that has come in part.
//!
//! The state machine of a connection, `session`, has no socket: its tests connect two of them in
//! memory. `host` has those of one core, and `blocking` runs one for a command. `configs` reads the
//! files, at the start and at a reload. Connections that are open keep the certificates that they
//! began with.
//!
//! Not here: who may connect in the clear, and what a certificate entitles to. The engine decides
//! that, by `refrain_pool::secured`.

mod names;
mod version1;
mod files;
mod verify;
mod configs;
mod records;
mod handshake;
mod session;
mod host;
mod blocking;
#[cfg(test)]
mod tests;

pub(crate) use blocking::BlockingStream;
pub(crate) use configs::{Setup, Store};
pub(crate) use host::TlsHost;
pub(crate) use session::{Heard, Sender, Session, Task};

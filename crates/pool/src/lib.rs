//! Who has which server: a connection pool for any protocol, without I/O.
//!
//! Each core has one [`Engine`]. The loop around it gives it an [`Event`], the time and its
//! [`Ports`]. The engine appends output to the ports' buffers, and lists everything else that is to
//! be done as [`Action`]s. A run is a function of its events: this crate has no socket, clock,
//! thread or randomness. The state that cores share ([`shared::Shared`]) stands behind locks.
//!
//! The pool lends servers to clients, takes them back, connects new ones up to the limits, hands
//! them from core to core, ends what takes too long, pauses, drains and counts. It knows no
//! protocol: a [`Protocol`] reads and writes the messages.
//!
//! The files stand in the order in which they build on each other.

#![forbid(unsafe_code)]

pub mod ids;
pub mod time;
pub mod inbox;
pub mod disconnect;
pub mod stats;
pub mod settings;
pub mod parts;
pub mod lobby;
pub mod message;
pub mod client;
pub mod server;
pub mod connections;
pub mod event;
pub mod ports;
pub mod pool_shared;
pub mod counts;
mod pauses;
mod pools;
pub mod shared;
pub mod pool;
pub mod database_drain;
pub mod core_state;
pub mod snapshot;
pub mod engine;
pub mod protocol;
mod step;

pub use engine::{Engine, Linked, Step};
pub use event::{Action, Event};
pub use ids::{ClientSerial, Conn, Core};
pub use parts::Parts;
pub use ports::{Output, Ports};
pub use protocol::Protocol;
pub use server::Transfer;
pub use step::notes::note_client;
pub use step::sessions::END_OF_STREAM;
pub use time::Now;

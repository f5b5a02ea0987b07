//! A connection pool for any protocol: it decides which client has which server, without I/O.
//!
//! Each core has one [`Engine`]. The core's loop gives the engine an [`Event`], the time and the
//! [`Ports`]. The engine appends output to the ports' buffers, and lists all other work for the
//! loop as [`Action`]s. A run is a function of its events: this crate has no socket, clock, thread
//! or randomness. Locks protect the state that cores share ([`shared::Shared`]).
//!
//! The pool lends servers to clients, takes servers back, connects new servers up to the limits,
//! hands servers from core to core, enforces timeouts, pauses, drains and counts. The pool knows no
//! protocol: a [`Protocol`] reads and writes the messages. What PostgreSQL needs is not here.
//!
//! Each file uses only files that stand before it in this list.

#![forbid(unsafe_code)]

pub mod ids;
pub mod seed;
pub mod time;
pub mod inbox;
pub mod disconnect;
pub mod stats;
mod buckets;
pub mod figures;
pub mod durations;
pub mod hosts;
pub mod settings;
pub mod parts;
mod pauses;
pub mod client_counts;
pub mod process;
pub mod lobby;
pub mod message;
pub mod secured;
pub mod client;
mod line;
pub mod reconnects;
pub mod server;
pub mod side;
pub mod connections;
mod width;
mod choice;
mod crowd;
pub mod refusal;
pub mod pool_shared;
pub mod transfer;
pub mod event;
pub mod ports;
mod process_ids;
pub mod counts;
mod pools;
mod moved;
mod lost_hosts;
mod full_hosts;
pub mod shared;
mod agenda;
mod waiters;
pub mod pool;
pub mod database_drain;
pub mod core_state;
pub mod snapshot;
pub mod engine;
pub mod protocol;
mod step;

pub use engine::{Engine, Flow, Linked, Log, Sharing, Step, Supply};
pub use event::{Action, Event};
pub use ids::{ClientSerial, Conn, Core};
pub use parts::Parts;
pub use ports::{Output, Ports};
pub use protocol::{Background, Protocol, Sides, Views};
pub use step::lend::Rated;
pub use step::notes::{
    ClientNote, note_client, note_duration, note_server_error, note_standby_reads,
};
pub use step::sessions::END_OF_STREAM;
pub use step::share::REQUEST_BYTES_MAX;
pub use time::Now;
pub use transfer::Transfer;

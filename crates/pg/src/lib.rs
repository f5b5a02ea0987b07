//! What becomes of every byte and every waiting client, decided without I/O.
//!
//! One [`Engine`] a core. The loop around it hands it an [`Event`], the time and its [`Ports`]; the
//! engine appends what is to be sent to the ports' buffers and puts what else is to be done beside
//! them as [`Action`]s. A run is a function of its events: there is no socket, clock, thread or
//! randomness in here. What cores share ([`shared::Shared`]) sits behind locks that only cold paths take:
//! a new statement text, a server opened or closed, a login.
//!
//! The folders stand in the order in which they build on each other, and so do the files in each.

#![forbid(unsafe_code)]

mod ground;
pub mod auth;
mod settings;
mod statements;
mod normalized;
mod pipeline;
mod state;
mod relay;
mod messages;
mod autoprepare;
mod engine;
mod login;
mod step;

pub use engine::Engine;
pub use ground::ids::{ClientSerial, Conn, Core};
pub use ground::time::Now;
pub use ground::{disconnect, ids, stats, time};
pub use state::event::{Action, Event};
pub use state::ports::{Output, Ports};
pub use state::server::Transfer;
pub use state::{event, lobby, ports, shared, snapshot};
pub use statements::{registry, statement};

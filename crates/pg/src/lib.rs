//! The pooler's decisions, without I/O: what happens to every byte and to every client that waits.
//!
//! Each core has one [`Engine`]. The loop around it gives it an [`Event`], the time and its
//! [`Ports`]. The engine appends output to the ports' buffers, and lists everything else that is to
//! be done as [`Action`]s. A run is a function of its events: this crate has no socket, clock,
//! thread or randomness. The state that cores share ([`shared::Shared`]) stands behind locks. A
//! Bind or an Execute of a statement that the server has takes none of them; a Parse, a login and a
//! server that is opened or closed do.
//!
//! The folders stand in the order in which they build on each other, and so do the files in each
//! folder.

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

pub use ground::{ids, stats};
pub use refrain_pool::{ClientSerial, Conn, Core, Now};
pub use state::parts::{
    Action, ClientView, Counters, Engine, Event, Output, PoolShared, PoolView, Ports, ServerView,
    Shared, Snapshot, Transfer,
};
pub use state::{parts, requests, snapshot};
pub use statements::{registry, statement};
pub use step::view::{statement_clients, statements};

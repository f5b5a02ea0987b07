//! What becomes of every byte and every waiting client, decided without I/O.
//!
//! One [`Engine`] a core. The loop around it hands it an [`Event`], the time and its [`Ports`]; the
//! engine appends what is to be sent to the ports' buffers and puts what else is to be done beside
//! them as [`Action`]s. A run is a function of its events: there is no socket, clock, thread or
//! randomness in here. What cores share ([`shared::Shared`]) sits behind locks that only cold paths take:
//! a new statement text, a server opened or closed, a login.
//!
//! The modules stand in the order in which they build on each other.

#![forbid(unsafe_code)]

// What things are.
pub mod ids;
pub mod time;
pub mod disconnect;
pub mod auth;
pub mod stats;
mod inbox;

// Statements and settings.
mod columns;
pub mod statement;
pub mod registry;
mod encoding;
mod settings;
mod reported;
mod interned_settings;
mod defaults;
mod core_statements;
mod client_statements;
mod portals;
mod server_statements;
mod compare_times;
mod stored;
mod normalized_query;
mod normalized_queries;
mod catalog;
mod run;

// What is owed, and what to take back.
mod request_kinds;
mod outstanding;
mod undo;
mod evidence;
mod calls;
mod schema;
mod job;

// Who takes part.
mod server;
pub mod snapshot;
mod pauses;
mod pool_shared;
mod pools;
pub mod lobby;
pub mod shared;
pub mod event;
pub mod ports;
mod client;
mod pool;
mod database_drain;
mod core_state;
mod connections;

// From the client to the server, and back: the hot path.
mod link;
mod message;
mod words;
mod follow;
mod internal;
mod look;
mod prepare;
mod fits;
mod named;
mod unmanaged;
mod bind;
mod autoprepare;
mod verify;
mod query;
mod request;
mod effects;
mod reply;
mod reports;
mod failure;

// One step, by subject.
mod engine;
mod jobs;
mod grow;
mod hand_over;
mod gone;
mod lending;
mod serving;
mod farewell;
mod server_login;
mod server_input;
mod opening;
mod login;
mod cancel;
mod console;
mod control;
mod tick;
mod view;
mod check;

pub use engine::Engine;
pub use event::{Action, Event};
pub use ids::{ClientSerial, Conn, Core};
pub use ports::{Output, Ports};
pub use server::Transfer;
pub use time::Now;

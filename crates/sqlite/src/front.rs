//! SQLite answering as a PostgreSQL server would.
//!
//! A [`Session`] takes the bytes of a client and answers them in PostgreSQL's protocol; what the client
//! asks in SQL is SQLite's. `docs/sqlite.md` says what is promised and what is not.
//!
//! From the ground up: what values and types are (`types` to `encode`), what a text says (`text` to
//! `command`), what a session has (`settings` to `transaction`), what it does (`machine`), and who drives it
//! (`session`).

mod types;

mod failure;

mod calendar;

mod json;

mod decode;

mod encode;

mod text;

mod infer;

mod tokens;

mod catalog;

mod dialect;

mod standard;

mod command;

mod attributes;

mod schemas;

mod meaning;

mod settings;

mod control;

mod queue;

mod watch;

mod operator;

mod threads;

mod context;

mod functions;

mod once;

mod compute;

mod turn;

mod place;

mod idle;

mod rest;

mod disk;

mod backend;

mod shape;

mod copy;

mod prepared;

mod transaction;

mod machine;

mod input;
/// Output that a thread made, in pieces.
mod pieces;

mod session;

pub use backend::{Backend, ConnectionView, Pool, PoolView};
pub use control::{CancelHandle, Waker};
pub use operator::Teller;
pub use session::{Progress, Session};

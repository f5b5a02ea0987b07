//! The work of the program for PostgreSQL's protocol alone.
//!
//! The engine of `refrain-pg` asks for three things: a parse by PostgreSQL's grammar, which the
//! parser thread makes; a command at the console, which the desk (`admin`) carries out; and servers
//! that are SQLite in this process.

pub(crate) mod sqlite;
pub(crate) mod parser;
mod console;
mod peers;
mod changes;
mod served;
pub(crate) mod sum;

pub(crate) use changes::start as follow_changes;
pub(crate) use peers::Peers;
pub(crate) use served::{Helpers, PgState};

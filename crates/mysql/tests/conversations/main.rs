//! Conversations of clients, Refrain and servers, without I/O: what a client gets, and what reaches
//! which server. Each is held several times, with all input in pieces of another length.

#![forbid(unsafe_code)]

mod packets;
mod model;
mod world;

mod logins;
mod changes_of_user;
mod session_mode;
mod transaction_mode;
mod settings;
mod statements;
mod definitions;
mod endings;
mod kill;
mod late_kill;
mod insert_id;
mod hidden;
mod console;

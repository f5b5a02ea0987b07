//! The protocol of MySQL and MariaDB for a pool, as `pg` is that of PostgreSQL. It decides and does
//! no I/O.
//!
//! A client is greeted as its server would greet it (`probe`, `entering`), and lent a server that
//! has agreed on what the client has agreed on (`variant`). Its commands go to the server
//! (`requests`, `statements`, `sending`), behind the settings and the prepared statement that the
//! server lacks (`train`, `presence`). The packets of a server
//! belong to the first command that it owes a reply to (`commands`, `replies`, `own`); what they
//! say of the session is learnt (`learn`). The number of LAST_INSERT_ID() follows the client
//! (`insert_id`). Between two commands a server may go back (`settle`,
//! `release`). A client may end what another one of its user does (`kill`, `killing`). Clients of
//! the admin console have no server (`console`, `admin`).
//!
//! Each file uses only files that stand before it in this list.

#![forbid(unsafe_code)]

mod table;
mod reply;
pub mod errors;
pub mod login;
mod sides;
mod sessions;
mod variant;
mod sweep;
mod settings;
mod pins;
mod insert_id;
mod functions;
mod text;
mod hidden;
mod definitions;
mod statement;
mod registry;
mod shown;
mod texts;
mod slots;
mod commands;
mod wishes;
pub mod views;
pub mod console;
mod client_state;
pub mod parts;
mod figures;
mod train;
mod settle;
mod presence;
mod learn;
mod console_login;
mod entering;
mod preparing;
mod killing;
mod probe;
mod prepared;
mod own;
mod replies;
mod answers;
mod sending;
mod kill;
mod statements;
mod requests;
mod admin;
mod release;
mod protocol;

pub use figures::{CoreStatementsView, KnownStatement, core_statements};
pub use reply::{PREFIX_BYTES, Part, Reply, Taken, UnexpectedPacket};
pub use table::Kind;
pub use texts::KnownText;

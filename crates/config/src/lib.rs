//! Every option of Refrain, once: name, unit, default, bounds, when a change counts, and words for
//! it.
//!
//! The text of a TOML file, or the URL of a server, goes in; checked [`Options`] come out, or all
//! that is wrong with it, by line. What is wrong is never guessed around: an unknown key is an
//! error.
//!
//! Options are rows of four tables ([`General`], [`PoolOptions`], and the keys of databases and of
//! users). From the rows come reading, bounds, defaults, `SHOW CONFIG` ([`Options::rows`]), what a
//! reload would change ([`Options::differences`]), `docs/config.md` ([`reference()`]) and the
//! example file ([`example()`]). To add an option is to add a row; a rule between several options
//! goes into the `conflicts` of its table.
//!
//! Two things hold of every [`Options`] that was read:
//!
//! - each value is within its bounds, also after [`Options::pool`] has laid a user's over a
//!   database's;
//! - every user can log in by the method that is set, and there is at least one database.
//!
//! Not here: reading files or the environment, and looking up names of hosts.
#![forbid(unsafe_code)]

mod secret;
mod value;
mod table;
mod general;
mod pool;
mod sqlite;
mod database;
mod user;
mod error;
mod file;
mod url;
mod options;
mod build;
mod reload;
mod reference;
#[cfg(test)]
mod tests;

pub use crate::database::{Backend, Database, Host, Server};
pub use crate::error::{Error, Errors};
pub use crate::general::{AuthMethod, DriverChoice, General, LogFormat, LogLevel, Workers};
pub use crate::options::{Options, ResolvedPool};
pub use crate::pool::{
    Autoprepare, PoolMode, PoolOptions, PoolOverrides, SqlPrepare, TrackFunctions,
};
pub use crate::reference::{example, reference};
pub use crate::reload::{Change, ConfigRow};
pub use crate::secret::{ScramVerifier, Secret, UserSecret};
pub use crate::sqlite::{Sqlite, StatementAdmission, Synchronous};
pub use crate::table::When;
pub use crate::user::User;
pub use crate::value::Percent;

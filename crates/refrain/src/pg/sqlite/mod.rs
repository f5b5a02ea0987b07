//! SQLite in the place of PostgreSQL servers, in a build that has it.
//!
//! The feature `sqlite` is on by default. Without it the program is a pooler alone, and refuses a
//! database that is a file when it starts.

#[cfg(feature = "sqlite")]
mod round;
#[cfg(feature = "sqlite")]
mod session;
#[cfg(feature = "sqlite")]
mod host;
#[cfg(not(feature = "sqlite"))]
mod absent;

#[cfg(not(feature = "sqlite"))]
pub(crate) use absent::{Files, SqliteHost, try_open};
#[cfg(feature = "sqlite")]
pub(crate) use host::{CorePool, Files, SqliteHost, try_open};

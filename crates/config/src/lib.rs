//! Every option of Refrain, once: name, unit, default, bounds, when a change counts, and words for it.
#![forbid(unsafe_code)]

mod secret;
mod value;
mod table;
mod general;
mod pool;
mod database;
mod user;
mod error;
mod file;
mod url;
mod build;
mod options;
mod reload;
mod reference;

pub use crate::database::{Backend, Database, Host, Server};
pub use crate::error::{Error, Errors};
pub use crate::general::{AuthMethod, DriverChoice, General, LogFormat, LogLevel, Workers};
pub use crate::options::{Options, ResolvedPool};
pub use crate::pool::{PoolMode, PoolOptions, PoolOverrides, SqlPrepare};
pub use crate::reference::{example, reference};
pub use crate::reload::{Change, ConfigRow};
pub use crate::secret::{ScramVerifier, Secret, UserSecret};
pub use crate::table::When;
pub use crate::user::User;
pub use crate::value::Percent;

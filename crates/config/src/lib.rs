//! Every option of Refrain, defined once: name, unit, default, bounds, when a change takes effect,
//! and documentation.
//!
//! The input is the text of a TOML file or of a `pgbouncer.ini`, or the URL of a server. The output
//! is checked [`Options`], or every error by line. Refrain does not guess at what a user meant: an
//! unknown key is an error.
//!
//! Options are rows of four tables ([`General`], [`PoolOptions`], and the keys of databases and of
//! users). The rows define reading, bounds, defaults, the changes of a reload
//! ([`Options::differences`]), `docs/config.md` ([`reference()`]) and the example file
//! ([`example()`]); those of the program, of pools and of the cache are in `SHOW CONFIG`
//! ([`Options::rows`]). To add an option is to add a row, and for a database's or a user's own keys
//! a field of [`Database`], [`Server`] or [`User`]. A rule between several options goes into the
//! `conflicts` of its table.
//!
//! Two things hold for every [`Options`] that was read:
//!
//! - each value is within its bounds, also after [`Options::pool`] has applied a user's options
//!   over a database's;
//! - every user under `[users]` can log in by the configured method, unless that is `hba`, or may
//!   be looked up, and there is at least one database.
//!
//! Not here: resolving host names, and reading files, which a [`Machine`] does.
#![forbid(unsafe_code)]

mod secret;
mod value;
mod system;
mod choices;
mod pattern;
mod table;
mod tls;
mod machine;
mod hba;
mod general_log;
mod general;
mod general_rules;
mod pool;
mod sqlite;
mod cache;
mod host;
mod database;
mod console;
mod places;
mod user;
mod peer;
mod error;
mod file;
mod url;
mod mysql;
mod promise;
mod equivalent;
mod access;
mod options;
mod userlist;
mod spelling;
mod assign;
mod build;
mod ini;
mod reload;
mod reference;
#[cfg(test)]
mod tests;

pub use crate::assign::Assignment;
pub use crate::cache::{Cache, CacheOptions, CacheRule, Consistency, PoolCache, PoolRule};
pub use crate::choices::{
    AuthMethod, DriverChoice, LogFormat, LogLevel, MetricsBy, PgBouncerVersion, PoolerErrors,
    SyslogFacility, Unavailable, Workers,
};
pub use crate::console::ConsoleRights;
pub use crate::database::{AuthQueryKeys, Backend, Changes, ChangesOptions, Database, Server};
pub use crate::error::{Error, Errors};
pub use crate::general::General;
pub use crate::hba::{CertificateName, ClientCertificate, Groups, Hba, HbaMethod, Newcomer, Rule};
pub use crate::host::{Host, LoadBalanceHosts, Reads, TargetSessionAttrs};
pub use crate::ini::{Remark, is_ini, pgbouncer_page};
pub use crate::machine::{Machine, Network, NoMachine};
pub use crate::options::{AuthQuery, Options, ResolvedPool};
pub use crate::pattern::Pattern;
pub use crate::peer::{Peer, PeerPlace};
pub use crate::pool::{
    Autoprepare, PoolMode, PoolOptions, PoolOverrides, ShareServers, SqlPrepare, TrackFunctions,
    UntoldChanges,
};
pub use crate::reference::{example, reference};
pub use crate::reload::{Change, ConfigRow};
pub use crate::secret::{NativeHash, ScramVerifier, Secret, UserSecret};
pub use crate::spelling::nearest;
pub use crate::sqlite::{Sqlite, StatementAdmission, Synchronous};
pub use crate::system::{FileMode, OrBeside, OrSystem, Port};
pub use crate::table::When;
pub use crate::tls::{
    Authorities, ChannelBinding, ServerTls, SslMode, SslNegotiation, TlsChoices, TlsCipher,
    TlsGroup, TlsProtocol,
};
pub use crate::user::User;
pub use crate::value::{Percent, time};

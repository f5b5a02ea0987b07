//! PostgreSQL's protocol for the pool (`refrain_pool`), without I/O: this crate decides for every
//! message which bytes go to the server or to the client.
//!
//! The pool decides which client has which server. It has one [`Engine`] per core, and calls this
//! crate for everything that needs the protocol: logins, messages, replies, and the state of a
//! session. A run is a function of its events: this crate has no socket, clock, thread or
//! randomness. The state that cores share ([`Shared`]) stands behind locks. A Bind or an Execute of
//! a statement that the server has takes none of them; a Parse, a login and a server that is opened
//! or closed do.
//!
//! The folders stand in the order in which they build on each other, and so do the files in each
//! folder.

#![forbid(unsafe_code)]

mod ground;
mod standbys;
pub mod auth;
mod settings;
mod statements;
mod normalized;
mod reads;
mod results;
pub mod changes;
mod users;
mod pipeline;
pub mod console;
mod state;
mod relay;
mod autoprepare;
mod messages;
mod engine;
mod login;
mod step;

pub use ground::reports::logged_words;
pub use ground::{ids, stats};
pub use login::console::may_look;
pub use reads::{findings, question};
#[cfg(feature = "plant")]
pub use refrain_cache::Bug as CacheBug;
pub use refrain_cache::{Figures as CacheFigures, Stats as CacheStats};
pub use refrain_pool::{ClientSerial, Conn, Core, Now};
pub use results::changes::{ChangesView, TableCoverage};
pub use results::repeats::Repeated;
pub use results::store::Flush;
pub use results::texts::without_literals;
#[cfg(feature = "plant")]
pub use standbys::bug::StandbyBug;
pub use state::parts::{
    Action, ClientView, Counters, Engine, Event, Output, PoolShared, PoolView, Ports, ServerView,
    Shared, Snapshot, Transfer,
};
pub use state::{parts, requests, snapshot};
pub use statements::verdict::Read;
pub use statements::{registry, statement};
pub use step::statement_views::{
    CoreStatementsView, OTHERS, core_statements, statements, statements_at,
};
pub use step::view::{
    advisable, cached_replies, cached_tables, explain_cache, hba_rules, judge, judge_statement,
};
#[cfg(feature = "plant")]
pub use users::bug::Bug as UserBug;
pub use users::known::{KnownUser, LookupStats};

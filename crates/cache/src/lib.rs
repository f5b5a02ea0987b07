//! Results of reads, kept in memory and shared by all cores.
//!
//! What: [`Cache`] maps the bytes of a key to the bytes of a reply. A [`Fill`] is a reply that is
//! being fetched, [`Topic`]s are the things whose change voids replies, and [`Numbers`] gives long
//! parts of keys a short name.
//!
//! Why: most applications ask a database the same few questions again and again. An answer from
//! memory costs no server anything.
//!
//! What always holds:
//! - A reply is found by all bytes of its key; a hash places it and decides nothing.
//! - A reply is given only while every topic of it has the generation that it had before the
//!   request was sent. So a change that is noted before its writer hears of it voids every reply
//!   that may lack it, whatever the order in which messages come.
//! - The bytes that the cache takes, its own tables among them, stay within its limit
//!   ([`Cache::bytes`]).
//! - One reply is fetched for a key at a time. Whoever waits for it waits for a limited time.
//! - Nothing here reads a clock: time is an argument, in microseconds.
//!
//! What it does not do: it knows no protocol and no SQL, and decides neither what may be cached nor
//! for how long.

#![forbid(unsafe_code)]

mod bug;
mod account;
mod numbers;
mod topics;
mod terms;
mod fill;
mod entry;
mod queue;
mod flights;
mod stats;
mod shard;
mod cache;

pub use account::{Account, Figures};
pub use bug::{Bug, Planted};
pub use cache::Cache;
pub use fill::{Asker, Fill, Found, Hit, Kept, Waiter};
pub use numbers::Numbers;
pub use stats::{EntryView, Stats};
pub use terms::Terms;
pub use topics::{Topic, TopicSet, Topics};
/// The hash of keys.
pub type Seed = foldhash::fast::SeedableRandomState;

//! Results: the replies to reads that the cache keeps, by the rules of a pool.
//!
//! A client without a server whose input is one whole segment that only reads may get the reply
//! from memory: [`crate::step::answer`] decides that. A reply that is not there is fetched as
//! without a cache, and kept when its ReadyForQuery comes; in place of an old one, a job of
//! Refrain's own fetches it: [`refresh`]. What writes notes that before its client hears of it:
//! [`writing`].

pub(crate) mod store;
pub(crate) mod topics;
pub(crate) mod changes;
pub(crate) mod places;
pub(crate) mod writing;
pub(crate) mod texts;
pub(crate) mod rule;
pub(crate) mod of_pool;
pub(crate) mod segment;
pub(crate) mod reply;
pub(crate) mod filling;
pub(crate) mod refresh;
pub(crate) mod repeats;
pub(crate) mod confirmed;
pub(crate) mod of_client;

//! Changes: what the replication stream of a database says of commits, and what follows for the
//! replies that are kept. A stream has the commits of all writers.
//!
//! [`Follower`] is the state machine of one database. It has no connection and no clock: a thread
//! of the program gives it what has come, and sends what it asks for, on two connections. One is
//! the walsender's, the other is for questions.
//!
//! Two things are easily got wrong. A commit comes in the stream before other sessions see it, as
//! PostgreSQL flushes the WAL before it takes the transaction from the list of those that run. So a
//! topic is in doubt from the event on until a snapshot has shown the transaction as over. And what
//! a transaction wrote before a table was published never comes, though it commits later. So a
//! table counts as covered once all transactions are over that ran when it was first seen
//! published.
//!
//! No time of the server's is compared. Positions of the WAL prove what has been heard
//! (`docs/decisions/0135-commits-by-the-replication-stream.md`).

mod snapshot;
mod waits;
mod doubts;
mod proofs;
mod relations;
mod questions;
mod coverage;
mod transactions;
mod stream;
mod follower;
#[cfg(test)]
mod model;
#[cfg(test)]
mod scenes;

pub use follower::Follower;
pub use questions::{RowBody, StreamQuestion};
pub use stream::Subscription;

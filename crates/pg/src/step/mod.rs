//! PostgreSQL's part of one step of the pool's engine, by subject.

pub(crate) mod reads;
pub(crate) mod refresh;
mod lookups;
mod primary;
pub(crate) mod jobs;
mod waiting_reads;
pub(crate) mod refused;
pub(crate) mod release;
pub(crate) mod reload;
pub(crate) mod farewell;
pub(crate) mod local;
pub(crate) mod shared_read;
pub(crate) mod share;
pub(crate) mod visit;
pub(crate) mod repeats;
pub(crate) mod wanted;
pub(crate) mod answer;
mod shutdown;
mod replication;
pub(crate) mod serving;
pub(crate) mod server_input;
mod console;
pub(crate) mod view;
pub(crate) mod statement_views;
pub(crate) mod check;
pub(crate) mod protocol;

//! One module for each file of `src/step` that decides something, here and in the crate of the
//! pool.

pub(crate) mod answer;
pub(crate) mod side;
mod console;
mod control;
mod farewell;
mod logins;
mod grow;
mod lending;
mod jobs;
pub(crate) mod reads;
mod lend;
mod refresh;
mod repeats;
mod replication;
mod refused;
mod primary;
pub(crate) mod visit;
mod release;
mod reload;
mod server_input;
mod serving;
mod shutdown;
pub(crate) mod share;
pub(crate) mod shared_read;
mod lookups;
mod local;
mod tick;
mod travel;
mod view;
mod statement_views;
mod waiting_reads;
mod wanted;

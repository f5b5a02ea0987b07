//! Prepared statements: what makes two of them one, and which of them the process, a core, a client
//! and a server have.

pub(crate) mod columns;
pub(crate) mod verdict;
pub(crate) mod relations;
pub(crate) mod often;
pub mod statement;
pub mod registry;
pub(crate) mod of_core;
pub(crate) mod of_client;
pub(crate) mod portals;
pub(crate) mod of_server;

//! Listings that PostgreSQL's protocol alone has.

pub(super) mod logins;
pub(super) mod prepared;
pub(super) mod autoprepare;
pub(super) mod cache;
#[cfg(feature = "sqlite")]
pub(super) mod sqlite;
pub(super) mod why;

//! Simple queries as prepared statements.

pub(crate) mod send;
pub(crate) mod verify;

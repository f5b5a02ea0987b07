//! Autoprepare: simple queries are run as prepared statements, where that is known to be right.

pub(crate) mod send;
pub(crate) mod verify;

//! Autoprepare: simple queries and unnamed statements are run as prepared statements, where that is
//! known to be right.

pub(crate) mod send;
pub(crate) mod verify;
pub(crate) mod unnamed;
pub(crate) mod repeat;

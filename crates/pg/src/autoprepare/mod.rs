//! Autoprepare: simple queries and unnamed statements are run as prepared statements, where that is
//! known to be right.

pub(crate) mod send;
pub(crate) mod unnamed;

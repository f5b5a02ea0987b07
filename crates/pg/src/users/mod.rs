//! Users from the database: what `auth_query` says of them, kept for all cores.
//!
//! A user who has no secret in the configuration is looked up by a job of Refrain's own
//! (`docs/decisions/0059-users-from-the-database.md`): [`lookup`] reads the answer, [`known`] keeps
//! it, and says who asks and who waits. The files of [`crate::step`] send the query.
//!
//! What always holds:
//!
//! - at most one query is under way for a user, whatever the number of logins, on all cores;
//! - an answer that cannot be read lets nobody in;
//! - answers are bounded by number, and each is of at most one user.

pub(crate) mod bug;
pub(crate) mod known;
pub(crate) mod lookup;

//! A server connection and the replies that it still owes: the outstanding requests, the changes
//! that an error takes back, and the schema changes that texts may have made.

pub(crate) mod purposes;
pub(crate) mod request_kinds;
pub(crate) mod outstanding;
pub(crate) mod undo;
pub(crate) mod evidence;
pub(crate) mod calls;
pub(crate) mod job;

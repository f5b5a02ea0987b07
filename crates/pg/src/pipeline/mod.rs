//! A server and what it owes: outstanding requests, what an error takes back, and what texts may have changed.

pub(crate) mod request_kinds;
pub(crate) mod outstanding;
pub(crate) mod undo;
pub(crate) mod evidence;
pub(crate) mod calls;
pub(crate) mod schema;
pub(crate) mod job;

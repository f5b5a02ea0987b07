//! What each message of a client asks for, and each query string.

pub(crate) mod parse;
pub(crate) mod fits;
pub(crate) mod named;
pub(crate) mod unmanaged;
pub(crate) mod bind;
pub(crate) mod simple_query;

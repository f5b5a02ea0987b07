//! One file per kind of client message and query string: what Refrain does with it.

pub(crate) mod wait;
pub(crate) mod refuse;
pub(crate) mod prepare;
pub(crate) mod meaning;
pub(crate) mod check;
pub(crate) mod fits;
pub(crate) mod named;
pub(crate) mod unmanaged;
pub(crate) mod parse;
pub(crate) mod bind;
pub(crate) mod statement;
pub(crate) mod simple_query;
pub(crate) mod malformed;
pub(crate) mod dispatch;

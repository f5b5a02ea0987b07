//! One module for each file of `src/messages`.

mod parse;
mod bind;
pub(crate) mod check;
mod statement;
mod dispatch;
mod fits;
mod meaning;
mod named;
mod prepare;
mod refuse;
mod simple_query;
mod unmanaged;
mod wait;
mod malformed;

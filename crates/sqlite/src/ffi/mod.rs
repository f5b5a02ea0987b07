//! SQLite's C interface, as far as statements need it. The crate has no other unsafe code.
//!
//! A statement is either [`Idle`] or [`Live`]. An idle one is reset and points at no memory but its
//! own. A live one may point at memory of the caller, which SQLite reads when it steps: the
//! lifetime `'b` keeps that memory in place until the statement is idle again. A live one that is
//! forgotten leaks, and is never stepped again.
//!
//! The callers inside this crate must keep two rules, and `core` and `statement` do:
//!
//! - a statement is used only by the thread that has its connection. A connection is opened
//!   without SQLite's own mutexes, so two threads at once would be a race;
//! - statements are gone before their [`Handle`] is, or SQLite does not close the file.
#![allow(unsafe_code, reason = "the C interface; nothing outside of this module may be unsafe")]

mod memory;
mod fault;
mod index;
mod files;
mod raw;
mod live;
mod handle;
mod nested;
mod real;

pub(crate) use files::{Asking, VFS};
pub(crate) use handle::{Compiled, Handle, configure};
pub(crate) use index::Index;
pub(crate) use live::{Idle, Live};
pub use nested::nested;
pub(crate) use raw::Raw;
pub use real::real_text;

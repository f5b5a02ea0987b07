//! SQLite's C interface, as far as statements need it. The only unsafe code of the crate.
//!
//! A statement is either [`Idle`] or [`Live`]. An idle one is reset and points at no memory but
//! its own. A live one may have been given pointers to memory of the caller, which SQLite reads
//! when it steps: the lifetime `'b` holds that memory in place until the statement is idle again.
//! Forgetting a live one leaks it, and nobody steps it any more.
//!
//! Two things are up to the callers inside this crate, and kept by `core` and `statement`:
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

pub(crate) use files::{Asking, VFS};
pub(crate) use handle::{Compiled, Handle, configure};
pub(crate) use index::Index;
pub(crate) use live::{Idle, Live};
pub(crate) use raw::Raw;

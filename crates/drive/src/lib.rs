//! Moves bytes: accept, connect, receive, send, close, wait until. It does not know what they mean.
//!
//! A [`Driver`] belongs to one thread. Between two turns the caller says what it wants (send this,
//! stop reading that); [`Driver::turn`] hands all of it to the kernel in one go, waits, and reports
//! what happened as [`Event`]s. Nothing calls back outside of a turn, so the caller steps through all
//! that came before anything goes out again. That is where the speed is: the kernel's work is nearly
//! all of the cost (`cargo xtask bench syscalls` counts it), and it is least when submitted together.
//!
//! Two kernels stand behind the one face, and the same tests run over both:
//!
//! - `uring`: completions. Many receives per request, one system call a turn;
//! - `epoll`: readiness, edge triggered. For old kernels, and for containers that refuse io_uring.
//!
//! What always holds:
//!
//! - the bytes of a connection are delivered in order, each once, and before its end is;
//! - after [`Driver::close`] nothing is delivered for the connection, and its token may be used anew;
//! - bytes given to [`Driver::send`] are sent even if `close` follows, as long as the peer takes them;
//! - a connection that waits owns no buffer, and a turn in steady state allocates nothing.
//!
//! Not here: timers (the caller passes how long to wait), TLS, name resolution, any limit on the number
//! of connections, and any thread.

#![allow(
    unsafe_code,
    reason = "the one crate that talks to the kernel; each use says why it is sound"
)]

mod address;
mod sys;
mod socket;
mod waker;
mod face;
mod sizing;
mod delay;
mod resting;
mod table;
mod epoll;
mod uring;
mod kernel;

pub use address::{Address, Peer};
pub use face::{Driver, Event, Token};
pub use kernel::{Kernel, Kind, open};
pub use sizing::Sizing;
pub use socket::{Listener, Socket};
pub use waker::Waker;

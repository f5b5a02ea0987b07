//! Socket I/O: accept, connect, receive, send, close, wait. The meaning of the bytes is not known
//! here.
//!
//! A [`Driver`] belongs to one thread. Between two turns the caller says what it wants (send this,
//! stop reading that). [`Driver::turn`] hands all of these requests to the kernel together, waits,
//! and reports what happened as [`Event`]s. Events are delivered during a turn only, so the caller
//! handles all of them before anything is sent. This batching makes the driver fast: the kernel's
//! work is nearly all of the cost (`cargo xtask bench syscalls` counts the system calls), and it is
//! least when requests are submitted together.
//!
//! Two kernel interfaces implement [`Driver`], and the same tests run over both:
//!
//! - `uring`: completions. One request receives many times; a turn is one system call;
//! - `epoll`: readiness, edge triggered. For old kernels, and for containers that refuse io_uring.
//!
//! What always holds:
//!
//! - the bytes of a connection are delivered in order, each once, and before the end of the
//!   connection;
//! - after [`Driver::close`] nothing is delivered for the connection, and its token may be reused;
//! - bytes given to [`Driver::send`] are sent even if `close` follows, as long as the peer takes
//!   them;
//! - a waiting connection owns no buffer, and a turn in steady state allocates nothing.
//!
//! Not here: timers (the caller says how long to wait), TLS, name resolution, limits on the number
//! of connections, and threads.

#![allow(
    unsafe_code,
    reason = "the one crate that talks to the kernel; each use says why it is sound"
)]

mod address;
mod allocator;
mod sys;
mod tuning;
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
pub use allocator::free_little_at_once;
pub use face::{Driver, Event, Token};
pub use kernel::{Kernel, Kind, open};
pub use sizing::Sizing;
pub use socket::{Listener, Listening, Socket};
pub use sys::passed_descriptors;
pub use tuning::Tuning;
pub use waker::Waker;

//! The pool with a protocol of lines, made up for these tests.
//!
//! `parts.rs` and `protocol.rs` are the smallest protocol that works; `harness.rs` has cores,
//! clients, servers and a clock without I/O. The other files are about one subject each.

mod parts;
mod protocol;
mod harness;

mod lending;
mod limits;
mod timeouts;
mod ticks;
mod hand_over;
mod operator;
mod cancel;
mod failures;
mod jobs;
mod flow;
mod share;
mod ports;

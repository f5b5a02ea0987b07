//! The pool with a protocol of lines, made up for tests (`crates/echo`).
//!
//! `tests/least.rs` shows the least that a protocol has to provide. `harness.rs` has cores,
//! clients, servers and a clock without I/O. The other files are about one subject each.

mod harness;

mod greetings;
mod encryption;
mod leaving;
mod ends;
mod lending;
mod limits;
mod room;
mod common;
mod timeouts;
mod ticks;
mod hand_over;
mod operator;
mod cancel;
mod side_connections;
mod travel;
mod failures;
mod hosts;
mod jobs;
mod asking;
mod flow;
mod share;
mod ports;

//! The pool with a protocol of lines, made up for these tests.
//!
//! `tests/least.rs` shows the least that a protocol has to provide. `parts.rs` and `protocol.rs`
//! show what most have, with the lines of a login in `login.rs`. `checks.rs`, `sides.rs` and
//! `reads.rs` show what else a protocol may provide: jobs, side connections and shared servers.
//! `harness.rs` has cores, clients, servers and a clock without I/O. The other files are about one
//! subject each.

mod parts;
mod lines;
mod login;
mod checks;
mod sides;
mod reads;
mod protocol;
mod harness;

mod greetings;
mod lending;
mod limits;
mod timeouts;
mod ticks;
mod hand_over;
mod operator;
mod cancel;
mod side_connections;
mod travel;
mod failures;
mod jobs;
mod flow;
mod share;
mod ports;

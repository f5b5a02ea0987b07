//! The duties of every driver, tried on each of them.
//!
//! No test depends on how long something takes; where one waits, it gives up after
//! [`harness::GUARD`].

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod harness;
mod ending;
mod flow;
mod hand_over;
mod lingering;
mod many;
mod opening;
mod scarce;
mod silence;
mod waiting;

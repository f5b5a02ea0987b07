//! The packets from outside the crate: random ones there and back, cut and spoiled ones.

#![forbid(unsafe_code)]

mod dice;
mod any;
mod round_trips;
mod hostile;

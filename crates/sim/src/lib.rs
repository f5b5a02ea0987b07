//! A seeded simulation of whole worlds around the engine: clients, servers, the network between, and what goes
//! wrong there.
//!
//! One seed makes one world: one to three engines that share their pools, model clients with random scripts,
//! model servers that are strict about the protocol, a network that cuts, delays and breaks, an operator. It runs in
//! one thread on virtual time, thousands of seeds a minute; a violation is replayed from its seed.
//!
//! What is checked, and where:
//!
//! | checker | rules out | in |
//! |---|---|---|
//! | oracle | replies lost, crossed, reordered, made up; foreign settings, statements and cancels | [`oracle`] |
//! | lending | a server lent twice, or with something of another client's | `backends` |
//! | statements | a Bind that reaches a server without its statement | `backends` |
//! | protocol | bytes to a server that are no message | `backends` |
//! | list of outstanding requests | a reply that the engine did not expect | `engines` |
//! | tables | links, lists and counts of an engine that contradict each other | `engines` |
//! | buffers | memory that grows with slow readers | `engines` |
//! | endings | a client let go without a word, or for no reason | `clients` |
//! | liveness | lost wake-ups, starvation, hangs | `check` |
//! | leaks | servers, clients and statements that stay counted | `check` |
//! | determinism | anything that is not a function of the seed | [`run`] |
//!
//! Each is shown to work by planted bugs ([`plant`]).
//!
//! Not here: TLS, passwords, the admin console, the kernel.

#![forbid(unsafe_code)]

pub mod rng;
mod lex;
pub mod lang;
pub mod plant;
pub mod fault;
pub mod state;
pub mod session;
mod copy;
mod execute;
mod extended;
mod messages;
pub mod frames;
pub mod oracle;
pub mod say;
pub mod feature;
pub mod script;
mod units;
pub mod plan;
pub mod trace;
pub mod net;
mod client;
mod backend;
pub mod world;
mod links;
mod engines;
mod backends;
mod clients;
mod delivery;
mod faults;
mod dispatch;
mod check;
pub mod run;

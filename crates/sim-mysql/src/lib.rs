//! A seeded simulation of the engine with MySQL's protocol: clients, servers, the network between
//! them, and faults. The network, the choices, the queue of events and the trace are those of
//! `refrain_sim`.
//!
//! One seed makes one world: one to three engines that share their pools, model clients with random
//! scripts, model servers that keep of a session what a proxy can get wrong, an operator, and a
//! network that cuts, delays and breaks. The world runs in one thread on virtual time. A violation
//! can be replayed from its seed.
//!
//! The checkers:
//!
//! | checker | rules out | in |
//! |---|---|---|
//! | oracle | lost, crossed, invented replies; foreign state; wrong flags | [`oracle`] |
//! | rows | transactions that are not whole | `clients` |
//! | once | a command that runs twice | `backends` |
//! | kills | an error of KILL for a client that nobody has killed | [`oracle`] |
//! | lending | an idle server with the state of a client | `check` |
//! | protocol | bytes to a server that are no command | `backends` |
//! | outstanding | a reply that the engine did not expect | `engines` |
//! | tables | links, lists and counts of an engine that contradict each other | `engines` |
//! | buffers | memory that grows with slow readers | `engines` |
//! | endings | a client disconnected without an error, or for no reason | `clients` |
//! | liveness | lost wake-ups, starvation, hangs | `check` |
//! | leaks | servers and clients that stay counted | `check` |
//! | determinism | behaviour that is not a function of the seed | [`run`] |
//!
//! Planted bugs ([`plant`]) show that the checkers work. With ends that break the protocol
//! (`hostile`), the same world is a fuzzer of both directions.
//!
//! Not here: passwords, TLS, compression, the kernel.

#![forbid(unsafe_code)]

pub mod wire;
pub mod variables;
pub mod language;
pub mod reply;
pub mod statement;
pub mod session;
mod login;
mod texts;
pub mod prepared;
mod commands;
pub mod feature;
pub mod script;
pub mod oracle;
pub mod plant;
pub mod plan;
mod client;
mod backend;
mod hostile;
pub mod world;
mod engines;
mod backends;
mod clients;
mod delivery;
mod faults;
mod dispatch;
mod check;
pub mod run;

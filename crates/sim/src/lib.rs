//! A seeded simulation of the engine's whole world: clients, servers, the network between them, and
//! faults.
//!
//! One seed makes one world: one to three engines that share their pools, model clients with random
//! scripts, model servers that are strict about the protocol, an operator, and a network that cuts,
//! delays and breaks. The world runs in one thread on virtual time. A violation can be replayed
//! from its seed.
//!
//! The checkers:
//!
//! | checker | rules out | in |
//! |---|---|---|
//! | oracle | lost, crossed, invented replies; foreign settings, statements, cancels | [`oracle`] |
//! | lending | a server lent to two clients, or with state of another client | `backends` |
//! | statements | a Bind that reaches a server without its statement | `backends` |
//! | reads | a statement that is no read on a shared server, or run twice | `reads` |
//! | versions | reads that miss committed writes or see open ones, lost writes | [`versions`] |
//! | patience | a client that waits behind another one for too long | `reads` |
//! | logins | wrong passwords let in, right ones refused, needless lookups | `lookup_checks` |
//! | questions | a server lent that was idle for `server_check_delay` and not asked | `quiet` |
//! | hosts | a client's message at a standby, but for reads where they may run there | `standbys` |
//! | failover | a promotion behind which clients wait for longer than a second | `faults` |
//! | turns | a client that gets a server before one that came earlier | `turns` |
//! | protocol | bytes to a server that are no message | `backends` |
//! | outstanding | a reply that the engine did not expect | `engines` |
//! | tables | links, lists and counts of an engine that contradict each other | `engines` |
//! | buffers | memory that grows with slow readers | `engines` |
//! | endings | a client disconnected without an error, or for no reason | `clients` |
//! | liveness | lost wake-ups, starvation, hangs | `check` |
//! | leaks | servers, clients and statements that stay counted | `check` |
//! | determinism | behaviour that is not a function of the seed | [`run`] |
//!
//! On standbys, reads may miss what was committed within `max_lag`, and nothing of their client's.
//!
//! Planted bugs ([`plant`]) show that the checkers work.
//!
//! Not here: TLS, the admin console, the kernel.

#![forbid(unsafe_code)]

pub mod rng;
pub mod queue;
pub mod panics;
pub mod rows;
pub mod versions;
mod lex;
pub mod item;
pub mod statement;
pub mod lang;
pub mod plant;
pub mod fault;
pub mod state;
pub mod directory;
mod hosts;
pub mod session;
mod copy;
mod questions;
mod row_commands;
mod execute;
mod extended;
mod waits;
mod messages;
pub mod frames;
pub mod oracle;
pub mod say;
pub mod feature;
pub mod script;
mod units;
mod setting_units;
mod row_units;
pub mod caching;
pub mod lagging;
pub mod logins;
pub mod rates;
pub mod plan;
pub mod trace;
pub mod net;
pub mod worker;
pub mod lookups;
mod exchange;
mod client;
mod quiet;
mod backend;
mod turns;
pub mod world;
mod engines;
mod reads;
mod row_checks;
mod lookup_checks;
mod proofs;
mod standbys;
mod backends;
mod clients;
mod delivery;
mod faults;
mod dispatch;
mod check;
pub mod run;

//! The rates of faults that a seed decides.
//!
//! Most rates are zero in most seeds: with all faults at once a run never gets far enough to find a
//! bug that one fault alone would show ("swarm testing").

use crate::rng::Rng;

/// The rates of faults, per thousand chances.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// A connection to a client breaks when a piece arrives.
    pub client_reset: u64,
    /// A connection to a server breaks when a piece arrives.
    pub server_reset: u64,
    /// A client that acts leaves without Terminate.
    pub abrupt: u64,
    /// A client that waits sends a cancel request.
    pub cancel: u64,
    /// A cancel request has a wrong key.
    pub wrong_key: u64,
    /// A reader pauses after a piece has arrived.
    pub stall: u64,
    /// A connection to a server is refused.
    pub refuse: u64,
    /// A server refuses a login.
    pub login_failure: u64,
    /// A session of a server ends with FATAL when a query string comes.
    pub shutdown: u64,
    /// A server works on a message for long.
    pub slow: u64,
    /// A client sends a unit in two parts with a pause between.
    pub halves: u64,
    /// A core's output waits for a later turn.
    pub lazy: u64,
    /// The server restarts, at a moment of the operator.
    pub restart: u64,
    /// A session of the server falls silent, at a moment of the operator.
    pub silence: u64,
    /// The operator gives a command, at a moment of the operator.
    pub command: u64,
}

impl Rates {
    /// Has most clients and servers live for long: those that share a server have to know its
    /// statements.
    pub(crate) fn spare_clients(self) -> Self {
        Self {
            client_reset: self.client_reset.min(1),
            server_reset: self.server_reset.min(1),
            shutdown: self.shutdown.min(1),
            abrupt: self.abrupt.min(3),
            ..self
        }
    }

    /// Has clients cancel most requests: nothing else makes a read fail whose reply might be kept.
    pub(crate) fn cancel_reads(self) -> Self {
        Self { cancel: self.cancel.max(800), ..self }
    }

    /// Draws the rates of a world.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut rate = |of_seeds: u64, most: u64| {
            if rng.chance(of_seeds) { rng.range(1, most) } else { 0 }
        };
        Self {
            client_reset: rate(200, 8),
            server_reset: rate(150, 5),
            abrupt: rate(300, 60),
            cancel: rate(300, 300),
            wrong_key: rate(300, 500),
            stall: rate(300, 60),
            refuse: rate(150, 300),
            login_failure: rate(100, 200),
            shutdown: rate(100, 20),
            slow: rate(400, 300),
            halves: rate(500, 400),
            lazy: rate(500, 500),
            restart: rate(80, 200),
            silence: 0,
            command: rate(200, 300),
        }
    }
}

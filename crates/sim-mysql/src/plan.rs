//! The plan of a world: the numbers, options, times and rates of faults that a seed decides.
//!
//! Most rates are zero in most seeds: with all faults at once a run never gets far enough to find a
//! bug that one fault alone would show.

use std::sync::Arc;

use refrain_config::{Options, PoolMode};
use refrain_sim::rng::Rng;

use crate::feature::FEATURES;
use crate::plant::Plant;

/// The rates of faults, per thousand chances.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// A connection to a client breaks when a piece arrives.
    pub client_reset: u64,
    /// A connection to a server breaks when a piece arrives.
    pub server_reset: u64,
    /// A client that acts leaves without QUIT.
    pub abrupt: u64,
    /// A reader pauses after a piece has arrived.
    pub stall: u64,
    /// A connection to a server is refused.
    pub refuse: u64,
    /// A server refuses a login.
    pub login_failure: u64,
    /// A server ends its session when a command comes.
    pub shutdown: u64,
    /// A server works on a command for long.
    pub slow: u64,
    /// A client sends in two parts with a pause between.
    pub halves: u64,
    /// A core's output waits for a later turn.
    pub lazy: u64,
    /// All servers restart, at a moment of the operator.
    pub restart: u64,
    /// The operator gives a command, at a moment of the operator.
    pub command: u64,
    /// A server leaves out numbers before a prepared statement.
    pub jump: u64,
    /// A client kills what another one of its user does, before it goes on.
    pub kill: u64,
}

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of engines.
    pub cores: u16,
    /// Number of clients at a time.
    pub slots: usize,
    /// Number of sessions in each slot, one after the other.
    pub sessions: usize,
    /// The most units of a session.
    pub units: u64,
    /// Number of users, each with a pool.
    pub users: usize,
    /// The options of the engines.
    pub options: Arc<Options>,
    /// The most servers of a pool.
    pub servers_max: u32,
    /// Number of queued bytes at which an engine stops reading.
    pub buffer_high: usize,
    /// The pools' mode.
    pub mode: PoolMode,
    /// Weights of features.
    pub weights: [u64; FEATURES.len()],
    /// Latency of a link, in microseconds: least and most.
    pub latency: (u64, u64),
    /// Latency between cores, in microseconds: least and most.
    pub between: (u64, u64),
    /// The largest piece, in bytes.
    pub piece: u64,
    /// The most bytes in a pipe.
    pub room: usize,
    /// The most bytes of a row.
    pub row: u64,
    /// The longest time that a client thinks, in microseconds.
    pub think: u64,
    /// The time at which faults stop, in microseconds.
    pub calm: u64,
    /// The rates of faults.
    pub rates: Rates,
    /// Whether the engines are drained near the end.
    pub drains: bool,
    /// The most commands that a client sends at once.
    pub pipelined: usize,
    /// Whether clients have different capabilities.
    pub varies: bool,
    /// The number of hostile clients at a time.
    pub hostile: usize,
}

/// Seconds that a login at a server may take (`server_connect_timeout`): two, since a login asks
/// the server one question more than its greeting answers.
pub(crate) const LOGIN_S: u64 = 2;

/// Time after the end of faults in which all clients must finish, in microseconds.
pub const PATIENCE: u64 = 60_000_000;

impl Plan {
    /// Draws a plan from a seed's stream. With `hostile`, there are ends that break the protocol.
    ///
    /// # Panics
    /// If the configuration that it writes is invalid.
    pub fn new(rng: &mut Rng, plant: Option<Plant>, hostile: bool) -> Self {
        use PoolMode::{Session, Transaction};
        let mode = *rng.pick(&[Transaction, Transaction, Transaction, Transaction, Session]);
        let pool_size = rng.range(1, 4);
        let buffer_high = *rng.pick(&[8_192, 16_384, 262_144]);
        let text = options(rng, mode, pool_size, buffer_high);
        let options = Options::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut rates = Rates::new(rng);
        if plant == Some(Plant::ForetoldNumber) {
            rates.jump = 300;
        }
        let piece = *rng.pick(&[6, 60, 1_000, 16_384, 16_384]);
        let slow_links = rng.chance(150);
        Self {
            cores: u16::try_from(rng.range(1, 3)).unwrap_or(1),
            slots: rng.index(7) + 1,
            sessions: rng.index(3) + 1,
            units: rng.range(3, 25),
            users: rng.index(2) + 1,
            options: Arc::new(options),
            servers_max: u32::try_from(pool_size).unwrap_or(1) + 1,
            buffer_high,
            mode,
            weights: weights(rng),
            latency: if slow_links { (100, 5_000) } else { (5, 200) },
            between: if rng.chance(200) { (100, 10_000) } else { (1, 100) },
            piece,
            room: *rng.pick(&[300, 4_096, 65_536, 1_000_000]),
            row: if piece < 100 { 30 } else { *rng.pick(&[30, 300, 3_000, 8_000]) },
            think: *rng.pick(&[10, 500, 5_000]),
            calm: rng.range(50_000, 3_000_000),
            rates,
            drains: rng.chance(100),
            pipelined: *rng.pick(&[1, 1, 3, 8]),
            varies: rng.chance(300),
            hostile: if hostile { rng.index(6) + 1 } else { 0 },
        }
    }
}

impl Rates {
    fn new(rng: &mut Rng) -> Self {
        let mut rate = |of_seeds: u64, most: u64| {
            if rng.chance(of_seeds) { rng.range(1, most) } else { 0 }
        };
        Self {
            client_reset: rate(200, 8),
            server_reset: rate(150, 5),
            abrupt: rate(300, 60),
            stall: rate(300, 60),
            refuse: rate(150, 300),
            login_failure: rate(100, 200),
            shutdown: rate(100, 20),
            slow: rate(400, 300),
            halves: rate(500, 400),
            lazy: rate(500, 500),
            restart: rate(80, 200),
            command: rate(200, 300),
            jump: rate(200, 300),
            kill: rate(150, 300),
        }
    }
}

fn weights(rng: &mut Rng) -> [u64; FEATURES.len()] {
    let mut weights = [0; FEATURES.len()];
    for weight in &mut weights {
        *weight = *rng.pick(&[0, 0, 1, 2, 8]);
    }
    weights[0] = weights[0].max(1);
    weights
}

fn options(rng: &mut Rng, mode: PoolMode, size: u64, high: usize) -> String {
    let mode = if mode == PoolMode::Session { "session" } else { "transaction" };
    let low = high / 4;
    let statements = *rng.pick(&[1, 2, 4, 256]);
    let min = u8::from(rng.chance(150));
    let reserve = u8::from(rng.chance(100));
    let lifetime = if rng.chance(100) { "1s" } else { "1h" };
    format!(
        "auth = \"trust\"\n[pool]\npool_mode = \"{mode}\"\npool_size = {size}\n\
         min_pool_size = {min}\nreserve_pool_size = {reserve}\nreserve_pool_timeout = \"200ms\"\n\
         server_idle_timeout = \"2s\"\nserver_login_retry = \"50ms\"\n\
         server_connect_timeout = \"{LOGIN_S}s\"\nserver_lifetime = \"{lifetime}\"\n\
         max_server_statements = {statements}\nbuffer_high = {high}\nbuffer_low = {low}\n\
         [databases.false]\nurl = \"mysql://127.0.0.1:2/\"\n\
         [databases.\"*\"]\nurl = \"mysql://127.0.0.1:1/\"\n"
    )
}

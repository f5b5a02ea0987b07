//! The plan of a world: the numbers, options, times and rates of faults that a seed decides.
//!
//! Most rates are zero in most seeds: with all faults at once a run never gets far enough to find a
//! bug that one fault alone would show ("swarm testing").

use std::sync::Arc;

use refrain_config::{Options, PoolMode, Unavailable};
use refrain_pg::CacheBug;

use crate::caching::Caching;
use crate::feature::{FEATURES, Feature, index};
use crate::logins::{LoginPlan, Rule};
use crate::plant::Plant;
use crate::rng::Rng;
use crate::versions::Staleness;

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
    /// The options of the engines before those of logins.
    pub plain: String,
    /// The plan of the logins, if clients have passwords.
    pub logins: Option<LoginPlan>,
    /// The most servers of a pool.
    pub servers_max: u32,
    /// Number of queued bytes at which the engine stops reading.
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
    /// The longest time that a client thinks, in microseconds.
    pub think: u64,
    /// The time at which faults stop, in microseconds.
    pub calm: u64,
    /// The rates of faults.
    pub rates: Rates,
    /// Whether clients have settings in their startup packets.
    pub startup_settings: bool,
    /// Whether the engines are drained near the end.
    pub drains: bool,
    /// Number of hosts: of two, the primary is wanted.
    pub hosts: usize,
    /// Whether the option `max_waiting` is set.
    pub max_waiting: bool,
    /// Whether clients share servers.
    pub shares: bool,
    /// The time that a client waits behind another one, in microseconds.
    pub patience: u64,
    /// The allowance of reads to miss acknowledged writes, if replies are kept.
    pub cached: Option<Staleness>,
    /// Time after which an idle server is asked whether it is there, in microseconds, if one is.
    pub check_delay: Option<u64>,
    /// Time after which a server is given up that has fallen silent at work, in microseconds.
    pub silence: u64,
    /// Number of different process IDs of servers. Behind the proxy may be another pooler, whose
    /// process IDs need not be unique.
    pub pids: u32,
}

/// Time after the end of faults in which all clients must finish, in microseconds.
pub const PATIENCE: u64 = 60_000_000;

/// Features that keep clients from sharing: settings of their own, servers that they keep, and DDL,
/// after which the engine asks about each statement again.
const ALONE: [Feature; 6] = [
    Feature::Reported,
    Feature::Unreported,
    Feature::Listens,
    Feature::Objects,
    Feature::Leaves,
    Feature::Definitions,
];

impl Plan {
    /// Draws a plan from a seed's stream.
    ///
    /// # Panics
    /// If the configuration that it writes is invalid.
    pub fn new(rng: &mut Rng, plant: Option<Plant>) -> Self {
        // A stream of its own, so that it changes no world with one host.
        let mut of_hosts = rng.clone().fork(78);
        // Likewise for worlds in which no server is asked whether it is there.
        let mut of_checks = rng.clone().fork(79);
        let plan = Self::with_one_host(rng, plant);
        let has_standby = plan.logins.is_none() && of_hosts.chance(250);
        let plan = if has_standby { plan.with_standby(&mut of_hosts) } else { plan };
        let checks = of_checks.chance(200);
        if checks { plan.with_checks(&mut of_checks, plant) } else { plan }
    }

    fn with_one_host(rng: &mut Rng, plant: Option<Plant>) -> Self {
        // A stream of its own, so that it changes no world without passwords.
        let mut of_logins = rng.clone().fork(77);
        let shares = rng.chance(250);
        // A bug of the cache shows where there is one.
        let due = matches!(plant, Some(Plant::Cache(_)));
        // A reply that is older than its stamp shows where none may be old.
        let strict = matches!(plant, Some(Plant::Cache(CacheBug::LateStamp | CacheBug::OldFlight)));
        let mode = mode(rng, shares || due);
        let pool_size = rng.range(1, if shares { 3 } else { 4 });
        let buffer_high = *rng.pick(&[8_192, 16_384, 262_144]);
        let max_waiting = rng.chance(100);
        // Those that share a server need a statement that it has: a server is to keep some.
        let statements = *rng.pick(if shares { &[4, 64, 64, 256] } else { &[1, 2, 4, 256] });
        let mut text = options(rng, mode, (pool_size, statements), buffer_high, max_waiting);
        let caching = (mode == PoolMode::Transaction && (rng.chance(300) || due))
            .then(|| Caching::new(rng, strict));
        text.extend(caching.iter().map(|caching| caching.rule.as_str()));
        let patience = *rng.pick(&[1, 5, 50]);
        if shares {
            let bounded = plant != Some(Plant::EndlessPatience);
            let patience = if bounded { patience } else { 60_000 };
            text = text.replacen("[pool]\n", &format!("[pool]\n{}", sharing(rng, patience)), 1);
        }
        let logins = logins(&mut of_logins, shares || caching.is_some());
        let options = options_of(&text, logins.as_ref(), &Rule::Asks(Rule::FIRST));
        let mut rates = if shares { Rates::new(rng).spare_clients() } else { Rates::new(rng) };
        if caching.is_some() && rng.chance(500) {
            rates = rates.cancel_reads();
        }
        let piece = largest_piece(rng, shares);
        let mut weights = weights(rng);
        if piece < 1_000 {
            weights[index(Feature::Bulk)] = 0;
        }
        let startup_settings = rng.chance(if shares { 100 } else { 300 });
        if shares {
            favour_reads(rng, &mut weights);
        }
        if caching.is_some() {
            weights[index(Feature::Rows)] = 4 * weights.iter().sum::<u64>();
        }
        let slow_links = rng.chance(150);
        let plan = Self {
            cores: cores(rng, shares),
            slots: if shares { rng.index(32) + 8 } else { rng.index(7) + 1 },
            sessions: rng.index(3) + 1,
            units: units(rng, shares, caching.is_some()),
            users: if shares { 1 } else { rng.index(2) + 1 },
            options,
            plain: text,
            logins,
            servers_max: u32::try_from(pool_size).unwrap_or(1) + 1,
            buffer_high,
            mode,
            weights,
            latency: if slow_links { (100, 5_000) } else { (5, 200) },
            between: if rng.chance(200) { (100, 10_000) } else { (1, 100) },
            piece,
            room: *rng.pick(&[300, 4_096, 65_536, 1_000_000]),
            think: *rng.pick(if shares { &[20, 200, 2_000] } else { &[10, 500, 5_000] }),
            calm: rng.range(if shares { 500_000 } else { 50_000 }, 3_000_000),
            rates,
            startup_settings,
            shares,
            patience: 1_000 * patience,
            cached: caching.map(|caching| caching.staleness),
            drains: rng.chance(100),
            pids: *rng.pick(&[1, 2, u32::MAX, u32::MAX]),
            max_waiting,
            hosts: 1,
            check_delay: None,
            silence: 0,
        };
        if plan.logins.is_some() { plan.with_many_logins(&mut of_logins) } else { plan }
    }

    /// Returns a plan with two hosts whose roles change.
    fn with_standby(self, rng: &mut Rng) -> Self {
        let plain = two_hosts(rng, &self.plain);
        let options = options_of(&plain, None, &Rule::Asks(Rule::FIRST));
        let rates = Rates { restart: rng.range(20, 200), ..self.rates };
        Self { hosts: 2, plain, options, rates, ..self }
    }

    /// Returns a plan in which idle servers are asked whether they are there, and some fall silent.
    fn with_checks(self, rng: &mut Rng, plant: Option<Plant>) -> Self {
        let delay = *rng.pick(&[1, 5, 50]);
        let told = if plant == Some(Plant::Unasked) { 60_000 } else { delay };
        let query = *rng.pick(&["", "server_check_query = \"select 1\"\n"]);
        let options = format!("[pool]\nserver_check_delay = \"{told}ms\"\n{query}");
        let plain = self.plain.replacen("[pool]\n", &options, 1);
        let options = options_of(&plain, self.logins.as_ref(), &Rule::Asks(Rule::FIRST));
        let silence = if rng.chance(700) { rng.range(20, 200) } else { 0 };
        Self {
            check_delay: Some(1_000 * delay),
            silence: rng.range(100_000, 1_000_000),
            plain,
            options,
            rates: Rates { silence, ..self.rates },
            ..self
        }
    }

    /// Returns a plan with many short sessions, one after the other.
    fn with_many_logins(self, rng: &mut Rng) -> Self {
        Self {
            slots: self.slots + 4,
            sessions: rng.index(16) + 4,
            units: self.units.min(rng.range(1, 12)),
            calm: self.calm + rng.range(500_000, 5_000_000),
            ..self
        }
    }

    /// Returns the options of the engines under a rule for users.
    pub(crate) fn options_under(&self, rule: &Rule) -> Arc<Options> {
        options_of(&self.plain, self.logins.as_ref(), rule)
    }

    /// Draws the time that a lookup takes, in microseconds.
    pub(crate) fn draw_delay_of_lookup(&self, rng: &mut Rng, is_calm: bool) -> u64 {
        let Some(logins) = &self.logins else { return 0 };
        let is_slow = !is_calm && rng.chance(logins.troubles[0]);
        if is_slow { rng.range(1_000, 3_000_000) } else { 0 }
    }

    /// Returns the databases and users of the pools that there may be.
    pub(crate) fn pools(&self) -> Vec<(String, String)> {
        let own = |database: &str, user: &str| (database.to_owned(), user.to_owned());
        let Some(logins) = &self.logins else {
            return (0..self.users).map(|user| own("d", &format!("u{user}"))).collect();
        };
        let users = [&logins.users()[..], &["asker"]].concat();
        let all = logins.all_databases();
        all.flat_map(|database| users.iter().map(move |user| own(database, user))).collect()
    }

    /// Returns the number of requests that may be sent to a server behind a read.
    pub(crate) fn room_behind_a_read(&self) -> u64 {
        let pool = self.options.pool("d", "u0");
        pool.map_or(0, |pool| u64::from(pool.options.share_depth) - 1)
    }

    /// Whether clients wait for a server while none can be reached.
    pub(crate) fn waits_for_servers(&self) -> bool {
        let pool = self.options.pool("d", "u0");
        pool.is_some_and(|pool| pool.options.server_unavailable == Unavailable::Wait)
    }
}

impl Rates {
    /// Has most clients and servers live for long: those that share a server have to know its
    /// statements.
    fn spare_clients(self) -> Self {
        Self {
            client_reset: self.client_reset.min(1),
            server_reset: self.server_reset.min(1),
            shutdown: self.shutdown.min(1),
            abrupt: self.abrupt.min(3),
            ..self
        }
    }

    /// Has clients cancel most requests: nothing else makes a read fail whose reply might be kept.
    fn cancel_reads(self) -> Self {
        Self { cancel: self.cancel.max(800), ..self }
    }

    fn new(rng: &mut Rng) -> Self {
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

/// Draws the plan of the logins, if clients have passwords. With `alone`, all clients are of one
/// database, and few worlds have passwords: what is to be learned of reads takes longer than
/// sessions last that log in often.
fn logins(rng: &mut Rng, alone: bool) -> Option<LoginPlan> {
    rng.chance(if alone { 30 } else { 400 }).then(|| LoginPlan::new(rng, alone))
}

/// Returns the options of the engines.
///
/// # Panics
/// If they are invalid.
fn options_of(plain: &str, logins: Option<&LoginPlan>, rule: &Rule) -> Arc<Options> {
    let text = logins.map_or_else(|| plain.to_owned(), |logins| logins.options(plain, rule));
    Arc::new(Options::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Returns options with two hosts, of which the primary is wanted.
fn two_hosts(rng: &mut Rng, text: &str) -> String {
    let wants = *rng.pick(&["primary", "read-write"]);
    let balance = *rng.pick(&["disable", "round-robin", "random"]);
    let hosts = format!(
        "host = \"a,b\"\ntarget_session_attrs = \"{wants}\"\nload_balance_hosts = \"{balance}\"\n"
    );
    text.replacen("host = \"server\"\n", &hosts, 1)
}

/// Draws the largest piece of a link, in bytes.
fn largest_piece(rng: &mut Rng, shares: bool) -> u64 {
    let pieces = [6, 60, 1_000, 16_384, 16_384];
    *rng.pick(if shares { &pieces[2..] } else { &pieces })
}

/// Draws the mode of the pools.
fn mode(rng: &mut Rng, pools_transactions: bool) -> PoolMode {
    use PoolMode::{Session, Statement, Transaction};
    let mode = *rng.pick(&[Transaction, Transaction, Transaction, Session, Statement]);
    if pools_transactions { Transaction } else { mode }
}

/// Draws the number of cores.
fn cores(rng: &mut Rng, shares: bool) -> u16 {
    if shares && rng.chance(600) { 1 } else { u16::try_from(rng.range(1, 3)).unwrap_or(1) }
}

/// Draws how many units a client has at most. What is to be learned of statements takes time.
fn units(rng: &mut Rng, shares: bool, caches: bool) -> u64 {
    match (shares, caches) {
        (true, _) => rng.range(60, 300),
        (false, true) => rng.range(20, 120),
        (false, false) => rng.range(3, 25),
    }
}

/// Returns the options of a pool in which clients share servers.
fn sharing(rng: &mut Rng, patience: u64) -> String {
    let depth = *rng.pick(&[2, 4, 16]);
    let least = *rng.pick(&[1, 1, 2]);
    format!(
        "share_servers = \"reads\"\nshare_depth = {depth}\nshare_min_servers = {least}\n\
         share_statement_time = \"{patience}ms\"\n"
    )
}

/// Has clients ask mostly for reads, or hardly anybody would share a server.
fn favour_reads(rng: &mut Rng, weights: &mut [u64; FEATURES.len()]) {
    weights[index(Feature::Reads)] = 20 * weights.iter().sum::<u64>();
    weights[index(Feature::Rows)] = weights[index(Feature::Reads)] / 2;
    if rng.chance(750) {
        ALONE.iter().for_each(|feature| weights[index(*feature)] = 0);
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

fn options(
    rng: &mut Rng,
    mode: PoolMode,
    (size, statements): (u64, u64),
    high: usize,
    waiting: bool,
) -> String {
    let mode_name = mode.word();
    let managed = mode != PoolMode::Session || rng.chance(500);
    let low = high / 4;
    let min = if rng.chance(150) { 1 } else { 0 };
    let reserve = if rng.chance(100) { 1 } else { 0 };
    let lifetime = if rng.chance(100) { "1s" } else { "1h" };
    let mut text = format!(
        "auth = \"trust\"\ncancel_timeout = \"500ms\"\n[pool]\npool_mode = \"{mode_name}\"\npool_size = {size}\n\
         min_pool_size = {min}\nreserve_pool_size = {reserve}\nreserve_pool_timeout = \"200ms\"\n\
         server_idle_timeout = \"2s\"\nserver_login_retry = \"50ms\"\nserver_connect_timeout = \"1s\"\n\
         server_lifetime = \"{lifetime}\"\nprepared_statements = {managed}\n\
         max_server_statements = {statements}\nbuffer_high = {high}\nbuffer_low = {low}\n"
    );
    if rng.chance(500) {
        let threshold = *rng.pick(&[1, 2, 5]);
        let limit = *rng.pick(&[1, 3, 200]);
        text.push_str(&format!(
            "autoprepare = \"on\"\nautoprepare_threshold = {threshold}\nautoprepare_limit = {limit}\n"
        ));
    }
    if waiting {
        text.push_str("max_waiting = 1\n");
    }
    if rng.chance(300) {
        text.push_str("server_unavailable = \"wait\"\n");
    }
    text.push_str("[databases.d]\nhost = \"server\"\n");
    text
}

//! The plan of a world: the numbers, options, times and rates of faults that a seed decides.

use std::sync::Arc;

use refrain_config::{Options, PoolMode, Unavailable};
use refrain_pg::CacheBug;

use crate::caching::Caching;
use crate::feature::{FEATURES, Feature, index};
use crate::lagging::StandbyReads;
use crate::logins::{LoginPlan, Rule};
use crate::plant::Plant;
use crate::rates::Rates;
use crate::rng::Rng;
use crate::versions::Staleness;

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
    /// How reads run on standbys, if they do.
    pub standbys: Option<StandbyReads>,
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

/// Time between two ticks of an engine.
const TICK: u64 = 100_000;
/// Time in which an engine learns what a server has answered.
const SLACK: u64 = 100_000;

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
        // Likewise for worlds whose reads run on the primary.
        let mut of_reads = rng.clone().fork(80);
        let plan = Self::with_one_host(rng, plant);
        let due = plant.is_some_and(Plant::is_of_standbys);
        let has_standby = plan.logins.is_none() && (of_hosts.chance(250) || due);
        let plan = if has_standby { plan.with_standby(&mut of_hosts) } else { plan };
        let reads_there = plan.hosts > 1 && plan.mode == PoolMode::Transaction;
        let reads_there = reads_there && (of_reads.chance(800) || due);
        let plan = if reads_there { plan.with_reads_there(&mut of_reads, plant) } else { plan };
        let checks = of_checks.chance(200);
        if checks { plan.with_checks(&mut of_checks, plant) } else { plan }
    }

    fn with_one_host(rng: &mut Rng, plant: Option<Plant>) -> Self {
        // A stream of its own, so that it changes no world without passwords.
        let mut of_logins = rng.clone().fork(77);
        let of_standbys = plant.is_some_and(Plant::is_of_standbys);
        let shares = rng.chance(250) && !of_standbys;
        let mode = mode(rng, shares || of_standbys || is_of_cache(plant));
        let pool_size = rng.range(1, if shares { 3 } else { 4 });
        let buffer_high = *rng.pick(&[8_192, 16_384, 262_144]);
        let max_waiting = rng.chance(100);
        // Those that share a server need a statement that it has: a server is to keep some.
        let statements = *rng.pick(if shares { &[4, 64, 64, 256] } else { &[1, 2, 4, 256] });
        let mut text = options(rng, mode, (pool_size, statements), buffer_high, max_waiting);
        let caching = caching(rng, mode, plant);
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
            standbys: None,
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
        let plan = Self { hosts: 2, plain, options, rates, ..self };
        if rng.chance(500) { plan.with_writers() } else { plan }
    }

    /// Returns a plan in which at least eight clients write and read rows most of the time.
    fn with_writers(self) -> Self {
        let mut weights = self.weights;
        weights[index(Feature::Rows)] = 4 * weights.iter().sum::<u64>();
        Self { weights, slots: self.slots.max(8), ..self }
    }

    /// Returns a plan whose reads run on standbys as well.
    fn with_reads_there(self, rng: &mut Rng, plant: Option<Plant>) -> Self {
        let standbys = StandbyReads::new(rng, self.cached.is_some());
        let hosts = rng.index(2) + 2;
        let names = if hosts > 2 { "a,b,c" } else { "a,b" };
        let options = format!("host = \"{names}\"\n{}", standbys.options());
        let plain = self.plain.replacen("host = \"a,b\"\n", &options, 1);
        let mut weights = self.weights;
        ALONE.iter().for_each(|feature| weights[index(*feature)] = 0);
        weights[index(Feature::Reads)] = weights.iter().sum::<u64>() / 2;
        weights[index(Feature::Rows)] = 4 * weights.iter().sum::<u64>();
        if plant == Some(Plant::BlindStandbys) {
            // Some of these texts are of no reads.
            weights[index(Feature::Reads)] = 4 * weights[index(Feature::Rows)];
        }
        let options = options_of(&plain, None, &Rule::Asks(Rule::FIRST));
        Self {
            standbys: Some(standbys),
            hosts,
            plain,
            options,
            weights,
            servers_max: 2 * self.servers_max,
            units: self.units.max(rng.range(40, 250)),
            slots: self.slots.max(4),
            think: *rng.pick(&[200, 2_000, 10_000]),
            calm: rng.range(500_000, 4_000_000),
            rates: Rates { restart: rng.range(2, 40), ..self.rates },
            ..self
        }
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

    /// Returns what reads may miss of what was acknowledged.
    pub(crate) fn staleness(&self) -> Staleness {
        let of_cache = self.cached.unwrap_or(Staleness::NONE);
        self.standbys.as_ref().map_or(of_cache, |standbys| standbys.staleness(self.cached))
    }

    /// Returns the number of requests that may be sent to a server behind a read.
    pub(crate) fn room_behind_a_read(&self) -> u64 {
        let pool = self.options.pool("d", "u0");
        pool.map_or(0, |pool| u64::from(pool.options.share_depth) - 1)
    }

    /// Returns the time after which nobody may wait any more behind a message that takes so long,
    /// if the message takes longer.
    pub(crate) fn patience_behind(&self, takes: u64) -> Option<u64> {
        let bound = self.patience + TICK + SLACK;
        (self.shares && takes > bound).then_some(bound)
    }

    /// Whether a pool has one server.
    pub(crate) fn has_one_server(&self) -> bool {
        self.options.pool("d", "u0").is_some_and(|pool| pool.options.pool_size == 1)
    }

    /// Whether clients wait for a server while none can be reached.
    pub(crate) fn waits_for_servers(&self) -> bool {
        let pool = self.options.pool("d", "u0");
        pool.is_some_and(|pool| pool.options.server_unavailable == Unavailable::Wait)
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

/// Whether a bug is one of the cache, which shows where there is one.
fn is_of_cache(plant: Option<Plant>) -> bool {
    matches!(plant, Some(Plant::Cache(_)))
}

/// Draws the rule of a world whose replies are kept, if they are.
fn caching(rng: &mut Rng, mode: PoolMode, plant: Option<Plant>) -> Option<Caching> {
    // A reply that is older than its stamp shows where none may be old.
    let strict = matches!(plant, Some(Plant::Cache(CacheBug::LateStamp | CacheBug::OldFlight)));
    let caches = mode == PoolMode::Transaction && (rng.chance(300) || is_of_cache(plant));
    caches.then(|| Caching::new(rng, strict))
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

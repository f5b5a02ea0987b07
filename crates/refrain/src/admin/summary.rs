//! `SHOW SUMMARY`: how it goes, on one screen.
//!
//! A row has a value for people to read, and what it means stands beside it in words. Programs read
//! the other listings or the metrics.

use refrain_pool::snapshot::ServerViewState;

use super::averages::Sums;
use super::table::{Listing, Pair, text};
use super::view::{Pool, View};

/// Most pools at their limit that are named.
const NAMED_MAX: usize = 3;

pub(super) const SUMMARY: Listing<Pair> = Listing {
    columns: &[text("subject", |row| row.name.clone()), text("state", |row| row.value.clone())],
    rows: |view| {
        let (pools, sums) = (view.pools(), view.sums());
        let (recent, us) = view.averages.recent(view.now, &sums);
        let rates = Rates { all: sums, recent, us };
        let now = [
            Pair::new("running", running(view)),
            Pair::new("clients", clients(view, &pools)),
            Pair::new("servers", servers(&pools)),
            Pair::new("pools", limits(&pools)),
        ];
        now.into_iter().chain(rates.rows()).collect()
    },
};

fn running(view: &View<'_>) -> String {
    let seconds = view.now.since(view.state.started) / 1_000_000;
    let word = |yes: bool, word: &'static str| if yes { word } else { "" };
    let (paused, draining) = (view.state.is_paused(), view.state.is_draining());
    format!("for {}{}{}", time(seconds), word(paused, "; paused"), word(draining, "; draining"))
}

/// Returns a time in its largest unit and the next.
fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn clients(view: &View<'_>, pools: &[Pool]) -> String {
    let (all, most) = (view.clients().count(), view.options.general.max_client_conn);
    let waiting: u32 = pools.iter().map(|pool| pool.sum.waiting).sum();
    let longest = pools.iter().map(|pool| pool.sum.max_wait_us).max().unwrap_or(0);
    let logging_in: u32 = view.snapshots.iter().map(|core| core.logging_in).sum();
    let waits = match waiting {
        0 => "none waits for a server".to_owned(),
        _ => format!("{waiting} wait for a server, the first for {}", ms(longest, 1)),
    };
    format!("{all} of at most {most}, {logging_in} at their login; {waits}")
}

fn servers(pools: &[Pool]) -> String {
    let count = |state| pools.iter().map(|pool| pool.servers(state)).sum::<u64>();
    let states = [
        (ServerViewState::Active, "work"),
        (ServerViewState::Idle, "idle"),
        (ServerViewState::Login, "at their login"),
        (ServerViewState::Resetting, "being reset"),
        (ServerViewState::Cancelling, "being canceled"),
    ];
    let counts = states.map(|(state, words)| (count(state), words));
    let all: u64 = counts.iter().map(|(count, _)| count).sum();
    // The first two are named in any case.
    let shown = counts.iter().enumerate().filter(|(at, (count, _))| *at < 2 || *count > 0);
    let parts: Vec<_> = shown.map(|(_, (count, words))| format!("{count} {words}")).collect();
    format!("{all}: {}", parts.join(", "))
}

fn limits(pools: &[Pool]) -> String {
    let full: Vec<&Pool> = pools.iter().filter(|pool| pool.is_at_limit()).collect();
    let name = |pool: &&&Pool| {
        let sum = &pool.sum;
        format!("{}/{} ({} servers, {} wait)", sum.database, sum.user, sum.size, sum.waiting)
    };
    let mut named: Vec<_> = full.iter().take(NAMED_MAX).map(|pool| name(&pool)).collect();
    if full.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    let paused = pools.iter().filter(|pool| pool.sum.paused).count();
    let paused = if paused == 0 { String::new() } else { format!("; {paused} paused") };
    let names = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    format!("{}, {} at their limit{names}{paused}", pools.len(), full.len())
}

/// The counts of the last one to two minutes, and those since the start.
struct Rates {
    all: Sums,
    recent: Sums,
    /// Microseconds of the recent counts.
    us: u64,
}

impl Rates {
    fn rows(&self) -> [Pair; 8] {
        let Self { all, recent, .. } = self;
        [
            Pair::new("measured over", time(self.us / 1_000_000)),
            Pair::new("queries", self.rate(recent.queries, all.queries)),
            Pair::new("transactions", self.rate(recent.xacts, all.xacts)),
            Pair::new("time", self.times()),
            Pair::new(
                "cache",
                self.share(
                    |sums| (sums.cache_hits, sums.cache_hits + sums.cache_misses),
                    "of the requests with a rule",
                ),
            ),
            Pair::new(
                "autoprepare",
                self.share(|sums| (sums.autoprepared, sums.queries), "of the queries"),
            ),
            Pair::new("sharing", self.share(|sums| (sums.shared, sums.queries), "of the queries")),
            Pair::new("errors", self.errors()),
        ]
    }

    fn rate(&self, recent: u64, all: u64) -> String {
        format!("{:.1}/s; {all} since the start", recent as f64 * 1e6 / self.us.max(1) as f64)
    }

    fn times(&self) -> String {
        let Sums { query_us, queries, wait_us, assignments, .. } = self.recent;
        let (query, wait) = (ms(query_us, queries), ms(wait_us, assignments));
        format!("{query} a query, {wait} of waiting for a server a transaction")
    }

    /// Returns the share of what the function counts, recently and since the start.
    fn share(&self, counts: fn(&Sums) -> (u64, u64), of: &str) -> String {
        let percent = |(part, whole): (u64, u64)| 100.0 * part as f64 / whole.max(1) as f64;
        if counts(&self.all).0 == 0 {
            return "none since the start".to_owned();
        }
        let (recent, all) = (percent(counts(&self.recent)), percent(counts(&self.all)));
        format!("{recent:.1} % {of}; {all:.1} % since the start")
    }

    fn errors(&self) -> String {
        let words = |sums: &Sums| {
            let Sums { server_errors, client_login_failures, server_login_failures, .. } = sums;
            format!(
                "{server_errors} of statements, {client_login_failures} logins of clients and \
                 {server_login_failures} of servers failed"
            )
        };
        format!("{}; {} since the start", words(&self.recent), words(&self.all))
    }
}

/// Returns the mean of a time in milliseconds.
fn ms(us: u64, count: u64) -> String {
    format!("{:.2} ms", us as f64 / 1000.0 / count.max(1) as f64)
}

//! The metrics, as Prometheus reads them (text format 0.0.4).
//!
//! Counters are the engine's, by database and user; gauges are counted from the same snapshots as the console's
//! listings. Times are histograms in seconds whose bounds are powers of two microseconds, so that any
//! quantile can be had of any sum of pools. ClientStatements are stable; the help texts say what is counted.
//!
//! The text is written here rather than by a metrics library: those keep numbers of their own, and
//! none of them can state a histogram that was counted elsewhere.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;

use refrain_pg::snapshot::{ClientViewState, PoolView, ServerViewState, Snapshot};
use refrain_pg::stats::{BUCKETS, Counters, Histogram};
use refrain_sqlite::CacheStats;

use crate::sqlite_host::CorePool;
use crate::state::State;
use crate::sum::{self, Key};

/// How long a scrape waits for the cores.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first and last bound of a histogram that are told: 2^6 and 2^26 µs. All below the first and above
/// the last are in its sums.
const BOUNDS: std::ops::RangeInclusive<usize> = 6..=BUCKETS - 2;

/// A number told of each pool: its name, what it means, and how it is found.
type Gauge = (&'static str, &'static str, fn(&PoolView) -> f64);
/// The same for times.
type Times = (&'static str, &'static str, fn(&Counters) -> &Histogram);

/// Everything there is to tell now.
pub(crate) fn text(state: &State) -> String {
    let snapshots = state.snapshots(PATIENCE);
    let mut text = Text::default();
    program(&mut text, state, &snapshots);
    logins(&mut text, state);
    pools(&mut text, &snapshots);
    statement_caches(&mut text, &state.files.pools());
    text.0
}

fn program(text: &mut Text, state: &State, snapshots: &[Snapshot]) {
    let uptime = state.clock.now().since(state.started);
    let logging_in: u32 = snapshots.iter().map(|core| core.logging_in).sum();
    let registry = &state.shared.registry;
    let version = [("version", env!("CARGO_PKG_VERSION")), ("driver", state.driver)];
    text.family("refrain_info", "gauge", "The program's version, and how it talks to the kernel.");
    text.sample("refrain_info", &version, 1);
    let gauges: [(&str, &str, u64); 8] = [
        ("uptime_seconds", "Seconds since the start.", uptime / 1_000_000),
        ("cores", "Threads that serve clients.", state.post.cores().len() as u64),
        ("cores_answering", "Those that answered this scrape.", snapshots.len() as u64),
        (
            "draining",
            "Whether clients are being sent away before the end.",
            state.is_draining().into(),
        ),
        ("max_clients", "Clients at most.", state.options().general.max_client_conn.into()),
        ("clients_logging_in", "Connections still at their login.", logging_in.into()),
        ("statements", "Prepared statements that are shared.", registry.entries() as u64),
        ("statement_bytes", "Bytes that they take.", registry.bytes() as u64),
    ];
    for (name, help, value) in gauges {
        let name = format!("refrain_{name}");
        text.family(&name, "gauge", help);
        text.sample(&name, &[], value);
    }
}

/// Connections that never became clients.
fn logins(text: &mut Text, state: &State) {
    let lobby = &state.shared.lobby;
    let counters = [
        ("logins_timed_out", "Connections that did not log in in time.", lobby.timed_out()),
        (
            "logins_crowded_out",
            "Connections that had not logged in and had to make way for later ones.",
            lobby.crowded_out(),
        ),
        (
            "connections_turned_away",
            "Connections closed at once for want of file descriptors.",
            lobby.turned_away(),
        ),
    ];
    for (name, help, value) in counters {
        let name = format!("refrain_{name}_total");
        text.family(&name, "counter", help);
        text.sample(&name, &[], value);
    }
}

fn pools(text: &mut Text, snapshots: &[Snapshot]) {
    let pools = sum::pools(snapshots);
    let gauges: [Gauge; 4] = [
        ("pool_size", "Servers of the pool at most.", |pool| pool.size.into()),
        ("pool_paused", "Whether the pool is paused.", |pool| u8::from(pool.paused).into()),
        ("clients_waiting", "Clients that wait for a server.", |pool| pool.waiting.into()),
        ("longest_wait_seconds", "How long the first of them has waited.", |pool| {
            seconds(pool.max_wait_us)
        }),
    ];
    for (name, help, value) in gauges {
        let name = format!("refrain_{name}");
        text.family(&name, "gauge", help);
        for (key, pool) in &pools {
            text.sample(&name, &labels(key), value(pool));
        }
    }
    counted(text, "refrain_clients", "Clients, by what they do.", clients(snapshots));
    counted(text, "refrain_servers", "Servers, by what they do.", servers(snapshots));
    let (counters, meanings) = (sum::counters(snapshots), Counters::meanings());
    for (at, ((counter, _), help)) in Counters::default().rows().zip(meanings).enumerate() {
        let name = format!("refrain_{counter}_total");
        text.family(&name, "counter", help);
        for (key, counters) in &counters {
            let value = counters.rows().nth(at).map_or(0, |(_, value)| value);
            text.sample(&name, &labels(key), value);
        }
    }
    let histograms: [Times; 3] = [
        ("transaction", "Time from lending a server to its return.", |counters| {
            &counters.xact_time
        }),
        ("query", "Time from a request to its ReadyForQuery.", |counters| &counters.query_time),
        ("wait", "Time clients waited for a server.", |counters| &counters.wait_time),
    ];
    for (name, help, histogram) in histograms {
        let name = format!("refrain_{name}_seconds");
        text.family(&name, "histogram", help);
        for (key, counters) in &counters {
            text.histogram(&name, &labels(key), histogram(counters));
        }
    }
}

/// A figure of the statement caches of SQLite's connections: its name, kind and meaning, and how it is found.
type CacheFigure = (&'static str, &'static str, &'static str, fn(&CacheStats) -> f64);

const CACHE_FIGURES: [CacheFigure; 9] = [
    ("entries", "gauge", "Statements kept and not in use.", |stats| stats.entries as f64),
    ("bytes", "gauge", "Memory of these.", |stats| stats.bytes as f64),
    ("hits_total", "counter", "Texts found compiled.", |stats| stats.hits as f64),
    ("misses_total", "counter", "Texts that were compiled.", |stats| stats.misses as f64),
    ("first_uses_total", "counter", "Of the misses, those of new texts.", |stats| {
        stats.first_uses as f64
    }),
    ("busy_misses_total", "counter", "Of the misses, those of texts just in use.", |stats| {
        stats.busy_misses as f64
    }),
    ("evictions_total", "counter", "Kept statements that made room.", |stats| {
        stats.evictions as f64
    }),
    ("reprepares_total", "counter", "Statements that SQLite compiled anew.", |stats| {
        stats.reprepares as f64
    }),
    ("saved_seconds_total", "counter", "Time that the hits did not spend in compiling.", |stats| {
        stats.saved_ns as f64 / 1e9
    }),
];

fn statement_caches(text: &mut Text, pools: &[CorePool]) {
    let mut files: BTreeMap<&str, CacheStats> = BTreeMap::new();
    let mut connections: BTreeMap<&str, usize> = BTreeMap::new();
    for CorePool { path, view, .. } in pools {
        let sum = files.entry(path).or_default();
        *sum += view.closed;
        view.connections.iter().for_each(|connection| *sum += connection.stats);
        *connections.entry(path).or_default() += view.connections.len();
    }
    if files.is_empty() {
        return;
    }
    text.family("refrain_sqlite_connections", "gauge", "Connections to the file.");
    for (path, count) in connections {
        text.sample("refrain_sqlite_connections", &[("path", path)], count);
    }
    for (name, kind, help, value) in CACHE_FIGURES {
        let name = format!("refrain_stmt_cache_{name}");
        text.family(&name, kind, help);
        for (path, stats) in &files {
            text.sample(&name, &[("path", path)], value(stats));
        }
    }
}

type Counts = BTreeMap<(Key, &'static str), u64>;

fn clients(snapshots: &[Snapshot]) -> Counts {
    let mut counts = Counts::new();
    for client in snapshots.iter().flat_map(|core| &core.clients) {
        let state = match client.state {
            ClientViewState::Active if client.server.is_none() => "idle",
            ClientViewState::Active => "active",
            ClientViewState::Waiting => "waiting",
            ClientViewState::Admin => "console",
        };
        let key = (Arc::clone(&client.database), Arc::clone(&client.user));
        *counts.entry((key, state)).or_default() += 1;
    }
    counts
}

fn servers(snapshots: &[Snapshot]) -> Counts {
    let mut counts = Counts::new();
    for server in snapshots.iter().flat_map(|core| &core.servers) {
        let state = match server.state {
            ServerViewState::Login => "login",
            ServerViewState::Idle => "idle",
            ServerViewState::Active => "active",
            ServerViewState::Resetting => "resetting",
            ServerViewState::Cancelling => "cancelling",
        };
        let key = (Arc::clone(&server.database), Arc::clone(&server.user));
        *counts.entry((key, state)).or_default() += 1;
    }
    counts
}

fn counted(text: &mut Text, name: &str, help: &str, counts: Counts) {
    text.family(name, "gauge", help);
    for (((database, user), state), count) in counts {
        text.sample(name, &[("database", &database), ("user", &user), ("state", state)], count);
    }
}

fn labels((database, user): &Key) -> [(&'static str, &str); 2] {
    [("database", database), ("user", user)]
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// Writing to a `String` does not fail.
const FITS: &str = "memory is there";

/// The text format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(FITS);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0 += name;
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            write!(self.0, "{label}=\"").expect(FITS);
            self.escape(text);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{end} {value}").expect(FITS);
    }

    /// What took less than the bound of a bucket is in it and in all after it.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str); 2], histogram: &Histogram) {
        let [database, user] = *labels;
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        for (power, count) in histogram.buckets.iter().enumerate() {
            sum += count;
            if BOUNDS.contains(&power) {
                let bound = seconds(1 << power).to_string();
                self.sample(&bucket, &[database, user, ("le", &bound)], sum);
            }
        }
        self.sample(&bucket, &[database, user, ("le", "+Inf")], sum);
        self.sample(&format!("{name}_sum"), labels, seconds(histogram.sum_us));
        self.sample(&format!("{name}_count"), labels, sum);
    }

    fn escape(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0 += r"\\",
                '"' => self.0 += "\\\"",
                '\n' => self.0 += r"\n",
                _ => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_their_labels() {
        let mut text = Text::default();
        text.sample("a", &[], 1);
        text.sample("b", &[("x", "1\"2\\3\n")], 2.5);
        assert_eq!(text.0, "a 1\nb{x=\"1\\\"2\\\\3\\n\"} 2.5\n");
    }

    #[test]
    fn buckets_add_up() {
        let mut histogram = Histogram::default();
        [10, 100, 1_000_000, u64::MAX >> 20].into_iter().for_each(|us| histogram.count(us));
        let mut text = Text::default();
        text.histogram("h", &[("database", "d"), ("user", "u")], &histogram);
        let value = |of: &str| {
            let line = text.0.lines().find(|line| line.contains(of)).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(value("le=\"0.000064\""), "1");
        assert_eq!(value("le=\"0.000128\""), "2");
        assert_eq!(value("le=\"1.048576\""), "3");
        assert_eq!(value("le=\"+Inf\""), "4");
        assert_eq!(value("h_count"), "4");
    }
}

//! The metrics, as Prometheus reads them: its text format 0.0.4, or OpenMetrics for callers who ask
//! for it.
//!
//! Counters come from the engines, by database (`metrics_by`), with their doc comments as help
//! texts.
//! Gauges come from the same snapshots as the console's listings. Times are histograms in seconds
//! with powers of two microseconds as bounds, so that a quantile can be computed for any sum of
//! pools.
//!
//! This module writes the text itself: metrics libraries keep numbers of their own, and cannot
//! state a histogram that was counted elsewhere.

mod text;
mod grouped;
mod statements;
mod streams;
#[cfg(feature = "sqlite")]
mod statement_caches;

use std::collections::BTreeMap;
use std::time::Duration;

use refrain_pg::stats::RuleCounters;
use refrain_pg::{CacheFigures, Counters, PoolView, Snapshot};
use refrain_pool::hosts::{Health, HostView};
use refrain_pool::lobby::Lobby;
use refrain_pool::snapshot::{ClientViewState, Extent, ServerViewState};
use refrain_pool::stats::{CounterSet, Histogram};

use self::grouped::Grouped;
use self::text::{Text, seconds};
use crate::http::Form;
use crate::pg::PgState;
use crate::state::State;
use crate::sum::Key;

/// Time that a scrape waits for the worker threads.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// A gauge of each pool: its name, its help text, and the function that reads it.
type Gauge = (&'static str, &'static str, fn(&PoolView) -> f64);
/// A histogram of each pool: its name, its help text, and the function that reads it.
type Times = (&'static str, &'static str, fn(&Counters) -> &Histogram);

/// Writes all metrics as they are now.
pub(crate) fn text(form: Form, state: &State, pg: &PgState) -> String {
    let snapshots = pg.snapshots(SNAPSHOT_TIMEOUT, Extent::CLIENTS);
    let mut text = Text::new(form.open);
    program(&mut text, state, pg, &snapshots);
    logins(&mut text, state, pg);
    let options = state.options();
    let grouped = Grouped { by: options.general.metrics_by, snapshots: &snapshots };
    pools(&mut text, &grouped);
    hosts(&mut text, state);
    cache_rules(&mut text, &grouped);
    cache_figures(&mut text, &pg.cores.shared.protocol.cache_figures());
    streams::write(&mut text, &pg.cores.shared.protocol.changes());
    let most = options.general.metrics_statements as usize;
    if most > 0 {
        statements::write(&mut text, pg.statements(SNAPSHOT_TIMEOUT), most);
    }
    #[cfg(feature = "sqlite")]
    statement_caches::write(&mut text, &pg.files.pools());
    text.end()
}

fn program(text: &mut Text, state: &State, pg: &PgState, snapshots: &[Snapshot]) {
    let uptime = state.clock.now().since(state.started);
    let logging_in: u32 = snapshots.iter().map(|core| core.logging_in).sum();
    let registry = &pg.cores.shared.protocol.registry;
    let version = [("version", env!("CARGO_PKG_VERSION")), ("driver", state.driver)];
    text.family(
        "refrain_info",
        "gauge",
        "Version of Refrain, and the kernel driver that it uses (uring or epoll).",
    );
    text.sample("refrain_info", &version, 1);
    let cache = pg.cores.shared.protocol.cache_stats();
    let gauges: [(&str, &str, u64); 10] = [
        ("cache_entries", "Replies in the result cache.", cache.entries),
        ("cache_bytes", "Memory used by the result cache, in bytes.", cache.bytes),
        ("uptime_seconds", "Seconds since Refrain started.", uptime / 1_000_000),
        ("cores", "Worker threads.", state.core_count() as u64),
        ("cores_answering", "Worker threads that answered this scrape.", snapshots.len() as u64),
        (
            "draining",
            "1 while Refrain shuts down and waits for clients to finish, else 0.",
            state.is_draining().into(),
        ),
        (
            "max_clients",
            "Maximum number of clients (max_client_conn).",
            state.options().general.max_client_conn.into(),
        ),
        (
            "clients_logging_in",
            "Client connections that have not logged in yet.",
            logging_in.into(),
        ),
        ("statements", "Prepared statements that clients share.", registry.entries() as u64),
        (
            "statement_bytes",
            "Memory used by shared prepared statements, in bytes.",
            registry.bytes() as u64,
        ),
    ];
    for (name, help, value) in gauges {
        let name = format!("refrain_{name}");
        text.family(&name, "gauge", help);
        text.sample(&name, &[], value);
    }
}

/// Writes the counters of connections that never logged in.
fn logins(text: &mut Text, state: &State, pg: &PgState) {
    let sum = |count: fn(&Lobby) -> u64| {
        state.cores.iter().map(|cores| count(cores.lobby())).sum::<u64>()
    };
    let lookups = pg.cores.shared.protocol.lookup_stats();
    text.family("refrain_auth_users", "gauge", "Users of whom an answer of auth_query is kept.");
    text.sample("refrain_auth_users", &[], lookups.users);
    let counters = [
        (
            "logins_timed_out",
            "Connections closed because they did not log in in time.",
            sum(Lobby::timed_out),
        ),
        (
            "logins_crowded_out",
            "Connections closed before they logged in, to make room for later ones.",
            sum(Lobby::crowded_out),
        ),
        (
            "connections_turned_away",
            "Connections closed at once because there were too few file descriptors.",
            sum(Lobby::turned_away),
        ),
        ("auth_queries", "Answers of auth_query.", lookups.queries),
        ("auth_query_failures", "Failures of auth_query.", lookups.failures),
        ("auth_hits", "Logins that found an answer of auth_query.", lookups.hits),
        (
            "auth_stale_hits",
            "Logins that found an old answer because the database gave none.",
            lookups.stale,
        ),
    ];
    for (name, help, value) in counters {
        let name = format!("refrain_{name}_total");
        text.family(&name, "counter", help);
        text.sample(&name, &[], value);
    }
}

fn pools(text: &mut Text, grouped: &Grouped<'_>) {
    let pools = grouped.pools();
    let gauges: [Gauge; 7] = [
        ("pool_size", "Maximum number of servers of the pool (pool_size).", |pool| {
            pool.size.into()
        }),
        ("pool_paused", "1 if the pool is paused, else 0.", |pool| u8::from(pool.paused).into()),
        ("clients_waiting", "Clients waiting for a server.", |pool| pool.waiting.into()),
        (
            "longest_wait_seconds",
            "Time that the longest waiting client has waited for a server, in seconds.",
            |pool| seconds(pool.max_wait_us),
        ),
        (
            "share_width",
            "Servers of the pool on which reads run before they share one (share_servers).",
            |pool| pool.share_width.into(),
        ),
        ("servers_shared", "Servers that several clients share now.", |pool| {
            pool.servers_shared.into()
        }),
        (
            "longest_line",
            "The most requests that are under way on one server of several clients.",
            |pool| pool.longest_line.into(),
        ),
    ];
    for (name, help, value) in gauges {
        let name = format!("refrain_{name}");
        text.family(&name, "gauge", help);
        for (key, pool) in &pools {
            text.sample(&name, &grouped.labels(key), value(pool));
        }
    }
    counted(text, grouped, ("refrain_clients", "Clients, by state."), clients(grouped));
    counted(text, grouped, ("refrain_servers", "Servers, by state."), servers(grouped));
    let (counters, meanings) = (grouped.counters(), Counters::meanings());
    for (at, ((counter, _), help)) in Counters::default().rows().zip(meanings).enumerate() {
        let name = format!("refrain_{counter}_total");
        text.family(&name, "counter", help);
        for (key, counters) in &counters {
            let value = counters.rows().nth(at).map_or(0, |(_, value)| value);
            text.sample(&name, &grouped.labels(key), value);
        }
    }
    let histograms: [Times; 4] = [
        (
            "transaction",
            "Time that clients held a server for a transaction, in seconds.",
            |counters| &counters.xact_time,
        ),
        ("query", "Time from a request to its ReadyForQuery, in seconds.", |counters| {
            &counters.query_time
        }),
        ("wait", "Time that clients waited for a server, in seconds.", |counters| {
            &counters.wait_time
        }),
        (
            "turn",
            "Time that requests waited on shared servers behind those of others, in seconds.",
            |counters| &counters.turn_time,
        ),
    ];
    for (name, help, histogram) in histograms {
        let name = format!("refrain_{name}_seconds");
        text.family(&name, "histogram", help);
        for (key, counters) in &counters {
            text.histogram(&name, &grouped.labels(key), histogram(counters));
        }
    }
}

/// A figure of a host: its name, type and help text, and the function that reads it.
type HostFigure = (&'static str, &'static str, &'static str, fn(&HostView) -> u64);

/// The label with the state that pools want of a host.
const WANTS: &str = "target_session_attrs";

const HOST_FIGURES: [HostFigure; 5] = [
    ("servers", "gauge", "Servers at the host, those being connected included.", |host| {
        host.servers.into()
    }),
    ("looks_total", "counter", "Looks at the host, while no host of its list was good.", |host| {
        host.looks
    }),
    ("logins_total", "counter", "Logins at the host that succeeded.", |host| host.logins),
    ("failures_total", "counter", "Attempts to connect or to log in that failed.", |host| {
        host.failures
    }),
    (
        "unsuited_total",
        "counter",
        "Servers that were not taken because of their state (target_session_attrs).",
        |host| host.unsuited,
    ),
];

/// Writes the figures of the hosts of databases that have several, or that want one of a certain
/// state. Lists that differ only in their order or in `load_balance_hosts` count together.
fn hosts(text: &mut Text, state: &State) {
    let mut hosts: BTreeMap<(String, &str), Vec<HostView>> = BTreeMap::new();
    for host in state.hosts() {
        hosts.entry((host.host.to_string(), host.wants.word())).or_default().push(host);
    }
    if hosts.is_empty() {
        return;
    }
    text.family("refrain_host_state", "gauge", "1 for the state that the host is in, else 0.");
    for ((host, wants), views) in &hosts {
        for state in Health::ALL {
            let is_in = views.iter().any(|view| view.health == state);
            let labels = [("host", &**host), (WANTS, *wants), ("state", state.word())];
            text.sample("refrain_host_state", &labels, u8::from(is_in));
        }
    }
    for (name, kind, help, value) in HOST_FIGURES {
        let name = format!("refrain_host_{name}");
        text.family(&name, kind, help);
        for ((host, wants), views) in &hosts {
            text.sample(
                &name,
                &[("host", host), (WANTS, wants)],
                views.iter().map(value).sum::<u64>(),
            );
        }
    }
}

/// Writes the counters of the rules of the cache.
fn cache_rules(text: &mut Text, grouped: &Grouped<'_>) {
    let rules = grouped.cache_rules();
    if rules.is_empty() {
        return;
    }
    let (counters, meanings) = (RuleCounters::default(), RuleCounters::meanings());
    for (at, ((counter, _), help)) in counters.rows().zip(meanings).enumerate() {
        let name = format!("refrain_cache_rule_{counter}_total");
        text.family(&name, "counter", help);
        for (key, row) in &rules {
            let value = row.counts.counters.rows().nth(at).map_or(0, |(_, value)| value);
            text.sample(&name, &of_rule(grouped, key), value);
        }
    }
    let (name, help) = (
        "refrain_cache_rule_hit_seconds",
        "Time that requests waited that were answered from the cache, in seconds.",
    );
    text.family(name, "histogram", help);
    for (key, row) in &rules {
        text.histogram(name, &of_rule(grouped, key), &row.counts.hit_time);
    }
}

fn of_rule<'k>(
    grouped: &Grouped<'_>,
    (key, rule): &'k (Key, String),
) -> Vec<(&'static str, &'k str)> {
    grouped.labels(key).into_iter().chain([("rule", &**rule)]).collect()
}

/// A figure of the replies of a rule: its name, type and help text, and the function that reads it.
type RuleFigure = (&'static str, &'static str, &'static str, fn(&CacheFigures) -> u64);

const RULE_FIGURES: [RuleFigure; 4] = [
    ("entries", "gauge", "Replies in the cache.", |figures| figures.entries),
    ("bytes", "gauge", "Memory used by replies in the cache, in bytes.", |figures| figures.bytes),
    ("evicted_total", "counter", "Replies that had to make room.", |figures| figures.evicted),
    ("outdated_total", "counter", "Replies that were asked for and were void.", |figures| {
        figures.outdated
    }),
];

/// Writes the figures of the replies of each rule, over all pools.
fn cache_figures(text: &mut Text, figures: &[(String, CacheFigures)]) {
    for (name, kind, help, value) in RULE_FIGURES.iter().filter(|_| !figures.is_empty()) {
        let name = format!("refrain_cache_replies_{name}");
        text.family(&name, kind, help);
        for (rule, figures) in figures {
            text.sample(&name, &[("rule", rule)], value(figures));
        }
    }
}

type Counts = BTreeMap<(Key, &'static str), u64>;

fn clients(grouped: &Grouped<'_>) -> Counts {
    let mut counts = Counts::new();
    for client in grouped.snapshots.iter().flat_map(|core| &core.clients) {
        let state = match client.state {
            ClientViewState::Active if client.server.is_none() => "idle",
            ClientViewState::Active => "active",
            ClientViewState::Waiting => "waiting",
            ClientViewState::Admin => "console",
        };
        let key = grouped.key(&client.database, &client.user);
        *counts.entry((key, state)).or_default() += 1;
    }
    counts
}

fn servers(grouped: &Grouped<'_>) -> Counts {
    let mut counts = Counts::new();
    for server in grouped.snapshots.iter().flat_map(|core| &core.servers) {
        let state = match server.state {
            ServerViewState::Login => "login",
            ServerViewState::Idle => "idle",
            ServerViewState::Active => "active",
            ServerViewState::Resetting => "resetting",
            ServerViewState::Cancelling => "cancelling",
        };
        let key = grouped.key(&server.database, &server.user);
        *counts.entry((key, state)).or_default() += 1;
    }
    counts
}

fn counted(text: &mut Text, grouped: &Grouped<'_>, (name, help): (&str, &str), counts: Counts) {
    text.family(name, "gauge", help);
    for ((key, state), count) in counts {
        let labels: Vec<_> = grouped.labels(&key).into_iter().chain([("state", state)]).collect();
        text.sample(name, &labels, count);
    }
}

#[cfg(test)]
mod tests {
    use refrain_config::MetricsBy;
    use refrain_pool::ids::Core;

    use super::*;
    use crate::sum::tests::{pool, snapshot};

    /// Returns the metrics of 1,000 pools of ten databases, at two cores.
    fn scrape(by: MetricsBy) -> String {
        let pools = || (0..1_000).map(|n| pool(&format!("database_{}", n % 10), &format!("u_{n}")));
        let core = |number| snapshot(Core(number), pools().collect());
        let mut text = Text::new(true);
        super::pools(&mut text, &Grouped { by, snapshots: &[core(0), core(1)] });
        text.end()
    }

    #[test]
    fn a_scrape_of_many_pools_is_short() {
        let text = scrape(MetricsBy::Database);
        assert!(text.len() <= 500_000, "{} bytes", text.len());
        let sample = |line: &str| assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        sample("refrain_queries_total{database=\"database_7\"} 200000000000");
        sample("refrain_query_seconds_count{database=\"database_7\"} 200");
        // A pool has one size, at however many cores it is.
        sample("refrain_pool_size{database=\"database_7\"} 2000");
        sample("refrain_clients_waiting{database=\"database_7\"} 200");
        sample("refrain_longest_wait_seconds{database=\"database_7\"} 123.456789");
        assert!(scrape(MetricsBy::Pool).len() > 3_000_000, "each pool alone takes more");
    }

    #[test]
    fn pools_are_told_apart_as_far_as_it_is_wanted() {
        let has = |by, line: &str| scrape(by).lines().any(|it| it == line);
        let of_one = "refrain_queries_total{database=\"database_7\",user=\"u_7\"} 2000000000";
        assert!(has(MetricsBy::Pool, of_one));
        assert!(has(MetricsBy::Total, "refrain_queries_total 2000000000000"));
    }
}

//! A dashboard for Grafana and alerts for Prometheus, written from the tables here.
//!
//! `cargo xtask docs` writes both files. A test scrapes a running program and looks for each metric
//! and label that they name (`crates/refrain/tests/it/watching.rs`).

use std::fmt::Write as _;

/// A row of the dashboard: its title and its panels.
type Row = (&'static str, &'static [Panel]);

/// One panel.
struct Panel {
    title: &'static str,
    /// A unit of Grafana's.
    unit: &'static str,
    /// Queries, each with the text of its legend. In them `@` stands for the labels that the reader
    /// has chosen, and `#` for those of metrics that belong to no database.
    queries: &'static [(&'static str, &'static str)],
}

/// The labels that the reader has chosen.
const CHOSEN: &str = "{job=~\"$job\",instance=~\"$instance\",database=~\"$database\"}";
/// The same without a database.
const CHOSEN_PROGRAM: &str = "{job=~\"$job\",instance=~\"$instance\"}";

const fn panel(
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, unit, queries }
}

/// The text that stands for Grafana's `[$__rate_interval]`, to keep the queries readable.
const PER_SECOND: &str = "[R]";

const ROWS: &[Row] = &[
    (
        "Is anybody waiting?",
        &[
            panel(
                "Clients waiting for a server",
                "short",
                &[(
                    "sum by (database, user) (refrain_clients_waiting@) > 0",
                    "{{database}} {{user}}",
                )],
            ),
            panel(
                "Longest wait",
                "s",
                &[(
                    "max by (database, user) (refrain_longest_wait_seconds@) > 0",
                    "{{database}} {{user}}",
                )],
            ),
            panel(
                "Wait for a server",
                "s",
                &[
                    (
                        "histogram_quantile(0.5, sum by (le) (rate(refrain_wait_seconds_bucket@[R])))",
                        "half",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (le) (rate(refrain_wait_seconds_bucket@[R])))",
                        "99 %",
                    ),
                ],
            ),
        ],
    ),
    (
        "Load",
        &[
            panel(
                "Transactions and queries",
                "ops",
                &[
                    ("sum(rate(refrain_xacts_total@[R]))", "transactions"),
                    ("sum(rate(refrain_queries_total@[R]))", "queries"),
                ],
            ),
            panel(
                "Time of a transaction",
                "s",
                &[
                    (
                        "histogram_quantile(0.5, sum by (le) \
                     (rate(refrain_transaction_seconds_bucket@[R])))",
                        "half",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (le) \
                     (rate(refrain_transaction_seconds_bucket@[R])))",
                        "99 %",
                    ),
                ],
            ),
            panel(
                "Time of a query",
                "s",
                &[
                    (
                        "histogram_quantile(0.5, sum by (le) (rate(refrain_query_seconds_bucket@[R])))",
                        "half",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (le) \
                     (rate(refrain_query_seconds_bucket@[R])))",
                        "99 %",
                    ),
                ],
            ),
            panel("Clients", "short", &[("sum by (state) (refrain_clients@)", "{{state}}")]),
            panel(
                "Servers",
                "short",
                &[
                    ("sum by (state) (refrain_servers@)", "{{state}}"),
                    ("sum(refrain_pool_size@)", "limit"),
                ],
            ),
            panel(
                "Bytes of clients",
                "Bps",
                &[
                    ("sum(rate(refrain_bytes_received_total@[R]))", "received"),
                    ("sum(rate(refrain_bytes_sent_total@[R]))", "sent"),
                ],
            ),
        ],
    ),
    (
        "What Refrain refrained from",
        &[
            panel(
                "Parses",
                "ops",
                &[
                    ("sum(rate(refrain_parses_answered_total@[R]))", "answered without a server"),
                    ("sum(rate(refrain_server_parses_total@[R]))", "sent to servers"),
                ],
            ),
            panel(
                "Prepared statements",
                "ops",
                &[
                    ("sum(rate(refrain_prepare_hits_total@[R]))", "the server had it"),
                    ("sum(rate(refrain_prepare_misses_total@[R]))", "prepared first"),
                    ("sum(rate(refrain_auto_hits_total@[R]))", "by autoprepare"),
                ],
            ),
            panel(
                "Requests on shared servers",
                "ops",
                &[("sum(rate(refrain_requests_shared_total@[R]))", "shared")],
            ),
            panel(
                "Reads and the cache",
                "ops",
                &[
                    ("sum(rate(refrain_cache_hits_total@[R]))", "from memory"),
                    ("sum(rate(refrain_cache_misses_total@[R]))", "not kept"),
                ],
            ),
            panel(
                "Servers' time saved by the cache",
                "percentunit",
                &[("sum(rate(refrain_cache_saved_us_total@[R])) / 1e6", "of a server")],
            ),
            panel(
                "Age of proofs (consistency = commits)",
                "s",
                &[(
                    "histogram_quantile(0.99, sum by (le, database) \
                     (rate(refrain_cache_changes_proof_age_seconds_bucket@[R])))",
                    "{{database}} 99 %",
                )],
            ),
            panel(
                "Commits in replication streams",
                "ops",
                &[(
                    "sum by (database) (rate(refrain_cache_changes_commits_total@[R]))",
                    "{{database}}",
                )],
            ),
            panel(
                "Memory",
                "bytes",
                &[
                    ("sum(refrain_statement_bytes#)", "statements"),
                    ("sum(refrain_cache_bytes#)", "cache"),
                ],
            ),
        ],
    ),
    (
        "Trouble",
        &[
            panel(
                "Failed logins",
                "ops",
                &[
                    ("sum(rate(refrain_client_login_failures_total@[R]))", "of clients"),
                    ("sum(rate(refrain_server_login_failures_total@[R]))", "to servers"),
                ],
            ),
            panel(
                "Errors of servers",
                "ops",
                &[("sum(rate(refrain_server_errors_total@[R]))", "errors")],
            ),
            panel(
                "Pins",
                "ops",
                &[(
                    "sum by (database, user) (rate(refrain_pins_total@[R]))",
                    "{{database}} {{user}}",
                )],
            ),
            panel(
                "Threads without an answer",
                "short",
                &[(
                    "sum by (instance) (refrain_cores# - refrain_cores_answering#)",
                    "{{instance}}",
                )],
            ),
        ],
    ),
];

/// An alert.
struct Alert {
    name: &'static str,
    holds: &'static str,
    /// How long it has to hold, in Prometheus' words.
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    what_to_do: &'static str,
}

const ALERTS: &[Alert] = &[
    Alert {
        name: "RefrainClientsWait",
        holds: "max by (job, instance, database, user) (refrain_longest_wait_seconds) > 5",
        lasts: "2m",
        severity: "warning",
        summary: "Clients of {{ $labels.database }} wait for a server.",
        what_to_do: "SHOW POOLS and SHOW PINS: long transactions, pinned clients, or a small pool_size.",
    },
    Alert {
        name: "RefrainClientsNearLimit",
        holds: "sum by (job, instance) (refrain_clients) \
                > on (job, instance) 0.8 * refrain_max_clients",
        lasts: "5m",
        severity: "warning",
        summary: "{{ $labels.instance }} has more than 80 % of max_client_conn.",
        what_to_do: "Raise max_client_conn and the limit of descriptors, or find who leaks connections.",
    },
    Alert {
        name: "RefrainServersFail",
        holds: "sum by (job, instance, database) \
                (rate(refrain_server_login_failures_total[5m])) > 0.1",
        lasts: "5m",
        severity: "critical",
        summary: "Connections to servers of {{ $labels.database }} fail.",
        what_to_do: "The log has the reason (server_down, server_login).",
    },
    Alert {
        name: "RefrainHostDown",
        holds: "refrain_host_state{state=\"down\"} == 1",
        lasts: "1m",
        severity: "warning",
        summary: "The host {{ $labels.host }} is down.",
        what_to_do: "SHOW HOSTS. Clients are served by other hosts, if one is suited.",
    },
    Alert {
        name: "RefrainLoginsFail",
        holds: "sum by (job, instance, database) \
                (rate(refrain_client_login_failures_total[5m])) > 1",
        lasts: "5m",
        severity: "warning",
        summary: "Logins of clients of {{ $labels.database }} fail.",
        what_to_do: "The log names users and addresses: a changed password, or somebody who guesses.",
    },
    Alert {
        name: "RefrainThreadSilent",
        holds: "refrain_cores - refrain_cores_answering > 0",
        lasts: "1m",
        severity: "critical",
        summary: "A thread of {{ $labels.instance }} does not answer.",
        what_to_do: "Its clients stand still. Keep the process for a look if you can, else restart it.",
    },
    Alert {
        name: "RefrainOutOfDescriptors",
        holds: "increase(refrain_connections_turned_away_total[5m]) > 0",
        lasts: "0m",
        severity: "critical",
        summary: "{{ $labels.instance }} has too few file descriptors.",
        what_to_do: "Raise LimitNOFILE of the unit.",
    },
    Alert {
        name: "RefrainProtocolBroken",
        holds: "increase(refrain_unexpected_messages_total[15m]) > 0 \
                or increase(refrain_lost_statements_total[15m]) > 0",
        lasts: "0m",
        severity: "warning",
        summary: "A server of {{ $labels.database }} and Refrain do not agree.",
        what_to_do: "The log has the message. It may be a bug of Refrain: report it.",
    },
    Alert {
        name: "RefrainChangesLost",
        holds: "refrain_cache_changes_live == 0",
        lasts: "2m",
        severity: "warning",
        summary: "The replication stream of {{ $labels.database }} is not live.",
        what_to_do: "SHOW CACHE CHANGES says why. Reads of its rules go to PostgreSQL meanwhile.",
    },
    Alert {
        name: "RefrainPaused",
        holds: "max by (job, instance, database) (refrain_pool_paused) == 1",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $labels.database }} is paused.",
        what_to_do: "RESUME on the console.",
    },
];

/// The first lines of the alerts.
const ALERTS_HEAD: &str = "\
# Alerts on Refrain's metrics, for Prometheus (rule_files). Written by `cargo xtask docs` from
# crates/xtask/src/watching.rs. Do not edit.
groups:
  - name: refrain
    rules:
";

/// Returns the file of the alerts.
pub fn alerts() -> String {
    let mut text = ALERTS_HEAD.to_owned();
    for alert in ALERTS {
        let Alert { name, holds, lasts, severity, summary, what_to_do } = alert;
        // A string of JSON is one of YAML.
        let _ = write!(
            text,
            "      - alert: {name}\n        expr: {holds:?}\n        for: {lasts}\n        \
             labels:\n          severity: {severity}\n        annotations:\n          \
             summary: {summary:?}\n          description: {what_to_do:?}\n"
        );
    }
    text
}

/// Columns of the dashboard's grid, and the size of a panel in it.
const COLUMNS: usize = 24;
const WIDTH: usize = 8;
const HEIGHT: usize = 8;

/// Returns the dashboard, as Grafana imports it.
pub fn dashboard() -> String {
    let mut panels = Vec::new();
    let mut top = 0;
    for (title, row) in ROWS {
        let id = panels.len() + 1;
        panels.push(format!(
            "{{\"id\": {id}, \"type\": \"row\", \"title\": {title:?}, \"collapsed\": false, \
             \"panels\": [], \"gridPos\": {}}}",
            place(0, top, COLUMNS, 1)
        ));
        top += 1;
        for (at, panel) in row.iter().enumerate() {
            let (column, line) = (at % (COLUMNS / WIDTH), at / (COLUMNS / WIDTH));
            let place = place(column * WIDTH, top + line * HEIGHT, WIDTH, HEIGHT);
            panels.push(drawn(panel, panels.len() + 1, &place));
        }
        top += row.len().div_ceil(COLUMNS / WIDTH) * HEIGHT;
    }
    format!(
        "{{\n  \"title\": \"Refrain\",\n  \"uid\": \"refrain\",\n  \"tags\": [\"refrain\"],\n  \
         \"editable\": true,\n  \"schemaVersion\": 39,\n  \"refresh\": \"30s\",\n  \
         \"time\": {{\"from\": \"now-1h\", \"to\": \"now\"}},\n  \
         \"templating\": {{\"list\": [\n    {}\n  ]}},\n  \"panels\": [\n    {}\n  ]\n}}\n",
        choices().join(",\n    "),
        panels.join(",\n    ")
    )
}

fn place(x: usize, y: usize, w: usize, h: usize) -> String {
    format!("{{\"x\": {x}, \"y\": {y}, \"w\": {w}, \"h\": {h}}}")
}

/// Returns what the reader chooses: the source, and values of labels.
fn choices() -> Vec<String> {
    let mut choices = vec![
        "{\"name\": \"source\", \"label\": \"Source\", \"type\": \"datasource\", \
         \"query\": \"prometheus\"}"
            .to_owned(),
    ];
    for (name, of) in [
        ("job", "refrain_info"),
        ("instance", "refrain_info{job=~\"$job\"}"),
        ("database", "refrain_pool_size{job=~\"$job\",instance=~\"$instance\"}"),
    ] {
        let query = format!("label_values({of}, {name})");
        choices.push(format!(
            "{{\"name\": {name:?}, \"type\": \"query\", \
             \"datasource\": {{\"type\": \"prometheus\", \"uid\": \"$source\"}}, \
             \"query\": {query:?}, \"refresh\": 2, \"multi\": true, \"includeAll\": true, \
             \"allValue\": \".*\", \"current\": {{\"text\": \"All\", \"value\": \"$__all\"}}}}"
        ));
    }
    choices
}

fn drawn(panel: &Panel, id: usize, place: &str) -> String {
    let Panel { title, unit, queries } = panel;
    let targets = queries.iter().enumerate().map(|(at, (query, legend))| {
        let query = query.replace('@', CHOSEN).replace('#', CHOSEN_PROGRAM);
        let query = query.replace(PER_SECOND, "[$__rate_interval]");
        let name = char::from(b'A' + at as u8).to_string();
        format!("{{\"refId\": {name:?}, \"expr\": {query:?}, \"legendFormat\": {legend:?}}}")
    });
    let targets = targets.collect::<Vec<_>>().join(", ");
    format!(
        "{{\"id\": {id}, \"type\": \"timeseries\", \"title\": {title:?}, \"gridPos\": {place}, \
         \"datasource\": {{\"type\": \"prometheus\", \"uid\": \"$source\"}}, \
         \"fieldConfig\": {{\"defaults\": {{\"unit\": {unit:?}, \"min\": 0}}, \
         \"overrides\": []}}, \"targets\": [{targets}]}}"
    )
}

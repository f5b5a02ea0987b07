//! Figures of statements: on the console, in the metrics and in the log.

use std::collections::BTreeMap;

use refrain_differ::msg::Msg;
use xtask::ports::free_port;

use crate::operation::metrics::get;
use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

const TEXT: &str = "select $1::int / $2::int, 'secret' as a from generate_series(1, 3)";

/// Runs a statement five times, of which the last one fails.
fn run(proxy: &Proxy, database: &str) {
    let mut session = proxy.open(database);
    session.ask(&[parse("s", TEXT), Msg::Sync]);
    for divisor in ["1", "1", "2", "5", "0"] {
        session.ask(&[bind("s", &["7", divisor]), execute(), Msg::Sync]);
    }
    session.run("select 1");
    session.leave();
}

/// Returns the row of the statement whose text has these words.
fn row(proxy: &Proxy, database: &str, words: &str) -> BTreeMap<String, String> {
    let rows = proxy.show_of("statements", database);
    let found = rows.iter().find(|row| row["text"].contains(words));
    found.unwrap_or_else(|| panic!("no {words} in {rows:?}")).clone()
}

fn figures(row: &BTreeMap<String, String>) -> [&str; 3] {
    ["calls", "rows", "errors"].map(|name| row[name].as_str())
}

fn is_counted(proxy: &Proxy, database: &str) {
    let row = row(proxy, database, "generate_series");
    assert_eq!(figures(&row), ["4", "12", "1"], "{row:?}");
    assert!(!row["text"].contains("secret"), "{row:?}");
    let us = |name: &str| row[name].parse::<u64>().unwrap();
    assert!(us("total_us") > 0 && us("mean_us") == us("total_us") / 4, "{row:?}");
    // A quantile lies within its bucket, so it may be a little more than the longest time.
    let most = us("total_us") + us("total_us") / 20 + 1;
    assert!(us("p50_us") <= us("p99_us") && us("p99_us") <= most, "{row:?}");
}

#[test]
fn the_console_shows_what_each_statement_took() {
    let database = database("statement_figures");
    let proxy = Config::over(cluster(Version::V15)).pool("autoprepare", "\"off\"").start();
    run(&proxy, database);
    is_counted(&proxy, database);
    assert_eq!(figures(&row(&proxy, database, "(not prepared)")), ["1", "1", "0"]);
}

#[test]
fn statements_of_sqlite_have_figures_too() {
    let proxy = Config::sqlite().start();
    let mut session = proxy.open("app");
    session.ask(&[parse("s", "select 'secret', $1::int"), Msg::Sync]);
    for _ in 0..3 {
        session.ask(&[bind("s", &["7"]), execute(), Msg::Sync]);
    }
    assert_eq!(figures(&row(&proxy, "app", "$1::int")), ["3", "3", "0"]);
}

#[test]
fn the_metrics_have_those_that_took_most_time() {
    let (database, port) = (database("statement_metrics"), free_port().unwrap());
    let config = Config::over(cluster(Version::V15));
    let address = format!("\"127.0.0.1:{port}\"");
    let proxy = config.clone().general("metrics_listen", &address).start();
    run(&proxy, database);
    let scrape = get(port, "/metrics");
    let sample = |name: &str| {
        let begin = format!("refrain_statement_{name}{{database=\"{database}\",");
        let line = scrape
            .lines()
            .find(|line| line.starts_with(&begin) && line.contains("generate_series"));
        line.unwrap_or_else(|| panic!("no {name} in {scrape}")).rsplit_once(' ').unwrap().1
    };
    assert_eq!((sample("calls_total"), sample("errors_total")), ("4", "1"));
    assert_eq!((sample("rows_total"), sample("seconds_count")), ("12", "4"));
    assert!(!scrape.contains("secret"), "{scrape}");
    proxy.reload(&config.general("metrics_statements", "0"));
    eventually("there are none", || !get(port, "/metrics").contains("refrain_statement_calls"));
}

#[test]
fn the_log_tells_of_commands_by_their_time() {
    let database = database("statement_log");
    let config = Config::over(cluster(Version::V15));
    let told = |proxy: &Proxy| {
        let log = proxy.log();
        let lines = log.lines().filter(|line| line.contains("cause=duration "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let sampled = config.clone().general("log_min_duration_sample", "\"0ms\"");
    let none = sampled.clone().general("log_statement_sample_rate", "\"0%\"").start();
    run(&none, database);
    let all = config.general("log_min_duration_statement", "\"0ms\"").start();
    run(&all, database);
    eventually("each is told", || told(&all).len() >= 5);
    let lines = told(&all);
    let of_statement = lines.iter().filter(|line| line.contains("generate_series"));
    assert_eq!(of_statement.count(), 4, "{lines:?}");
    assert!(lines[0].contains(" ms, statement ") && !lines[0].contains("secret"), "{lines:?}");
    assert_eq!(told(&none), Vec::<String>::new());
}

#[test]
fn the_log_has_a_line_of_statistics_each_period() {
    let config = Config::sqlite().general("stats_period", "\"1s\"");
    let proxy = config.clone().start();
    let quiet = config.general("log_stats", "false").start();
    let mut session: Session = proxy.open("app");
    eventually("statistics are told", || {
        session.run("select 1");
        let log = proxy.log();
        let mut lines = log.lines().filter(|line| line.contains("cause=stats"));
        lines.any(|line| line.contains(" stats: ") && !line.contains(" 0 queries/s"))
    });
    assert!(!quiet.log().contains("cause=stats"));
}

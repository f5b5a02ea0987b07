//! The dashboard and the alerts of `contrib` name metrics and labels that the program has.

use std::collections::BTreeSet;
use std::fs;

use xtask::ports::free_port;
use xtask::postgres::Cluster;
use xtask::workspace;

use crate::metrics::get;
use crate::world::{Config, Version, eventually};

#[test]
fn each_metric_of_the_dashboard_and_the_alerts_is_there() {
    let port = free_port().unwrap();
    let server = &Cluster::start(Version::V15, &[("wal_level", "logical")]).unwrap();
    server.psql("postgres", "create publication refrain").unwrap();
    let ports = format!("\"{0},{0}\"", server.port());
    let proxy = Config::over(server)
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .server("host", "\"127.0.0.1,localhost\"")
        .server("port", &ports)
        .more(&format!(
            "[databases.followed]\nhost = \"127.0.0.1\"\nport = {}\ndbname = \"postgres\"\n\
             changes = \"replication\"\nchanges_user = \"postgres\"\n\
             [[cache.rules]]\ndatabase = \"followed\"\nconsistency = \"commits\"\n",
            server.port()
        ))
        .start();
    let mut client = proxy.open("postgres");
    client.run("select 1");
    let live = "refrain_cache_changes_live{database=\"followed\"} 1";
    eventually("the stream is live", || get(port, "/metrics").contains(live));
    let scrape = get(port, "/metrics");
    let has = |name: &str| {
        scrape
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .any(|rest| rest.starts_with([' ', '{']))
    };
    assert!(has("refrain_host_state"), "{scrape}");
    for file in ["contrib/grafana/refrain.json", "contrib/prometheus/alerts.yml"] {
        let text = fs::read_to_string(workspace::root().join(file)).unwrap();
        let names = words_with(&text, "refrain_");
        assert!(names.len() >= 9, "{file}: {names:?}");
        for name in names {
            assert!(has(&name), "{file} names {name}");
        }
        // Within a string a quote has a backslash before it.
        for state in text.split("state=\\\"").skip(1).filter_map(|rest| rest.split('\\').next()) {
            assert!(scrape.contains(&format!("state=\"{state}\"")), "{file} names {state}");
        }
    }
}

/// Returns the words of a text that begin so.
fn words_with(text: &str, start: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with(start)).map(str::to_owned).collect()
}

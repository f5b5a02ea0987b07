//! Shared servers, as an operator sees them.

use refrain_differ::msg::Msg;

use crate::console::scrape;
use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Version, cluster, database, eventually};
use xtask::postgres::free_port;

#[test]
fn the_console_and_the_metrics_show_what_is_shared() {
    let database = database("sharing_shown");
    let port = free_port().unwrap();
    let proxy = Config::over(cluster(Version::V15))
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .pool("pool_size", "2")
        .pool("share_servers", "\"reads\"")
        .pool("share_min_servers", "1")
        .start();
    let mut clients: Vec<Session> = (0..8).map(|_| proxy.open(database)).collect();
    clients[0].run("create table t as select 1 as a");
    for client in &mut clients {
        client.ask(&[parse("s", "select a from t"), Msg::Sync]);
    }
    let row = || proxy.show_of("sharing", database).remove(0);
    eventually("reads share a server", || {
        for client in &mut clients {
            client.send(&[bind("s", &[]), execute(), Msg::Sync]);
        }
        for client in &mut clients {
            assert_eq!(client.ready().words(), "2 D(1) C(SELECT 1) Z(I)");
        }
        row()["shared"] != "0"
    });
    let row = row();
    assert_eq!((&*row["share_servers"], &*row["width"]), ("reads", "1"), "{row:?}");
    assert_eq!(row["servers_shared"], "0", "nothing is under way");
    let shared: u64 = row["shared"].parse().unwrap();
    let metrics = scrape(port);
    let value = |name: &str| {
        let labels = format!("refrain_{name}{{database=\"{database}\",user=\"postgres\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&labels));
        line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).parse::<u64>().unwrap()
    };
    assert_eq!(value("requests_shared_total"), shared);
    assert_eq!(value("share_width"), 1);
    assert_eq!(value("servers_shared"), 0);
    assert!(value("turn_seconds_count") > 0);
    clients.into_iter().for_each(Session::leave);
    eventually("the statement shows it too", || {
        let rows = proxy.show_of("statements", database);
        let row = rows.iter().find(|row| row["text"] == "select a from t").unwrap();
        row["shared"].parse::<u64>().unwrap() >= shared
    });
}

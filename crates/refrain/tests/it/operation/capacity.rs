//! The stub server and the load of `cargo xtask bench capacity` speak the protocol well enough.

use std::time::Duration;

use xtask::bench::capacity::{Load, Size, Stub, VALUE};
use xtask::bench::session::{Session, parse, run};
use xtask::proxy::Refrain;

/// Starts the proxy over a stub.
fn proxy(stub: &Stub, workers: u32, pool_size: u32) -> Refrain {
    let config = format!(
        "auth = \"trust\"\nworkers = {workers}\n[pool]\npool_size = {pool_size}\n\
         [databases.\"*\"]\nurl = \"postgres://postgres@127.0.0.1:{}\"\n",
        stub.port()
    );
    Refrain::start(&config).unwrap()
}

#[test]
fn a_client_gets_the_row_of_the_stub_by_each_protocol() {
    let stub = Stub::start(2).unwrap();
    let proxy = proxy(&stub, 1, 2);
    let mut session = Session::open(proxy.port(), "bench", Duration::from_secs(30)).unwrap();
    let row = vec![vec![VALUE.as_bytes().to_vec()]];
    let answer = session.query("select abalance from pgbench_accounts where aid = 1").unwrap();
    assert_eq!((answer.rows, answer.errors), (row.clone(), vec![]));
    session.send(&[parse("s", "select $1::int"), run("s", &["1"])].concat()).unwrap();
    let answer = session.answer().unwrap();
    assert_eq!((answer.rows, answer.errors), (row, vec![]));
    let answer = session.query("set work_mem = '1MB'").unwrap();
    assert_eq!((answer.tags, answer.errors), (vec!["SET".to_owned()], vec![]));
}

#[test]
fn more_clients_than_servers_are_answered_until_the_load_ends() {
    let stub = Stub::start(2).unwrap();
    let proxy = proxy(&stub, 2, 3);
    for depth in [1, 4] {
        let size = Size { threads: 2, clients: 16, depth };
        let load = Load::start(proxy.port(), size).unwrap();
        while load.answered() < 2000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        load.end().unwrap();
    }
    assert!(!proxy.log().contains("ERROR"), "{}", proxy.log());
}

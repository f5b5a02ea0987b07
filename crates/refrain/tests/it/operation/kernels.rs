//! The most important tests once more, with each kernel driver and on several cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refrain_differ::msg::Msg;

use crate::messages::bulk;
use crate::session::{Session, bind, cancel_request, execute, parse, query};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

fn core_of_it(driver: &str, workers: &str, database: &'static str) {
    let config = Config::over(cluster(Version::V15)).general("driver", &format!("{driver:?}"));
    let proxy = config.general("workers", workers).pool("pool_size", "2").start();
    bulk::copies(&proxy, database, 3);
    bulk::pipelines(&proxy, database, 500);
    at_once(&proxy, database);
    cancelled(&proxy, database);
    vanished(&proxy, database);
    assert_eq!(proxy.counter("lost_statements"), 0);
    assert_eq!(proxy.counter("unexpected_messages"), 0);
    assert!(proxy.show_of("servers", database).len() <= 2);
}

/// Clients on all cores, with more statements than servers, all at the same time.
fn at_once(proxy: &Proxy, database: &'static str) {
    thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                let mut session = proxy.open(database);
                session.run(&format!("set application_name = 'client {client}'"));
                let sql = format!("select $1::int + {client}, current_setting('application_name')");
                let mine = format!("s{client}");
                assert_eq!(session.ask(&[parse(&mine, &sql), Msg::Sync]).words(), "1 Z(I)");
                for round in 0..50 {
                    let msgs = [bind(&mine, &[&round.to_string()]), execute(), Msg::Sync];
                    let row = format!("D({},client {client})", round + client);
                    assert_eq!(session.ask(&msgs).words(), format!("2 {row} C(SELECT 1) Z(I)"));
                    let simple = session.value(&format!("select {client} * 1000 + {round}"));
                    assert_eq!(simple, (client * 1000 + round).to_string());
                }
                session.leave();
            });
        }
    });
}

fn cancelled(proxy: &Proxy, database: &'static str) {
    let mut sleeper = proxy.open(database);
    sleeper.send(&[query("select pg_sleep(600)")]);
    let sleeps = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' \
         and wait_event = 'PgSleep'"
    );
    let own = crate::world::addr(cluster(Version::V15));
    let mut direct = Session::open(own, "postgres");
    eventually("it sleeps", || direct.value(&sleeps) == "1");
    // Any core may accept the cancel request.
    Session::raw(proxy.addr(), &cancel_request(&sleeper.key)).rest();
    assert_eq!(sleeper.ready().words(), "T E(57014) Z(I)");
}

fn vanished(proxy: &Proxy, database: &'static str) {
    for _ in 0..6 {
        let mut session = proxy.open(database);
        session.send(&[query("begin"), parse("v", "select 1"), bind("v", &[]), execute()]);
        session.vanish();
    }
    for _ in 0..6 {
        let mut session = proxy.open(database);
        assert_eq!(session.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    }
}

#[test]
fn epoll_on_one_core() {
    core_of_it("epoll", "1", database("kernel_epoll_1"));
}

#[test]
fn epoll_on_two_cores() {
    core_of_it("epoll", "2", database("kernel_epoll_2"));
}

/// Clients that do not read are disconnected, and their sockets are closed while the clients
/// still exist.
fn deaf_clients_are_closed(driver: &str, database: &'static str) {
    let config = Config::over(cluster(Version::V15)).general("driver", &format!("{driver:?}"));
    let proxy = config.start();
    let mut deaf = proxy.open(database);
    deaf.send(&[query("select repeat('x', 1000) from generate_series(1, 100000)")]);
    assert_eq!(deaf.answer().map(|frame| frame.tag), Some(b'T'));
    let id = proxy.show_of("clients", database)[0]["id"].clone();
    proxy.order(&format!("kill_client {id}"));
    let port = deaf.second().local_addr().unwrap().port();
    eventually("its socket is closed", || !proxy.holds(port));
    assert_eq!(proxy.open(database).value("select 1"), "1");
    drop(deaf);
}

#[test]
fn epoll_and_clients_that_do_not_read() {
    deaf_clients_are_closed("epoll", database("kernel_epoll_deaf"));
}

#[test]
fn io_uring_and_clients_that_do_not_read() {
    if has_uring() {
        deaf_clients_are_closed("uring", database("kernel_uring_deaf"));
    } else {
        println!("this kernel has no io_uring for us");
    }
}

/// True if this kernel lets the program use io_uring.
fn has_uring() -> bool {
    let config = Config::over(cluster(Version::V15)).general("driver", "\"auto\"");
    config.start().show("refrain").iter().any(|row| row["value"].contains("uring"))
}

#[test]
fn io_uring_on_one_core() {
    if has_uring() {
        core_of_it("uring", "1", database("kernel_uring_1"));
    } else {
        println!("this kernel has no io_uring for us");
    }
}

#[test]
fn io_uring_on_two_cores() {
    if has_uring() {
        core_of_it("uring", "2", database("kernel_uring_2"));
    } else {
        println!("this kernel has no io_uring for us");
    }
}

#[test]
fn a_server_goes_to_the_core_whose_client_waits() {
    let database = database("kernel_handover");
    let config = Config::over(cluster(Version::V15)).general("workers", "2");
    let proxy = config.start();
    let mut clients: Vec<_> = (0..6).map(|_| proxy.open(database)).collect();
    let statement = [parse("s", "select 'shared'"), Msg::Sync];
    for client in &mut clients {
        assert_eq!(client.ask(&statement).words(), "1 Z(I)");
    }
    let mut pids = Vec::new();
    for _ in 0..3 {
        for client in &mut clients {
            let msgs = [bind("s", &[]), execute(), Msg::Sync];
            assert_eq!(client.ask(&msgs).words(), "2 D(shared) C(SELECT 1) Z(I)");
            pids.push(client.pid());
        }
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "one server for all");
}

/// The time within which clients of a core that has too much to do move. While other tests take the
/// processors, Refrain's threads get too little of them to count as busy: then this test waits
/// until the others are done.
const MOVED_WITHIN: Duration = Duration::from_secs(900);

/// Opens a session with a setting and a statement of its own.
fn mover(proxy: &Proxy, database: &'static str, client: usize) -> Session {
    let mut session = proxy.open(database);
    session.run(&format!("set application_name = 'mover {client}'"));
    let statement = parse("s", "select current_setting('application_name'), $1");
    assert_eq!(session.ask(&[statement, Msg::Sync]).words(), "1 Z(I)");
    session
}

/// Runs the session's statement until it is over.
fn runs_until(mut session: Session, client: usize, over: &AtomicBool) {
    for round in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let asks = [bind("s", &[&format!("{round}")]), execute(), Msg::Sync];
        let row = format!("2 D(mover {client},{round}) C(SELECT 1) Z(I)");
        assert_eq!(session.ask(&asks).words(), row);
    }
}

/// Clients of a busy core move to another one, in the middle of their sessions, and lose nothing.
fn clients_move(driver: &str, database: &'static str) {
    let config = Config::over(cluster(Version::V15)).general("driver", &format!("{driver:?}"));
    let config = config.general("workers", "2").general("worker_load", "3");
    let proxy = config.pool("pool_size", "4").start();
    let over = &AtomicBool::new(false);
    let sessions: Vec<_> = (0..8).map(|client| mover(&proxy, database, client)).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(client, session)| scope.spawn(move || runs_until(session, client, over)))
            .collect();
        let started = Instant::now();
        while proxy.counter("client_moves") == 0 && started.elapsed() < MOVED_WITHIN {
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_ne!(proxy.counter("client_moves"), 0);
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}

#[test]
fn epoll_and_clients_that_move() {
    clients_move("epoll", database("kernel_epoll_move"));
}

#[test]
fn io_uring_and_clients_that_move() {
    if has_uring() {
        clients_move("uring", database("kernel_uring_move"));
    } else {
        println!("this kernel has no io_uring for us");
    }
}

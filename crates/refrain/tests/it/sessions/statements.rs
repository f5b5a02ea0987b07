//! Prepared statements on several servers: names, counts, and the limits of each client (E10, E11,
//! E32, E47, E93, E96).

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use refrain_differ::msg::Msg;
use refrain_differ::reply::frame_end;
use xtask::channel::read_some;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Version, addr, cluster, database};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

fn uses(name: &str) -> [Msg; 3] {
    [bind(name, &[]), execute(), Msg::Sync]
}

#[test]
fn e10_names_on_servers_are_never_used_twice() {
    let database = database("names_once");
    let proxy = over_15().pool("max_server_statements", "3").start();
    let mut session = proxy.open(database);
    let mut seen = BTreeSet::new();
    for round in 0..30 {
        if round % 10 == 9 {
            proxy.order("reconnect");
        }
        let sql = format!("select {round}");
        session.ask(&[parse("s", &sql), Msg::Sync]);
        session.ask(&uses("s"));
        session.ask(&uses("s"));
        let names = format!("select name from pg_prepared_statements where statement = '{sql}'");
        let rows = session.query(&names);
        assert_eq!(rows.rows().len(), 1, "round {round}");
        let name = rows.value();
        assert!(seen.insert(name.clone()), "{name} is used again");
        session.ask(&[Msg::CloseStatement(b"s".to_vec()), Msg::Sync]);
    }
    // The next run of the program does not use a name again, on servers that outlive it (E11).
    let later = over_15().start();
    let mut next = later.open(database);
    next.ask(&[parse("s", "select 0"), Msg::Sync]);
    next.ask(&uses("s"));
    next.ask(&uses("s"));
    let name = next.value("select name from pg_prepared_statements where statement = 'select 0'");
    assert!(!seen.contains(&name), "{name} is used again");
}

#[test]
fn e11_one_program_behind_another() {
    let database = database("names_behind");
    let inner = over_15().pool("pool_size", "2").start();
    let port = inner.addr().port().to_string();
    let over_inner = || over_15().pool("pool_size", "3").server("port", &port);
    for _ in 0..2 {
        let outer = over_inner().start();
        let mut clients: Vec<_> = (0..4).map(|_| outer.open(database)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let msgs =
                [parse("s", &format!("select {number}")), parse("t", "select 't'"), Msg::Sync];
            assert_eq!(client.ask(&msgs).words(), "1 1 Z(I)");
        }
        for _ in 0..3 {
            for (number, client) in clients.iter_mut().enumerate() {
                let words = format!("2 D({number}) C(SELECT 1) Z(I)");
                assert_eq!(client.ask(&uses("s")).words(), words);
                assert_eq!(client.ask(&uses("t")).words(), "2 D(t) C(SELECT 1) Z(I)");
            }
        }
        assert_eq!(outer.counter("lost_statements"), 0);
    }
    assert_eq!(inner.counter("lost_statements"), 0);
}

/// Tags of the messages sent to servers, in order.
type Sent = Arc<Mutex<String>>;

/// Passes bytes on to PostgreSQL, and records the messages sent there. Returns its port.
fn overhears(sent: &Sent) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::clone(sent);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (to_proxy, sent) = (stream.unwrap(), Arc::clone(&sent));
            let to_server = TcpStream::connect(addr(cluster(Version::V15))).unwrap();
            let (from_server, back) = (to_server.try_clone(), to_proxy.try_clone());
            thread::spawn(move || pass(&to_proxy, &to_server, Some(&sent)));
            thread::spawn(move || pass(&from_server.unwrap(), &back.unwrap(), None));
        }
    });
    port
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, sent: Option<&Sent>) {
    let (mut chunk, mut buffer, mut started) = ([0; 65536], Vec::new(), false);
    while let Ok(count @ 1..) = read_some(&mut from, &mut chunk) {
        if let Some(sent) = sent {
            buffer.extend_from_slice(&chunk[..count]);
            if !std::mem::replace(&mut started, true) {
                buffer.drain(..u32::from_be_bytes(*buffer.first_chunk().unwrap()) as usize);
            }
            while let Some(end) = frame_end(&buffer).unwrap() {
                sent.lock().unwrap().push(char::from(buffer[0]));
                buffer.drain(..end);
            }
        }
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn e32_no_round_trip_and_no_sync_for_a_miss() {
    let said = overheard_misses("overheard", ["delete from t", "update t set a = 1"]);
    // One statement takes the other's place: nothing but Close and Parse goes in front.
    assert!(said.iter().all(|said| ["BES", "PBES", "CPBES"].contains(&said.as_str())), "{said:?}");
    assert!(said.iter().any(|said| said.contains('P')), "{said:?}");
}

/// The columns of a read that names them are looked at behind its Bind.
#[test]
fn e32_no_round_trip_for_a_miss_of_a_read() {
    let said = overheard_misses("overheard_reads", ["select a from t", "select a + 1 from t"]);
    assert!(said.iter().all(|said| ["BES", "CPDBES"].contains(&said.as_str())), "{said:?}");
    assert!(said.iter().any(|said| said.contains("PD")), "{said:?}");
}

/// The columns may have changed since the client's Parse. Nothing else that returns rows runs
/// before Refrain knows them (E67).
#[test]
fn e32_a_miss_of_what_returns_rows_waits_for_its_columns() {
    for (name, texts) in [
        ("overheard_stars", ["select * from t", "select t.* from t"]),
        ("overheard_writes", ["delete from t returning a", "update t set a = 1 returning a"]),
    ] {
        let said = overheard_misses(name, texts);
        let fits = |said: &String| ["BES", "PDHBES", "CPDHBES"].contains(&said.as_str());
        assert!(said.iter().all(fits), "{said:?}");
        assert!(said.iter().any(|said| said.contains("PD")), "{said:?}");
    }
}

/// Uses two texts by turns on a server that may have one statement. Returns the tags of the
/// messages sent for each.
fn overheard_misses(name: &'static str, [a, b]: [&str; 2]) -> Vec<String> {
    let database = database(name);
    Session::open(addr(cluster(Version::V15)), database).run("create table t (a int)");
    let sent = Sent::default();
    let port = overhears(&sent).to_string();
    let proxy = over_15().server("port", &port).server("sslmode", "\"disable\"");
    let proxy = proxy.pool("max_server_statements", "1").start();
    let mut session = proxy.open(database);
    session.ask(&[parse("a", a), parse("b", b), Msg::Sync]);
    for name in ["a", "b"].repeat(4) {
        session.ask(&uses(name));
    }
    let mut said = |name: &str| {
        sent.lock().unwrap().clear();
        assert!(session.ask(&uses(name)).error().is_none());
        sent.lock().unwrap().clone()
    };
    // Refrain looks up the functions that the texts may call, and whether they are reads. Each of
    // its own questions has a Sync; so has what takes a round trip of its own, each time.
    let is_alone = |said: &String| said.matches('S').count() == 1;
    let mut rounds = (0..100).map(|_| ["a", "b", "a", "b"].map(&mut said));
    rounds.find(|round| round.iter().all(is_alone)).expect("a round without questions").to_vec()
}

#[test]
fn e47_statements_dropped_behind_the_programs_back() {
    let database = database("hidden_deallocate");
    let proxy = over_15().start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for session in [&mut one, &mut two] {
        session.ask(&[parse("s", "select 's'"), Msg::Sync]);
        session.ask(&uses("s"));
        session.ask(&uses("s"));
    }
    one.run("do $$ begin execute 'deallocate all'; end $$");
    // One error may reveal the loss; later clients get none.
    let first = two.ask(&uses("s")).words();
    let good = "2 D(s) C(SELECT 1) Z(I)";
    assert!([good, "E(26000) Z(I)"].contains(&first.as_str()), "{first}");
    assert_eq!(two.ask(&uses("s")).words(), good);
    let mut three = proxy.open(database);
    three.ask(&[parse("s", "select 's'"), Msg::Sync]);
    assert_eq!(three.ask(&uses("s")).words(), good);
}

#[test]
fn e93_no_server_has_more_than_it_may() {
    let database = database("many_statements");
    let config = over_15().general("workers", "2").pool("pool_size", "3");
    let proxy = config.pool("max_server_statements", "5").start();
    thread::scope(|scope| {
        for client in 0..6 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut session = proxy.open(database);
                for round in 0..60 {
                    let number = (round * 7 + client) % 20;
                    let sql = format!("select {number}");
                    let name = format!("s{round}");
                    session.ask(&[parse(&name, &sql), Msg::Sync]);
                    assert_eq!(session.ask(&uses(&name)).value(), number.to_string());
                }
            });
        }
    });
    let servers = proxy.show_of("servers", database);
    for server in &servers {
        assert!(server["prepared_statements"].parse::<u32>().unwrap() <= 5, "{server:?}");
    }
    let mut session = proxy.open(database);
    let count: u32 = session.value("select count(*) from pg_prepared_statements").parse().unwrap();
    assert!(count <= 5, "{count}");
}

#[test]
fn e96_a_flood_of_texts_stops_nobody() {
    let database = database("flood");
    let proxy = over_15().pool("pool_size", "2").start();
    let mut flood = proxy.open(database);
    let mut bytes = Vec::new();
    for number in 0..200 {
        let sql = format!("select length('{}') + {number}", "x".repeat(200_000));
        bytes.extend_from_slice(&crate::session::encode(&[parse("", &sql), Msg::Sync]));
    }
    let mut writer = flood.second();
    let written = thread::spawn(move || writer.write_all(&bytes).unwrap());
    let mut other = proxy.open(database);
    for _ in 0..100 {
        assert_eq!(other.ask(&[query("select 1")]).words(), "T D(1) C(SELECT 1) Z(I)");
    }
    for _ in 0..200 {
        assert_eq!(flood.ready().words(), "1 Z(I)");
    }
    written.join().unwrap();
    let own = Session::open(addr(cluster(Version::V15)), database).value("select 1");
    assert_eq!(own, "1");
}

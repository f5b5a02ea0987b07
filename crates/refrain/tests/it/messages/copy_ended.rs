//! A server that an administrator ends amid a COPY: its client hears it at once, as it does from
//! PostgreSQL, whatever the client is about to send, and the pool gets another server.

use std::io::Write;
use std::thread;

use refrain_differ::msg::Msg;

use crate::cache::with_both_versions;
use crate::session::{LIMIT, Session, bind, encode, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    a_copy_from_the_client_ends_with_its_server,
    a_copy_to_the_client_ends_with_its_server,
}

/// The options of pools with which a COPY ends alike.
const POOLS: [&str; 2] = ["", "[[cache.rules]]\nttl = \"10min\"\n"];

/// Runs the program with a pool of one server.
fn pool_of_one(version: Version, rules: &str) -> Proxy {
    let config = Config::over(cluster(version)).pool("pool_size", "1");
    let autoprepare = if rules.is_empty() { "\"off\"" } else { "\"on\"" };
    config.pool("autoprepare", autoprepare).more(rules).start()
}

/// The ways to begin a COPY.
fn begins(text: &str) -> [Vec<Msg>; 4] {
    let extended = |last| vec![parse("", text), bind("", &[]), execute(), last];
    let named = vec![parse("s", text), bind("s", &[]), execute(), Msg::Sync];
    [vec![query(text)], extended(Msg::Sync), extended(Msg::Flush), named]
}

fn data() -> Msg {
    Msg::CopyData(vec![b'\n'; 8192])
}

/// The client's doings while its server ends.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It waits.
    Idle,
    /// It sends data without end.
    Sending,
    /// It ends the data once the server has gone, or is about to go.
    Ending(&'static [Msg]),
}

const STATES: [State; 4] = [
    State::Idle,
    State::Sending,
    State::Ending(&[Msg::CopyDone]),
    State::Ending(&[Msg::CopyDone, Msg::Sync]),
];

/// Ends the server that runs the COPY: the newest, since one that was ended before may still be
/// listed.
fn end_server(admin: &mut Session) {
    let ended = admin.value(
        "select count(pg_terminate_backend(pid)) from (
             select pid from pg_stat_activity where datname = current_database()
             and pid <> pg_backend_pid() and query like 'copy%'
             order by backend_start desc limit 1) newest",
    );
    assert_eq!(ended, "1");
}

/// Checks the client's last words, and that the pool works and has no server too many.
fn check(proxy: &Proxy, name: &str, client: &mut Session, what: &str) {
    let words = client.rest().words();
    assert!(words.ends_with("F(57P01)") || words.ends_with("E(57P01)"), "{what}: {words}");
    assert_eq!(proxy.open(name).value("select 1"), "1", "{what}");
    eventually("the pool has its one server, which is free", || {
        let servers = proxy.show_of("servers", name);
        servers.len() == 1 && servers[0]["state"] == "idle"
    });
}

fn a_copy_from_the_client_ends_with_its_server(version: Version) {
    let name = database_of(version, "copy_ended_from");
    let mut admin = Session::open(addr(cluster(version)), name);
    admin.run("create table t (a text)");
    for rules in POOLS {
        let proxy = pool_of_one(version, rules);
        for (way, begin) in begins("copy t from stdin").iter().enumerate() {
            for state in STATES {
                for block in [false, true] {
                    let mut client = proxy.open(name);
                    if block {
                        client.run("begin");
                    }
                    client.send(begin);
                    while client.frame().expect("a reply").tag != b'G' {}
                    client.send(&[data()]);
                    act(state, &mut client, &mut admin);
                    check(&proxy, name, &mut client, &format!("{way} {state:?} {block}"));
                }
            }
        }
    }
    assert_eq!(admin.value("select count(*) from t"), "0");
}

fn act(state: State, client: &mut Session, admin: &mut Session) {
    match state {
        State::Idle => end_server(admin),
        State::Sending => {
            let mut stream = client.second();
            stream.set_write_timeout(Some(LIMIT)).expect("a time limit");
            let bytes = encode(&[data()]);
            let sends = thread::spawn(move || {
                let mut sent = 0;
                loop {
                    match stream.write_all(&bytes) {
                        Ok(()) => sent += 1,
                        Err(error) => return (sent, error),
                    }
                }
            });
            thread::yield_now();
            end_server(admin);
            let (_, error) = sends.join().expect("the sending ends");
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "nobody reads the data");
        }
        State::Ending(end) => {
            end_server(admin);
            client.send(end);
        }
    }
}

fn a_copy_to_the_client_ends_with_its_server(version: Version) {
    let name = database_of(version, "copy_ended_to");
    let mut admin = Session::open(addr(cluster(version)), name);
    let text = "copy (select repeat('x', 8000) from generate_series(1, 100000)) to stdout";
    for rules in POOLS {
        let proxy = pool_of_one(version, rules);
        for (way, begin) in begins(text).iter().enumerate() {
            let mut client = proxy.open(name);
            client.send(begin);
            while client.frame().expect("a reply").tag != b'd' {}
            end_server(&mut admin);
            // PostgreSQL says nothing if it is ended while it waits to send (`DestNone` in
            // `ProcessClientWriteInterrupt`): then the client has half a message.
            let (last, is_cut) = client.last_frame();
            let last = last.expect("a reply");
            let is_told = last.tag == b'E' && last.field(b'C') == b"57P01";
            assert!(is_told || is_cut && last.tag == b'd', "{way}: {last:?}");
            assert_eq!(proxy.open(name).value("select 1"), "1", "{way}");
        }
    }
}

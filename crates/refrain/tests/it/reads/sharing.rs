//! Shared servers, as an operator sees them.

use std::time::Duration;

use refrain_differ::msg::Msg;
use xtask::ports::free_port;

use crate::operation::console::scrape;
use crate::session::{Session, bind, cancel_request, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, database_of, eventually};

const TEXT: &str = "select a from t where a = $1::int";

impl Config {
    /// Has reads share servers, of which there are so many.
    fn sharing(self, servers: u32) -> Self {
        self.pool("share_servers", "\"reads\"")
            .pool("share_min_servers", "1")
            .pool("share_statement_time", "\"1min\"")
            .pool("pool_size", &servers.to_string())
    }
}

/// Connects clients that have prepared a read.
fn readers(proxy: &Proxy, database: &str) -> Vec<Session> {
    let mut clients: Vec<Session> = (0..8).map(|_| proxy.open(database)).collect();
    clients[0].run("create table t as select generate_series(0, 7) as a");
    for client in &mut clients {
        client.ask(&[parse("s", TEXT), Msg::Sync]);
    }
    clients
}

/// Has all clients send their reads.
fn send(clients: &mut [Session]) {
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&[bind("s", &[&number.to_string()]), execute(), Msg::Sync]);
    }
}

/// Each client gets its own row.
fn receive(clients: &mut [Session]) {
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ready().words(), format!("2 D({number}) C(SELECT 1) Z(I)"));
    }
}

fn read(clients: &mut [Session]) {
    send(clients);
    receive(clients);
}

#[test]
fn reads_survive_the_end_of_their_servers() {
    let database = database("sharing_ends");
    let proxy = Config::over(cluster(Version::V15)).sharing(1).start();
    let mut clients = readers(&proxy, database);
    eventually("reads share a server", || {
        read(&mut clients);
        proxy.counter("requests_shared") > 0
    });
    let direct = || Session::open(addr(cluster(Version::V15)), database);
    let (mut owner, mut admin) = (direct(), direct());
    owner.run("begin; lock table t in access exclusive mode");
    send(&mut clients);
    let blocked =
        format!("from pg_stat_activity where datname = '{database}' and wait_event_type = 'Lock'");
    eventually("the server waits for the lock", || {
        admin.query(&format!("select count(*) {blocked}")).words() == "T D(1) C(SELECT 1) Z(I)"
    });
    let before = proxy.counter("requests_resent");
    admin.run(&format!("select pg_terminate_backend(pid) {blocked}"));
    eventually("the reads wait for another server", || proxy.counter("requests_resent") > before);
    owner.run("commit");
    receive(&mut clients);
}

/// While a read waits for a lock in front of those of others, some clients cancel theirs: the one
/// in front, one behind it, or both. Nobody else is cancelled, and each gets its own row.
#[test]
fn a_cancel_request_hits_its_clients_read_and_no_neighbours() {
    let database = database("sharing_cancelled");
    let proxy = Config::over(cluster(Version::V15)).sharing(2).start();
    let mut clients = readers(&proxy, database);
    eventually("reads share a server", || {
        read(&mut clients);
        proxy.counter("requests_shared") > 0
    });
    let direct = || Session::open(addr(cluster(Version::V15)), database);
    let (mut owner, mut admin) = (direct(), direct());
    let blocked = format!(
        "select count(*) > 0 from pg_stat_activity \
         where datname = '{database}' and wait_event_type = 'Lock'"
    );
    let (mut cancelled, before) = (0, proxy.counter("requests_shared"));
    for round in 0..40 {
        owner.run("begin; lock table t in access exclusive mode");
        send(&mut clients);
        eventually("a read waits for the lock", || admin.value(&blocked) == "t");
        // The first one is in front of the others.
        let victims = [0, 1 + round % 7];
        let victims = [&victims[..1], &victims[1..], &victims][round % 3];
        for victim in victims {
            let key = cancel_request(&clients[*victim].key);
            assert!(Session::raw(proxy.addr(), &key).rest().frames.is_empty());
        }
        // The server gets its request after the client has got the end of its own.
        std::thread::sleep(Duration::from_millis(10));
        owner.run("commit");
        for (number, client) in clients.iter_mut().enumerate() {
            let (words, row) = (client.ready().words(), format!("2 D({number}) C(SELECT 1) Z(I)"));
            let hit = victims.contains(&number) && words.ends_with("E(57014) Z(I)");
            assert!(hit || words == row, "round {round}, client {number}: {words}");
            cancelled += u32::from(hit);
        }
        read(&mut clients);
    }
    assert!(cancelled > 10, "{cancelled} reads were cancelled");
    assert!(proxy.counter("requests_shared") > before + 40, "reads shared servers");
}

#[test]
fn the_console_and_the_metrics_show_what_is_shared() {
    let database = database("sharing_shown");
    let port = free_port().unwrap();
    let proxy = Config::over(cluster(Version::V15))
        .general("metrics_listen", &format!("\"127.0.0.1:{port}\""))
        .general("metrics_by", "\"pool\"")
        .sharing(2)
        .start();
    let mut clients = readers(&proxy, database);
    let row = || proxy.show_of("sharing", database).remove(0);
    eventually("reads share a server", || {
        read(&mut clients);
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
        let row = rows.iter().find(|row| row["text"] == TEXT).unwrap();
        row["shared"].parse::<u64>().unwrap() >= shared
    });
}

/// A client in a transaction holds a lock that a shared read waits for, and goes on only when
/// another client has its answer, whose read is behind the one that waits. If that read could not
/// go elsewhere, the three would wait for ever.
#[test]
fn nobody_waits_in_a_circle_behind_a_read_that_waits_for_a_lock() {
    let database = database("sharing_locked");
    let config = Config::over(cluster(Version::V15)).sharing(3);
    let proxy = config.pool("share_statement_time", "\"200ms\"").start();
    let (mut locker, mut reader) = (proxy.open(database), proxy.open(database));
    let mut others: Vec<Session> = (0..4).map(|_| proxy.open(database)).collect();
    locker.run("create table locked as select 1 as a; create table t as select 2 as a");
    locker.run("begin");
    for client in others.iter_mut().chain([&mut reader]) {
        let texts = [parse("locked", "select a from locked"), parse("t", "select a from t")];
        client.ask(&[&texts[..], &[Msg::Sync]].concat());
    }
    let uses = |name: &str| [bind(name, &[]), execute(), Msg::Sync];
    let row = || proxy.show_of("sharing", database).remove(0);
    for name in ["locked", "t"] {
        let shared = row()["shared"].clone();
        eventually("reads share a server", || {
            others.iter_mut().for_each(|client| client.send(&uses(name)));
            others.iter_mut().for_each(|client| _ = client.ready());
            row()["shared"] != shared
        });
    }
    locker.run("lock table locked");
    let resent = row()["resent"].clone();
    reader.send(&uses("locked"));
    let mut behind = Session::open(addr(cluster(Version::V15)), database);
    eventually("the read waits for the lock", || {
        let waits = "select count(*) from pg_locks where not granted";
        behind.value(&format!("{waits} and relation = 'locked'::regclass")) == "1"
    });
    others.iter_mut().for_each(|client| client.send(&uses("t")));
    for client in &mut others {
        assert_eq!(client.ready().words(), "2 D(2) C(SELECT 1) Z(I)");
    }
    assert_ne!(row()["resent"], resent, "somebody was behind the read");
    locker.run("commit");
    assert_eq!(reader.ready().words(), "2 D(1) C(SELECT 1) Z(I)");
}

/// An act of a client that names no statement.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// It parses and runs a text.
    Unnamed(&'static str),
    /// It runs the text that it has parsed last.
    Again,
    /// It sends a query string.
    Simple(&'static str),
}

/// The texts of such clients; `%` stands for the client's number.
const ROW: &str = "select a, current_setting('TimeZone') from t where a = %";
const OTHER_ROW: &str = "select a + 100 from t where a = %";
const NO_ROW: &str = "select 1 / (a - a) from t where a = %";
const NO_TABLE: &str = "select a from nothing where a = %";
const WRITE: &str = "insert into written values (%)";
const DEEDS: &[Deed] = &[
    Deed::Unnamed(ROW),
    Deed::Again,
    Deed::Unnamed(OTHER_ROW),
    Deed::Simple(ROW),
    Deed::Again,
    Deed::Unnamed(NO_ROW),
    Deed::Unnamed(ROW),
    Deed::Unnamed(NO_TABLE),
    Deed::Again,
    Deed::Simple(OTHER_ROW),
    Deed::Unnamed(WRITE),
    Deed::Simple(NO_ROW),
    Deed::Unnamed(ROW),
    Deed::Simple(NO_TABLE),
];

/// A client that names nothing, and what it knows.
struct Nameless {
    session: Session,
    number: usize,
    zone: &'static str,
    parsed: Option<&'static str>,
}

impl Nameless {
    /// Sends what it does next. Returns the replies that it has to get.
    fn send(&mut self, deed: Deed) -> String {
        let value = &*self.number.to_string();
        let bound = [bind("", &[value]), execute(), Msg::Sync];
        let (first, text) = match deed {
            Deed::Simple(text) => {
                self.parsed = None;
                self.session.send(&[query(&text.replace('%', value))]);
                return self.outcome("T ", text);
            }
            Deed::Unnamed(text) => {
                let parsed = parse("", &text.replace('%', "$1::int"));
                self.session.send(&[&[parsed], &bound[..]].concat());
                self.parsed = Some(text).filter(|text| *text != NO_TABLE);
                ("1 2 ", text)
            }
            Deed::Again => {
                self.session.send(&bound);
                let Some(text) = self.parsed else { return "E(26000) Z(I)".to_owned() };
                ("2 ", text)
            }
        };
        self.outcome(first, text)
    }

    /// Returns the replies to a text behind those of its beginning.
    fn outcome(&self, first: &str, text: &str) -> String {
        let (number, zone) = (self.number, self.zone);
        let rest = match text {
            ROW => format!("D({number},{zone}) C(SELECT 1)"),
            OTHER_ROW => format!("D({}) C(SELECT 1)", number + 100),
            NO_ROW => "E(22012)".to_owned(),
            NO_TABLE => return "E(42P01) Z(I)".to_owned(),
            _ => "C(INSERT 0 1)".to_owned(),
        };
        format!("{first}{rest} Z(I)")
    }
}

#[test]
fn clients_that_name_nothing_share_servers_and_get_their_own_rows() {
    for version in [Version::V15, Version::V18] {
        let database = database_of(version, "sharing_nameless");
        let proxy = Config::over(cluster(version)).sharing(3).start();
        let mut owner = proxy.open(database);
        owner.run("create table t as select generate_series(0, 11) as a");
        owner.run("create table written (a int)");
        let open = |number: usize| {
            let mut session = proxy.open(database);
            let zone = ["Asia/Tokyo", "UTC"][usize::from(!number.is_multiple_of(4))];
            session.run(&format!("set timezone = '{zone}'"));
            Nameless { session, number, zone, parsed: None }
        };
        let mut clients: Vec<Nameless> = (0..12).map(open).collect();
        let (mut round, mut written) = (0, 0);
        let mut rounds = |deeds: &dyn Fn(usize, usize) -> Deed| {
            for _ in 0..DEEDS.len() {
                round += 1;
                let due = clients.iter_mut().map(|client| {
                    let deed = deeds(round, client.number);
                    written += usize::from(matches!(deed, Deed::Unnamed(WRITE)));
                    (deed, client.send(deed))
                });
                let due: Vec<_> = due.collect();
                for (client, (deed, due)) in clients.iter_mut().zip(due) {
                    let words = client.session.ready().words();
                    assert_eq!(words, due, "{version:?}, {round}, {}: {deed:?}", client.number);
                }
            }
        };
        let mixed = |round, number: usize| DEEDS[(round + number * 5) % DEEDS.len()];
        // Of a kind, they share a server, first with names for nothing and then without a Parse.
        for deed in [Deed::Unnamed(ROW), Deed::Simple(ROW)] {
            let before = proxy.counter("requests_shared");
            eventually("clients share servers", || {
                rounds(&|_, _| deed);
                rounds(&mixed);
                proxy.counter("requests_shared") > before + 50
            });
        }
        (0..20).for_each(|_| rounds(&mixed));
        assert_eq!(owner.value("select count(*) from written"), written.to_string());
    }
}

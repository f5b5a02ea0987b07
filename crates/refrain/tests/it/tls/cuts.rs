//! Connections that are cut after each byte of a conversation over TLS, on both sides of Refrain
//! and in both directions. Nothing is left behind, and no client takes half a reply for a whole
//! one.
//!
//! The suite cuts at every third byte, and within a large row at a few; the ways to end a
//! connection take turns. With `REFRAIN_CUTS=1` it cuts at every byte, which takes minutes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use refrain_config::ChannelBinding;
use refrain_differ::msg::Msg;
use refrain_differ::reply::{Frame, frame_end};
use refrain_pg::auth::{Login, Password, Reply, Salted, Secret, ServerAsks};
use refrain_pool::secured::Secured;
use xtask::postgres::{Cluster, PASSWORD};
use xtask::records::{self, TLS13};

use crate::relay::{Cut, Ending, Relay, Stream};
use crate::reply::{word, words};
use crate::session::{Session, bind, encode, execute, parse, query, startup};
use crate::tls::{files, to_both};
use crate::transport::{Sealing, Transport, Way};
use crate::world::{Config, Proxy, Version, eventually, psql};

/// Number of connections that are cut at the same time.
const LANES: usize = 4;
/// Length of the large row: it takes two records.
const ROW: usize = 20_000;
/// The large row is at least this far from both ends of a stream.
const NEAR: usize = 3000;
/// Every so many bytes are cut at, near the ends and between.
const STRIDES: (usize, usize) = (3, 97);
const ENDINGS: [Ending; 3] = [Ending::Close, Ending::Reset, Ending::Half];
const USER: &str = "scram_user";

/// Returns a server that lets `scram_user` in by password and TLS, with a table for COPY.
fn server() -> &'static Cluster {
    static V18: OnceLock<Cluster> = OnceLock::new();
    V18.get_or_init(|| {
        let hba = "hostssl all scram_user all scram-sha-256\nhost all postgres all trust\n";
        let authority = &files().authority;
        let cluster = Cluster::start_encrypting(Version::V18Tls, authority, hba, "").unwrap();
        let mut session = Session::open(crate::world::addr(&cluster), "postgres");
        session.run("create table sink (a int); grant all on sink to scram_user");
        cluster
    })
}

/// Configures Refrain over it, with this many servers, which lets `scram_user` in by this rule.
fn config(rule: &str, servers: usize) -> Config {
    let user = format!("[users.{USER}]\npassword = \"{PASSWORD}\"\n");
    let rules = format!("host refrain postgres 127.0.0.1/32 trust\n{rule}\n");
    to_both(server())
        .general("auth", "\"hba\"")
        .general("hba", &format!("'''\n{rules}'''"))
        .pool("pool_size", &servers.to_string())
        .pool("server_login_retry", "\"10ms\"")
        .server("user", &format!("{USER:?}"))
        .server("password", &format!("{PASSWORD:?}"))
        .more(&user)
}

/// A conversation as far as it came.
#[derive(Debug, Default)]
struct Held {
    /// All whole messages that the client got, but reports of settings.
    frames: Vec<Frame>,
    /// Whether a message ended within.
    is_torn: bool,
}

/// A client that holds the conversation as far as it gets.
struct Talker {
    transport: Transport,
    unread: Vec<u8>,
    /// All whole messages that it got, but reports of settings.
    frames: Vec<Frame>,
}

impl Talker {
    /// Logs in and holds the conversation. The end of the connection and an error end it.
    fn hold(addr: SocketAddr, way: &Way, database: &str, salted: &mut Option<Salted>) -> Held {
        let Ok(transport) = Transport::open(addr, way) else { return Held::default() };
        let mut talker = Self { transport, unread: Vec::new(), frames: Vec::new() };
        let _ = talker.converse(database, salted);
        Held { frames: talker.frames, is_torn: !talker.unread.is_empty() }
    }

    /// `None` once the conversation is cut.
    fn converse(&mut self, database: &str, salted: &mut Option<Salted>) -> Option<()> {
        let params = [("user", USER), ("database", database)];
        self.write(&startup(0x0003_0000, &params))?;
        self.log_in(salted)?;
        self.until_ready()?;
        self.ask(&[parse("s", "select $1::text, 7"), bind("s", &["one"]), execute(), Msg::Sync])?;
        self.ask(&[query("begin")])?;
        self.write(&encode(&[query("copy sink from stdin")]))?;
        while self.next()?.tag != b'G' {}
        self.ask(&[Msg::CopyData(b"1\n2\n".to_vec()), Msg::CopyDone])?;
        self.ask(&[query(&format!("select repeat('x', {ROW})"))])?;
        self.ask(&[query("commit")])?;
        self.write(b"X\0\0\0\x04")?;
        self.next().map(drop)
    }

    fn log_in(&mut self, salted: &mut Option<Salted>) -> Option<()> {
        let secret = Secret::Password(Password::new(PASSWORD).unwrap());
        let mut login = Login::new(USER, secret, &[7; _]);
        if self.transport.is_encrypted() {
            let (version, cipher) = ("", "".into());
            let secured = Secured { version, cipher, end_point: None, certificate: None };
            login = login.over(Some(&secured), ChannelBinding::Disable);
        }
        loop {
            let body = self.next().filter(|frame| frame.tag == b'R')?.body;
            let asks = match body[3] {
                0 => ServerAsks::Ok,
                10 => ServerAsks::Sasl { mechanisms: &body[4..] },
                11 => ServerAsks::SaslContinue(&body[4..]),
                12 => ServerAsks::SaslFinal(&body[4..]),
                other => panic!("what is {other}"),
            };
            login = match login.answer(asks, salted).expect("a right answer") {
                Reply::Send(answer, login) => {
                    let length = u32::try_from(answer.len() + 4).unwrap().to_be_bytes();
                    self.write(&[b"p", &length[..], &answer].concat())?;
                    login
                }
                Reply::Wait(login) => login,
                Reply::LoggedIn => return Some(()),
            };
        }
    }

    fn ask(&mut self, msgs: &[Msg]) -> Option<()> {
        self.write(&encode(msgs))?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> Option<()> {
        while self.next()?.tag != b'Z' {}
        Some(())
    }

    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        // What has come before a reset is read first.
        let _ = self.transport.write(bytes);
        Some(())
    }

    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = frame_end(&self.unread).unwrap() {
                let frame = Frame::new(self.unread[0], &self.unread[5..end]);
                self.unread.drain(..end);
                if frame.tag != b'S' {
                    self.frames.push(frame.clone());
                    return Some(frame).filter(|frame| frame.tag != b'E');
                }
            } else {
                match self.transport.read(&mut self.unread) {
                    Ok(0) => return None,
                    Err(error) if error.kind() == ErrorKind::Other => panic!("{error}"),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("it hangs"),
                    Err(_) => return None,
                    Ok(_) => {}
                }
            }
        }
    }
}

/// The outcome of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Whole,
    /// An error in place of the rest.
    Error,
    /// Nothing in place of the rest of a message, behind which no error could be told.
    Torn,
    /// Nothing in place of the rest.
    Ended,
}

/// Compares the replies with those of the whole conversation.
fn outcome(whole: &[Frame], held: &Held) -> Result<Outcome, String> {
    // They have a nonce, a key.
    let varies = |tag| matches!(tag, b'R' | b'K');
    let same =
        |(one, other): &(&Frame, &Frame)| one == other || one.tag == other.tag && varies(one.tag);
    let got = &held.frames;
    let agree = whole.iter().zip(got).take_while(same).count();
    match &got[agree..] {
        [] if agree == whole.len() => Ok(Outcome::Whole),
        [] if held.is_torn => Ok(Outcome::Torn),
        [] => Ok(Outcome::Ended),
        [error] if error.tag == b'E' && word(error).len() == "E(00000)".len() => Ok(Outcome::Error),
        rest => Err(format!("after {}: {}", words(&got[..agree]), words(rest))),
    }
}

/// Returns the bytes after which to cut a stream of `all` bytes, each with its way to end.
fn cuts(all: usize, stream: Stream) -> Vec<Cut> {
    let given = std::env::var("REFRAIN_CUTS").ok().and_then(|it| it.parse().ok());
    let (near, far) = given.map_or(STRIDES, |stride| (stride, stride));
    let is_near = |at: usize| at < NEAR || at + NEAR > all;
    // A signature is some bytes longer or shorter each time.
    let places = (0..all + 8).filter(|at| at % if is_near(*at) { near } else { far } == 0);
    let endings = ENDINGS.iter().cycle();
    places.zip(endings).map(|(at, ending)| Cut { stream, at, ending: *ending }).collect()
}

/// A place to cut connections at: a relay, and the door and the database that lead through it.
struct Lane {
    relay: Relay,
    door: SocketAddr,
    database: String,
}

type Outcomes = BTreeMap<Outcome, usize>;

/// Does something on all lanes at once.
fn on_all<T: Send>(lanes: &[Lane], act: impl Fn(&Lane) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| act(lane))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Cuts at all places, on all lanes at once, and adds to `outcomes` how the conversations ended.
fn cut_all(lanes: &[Lane], way: &Way, whole: &[Frame], cuts: &[Cut], outcomes: &mut Outcomes) {
    let next = AtomicUsize::new(0);
    let all = on_all(lanes, |lane| {
        let (mut salted, mut outcomes) = (None, Vec::new());
        while let Some(cut) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
            lane.relay.set(Some(*cut));
            let held = Talker::hold(lane.door, way, &lane.database, &mut salted);
            outcomes.push(outcome(whole, &held).unwrap_or_else(|why| panic!("{cut:?}: {why}")));
        }
        lane.relay.set(None);
        outcomes
    });
    all.concat().into_iter().for_each(|outcome| *outcomes.entry(outcome).or_default() += 1);
}

/// Holds the conversation on each lane, and returns the replies.
fn hold_whole(lanes: &[Lane], way: &Way) -> Vec<Frame> {
    let mut all = on_all(lanes, |lane| {
        let held = Talker::hold(lane.door, way, &lane.database, &mut None);
        assert!(words(&held.frames).ends_with("C(COMMIT) Z(I)"), "{}", words(&held.frames));
        held.frames
    });
    all.pop().unwrap()
}

/// Waits until PostgreSQL has no session that does something or is in a transaction, and Refrain
/// has no client, and no server that is not idle.
fn nothing_is_busy(proxy: &Proxy) {
    let url = server().url("postgres");
    let busy = "select count(*) from pg_stat_activity where usename = 'scram_user' \
                and state is distinct from 'idle'";
    eventually("no session is busy", || psql(&url, "", busy).as_deref() == Ok("0"));
    eventually("no server is lent", || {
        proxy.show("servers").iter().all(|row| row["state"] == "idle")
    });
    eventually("the console is the only client", || proxy.show("clients").len() == 1);
}

/// Cuts all lanes at all bytes in both directions, and checks that nothing is left.
fn cut_at_every_byte(proxy: &Proxy, lanes: &[Lane], way: &Way) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let whole = hold_whole(lanes, way);
    // Without servers, so that their number does not matter.
    let descriptors = || {
        lanes.iter().for_each(|lane| lane.relay.set(None));
        proxy.order("reconnect");
        eventually("all servers are closed", || proxy.show("servers").is_empty());
        proxy.descriptors()
    };
    let before = descriptors();
    for stream in [Stream::Forth, Stream::Back] {
        lanes[0].relay.set(None);
        lanes[0].relay.passed(stream);
        hold_whole(&lanes[..1], way);
        let bytes = lanes[0].relay.passed(stream);
        let cuts = cuts(bytes, stream);
        cut_all(lanes, way, &whole, &cuts, &mut outcomes);
        println!("{stream:?}: {bytes} bytes, {} cuts, so far {outcomes:?}", cuts.len());
    }
    let again = hold_whole(lanes, way);
    assert_eq!(words(&again), words(&whole));
    nothing_is_busy(proxy);
    eventually("all descriptors are closed", || descriptors() <= before);
    outcomes
}

#[test]
fn clients_that_are_cut_at_every_byte() {
    let proxy = config("hostssl all scram_user 127.0.0.1/32 scram-sha-256", LANES).start();
    let lane = |_| {
        let relay = Relay::cutting(proxy.addr());
        let door = relay.addr();
        Lane { relay, door, database: "postgres".to_owned() }
    };
    let lanes: Vec<Lane> = (0..LANES).map(lane).collect();
    let root = std::fs::read_to_string(files().path("root.crt")).unwrap();
    let way = Way::Tls(records::client(&root, &TLS13).unwrap(), Sealing::Whole);
    let outcomes = cut_at_every_byte(&proxy, &lanes, &way);
    assert!(outcomes[&Outcome::Ended] > 100, "{outcomes:?}");
}

#[test]
fn servers_that_are_cut_at_every_byte() {
    let relays: Vec<Relay> =
        (0..LANES).map(|_| Relay::cutting(crate::world::addr(server()))).collect();
    let database = |(number, relay): (usize, &Relay)| {
        format!(
            "[databases.lane{number}]\nhost = \"127.0.0.1\"\nport = {}\ndbname = \"postgres\"\n\
             user = {USER:?}\npassword = {PASSWORD:?}\nsslmode = \"verify-full\"\n\
             sslrootcert = {}\n",
            relay.addr().port(),
            files().toml("root.crt"),
        )
    };
    let databases: String = relays.iter().enumerate().map(database).collect();
    let proxy = config("host all scram_user 127.0.0.1/32 trust", 1).more(&databases).start();
    let lane =
        |(number, relay)| Lane { relay, door: proxy.addr(), database: format!("lane{number}") };
    let lanes: Vec<Lane> = relays.into_iter().enumerate().map(lane).collect();
    let outcomes = cut_at_every_byte(&proxy, &lanes, &Way::Clear);
    assert_eq!(outcomes.get(&Outcome::Ended), None, "a client was left without a word");
    assert!(outcomes[&Outcome::Error] > 100, "{outcomes:?}");
}

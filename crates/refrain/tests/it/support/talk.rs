//! Holds a conversation twice: with PostgreSQL directly, and through Refrain.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use refrain_differ::ledger::Ledger;
use refrain_differ::mask::{DIRECT, PROXIED, same};
use refrain_differ::msg::Msg;
use refrain_differ::reply::Frame;
use xtask::postgres::Cluster;

use crate::relay::Relay;
use crate::reply::{word, words};
use crate::script::{Side, Step, read};
use crate::session::{Session, encode};
use crate::transport::Way;
use crate::world::{Config, Proxy, addr};

type Params = BTreeMap<String, String>;

/// A client of a conversation: its two sessions, and the replies that PostgreSQL owes the direct
/// one.
struct Pair {
    direct: Session,
    proxied: Session,
    ledger: Ledger,
    /// The frames that came since it last sent.
    got: Vec<Frame>,
}

/// A frame of the direct session, the type of the message that it answers, and the settings
/// reported until then.
struct Expected {
    frame: Frame,
    answers: u8,
    params: Rc<Params>,
}

impl Pair {
    fn send(&mut self, msgs: &[Msg], side: Side) {
        let bytes = encode(msgs);
        self.got.clear();
        self.proxied.write(&bytes);
        if side == Side::Both {
            msgs.iter().for_each(|msg| self.ledger.sent(msg, 0));
            self.direct.write(&bytes);
        }
    }

    /// Compares the replies that are due.
    fn settle(&mut self) -> Result<(), String> {
        let expected = self.read_direct();
        let mut proxied: Vec<Frame> = Vec::new();
        let mut at = 0;
        while at < expected.len() {
            let frame = self.proxied.answer();
            let so_far = || words(&proxied);
            let due: Vec<Frame> = expected.iter().map(|reply| reply.frame.clone()).collect();
            let Some(frame) = frame else {
                return Err(format!("it ends after {}\n  due: {}", so_far(), words(&due)));
            };
            at += usize::from(fails_early(&frame, &due[at..]));
            let reply = &expected[at];
            if same(&reply.frame, &frame, reply.answers).is_none() {
                let (is, should) = (&frame, &reply.frame);
                let so_far = so_far();
                return Err(format!("after {so_far}\n  is:  {is}\n  due: {should}"));
            }
            if frame.tag == b'Z' && *reply.params != self.proxied.params {
                let (is, should) = (&self.proxied.params, &reply.params);
                return Err(format!("settings\n  is:  {is:?}\n  due: {should:?}"));
            }
            proxied.push(frame);
            at += 1;
        }
        self.got.extend(expected.into_iter().map(|reply| reply.frame));
        if self.ledger.dying() {
            let rest = self.proxied.rest();
            return rest.frames.is_empty().then_some(()).ok_or(format!("also {}", rest.words()));
        }
        Ok(())
    }

    fn read_direct(&mut self) -> Vec<Expected> {
        let mut expected = Vec::new();
        while self.ledger.awaits() {
            let frame = self.direct.frame().expect("PostgreSQL goes on");
            let answers = self.ledger.answering();
            self.ledger.received(&frame);
            if !matches!(frame.tag, b'S' | b'K' | b'v') {
                let params = Rc::clone(&self.ledger.params);
                expected.push(Expected { frame, answers, params });
            }
        }
        expected
    }

    fn expect(&mut self, side: Side, expected: &[String]) -> Result<(), String> {
        if side == Side::Both {
            self.settle()?;
        }
        while side == Side::Proxied && self.got.len() < expected.len() {
            let Some(frame) = self.proxied.answer() else {
                return Err(format!("it ends after {}", words(&self.got)));
            };
            self.got.push(frame);
        }
        let fits = |(frame, expected): (&Frame, &String)| {
            word(frame) == *expected || char::from(frame.tag).to_string() == *expected
        };
        if self.got.len() != expected.len() || !self.got.iter().zip(expected).all(fits) {
            let due = expected.join(" ");
            return Err(format!("\n  is:  {}\n  written: {due}", words(&self.got)));
        }
        Ok(())
    }
}

/// True if an error comes in place of `t` and the same error: a Parse that Refrain sent in front of
/// a Describe fails before PostgreSQL could begin to answer (E44).
fn fails_early(frame: &Frame, due: &[Frame]) -> bool {
    matches!(due, [first, second, ..] if first.tag == b't' && second.tag == b'E')
        && frame.tag == b'E'
}

/// PostgreSQL, Refrain over it, and the ways between them.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) cluster: &'static Cluster,
    pub(crate) config: Config,
    /// The way from clients to Refrain. It is in the clear from clients to PostgreSQL directly.
    pub(crate) way: Way,
    /// Whether each byte comes to Refrain by a write of its own, from clients and servers.
    pub(crate) is_split: bool,
}

impl Scene {
    /// Makes a scene in the clear.
    pub(crate) fn over(cluster: &'static Cluster) -> Self {
        Self { cluster, config: Config::over(cluster), way: Way::Clear, is_split: false }
    }

    /// Runs SQL directly in both databases.
    fn directly(&self, sql: &str) {
        for database in [PROXIED, DIRECT] {
            Session::open(addr(self.cluster), database).run(sql);
        }
    }

    /// Makes the two databases for conversations.
    pub(crate) fn prepare(&self) {
        let mut session = Session::open(addr(self.cluster), "postgres");
        for database in [PROXIED, DIRECT] {
            session.run(&format!("create database {database}"));
        }
    }
}

/// A conversation in progress.
struct Conversation<'a> {
    scene: &'a Scene,
    // Dropped before the program, which would wait for its clients.
    pairs: BTreeMap<String, Pair>,
    proxy: Proxy,
    /// The address at which clients reach Refrain.
    door: SocketAddr,
    /// Relays before Refrain and behind it, which end with the conversation.
    _relays: Vec<Relay>,
}

/// Holds a conversation. The error says where the replies differ.
pub(crate) fn hold(scene: &Scene, text: &str) -> Result<(), String> {
    let steps = read(text);
    let mut config = scene.config.clone();
    for (_, step) in &steps {
        if let Step::With(name, value) = step {
            config = config.pool(name, value);
        }
    }
    scene.directly("drop schema if exists public, s1, s2 cascade; create schema public");
    for (_, step) in &steps {
        if let Step::Setup(sql) = step {
            scene.directly(sql);
        }
    }
    let mut relays = Vec::new();
    if scene.is_split {
        let behind = Relay::byte_by_byte(addr(scene.cluster));
        config = config.server("port", &behind.addr().port().to_string());
        relays.push(behind);
    }
    let proxy = config.start();
    let mut door = proxy.addr();
    if scene.is_split {
        let before = Relay::byte_by_byte(door);
        door = before.addr();
        relays.push(before);
    }
    let pairs = BTreeMap::new();
    let mut talk = Conversation { scene, pairs, proxy, door, _relays: relays };
    for (line, step) in &steps {
        talk.step(step).map_err(|why| format!("line {line}: {why}"))?;
    }
    talk.end()
}

impl Conversation<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::With(..) | Step::Setup(_) => Ok(()),
            Step::Elsewhere(sql) => {
                self.scene.directly(sql);
                Ok(())
            }
            Step::Connect(client, params) => self.connect(client, params),
            Step::Send { client, side, msgs, settle } => {
                let pair = self.pair(client)?;
                pair.send(msgs, *side);
                if *settle { pair.settle() } else { Ok(()) }
            }
            Step::Expect { client, side, words } => self.pair(client)?.expect(*side, words),
            Step::End { client, politely } => {
                let pair = self.pairs.remove(client).ok_or("nobody of this name")?;
                for session in [pair.direct, pair.proxied] {
                    if *politely { session.leave() } else { session.vanish() }
                }
                Ok(())
            }
            Step::Check(name, how, value) => self.check(name, how, *value),
        }
    }

    fn pair(&mut self, client: &str) -> Result<&mut Pair, String> {
        if !self.pairs.contains_key(client) {
            self.connect(client, &[])?;
        }
        Ok(self.pairs.get_mut(client).unwrap())
    }

    fn connect(&mut self, client: &str, params: &[(String, String)]) -> Result<(), String> {
        let open = |side: &str, addr, way: &Way, database: &str| {
            let mut all = vec![("user", "postgres"), ("database", database)];
            all.extend(params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            let version_3_0 = 0x0003_0000;
            let name = format!("{client} {side}");
            Session::named(name, addr, way, &crate::session::startup(version_3_0, &all))
        };
        let direct = open("directly", addr(self.scene.cluster), &Way::Clear, DIRECT);
        let proxied = open("by Refrain", self.door, &self.scene.way, PROXIED);
        let mut ledger = Ledger::default();
        ledger.sent(&Msg::Sync, 0);
        let mut pair = Pair { direct, proxied, ledger, got: Vec::new() };
        pair.settle()?;
        self.pairs.insert(client.to_owned(), pair);
        Ok(())
    }

    fn check(&self, name: &str, how: &str, value: u64) -> Result<(), String> {
        let is = self.proxy.counter(name);
        let holds = match how {
            "=" => is == value,
            ">=" => is >= value,
            "<=" => is <= value,
            other => return Err(format!("what is {other}")),
        };
        if holds { Ok(()) } else { Err(format!("{name} is {is}")) }
    }

    /// Ends the conversation: no reply is left over, and the pool still serves clients.
    fn end(mut self) -> Result<(), String> {
        for (name, mut pair) in std::mem::take(&mut self.pairs) {
            if pair.ledger.settled() && !pair.ledger.dying() {
                pair.proxied.write(b"X\0\0\0\x04");
                let rest = pair.proxied.rest();
                if !rest.frames.is_empty() {
                    return Err(format!("at the end {name} is also told {}", rest.words()));
                }
            }
        }
        self.check("lost_statements", "=", 0)?;
        self.check("unexpected_messages", "=", 0)?;
        let mut next = self.proxy.open(PROXIED);
        let reply = next.query("select 1").words();
        if reply == "T D(1) C(SELECT 1) Z(I)" { Ok(()) } else { Err(format!("after: {reply}")) }
    }
}

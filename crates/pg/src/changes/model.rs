//! A model of a server with a stream, its transactions and what is kept: random runs of the state
//! machine, in each of which no reply may be older than is promised.
//!
//! A commit has three moments: it is flushed, which puts it into the stream; it is visible; and it
//! is acknowledged. The stream and the answers come late. Transactions are open for a while, come
//! in parts, and roll back. A table is published and withdrawn, another one gets partitions, and
//! connections are lost.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use refrain_cache::{Bug, TopicSet};
use refrain_config::Options;
use refrain_pool::Now;
use refrain_pool::seed::seed;

use crate::changes::follower::Follower;
use crate::changes::questions::{RowBody, StreamQuestion, tests::row};
use crate::changes::stream::{Stream, Subscription};
use crate::ground::ids::{DatabaseIdentity, ServerOrigin};
use crate::ground::schema::Schema;
use crate::results::places::{Place, Places, topic_of};
use crate::results::store::ResultStore;
use crate::results::topics::DatabaseTopics;

const IDENTITY: DatabaseIdentity = DatabaseIdentity { cluster: 7, database: 5 };
const ORIGIN: ServerOrigin = ServerOrigin { cluster: 7, started: 1000 };
/// The tables. The second one is published and withdrawn, the third one is partitioned.
const TABLES: [u32; 3] = [100, 101, ROOT];
const ROOT: u32 = 102;
/// The first partition. Later ones have later OIDs.
const LEAF: u32 = 200;
/// How old a reply may be, in microseconds.
const STALENESS: u64 = 4_000;

/// Numbers that look random, by a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % most
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A transaction that writes one table.
#[derive(Clone, Debug)]
struct Transaction {
    xid: u64,
    table: usize,
    /// The relation that has the row.
    oid: u32,
    /// Whether it comes in parts, one of which is rolled back.
    in_parts: bool,
    /// Whether its change is in the stream.
    is_sent: bool,
    version: u64,
    is_flushed: bool,
}

/// A reply that is kept or being fetched.
#[derive(Clone, Debug)]
struct ModelReply {
    stamp: u64,
    /// The version that it shows, once the server has run it.
    version: Option<u64>,
}

struct Model {
    dice: Chance,
    now: Now,
    place: Arc<Place>,
    follower: Follower,
    sets: Vec<Arc<TopicSet>>,
    // The server.
    next_xid: u64,
    running: Vec<Transaction>,
    lsn: u64,
    published: [bool; 3],
    /// The partitions that others see, and the OID of the last that was made.
    leaves: Vec<u32>,
    last_leaf: u32,
    changes_of_publications: u64,
    /// Whether a table was withdrawn that no look has seen withdrawn, and whether one is under way
    /// that will show it. It counts as covered until then: nothing is promised then.
    is_unsettled: bool,
    is_looked_at: bool,
    /// The digests of the catalog that were read since.
    digests: u32,
    /// The versions that are visible, and the acknowledged ones with the moments.
    visible: [u64; 3],
    acknowledged: [Vec<(u64, u64)>; 3],
    last: [u64; 3],
    /// The stream, and the relations that it has named.
    streams: bool,
    sent: VecDeque<Vec<u8>>,
    named: BTreeSet<u32>,
    /// Questions, and their answers once the server has run them.
    asked: VecDeque<(StreamQuestion, String, Option<Vec<RowBody>>)>,
    fetching: [Option<ModelReply>; 3],
    kept: [Option<ModelReply>; 3],
    hits: u64,
}

impl Model {
    fn new(number: u64, bug: Option<Bug>) -> Self {
        let options = Options::from_url("postgres://me@127.0.0.1:1/shop").unwrap();
        let store = ResultStore::new(&options, &seed(&mut |bytes| bytes.fill(3)));
        if let Some(bug) = bug {
            store.cache.plant(bug);
        }
        let places = Arc::<Places>::default();
        let make = || (DatabaseTopics::new(&store, "h/shop"), Arc::<Schema>::default());
        let place = places.place("h/shop", make);
        place.is(IDENTITY);
        let subscription = Subscription {
            database: "shop".to_owned(),
            publications: vec!["refrain".to_owned()],
            slot: "refrain_1".to_owned(),
            proof_every: std::time::Duration::from_micros(STALENESS / 4),
        };
        let account = Arc::default();
        let sets = TABLES.map(|oid| {
            let table = topic_of(&store.topics, IDENTITY, &format!("table {oid}"));
            let DatabaseTopics { writes, changes, .. } = place.topics.clone();
            store.topics.set(vec![table, writes, changes], &account)
        });
        Self {
            dice: Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now: Now(1_000_000),
            follower: Follower::new(&place, &store, subscription),
            place,
            sets: sets.into(),
            next_xid: 10,
            running: Vec::new(),
            lsn: 1000,
            published: [true; 3],
            leaves: vec![LEAF],
            last_leaf: LEAF,
            changes_of_publications: 1,
            is_unsettled: false,
            is_looked_at: false,
            digests: 0,
            visible: [0; 3],
            acknowledged: Default::default(),
            last: [0; 3],
            streams: false,
            sent: VecDeque::new(),
            named: BTreeSet::new(),
            asked: VecDeque::new(),
            fetching: Default::default(),
            kept: Default::default(),
            hits: 0,
        }
    }

    /// Runs so many steps. Returns what went wrong, and the number of hits.
    fn run(mut self, steps: u64) -> (Result<(), String>, u64) {
        for _ in 0..steps {
            let pause = if self.dice.one_in(3_000) { 600_000 } else { 100 };
            self.now = Now(self.now.0 + self.dice.below(pause));
            match self.dice.below(20) {
                0 => self.write(),
                1..4 => self.go_on(),
                4..7 => self.serve(),
                7..11 => self.carry(),
                11..15 => self.fetch(),
                15..19 => {
                    if let Err(why) = self.read() {
                        return (Err(why), self.hits);
                    }
                }
                _ => self.change_course(),
            }
        }
        (Ok(()), self.hits)
    }

    /// A client begins a transaction.
    fn write(&mut self) {
        if self.running.len() >= 4 {
            return;
        }
        let table = self.dice.below(3) as usize;
        // Locks of rows: one writer of a table at a time.
        if self.running.iter().any(|it| it.table == table) {
            return;
        }
        self.last[table] += 1;
        let version = self.last[table];
        let is_sent = self.published[table];
        let xid = self.next_xid;
        self.next_xid += 1;
        let makes = table == 2 && self.dice.one_in(8);
        self.last_leaf += u32::from(makes);
        let leaf = if makes { self.last_leaf } else { self.leaves[self.leaves.len() - 1] };
        let oid = if table == 2 { leaf } else { TABLES[table] };
        let (in_parts, is_flushed) = (self.dice.one_in(3), false);
        let it = Transaction { xid, table, oid, in_parts, is_sent, version, is_flushed };
        self.running.push(it);
    }

    /// A transaction comes to its next moment.
    fn go_on(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let place = self.dice.below(self.running.len() as u64) as usize;
        let it = self.running[place].clone();
        if !it.is_flushed && self.dice.one_in(6) {
            self.running.remove(place);
            if self.streams && it.in_parts {
                let xid = (it.xid as u32).to_be_bytes();
                let mut messages = Self::parts(&it);
                messages.push([&b"A"[..], &xid, &xid].concat());
                self.streamed(messages);
            }
        } else if !it.is_flushed {
            self.lsn += 10;
            self.running[place].is_flushed = true;
            if self.streams {
                self.send(&it);
            }
        } else if self.dice.one_in(2) {
            // It is visible, and acknowledged at once: the worst case.
            self.running.remove(place);
            self.visible[it.table] = it.version;
            if it.table == 2 && !self.leaves.contains(&it.oid) {
                self.leaves.push(it.oid);
            }
            self.acknowledged[it.table].push((self.now.0, it.version));
        }
    }

    fn send(&mut self, it: &Transaction) {
        let xid = (it.xid as u32).to_be_bytes();
        if it.in_parts {
            let mut messages = Self::parts(it);
            // Of a subtransaction of another number.
            messages.push([&b"A"[..], &xid, &[9; 4]].concat());
            let end = [&[0; 9][..], &self.lsn.to_be_bytes(), &[0; 8]].concat();
            messages.push([&b"c"[..], &xid, &end].concat());
            self.streamed(messages);
            return;
        }
        let mut messages = vec![[&b"B"[..], &[0; 16], &xid].concat()];
        if it.is_sent {
            let oid = it.oid.to_be_bytes();
            if self.named.insert(it.oid) {
                messages.push([&b"R"[..], &oid, b"public\0t\0d\0\0"].concat());
            }
            messages.push([&b"I"[..], &oid, b"N"].concat());
        }
        messages.push([&b"C\0"[..], &[0; 8], &self.lsn.to_be_bytes(), &[0; 8]].concat());
        self.streamed(messages);
    }

    /// Returns the parts of a transaction. Each names its relation anew.
    fn parts(it: &Transaction) -> Vec<Vec<u8>> {
        let (xid, oid) = ((it.xid as u32).to_be_bytes(), it.oid.to_be_bytes());
        let mut messages = vec![[&b"S"[..], &xid, &[1]].concat()];
        if it.is_sent {
            messages.push([&b"R"[..], &xid, &oid, b"public\0t\0d\0\0"].concat());
            messages.push([&b"I"[..], &xid, &oid, b"N"].concat());
        }
        messages.push(b"E".to_vec());
        messages
    }

    fn streamed(&mut self, messages: Vec<Vec<u8>>) {
        let data = |message: Vec<u8>| [&b"w"[..], &[0; 24], &message].concat();
        self.sent.extend(messages.into_iter().map(data));
    }

    /// The server runs the oldest question that has not been run, or a read.
    fn serve(&mut self) {
        for table in 0..3 {
            if let Some(ModelReply { version: version @ None, .. }) = &mut self.fetching[table]
                && self.dice.one_in(2)
            {
                *version = Some(self.visible[table]);
            }
        }
        let Some(place) = self.asked.iter().position(|it| it.2.is_none()) else { return };
        let (question, text, _) = self.asked[place].clone();
        self.asked[place].2 = Some(self.rows(question, &text));
    }

    fn rows(&mut self, question: StreamQuestion, text: &str) -> Vec<RowBody> {
        match question {
            StreamQuestion::Check => {
                let mut row = row(&["7", "1000", "f", "5", "150018", "logical"]);
                row[1] += 1;
                row.extend_from_slice(&(-1_i32).to_be_bytes());
                vec![row]
            }
            StreamQuestion::Slot => vec![row(&["77"])],
            StreamQuestion::Flushed => {
                let text = format!("{:X}/{:X}", self.lsn >> 32, self.lsn & 0xffff_ffff);
                vec![row(&[&text])]
            }
            StreamQuestion::Snapshot => {
                let running: Vec<u64> = self.running.iter().map(|it| it.xid).collect();
                let least = running.iter().min().copied().unwrap_or(self.next_xid);
                let list: Vec<String> = running.iter().map(u64::to_string).collect();
                vec![row(&[&format!("{least}:{}:{}", self.next_xid, list.join(","))])]
            }
            StreamQuestion::Look => {
                self.is_looked_at = true;
                let tables = TABLES.iter().zip(self.published);
                let member = |(oid, published): (&u32, bool)| {
                    let oid = oid.to_string();
                    row(&["member", &oid, &oid, if published { "" } else { "unpublished" }])
                };
                let mut rows: Vec<RowBody> = tables.map(member).collect();
                let leaf = |oid: &u32| row(&["member", &ROOT.to_string(), &oid.to_string(), ""]);
                rows.extend(self.leaves.iter().map(leaf));
                rows.extend(self.digest());
                rows
            }
            StreamQuestion::Above => {
                let list = text.split_once("'{").unwrap().1.split_once('}').unwrap().0;
                let leaves = list.split(',').filter_map(|oid| oid.parse().ok());
                let leaves = leaves.filter(|oid| self.leaves.contains(oid));
                let root = ROOT.to_string();
                let above = |oid: u32| row(&["above", &oid.to_string(), &root, "public.r"]);
                leaves.map(above).collect()
            }
            StreamQuestion::Digest => {
                // Behind the first that shows a change, the tables are looked at.
                self.digests += 1;
                self.is_looked_at |= self.digests > 1;
                self.digest()
            }
        }
    }

    fn digest(&self) -> Vec<RowBody> {
        let as_of = self.changes_of_publications.to_string();
        vec![
            row(&["as-of", "", "", &as_of]),
            row(&["rest", "", "", &self.leaves.len().to_string()]),
        ]
    }

    /// Something comes to the follower, and goes from it.
    fn carry(&mut self) {
        let begins = self.follower.command();
        if let Some(command) = begins {
            if command.starts_with("CREATE") {
                self.follower.commanded().unwrap();
                // The slot has what is flushed from now on.
                self.streams = true;
                self.named.clear();
            } else {
                self.follower.streams(self.now);
            }
        }
        while let Some((question, text)) = self.follower.question(self.now) {
            self.asked.push_back((question, text, None));
        }
        let comes = self.dice.below(4);
        for _ in 0..comes {
            if self.is_streaming()
                && let Some(message) = self.sent.pop_front()
            {
                self.follower.hear(self.now, &message).unwrap();
            }
        }
        if self.is_streaming() && self.sent.is_empty() && self.dice.one_in(2) {
            let lsn = self.lsn.to_be_bytes();
            let keepalive = [&b"k"[..], &lsn, &[0; 8], &[0]].concat();
            self.follower.hear(self.now, &keepalive).unwrap();
        }
        if self.asked.front().is_some_and(|it| it.2.is_some())
            && let Some((question, _, Some(rows))) = self.asked.pop_front()
        {
            self.follower.answer(self.now, question, &rows).unwrap();
            let looks = matches!(question, StreamQuestion::Look | StreamQuestion::Digest);
            if looks && std::mem::take(&mut self.is_looked_at) {
                self.is_unsettled = false;
            }
        }
    }

    /// A reply is asked for, or comes.
    fn fetch(&mut self) {
        let table = self.dice.below(3) as usize;
        match self.fetching[table].take() {
            None => {
                let stamp = self.sets[table].sure_stamp();
                self.fetching[table] = stamp.map(|stamp| ModelReply { stamp, version: None });
            }
            Some(reply) if reply.version.is_none() => self.fetching[table] = Some(reply),
            Some(reply) => {
                let keeps = self.place.changes.may_keep(Some(ORIGIN), false);
                if keeps && self.sets[table].sure_stamp() == Some(reply.stamp) {
                    self.kept[table] = Some(reply);
                }
            }
        }
    }

    /// A client reads.
    fn read(&mut self) -> Result<(), String> {
        let table = self.dice.below(3) as usize;
        self.place.changes.note_use(self.now);
        let coverage = self.place.changes.coverage(std::iter::once(TABLES[table]));
        if coverage.uncovered.is_some() || !self.place.changes.are_proven(self.now, STALENESS) {
            return Ok(());
        }
        let Some(reply) = &self.kept[table] else { return Ok(()) };
        if self.sets[table].stamp() != reply.stamp || table == 1 && self.is_unsettled {
            return Ok(());
        }
        self.hits += 1;
        let old = |(at, _): &&(u64, u64)| at + STALENESS < self.now.0;
        let due =
            self.acknowledged[table].iter().rev().find(old).map_or(0, |(_, version)| *version);
        match reply.version {
            Some(version) if version >= due => Ok(()),
            version => Err(format!("table {table}: {version:?} is given, and {due} is due")),
        }
    }

    /// A publication changes, the stream is lost, or it begins.
    fn change_course(&mut self) {
        if self.follower.stream.is_none() {
            self.follower.begin(self.now, 77);
        } else if self.dice.one_in(20) {
            self.follower.lose("lost");
            self.streams = false;
            self.sent.clear();
            self.asked.clear();
            self.is_looked_at = false;
        } else if self.dice.one_in(6) {
            // The next look is due.
            self.now = Now(self.now.0 + 1_000_000);
        } else if self.dice.one_in(12) {
            self.published[1] ^= true;
            // A look is due, while the same transactions run.
            self.now = Now(self.now.0 + 1_000_000);
            self.changes_of_publications += 1;
            if !self.published[1] {
                (self.is_unsettled, self.is_looked_at, self.digests) = (true, false, 0);
            }
        }
    }

    fn is_streaming(&self) -> bool {
        self.follower.stream.as_ref().is_some_and(Stream::is_streaming)
    }
}

#[test]
fn no_reply_is_older_than_promised() {
    let mut hits = 0;
    for number in 1..=400 {
        let (outcome, own) = Model::new(number, None).run(6_000);
        assert_eq!(outcome, Ok(()), "run {number}");
        hits += own;
    }
    assert!(hits > 20_000, "{hits} hits say little");
}

#[test]
fn each_planted_bug_is_found() {
    for bug in [
        Bug::EarlyEndOfDoubt,
        Bug::ProofFromItsAnswer,
        Bug::CoveredAtOnce,
        Bug::AnySnapshot,
        Bug::KeptThroughLoss,
        Bug::LeafWithoutParent,
        Bug::UnknownRelation,
        Bug::AbortedPart,
        Bug::UnseenCatalog,
    ] {
        let finds = |number: &u64| Model::new(*number, Some(bug)).run(6_000).0.is_err();
        let found = (1..=400).find(finds);
        println!("{bug:?}: run {found:?}");
        assert!(found.is_some(), "{bug:?}");
    }
}

//! Scenes: sequences of what comes to a follower, step by step, as a server was seen to send it.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::Options;
use refrain_pool::Now;
use refrain_pool::seed::seed;

use crate::changes::follower::Follower;
use crate::changes::questions::{RowBody, StreamQuestion, tests::row};
use crate::changes::stream::Subscription;
use crate::ground::ids::{DatabaseIdentity, ServerOrigin};
use crate::ground::schema::Schema;
use crate::results::places::{Place, Places, table_topic};
use crate::results::store::ResultStore;
use crate::results::topics::DatabaseTopics;

const IDENTITY: DatabaseIdentity = DatabaseIdentity { cluster: 7, database: 5 };
const ORIGIN: ServerOrigin = ServerOrigin { cluster: 7, started: 1000 };
/// A table that replies read, one that may be below it, and a partition of that.
const TOP: u32 = 100;
const MIDDLE: u32 = 101;
const LEAF: u32 = 102;

struct Scene {
    now: Now,
    store: Arc<ResultStore>,
    place: Arc<Place>,
    follower: Follower,
    /// The transaction that the server gives next.
    next: u32,
    /// The transactions that run.
    running: String,
    /// The table above each, if there is one.
    parents: Vec<(u32, u32)>,
}

impl Scene {
    /// Begins a stream, in which these tables are below those, and brings it to life.
    fn new(parents: &[(u32, u32)]) -> Self {
        let mut scene = Self::begin(parents);
        scene.settle();
        assert!(scene.follower.is_live() && scene.is_covered());
        scene
    }

    /// Begins a stream.
    fn begin(parents: &[(u32, u32)]) -> Self {
        let options = Options::from_url("postgres://me@127.0.0.1:1/shop").unwrap();
        let store = ResultStore::new(&options, &seed(&mut |bytes| bytes.fill(3)));
        let places = Arc::<Places>::default();
        let make = || (DatabaseTopics::new(&store, "h/shop"), Arc::<Schema>::default());
        let place = places.place("h/shop", make);
        place.is(IDENTITY);
        let subscription = Subscription {
            database: "shop".to_owned(),
            publications: vec!["refrain".to_owned()],
            slot: "refrain_1".to_owned(),
            proof_every: Duration::from_millis(1),
        };
        let mut follower = Follower::new(&place, &store, subscription);
        let now = Now(1_000_000);
        follower.begin(now, 77);
        let (running, parents) = (String::new(), parents.to_vec());
        let scene = Self { now, store, place, follower, next: 50, running, parents };
        scene.place.changes.note_use(now);
        scene.place.changes.coverage([TOP].into_iter());
        scene
    }

    /// Lets a second pass in which every question is answered, and nothing comes in the stream.
    fn settle(&mut self) {
        for _ in 0..30 {
            self.now = self.now.after(Duration::from_millis(50));
            match self.follower.command() {
                Some(create) if create.starts_with("CREATE") => self.follower.commanded().unwrap(),
                Some(_) => self.follower.streams(self.now),
                None => {}
            }
            while let Some((question, text)) = self.follower.question(self.now) {
                let rows = self.rows(question, &text);
                self.follower.answer(self.now, question, &rows).unwrap();
            }
        }
    }

    fn rows(&self, question: StreamQuestion, text: &str) -> Vec<RowBody> {
        match question {
            StreamQuestion::Check => {
                let mut row = row(&["7", "1000", "f", "5", "150018", "logical"]);
                row[1] += 1;
                row.extend_from_slice(&(-1_i32).to_be_bytes());
                vec![row]
            }
            StreamQuestion::Slot => vec![row(&["77"])],
            StreamQuestion::Flushed => vec![row(&["0/0"])],
            StreamQuestion::Snapshot => {
                let least = self.running.split(',').next().filter(|xid| !xid.is_empty());
                let least = least.map_or(self.next.to_string(), str::to_owned);
                vec![row(&[&format!("{least}:{}:{}", self.next, self.running)])]
            }
            StreamQuestion::Look | StreamQuestion::Above => {
                let list = text.split_once("'{").unwrap().1.split_once('}').unwrap().0;
                let asked = list.split(',').filter_map(|oid| oid.parse().ok());
                let mut rows: Vec<RowBody> = asked.flat_map(|oid| self.catalog(oid)).collect();
                rows.retain(|row| question != StreamQuestion::Above || row[6] == b'a');
                let digest = format!("{:?}", self.parents);
                let digest = [row(&["as-of", "", "", "p1.1"]), row(&["rest", "", "", &digest])];
                rows.extend(digest.into_iter().filter(|_| question != StreamQuestion::Above));
                rows
            }
            StreamQuestion::Digest => {
                let digest = format!("{:?}", self.parents);
                vec![row(&["as-of", "", "", "p1.1"]), row(&["rest", "", "", &digest])]
            }
        }
    }

    /// Returns what the catalog says of a table.
    fn catalog(&self, oid: u32) -> Vec<RowBody> {
        let text = oid.to_string();
        let up = |oid: u32| self.parents.iter().find(|(child, _)| *child == oid).map(|it| it.1);
        let above: Vec<u32> = std::iter::successors(up(oid), |oid| up(*oid)).collect();
        let is_below =
            |other: &u32| std::iter::successors(Some(*other), |it| up(*it)).any(|it| it == oid);
        let below = [TOP, MIDDLE, LEAF].into_iter().filter(is_below);
        let members = below.map(|below| row(&["member", &text, &below.to_string(), ""]));
        members
            .chain(above.iter().map(|above| row(&["above", &text, &above.to_string(), "public.x"])))
            .collect()
    }

    fn send(&mut self, messages: &[&[u8]]) {
        for message in messages {
            let data = [&b"w"[..], &[0; 24], message].concat();
            self.follower.hear(self.now, &data).unwrap();
        }
    }

    /// Sends a transaction that changes the leaf, with the name of it or without.
    fn commit(&mut self, is_named: bool) {
        let (xid, oid) = (self.next.to_be_bytes(), LEAF.to_be_bytes());
        self.next += 1;
        self.send(&[&[&b"B"[..], &[0; 16], &xid].concat()]);
        if is_named {
            self.send(&[&[&b"R"[..], &oid, b"public\0leaf\0d\0\0"].concat()]);
        }
        self.send(&[&[&b"I"[..], &oid, b"N"].concat(), &[&b"C\0"[..], &[0; 24]].concat()]);
    }

    /// Sends a transaction in parts that changes the leaf. Each part names it anew.
    fn commit_in_parts(&mut self) {
        let (xid, oid) = (self.next.to_be_bytes(), LEAF.to_be_bytes());
        self.next += 1;
        for is_first in [1, 0] {
            self.send(&[
                &[&b"S"[..], &xid, &[is_first]].concat(),
                &[&b"R"[..], &xid, &oid, b"public\0leaf\0d\0\0"].concat(),
                &[&b"I"[..], &xid, &oid, b"N"].concat(),
                b"E",
            ]);
        }
        self.send(&[&[&b"c"[..], &xid, &[0; 25]].concat()]);
    }

    fn is_covered(&self) -> bool {
        self.place.changes.coverage([TOP].into_iter()).uncovered.is_none()
    }

    /// Whether replies that read the table at the top are given and kept: they depend on it, and on
    /// what may change any.
    fn is_sure(&self) -> bool {
        let topic = table_topic(&self.store.topics, IDENTITY, TOP);
        topic.sure_word().and(self.place.topics.writes.sure_word()).is_some()
    }
}

#[test]
fn a_stream_is_live_once_those_are_over_that_ran_at_its_begin() {
    let mut scene = Scene::begin(&[]);
    scene.running = "40,45".to_owned();
    scene.settle();
    assert!(!scene.follower.is_live() && !scene.is_covered());
    (scene.running, scene.next) = ("45,60".to_owned(), 70);
    scene.settle();
    assert!(!scene.follower.is_live() && !scene.is_covered());
    scene.running = "60".to_owned();
    scene.settle();
    assert!(scene.follower.is_live() && scene.is_covered(), "that one has begun later");
}

#[test]
fn a_partition_that_was_attached_touches_its_parent_though_the_stream_does_not_say_so() {
    let mut scene = Scene::new(&[]);
    scene.commit_in_parts();
    scene.settle();
    assert!(scene.is_covered() && scene.is_sure());
    scene.commit_in_parts();
    assert!(scene.is_sure(), "it is on its own");
    scene.parents = vec![(LEAF, TOP)];
    scene.settle();
    assert!(scene.is_covered() && scene.is_sure());
    scene.commit_in_parts();
    assert!(!scene.is_sure());
    scene.settle();
    assert!(scene.is_sure());
}

#[test]
fn what_is_far_below_a_table_touches_it_though_the_stream_does_not_name_it_again() {
    let mut scene = Scene::new(&[(LEAF, MIDDLE)]);
    scene.commit(true);
    scene.settle();
    scene.commit(false);
    assert!(scene.is_covered() && scene.is_sure());
    scene.parents.push((MIDDLE, TOP));
    scene.settle();
    assert!(scene.is_covered() && scene.is_sure());
    scene.commit(false);
    assert!(!scene.is_sure());
    scene.parents.pop();
    scene.settle();
    scene.commit(false);
    assert!(scene.is_sure());
}

#[test]
fn a_transaction_that_names_a_relation_may_have_moved_it() {
    let mut scene = Scene::new(&[]);
    scene.commit(true);
    assert!(!scene.is_sure());
    scene.settle();
    let (xid, oid) = (scene.next.to_be_bytes(), LEAF.to_be_bytes());
    let part = [&b"S"[..], &xid, &[1]].concat();
    let other = [&b"R"[..], &xid, &oid, b"public\0moved\0d\0\0"].concat();
    let change = [&b"I"[..], &xid, &oid, b"N"].concat();
    scene.next += 1;
    scene.send(&[&part, &other, &change, b"E"]);
    scene.commit(true);
    scene.next += 1;
    scene.settle();
    scene.commit(false);
    assert!(scene.is_sure(), "the catalog has been asked about it meanwhile");
    scene.send(&[&[&b"c"[..], &xid, &[0; 25]].concat()]);
    assert!(!scene.is_sure(), "and not about what this transaction has done");
    scene.settle();
    scene.commit(false);
    assert!(scene.is_sure());
}

#[test]
fn a_stream_ends_when_a_pool_has_met_another_server() {
    let mut scene = Scene::new(&[]);
    assert!(scene.place.changes.are_proven(scene.now, 1_000_000));
    scene.place.changes.meet(ORIGIN);
    assert_eq!(scene.follower.check(scene.now), Ok(()));
    scene.place.changes.meet(ServerOrigin { started: 2000, ..ORIGIN });
    scene.settle();
    assert!(!scene.place.changes.are_proven(scene.now, u64::MAX));
    assert!(scene.follower.check(scene.now).unwrap_err().contains("another server"));
}

#[test]
fn a_change_of_the_schema_is_in_doubt_and_counts_again_when_others_see_it() {
    let mut scene = Scene::new(&[]);
    let count = |scene: &Scene| scene.place.schema.schema_changes();
    let is_sure = |scene: &Scene| scene.place.topics.schema.sure_word().is_some();
    let message = |flags: u8, prefix: &[u8]| {
        [&b"M"[..], &[flags], &[0; 8], prefix, b"\0\0\0\0\x03ddl"].concat()
    };
    for (flags, prefix, is_one) in
        [(1, &b"refrain"[..], true), (1, b"other", false), (0, b"refrain", false)]
    {
        let (before, xid) = (count(&scene), scene.next);
        scene.next += 1;
        scene.running = xid.to_string();
        scene.send(&[
            &[&b"B"[..], &[0; 16], &xid.to_be_bytes()].concat(),
            &message(flags, prefix),
            &[&b"C\0"[..], &[0; 24]].concat(),
        ]);
        let event = count(&scene);
        assert_eq!((event > before, is_sure(&scene)), (is_one, !is_one));
        scene.settle();
        assert_eq!((count(&scene), is_sure(&scene)), (event, !is_one), "nobody sees it yet");
        scene.running.clear();
        scene.settle();
        assert_eq!((count(&scene) > event, is_sure(&scene)), (is_one, true));
    }
    // Between transactions as well.
    scene.send(&[&message(0, b"refrain")]);
}

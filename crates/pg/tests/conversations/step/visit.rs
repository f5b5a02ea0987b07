//! Reads on standbys, in each of the ways in which a client may read.

use std::time::Duration;

use crate::step::answer::{READ, SECOND, Scene, UPDATE, WAYS, Way};
use crate::talk::*;

/// A primary and a standby, which has what reads need so far.
pub(crate) struct Trip {
    pub(crate) scene: Scene,
    pub(crate) standby: Party,
}

/// Time after which a primary may be asked again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Returns options of a database whose reads run on standbys.
pub(crate) fn on_standbys(more: &str) -> String {
    let hosts = "127.0.0.1:1,127.0.0.1:2";
    let url = format!("postgres://u@{hosts}?target_session_attrs=read-write&reads=standby{more}");
    let pool = "[pool]\ntrack_functions = \"off\"\nshare_servers = \"off\"\npool_size = 2\n";
    format!("auth = \"trust\"\n{pool}[databases.d]\nurl = \"{url}\"\n")
}

/// Begins a conversation in which the reads of alice and bob are known to be reads, and no standby
/// is there.
pub(crate) fn reading(way: Way) -> Scene {
    let talk = Conversation::new(on_standbys(""));
    talk.servers_report("in_hot_standby", "off");
    talk.servers_report("default_transaction_read_only", "off");
    Scene::of(way, talk).becomes_known()
}

/// The primary is asked how far it is, and says this.
#[track_caller]
pub(crate) fn primary_says(scene: &Scene, lsn: &str) {
    let asked = [internal("pg_current_wal_insert_lsn"), vec![sync()]].concat();
    let row: &[&str] = &[lsn, "000000010000000000000003", "7", "16777216", "8192"];
    scene.server.gets(asked).answers([internal_answer(&[row]), vec![ready()]].concat());
}

/// Returns the question to a standby.
pub(crate) fn asked() -> Line {
    query_with("pg_last_wal_replay_lsn")
}

/// Returns the answer of a standby that has replayed so far.
pub(crate) fn replayed(lsn: &str, timeline: &str) -> Vec<Line> {
    replayed_by("1790000000000001", lsn, timeline)
}

/// Returns the answer of a standby that was started then and has replayed so far.
pub(crate) fn replayed_by(started: &str, lsn: &str, timeline: &str) -> Vec<Line> {
    let names = columns(&["case", "greatest", "system_identifier", "int8"]);
    vec![names, row(&[lsn, timeline, "7", started]), complete("SELECT 1"), ready()]
}

impl Trip {
    /// Begins with a standby that has been asked nothing. The primary is at 0/3000100.
    pub(crate) fn connected(way: Way) -> Self {
        Self::connected_in(reading(way))
    }

    fn connected_in(scene: Scene) -> Self {
        scene.asks_server(&scene.alice, "0", "zero");
        primary_says(&scene, "0/3000100");
        // A read waits for no standby: this one has it connected.
        scene.talk.servers_report("in_hot_standby", "on");
        scene.asks_server(&scene.alice, "0", "zero");
        let standby = scene.talk.server(2);
        Self { scene, standby }
    }

    /// Begins with a standby that has run a read of alice's, and has replayed up to 0/3000100.
    pub(crate) fn begun(way: Way) -> Self {
        let trip = Self::connected(way);
        trip.scene.alice.sends(way.request("1"));
        let given: &[Line] = match way {
            Way::Named => &[parse("~1", READ), describe_statement("~1")],
            Way::Simple | Way::Unnamed => &[],
        };
        trip.standby.gets([&[asked()], given, &way.sent("1")].concat());
        trip.standby.answers(replayed("0/3000100", "1"));
        if way == Way::Named {
            trip.standby.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        }
        trip.standby.answers(way.reply("one"));
        trip.scene.alice.gets(way.reply("one"));
        trip
    }

    /// A client reads from the standby, which is not asked.
    #[track_caller]
    pub(crate) fn visits(&self, client: &Party, value: &str, found: &str) {
        let way = self.scene.way;
        client.sends(way.request(value));
        let (got, sent) = (self.standby.forgets(), way.sent(value));
        if got == sent {
            self.standby.answers(way.reply(found));
        } else {
            assert_eq!(got, sent[1..]);
            self.standby.answers(way.answered(found));
        }
        client.gets(way.reply(found));
    }

    /// A client writes, and reads behind that; the primary answers, and says that it is further
    /// now.
    #[track_caller]
    pub(crate) fn writes(&self, client: &Party, lsn: &str) {
        self.scene.talk.waits(PAUSE);
        self.scene.does(client, UPDATE, "UPDATE 1");
        self.scene.asks_server(client, "1", "two");
        primary_says(&self.scene, lsn);
    }

    /// Alice's read of `2` is with the primary, which answers. If alice has got the answer to her
    /// Parse, the primary may have to parse the text again.
    #[track_caller]
    pub(crate) fn runs_on_the_primary(&self) {
        let (way, server) = (self.scene.way, &self.scene.server);
        let got = server.forgets();
        if got.iter().any(|line| *line == describe_statement("")) {
            server.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
            assert_eq!(server.forgets(), way.sent("2")[1..]);
            server.answers(way.answered("two"));
        } else {
            assert!(way.sent("2").ends_with(&got), "{got:?}");
            let parses = got.len() == way.sent("2").len();
            server.answers(if parses { way.reply("two") } else { way.answered("two") });
        }
        self.scene.alice.gets(way.reply("two"));
    }

    /// Returns how many reads were sent to standbys, and how many of these came back.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let pools = self.scene.talk.snapshot().pools;
        let protocol = || pools.iter().map(|pool| &pool.counters.protocol);
        let reads = protocol().map(|counters| counters.standby_reads).sum();
        (reads, protocol().map(|counters| counters.standby_reads_returned).sum())
    }

    /// The read of alice's is with the primary, which answers.
    #[track_caller]
    pub(crate) fn comes_back(&self, value: &str, found: &str) {
        self.scene.server_answers(&self.scene.alice, value, found);
    }
}

#[test]
fn a_read_runs_on_a_standby_that_has_what_it_needs() {
    for way in WAYS {
        let trip = Trip::begun(way);
        trip.visits(&trip.scene.alice, "2", "two");
        trip.visits(&trip.scene.alice, "3", "three");
        trip.scene.server.gets_nothing();
        assert_eq!(trip.counts(), (3, 0));
        // What a server is asked for the first time may not be what bob may read.
        trip.scene.talk.waits(PAUSE);
        trip.scene.asks_server(&trip.scene.bob, "2", "two");
        primary_says(&trip.scene, "0/3000100");
        trip.visits(&trip.scene.bob, "2", "two");
    }
}

#[test]
fn a_long_request_runs_on_the_primary() {
    let trip = Trip::begun(Way::Named);
    let long = "x".repeat(9_000);
    trip.scene.asks_server(&trip.scene.alice, &long, "none");
    trip.standby.gets_nothing();
}

#[test]
fn a_text_is_the_same_statement_on_a_standby() {
    let trip = Trip::begun(Way::Unnamed);
    trip.visits(&trip.scene.alice, "2", "two");
    let texts: Vec<_> = trip.scene.talk.statements().into_iter().map(|it| it.text).collect();
    assert_eq!(texts.iter().filter(|text| **text == texts[0]).count(), 1, "{texts:?}");
}

#[test]
fn what_is_no_single_read_runs_on_the_primary() {
    let trip = Trip::begun(Way::Simple);
    let Scene { alice, server, .. } = &trip.scene;
    alice.asks(server, "select b from t where b = '1'", one_row());
    alice.opens_block(server);
    alice.asks(server, "select a from t where b = '1'", {
        vec![columns(&["a"]), row(&["1"]), complete("SELECT 1"), ready_in_block()]
    });
    alice.commits(server);
    trip.standby.gets_nothing();
    // Nothing was written.
    trip.visits(alice, "2", "two");
}

#[test]
fn what_a_client_sends_behind_a_read_waits_for_the_reply() {
    for way in WAYS {
        let trip = Trip::begun(way);
        let Scene { alice, server, .. } = &trip.scene;
        alice.sends(way.request("2"));
        let unnamed = trip.standby.forgets() != way.sent("2");
        alice.sends([query(UPDATE)]);
        server.gets_nothing();
        trip.standby.gets_nothing();
        trip.standby.answers(if unnamed { way.answered("two") } else { way.reply("two") });
        alice.gets(way.reply("two"));
        server.gets([query(UPDATE)]).answers([complete("UPDATE 1"), ready()]);
        alice.gets([complete("UPDATE 1"), ready()]);
    }
}

#[test]
fn a_read_waits_for_no_standby() {
    let trip = Trip::begun(Way::Simple);
    trip.scene.talk.waits(PAUSE);
    trip.scene.asks_server(&trip.scene.bob, "2", "two");
    primary_says(&trip.scene, "0/3000100");
    trip.scene.alice.sends(Way::Simple.request("2"));
    trip.standby.gets(Way::Simple.sent("2"));
    // The next one is connected meanwhile.
    trip.scene.asks_server(&trip.scene.bob, "3", "three");
    assert_eq!(trip.scene.talk.connections(), 3);
    trip.standby.answers(Way::Simple.reply("two"));
    trip.scene.alice.gets(Way::Simple.reply("two"));
}

#[test]
fn a_standby_that_is_late_keeps_no_other_from_being_connected() {
    let hosts = "127.0.0.1:1,127.0.0.1:2";
    let three = on_standbys("").replace(hosts, "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    let talk = Conversation::new(three);
    talk.servers_report("in_hot_standby", "off");
    talk.servers_report("default_transaction_read_only", "off");
    let trip = Trip::connected_in(Scene::of(Way::Simple, talk).becomes_known());
    let Scene { alice, talk, .. } = &trip.scene;
    alice.sends(Way::Simple.request("1"));
    trip.standby.gets([vec![asked()], Way::Simple.sent("1")].concat());
    trip.standby.answers(replayed("0/30000FF", "1"));
    trip.comes_back("1", "one");
    trip.standby.answers(Way::Simple.reply("one"));
    let before = talk.connections();
    // It rests: another is connected meanwhile, and no more than for both hosts.
    trip.scene.asks_server(alice, "1", "one");
    let other = talk.server(before + 1);
    alice.sends(Way::Simple.request("1"));
    other.gets([vec![asked()], Way::Simple.sent("1")].concat());
    other.answers(replayed("0/3000100", "1")).answers(Way::Simple.reply("one"));
    alice.gets(Way::Simple.reply("one"));
    assert_eq!(talk.connections(), before + 1);
}

#[test]
fn a_read_of_a_standby_that_goes_runs_on_the_primary() {
    for way in WAYS {
        let trip = Trip::begun(way);
        trip.scene.alice.sends(way.request("2"));
        trip.standby.forgets();
        trip.standby.breaks();
        trip.runs_on_the_primary();
        assert_eq!(trip.counts(), (2, 1));
    }
}

#[test]
fn settings_that_a_server_may_refuse_stay_with_the_primary() {
    let trip = Trip::begun(Way::Simple);
    let Scene { alice, server, talk, .. } = &trip.scene;
    alice.sends([query("set my.own to 'x'")]);
    server.gets([query("set my.own to 'x'")]).answers([complete("SET"), ready()]);
    server.forgets();
    server.answers(settings_answer(&[&["my.own", "x"]]));
    alice.forgets();
    for _ in 0..3 {
        alice.sends(Way::Simple.request("2"));
        talk.waits(SECOND);
        for server in [server, &trip.standby] {
            drop(server.forgets());
        }
    }
}

#[test]
fn what_was_known_of_writes_counts_no_more_once_they_were_not_noted() {
    let trip = Trip::begun(Way::Simple);
    let Scene { alice, talk, .. } = &trip.scene;
    trip.visits(alice, "2", "two");
    let who_gets = |lines: &[Line]| {
        let all = (1..=talk.connections()).map(|number| talk.connection(number));
        let mut open = all.filter(|it| !it.is_closed());
        open.find(|it| it.forgets() == lines).expect("a server gets it")
    };
    talk.servers_report("in_hot_standby", "off");
    talk.reloads(&on_standbys("").replace("reads=standby", "reads=primary"));
    alice.sends([query(UPDATE)]);
    who_gets(&[query(UPDATE)]).answers([complete("UPDATE 1"), ready()]);
    alice.gets([complete("UPDATE 1"), ready()]);
    talk.reloads(&on_standbys(""));
    let before = talk.counters().protocol.standby_reads_unproven;
    alice.sends(Way::Simple.request("2"));
    who_gets(&Way::Simple.sent("2")).answers(Way::Simple.reply("two"));
    alice.gets(Way::Simple.reply("two"));
    // The statement is not known to be a read any more: the schema may have changed as well.
    assert_eq!(talk.counters().protocol.standby_reads_unproven, before);
    for number in 1..=talk.connections() {
        drop(talk.connection(number).forgets());
    }
}

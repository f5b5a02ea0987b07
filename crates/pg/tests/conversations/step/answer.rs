//! Answers from the cache, in each of the ways in which a client may ask.

use std::time::Duration;

use refrain_sql::reads::{Mentioned, Objection};

use crate::step::reads::{answer, question};
use crate::talk::*;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// A read as clients prepare it, and as a query string.
pub(crate) const READ: &str = "select a from t where b = $1";
pub(crate) const RULE: &str = "ttl = \"10s\"\njitter = \"0%\"";
/// The row in which a server names the table of the read.
pub(crate) const READS: &str = "0 reads 7000 public.t";
pub(crate) const UPDATE: &str = "update t set a = 2";

/// A way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Simple,
    Named,
    Unnamed,
}

pub(crate) const WAYS: [Way; 3] = [Way::Simple, Way::Named, Way::Unnamed];

/// A server of two, and clients who have read from it so often that the read is known to be one.
pub(crate) struct Scene {
    pub(crate) talk: Conversation,
    pub(crate) way: Way,
    pub(crate) alice: Party,
    pub(crate) bob: Party,
    pub(crate) server: Party,
}

/// Returns options with these rules of the cache.
pub(crate) fn caching(pool: &str, rules: &[&str]) -> String {
    let rules = rules.iter().map(|rule| format!("\n[[cache.rules]]\n{rule}\n"));
    options(pool) + &rules.collect::<String>()
}

impl Way {
    /// Returns what a client sends to read a value.
    pub(crate) fn request(self, value: &str) -> Vec<Line> {
        match self {
            Self::Simple => vec![query(&format!("select a from t where b = '{value}'"))],
            Self::Named => vec![bind_value("", "s", value), execute(""), sync()],
            Self::Unnamed => vec![
                parse("", READ),
                bind_value("", "", value),
                describe_portal(""),
                execute(""),
                sync(),
            ],
        }
    }

    /// Returns what the server gets for that.
    pub(crate) fn sent(self, value: &str) -> Vec<Line> {
        match self {
            Self::Named => vec![bind_value("", "~1", value), execute(""), sync()],
            Self::Simple | Self::Unnamed => self.request(value),
        }
    }

    /// Returns the reply.
    pub(crate) fn reply(self, value: &str) -> Vec<Line> {
        let rows = [row(&[value]), complete("SELECT 1"), ready()];
        let heads = match self {
            Self::Simple => vec![columns(&["a"])],
            Self::Named => vec![bind_complete()],
            Self::Unnamed => vec![parse_complete(), bind_complete(), columns(&["a"])],
        };
        [heads, rows.to_vec()].concat()
    }

    /// Returns the reply up to where the server does something else than to complete the request.
    pub(crate) fn begun(self, value: &str) -> Vec<Line> {
        let reply = self.reply(value);
        reply[..reply.len() - 2].to_vec()
    }

    /// Returns the reply without that of the Parse which Refrain may answer itself.
    pub(crate) fn answered(self, value: &str) -> Vec<Line> {
        let reply = self.reply(value);
        if self == Self::Unnamed { reply[1..].to_vec() } else { reply }
    }
}

impl Scene {
    pub(crate) fn new(way: Way, rules: &[&str]) -> Self {
        Self::with(way, caching("pool_size = 2", rules))
    }

    pub(crate) fn new_on(cores: u16, way: Way, rules: &[&str]) -> Self {
        Self::of(way, Conversation::on_cores(cores, caching("pool_size = 2", rules)))
    }

    pub(crate) fn with(way: Way, options: String) -> Self {
        Self::of(way, Conversation::new(options))
    }

    pub(crate) fn of(way: Way, talk: Conversation) -> Self {
        let (alice, server) = (talk.client(), talk.server(1));
        if way == Way::Named {
            alice.uses(&server, "s", READ, "~1");
        }
        let scene = Self { way, bob: talk.client(), talk, alice, server };
        if way == Way::Named {
            // Bob knows as much of his statement as alice does of hers.
            let described = [parameters(&[23]), columns(&["a"]), ready()];
            scene.bob.sends([parse("s", READ), describe_statement("s"), sync()]);
            scene.server.gets([describe_statement("~1"), sync()]).answers(described.clone());
            scene.bob.gets([vec![parse_complete()], described.to_vec()].concat());
        } else {
            (0..6).for_each(|_| scene.asks_server(&scene.alice, "0", "0"));
        }
        scene
    }

    /// Has Refrain find out that the read is one.
    pub(crate) fn becomes_known(self) -> Self {
        self.talk.waits(SECOND);
        self.is_asked_about(&[READS]);
        self
    }

    /// Has Refrain ask about the read: a server says this.
    pub(crate) fn is_asked_about(&self, rows: &[&str]) {
        let mentioned = Mentioned { relations: vec!["\"t\"".to_owned()], ..Mentioned::default() };
        self.talk.read(self.talk.read_case(), Ok(mentioned));
        let names = "(VALUES (0,'s',''),(0,'r','\"t\"')),";
        let rows: Vec<[&str; 1]> = rows.iter().map(|row| [*row]).collect();
        let rows: Vec<&[&str]> = rows.iter().map(|row| &row[..]).collect();
        self.server.gets(question(names)).answers(answer(&rows));
    }

    pub(crate) fn known(way: Way, rules: &[&str]) -> Self {
        Self::new(way, rules).becomes_known()
    }

    /// A client reads, and a server answers.
    #[track_caller]
    pub(crate) fn asks_server(&self, client: &Party, value: &str, found: &str) {
        client.sends(self.way.request(value));
        self.server_answers(client, value, found);
    }

    /// The server gets the read and answers it. It may have the unnamed statement already.
    #[track_caller]
    pub(crate) fn server_answers(&self, client: &Party, value: &str, found: &str) {
        let got = self.server.forgets();
        let sent = self.way.sent(value);
        if got == sent {
            self.server.answers(self.way.reply(found));
        } else {
            assert_eq!(got, sent[1..]);
            self.server.answers(self.way.answered(found));
        }
        client.gets(self.way.reply(found));
    }

    /// A client reads, and gets what is kept: no server hears of it.
    #[track_caller]
    pub(crate) fn hits(&self, client: &Party, value: &str, found: &str) {
        client.sends(self.way.request(value));
        assert!(client.has_got() > 0, "{:?}", self.talk.counters().protocol);
        client.gets(self.way.reply(found));
        self.server.gets_nothing();
    }

    /// A client reads, and gets what is kept, while the server works for another client.
    #[track_caller]
    pub(crate) fn hits_beside(&self, client: &Party, value: &str, found: &str) {
        client.sends(self.way.request(value)).gets(self.way.reply(found));
    }

    /// A client reads, and some server gets the read.
    #[track_caller]
    pub(crate) fn goes_to_a_server(&self, client: &Party, value: &str) {
        client.sends(self.way.request(value));
        let servers = (1..=self.talk.connections()).map(|number| self.talk.connection(number));
        let got: usize = servers.filter(|it| !it.is_closed()).map(|it| it.forgets().len()).sum();
        assert!(got > 0);
        client.forgets();
    }

    /// A client does something at the server.
    #[track_caller]
    pub(crate) fn does(&self, client: &Party, text: &str, tag: &str) {
        client.asks(&self.server, text, [complete(tag), ready()]);
    }
}

#[test]
fn a_reply_is_kept_and_given_to_others_byte_for_byte() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        let before = scene.talk.counters().pool.queries;
        scene.asks_server(&scene.alice, "1", "one");
        scene.hits(&scene.alice, "1", "one");
        scene.hits(&scene.bob, "1", "one");
        // S4: another value is another key.
        scene.asks_server(&scene.bob, "2", "two");
        scene.hits(&scene.alice, "2", "two");
        scene.hits(&scene.alice, "1", "one");
        let counters = scene.talk.counters().protocol;
        assert_eq!((counters.cache_hits, counters.cache_fills), (4, 2));
        assert_eq!(scene.talk.counters().pool.queries, before + 4 + 2);
    }
}

#[test]
fn nothing_is_kept_without_a_rule_that_applies() {
    for way in WAYS {
        for rule in [
            "database = \"other\"",
            "user = \"somebody\"",
            "statement = \"select b from t where b = 1\"",
        ] {
            let scene = Scene::new(way, &[rule]);
            scene.talk.waits(SECOND);
            if scene.talk.read_cases() > 0 {
                drop(scene.talk.read_case());
            }
            scene.asks_server(&scene.alice, "1", "one");
            scene.asks_server(&scene.alice, "1", "one");
            assert_eq!(scene.talk.counters().protocol.cache_fills, 0);
        }
        let scene = Scene::with(way, options("pool_size = 2"));
        scene.talk.waits(SECOND);
        assert_eq!(scene.talk.read_cases(), 0);
    }
}

#[test]
fn a_rule_for_a_statement_counts_for_it_whatever_its_literals() {
    let rule = "statement = \"select a from t where b = 'x'\"";
    let scene = Scene::known(Way::Simple, &[rule]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.hits(&scene.bob, "1", "one");
    let rule = "statement = \"select a from t where b = $1\"";
    let scene = Scene::known(Way::Named, &[rule]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.hits(&scene.bob, "1", "one");
}

#[test]
fn a_rule_for_a_table_counts_for_statements_that_read_it() {
    for (table, applies) in [("t", true), ("public.t", true), ("u", false), ("v.t", false)] {
        for way in WAYS {
            let scene = Scene::known(way, &[&format!("{RULE}\ntable = \"{table}\"")]);
            scene.asks_server(&scene.alice, "1", "one");
            match applies {
                true => scene.hits(&scene.bob, "1", "one"),
                false => scene.goes_to_a_server(&scene.bob, "1"),
            }
        }
    }
}

#[test]
fn nothing_is_kept_of_a_text_of_which_nobody_knows_whether_it_is_a_read() {
    for way in WAYS {
        let scene = Scene::new(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(SECOND);
        // S5, S11: the grammar or the catalog has an objection.
        scene.talk.read(scene.talk.read_case(), Err(Objection::Locks));
        scene.asks_server(&scene.alice, "1", "one");
        scene.asks_server(&scene.alice, "1", "one");
        assert_eq!(scene.talk.counters().protocol.cache_misses, 0);
    }
}

#[test]
fn a_reply_is_given_until_its_time_is_over() {
    for way in WAYS {
        let scene = Scene::known(way, &["ttl = \"10s\"\njitter = \"0%\"\nempty_ttl = \"2s\""]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(9 * SECOND);
        scene.hits(&scene.bob, "1", "one");
        scene.talk.waits(SECOND);
        scene.asks_server(&scene.bob, "1", "one");
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn the_time_for_which_clients_wait_for_a_reply_does_not_count() {
    for way in WAYS {
        let scene = Scene::known(way, &["ttl = \"100ms\"\njitter = \"0%\""]);
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        // The query takes longer than its reply is kept.
        scene.talk.waits(SECOND);
        scene.server_answers(&scene.alice, "1", "one");
        scene.bob.gets(way.reply("one"));
        scene.asks_server(&scene.bob, "1", "two");
    }
}

#[test]
fn a_void_reply_is_given_to_nobody_while_another_is_fetched() {
    for way in WAYS {
        let rule = format!("{RULE}\nstale_while_revalidate = \"5s\"");
        let scene = Scene::known(way, &[&rule]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(11 * SECOND);
        scene.does(&scene.bob, UPDATE, "UPDATE 1");
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        scene.server_answers(&scene.alice, "1", "two");
        scene.bob.gets(way.reply("two"));
    }
}

#[test]
fn a_shorter_time_acts_on_what_is_kept() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(3 * SECOND);
        scene.talk.reloads(&caching("pool_size = 2", &["ttl = \"4s\"\njitter = \"0%\""]));
        scene.hits(&scene.bob, "1", "one");
        scene.talk.waits(SECOND);
        scene.asks_server(&scene.bob, "1", "one");
        // S18.
        scene.talk.reloads(&caching("pool_size = 2", &[]));
        scene.asks_server(&scene.bob, "1", "one");
    }
}

#[test]
fn nothing_is_kept_or_given_in_a_transaction() {
    for way in WAYS {
        // S2: what a transaction reads may be rolled back.
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.opens_block(&scene.server);
        scene.bob.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
        let mut reply = way.reply("dirty");
        reply.pop();
        reply.push(ready_in_block());
        scene.bob.sends(way.request("1"));
        if scene.server.forgets().len() < way.sent("1").len() {
            scene.server.answers(reply[1..].to_vec());
        } else {
            scene.server.answers(reply.clone());
        }
        scene.bob.gets(reply);
        scene.bob.asks(&scene.server, "rollback", [complete("ROLLBACK"), ready()]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.hits(&scene.bob, "1", "one");
    }
}

#[test]
fn a_reply_that_a_write_overtakes_is_not_kept() {
    for way in WAYS {
        // S6.
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        let sent = scene.server.forgets();
        scene.bob.sends([query(UPDATE)]);
        let (second, done) = (scene.talk.server(2), [complete("UPDATE 1"), ready()]);
        second.gets([query(UPDATE)]).answers(done.clone());
        scene.bob.gets(done);
        let whole = sent.len() == way.sent("1").len();
        scene.server.answers(if whole { way.reply("one") } else { way.answered("one") });
        scene.alice.gets(way.reply("one"));
        assert_eq!(scene.talk.counters().protocol.cache_fills_outdated, 1);
        scene.goes_to_a_server(&scene.alice, "1");
    }
}

#[test]
fn a_reply_with_an_error_or_a_notice_is_not_kept() {
    for way in WAYS {
        // S13, S14.
        let scene = Scene::known(way, &[RULE]);
        for end in [
            vec![error("22012", "division by zero"), ready()],
            vec![notice("careful"), complete("SELECT 1"), ready()],
        ] {
            scene.alice.sends(way.request("1"));
            let whole = scene.server.forgets().len() == way.sent("1").len();
            let begun = way.begun("one");
            scene
                .server
                .answers(if whole || way != Way::Unnamed { &begun } else { &begun[1..] }.to_vec());
            scene.server.answers(end.clone());
            scene.alice.gets([begun, end].concat());
        }
        assert_eq!(scene.talk.counters().protocol.cache_fills, 0);
        scene.asks_server(&scene.alice, "1", "one");
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_reply_that_is_too_long_is_passed_on_and_not_kept() {
    for way in WAYS {
        let scene = Scene::known(way, &["max_result_size = \"64B\""]);
        let long = "x".repeat(100);
        scene.asks_server(&scene.alice, "1", &long);
        scene.asks_server(&scene.alice, "1", &long);
        assert_eq!(scene.talk.counters().protocol.cache_fills, 0);
    }
}

#[test]
fn a_portal_with_a_limit_of_rows_goes_to_the_server() {
    let scene = Scene::known(Way::Named, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    let limited = |name| [bind_value("", name, "1"), execute_rows("", 1), sync()];
    let reply = [bind_complete(), row(&["one"]), suspended(), ready()];
    for _ in 0..2 {
        scene.alice.sends(limited("s"));
        scene.server.gets(limited("~1")).answers(reply.clone());
        scene.alice.gets(reply.clone());
    }
    scene.hits(&scene.alice, "1", "one");
}

#[test]
fn a_value_that_may_name_the_present_goes_to_the_server() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        for value in ["today", " Now", "yesterday noon"] {
            scene.asks_server(&scene.alice, value, "one");
            scene.asks_server(&scene.alice, value, "two");
        }
        assert_eq!(scene.talk.counters().protocol.cache_bypass_moment, 6);
    }
}

#[test]
fn clients_with_other_settings_get_replies_of_their_own() {
    for way in WAYS {
        // S3.
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.alice.sends([query("set datestyle = german")]);
        scene.server.gets([query("set datestyle = german")]);
        let set = [complete("SET"), parameter("DateStyle", "German, DMY"), ready()];
        scene.server.answers(set.clone());
        scene.alice.gets(set);
        scene.goes_to_a_server(&scene.alice, "1");
        scene.hits(&scene.bob, "1", "one");
    }
}

#[test]
fn users_get_each_others_replies_only_where_a_rule_says_so() {
    for (rule, shares) in [(RULE.to_owned(), false), (format!("{RULE}\nshare_group = \"g\""), true)]
    {
        let options = "auth = \"trust\"\n[pool]\npool_size = 2\ntrack_functions = \"off\"\n\
                       [databases.\"*\"]\nurl = \"postgres://127.0.0.1:1\"\n";
        let rules = format!("{options}\n[[cache.rules]]\n{rule}\n");
        let scene = Scene::with(Way::Simple, rules).becomes_known();
        scene.asks_server(&scene.alice, "1", "one");
        let carol = scene.talk.client_with(&[("user", "carol")]);
        for _ in 0..6 {
            carol.sends(Way::Simple.request("0"));
            scene.talk.server(2).forgets();
            scene.talk.server(2).answers(Way::Simple.reply("0"));
            carol.forgets();
        }
        scene.talk.waits(SECOND);
        let mentioned = Mentioned { relations: vec!["\"t\"".to_owned()], ..Mentioned::default() };
        scene.talk.read(scene.talk.read_case(), Ok(mentioned));
        scene.talk.server(2).forgets();
        scene.talk.server(2).answers(answer(&[&[READS]]));
        carol.sends(Way::Simple.request("1"));
        if shares {
            carol.gets(Way::Simple.reply("one"));
        } else {
            carol.gets_nothing();
            scene.talk.server(2).forgets();
        }
    }
}

#[test]
fn segments_are_answered_one_by_one_whatever_comes_behind() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.asks_server(&scene.alice, "2", "two");
        scene.bob.sends([way.request("1"), way.request("2"), way.request("1")].concat());
        scene.bob.gets([way.reply("one"), way.reply("two"), way.reply("one")].concat());
        // What is not there goes to a server, and all that comes behind it.
        scene.bob.sends([way.request("1"), way.request("3"), way.request("1")].concat());
        assert!(!scene.server.forgets().is_empty());
        let (got, due) = (scene.bob.forgets(), way.reply("one"));
        assert!(got.starts_with(&due) && got.len() < 2 * due.len());
    }
}

#[test]
fn a_segment_that_comes_in_pieces_goes_to_the_server() {
    for way in [Way::Named, Way::Unnamed] {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        let mut request = way.request("1");
        let end = request.pop().unwrap();
        scene.bob.sends(request).sends([end]);
        scene.server_answers(&scene.bob, "1", "one");
    }
}

#[test]
fn a_clients_unnamed_statement_is_what_its_last_parse_said() {
    let scene = Scene::known(Way::Unnamed, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.hits(&scene.bob, "1", "one");
    // The server has not got this Parse from bob, and runs the statement all the same.
    scene.bob.sends([bind_value("", "", "5"), execute(""), sync()]);
    scene.server.gets([bind_value("", "", "5"), execute(""), sync()]);
    let reply = [bind_complete(), row(&["five"]), complete("SELECT 1"), ready()];
    scene.server.answers(reply.clone());
    scene.bob.gets(reply);
}

#[test]
fn a_client_that_leaves_leaves_no_fill_behind() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        let whole = scene.server.forgets().len() == way.sent("1").len();
        scene.alice.forgets();
        scene.alice.breaks();
        scene.server.answers(if whole { way.reply("one") } else { way.answered("one") });
        scene.server.gets([query("DISCARD ALL")]).answers([complete("DISCARD ALL"), ready()]);
        assert_eq!(scene.talk.counters().protocol.cache_fills, 0);
        scene.goes_to_a_server(&scene.bob, "1");
    }
}

#[test]
fn one_client_fetches_and_the_others_wait_and_get_the_same() {
    for way in WAYS {
        // S16.
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        assert_eq!(scene.talk.connections(), 1);
        scene.server_answers(&scene.alice, "1", "one");
        scene.bob.gets(way.reply("one"));
        let counters = scene.talk.counters().protocol;
        assert_eq!((counters.cache_misses, counters.cache_waits, counters.cache_hits), (1, 1, 1));
    }
}

#[test]
fn an_error_is_not_shared_and_another_client_fetches() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        scene.server.forgets();
        scene.alice.forgets();
        scene.server.answers([error("57014", "canceled"), ready()]);
        scene.alice.gets([error("57014", "canceled"), ready()]);
        scene.server_answers(&scene.bob, "1", "one");
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_client_that_fetches_and_leaves_hands_over() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        scene.bob.sends(way.request("1")).gets_nothing();
        scene.server.forgets();
        scene.alice.forgets();
        scene.alice.breaks();
        scene.talk.waits(SECOND);
        assert!(!scene.talk.server(2).forgets().is_empty());
        scene.bob.forgets();
    }
}

#[test]
fn who_comes_behind_a_write_does_not_wait_for_a_reply_from_before_it() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        scene.server.forgets();
        scene.alice.forgets();
        let carol = scene.talk.client();
        carol.sends([query(UPDATE)]);
        let (second, done) = (scene.talk.server(2), [complete("UPDATE 1"), ready()]);
        second.gets([query(UPDATE)]).answers(done.clone());
        carol.gets(done);
        // The row that alice is being sent is the old one.
        scene.bob.sends(way.request("1"));
        assert!(!second.forgets().is_empty());
        scene.bob.forgets();
    }
}

#[test]
fn nobody_waits_for_longer_than_the_bound() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.alice.sends(way.request("1"));
        scene.server.forgets();
        scene.alice.forgets();
        scene.bob.sends(way.request("1")).gets_nothing();
        scene.talk.waits(4 * SECOND);
        scene.bob.gets_nothing();
        assert_eq!(scene.talk.connections(), 1);
        scene.talk.waits(2 * SECOND);
        assert!(!scene.talk.server(2).forgets().is_empty());
        scene.bob.forgets();
    }
}

#[test]
fn clients_of_other_cores_wait_and_hit_as_well() {
    let scene = Scene::new_on(2, Way::Simple, &[RULE]).becomes_known();
    let carol = scene.talk.client_on(1);
    carol.sends(Way::Simple.request("1"));
    // The verdict is shared; the text is new to the core.
    scene.talk.server(2).gets(Way::Simple.sent("1"));
    scene.alice.sends(Way::Simple.request("1")).gets_nothing();
    scene.talk.server(2).answers(Way::Simple.reply("one"));
    carol.gets(Way::Simple.reply("one"));
    scene.alice.gets(Way::Simple.reply("one"));
    scene.hits(&scene.bob, "1", "one");
}

#[test]
fn comments_that_differ_with_each_request_do_not_part_replies() {
    let scene = Scene::known(Way::Simple, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    for number in 0..3 {
        let text = format!("select a from t where b = '1' /*traceparent='00-{number}'*/");
        scene.bob.sends([query(&text)]).gets(Way::Simple.reply("one"));
    }
    scene.server.gets_nothing();
}

#[test]
fn replies_that_arrive_in_pieces_are_kept_while_there_is_room_for_them() {
    let limit = "[cache]\nmemory = \"16MiB\"\n";
    let scene = Scene::with(Way::Simple, caching("pool_size = 8", &[RULE]) + limit).becomes_known();
    let (long, short) = ("x".repeat(180_000), "y".repeat(1000));
    // Six of them are more than a sixteenth of the limit.
    let clients: Vec<Party> = (1..7).map(|_| scene.talk.client()).collect();
    for (number, client) in (1..7).zip(&clients) {
        client.sends(Way::Simple.request(&number.to_string()));
        let server = scene.talk.server(number);
        server.forgets();
        server.answers([columns(&["a"]), row(&[&long])]);
    }
    for (number, client) in (1..7).zip(&clients) {
        let server = scene.talk.server(number);
        server.answers([row(&[&short]), complete("SELECT 2"), ready()]);
        assert_eq!(client.forgets().len(), 5);
    }
    let counters = scene.talk.counters().protocol;
    assert_eq!((counters.cache_fills, counters.cache_fills_refused), (5, 1));
    scene.bob.sends(Way::Simple.request("1"));
    assert_eq!(scene.bob.forgets().len(), 5);
    scene.server.gets_nothing();
}

//! Reads: Refrain finds out which statements only read.

use std::time::Duration;

use refrain_sql::reads::{Mentioned, Objection};

use crate::talk::*;

pub(crate) const READ: &str = "select a from t where b = $1";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
const SHARING: &str = "pool_size = 1\nshare_servers = \"reads\"";

/// Returns what the grammar finds in [`READ`].
pub(crate) fn mentioned() -> Mentioned {
    Mentioned {
        relations: vec!["\"t\"".to_owned()],
        functions: vec!["f".to_owned()],
        operators: vec!["=".to_owned()],
        ..Mentioned::default()
    }
}

/// Returns the question whose names are these.
pub(crate) fn question(names: &str) -> Vec<Line> {
    let guarded = [internal("'lock_timeout', '10ms'"), internal("'search_path'")].concat();
    [guarded, internal(names), vec![sync()]].concat()
}

/// The names of a question about [`READ`] alone.
pub(crate) const NAMES: &str = "(VALUES (0,'s',''),(0,'r','\"t\"'),(0,'f','f'),(0,'o','=')),";

pub(crate) fn answer(objections: &[&[&str]]) -> Vec<Line> {
    [internal_answer(&[]), internal_answer(&[]), internal_answer(objections), vec![ready()]]
        .concat()
}

/// Returns an answer with an error in place of the question's rows.
pub(crate) fn refusal(sqlstate: &str) -> Vec<Line> {
    let refused = vec![close_complete(), error(sqlstate, "no"), ready()];
    [internal_answer(&[]), internal_answer(&[]), refused].concat()
}

impl Party {
    /// Runs a prepared statement once, which the server has under this name.
    pub(crate) fn reads(&self, server: &Party, name: &str, there: &str) {
        self.sends([bind("", name), execute(""), sync()]);
        server.gets([bind("", there), execute(""), sync()]);
        server.answers([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
        self.gets([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
    }

    /// Prepares a statement, which the server has as `there`, and runs it often.
    pub(crate) fn uses(&self, server: &Party, name: &str, text: &str, there: &str) {
        let described = |rest: &[Line]| {
            [&[parse_complete(), parameters(&[23]), columns(&["a"])], rest].concat()
        };
        self.sends([parse(name, text), describe_statement(name), sync()]);
        server.gets([parse("", text), describe_statement(""), sync()]);
        server.answers(described(&[ready()]));
        self.gets(described(&[ready()]));
        self.reads(server, name, "");
        self.sends([bind("", name), execute(""), sync()]);
        // Whether it gets the Bind at once is tested elsewhere (`messages::check`).
        server.forgets();
        server.answers(described(&[]));
        server.forgets();
        server.answers([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
        self.gets([bind_complete(), row(&["1"]), complete("SELECT 1"), ready()]);
        (0..4).for_each(|_| self.reads(server, name, there));
    }
}

/// Returns what is known of each statement, in order.
pub(crate) fn known(talk: &Conversation) -> Vec<String> {
    let known = talk.statements().into_iter().filter(|statement| statement.id != 0);
    known.map(|statement| statement.read).collect()
}

/// Begins a conversation in which a server is asked about [`READ`].
pub(crate) fn asking() -> (Conversation, Party, Party) {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.uses(&server, "s", READ, "~1");
    assert_eq!(known(&talk), ["unknown"]);
    talk.waits(SECOND);
    assert_eq!(known(&talk), ["asked"]);
    let case = talk.read_case();
    assert_eq!(case.text(), READ.as_bytes());
    talk.read(case, Ok(mentioned()));
    (talk, alice, server)
}

#[test]
fn a_statement_to_which_the_catalog_has_no_objection_is_a_read() {
    let (talk, alice, server) = asking();
    server.gets(question(NAMES)).answers(answer(&[]));
    assert_eq!(known(&talk), ["yes"]);
    assert_eq!(talk.counters().protocol.reads_verified, 1);
    alice.reads(&server, "s", "~1");
}

#[test]
fn the_first_objection_is_the_reason_and_some_are_about_all_statements() {
    for (row, reason) in [("0 volatile", "no: volatile"), ("-1 cast", "no: cast")] {
        let (talk, _, server) = asking();
        server.gets(question(NAMES)).answers(answer(&[&[row], &["0 catalog"]]));
        assert_eq!(known(&talk), [reason]);
        assert_eq!(talk.counters().protocol.reads_refused, 1);
    }
}

#[test]
fn a_text_that_is_no_read_is_not_asked_about() {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.uses(&server, "s", "select a from t for update", "~1");
    talk.waits(SECOND);
    talk.read(talk.read_case(), Err(Objection::Locks));
    alice.reads(&server, "s", "~1");
    server.gets_nothing();
    assert_eq!(known(&talk), ["no: locks"]);
    // The text does not change.
    alice.asks(&server, "create table x ()", [complete("CREATE TABLE"), ready()]);
    talk.waits(SECOND * 90);
    assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "no: locks"));
}

#[test]
fn nobody_asks_about_what_a_scan_shows_to_write() {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    let write = "update t set a = $1";
    alice.prepares_by_name(&server, "s", write, "~1");
    (0..6).for_each(|_| alice.runs(&server, "s", [bind("", "~1")]));
    talk.waits(SECOND);
    assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "no: kind"));
}

#[test]
fn nobody_asks_where_servers_are_not_shared() {
    for pool in
        ["pool_size = 1", "pool_size = 1\nshare_servers = \"reads\"\npool_mode = \"session\""]
    {
        let talk = Conversation::new(options(pool));
        let (alice, server) = (talk.client(), talk.server(1));
        alice.uses(&server, "s", READ, "~1");
        talk.waits(SECOND);
        assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "unknown"));
    }
}

#[test]
fn a_schema_change_voids_the_verdict() {
    let (talk, alice, server) = asking();
    server.gets(question(NAMES)).answers(answer(&[]));
    alice.asks(&server, "create table x ()", [complete("CREATE TABLE"), ready()]);
    assert_eq!(known(&talk), ["asked"]);
    // The next look finds out again, long before the old verdict would have been too old.
    talk.waits(SECOND);
    talk.read(talk.read_case(), Ok(mentioned()));
    server.gets(question(NAMES)).answers(answer(&[]));
    assert_eq!(known(&talk), ["yes"]);
    talk.waits(SECOND * 2);
    assert_eq!(talk.read_cases(), 0);
}

#[test]
fn a_statement_in_use_is_asked_about_again_and_another_is_forgotten() {
    let (talk, alice, server) = asking();
    server.gets(question(NAMES)).answers(answer(&[]));
    talk.waits(SECOND * 59);
    assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "yes"));
    alice.reads(&server, "s", "~1");
    talk.waits(SECOND * 2);
    assert_eq!(known(&talk), ["yes"], "the old verdict counts until there is a new one");
    talk.read(talk.read_case(), Ok(mentioned()));
    server.gets(question(NAMES)).answers(answer(&[&["0 relation"]]));
    assert_eq!(known(&talk), ["no: relation"]);
    talk.waits(SECOND * 90);
    assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "asked"));
}

#[test]
fn a_statement_that_rested_as_the_schema_changed_is_asked_about_when_it_is_used_again() {
    let (talk, alice, server) = asking();
    server.gets(question(NAMES)).answers(answer(&[]));
    talk.waits(SECOND * 40);
    alice.asks(&server, "create table x ()", [complete("CREATE TABLE"), ready()]);
    talk.waits(SECOND * 2);
    assert_eq!((talk.read_cases(), &*known(&talk)[0]), (0, "asked"));
    alice.reads(&server, "s", "~1");
    talk.waits(SECOND * 2);
    talk.read(talk.read_case(), Ok(mentioned()));
    server.gets(question(NAMES)).answers(answer(&[]));
    assert_eq!(known(&talk), ["yes"]);
}

#[test]
fn a_server_that_waited_for_a_lock_is_asked_again_later() {
    let (talk, alice, server) = asking();
    server.gets(question(NAMES)).answers(refusal("55P03"));
    assert_eq!(known(&talk), ["asked"]);
    alice.reads(&server, "s", "~1");
    talk.waits(SECOND * 6);
    talk.read(talk.read_case(), Ok(mentioned()));
    server.gets(question(NAMES)).answers(answer(&[]));
    assert_eq!(known(&talk), ["yes"]);
}

#[test]
fn a_server_that_went_is_replaced_by_another_question() {
    let (talk, _, server) = asking();
    server.gets(question(NAMES)).breaks();
    assert_eq!(known(&talk), ["asked"]);
    let bob = talk.client();
    bob.asks_another(&talk, 2, "show a");
    talk.waits(SECOND * 6);
    talk.read(talk.read_case(), Ok(mentioned()));
    talk.server(2).gets(question(NAMES)).answers(answer(&[]));
    assert_eq!(known(&talk), ["yes"]);
}

#[test]
fn statements_of_one_question_are_asked_about_alone_if_it_fails() {
    let talk = Conversation::new(options(SHARING));
    let (alice, server) = (talk.client(), talk.server(1));
    let other = "select a from u";
    alice.uses(&server, "s", READ, "~1");
    alice.uses(&server, "o", other, "~2");
    talk.waits(SECOND);
    let cases = [talk.read_case(), talk.read_case()];
    let mut texts: Vec<_> = cases.iter().map(|case| case.text().to_vec()).collect();
    // Both wait until the server is free.
    alice.asks(&server, "begin", [complete("BEGIN"), ready_in_block()]);
    cases.into_iter().for_each(|case| talk.read(case, Ok(mentioned())));
    alice.asks(&server, "commit", [complete("COMMIT"), ready()]);
    server.gets(question("(0,'o','='),(1,'s',''),(1,'r',")).answers(refusal("42501"));
    server.gets(question(NAMES)).answers(refusal("42501"));
    server.gets(question(NAMES)).answers(answer(&[]));
    let mut due = ["no: server", "yes"];
    if texts.remove(0) != READ.as_bytes() {
        due.reverse();
    }
    assert_eq!(known(&talk), due);
}

//! Waiting reads: statements wait for what other pools find out, or for their host to have rested.

use std::time::Duration;

use refrain_pg::statement::base36;

use crate::step::reads::{NAMES, READ, SECOND, answer, asking, known, mentioned, question};
use crate::talk::*;

/// The longest that a question counts.
const FIFTY_MS: Duration = Duration::from_millis(50);

/// Runs [`READ`] often by one client in each of two pools, whose names are those of one database;
/// those of the second log in to servers as `user`. A server of the first one is asked.
fn asks_of_two(user: &str) -> (Conversation, Party, [Party; 2]) {
    let talk = Conversation::new(format!(
        "auth = \"trust\"\n[pool]\npool_size = 1\ntrack_functions = \"off\"\n\
         [databases.d]\nurl = \"postgres://u@127.0.0.1:1/one\"\n\
         [databases.e]\nurl = \"postgres://{user}@127.0.0.1:1/one\"\n"
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.uses(&server, "s", READ, "~1");
    talk.waits(SECOND);
    talk.read(talk.read_case(), Ok(mentioned()));
    let bob = talk.newcomer();
    bob.sends([startup(0, &[("user", "u"), ("database", "e")])]);
    bob.is_let_in();
    let other = talk.server(2);
    bob.uses(&other, "s", READ, "~2");
    talk.waits(SECOND);
    talk.read(talk.read_case(), Ok(mentioned()));
    talk.waits(SECOND);
    // The host is asked already: the second pool waits for the answer.
    other.gets_nothing();
    server.gets(question(NAMES)).answers(answer(&[]));
    talk.waits(SECOND);
    (talk, bob, [server, other])
}

/// Counts the questions of all pools.
fn questions(talk: &Conversation) -> u64 {
    talk.snapshot().pools.iter().map(|pool| pool.counters.protocol.read_questions).sum()
}

#[test]
fn pools_that_log_in_alike_ask_once() {
    let (talk, bob, [_, other]) = asks_of_two("u");
    other.gets_nothing();
    assert_eq!((known(&talk), questions(&talk)), (vec!["yes".to_owned(); 2], 1));
    bob.reads(&other, "s", "~2");
}

#[test]
fn another_user_is_another_question() {
    let (talk, _, [_, other]) = asks_of_two("v");
    other.gets(question(NAMES)).answers(answer(&[&["0 volatile"]]));
    let mut known = known(&talk);
    known.sort();
    assert_eq!((known, questions(&talk)), (vec!["no: volatile".to_owned(), "yes".to_owned()], 2));
}

/// Returns the name of a statement on servers, by its number.
fn internal(number: u64) -> String {
    let mut name = b"~".to_vec();
    base36(&mut name, number);
    String::from_utf8(name).expect("digits")
}

#[test]
fn a_host_that_was_asked_enough_is_asked_when_it_has_rested() {
    let (talk, alice, server) = asking();
    // Questions of 50 ms count for five seconds each; three hundred are saved up at the beginning.
    let mut asked = 1;
    while questions(&talk) == asked {
        server.gets(question(NAMES));
        talk.waits(FIFTY_MS);
        server.answers(answer(&[]));
        asked += 1;
        let name = format!("s{asked}");
        alice.uses(&server, &name, &format!("{READ} and '{name}' = ''"), &internal(asked));
        talk.waits(FIFTY_MS);
        talk.read(talk.read_case(), Ok(mentioned()));
    }
    assert_eq!(asked, 63);
    server.gets_nothing();
    let count = |verdict| known(&talk).iter().filter(|it| *it == verdict).count();
    assert_eq!((count("yes"), count("asked")), (62, 1));
    talk.waits(5 * SECOND);
    server.gets(question(NAMES)).answers(answer(&[]));
    assert_eq!((count("yes"), questions(&talk)), (63, 63));
}

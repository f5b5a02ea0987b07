//! Requests that are looked at now and then, to see which are repeated.

use std::time::Duration;

use refrain_pg::Repeated;

use crate::step::answer::SECOND;
use crate::talk::*;

/// Asks the server something that takes a millisecond.
fn asks_slowly(talk: &Conversation, client: &Party, server: &Party, text: &str) {
    client.sends([query(text)]);
    server.gets([query(text)]);
    talk.waits(Duration::from_millis(1));
    server.answers(one_row());
    client.gets(one_row());
}

/// Waits until a second is looked at: at most thirty.
fn until_a_look(talk: &Conversation, client: &Party, server: &Party) {
    let texts = || talk.snapshot().protocol.repeats.len();
    let before = texts();
    for number in 0..130 {
        asks_slowly(talk, client, server, &format!("select a from t{number}"));
        if texts() > before {
            return;
        }
        talk.waits(SECOND / 4);
    }
    panic!("nobody looks");
}

#[test]
fn a_read_that_is_repeated_within_a_second_counts() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    until_a_look(&talk, &alice, &server);
    for (client, text) in [
        (&alice, "select a from t where b = 1"),
        (&alice, "select a from t where b = 2"),
        (&bob, "select a from t where b = 1"),
        (&bob, "insert into t values (1)"),
    ] {
        asks_slowly(&talk, client, &server, text);
    }
    let rows = talk.snapshot().protocol.repeats;
    let row = rows.iter().find(|row| row.text == "select a from t where b = 0");
    let Repeated { requests, repeats, repeated_us, .. } = row.expect("it was looked at").counts;
    // One second of thirty is looked at.
    assert_eq!((requests, repeats), (3 * 30, 30));
    assert!(repeated_us >= 30_000, "{repeated_us}");
    assert!(rows.iter().all(|row| !row.text.contains("insert")));
    // In the seconds behind that nobody looks.
    talk.waits(5 * SECOND);
    asks_slowly(&talk, &alice, &server, "select a from t where b = 1");
    asks_slowly(&talk, &bob, &server, "select a from t where b = 1");
    let rows = talk.snapshot().protocol.repeats;
    let row = rows.iter().find(|row| row.text == "select a from t where b = 0");
    assert_eq!(row.map(|row| row.counts.requests), Some(3 * 30));
}

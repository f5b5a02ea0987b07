//! Messages that come in pieces while their session writes.

use refrain_pg_wire::tag::front;

use refrain_sqlite_pg::Progress;

use crate::client::{Client, Place};

/// Maximum length of one receive of the program, in bytes.
const PIECE: usize = 64 * 1024;

fn table(place: &Place) -> Client {
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    client
}

/// Returns how many rows and how many characters another client sees.
fn counted(place: &Place) -> String {
    place.client().query("SELECT count(*), sum(length(name)) FROM t")[1].clone()
}

#[test]
fn a_copy_larger_than_a_receive_ends() {
    for size in [100, 5_000, 2_000_000] {
        let place = Place::new();
        let mut client = table(&place);
        client.say(front::QUERY, b"COPY t (name) FROM STDIN\0");
        assert_eq!(client.answers(), ["copy in"]);
        let line = [b"x".repeat(99).as_slice(), b"\n"].concat();
        let data = line.repeat(20_000);
        for part in data.chunks(size) {
            client.say(front::COPY_DATA, part);
        }
        client.say(front::COPY_DONE, b"");
        assert_eq!(client.send_in_pieces(PIECE), ["COPY 20000", "ready I"], "{size}");
        assert_eq!(counted(&place), "row 20000|1980000", "{size}");
    }
}

#[test]
fn a_long_text_in_a_block_is_run() {
    let place = Place::new();
    let mut client = table(&place);
    assert_eq!(client.query("BEGIN; INSERT INTO t VALUES (1, 'a')").last().unwrap(), "ready T");
    let text = format!("INSERT INTO t VALUES (2, '{}')\0", "x".repeat(400_000));
    client.say(front::QUERY, text.as_bytes());
    assert_eq!(client.send_in_pieces(PIECE), ["INSERT 0 1", "ready T"]);
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready I"]);
    assert_eq!(counted(&place), "row 2|400001");
}

#[test]
fn a_long_parameter_in_a_block_is_bound() {
    let place = Place::new();
    let mut client = table(&place);
    client.query("BEGIN; INSERT INTO t VALUES (1, 'a')");
    let long = b"x".repeat(300 * 1024);
    client.parse("", "INSERT INTO t VALUES (2, $1)", &[]).bind(("", ""), 0, &[Some(&long)], 0);
    client.execute("", 0).say(front::SYNC, b"");
    assert_eq!(client.send_in_pieces(PIECE), ["parsed", "bound", "INSERT 0 1", "ready T"]);
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready I"]);
    assert_eq!(counted(&place), "row 2|307201");
}

#[test]
fn a_client_that_leaves_amid_a_message_lets_others_write() {
    let place = Place::new();
    let mut gone = table(&place);
    gone.query("BEGIN; INSERT INTO t VALUES (1, 'a')");
    let long = format!("INSERT INTO t VALUES (2, '{}')\0", "x".repeat(400_000));
    gone.say(front::QUERY, long.as_bytes());
    gone.asked().truncate(300_000);
    assert_eq!(gone.send_in_pieces(PIECE), [""; 0]);
    drop(gone);
    let mut other = place.client();
    other.query("SET lock_timeout = '20s'");
    assert_eq!(other.query("INSERT INTO t VALUES (3, 'abc')"), ["INSERT 0 1", "ready I"]);
    assert_eq!(counted(&place), "row 1|3");
}

#[test]
fn a_thread_copies_a_long_message() {
    let place = Place::new();
    let mut client = table(&place);
    let long = b"x".repeat(300 * 1024);
    client.parse("", "SELECT length($1::text)", &[]).bind(("", ""), 0, &[Some(&long)], 0);
    client.execute("", 0).say(front::SYNC, b"");
    let later = client.asked().split_off(200 * 1024);
    let progress = client.send();
    assert_eq!(progress, Progress::Waiting);
    assert_eq!(client.wait(progress), ["parsed"]);
    client.asked().extend(later);
    assert_eq!(client.answers(), ["bound", "row 307200", "SELECT 1", "ready I"]);
}

#[test]
fn a_thread_frees_a_long_parameter() {
    let place = Place::new();
    let mut client = table(&place);
    let long = b"x".repeat(100 * 1024);
    client.parse("", "SELECT length($1::text)", &[]).bind(("", ""), 0, &[Some(&long)], 0);
    client.execute("", 0).say(front::FLUSH, b"");
    assert_eq!(client.answers(), ["parsed", "bound", "row 102400", "SELECT 1"]);
    client.say(front::SYNC, b"");
    let progress = client.send();
    assert_eq!(progress, Progress::Waiting);
    assert_eq!(client.wait(progress), ["ready I"]);
}

#[test]
fn a_message_of_megabytes_is_put_together_once() {
    let place = Place::new();
    let mut client = table(&place);
    let long = b"x".repeat(16 << 20);
    client.parse("", "INSERT INTO t VALUES (2, $1)", &[]).bind(("", ""), 0, &[Some(&long)], 0);
    client.execute("", 0).say(front::SYNC, b"");
    // In pieces of 500 bytes. To copy all bytes for each piece would move 280 GB.
    assert_eq!(client.send_in_pieces(500), ["parsed", "bound", "INSERT 0 1", "ready I"]);
    assert_eq!(counted(&place), "row 1|16777216");
}

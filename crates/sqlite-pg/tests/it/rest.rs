//! The WAL is copied into the file when no session writes any more.

use std::time::{Duration, Instant};

use crate::client::Place;

/// Maximum time of a wait for an event that takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until all pages of the WAL are in the file.
fn wait_until_copied(place: &Place) {
    let other = rusqlite::Connection::open(&place.path).unwrap();
    let begun = Instant::now();
    loop {
        let state = other.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let (pages, copied) = state.unwrap();
        if pages > 0 && pages == copied {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{copied} of {pages} pages are copied");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_written_is_copied_into_the_file() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER)");
    client.query("INSERT INTO t VALUES (1)");
    wait_until_copied(&place);
    // The same after a reader has left whose snapshot is older.
    let mut reader = place.client();
    reader.query("BEGIN; SELECT * FROM t");
    let written = client.query("BEGIN; INSERT INTO t VALUES (2); COMMIT");
    assert_eq!(written, ["BEGIN", "INSERT 0 1", "COMMIT", "ready I"]);
    reader.query("COMMIT");
    wait_until_copied(&place);
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 2");
}

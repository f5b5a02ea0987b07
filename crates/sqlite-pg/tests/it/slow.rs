//! A statement that may take long does not run on the loop of many clients, delays no other client,
//! and can be cancelled.

use refrain_pg_wire::write;
use refrain_sqlite_pg::Progress;

use crate::client::{Client, Place};

/// Number of reads that run at the same time. More reads wait for a thread.
const AT_ONCE: usize = 64;

fn filled() -> (Place, Client) {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    client.query("CREATE VIEW counted AS SELECT count(*) AS n FROM t");
    client.query("INSERT INTO t VALUES (1, 'short'), (2, printf('%.*c', 300000, 'x'))");
    (place, client)
}

/// Runs a query. Returns the progress after it was sent, which tells where it began.
fn begins(client: &mut Client, sql: &str) -> Progress {
    write::query(client.asked(), sql.as_bytes());
    let progress = client.send();
    let answers = client.wait(progress);
    assert_eq!(answers.last().map(String::as_str), Some("ready I"), "{sql}: {answers:?}");
    progress
}

#[test]
fn a_statement_stays_on_the_loop_only_if_each_of_its_parts_is_short() {
    let (_place, mut client) = filled();
    for short in [
        "SELECT word FROM t WHERE id = 1",
        "SELECT upper(word), id + 1, max(id, 3) FROM t WHERE id = 1",
        "SELECT coalesce(word, 'none') FROM t WHERE id BETWEEN 1 AND 1",
    ] {
        assert_eq!(begins(&mut client, short), Progress::Idle, "{short}");
    }
    for long in [
        "SELECT instr(printf('%.*c', 4000, 'a'), 'b')",
        "SELECT 1 FROM t WHERE word LIKE '%x%y'",
        "SELECT replace(word, 'x', 'y') FROM t WHERE id = 1",
        "SELECT count(*) FROM t",
        "SELECT n FROM counted",
        "SELECT word FROM t WHERE id = 2",
        "SELECT length(word || 'y') FROM t WHERE id = 2",
        "PRAGMA integrity_check",
        "SELECT * FROM pragma_integrity_check",
    ] {
        assert_eq!(begins(&mut client, long), Progress::Waiting, "{long}");
    }
}

#[test]
fn a_long_message_is_read_elsewhere() {
    let (_place, mut client) = filled();
    let value = vec![b'x'; 200_000];
    client.parse("", "SELECT length($1)", &[25]).bind(("", ""), 0, &[Some(&value)], 0);
    client.execute("", 0).say(b'S', b"");
    let progress = client.send();
    assert_eq!(progress, Progress::Waiting);
    let answers = client.wait(progress);
    assert_eq!(answers, ["parsed", "bound", "row 200000", "SELECT 1", "ready I"]);
}

#[test]
fn a_single_step_that_reads_much_leaves_the_loop_and_can_be_stopped() {
    let (_place, mut client) = filled();
    client.query("CREATE TABLE wide (first BYTEA, behind INT)");
    client.query("INSERT INTO wide VALUES (zeroblob(50000000), 7)");
    assert_eq!(begins(&mut client, "SELECT behind FROM wide"), Progress::Waiting);
    assert_eq!(client.query("SELECT behind FROM wide")[1], "row 7");
    client.query("BEGIN; INSERT INTO t VALUES (3, 'kept'); SET statement_timeout = '1ms'");
    client.query("SAVEPOINT s");
    assert_eq!(client.query("SELECT behind FROM wide"), ["error 57014", "ready E"]);
    client.query("ROLLBACK TO s");
    client.query("SET statement_timeout = 0");
    assert_eq!(client.query("SELECT behind FROM wide")[1], "row 7");
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready I"]);
    assert_eq!(client.query("SELECT word FROM t WHERE id = 3")[1], "row kept");
}

#[test]
fn looking_up_what_a_text_means_may_take_long() {
    let (_place, mut client) = filled();
    let columns: Vec<_> = (0..1500).map(|number| format!("c{number} int")).collect();
    client.query(&format!("CREATE TABLE wide ({})", columns.join(", ")));
    let tables: Vec<_> = (0..40).map(|number| format!("wide t{number}")).collect();
    let join = format!("SELECT 1 AS a FROM {} LIMIT 1", tables.join(", "));
    let answers = client.query(&join);
    assert_eq!(answers[1..], ["SELECT 0", "ready I"], "{answers:?}");
}

#[test]
fn a_long_text_is_read_elsewhere() {
    let (_place, mut client) = filled();
    let list = |count: usize| format!("SELECT 1 WHERE 1 IN ({})", vec!["1"; count].join(", "));
    assert_eq!(begins(&mut client, &list(100)), Progress::Idle);
    assert_eq!(begins(&mut client, &list(2000)), Progress::Waiting);
    client.parse("", &list(2000), &[]).say(b'S', b"");
    let progress = client.send();
    assert_eq!(
        (progress, client.wait(progress)),
        (Progress::Waiting, vec!["parsed".to_owned(), "ready I".to_owned()])
    );
}

#[test]
fn a_row_that_is_long_is_handed_on_in_pieces() {
    let (_place, mut client) = filled();
    client.query("INSERT INTO t VALUES (3, printf('%.*c', 5000000, 'z'))");
    write::query(client.asked(), b"SELECT word FROM t WHERE id = 3");
    assert_eq!(client.send(), Progress::Waiting);
    let mut longest = 0;
    let mut all = Vec::new();
    crate::client::eventually("it comes to its end", || {
        let mut piece = Vec::new();
        let progress = client.session.resume(&mut piece);
        longest = longest.max(piece.len());
        all.extend(piece);
        progress == Progress::Idle
    });
    assert!(all.len() > 5_000_000 && longest < 1 << 20, "{} bytes, {longest} at once", all.len());
    assert!(all.ends_with(b"Z\0\0\0\x05I"));
    // A client that leaves in the middle of the rows leaves nothing behind.
    write::query(client.asked(), b"SELECT word FROM t WHERE id = 3");
    client.send();
    drop(client);
}

#[test]
fn rows_of_a_write_that_fill_the_output_are_told_once() {
    let (_place, mut client) = filled();
    let sql = "INSERT INTO t (word) SELECT 'x' FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
               SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n) RETURNING printf('%01000d', id)";
    client.parse("", sql, &[]).bind(("", ""), 0, &[], 0);
    let answers = client.execute("", 0).sync();
    let rows = answers.iter().filter(|answer| answer.starts_with("row")).count();
    assert_eq!((rows, answers.len()), (1000, 1004));
    assert_eq!(answers[1002..], ["INSERT 0 1000", "ready I"]);
}

#[test]
fn slow_reads_hold_up_no_other_and_who_waits_for_a_thread_can_stop() {
    let (place, mut client) = filled();
    let sleeper = || {
        let mut sleeper = place.client();
        write::query(sleeper.asked(), b"SELECT pg_sleep(600)");
        assert_eq!(sleeper.send(), Progress::Waiting);
        sleeper
    };
    let mut sleepers: Vec<_> = (0..8).map(|_| sleeper()).collect();
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 2");
    sleepers.extend((8..AT_ONCE).map(|_| sleeper()));
    client.query("SET statement_timeout = '200ms'");
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), ["error 57014", "ready I"]);
    client.query("SET statement_timeout = 0");
    write::query(client.asked(), b"SELECT count(*) AS n FROM t");
    let progress = client.send();
    client.session.cancel_handle().cancel();
    assert_eq!(client.wait(progress), ["error 57014", "ready I"]);
    client.parse("", "SELECT count(*) AS n FROM t", &[]).bind(("", ""), 0, &[], 0);
    client.execute("", 0).say(b'S', b"");
    let progress = client.send();
    client.session.cancel_handle().cancel();
    assert_eq!(client.wait(progress), ["error 57014", "ready I"]);
    drop(sleepers);
    assert_eq!(client.query("SELECT count(*) AS n FROM t")[1], "row 2");
}

#[test]
fn a_wait_for_another_process_ends_with_the_client_s_patience() {
    let (place, mut client) = filled();
    let other = rusqlite::Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let insert = "INSERT INTO t (word) VALUES ('later')";
    client.query("SET statement_timeout = '100ms'");
    assert_eq!(client.query(insert), ["error 57014", "ready I"]);
    assert_eq!(client.query(&format!("BEGIN; {insert}")), ["BEGIN", "error 57014", "ready E"]);
    client.query("ROLLBACK; SET statement_timeout = 0; SET lock_timeout = '100ms'");
    assert_eq!(client.query(insert), ["error 55P03", "ready I"]);
    client.query("SET lock_timeout = '1h'");
    write::query(client.asked(), insert.as_bytes());
    let progress = client.send();
    // A cancel that comes before the statement has begun comes too early, so it is repeated.
    let (handle, over) =
        (client.session.cancel_handle(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                handle.cancel();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        assert_eq!(client.wait(progress), ["error 57014", "ready I"]);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(client.query(insert), ["INSERT 0 1", "ready I"]);
}

#[test]
fn what_is_too_long_is_refused() {
    let options = refrain_sqlite::OpenOptions { max_length: 1 << 20, ..Default::default() };
    let place = Place::with(options);
    let mut client = place.client();
    let too_long = "SELECT length(printf('%.*c', 1048577, 'x'))";
    assert_eq!(client.query(too_long), ["error 54000", "ready I"]);
    assert_eq!(client.query(&too_long.replace("1048577", "1000000"))[1], "row 1000000");
    client.say(b'Q', &vec![b' '; (2 << 20) + (64 << 10)]);
    assert_eq!(client.answers(), ["error 54000"]);
}

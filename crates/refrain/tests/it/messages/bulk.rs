//! Large numbers of bytes, rows and messages, and slow readers.
//!
//! Cases E13, E21, E29 to E31, E87.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use refrain_differ::msg::{Bind, Msg};

use crate::session::{Session, bind, encode, execute, parse, query, startup};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

const MIB: usize = 1024 * 1024;
/// Maximum memory of the program, however many bytes pass through it.
const MEMORY_MAX: u64 = 64 * MIB as u64;

/// Writes the same bytes again and again, until the peer takes no more or has taken [`TAKEN_MAX`].
/// Returns how many MiB were written.
fn mib_taken(session: &Session, bytes: &[u8]) -> usize {
    let mut stream = session.second();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let bytes = bytes.repeat(MIB / bytes.len());
    (0..TAKEN_MAX).find(|_| stream.write_all(&bytes).is_err()).unwrap_or(TAKEN_MAX)
}

/// MiB that are more than the kernel's buffers of one connection hold.
const TAKEN_MAX: usize = 64;

#[test]
fn nothing_is_held_without_bound() {
    let database = database("bulk_bounds");
    let proxy = over_15().start();
    let select = encode(&[query("select 1")]);
    // A client that waits at its login.
    proxy.order(&format!("pause {database}"));
    let names = [("user", "postgres"), ("database", database)];
    let enters = Session::raw(proxy.addr(), &startup(0x0003_0000, &names));
    assert!(mib_taken(&enters, &select) < TAKEN_MAX, "it has not been let in");
    proxy.order(&format!("resume {database}"));
    drop(enters);
    // A client that does not read replies that Refrain gives without a server.
    let deaf = proxy.open(database);
    assert!(mib_taken(&deaf, &encode(&[Msg::Sync])) < TAKEN_MAX, "it has not read");
    // A console client that does not read, and one that waits for its reply.
    let deaf = proxy.console();
    assert!(mib_taken(&deaf, &encode(&[query("show help")])) < TAKEN_MAX, "it has not read");
    let mut holder = proxy.open(database);
    holder.run("begin");
    let mut waits = proxy.console();
    waits.send(&[query(&format!("pause {database}"))]);
    assert!(mib_taken(&waits, &select) < TAKEN_MAX, "it has not been answered");
    holder.run("commit");
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

/// Number of Syncs whose replies are more than the kernel's buffers hold.
const SYNCS: usize = 2_000_000;

#[test]
fn what_was_held_back_is_read_on() {
    let database = database("bulk_held_back");
    let proxy = over_15().start();
    let mut slow = proxy.open(database);
    let writer = write_beside(&slow, encode(&[Msg::Sync]).repeat(SYNCS));
    thread::sleep(Duration::from_millis(300));
    let mut replies = vec![0; 6 * SYNCS];
    slow.second().read_exact(&mut replies).unwrap();
    assert!(replies.chunks(6).all(|reply| reply == b"Z\0\0\0\x05I"));
    writer.join().unwrap();
    assert_eq!(slow.value("select 1"), "1");
}

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Writes from another thread, while this one reads the replies.
fn write_beside(session: &Session, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    let mut stream = session.second();
    thread::spawn(move || stream.write_all(&bytes).unwrap())
}

pub(crate) fn copies(proxy: &Proxy, database: &str, mib: usize) {
    let mut session = proxy.open(database);
    session.run("drop table if exists t; create table t (a text)");
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let mut bytes = encode(&[query("copy t from stdin")]);
    for _ in 0..mib * 4 {
        Msg::CopyData(line.repeat(256)).encode(&mut bytes);
    }
    Msg::CopyDone.encode(&mut bytes);
    let writer = write_beside(&session, bytes);
    assert_eq!(session.ready().words(), format!("G C(COPY {}) Z(I)", mib * 1024));
    writer.join().unwrap();
    session.send(&[query("copy t to stdout")]);
    let (mut got, mut last) = (0, Vec::new());
    while let Some(frame) = session.answer() {
        match frame.tag {
            b'd' => got += frame.body.len(),
            b'Z' => break,
            _ => last = frame.body,
        }
    }
    assert_eq!((got, last), (mib * MIB, format!("COPY {}\0", mib * 1024).into_bytes()));
    assert_eq!(session.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
}

#[test]
fn copy_of_20_mib_in_and_out() {
    let database = database("bulk_copy");
    let proxy = over_15().start();
    copies(&proxy, database, 20);
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

#[test]
fn e13_e21_one_value_of_100_mib() {
    let database = database("bulk_value");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    let value = vec![b'v'; 100 * MIB];
    let bind = Msg::Bind(Bind { values: vec![Some(value)], ..Bind::default() });
    let msgs = [parse("", "select length($1), $1"), bind, execute(), Msg::Sync];
    let writer = write_beside(&session, encode(&msgs));
    let mut tags = String::new();
    while let Some(frame) = session.answer() {
        tags.push(char::from(frame.tag));
        if frame.tag == b'D' {
            assert_eq!(&frame.body[6..15], b"104857600");
            assert_eq!(frame.body.len(), 2 + 4 + 9 + 4 + 100 * MIB);
        }
        if frame.tag == b'Z' {
            break;
        }
    }
    assert_eq!(tags, "12DCZ");
    writer.join().unwrap();
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

#[test]
fn e13_e87_a_text_of_20_mib() {
    let database = database("bulk_text");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    let sql = format!("select length('{}')", "x".repeat(20 * MIB));
    for named in ["", "s"] {
        let msgs = [parse(named, &sql), bind(named, &[]), execute(), Msg::Sync];
        assert_eq!(session.ask(&msgs).words(), "1 2 D(20971520) C(SELECT 1) Z(I)");
    }
    assert_eq!(session.query(&sql).words(), "T D(20971520) C(SELECT 1) Z(I)");
}

/// Writes this number of round trips at once. Reads when all are written or the peer takes no more.
pub(crate) fn pipelines(proxy: &Proxy, database: &str, batches: usize) {
    let mut session = proxy.open(database);
    assert_eq!(
        session.ask(&[parse("s", "select $1 || repeat('y', 200)"), Msg::Sync]).words(),
        "1 Z(I)"
    );
    let mut bytes = Vec::new();
    for batch in 0..batches {
        let value = format!("{batch}{}", "x".repeat(200));
        bytes.extend_from_slice(&encode(&[bind("s", &[&value]), execute(), Msg::Sync]));
    }
    let writer = write_beside(&session, bytes);
    writer_is_stuck_or_done();
    for batch in 0..batches {
        let reply = session.ready();
        assert!(reply.value().starts_with(&format!("{batch}x")), "{batch}: {}", reply.words());
        assert_eq!(reply.status(), Some('I'));
    }
    writer.join().unwrap();
}

/// Waits a moment, in which the buffers of both sides fill.
fn writer_is_stuck_or_done() {
    thread::sleep(Duration::from_millis(100));
}

#[test]
fn e30_e31_a_pipeline_of_5000_batches() {
    let database = database("bulk_pipeline");
    let proxy = over_15().start();
    pipelines(&proxy, database, 5000);
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

#[test]
fn e30_replies_larger_than_any_buffer_while_requests_wait() {
    let database = database("bulk_deadlock");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    let one = [parse("", "select repeat('r', 1000000), $1"), bind("", &["x"]), execute()];
    let mut bytes = Vec::new();
    let padding = "p".repeat(100_000);
    for _ in 0..40 {
        let msgs = [one[0].clone(), bind("", &[&padding]), execute(), Msg::Sync];
        bytes.extend_from_slice(&encode(&msgs));
    }
    let writer = write_beside(&session, bytes);
    for _ in 0..40 {
        assert_eq!(session.ready().words(), "1 2 D(1100001 bytes) C(SELECT 1) Z(I)");
    }
    writer.join().unwrap();
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

#[test]
fn a_slow_reader_stops_nobody_else() {
    let database = database("bulk_slow");
    let proxy = over_15().pool("pool_size", "2").start();
    let mut slow = proxy.open(database);
    slow.send(&[query("select repeat('s', 1000) from generate_series(1, 50000)")]);
    let mut other = proxy.open(database);
    for _ in 0..200 {
        assert_eq!(other.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    }
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes for a client that does not read");
    let reply = slow.ready();
    assert_eq!(reply.frames.iter().filter(|frame| frame.tag == b'D').count(), 50_000);
    assert_eq!(reply.status(), Some('I'));
}

#[test]
fn e29_an_open_segment_is_idle_in_a_transaction() {
    let database = database("bulk_open");
    let proxy = over_15().pool("idle_transaction_timeout", "\"200ms\"").start();
    let mut open = proxy.open(database);
    open.send(&[parse("", "select 1"), bind("", &[]), execute(), Msg::Flush]);
    assert_eq!(open.rest().words(), "1 2 D(1) C(SELECT 1) E(25P03)");
    assert_eq!(proxy.open(database).value("select 1"), "1");
}

#[test]
fn many_clients_over_few_servers() {
    let database = database("bulk_clients");
    let proxy = over_15().pool("pool_size", "3").start();
    let mut clients: Vec<_> = (0..100).map(|_| proxy.open(database)).collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            let sql = format!("select $1::int + {}", number % 7);
            let name = format!("s{round}");
            client.send(&[parse(&name, &sql), bind(&name, &["1000"]), execute(), Msg::Sync]);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.ready().value(), (1000 + number % 7).to_string());
        }
    }
    let servers = proxy.show_of("servers", database).len();
    assert!(servers <= 3, "{servers} servers");
    clients.into_iter().for_each(Session::leave);
    eventually("nobody is left", || proxy.show_of("clients", database).is_empty());
}

/// Refrain must not read parts of such a query as messages, nor the rest of one that it answers
/// itself.
#[test]
fn queries_of_megabytes_that_name_a_statement() {
    let database = database("bulk_execute");
    let proxy = over_15().pool("sql_prepare", "\"error\"").start();
    let mut session = proxy.open(database);
    session.ask(&[parse("s", "select length($1::text)"), Msg::Sync]);
    let text = "Q\0\0\0\x0fselect 'bad'".replace('\0', " ").repeat(3 * MIB / 17);
    let length = text.len().to_string();
    assert_eq!(session.value(&format!("execute s('{}')", text.replace('\'', "''"))), length);
    assert_eq!(session.value("select 1"), "1");
    let refused = session.query(&format!("prepare p as select 1 /* {} */", " ".repeat(3 * MIB)));
    assert_eq!(refused.words(), "E(0A000) Z(I)");
    assert_eq!(session.value("select 2"), "2");
    session.query(&format!("deallocate s {}", " ".repeat(3 * MIB)));
    assert_eq!(session.value("select 3"), "3");
}

/// Errors and settings of megabytes, as extended and as simple queries, within and outside a
/// transaction.
const LONG_WORDS: &[&str] = &[
    "select repeat('x', 2000000)::int",
    "do $$begin raise 'long %', repeat('x', 3000000); end$$",
    "do $$begin raise 'short' using detail = repeat('d', 3000000), hint = 'h'; end$$",
    "do $$begin execute 'select 1/0 --' || repeat('q', 2000000); end$$",
    "do $$begin raise notice 'long %', repeat('n', 3000000); end$$",
    "select set_config('search_path', repeat('s', 2000000), false)",
    "select set_config('my.x', repeat('s', 2000000), false)",
    "select length(current_setting('my.x')), length(current_setting('search_path'))",
    "reset search_path",
    "discard all",
];

/// Compares the replies that both sessions get for each text, and their settings.
fn long_words(version: Version, autoprepare: &str) {
    let config = Config::over(cluster(version)).pool("autoprepare", autoprepare);
    let proxy = config.pool("autoprepare_threshold", "1").start();
    let mut direct = Session::open(crate::world::addr(cluster(version)), "postgres");
    let mut client = proxy.open("postgres");
    for text in LONG_WORDS {
        let extended = [parse("", text), bind("", &[]), execute(), Msg::Sync];
        let pipeline = [query("begin"), query(text), query("select 1"), query("rollback")];
        for msgs in [&[query(text)][..], &extended, &pipeline] {
            let ends = msgs.iter().filter(|msg| matches!(msg, Msg::Query(_) | Msg::Sync)).count();
            for session in [&mut direct, &mut client] {
                session.send(msgs);
            }
            for _ in 0..ends {
                let (wanted, got) = (direct.ready(), client.ready());
                assert_eq!(got.words(), wanted.words(), "{text}");
                assert!(got.frames == wanted.frames, "{text}: not to the byte");
            }
            let (wanted, got) = (&direct.params["application_name"], &client.params);
            assert_eq!(&got["application_name"], wanted);
            assert!(client.params.get("search_path") == direct.params.get("search_path"));
        }
    }
    assert_eq!(client.value("select 1"), "1");
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

#[test]
fn words_of_megabytes_are_delivered() {
    for version in [Version::V15, Version::V18] {
        for autoprepare in ["\"off\"", "\"on\""] {
            long_words(version, autoprepare);
        }
    }
}

/// A client leaves in the middle of such replies; its server serves the next client.
#[test]
fn words_of_megabytes_for_nobody() {
    let database = database("bulk_words");
    let proxy = over_15().start();
    let pid = proxy.open(database).pid();
    for text in &LONG_WORDS[..5] {
        let mut leaves = proxy.open(database);
        leaves.send(&[query("select pg_sleep(0.1)"), query(text), query("select 1")]);
        leaves.vanish();
        assert_eq!(proxy.open(database).pid(), pid, "{text}");
    }
}

/// Refrain stores short settings for a client. With longer ones the client keeps its server.
#[test]
fn settings_of_many_clients_take_what_they_take() {
    let database = database("bulk_settings");
    let proxy = over_15().pool("pool_size", "2").start();
    let text = "y".repeat(900_000);
    for number in 0..60 {
        let mut client = proxy.open(database);
        client.run(&format!("set my.x = '{number}{text}'"));
        assert_eq!(client.value("select length(current_setting('my.x'))").len(), 6);
        assert_eq!(proxy.pins(), ["settings"]);
        client.run("discard all");
        assert_eq!(client.value("select current_setting('my.x', true)"), "");
        assert!(proxy.pins().is_empty());
        client.run(&format!("set my.y = '{number}{}'", &text[..20_000]));
        assert!(client.value("select current_setting('my.y')").len() > 20_000);
        assert!(proxy.pins().is_empty());
        let mut other = proxy.open(database);
        assert!(other.value("select current_setting('my.y', true)").len() < 20_000);
        other.leave();
        assert!(client.value("select current_setting('my.y')").len() > 20_000);
        client.run(&format!("set my.x = '{number}{}'", &text[..20_000]));
        assert!(client.value("select current_setting('my.y')").len() > 20_000);
        assert_eq!(proxy.pins(), ["settings"], "both are too many");
        client.leave();
    }
    let memory = proxy.memory();
    assert!(memory < MEMORY_MAX, "{memory} bytes");
}

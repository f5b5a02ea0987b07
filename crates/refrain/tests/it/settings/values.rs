//! Values of settings that are not ASCII: they follow their client, whatever encodings the clients
//! of a server have.

use refrain_differ::msg::Msg;

use crate::session::{Session, startup};
use crate::world::{Config, Version, addr, cluster, database_of};

/// Characters that LATIN1 and UTF8 have, as the bytes of either.
const LATIN1: &[u8] = b"\xe9";
const UTF8: &[u8] = "é".as_bytes();

/// A client's command, with a character outside of ASCII in the place of each `%`.
type Step = (usize, &'static str, &'static [u8]);

/// The encodings of the clients, and what these send in turn.
const STORIES: &[(&[&str], &[Step])] = &[
    (
        &["LATIN1", "UTF8"],
        &[
            (1, "set app.y = '%'", UTF8),
            (0, "select 1", b""),
            (1, "show app.y", b""),
            (0, "set app.x = 'a''\\%'", LATIN1),
            (1, "select coalesce(length(current_setting('app.x', true)), 0)", b""),
            (0, "show app.x", b""),
            (1, "show app.y", b""),
            (0, "select length(current_setting('app.x'))", b""),
        ],
    ),
    // A client changes its own encoding, in every way, and amid a transaction.
    (
        &["UTF8", "UTF8", "LATIN1"],
        &[
            (0, "set app.x = '%'", UTF8),
            (0, "set client_encoding = 'LATIN1'", b""),
            (1, "select 1", b""),
            (0, "show app.x", b""),
            (0, "set client_encoding = 'LATIN1'; set app.x = '%%'", LATIN1),
            (1, "set app.x = 'other'", b""),
            (0, "show app.x", b""),
            (2, "begin", b""),
            (2, "set app.z = '%'", LATIN1),
            (2, "set names 'UTF8'", b""),
            (2, "set app.w = '%'", UTF8),
            (2, "commit", b""),
            (1, "select 1", b""),
            (2, "select current_setting('app.z'), current_setting('app.w')", b""),
            (0, "reset client_encoding", b""),
            (1, "select 1", b""),
            (0, "show app.x", b""),
            (2, "reset all", b""),
            (1, "select 1", b""),
            (2, "show app.w", b""),
        ],
    ),
    // A value need not exist in the encoding of its client.
    (
        &["LATIN1", "UTF8"],
        &[
            (0, "select set_config('app.x', chr(28450), false) is null", b""),
            (1, "select 1", b""),
            (0, "select ascii(current_setting('app.x'))", b""),
            (1, "select 1", b""),
            (0, "show app.x", b""),
            (0, "select ascii(current_setting('app.x'))", b""),
        ],
    ),
    // Names, lists, and encodings in which ASCII bytes are parts of characters.
    (
        &["UTF8", "LATIN1", "SJIS", "SQL_ASCII"],
        &[
            (0, "set \"app.%\" = '%'", UTF8),
            (1, "set \"app.%\" = '1'", LATIN1),
            (2, "set app.s = '%'", b"\x83\x5c"),
            (3, "set app.a = '%'", UTF8),
            (0, "show \"app.%\"", UTF8),
            (1, "show \"app.%\"", LATIN1),
            (2, "show app.s", b""),
            (2, "select ascii(current_setting('app.s'))", b""),
            (3, "show app.a", b""),
            (1, "set search_path = '%', public", LATIN1),
            (0, "set search_path = 'x%', public", UTF8),
            (1, "show search_path", b""),
            (0, "show search_path", b""),
            (1, "select current_schemas(false)", b""),
            (3, "show app.a", b""),
        ],
    ),
    (
        &["UTF8", "LATIN1", "SQL_ASCII"],
        &[
            (0, "set application_name = '%'", UTF8),
            (1, "set application_name = '%'", LATIN1),
            (2, "set application_name = '%'", UTF8),
            (0, "show application_name", b""),
            (1, "show application_name", b""),
            (2, "show application_name", b""),
        ],
    ),
];

/// Sends a command and returns what its reply holds, in short.
fn answer(session: &mut Session, text: &str, character: &[u8]) -> Vec<Vec<u8>> {
    let mut sql = Vec::new();
    for byte in text.bytes() {
        match byte {
            b'%' => sql.extend_from_slice(character),
            byte => sql.push(byte),
        }
    }
    session.send(&[Msg::Query(sql)]);
    let frames = session.ready().frames;
    let told = frames.iter().filter(|frame| frame.tag != b'T').map(|frame| match frame.tag {
        b'E' => frame.field(b'C').to_vec(),
        _ => frame.body.clone(),
    });
    told.collect()
}

fn on(version: Version, database: &'static str) {
    let cluster = cluster(version);
    let database = database_of(version, database);
    let proxy = Config::over(cluster).pool("pool_size", "1").start();
    for (index, (encodings, steps)) in STORIES.iter().enumerate() {
        let open = |addr| {
            let open =
                |encoding: &&str| Session::with(addr, database, &[("client_encoding", encoding)]);
            encodings.iter().map(open).collect::<Vec<_>>()
        };
        let (mut proxied, mut direct) = (open(proxy.addr()), open(addr(cluster)));
        for &(client, text, character) in *steps {
            let seen = answer(&mut proxied[client], text, character);
            let right = answer(&mut direct[client], text, character);
            let show = |it: &[Vec<u8>]| {
                it.iter().map(|part| part.escape_ascii().to_string()).collect::<Vec<_>>()
            };
            assert_eq!(show(&seen), show(&right), "story {index}: client {client}: {text}");
        }
    }
    let pins = proxy.pins();
    assert!(pins.is_empty(), "{pins:?}");
}

#[test]
fn a_value_follows_its_client_through_encodings() {
    on(Version::V15, "values_of_15");
    on(Version::V18, "values_of_18");
}

/// PostgreSQL takes the bytes of a startup packet as they are, and makes a name ASCII.
#[test]
fn values_of_a_startup_packet_are_the_databases() {
    for version in [Version::V15, Version::V18] {
        let cluster = cluster(version);
        let database = database_of(version, "values_of_startup");
        let proxy = Config::over(cluster).pool("pool_size", "1").start();
        let name = |bytes: &[u8]| {
            let start = startup(
                0x0003_0000,
                &[
                    ("user", "postgres"),
                    ("database", database),
                    ("client_encoding", "LATIN1"),
                    ("options", "-c app.o=\u{6f22}"),
                    ("application_name", "QQ"),
                ],
            );
            let at = start.windows(2).position(|window| window == b"QQ").unwrap();
            [&start[..at], bytes, &start[at + 2..]].concat()
        };
        for bytes in [b"\xe9b", b"\xc3\xa9"] {
            let open = |addr| {
                let mut session = Session::raw(addr, &name(bytes));
                let reply = session.ready();
                assert!(reply.status().is_some(), "{}", reply.words());
                session
            };
            let (mut proxied, mut direct) = (open(proxy.addr()), open(addr(cluster)));
            let mut other = proxy.open(database);
            for text in [
                "show application_name",
                "select ascii(current_setting('app.o'))",
                "reset all",
                "show application_name",
                "select ascii(current_setting('app.o'))",
            ] {
                other.run("select 1");
                assert_eq!(
                    answer(&mut proxied, text, b""),
                    answer(&mut direct, text, b""),
                    "{text}"
                );
            }
            assert_eq!(proxied.params["application_name"], direct.params["application_name"]);
        }
    }
}

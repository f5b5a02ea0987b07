//! Scripts: conversations of clients that can be repeated without end.

use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;

use crate::Said;

use super::fake::FAILS;

/// A conversation that can be repeated without end.
pub struct PgScript {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// Options of the pool, in addition to the defaults and one server.
    pub(super) options: &'static str,
    /// The clients, each with its startup settings.
    pub(super) clients: &'static [&'static [(&'static str, &'static str)]],
    /// Said once.
    pub(super) before: Vec<Said>,
    /// Said at each run.
    pub(super) steps: Vec<Said>,
    /// Whether the engine knows that the statements are reads.
    pub(super) learns: bool,
    /// Whether a client comes at each run, which leaves at the end: it is the one that speaks.
    pub(super) visits: bool,
    /// Transactions in one run.
    pub(super) transactions: u64,
    /// Whether a run allocates nothing once the world is warm.
    pub(super) lean: bool,
}

const TEXT: &[u8] = b"SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
const OTHER_TEXT: &[u8] = b"SELECT bbalance FROM pgbench_branches WHERE bid = $1;";

/// Keeps the replies to all reads; between two runs their time is over.
const RULE: &str = "[[cache.rules]]\nttl = \"1ms\"\n";
/// Keeps them for longer than any number of runs takes.
const LASTING_RULE: &str = "[[cache.rules]]\nttl = \"365d\"\n";
/// Reads of different rows in a run that takes more than a millisecond.
const ROWS: u32 = 128;

const WRITE: &[u8] = b"UPDATE pgbench_accounts SET abalance = 0 WHERE aid = $1;";
const OTHER_WRITE: &[u8] = b"UPDATE pgbench_branches SET bbalance = 0 WHERE bid = $1;";

/// Returns all scripts.
pub fn scripts() -> Vec<PgScript> {
    let mut scripts = pooled();
    scripts.extend(taking_turns());
    scripts.extend(reads());
    scripts
}

/// Returns scripts that need no knowledge of their statements.
fn pooled() -> Vec<PgScript> {
    vec![
        plain("simple query", one(simple(b"SELECT abalance FROM pgbench_accounts WHERE aid = 7;"))),
        plain("extended", one([parse(b"", TEXT), run(b"")].concat())),
        PgScript {
            before: one(prepare(b"P0_1", TEXT)),
            ..plain("prepared hit", one(run(b"P0_1")))
        },
        PgScript {
            clients: &[&[], &[]],
            ..plain(
                "simple query of two clients",
                one(simple(b"SELECT abalance FROM pgbench_accounts WHERE aid = 7;")),
            )
        },
        PgScript {
            clients: &[&[], &[]],
            before: one(prepare(b"P0_1", TEXT)),
            ..plain("prepared hit of two clients", one(run(b"P0_1")))
        },
        PgScript {
            options: "max_server_statements = 1",
            before: [one(prepare(b"a", TEXT)), one(prepare(b"b", OTHER_TEXT))].concat(),
            transactions: 2,
            lean: false, // what the client says is kept until its columns are known
            ..plain("prepared miss", [one(run(b"a")), one(run(b"b"))].concat())
        },
        PgScript {
            options: "max_server_statements = 1",
            before: [one(prepare(b"a", WRITE)), one(prepare(b"b", OTHER_WRITE))].concat(),
            transactions: 2,
            ..plain("prepared miss of a write", [one(run(b"a")), one(run(b"b"))].concat())
        },
        PgScript {
            before: one(prepare(b"kept", TEXT)),
            transactions: 2,
            ..plain("parse known, close", [one(prepare(b"a", TEXT)), one(close(b"a"))].concat())
        },
        plain("close of nothing", one(close(b"a"))),
        PgScript {
            before: one(prepare(b"a", TEXT)),
            ..plain(
                "transaction of 3",
                [one(simple(b"BEGIN")), one(run(b"a")), one(simple(b"COMMIT"))].concat(),
            )
        },
        PgScript {
            lean: false,
            ..plain("error in a pipeline", one([parse(b"", FAILS), run(b""), run(b"")].concat()))
        },
        plain("copy in", copy_in()),
    ]
}

/// Returns scripts of clients that come and go, or that have a server one after the other.
fn taking_turns() -> Vec<PgScript> {
    vec![
        PgScript {
            clients: &[],
            visits: true,
            lean: false,
            ..plain("connect, query, leave", one(simple(b"SELECT 1")))
        },
        PgScript {
            clients: &[&[("timezone", "UTC")], &[("timezone", "Asia/Tokyo")]],
            transactions: 2,
            lean: false,
            ..plain("put right", vec![(0, simple(b"SELECT 1")), (1, simple(b"SELECT 1"))])
        },
        PgScript {
            clients: &[&[], &[]],
            transactions: 2,
            lean: false, // what the second client says is kept until there is a server
            ..plain(
                "wait for a server",
                vec![(0, simple(b"BEGIN")), (1, simple(b"SELECT 1")), (0, simple(b"COMMIT"))],
            )
        },
    ]
}

/// Returns scripts of statements that are known to be reads.
fn reads() -> Vec<PgScript> {
    vec![
        PgScript {
            clients: &[&[], &[]],
            before: one(prepare(b"P0_1", TEXT)),
            learns: true,
            lean: false, // a request that may run again is kept until it is answered
            ..plain("read", one(run(b"P0_1")))
        },
        PgScript {
            options: LASTING_RULE,
            before: one(prepare(b"P0_1", TEXT)),
            learns: true,
            ..plain("hit of the cache", one(run(b"P0_1")))
        },
        PgScript {
            options: RULE,
            before: one(prepare(b"P0_1", TEXT)),
            learns: true,
            transactions: u64::from(ROWS),
            lean: false, // a reply that is kept takes memory
            ..plain("miss of the cache", (0..ROWS).map(|row| (0, run_for(b"P0_1", row))).collect())
        },
        PgScript {
            options: RULE,
            learns: true,
            transactions: u64::from(ROWS),
            lean: false, // as above
            ..plain("miss of a text", (0..ROWS).map(|row| (0, query_for(row))).collect())
        },
    ]
}

fn plain(name: &'static str, steps: Vec<Said>) -> PgScript {
    let (before, clients) = (Vec::new(), &[&[] as &[_]] as &[_]);
    let (learns, visits) = (false, false);
    let (transactions, lean) = (1, true);
    PgScript { name, options: "", clients, before, steps, learns, visits, transactions, lean }
}

/// Makes the first client the sender.
fn one(bytes: Vec<u8>) -> Vec<Said> {
    vec![(0, bytes)]
}

fn query_for(row: u32) -> Vec<u8> {
    simple(
        format!("SELECT abalance FROM pgbench_accounts WHERE aid = {};", 1_000_000 + row)
            .as_bytes(),
    )
}

fn simple(text: &[u8]) -> Vec<u8> {
    written(|out| write::query(out, text))
}

fn parse(name: &[u8], text: &[u8]) -> Vec<u8> {
    written(|out| write::parse(out, name, &[text, b"\0\0\0"].concat()))
}

fn prepare(name: &[u8], text: &[u8]) -> Vec<u8> {
    [parse(name, text), written(write::sync)].concat()
}

fn close(name: &[u8]) -> Vec<u8> {
    written(|out| {
        write::close_statement(out, name);
        write::sync(out);
    })
}

/// Bind, Describe, Execute and Sync, as pgbench sends them.
fn run(statement: &[u8]) -> Vec<u8> {
    run_for(statement, 12345)
}

/// The same for a row of five digits.
fn run_for(statement: &[u8], row: u32) -> Vec<u8> {
    written(|out| {
        write::message(out, front::BIND, |out| {
            write::string(out, b"");
            write::string(out, statement);
            out.extend_from_slice(b"\0\0\0\x01\0\0\0\x05");
            out.extend_from_slice(format!("{row:05}").as_bytes());
            out.extend_from_slice(b"\0\x01\0\0");
        });
        write::message(out, front::DESCRIBE, |out| out.extend_from_slice(b"P\0"));
        write::message(out, front::EXECUTE, |out| out.extend_from_slice(b"\0\0\0\0\0"));
        write::sync(out);
    })
}

fn copy_in() -> Vec<Said> {
    let data = written(|out| {
        for _ in 0..4 {
            write::message(out, front::COPY_DATA, |out| out.extend_from_slice(b"1\t2\t3\n"));
        }
        write::bare(out, front::COPY_DONE);
    });
    vec![(0, simple(b"COPY t FROM STDIN")), (0, data)]
}

pub(super) fn written(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

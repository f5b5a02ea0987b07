//! Scripts: conversations of clients that can be repeated without end.

use refrain_mysql_wire::prepared::Execute;
use refrain_mysql_wire::{Capabilities, command, packet};

use crate::Said;

/// A conversation that can be repeated without end.
pub struct MyScript {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// Options of the pool, in addition to the defaults and one server.
    pub(super) options: &'static str,
    /// The clients, each with the number of its collation.
    pub(super) clients: &'static [u8],
    /// Said once.
    pub(super) before: Vec<Said>,
    /// Said at each run.
    pub(super) steps: Vec<Said>,
    /// Whether commands behind the first one name the statement that it prepares.
    pub(super) names_latest: bool,
    /// Transactions in one run.
    pub(super) transactions: u64,
    /// Whether a run allocates nothing once the world is warm.
    pub(super) lean: bool,
}

const TEXT: &[u8] = b"SELECT c FROM sbtest1 WHERE id=?";
const OTHER_TEXT: &[u8] = b"SELECT k FROM sbtest1 WHERE id=?";

const UTF8: u8 = 45;
const LATIN1: u8 = 8;

/// Returns all scripts.
pub fn scripts() -> Vec<MyScript> {
    vec![
        plain("query", one(query(b"SELECT c FROM sbtest1 WHERE id=4711"))),
        MyScript { before: one(prepare(TEXT)), ..plain("execution", one(execute(1))) },
        MyScript {
            clients: &[UTF8, UTF8],
            before: vec![(0, prepare(TEXT)), (1, prepare(TEXT))],
            transactions: 2,
            ..plain("execution of two clients", vec![(0, execute(1)), (1, execute(1))])
        },
        MyScript {
            options: "max_server_statements = 1",
            before: [one(prepare(TEXT)), one(prepare(OTHER_TEXT))].concat(),
            transactions: 2,
            lean: false, // what is sent is kept until the number is known
            ..plain("execution of a foretold number", [one(execute(1)), one(execute(2))].concat())
        },
        MyScript {
            before: one(prepare(TEXT)),
            names_latest: true,
            ..plain(
                "prepare, execute, close",
                [one(prepare(TEXT)), one(execute(0)), one(close(0))].concat(),
            )
        },
        MyScript {
            before: one(prepare(TEXT)),
            ..plain(
                "transaction of 3",
                [one(query(b"BEGIN")), one(execute(1)), one(query(b"COMMIT"))].concat(),
            )
        },
        MyScript {
            clients: &[UTF8, LATIN1],
            transactions: 2,
            lean: false,
            ..plain("put right", vec![(0, query(b"SELECT 1")), (1, query(b"SELECT 1"))])
        },
    ]
}

fn plain(name: &'static str, steps: Vec<Said>) -> MyScript {
    MyScript {
        name,
        options: "",
        clients: &[UTF8],
        before: Vec::new(),
        steps,
        names_latest: false,
        transactions: 1,
        lean: true,
    }
}

fn one(bytes: Vec<u8>) -> Vec<Said> {
    vec![(0, bytes)]
}

fn written(command: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packet::message(&mut out, 0, |out| {
        out.push(command);
        out.extend_from_slice(body);
    });
    out
}

fn query(text: &[u8]) -> Vec<u8> {
    written(command::QUERY, text)
}

fn prepare(text: &[u8]) -> Vec<u8> {
    written(command::STMT_PREPARE, text)
}

/// Writes an execution with a number, as libraries write it that send the types each time.
fn execute(statement: u32) -> Vec<u8> {
    let (types, values) = (Some(&[8, 0][..]), &4711_u64.to_le_bytes()[..]);
    let head = Execute { statement, flags: 0, parameters: 1, nulls: &[0], types, values };
    let mut body = Vec::new();
    head.write(&mut body, Capabilities::NONE);
    written(command::STMT_EXECUTE, &body)
}

fn close(statement: u32) -> Vec<u8> {
    written(command::STMT_CLOSE, &statement.to_le_bytes())
}

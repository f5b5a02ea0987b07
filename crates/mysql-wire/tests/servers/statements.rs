//! Prepared statements: their numbers, types, long data and cursors.

use refrain_mysql_wire::error_code;
use refrain_mysql_wire::prepared::{Execute, LAST_PREPARED, PrepareOk};
use refrain_mysql_wire::reply::{ErrPacket, Head};
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Capabilities, Status};
use xtask::mysql::Flavour;

use super::World;
use super::session::{Outcome, ROOT, Session, USUAL, Wanted, assert_same};

/// Types of an integer and of a string.
const TYPES: &[u8] = b"\x03\x00\xfd\x00";

pub(crate) fn check(world: &World) {
    let optional = USUAL | Capabilities::OPTIONAL_RESULTSET_METADATA;
    for capabilities in [USUAL, USUAL - Capabilities::DEPRECATE_EOF, optional] {
        let mut session = Session::start(world, Wanted { capabilities, ..ROOT });
        executions(&mut session);
        long_data(&mut session);
        cursors(&mut session);
        unknown(&mut session);
    }
    if world.flavour == Flavour::MariaDb {
        unchanged_definitions(world);
    }
}

/// Prepares a statement.
fn prepare(session: &mut Session, text: &str) -> PrepareOk {
    session.command(&Request::StmtPrepare(text.as_bytes()));
    let payload = session.receive();
    let prepared = PrepareOk::read(&payload, session.agreed);
    let prepared = prepared.unwrap_or_else(|_| panic!("{:?}", ErrPacket::read(&payload)));
    assert_same(&payload, |out| prepared.write(out, session.agreed));
    for count in [prepared.parameters, prepared.columns] {
        session.definitions(usize::from(count));
    }
    prepared
}

/// Sends an execution.
fn send(session: &mut Session, head: &Execute<'_>) {
    let mut body = Vec::new();
    head.write(&mut body, session.agreed);
    let read = Execute::read(&body, head.parameters, session.agreed, true);
    assert_eq!(read, Ok(Some(*head)));
    session.command(&Request::StmtExecute(&body));
}

/// Executes a statement.
fn execute(session: &mut Session, head: &Execute<'_>) -> Outcome {
    send(session, head);
    session.outcomes().remove(0)
}

/// Returns an execution of a statement with an integer and a string.
fn head(statement: u32, values: &[u8]) -> Execute<'_> {
    Execute { statement, flags: 0, parameters: 2, nulls: b"\0", types: Some(TYPES), values }
}

fn executions(session: &mut Session) {
    let prepared = prepare(session, "SELECT ? + 1, ?");
    assert_eq!((prepared.parameters, prepared.columns), (2, 2));
    let first = head(prepared.statement, b"\x07\0\0\0\x03foo");
    // The server has no types before it got some.
    let outcome = execute(session, &Execute { types: None, ..first });
    let refusals = [error_code::WRONG_ARGUMENTS, error_code::MALFORMED_PACKET];
    assert!(refusals.iter().any(|code| code.number == outcome.errno()));
    let outcome = execute(session, &first);
    assert!(outcome.rows[0].ends_with(b"\x03foo") && outcome.rows[0].starts_with(b"\0\0"));
    let again = Execute { types: None, values: b"\x08\0\0\0\x02ba", ..first };
    let outcome = execute(session, &again);
    assert!(outcome.rows[0].ends_with(b"\x02ba"));
    let null = Execute { nulls: b"\x02", values: b"\x08\0\0\0", ..first };
    let outcome = execute(session, &null);
    // A row of a prepared statement has two bits in front of those of its columns.
    assert_eq!(outcome.rows[0][..2], [0, 0b1000]);
    session.command(&Request::StmtClose(prepared.statement));
    let next = prepare(session, "DO 1");
    assert_eq!(next.statement, prepared.statement + 1, "numbers count up and have no reply");
}

fn long_data(session: &mut Session) {
    let prepared = prepare(session, "SELECT ? + 1, ?");
    let statement = prepared.statement;
    for data in [&b"ab"[..], b"cd"] {
        session.command(&Request::StmtSendLongData { statement, parameter: 1, data });
    }
    let outcome = execute(session, &head(statement, b"\x07\0\0\0"));
    assert!(outcome.rows[0].ends_with(b"\x04abcd"));
    session.command(&Request::StmtReset(statement));
    session.ok();
}

fn cursors(session: &mut Session) {
    let prepared = prepare(session, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3");
    let cursor = Execute {
        statement: prepared.statement,
        flags: Execute::CURSOR_READ_ONLY,
        parameters: 0,
        nulls: b"",
        types: None,
        values: b"",
    };
    let status = |session: &mut Session, rows: &mut Vec<Vec<u8>>| {
        let end = session.rows(rows);
        let agreed = session.agreed;
        refrain_mysql_wire::reply::EofPacket::read(&end, agreed).expect("an end").status
    };
    send(session, &cursor);
    let payload = session.receive();
    let read = Head::read(&payload, session.agreed);
    assert_eq!(read, Ok(Head::Columns { count: 1, defined: true }));
    // Behind the definitions comes no second EOF packet, where there is a first one.
    let deprecated = session.agreed.has(Capabilities::DEPRECATE_EOF);
    session.definitions(1);
    if deprecated {
        let opened = status(session, &mut Vec::new());
        assert!(opened.has(Status::CURSOR_EXISTS));
    }
    for (due, last) in [(2, false), (1, true)] {
        session.command(&Request::StmtFetch { statement: prepared.statement, rows: 2 });
        let mut rows = Vec::new();
        let status = status(session, &mut rows);
        assert_eq!((rows.len(), status.has(Status::LAST_ROW_SENT)), (due, last));
    }
}

fn unknown(session: &mut Session) {
    let outcome = execute(session, &head(9_999, b"\x07\0\0\0\x03foo"));
    assert_eq!(outcome.errno(), 1243);
    session.command(&Request::StmtReset(9_999));
    let payload = session.receive();
    assert_eq!(ErrPacket::read(&payload).expect("an ERR packet").number, 1243);
    // Commands without a reply have none when they fail.
    session.command(&Request::StmtClose(9_999));
    session.command(&Request::StmtSendLongData { statement: 9_999, parameter: 0, data: b"x" });
    session.command(&Request::Ping);
    session.ok();
}

/// MariaDB leaves definitions out that have not changed, and knows the statement prepared last.
fn unchanged_definitions(world: &World) {
    let capabilities = USUAL | Capabilities::CACHE_METADATA;
    let mut session = Session::start(world, Wanted { capabilities, ..ROOT });
    let prepared = prepare(&mut session, "SELECT ? + 1, ?");
    let outcome = execute(&mut session, &head(LAST_PREPARED, b"\x07\0\0\0\x03foo"));
    let count = u64::from(prepared.columns);
    let read = Head::read(&outcome.head, session.agreed);
    assert!(matches!(read, Ok(Head::Columns { count: it, .. }) if it == count), "{read:?}");
    let again = execute(&mut session, &head(prepared.statement, b"\x07\0\0\0\x03foo"));
    let read = Head::read(&again.head, session.agreed);
    assert_eq!(read, Ok(Head::Columns { count, defined: false }));
    assert_eq!((again.columns.len(), again.rows.len()), (0, 1));
}

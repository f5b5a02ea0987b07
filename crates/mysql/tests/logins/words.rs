//! The words of errors: those of real servers.

use refrain_mysql::errors::{self, Brand};
use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::reply::{ErrPacket, first};
use refrain_mysql_wire::{command, packet};

use super::wire::Session;

/// Compares the errors for what a session does wrong, and ends the session.
pub(crate) fn check(mut session: Session, brand: Brand) {
    let reply = ask(&mut session, command::STMT_PREPARE, b"DO ?");
    assert_eq!(reply[0], first::OK, "{}", reply.escape_ascii());
    session.packet().expect("a definition");
    let number = u32::from_le_bytes([reply[1], reply[2], reply[3], reply[4]]);
    let unknown = 4711_u32;
    let body = |number: u32, rest: &[u8]| [&number.to_le_bytes()[..], rest].concat();
    let handler = |name| errors::unknown_statement(unknown, name, brand);
    let (execute, fetch) = ("mysqld_stmt_execute", "mysqld_stmt_fetch");
    let not_there = error_code::UNKNOWN_STMT_HANDLER;
    let no_cursor = error_code::STMT_HAS_NO_OPEN_CURSOR;
    let cases: [(u8, Vec<u8>, ErrorCode, String); 7] = [
        (0x1d, Vec::new(), error_code::UNKNOWN_COM, errors::UNKNOWN_COMMAND.words.to_owned()),
        (command::STMT_EXECUTE, body(unknown, &[0, 1, 0, 0, 0]), not_there, handler(execute)),
        // The first execution, and it has no types.
        (
            command::STMT_EXECUTE,
            body(number, &[0, 1, 0, 0, 0, 0, 0]),
            errors::unfit_execution(brand).code,
            errors::unfit_execution(brand).words.to_owned(),
        ),
        (command::STMT_FETCH, body(unknown, &[1, 0, 0, 0]), not_there, handler(fetch)),
        (command::STMT_RESET, body(unknown, &[]), not_there, handler("mysqld_stmt_reset")),
        (
            command::STMT_FETCH,
            body(number, &[1, 0, 0, 0]),
            no_cursor,
            errors::no_cursor(number, brand),
        ),
        (
            command::QUERY,
            b"KILL 4711".to_vec(),
            error_code::NO_SUCH_THREAD,
            errors::unknown_thread(4711),
        ),
    ];
    for (byte, body, code, words) in cases {
        let reply = ask(&mut session, byte, &body);
        same(&reply, code, &words, brand);
    }
    let reply = ask(&mut session, command::QUERY, b"USE nowhere");
    same(&reply, error_code::BAD_DB, &errors::unknown_database("nowhere"), brand);
    let mut out = Vec::new();
    packet::message(&mut out, 5, |out| out.push(command::PING));
    session.send(&out);
    let (_, reply) = session.packet().expect("a reply");
    same(&reply, errors::OUT_OF_ORDER.code, errors::OUT_OF_ORDER.words, brand);
}

/// Sends a command. Returns the first packet of the reply.
fn ask(session: &mut Session, byte: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packet::message(&mut out, 0, |out| {
        out.push(byte);
        out.extend_from_slice(body);
    });
    session.send(&out);
    session.packet().expect("a reply").1
}

fn same(reply: &[u8], code: ErrorCode, words: &str, brand: Brand) {
    let err = ErrPacket::read(reply).expect("an error");
    let theirs = String::from_utf8_lossy(err.message);
    assert_eq!((err.number, &*theirs), (code.number, words), "{brand:?}");
    assert!(err.sqlstate.is_none_or(|state| state == code.sqlstate), "{brand:?} {words}");
}

//! Side connections that end a statement: they log in to the host of a server, and say KILL QUERY
//! with the server's number.
//!
//! Tried on MariaDB 10.11, MySQL 8.0.15 and MySQL 9.7: KILL QUERY has done what it does once it is
//! answered, and a session that waits for a command is not hit. So a server is held until the
//! answer has come. A session that has ended a statement, and does not wait for a command yet, may
//! remember KILL for the next one, as MySQL 8.0.15 does in up to one race of twelve. COM_PING,
//! COM_INIT_DB, COM_SET_OPTION, COM_STMT_PREPARE and COM_STMT_CLOSE leave it for a statement behind
//! them, and `DO 0` takes it.
//!
//! No command of Refrain's own may be hit. So a server is not killed while it works on one or has
//! one to do, gets no command while a side connection holds it, and gets `DO 0` in front of the
//! first one behind that (`train::send`). Another client gets it behind `DO 0` as well.

use refrain_mysql_wire::packet;
use refrain_mysql_wire::{Header, command};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::{Level, TlsPeer};
use refrain_pool::ids::PoolId;
use refrain_pool::server::Server;
use refrain_pool::side::SideEnd;
use refrain_pool::{Conn, Linked, Step};

use crate::login::{LOGIN_BYTES_MAX, ServerStep, Tls};
use crate::parts::{My, Postponed};
use crate::sides::{Killing, Progress, Side};
use crate::{preparing, settle, train};

/// Makes the side connection that ends what a server does.
pub(crate) fn of(server: &Server<My>) -> Killing {
    let (pool, host, number) = (server.pool(), server.host().clone(), server.pid());
    // With `prefer`, TLS may have failed with the host.
    let tls = if server.secured().is_some() { Tls::Always } else { Tls::Never };
    Killing { pool, host, number, tls, stage: Progress::Connecting }
}

fn killing<'a>(step: &'a mut Step<'_, My>, side: Conn) -> Option<&'a mut Killing> {
    match &mut step.engine.connections.side(side)?.session {
        Side::Killing(killing) => Some(killing),
        Side::Probe(_) => None,
    }
}

/// Begins with a side connection that is connected. The host speaks first.
pub(crate) fn connected(step: &mut Step<'_, My>, side: Conn) {
    let Some(killing) = killing(step, side) else { return };
    let (pool, host, tls) = (killing.pool, killing.host.clone(), killing.tls);
    let login = preparing::login(step, pool, &host, tls);
    match (self::killing(step, side), login) {
        (Some(killing), Some(login)) => killing.stage = Progress::LoggingIn(Box::new(login)),
        // The pool is gone, and its servers go with it.
        _ => drop(step.end_side(side)),
    }
}

/// Goes on within TLS.
pub(crate) fn secured(step: &mut Step<'_, My>, side: Conn) {
    let mut out = Vec::new();
    let Some(killing) = killing(step, side) else { return };
    let Progress::LoggingIn(login) = &mut killing.stage else { return };
    let result = login.secured(&mut out);
    step.ports.out(side).extend_from_slice(&out);
    follow(step, side, result);
}

/// Reads what the host says. Returns the number of bytes handled.
pub(crate) fn output(step: &mut Step<'_, My>, side: Conn, output: &[u8]) -> usize {
    let mut used = 0;
    while let Some(header) = Header::parse(&output[used..]) {
        if header.payload > LOGIN_BYTES_MAX {
            give_up(step, side, "the server's packet is too long for a login");
            return output.len();
        }
        let Some(whole) = packet::split(&output[used..]) else { break };
        used += header.packet_bytes();
        let Some(killing) = killing(step, side) else { return output.len() };
        match &mut killing.stage {
            Progress::Connecting => {}
            Progress::LoggingIn(login) => {
                let mut out = Vec::new();
                let result = login.input(whole.payload, header.sequence, &mut out);
                step.ports.out(side).extend_from_slice(&out);
                follow(step, side, result);
            }
            // Whatever the answer is, nothing comes behind it that could hit the server.
            Progress::Asked => {
                packet::message(step.ports.out(side), 0, |out| out.push(command::QUIT));
                step.end_side(side);
            }
        }
    }
    used
}

/// Follows a step of a login.
fn follow(step: &mut Step<'_, My>, side: Conn, result: ServerStep) {
    let Some(killing) = killing(step, side) else { return };
    match result {
        ServerStep::More => {}
        ServerStep::StartTls => {
            let host = killing.host.clone();
            step.ports.start_tls(side, TlsPeer::Server(host), Vec::new());
        }
        ServerStep::Failed(failure) => give_up(step, side, &failure.why),
        ServerStep::LoggedIn(_) => {
            killing.stage = Progress::Asked;
            let text = format!("KILL QUERY {}", killing.number);
            packet::message(step.ports.out(side), 0, |out| {
                out.push(command::QUERY);
                out.extend_from_slice(text.as_bytes());
            });
        }
    }
}

/// Ends a side connection by which nothing could be ended.
fn give_up(step: &mut Step<'_, My>, side: Conn, why: &str) {
    let Some(killing) = killing(step, side) else { return };
    let pool = killing.pool;
    tell_failure(step, pool, why);
    step.end_side(side);
}

fn tell_failure(step: &mut Step<'_, My>, pool: PoolId, why: &str) {
    let told = format!("a statement could not be ended: {why}");
    step.log().note_pool(pool, Level::Warn, DisconnectReason::ServerLogin, told);
}

/// Tells of a side connection that has ended without an answer. If KILL was sent, it may come
/// still: then no other client gets the server.
pub(crate) fn over(
    step: &mut Step<'_, My>,
    killing: &Killing,
    server: Option<Conn>,
    end: SideEnd<'_>,
) {
    let server = server.and_then(|server| step.engine.connections.server(server));
    if let (Progress::Asked, Some(server)) = (&killing.stage, server) {
        server.close_later();
    }
    let why = match end {
        SideEnd::Failed(why) => why,
        SideEnd::Closed => "the server closed the connection",
        SideEnd::Late => "the server did not answer in time",
        SideEnd::Stopped => return,
    };
    tell_failure(step, killing.pool, why);
}

/// Goes on with a server that no side connection holds any more.
pub(crate) fn go_on(step: &mut Step<'_, My>, conn: Conn) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    // The rest of its rows has a limit again.
    server.session.dropped = 0;
    // The answer to the statement may have been on its way when KILL came.
    server.session.is_struck = true;
    let (client, postponed) = (server.client(), server.session.postponed);
    if matches!(postponed, Postponed::Left | Postponed::Collation) {
        server.session.postponed = Postponed::None;
    }
    match client {
        Some(client) => {
            if postponed == Postponed::Collation {
                let Linked { server, ports, .. } = step.linked(client, conn);
                train::ask_collation(&mut server.session, ports.out(conn));
            }
            settle::settle(step, client, conn);
        }
        None if postponed == Postponed::Left => step.make_fit(conn),
        None => {}
    }
}

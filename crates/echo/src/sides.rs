//! Side connections, which a protocol need not have: cancel requests, and questions to a host.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::TlsPeer;
use refrain_pool::server::Server;
use refrain_pool::side::SideEnd;
use refrain_pool::{Conn, Sides, Step};

use crate::lines::first_line;
use crate::login;
use crate::parts::{Echo, SideTask};

/// Time in which a host has to answer.
const PROBE_TIME: Duration = Duration::from_secs(3);

impl Sides for Echo {
    // A cancel request is one line, or what an application would do that is logged in.
    fn cancel_side(server: &Server<Self>) -> Option<SideTask> {
        let key = String::from_utf8_lossy(server.cancel_key());
        let line = format!("cancel {} {key}\n", server.pid());
        Some(match server.session.kills {
            true => SideTask::Kill(line),
            false => SideTask::Cancel(line),
        })
    }

    // Where the host speaks first, Refrain has nothing to say yet.
    fn side_connected(step: &mut Step<'_, Self>, side: Conn) {
        let Some(s) = step.engine.connections.side(side) else { return };
        match &s.session {
            SideTask::Cancel(line) => step.ports.out(side).extend(line.bytes()),
            SideTask::Kill(_) => step.ports.out(side).extend(b"login\n"),
            SideTask::Probe(_) => {}
        }
    }

    // Behind the handshake the host says what it has to.
    fn side_secured(step: &mut Step<'_, Self>, side: Conn) {
        step.ports.out(side).extend(b"sure\n");
    }

    // The pool keeps a line until it is whole.
    fn side_output(step: &mut Step<'_, Self>, side: Conn, output: &[u8]) -> usize {
        let mut used = 0;
        while let Some(line) = first_line(&output[used..]) {
            answered(step, side, line);
            used += line.len();
        }
        used
    }

    // A server that may have been told to stop, or may be told yet, is not used again. A client
    // that waits for its greeting is told that there is no server.
    fn side_over(
        step: &mut Step<'_, Self>,
        side: SideTask,
        server: Option<Conn>,
        end: SideEnd<'_>,
    ) {
        step.engine.core_state.protocol.ends.push(format!("{end:?}"));
        match side {
            SideTask::Cancel(_) => {}
            SideTask::Kill(_) => {
                let server = server.and_then(|server| step.engine.connections.server(server));
                if let Some(server) = server {
                    server.close_later();
                }
            }
            SideTask::Probe(client) => step.end_client(client, DisconnectReason::ServerDown),
        }
    }
}

/// Handles a line on a side connection, and ends the connection with the last.
fn answered(step: &mut Step<'_, Echo>, side: Conn, line: &[u8]) {
    let Some(s) = step.engine.connections.side(side) else { return };
    let next = match (&s.session, line) {
        (SideTask::Probe(_), login::HOST_WITH_TLS) => {
            step.ports.out(side).extend(login::TLS);
            let with = TlsPeer::Server(host(step));
            return step.ports.start_tls(side, with, Vec::new());
        }
        (SideTask::Kill(cancel), b"login\n") => cancel.as_bytes(),
        (SideTask::Probe(_), b"host\n") => b"sure\n",
        _ => b"quit\n",
    };
    step.ports.out(side).extend(next);
    if next == b"quit\n"
        && let Some(SideTask::Probe(client)) = step.end_side(side)
    {
        login::greet(step, client);
    }
}

/// Asks the host before a client is greeted.
pub(crate) fn probe(step: &mut Step<'_, Echo>, client: Conn) {
    let host = host(step);
    if step.open_side(host, Some(PROBE_TIME), SideTask::Probe(client)).is_none() {
        step.end_client(client, DisconnectReason::TooManyClients);
    }
}

/// Returns the host that is asked.
fn host(step: &Step<'_, Echo>) -> Arc<Host> {
    let pool = step.engine.core_state.shared.pool("shop", "app").expect("every name has a pool");
    pool.settings().host.clone()
}

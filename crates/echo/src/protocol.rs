//! The protocol of lines.
//!
//! A client's first line names its database and user, and gets `welcome` with the process ID and
//! key that cancel its requests. Refrain sends a server `hello`, and the server answers `welcome`.
//!
//! What the lines of a login say is in `login.rs`. What a protocol may leave out is in `checks.rs`,
//! `sides.rs` and `reads.rs`.

use std::cell::Cell;

use refrain_pool::client::Phase;
use refrain_pool::core_state::CoreState;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::protocol::{Activity, Fitness};
use refrain_pool::server::HostFinding;
use refrain_pool::{Conn, Engine, Protocol, Step};

use crate::lines::{first_line, send};
use crate::parts::{ClientSession, Echo, Greeting, Idle, ServerSession};
use crate::{checks, login, reads, sides};

impl Protocol for Echo {
    // In worlds with a greeting, Refrain speaks first.
    fn greet(step: &mut Step<'_, Self>, client: Conn) {
        match step.engine.core_state.protocol.greeting {
            Greeting::Never | Greeting::Later => {}
            Greeting::AtOnce => login::greet(step, client),
            Greeting::Probed => sides::probe(step, client),
        }
    }

    // The pool asks for the phase when input arrives, to know which method reads it.
    fn phase(session: &ClientSession) -> Phase {
        session.look_at_phase()
    }

    // The pool keeps the first line until it is whole. Lines behind it are read after `admit`, and
    // bytes behind a request for TLS are of the handshake.
    fn login_input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        if let Some(used) = login::asks_for_tls(step, client, input) {
            return used;
        }
        let Some(line) = first_line(input) else { return 0 };
        login::open(step, client, line);
        line.len()
    }

    // A client that is let in gets a key. Then the pool reads the lines sent meanwhile.
    fn admit(step: &mut Step<'_, Self>, client: Conn) {
        let key = format!("{:08x}", u32::from_be_bytes(step.engine.core_state.random()));
        let Some(c) = step.engine.connections.client(client) else { return };
        c.session.phase = Phase::Ready;
        c.session.count_line();
        let pid = step.engine.set_cancel_key(client, key.as_bytes());
        step.ports.out(client).extend(format!("welcome {pid} {key}\n").bytes());
        step.engine.connections.unblock(client);
        step.client_logged_in(client);
    }

    // A line needs a server. If none is free, the pool keeps the input and calls again.
    fn input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        let lent = step.server_of(client).is_some();
        if !lent
            && step.sharing().had_better_share(client, input)
            && reads::share(step, client, input)
        {
            return input.len();
        }
        let mut used = 0;
        while let Some(line) = first_line(&input[used..]) {
            let lent = step.server_of(client);
            let Some(server) = lent.or_else(|| step.lend(client)) else { return used };
            let alone = send(step, server, line);
            used += line.len();
            let last = used == input.len();
            reads::invite(step, client, server, line, alone && last);
            step.push_back_on_client(client, server);
        }
        step.leave_if_ended(client);
        used
    }

    // A line that waits for a server is dropped.
    fn cancel_waiting(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> Option<usize> {
        let line = first_line(input)?;
        step.ports.out(client).extend(b"cancelled\n");
        Some(line.len())
    }

    // The client gets a line that says why its session ends, and that has a number behind a
    // greeting or in its place.
    fn tell(
        _: &refrain_pool::shared::Shared<Self>,
        client: &ClientSession,
        out: &mut Vec<u8>,
        cause: DisconnectReason,
    ) {
        let number = client.lines.map(|line| format!(" {line}")).unwrap_or_default();
        out.extend(format!("error {}{number}\n", cause.key()).bytes());
    }

    fn tell_wait(_client: &ClientSession, out: &mut Vec<u8>) {
        out.extend(b"wait\n");
    }

    // A client that asked for TLS in the clear goes on with it.
    fn client_secured(step: &mut Step<'_, Self>, client: Conn) {
        step.ports.out(client).extend(b"secured\n");
    }

    // The servers of one database speak first.
    fn connected(step: &mut Step<'_, Self>, server: Conn) {
        login::begin(step, server);
    }

    // A server that was asked for TLS is logged in to with it.
    fn secured(step: &mut Step<'_, Self>, server: Conn) {
        login::hello(step, server);
    }

    // The first line ends the login; each further one is the reply to a line.
    fn output(step: &mut Step<'_, Self>, server: Conn, output: &[u8]) -> usize {
        let mut used = 0;
        while let Some(line) = first_line(&output[used..]) {
            let Some(s) = step.engine.connections.server(server) else { break };
            match s.is_new() {
                true => login::answered(step, server, line),
                false if line == login::UNSUITED => found(step, server, HostFinding::Unsuited),
                false if line == login::DOUBTFUL => found(step, server, HostFinding::Doubtful),
                false => replied(step, server, line),
            }
            used += line.len();
        }
        used
    }

    // The pool lends a server again only with this proof.
    fn idle(session: &ServerSession) -> Option<Idle> {
        (session.owed == 0 && !session.in_transaction).then_some(Idle(()))
    }

    // A read that waits may run on a server that works for others.
    fn share(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> bool {
        reads::share(step, client, input)
    }

    // A read runs on another server if its server goes before it has answered.
    fn is_unanswered(_client: &ClientSession, server: &ServerSession) -> bool {
        server.owed > 0
    }

    // The timeouts depend on what a server does.
    fn activity(session: &ServerSession) -> Activity {
        Activity { owes: session.owed > 0, in_transaction: session.in_transaction }
    }

    // A transaction that a client left open must not reach the next client.
    fn make_fit(step: &mut Step<'_, Self>, server: Conn) -> Fitness {
        let Some(s) = step.engine.connections.server(server) else { return Fitness::Unfit };
        if !s.session.in_transaction {
            return Fitness::Fit;
        }
        send(step, server, b"rollback\n");
        Fitness::Busy
    }

    // A client has the same session wherever it is.
    fn may_travel(_session: &ClientSession) -> bool {
        true
    }
    fn pack(session: ClientSession) -> ClientSession {
        session
    }
    fn unpack(_core_state: &mut CoreState<Self>, session: ClientSession) -> ClientSession {
        ClientSession { looks: Cell::new(0), ..session }
    }

    // A server may clean up when it is told that its client goes.
    fn goodbye(out: &mut Vec<u8>) {
        out.extend(b"quit\n");
    }
}

/// Passes a reply on, if a client waits for it, and gives the server back if that was the last.
fn replied(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) {
    let Some(s) = step.engine.connections.server(server) else { return };
    if !s.session.follow(line) {
        return step.end_server(server, DisconnectReason::ServerProtocol);
    }
    if s.is_at_work() {
        return checks::checked(step, server);
    }
    // The server owes the rest to clients behind the holder.
    let answered = s.session.owed as usize == s.requests_behind();
    let over = answered && !s.session.in_transaction;
    match s.client() {
        Some(client) => {
            step.ports.out(client).extend(line);
            if let Some(c) = step.engine.connections.client(client) {
                c.session.count_line();
            }
            step.request_over(client, server);
            step.push_back_on_server(client, server);
            if over && step.transaction_over(client, server, false) {
                checks::check_if_due(step, server, Some(client));
            }
            step.leave_if_ended(client);
        }
        None if answered => step.make_fit(server),
        None => {}
    }
}

/// Notes what a server says about the state of its host.
fn found(step: &mut Step<'_, Echo>, server: Conn, finding: HostFinding) {
    let Engine { connections, core_state, .. } = &mut *step.engine;
    if let Some(server) = connections.server(server) {
        core_state.find_host(server, finding, step.now, step.ports);
    }
}

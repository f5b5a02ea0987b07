//! The protocol of lines: the least that a protocol has to implement.
//!
//! A client's first line names its database and user, and gets `welcome` with the process ID and
//! key that cancel its requests. Refrain sends a server `hello`, and the server answers `welcome`.

use refrain_pool::client::Phase;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{PoolId, pid_of};
use refrain_pool::lobby::Counted;
use refrain_pool::protocol::{Activity, Fitness};
use refrain_pool::server::Server;
use refrain_pool::{Conn, Protocol, Step};

use crate::parts::{Check, ClientSession, Echo, Idle, ServerSession};

impl Protocol for Echo {
    // The pool asks for the phase when input arrives, to know which method reads it.
    fn phase(session: &ClientSession) -> Phase {
        session.looks.set(session.looks.get() + 1);
        session.phase
    }

    // The session keeps the first line until it is whole. Lines behind it are read after `admit`.
    fn login_input(step: &mut Step<'_, Self>, client: Conn, bytes: &[u8]) {
        let Some(c) = step.engine.connections.client(client) else { return };
        let input = c.inbox.join(bytes);
        let line = first_line(&input).unwrap_or_default();
        c.inbox.hold(&input[line.len()..]);
        let line = String::from_utf8_lossy(line);
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {}
            ["cancel", pid, key] => {
                step.cancel_request(pid.parse().unwrap_or(0), key.as_bytes());
                step.remove_client(client, false);
            }
            [database, user] => log_in(step, client, database, user),
            _ => step.end_client(client, DisconnectReason::ClientProtocol),
        }
    }

    // A client that is let in gets a key. Then the protocol reads the lines sent meanwhile.
    fn admit(step: &mut Step<'_, Self>, client: Conn) {
        let pid = pid_of(step.engine.core_state.core(), client);
        let key = format!("{:08x}", u32::from_be_bytes(step.engine.core_state.random()));
        let Some(c) = step.engine.connections.client(client) else { return };
        c.session.phase = Phase::Ready;
        c.set_cancel_key(key.as_bytes());
        step.ports.out(client).extend(format!("welcome {pid} {key}\n").bytes());
        step.unblock(client);
    }

    // A line needs a server. If none is free, the pool keeps the input and calls again.
    fn input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        let read = is_read(input);
        if read && step.server_of(client).is_none() && share(step, client, input) {
            return input.len();
        }
        let mut used = 0;
        while let Some(line) = first_line(&input[used..]) {
            if step.server_of(client).is_none() && !step.lend(client) {
                return used;
            }
            let Some(server) = step.server_of(client) else { return used };
            let alone = send(step, server, line);
            match alone && read && step.had_better_share(client) {
                true => step.open_line(client, server, line),
                false => step.close_line(server),
            }
            step.push_back_on_client(client, server);
            used += line.len();
        }
        step.leave_if_ended(client);
        used
    }

    // What a server owes says how many requests it has got.
    fn check_server(server: &Server<Self>) -> Result<(), String> {
        let (owed, behind) = (server.session.owed as usize, server.requests_behind());
        match behind > 0 && owed != behind + 1 {
            true => Err(format!("{owed} requests, and {behind} are behind the first")),
            false => Ok(()),
        }
    }

    // The client gets a line that says why its session ends.
    fn tell(out: &mut Vec<u8>, cause: DisconnectReason) {
        out.extend(format!("error {}\n", cause.key()).bytes());
    }

    // The server gets a line that names its client.
    fn connected(step: &mut Step<'_, Self>, server: Conn) {
        let Some(s) = step.engine.connections.server(server) else { return };
        let pool = &step.engine.core_state.pool(s.pool()).shared;
        let hello = format!("hello {} {}\n", pool.database, pool.user);
        step.ports.out(server).extend(hello.bytes());
    }

    // The first line ends the login; each further one is the reply to a line.
    fn output(step: &mut Step<'_, Self>, server: Conn, output: &[u8]) -> usize {
        let mut used = 0;
        while let Some(line) = first_line(&output[used..]) {
            let Some(s) = step.engine.connections.server(server) else { break };
            match s.is_new() {
                true => logged_in(step, server, line),
                false if s.session.follow(line) => replied(step, server, line),
                false => step.end_server(server, DisconnectReason::ServerProtocol),
            }
            used += line.len();
        }
        used
    }

    // The pool lends a server again only with this proof.
    fn idle(session: &ServerSession) -> Option<Idle> {
        (session.owed == 0 && !session.in_transaction).then_some(Idle(()))
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

    // The tests count the visits.
    fn tick_pool(step: &mut Step<'_, Self>, pool: PoolId) {
        step.engine.core_state.pool(pool).protocol.ticks += 1;
    }

    // A server may clean up when it is told that its client goes.
    fn goodbye(out: &mut Vec<u8>) {
        out.extend(b"quit\n");
    }

    // A cancel request has a connection of its own.
    fn write_cancel(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
        out.extend(format!("cancel {pid} {}\n", String::from_utf8_lossy(key)).bytes());
    }

    // A check has waited in line for a server. It is over if another has shown that all is well.
    fn begin_job(step: &mut Step<'_, Self>, server: Conn, job: Check) -> bool {
        job.is_needed && check(step, server, job, None)
    }

    // A check of this very server waits for no line.
    fn begin_own_job(step: &mut Step<'_, Self>, server: Conn) -> bool {
        is_due(step, server) && check(step, server, Check { is_needed: true }, None)
    }

    // The next job finds out what the lost job was to find out.
    fn lose_job(pool: &mut refrain_pool::pool::Pool<Self>, _job: &Check) {
        pool.protocol.lost += 1;
    }
}

/// Returns the first line of some input, with its end.
fn first_line(input: &[u8]) -> Option<&[u8]> {
    let end = input.iter().position(|&byte| byte == b'\n')?;
    Some(&input[..=end])
}

/// Whether input is one line that asks for something and changes nothing.
fn is_read(input: &[u8]) -> bool {
    input.starts_with(b"get ") && first_line(input) == Some(input)
}

/// Sends a request to a server that works for others, if there is one.
fn share(step: &mut Step<'_, Echo>, client: Conn, request: &[u8]) -> bool {
    if !step.had_better_share(client) {
        return false;
    }
    let Some(server) = step.join(client, |_, server| !server.in_transaction) else { return false };
    send(step, server, request);
    step.await_turn(client, request);
    true
}

/// Gives a client to its pool, which lets the client in or tells it why not.
fn log_in(step: &mut Step<'_, Echo>, client: Conn, database: &str, user: &str) {
    let shared = step.engine.core_state.shared.clone();
    let Some(pool) = shared.pool(database, user) else {
        return step.end_client(client, DisconnectReason::UnknownDatabase);
    };
    if !step.count_as(client, Counted::Client) || shared.counts.admit_client(&pool).is_err() {
        return step.end_client(client, DisconnectReason::TooManyClients);
    }
    if let Some(c) = step.engine.connections.client(client) {
        c.session.phase = Phase::Entering;
    }
    if step.enter(client, &pool) {
        Echo::admit(step, client);
    }
}

/// Ends the login to a server, which sends `welcome` and its key, or an error.
fn logged_in(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let ["welcome", pid, key] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Echo::connect_failed(step, server, line.trim_end());
    };
    if let Some(s) = step.engine.connections.server(server) {
        s.set_cancel_key(pid.parse().unwrap_or(0), key.as_bytes());
    }
    step.logged_in(server, false);
}

/// Sends a line to a server, which owes it back from now on. True if it owes nothing else.
fn send(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) -> bool {
    step.request_begins(server);
    step.ports.out(server).extend(line);
    let Some(s) = step.engine.connections.server(server) else { return false };
    s.session.owed += 1;
    s.session.owed == 1 && !s.session.in_transaction
}

/// Passes a reply on, if a client waits for it, and gives the server back if that was the last.
fn replied(step: &mut Step<'_, Echo>, server: Conn, line: &[u8]) {
    let Some(s) = step.engine.connections.server(server) else { return };
    let (quiet, idle) = (s.session.owed == 0, Echo::idle(&s.session).is_some());
    if s.is_at_work() {
        return if quiet {
            checked(step, server)
        };
    }
    let behind = s.requests_behind() > 0;
    let Some(client) = s.client() else {
        return if quiet || behind {
            step.make_fit(server)
        };
    };
    step.ports.out(client).extend(line);
    step.request_over(client, server);
    step.push_back_on_server(client, server);
    let keeps = (idle || behind) && step.transaction_over(client, server, false);
    if keeps && is_due(step, server) {
        check(step, server, Check { is_needed: true }, Some(client));
    }
    step.leave_if_ended(client);
}

/// Whether a server that has come free is to be checked.
fn is_due(step: &mut Step<'_, Echo>, server: Conn) -> bool {
    let Some(s) = step.engine.connections.server(server) else { return false };
    let checks = &mut step.engine.core_state.pool(s.pool()).protocol;
    checks.due.checked_sub(1).map(|due| checks.due = due).is_some()
}

/// Begins a check. A client that has the server gets it back afterwards.
fn check(step: &mut Step<'_, Echo>, server: Conn, job: Check, back: Option<Conn>) -> bool {
    send(step, server, b"check\n");
    step.start_job(server, job, back);
    true
}

/// Ends a check, and gives the server to its client or back to the pool.
fn checked(step: &mut Step<'_, Echo>, server: Conn) {
    let Some(s) = step.engine.connections.server(server) else { return };
    step.engine.core_state.pool(s.pool()).protocol.made += 1;
    match step.finish_job(server) {
        Some((_, Some(client))) => step.unblock(client),
        _ => step.make_fit(server),
    }
}

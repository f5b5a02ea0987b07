//! Clients that leave their pool or the core, and the lists and counts in which they are.

use crate::client::{Client, ProcessId};
use crate::connections::{Connection, Connections};
use crate::core_state::CoreState;
use crate::ids::Conn;
use crate::ports::Ports;
use crate::protocol::Protocol;

/// Forgets a client, and closes its connection: at once if the peer has `gone`, else once its
/// output is sent. A server that the client has is left to the caller.
pub(crate) fn forget_client<P: Protocol>(
    core_state: &mut CoreState<P>,
    connections: &mut Connections<P>,
    ports: &mut Ports<P>,
    (conn, gone): (Conn, bool),
) -> Option<Box<Client<P>>> {
    let Connection::Client(client) = connections.take(conn) else { return None };
    core_state.shared.lobby.go(client.counted, &client.peer, client.serial);
    match client.pid {
        ProcessId::None => {}
        ProcessId::Home(_) => core_state.process_ids.free(conn),
        ProcessId::Moved(pid) => core_state.shared.moved.forget(pid),
    }
    uncount(core_state, &client);
    if gone {
        ports.abandon(conn)
    } else {
        ports.close(conn)
    }
    Some(client)
}

/// Takes a client out of the counts of its pool, and out of the lists of those who wait there.
pub(crate) fn uncount<P: Protocol>(core_state: &mut CoreState<P>, client: &Client<P>) {
    let Some(pool) = core_state.find_pool(client.pool) else { return };
    let shared = pool.shared.clone();
    pool.waiters.remove_client(client.conn);
    pool.entering.retain(|&entering| entering != client.conn);
    pool.clients = pool.clients.checked_sub(1).expect("no more clients leave than came");
    core_state.shared.client_gone(&shared, &client.user);
}

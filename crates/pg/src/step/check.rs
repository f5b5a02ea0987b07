//! Invariants of sessions, which hold after every step. The simulator and tests check them.

use crate::state::parts::{Client, Server, ServerState};

macro_rules! holds {
    ($holds:expr, $($words:tt)*) => {
        if !$holds {
            return Err(format!($($words)*));
        }
    };
}

/// Checks a client's session.
///
/// # Errors
/// A description of the first invariant that is broken.
pub(crate) fn check_client(client: &Client) -> Result<(), String> {
    let (conn, session) = (client.conn(), &client.session);
    if client.link().is_none() {
        holds!(session.pins.is_empty(), "{conn:?} is pinned to no server");
        let settled = session.statements.are_settled();
        holds!(settled, "{conn:?} may take back what nobody is asked");
    }
    holds!(session.statements.add_up(), "{conn:?}: bytes of its statements");
    holds!(session.portals.adds_up(), "{conn:?}: bytes of its portals");
    Ok(())
}

/// Checks a server's session.
///
/// # Errors
/// A description of the first invariant that is broken.
pub(crate) fn check_server(server: &Server) -> Result<(), String> {
    let (conn, session) = (server.conn(), &server.session);
    holds!(session.settings.is_recorded(), "{conn:?}: settings that it reported are not interned");
    holds!(session.statements.adds_up(), "{conn:?}: bytes of its statements");
    if matches!(server.state(), ServerState::Idle) {
        let settled = session.statements.is_settled();
        holds!(settled, "{conn:?} is idle, and may take something back");
    }
    Ok(())
}

//! The event that a core handles, and its connection, for the message of a panic.
//!
//! A panic ends the process, and the engine cannot be asked any more. So each thread notes the
//! event in a cell of its own before the engine handles it, and notes the peer of a connection when
//! the connection opens.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use refrain_config::Host;
use refrain_pool::ids::Peer;
use refrain_pool::{Conn, Event};

use crate::served::Served;

/// The peer of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    Client(Peer),
    Server(Arc<Host>),
}

thread_local! {
    static NOW: Cell<Option<(&'static str, Option<Conn>)>> = const { Cell::new(None) };
    static OTHERS: RefCell<Vec<Option<Other>>> = const { RefCell::new(Vec::new()) };
}

/// Notes the peer of a connection.
pub(crate) fn meet(conn: Conn, other: Other) {
    OTHERS.with_borrow_mut(|others| {
        let index = conn.0 as usize;
        if others.len() <= index {
            others.resize(index + 1, None);
        }
        others[index] = Some(other);
    });
}

/// Forgets the peer of a server that comes from another core: only that core knew the peer.
pub(crate) fn forget(conn: Conn) {
    OTHERS.with_borrow_mut(|others| {
        if let Some(other) = others.get_mut(conn.0 as usize) {
            *other = None;
        }
    });
}

/// Notes the event that this thread begins to handle.
#[inline]
pub(crate) fn begin<P: Served>(event: &Event<'_, P>) {
    NOW.set(Some(match event {
        Event::Bytes { conn, .. } => ("bytes", Some(*conn)),
        Event::Drained { conn } => ("sent bytes", Some(*conn)),
        Event::Closed { conn, .. } => ("a closed connection", Some(*conn)),
        Event::Connected { conn } | Event::Failed { conn, .. } => ("a connect", Some(*conn)),
        Event::Secured { conn, .. } => ("an encrypted connection", Some(*conn)),
        Event::Accepted { conn, .. } => ("a new client", Some(*conn)),
        Event::Arrived { conn, .. } => ("a connection of another core", Some(*conn)),
        Event::Message(_) => ("mail of another core", None),
        Event::Command(_) => ("a command", None),
        Event::Answered(answer) => (P::name(answer), None),
        Event::GiveClients { .. } => ("an order to give clients away", None),
        Event::Tick => ("a timer tick", None),
    }));
}

/// Notes that the event has been handled.
#[inline]
pub(crate) fn end() {
    NOW.set(None);
}

/// Describes the event that this thread handles; `None` if it handles none.
pub(crate) fn words() -> Option<String> {
    let (what, conn) = NOW.try_with(Cell::get).ok()??;
    let Some(conn) = conn else { return Some(format!("handling {what}")) };
    let found = OTHERS.try_with(|others| {
        let others = others.try_borrow().ok()?;
        others.get(conn.0 as usize)?.clone()
    });
    let other = match found.ok().flatten() {
        Some(Other::Client(Peer::Tcp(address))) => format!("client {address}"),
        Some(Other::Client(Peer::Unix { uid: Some(uid), .. })) => {
            format!("client of user ID {uid}")
        }
        Some(Other::Client(Peer::Unix { uid: None, .. })) => "client on the Unix socket".to_owned(),
        Some(Other::Server(host)) => format!("server {host}"),
        None => "server of another core".to_owned(),
    };
    Some(format!("handling {what} of connection {} ({other})", conn.0))
}

#[cfg(test)]
mod tests {
    use refrain_pg::Event;

    use super::*;

    #[test]
    fn the_event_and_its_peer_are_described() {
        assert_eq!(words(), None);
        let peer = Peer::Tcp("192.0.2.7:5000".parse().unwrap());
        meet(Conn(3), Other::Client(peer));
        begin(&Event::Bytes { conn: Conn(3), bytes: &[] });
        let shown = words().unwrap();
        assert_eq!(shown, "handling bytes of connection 3 (client 192.0.2.7:5000)");
        begin(&Event::Tick);
        assert_eq!(words().unwrap(), "handling a timer tick");
        end();
        assert_eq!(words(), None);
    }
}

//! Hosts that are not in the state that pools want: their servers are not lent again.

use crate::connections::Connection;
use crate::engine::Step;
use crate::event::Action;
use crate::hosts::HostPlace;
use crate::ids::Conn;
use crate::message::CoreMessage;
use crate::protocol::Protocol;
use crate::server::{HostFinding, Server, ServerState};

impl<P: Protocol> Step<'_, P> {
    /// Whether a server of a host is taken whatever the host's state is: the pool prefers another
    /// state, and no host has it.
    pub fn takes_any_host(&mut self, server: Conn) -> bool {
        let server = self.engine.connections.server(server);
        server.and_then(|server| server.place.as_ref()).is_some_and(HostPlace::takes_any)
    }

    /// Draws the conclusions from what a server has shown about its host's state that is closed now.
    pub(crate) fn host_shown(&mut self, server: &Server<P>) {
        let (Some(place), Some(finding)) = (&server.place, server.finding) else { return };
        match finding {
            HostFinding::Doubtful if place.doubt(self.now) => self.try_login(server.pool),
            HostFinding::Unsuited if place.unsuit() => self.leave_host(place),
            HostFinding::Doubtful | HostFinding::Unsuited => {}
        }
    }

    /// Has no server of a host be lent again, on any core.
    pub(crate) fn leave_host(&mut self, place: &HostPlace) {
        for core in self.engine.core_state.others() {
            let message = CoreMessage::HostUnsuited { place: place.clone() };
            self.ports.act(Action::Tell { core, message });
        }
        self.leave_host_here(place);
    }

    /// Closes the idle servers of a host, and the others once they are free.
    pub(crate) fn leave_host_here(&mut self, place: &HostPlace) {
        for conn in self.engine.connections.conns() {
            let Connection::Server(server) = self.engine.connections.get(conn) else { continue };
            if server.is_new() || !server.place.as_ref().is_some_and(|other| other.is(place)) {
                continue;
            }
            if matches!(server.state, ServerState::Idle) {
                self.close_server(conn);
            } else if let Some(server) = self.engine.connections.server(conn) {
                server.close_needed = true;
            }
        }
    }
}

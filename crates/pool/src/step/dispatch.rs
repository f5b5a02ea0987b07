//! The entry of the engine: handles one event.
//!
//! [`Engine::step`] is the one `match` over all events. Each arm calls the file of this folder that
//! handles the subject, or the protocol.
//!
//! A step never calls itself. A client whose input can be read on is put into `runnable`, and the
//! step ends once `runnable` is empty.

use std::sync::Arc;

use crate::connections::Connection;
use crate::engine::{Engine, Step};
use crate::event::Event;
use crate::ids::Conn;
use crate::ports::Ports;
use crate::protocol::Protocol;
use crate::secured::Secured;
use crate::step::sessions::END_OF_STREAM;
use crate::time::Now;

impl<P: Protocol> Engine<P> {
    /// Handles one event, and appends output and actions to `ports`. Never blocks and never fails:
    /// an error of a connection ends that connection.
    #[inline]
    pub fn step(&mut self, now: Now, event: Event<'_, P>, ports: &mut Ports<P>) {
        let mut step = Step { engine: self, now, ports };
        match event {
            Event::Bytes { conn, bytes } => step.bytes(conn, bytes),
            Event::Drained { conn } => step.drained(conn),
            Event::Accepted { conn, peer } => step.accepted(conn, peer),
            Event::Secured { conn, secured } => step.secured(conn, secured),
            Event::Connected { conn } => step.connected(conn),
            Event::Failed { conn, why } => step.failed(conn, why),
            Event::Closed { conn, why } => step.closed(conn, why),
            Event::Arrived { conn, transfer } => step.arrived(conn, *transfer),
            Event::GiveClients { to, most } => step.give_clients(to, most),
            Event::Tick => step.tick(),
            Event::Message(message) => step.message(message),
            Event::Command(command) => step.command(command),
            Event::Answered(answer) => P::answered(&mut step, answer),
        }
        while let Some(client) = step.engine.runnable.pop_front() {
            step.run(client);
        }
    }
}

impl<P: Protocol> Step<'_, P> {
    #[inline]
    fn bytes(&mut self, conn: Conn, bytes: &[u8]) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => self.client_bytes(conn, bytes),
            Connection::Server(_) => self.server_bytes(conn, bytes),
            Connection::Side(_) => self.side_bytes(conn, bytes),
            Connection::Free => {
                if let Some(transfer) = self.ports.leaving(conn) {
                    transfer.hold(bytes);
                }
            }
        }
    }

    /// Notes that a connection is encrypted, and tells the protocol.
    #[cold]
    fn secured(&mut self, conn: Conn, secured: Arc<Secured>) {
        let connections = &mut self.engine.connections;
        if let Some(client) = connections.client(conn) {
            client.secured = Some(secured);
            P::client_secured(self, conn);
        } else if let Some(server) = connections.server(conn) {
            server.secured = Some(secured);
            P::secured(self, conn);
        } else if connections.side(conn).is_some() {
            P::side_secured(self, conn);
        }
    }

    fn connected(&mut self, conn: Conn) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => P::connected(self, conn),
            Connection::Side(_) => self.side_connected(conn),
            Connection::Client(_) | Connection::Free => {}
        }
    }

    fn failed(&mut self, conn: Conn, why: &str) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => P::connect_failed(self, conn, why),
            Connection::Side(_) => self.side_gone(conn, Some(why)),
            Connection::Client(_) => self.handshake_failed(conn, why),
            Connection::Free => {}
        }
    }

    fn closed(&mut self, conn: Conn, why: Option<&str>) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => match why {
                Some(why) => self.client_gone(conn, why),
                None => self.client_ends(conn),
            },
            Connection::Server(_) => self.server_gone(conn, why.unwrap_or(END_OF_STREAM)),
            Connection::Side(_) => self.side_gone(conn, why),
            Connection::Free if why.is_some() => self.ports.give_up(conn),
            // The peer may still read the last replies.
            Connection::Free => {}
        }
    }

    /// Handles the end of a write. If little enough is queued to a connection now, reads the
    /// connection that feeds it again.
    fn drained(&mut self, conn: Conn) {
        let pool = match self.engine.connections.get(conn) {
            Connection::Client(client) => client.pool,
            Connection::Server(server) => server.pool,
            Connection::Side(_) | Connection::Free => return,
        };
        if self.ports.queued(conn) <= self.engine.core_state.low_mark(pool)
            && !self.resume_feeder(conn)
        {
            self.offer(conn);
        }
    }
}

//! The entry of the engine: handles one event.
//!
//! [`Engine::step`] is the one `match` over all events. Each arm calls the file of this folder, or
//! of `login`, that handles the subject.
//!
//! A step never calls itself. A client whose input can be read on is put into `runnable`, and the
//! step ends once `runnable` is empty.

use crate::engine::{Engine, Step};
use crate::ground::ids::Conn;
use crate::ground::time::Now;
use crate::state::connections::Connection;
use crate::state::event::{Action, Event};
use crate::state::ports::Ports;
use crate::step::farewell::END_OF_STREAM;

impl Engine {
    /// Handles one event, and appends output and actions to `ports`. Never blocks and never fails:
    /// an error of a connection ends that connection.
    #[inline]
    pub fn step(&mut self, now: Now, event: Event<'_>, ports: &mut Ports) {
        let mut step = Step { engine: self, now, ports };
        match event {
            Event::Bytes { conn, bytes } => step.bytes(conn, bytes),
            Event::Drained { conn } => step.drained(conn),
            Event::Accepted { conn, peer } => step.accepted(conn, peer),
            Event::Connected { conn } => step.connected(conn),
            Event::Failed { conn, why } => step.failed(conn, why),
            Event::Closed { conn, why } => step.closed(conn, why),
            Event::Arrived { conn, transfer } => step.arrived(conn, *transfer),
            Event::Tick => step.tick(),
            Event::Message(message) => step.message(message),
            Event::Command(command) => step.command(command),
            Event::Console { client, reply } => step.console_reply(client, &reply),
            Event::Analysed { case, analysis } => step.analysed(&case, analysis),
        }
        while let Some(client) = step.engine.runnable.pop_front() {
            step.serve(client, &[]);
        }
    }
}

impl Step<'_> {
    #[inline]
    fn bytes(&mut self, conn: Conn, bytes: &[u8]) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => self.client_bytes(conn, bytes),
            Connection::Server(_) => self.server_bytes(conn, bytes),
            Connection::Cancel(_) => {}
            Connection::Free => {
                if let Some(transfer) = self.ports.leaving(conn) {
                    transfer.0.inbox.hold(bytes);
                }
            }
        }
    }

    fn connected(&mut self, conn: Conn) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => self.server_connected(conn),
            Connection::Cancel(_) => self.cancel_connected(conn),
            Connection::Client(_) | Connection::Free => {}
        }
    }

    fn failed(&mut self, conn: Conn, why: &str) {
        match self.engine.connections.get(conn) {
            Connection::Server(_) => self.connect_failed(conn, why),
            Connection::Cancel(_) => self.cancel_over(conn),
            Connection::Client(_) | Connection::Free => {}
        }
    }

    fn closed(&mut self, conn: Conn, why: Option<&str>) {
        match self.engine.connections.get(conn) {
            Connection::Client(_) => match why {
                Some(why) => self.client_gone(conn, why),
                None => self.client_ends(conn),
            },
            Connection::Server(_) => self.server_gone(conn, why.unwrap_or(END_OF_STREAM)),
            Connection::Cancel(_) => self.cancel_over(conn),
            Connection::Free if why.is_some() => self.ports.give_up(conn),
            // The peer may still read the last replies.
            Connection::Free => {}
        }
    }

    /// Handles the end of a write. If little enough is queued to a connection now, reads the
    /// connection that feeds it again.
    fn drained(&mut self, conn: Conn) {
        let Engine { connections, core_state, runnable, .. } = &mut *self.engine;
        let pool = match connections.get(conn) {
            Connection::Client(client) => client.pool,
            Connection::Server(server) => server.pool,
            Connection::Cancel(_) | Connection::Free => return,
        };
        if self.ports.queued(conn) > core_state.low_mark(pool) {
            return;
        }
        if let Some(client) = connections.client(conn) {
            if client.paused {
                runnable.push_back(conn);
            }
            let Some(server) = client.link.and_then(|server| connections.server(server)) else {
                return;
            };
            if std::mem::take(&mut server.paused) {
                self.ports.act(Action::Resume { conn: server.conn });
            }
        } else if let Some(server) = connections.server(conn) {
            let Some(client) = server.client().and_then(|client| connections.client(client)) else {
                return self.offer(conn);
            };
            if client.paused {
                runnable.push_back(client.conn);
            }
        }
    }
}

//! The entry of the engine: handles one event.
//!
//! [`Engine::step`] is the one `match` over all events. Each arm calls the file of this folder that
//! handles the subject, or the protocol.
//!
//! A step never calls itself. A client whose input can be read on is put into `runnable`, and the
//! step ends once `runnable` is empty.

use crate::engine::{Engine, Step};
use crate::event::Event;
use crate::ports::Ports;
use crate::protocol::Protocol;
use crate::step::travel::give_clients;
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
            Event::GiveClients { to, most } => give_clients(step.engine, step.ports, now, to, most),
            Event::Tick => step.tick(),
            Event::Message(message) => step.message(message),
            Event::Command(command) => step.command(command),
            Event::Answered(answer) => P::answered(&mut step, answer),
        }
        while let Some(client) = step.engine.connections.runnable.pop_front() {
            step.run(client);
        }
    }
}

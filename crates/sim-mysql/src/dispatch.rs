//! The queue of events: takes out the next one and calls its function.

use refrain_pool::Event;

use crate::world::{Happening, World};

impl World {
    /// Runs the world for a while.
    pub(crate) fn run_for(&mut self, span: u64) {
        let until = self.now + span;
        while self.violation.is_none() && self.queue.next_at().is_some_and(|at| at <= until) {
            self.advance();
        }
        self.now = self.now.max(until);
    }

    /// Lets the next event happen. Returns false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        let Some((at, what)) = self.queue.pop() else { return false };
        self.now = self.now.max(at);
        self.events += 1;
        self.happen(what);
        true
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Deliver(link, way) => self.deliver(link, way),
            Happening::Sent(link) => self.sent(link),
            Happening::Connect(link, lies) => self.connect(link, lies),
            Happening::Unstall(link, way) => self.unpause(link, way),
            Happening::Arrive(slot) => self.client_arrives(slot),
            Happening::Act(client, number) => self.client_acts(client, number),
            Happening::Attack(at) => self.hostile_acts(at),
            Happening::Work(backend) => self.backend_works(backend),
            Happening::Tick(core) => self.tick(core),
            Happening::Turn(core) => {
                self.workers[core].turning = false;
                self.collect(core);
            }
            Happening::Tell(core, message) => self.step(core, Event::Message(message)),
            Happening::HandOver(link, core, transfer) => self.arrive(link, core, transfer),
            Happening::Broken(link) => self.broken(link),
            Happening::Supervisor => self.operator(),
            Happening::Balance => self.balance(),
            Happening::Order(command) => self.order(&command),
            Happening::Calm => self.calm(),
        }
    }
}

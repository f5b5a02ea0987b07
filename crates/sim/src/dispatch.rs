//! The queue of events: takes out the next one and calls its function.

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
        let faults = self.faults.total();
        self.happen(what);
        if self.faults.total() > faults {
            self.lookups.note_trouble(self.now);
        }
        true
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Deliver(link, way) => self.deliver(link, way),
            Happening::Sent(link) => self.sent(link),
            Happening::Connect(link) => self.connect(link),
            Happening::Unstall(link, way) => self.unpause(link, way),
            Happening::Arrive(client) => self.client_arrives(client),
            Happening::Says(client, bytes) => self.client_says(client, &bytes),
            Happening::Late(client) => self.check_late(client),
            Happening::Act(client, number) => self.client_acts(client, number),
            Happening::Work(backend, number) => self.backend_works(backend, number),
            Happening::Patience(backend, number) => self.check_patience(backend, number),
            Happening::Signal(pid, key, link) => self.signal(pid, &key, link),
            Happening::Tick(core) => self.tick(core),
            Happening::Turn(core) => {
                self.workers[core].turning = false;
                self.collect(core);
            }
            Happening::Tell(core, message) => {
                self.step(core, refrain_pg::Event::Message(message));
            }
            Happening::Judge(core, case) => self.judge(core, case),
            Happening::Read(core, case) => self.read(core, case),
            Happening::HandOver(link, core, transfer) => self.arrive(link, core, transfer),
            Happening::Broken(link) => self.broken(link),
            Happening::Silent(link) => self.end_silent(link),
            Happening::Promote(host) => self.promote(host),
            Happening::Replay(host) => self.replay(host),
            Happening::Served(since) => self.check_served(since),
            Happening::Supervisor => self.operator(),
            Happening::Balance => self.balance(),
            Happening::Order(command) => self.order(&command),
            Happening::Calm => self.calm(),
        }
    }
}

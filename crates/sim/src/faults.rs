//! The operator's commands, restarts of the server, and the calm at the end.

use refrain_pg::{Event, Flush};
use refrain_pool::event::Command;
use refrain_pool::ids::Core;

use crate::world::{Happening, World};

/// The most units that a client has left when faults have stopped.
const UNITS_LEFT: u64 = 25;

impl World {
    /// Lets the operator act: restart the server, give a command, or neither.
    pub(crate) fn operator(&mut self) {
        if self.is_calm {
            return;
        }
        let again = self.rng.range(1_000, 60_000);
        self.later(again, Happening::Supervisor);
        if self.rng.chance(self.plan.rates.restart) {
            match self.plan.hosts {
                1 => self.restart(),
                _ => self.fail_over(),
            }
        }
        if let Some(command) = self.change_users() {
            self.order(&command);
        }
        if self.plan.cached.is_some() && self.rng.chance(20) {
            let what = *self.rng.pick(&[Flush::All, Flush::Rule("all"), Flush::Tag("some")]);
            self.shared.protocol.flush_results(what);
        }
        if !self.rng.chance(self.plan.rates.command) {
            return;
        }
        match self.rng.below(6) {
            0 | 1 => {
                self.order(&Command::Pause(None));
                let delay = self.rng.range(100, 50_000);
                self.later(delay, Happening::Order(Command::Resume(None)));
            }
            2 | 3 => self.order(&Command::Reconnect(Some("d".into()))),
            4 => self.kill_one(),
            _ => {
                self.faults.kills += 1;
                self.order(&Command::Kill(None));
                let delay = self.rng.range(100, 50_000);
                self.later(delay, Happening::Order(Command::Resume(None)));
            }
        }
    }

    /// Has a core give some of its clients to another, as the program does to balance their load.
    pub(crate) fn balance(&mut self) {
        if self.is_calm {
            return;
        }
        let again = self.rng.range(100, 5_000);
        self.later(again, Happening::Balance);
        let cores = self.workers.len() as u64;
        let from = self.rng.below(cores) as usize;
        let to = (from as u64 + self.rng.range(1, cores - 1)) % cores;
        let to = Core(u16::try_from(to).unwrap_or(0));
        let most = self.rng.range(1, 4) as usize;
        self.step(from, Event::GiveClients { to, most });
    }

    /// Gives a command to every core, one after the other.
    pub(crate) fn order(&mut self, command: &Command) {
        self.trace.fold([self.now, 0, 8], &[]);
        self.trace.line(self.now, "order", "", || format!("{command:?}"));
        match command {
            Command::Kill(database) => self.shared.kill(database.as_ref()),
            Command::Resume(database) => self.shared.set_paused(database.as_ref(), false),
            _ => {}
        }
        for core in 0..self.workers.len() {
            self.step(core, Event::Command(command.clone()));
        }
    }

    fn kill_one(&mut self) {
        let now = self.clock();
        let views = self.workers.iter().flat_map(|worker| worker.engine.snapshot(now).clients);
        let mut serials: Vec<_> = views.map(|client| client.serial).collect();
        serials.sort();
        if !serials.is_empty() {
            let serial = *self.rng.pick(&serials);
            self.faults.kills += 1;
            self.order(&Command::KillClient(serial));
        }
    }

    /// Restarts the server: ends all its sessions and refuses connections for a while.
    fn restart(&mut self) {
        self.trace.line(self.now, "restart", "", String::new);
        let until = self.now + self.rng.range(100, 500_000);
        self.hosts.stop(0, until);
        self.faults.servers += 1;
        for number in 0..self.backends.len() {
            self.shut_down(number);
        }
    }

    /// Stops all faults.
    pub(crate) fn calm(&mut self) {
        self.trace.line(self.now, "calm", "", String::new);
        self.is_calm = true;
        self.hosts.calm();
        self.order(&Command::Resume(None));
        // A client that has pinned a server has the others wait, so what is left has to be short.
        for client in &mut self.clients {
            client.units = client.units.min(UNITS_LEFT);
            client.sessions = 0;
        }
        if self.plan.drains {
            self.faults.drained = true;
            self.order(&Command::Drain);
        }
    }
}

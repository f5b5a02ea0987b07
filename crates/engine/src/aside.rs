//! Queries of our own amid a client's messages, whose replies nobody sees.
//!
//! They are extended messages under names of our own, gone when they are done: a Query would end the transaction of
//! what stands before it without a Sync, and would drop the unnamed statement and portal. Where they fail, they fail
//! the client's transaction, and it hears why.

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::client::Pins;
use crate::ledger::{Entry, Fate, Owed, Purpose};
use crate::names::Name;
use crate::settings::{self, Since, Standing};
use crate::talk::{Stop, Talk};

/// Settings of a client's own making that are asked for by name; one that makes more keeps its server.
const PROBE_NAMES_MAX: usize = 256;

impl Talk<'_> {
    /// Runs a query of ours where the client's messages stand.
    pub(crate) fn run_aside(&mut self, text: &[u8], purpose: Purpose) {
        let name = self.hub.shared.registry.aside();
        let tail = [text, &[0; 3]].concat();
        let out = self.ports.out(self.server.conn);
        // One that failed half-way may have left its statement.
        write::close_statement(out, &name);
        write::parse(out, &name, &tail);
        write::bind(out, &name, &name);
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use Owed::{Bind, Close, Execute, Parse};
        for owed in [Close, Parse, Bind, Execute, Close, Close] {
            self.owe_us(owed, purpose, 0);
        }
    }

    /// The same, in a segment of its own unless the client's is open.
    fn run_alone(&mut self, text: &[u8], purpose: Purpose) {
        let open = self.server.ledger.is_open();
        self.run_aside(text, purpose);
        if open {
            write::bare(self.out(), front::FLUSH);
        } else {
            write::sync(self.out());
            self.owe_us(Owed::Sync, purpose, 0);
        }
    }

    /// Asks the server what settings the client has made.
    pub(crate) fn probe(&mut self) {
        let names = self.client.probe_names.iter().map(|name| name.as_slice());
        let text = settings::probe(&self.server.base, names);
        self.server.probed = None;
        self.run_alone(&text, Purpose::Probe);
    }

    /// The query that puts a client's first settings in the place of those that its server began with, where a text that
    /// may do this goes back to those.
    pub(crate) fn restoration(&self, traits: Traits) -> Option<Vec<u8>> {
        // While a COPY is under way nothing can be said.
        let resets = traits.contains(Traits::RESET) && !traits.contains(Traits::COPY);
        self.client.startup.as_ref().filter(|_| resets).map(|startup| settings::restore(startup))
    }

    /// Runs it behind a Query. The client hears of settings and of the end when that is done: see [`Self::tell_settings`].
    pub(crate) fn restore(&mut self, text: &[u8]) {
        self.run_aside(text, Purpose::Restore);
        write::sync(self.out());
        self.owe(Entry::new(Owed::Sync, Fate::Forward).with(Traits::RESET));
    }

    /// Tells the client those of its first settings that are others now.
    pub(crate) fn tell_settings(&mut self) {
        let Some(welcome) = self.pool().shared.welcome() else { return };
        let Some(startup) = &self.client.startup else { return };
        let mut edit = self.client.profile.edit();
        // Under the names that PostgreSQL reports them by.
        for (name, _) in welcome.iter().filter(|(name, _)| startup.get(name).is_some()) {
            let value = self.server.profile.get(name);
            if let Some(value) = value.filter(|value| edit.get(name) != Some(value)) {
                write::parameter_status(self.ports.out(self.client.conn), name, value);
                edit.set(name, value);
            }
        }
        self.client.profile = self.hub.profile(edit);
    }

    /// Sees that it is known under which settings the next text is read: where the client may have changed them, the
    /// server is asked before the client goes on (E56 to E59).
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let ledger = &self.server.ledger;
        let unknowable = self.client.pins.has(Pins::SETTINGS) || ledger.has_failed();
        if unknowable || !matches!(self.client.standing, Standing::Unsure(..)) {
            return Ok(());
        }
        if ledger.is_empty() {
            self.probe();
        }
        Err(Stop::Gate)
    }

    /// Remembers that a text may change settings, or take a change back.
    pub(crate) fn note_settings(&mut self, text: &[u8], scan: &Scan) {
        let hides = scan.traits.intersects(Traits::SET | Traits::PROCEDURAL);
        let sets = hides || scan.traits.contains(Traits::SET_REPORTED);
        if !(sets || self.client.sets && may_go_back(scan.kind)) {
            return;
        }
        self.client.sets = true;
        for name in refrain_sql::set_names(text).filter(|name| name.contains(&b'.')) {
            let name = Name::from_slice(&name);
            if self.client.probe_names.contains(&name) {
                continue;
            }
            if self.client.probe_names.len() < PROBE_NAMES_MAX {
                self.client.probe_names.push(name);
            } else {
                self.client.pins.add(Pins::SETTINGS);
            }
        }
        let hidden = hides || self.client.probe || self.client.standing.is_hidden();
        let since = Since { segment: self.server.ledger.segment(), hidden };
        let env = match self.client.standing {
            Standing::Unsure(env, _) => env,
            Standing::Told | Standing::Asked(..) => self.hub.shared.own_environment(),
        };
        self.client.standing = Standing::Unsure(env, since);
    }

    /// A transaction or a part of it is over, and PostgreSQL has reported what it reports.
    pub(crate) fn settings_told(&mut self) {
        let Some(since) = self.client.standing.since() else {
            self.client.sets &= self.server.ledger.status() != Status::Idle;
            return;
        };
        if self.server.ledger.is_over(since.segment) {
            self.client.sets &= self.server.ledger.status() != Status::Idle;
            if !since.hidden {
                self.client.standing = Standing::Told;
            }
        }
    }

    /// What a probe found, with what PostgreSQL reports, are the session's settings.
    pub(crate) fn probe_ends(&mut self) {
        let mut edit = self.server.probed.take().unwrap_or_default();
        let ledger = &self.server.ledger;
        let since = self.client.standing.since();
        if ledger.status() != Status::Idle || ledger.is_open() {
            // What was set in a transaction goes with it if it is rolled back.
            if let Some(startup) = &self.client.startup {
                edit.fill(startup);
            }
            let segment = ledger.segment();
            let since = since.unwrap_or(Since { segment, hidden: true });
            self.client.standing = Standing::Asked(self.hub.profile(edit), since);
            return;
        }
        let settled = since.is_none_or(|since| ledger.answers(since.segment));
        for (name, _) in self.server.base.iter() {
            if let Some(value) = self.client.profile.get(name) {
                edit.set(name, value);
            }
        }
        self.server.profile = self.hub.profile(edit.clone());
        if let Some(startup) = &self.client.startup {
            edit.fill(startup);
        }
        self.client.profile = self.hub.profile(edit);
        self.client.probe = false;
        // What was said after it was asked may have changed them again.
        if settled {
            self.client.standing = Standing::Told;
        }
    }
}

/// Whether a statement may take back what was set before it in its transaction.
fn may_go_back(kind: Kind) -> bool {
    !matches!(kind, Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::With)
}

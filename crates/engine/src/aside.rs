//! Queries of our own amid a client's messages, whose replies nobody sees.
//!
//! They are extended messages under names of our own, gone when they are done: a Query would end the transaction of
//! what stands before it without a Sync, and would drop the unnamed statement and portal. Where they fail, they fail
//! the client's transaction, and it hears why.

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::ledger::{Entry, Fate, Owed, Purpose};
use crate::names::Name;
use crate::settings;
use crate::talk::{Stop, Talk};

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
        let text = settings::probe(names);
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

    /// Sees that it is known under which settings the next text is read: where the client has changed them out of
    /// the proxy's sight, the server is asked before the client goes on (E56 to E59).
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let ledger = &self.server.ledger;
        let unknowable = self.client.pins.has(crate::client::Pins::SETTINGS);
        if self.client.own_env.is_none() || unknowable || ledger.has_failed() {
            return Ok(());
        }
        if ledger.is_empty() {
            self.probe();
        }
        Err(Stop::Gate)
    }

    /// Remembers which settings to ask for when the transaction is over, and that until then nobody else's
    /// statements mean the same.
    pub(crate) fn note_settings(&mut self, text: &[u8], scan: &Scan) {
        let sets = scan.traits.contains(Traits::SET);
        // What was learned within a transaction may not outlive it.
        let ends = !matches!(
            scan.kind,
            Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::With
        );
        if !(sets || self.client.probe && ends) {
            return;
        }
        for name in refrain_sql::set_names(text).filter(|name| name.contains(&b'.')) {
            let name = Name::from_slice(&name);
            if !self.client.probe_names.contains(&name) {
                self.client.probe_names.push(name);
            }
        }
        if self.client.own_env.is_none() {
            self.client.own_env = Some(self.hub.shared.own_environment());
        }
    }
}

//! Queries of our own amid a client's messages, whose replies nobody sees.
//!
//! They are extended messages under names of our own, gone when they are done: a Query would end the transaction of
//! what stands before it without a Sync, and would drop the unnamed statement and portal. Where they fail, they fail
//! the client's transaction, and it hears why.

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::ledger::{Owed, Purpose};
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

    /// Puts a client's first settings in the place of those that its server began with and a RESET went back to.
    pub(crate) fn restore(&mut self, traits: Traits) {
        if let Some(startup) = self.client.startup.as_ref().filter(|_| restores(traits)) {
            let text = settings::restore(startup);
            self.run_alone(&text, Purpose::Restore);
        }
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

/// Whether a text that may do this has its settings restored. While a COPY is under way nothing can be said.
pub(crate) fn restores(traits: Traits) -> bool {
    traits.contains(Traits::RESET) && !traits.contains(Traits::COPY)
}

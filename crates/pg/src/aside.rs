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
use crate::ledger::{Entry, Fate, Owed, Purpose, Seq};
use crate::names::Name;
use crate::settings::{self, Edit, Since, Standing};
use crate::talk::{Stop, Talk};

/// Settings of a client's own making that are asked for by name; one that makes more keeps its server.
const PROBE_NAMES_MAX: usize = 256;
/// Bytes of such a name.
const PROBE_NAME_BYTES_MAX: usize = 128;

/// What runs a prepared statement by its name.
const EXECUTE: &[u8] = b"execute";
/// May set what PostgreSQL reports, for the session.
const SETS: Traits = Traits::SET.union(Traits::SET_REPORTED).union(Traits::PROCEDURAL);

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
    pub(crate) fn run_alone(&mut self, text: &[u8], purpose: Purpose) {
        let open = self.server.ledger.is_open();
        self.run_aside(text, purpose);
        if open {
            write::bare(self.out(), front::FLUSH);
        } else {
            self.end_segment(purpose);
        }
    }

    /// Ends a segment of our own, or one that the client is not to hear the end of.
    pub(crate) fn end_segment(&mut self, purpose: Purpose) {
        write::sync(self.out());
        self.owe_us(Owed::Sync, purpose, 0);
    }

    /// Gives the server an empty statement of this name, in the place of whatever had it.
    pub(crate) fn take_name(&mut self, name: &[u8]) -> Seq {
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, name);
        write::parse(out, name, &[0; 3]);
        self.owe_us(Owed::Close, Purpose::Prepare, 0);
        self.owe_us(Owed::Parse, Purpose::Prepare, 0)
    }

    /// Asks the server what settings the client has made.
    pub(crate) fn probe(&mut self) {
        let names = self.client.probe_names.iter().map(|name| name.as_slice());
        let text = settings::probe(&self.server.defaults.profile, names);
        (self.server.probed, self.server.unset) = (None, Edit::default());
        self.server.overfull = false;
        self.run_alone(&text, Purpose::Probe);
    }

    /// The first settings of a client that a text may go back to: what its server began with is another's.
    pub(crate) fn first_settings(&self, text: &[u8], scan: &Scan) -> Option<Box<Edit>> {
        // While a COPY is under way nothing can be said.
        if !scan.traits.contains(Traits::RESET) || scan.traits.contains(Traits::COPY) {
            return None;
        }
        let mut first = self.client.startup.clone()?;
        let names: Vec<_> = refrain_sql::set_names(text).collect();
        let all = scan.traits.contains(Traits::DISCARD_ALL)
            || names.iter().any(|name| **name == *refrain_sql::ANY_PARAMETER);
        first.retain(|name| all || names.iter().any(|set| set.eq_ignore_ascii_case(name)));
        (!first.is_empty()).then_some(first)
    }

    /// Puts them back behind a Query, unless that has failed; says whether it does. The client hears of settings and
    /// of the end when that is done: see [`Self::tell_settings`].
    pub(crate) fn restores_behind(&mut self, seq: Seq) -> bool {
        let barrier = self.client.barrier.as_mut().filter(|barrier| barrier.seq == seq);
        let Some(first) = barrier.and_then(|barrier| barrier.restores.take()) else { return false };
        self.restore_then(&first, Fate::Forward);
        true
    }

    /// Puts them back in segments of their own, behind a message that ended its transaction at once and whose reply has come: what
    /// comes next may fail, and must not take it back.
    pub(crate) fn restore_apart(&mut self, first: &Edit) {
        if self.server.ledger.is_open() {
            self.end_segment(Purpose::Restore);
        }
        self.restore_then(first, Fate::Swallow(Purpose::Restore));
    }

    fn restore_then(&mut self, first: &Edit, end: Fate) {
        self.run_aside(&settings::restore(first), Purpose::Restore);
        write::sync(self.out());
        self.owe(Entry::new(Owed::Sync, end).with(Traits::RESET));
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

    /// Sees that it is known how the constants of the next text are read: what the client may have changed, the server
    /// reports at the end of the segment, and before that it is asked (E57, E58).
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let ledger = &self.server.ledger;
        let Standing::Unsure(_, since) = self.client.standing else { return Ok(()) };
        if self.client.pins.has(Pins::SETTINGS) || ledger.has_failed() {
            return Ok(());
        }
        // An answer on its way is worth waiting for: without it the statement is nobody else's.
        if !since.reads && !ledger.is_probed() {
            return Ok(());
        }
        if ledger.is_empty() {
            self.probe();
        }
        Err(Stop::Gate)
    }

    /// Remembers that a text may change settings, or take a change back.
    pub(crate) fn note_settings(&mut self, text: &[u8], scan: &Scan) {
        let sets = scan.traits.intersects(SETS);
        self.server.stuck |= sets || runs_prepared(text, scan.kind);
        if sets {
            self.claim(text, scan.traits);
        }
        let hides = scan.traits.contains(Traits::SET)
            || scan.traits.contains(Traits::PROCEDURAL) && !self.is_harmless(scan);
        let goes_back = self.client.sets && may_go_back(text, scan.kind);
        let reads = scan.traits.contains(Traits::READING) || goes_back;
        if !(hides || reads) {
            return;
        }
        self.client.sets = true;
        self.note_names(text);
        if scan.traits.contains(Traits::PROCEDURAL) {
            refrain_sql::set_names_within(text).for_each(|name| self.note_name(name));
        }
        let before = self.client.standing.since();
        let since = Since {
            segment: self.server.ledger.segment(),
            reads: reads || before.is_some_and(|before| before.reads),
            hidden: hides || self.client.probe || before.is_some_and(|before| before.hidden),
        };
        self.client.standing = match self.client.standing {
            Standing::Unsure(env, _) => Standing::Unsure(env, since),
            Standing::Told | Standing::Asked(..) => self.unsure(since),
        };
    }

    /// Settings may be changed, and nobody will say so.
    pub(crate) fn hide_settings(&mut self) {
        let before = self.client.standing.since();
        let since = Since {
            segment: self.server.ledger.segment(),
            reads: before.is_some_and(|before| before.reads),
            hidden: true,
        };
        self.client.sets = true;
        self.client.standing = match self.client.standing {
            Standing::Unsure(env, _) => Standing::Unsure(env, since),
            Standing::Told | Standing::Asked(..) => self.unsure(since),
        };
    }

    /// Remembers settings of the client's own making, which are asked for by name.
    fn note_names(&mut self, text: &[u8]) {
        for name in refrain_sql::set_names(text).filter(|name| name.contains(&b'.')) {
            self.note_name(&name);
        }
    }

    pub(crate) fn note_name(&mut self, name: &[u8]) {
        let name = Name::from_slice(name);
        if self.client.probe_names.contains(&name) {
            return;
        }
        if self.client.probe_names.len() < PROBE_NAMES_MAX && name.len() <= PROBE_NAME_BYTES_MAX {
            self.client.probe_names.push(name);
        } else {
            self.client.pins.add(Pins::SETTINGS);
        }
    }

    fn unsure(&self, since: Since) -> Standing {
        Standing::Unsure(self.hub.shared.own_environment(), since)
    }

    /// A segment is over, and PostgreSQL has reported what it reports.
    pub(crate) fn settings_told(&mut self) {
        let since = self.client.standing.since();
        if since.is_some_and(|since| !self.server.ledger.is_over(since.segment)) {
            return;
        }
        self.client.sets &= self.server.ledger.status() != Status::Idle;
        let Some(since) = since.map(|since| Since { reads: false, ..since }) else { return };
        self.client.standing = match self.client.standing {
            _ if !since.hidden => Standing::Told,
            Standing::Unsure(env, _) => Standing::Unsure(env, since),
            Standing::Told | Standing::Asked(..) => self.unsure(since),
        };
    }

    /// What a probe found, with what PostgreSQL reports, are the session's settings.
    pub(crate) fn probe_ends(&mut self) {
        let mut edit = self.server.probed.take().unwrap_or_default();
        if std::mem::take(&mut self.server.overfull) {
            return self.keeps_settings();
        }
        let ledger = &self.server.ledger;
        let since = self.client.standing.since();
        // One in a segment of its own says nothing of what the client has begun behind it.
        if ledger.is_open() && !ledger.probes_apart() {
            if let Some(startup) = &self.client.startup {
                edit.fill(startup);
            }
            let segment = ledger.segment();
            let since = since.unwrap_or(Since { segment, reads: true, hidden: true });
            self.client.standing = Standing::Asked(self.hub.profile(edit), since);
            return;
        }
        let settled = since.is_none_or(|since| ledger.answers(since.segment));
        let before = self.client.profile.clone();
        // What is reported is known better.
        let mut has = edit.clone();
        for (name, _) in self.server.defaults.profile.iter() {
            let (server, client) = (self.server.profile.get(name), self.client.profile.get(name));
            server.into_iter().for_each(|value| has.set(name, value));
            client.into_iter().for_each(|value| edit.set(name, value));
        }
        self.server.profile = self.hub.profile(has);
        if let Some(startup) = &self.client.startup {
            edit.fill(startup);
        }
        self.client.profile = self.hub.profile(edit);
        let unset = std::mem::take(&mut self.server.unset);
        self.learn_defaults(unset.iter());
        self.looked(&before);
        self.client.probe = false;
        // What was said after it was asked may have changed them again.
        if settled {
            self.client.standing = Standing::Told;
        }
    }
}

impl Talk<'_> {
    /// The client has set more than is kept: it keeps its server, and what its texts mean is its own.
    pub(crate) fn keeps_settings(&mut self) {
        if self.client.pins.is_empty() {
            self.pool().counters.pins += 1;
        }
        self.pin(Pins::SETTINGS);
        self.client.probe = false;
        let since = Since { segment: self.server.ledger.segment(), reads: false, hidden: true };
        self.client.standing = self.unsure(since);
    }
}

/// Whether a text runs by name what was prepared, which may set anything.
fn runs_prepared(text: &[u8], kind: Kind) -> bool {
    let names = || text.windows(EXECUTE.len()).any(|word| word.eq_ignore_ascii_case(EXECUTE));
    match kind {
        Kind::Execute(_) | Kind::CreateAsExecute(_) => true,
        Kind::Many => names(),
        _ => false,
    }
}

/// Whether a text may take back what was set before it in its transaction.
fn may_go_back(text: &[u8], kind: Kind) -> bool {
    let to_savepoint =
        || text.trim_ascii_start().get(..8).is_some_and(|w| w.eq_ignore_ascii_case(b"rollback"));
    matches!(kind, Kind::TransactionEnd | Kind::Chain | Kind::Many) || to_savepoint()
}

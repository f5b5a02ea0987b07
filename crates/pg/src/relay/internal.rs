//! Queries of our own amid a client's messages, whose replies nobody sees.
//!
//! They are extended messages under names of our own, gone when they are done: a Query would end the transaction of
//! what stands before it without a Sync, and would drop the unnamed statement and portal. Where they fail, they fail
//! the client's transaction, and it hears why.

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq};
use crate::relay::link::{Link, Stop};
use crate::settings::session::{self, SettingsKnowledge, SettingsMut, Since};
use crate::state::client::Pins;
use crate::statements::of_client::Name;

/// Settings of a client's own making that are asked for by name; one that makes more keeps its server.
const PROBE_NAMES_MAX: usize = 256;
/// Bytes of such a name.
const PROBE_NAME_BYTES_MAX: usize = 128;

/// What runs a prepared statement by its name.
const EXECUTE: &[u8] = b"execute";
/// May set what PostgreSQL reports, for the session.
const SETS: Traits = Traits::SET.union(Traits::SET_REPORTED).union(Traits::PROCEDURAL);

impl Link<'_> {
    /// Runs a query of ours where the client's messages stand.
    pub(crate) fn run_internal(&mut self, text: &[u8], purpose: Purpose) {
        let name = self.core_state.shared.registry.internal();
        let tail = [text, &[0; 3]].concat();
        let out = self.ports.out(self.server.conn);
        // One that failed half-way may have left its statement.
        write::close_statement(out, &name);
        write::parse(out, &name, &tail);
        write::bind(out, &name, &name);
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use RequestKind::{Bind, Close, Execute, Parse};
        for kind in [Close, Parse, Bind, Execute, Close, Close] {
            self.owe_us(kind, purpose, 0);
        }
    }

    /// The same, in a segment of its own unless the client's is open.
    pub(crate) fn run_alone(&mut self, text: &[u8], purpose: Purpose) {
        let open = self.server.outstanding.is_open();
        self.run_internal(text, purpose);
        if open {
            write::bare(self.out(), front::FLUSH);
        } else {
            self.end_segment(purpose);
        }
    }

    /// Ends a segment of our own, or one that the client is not to hear the end of.
    pub(crate) fn end_segment(&mut self, purpose: Purpose) {
        write::sync(self.out());
        self.owe_us(RequestKind::Sync, purpose, 0);
    }

    /// Gives the server an empty statement of this name, in the place of whatever had it.
    pub(crate) fn take_name(&mut self, name: &[u8]) -> Seq {
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, name);
        write::parse(out, name, &[0; 3]);
        self.owe_us(RequestKind::Close, Purpose::Prepare, 0);
        self.owe_us(RequestKind::Parse, Purpose::Prepare, 0)
    }

    /// Asks the server what settings the client has made.
    pub(crate) fn read_settings(&mut self) {
        let names = self.client.names_to_read.iter().map(|name| name.as_slice());
        let text = session::read_settings(&self.server.defaults.settings, names);
        (self.server.settings_read, self.server.unset) = (None, SettingsMut::default());
        self.server.overfull = false;
        self.run_alone(&text, Purpose::ReadSettings);
    }

    /// The first settings of a client that a text may go back to: what its server began with is another's.
    pub(crate) fn first_settings(&self, text: &[u8], scan: &Scan) -> Option<Box<SettingsMut>> {
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
        self.restore_then(&first, ReplyAction::Forward);
        true
    }

    /// Puts them back in segments of their own, behind a message that ended its transaction at once and whose reply has come: what
    /// comes next may fail, and must not take it back.
    pub(crate) fn restore_apart(&mut self, first: &SettingsMut) {
        if self.server.outstanding.is_open() {
            self.end_segment(Purpose::Restore);
        }
        self.restore_then(first, ReplyAction::Skip(Purpose::Restore));
    }

    fn restore_then(&mut self, first: &SettingsMut, end: ReplyAction) {
        self.run_internal(&session::restore(first), Purpose::Restore);
        write::sync(self.out());
        self.owe(OutstandingRequest::new(RequestKind::Sync, end).with(Traits::RESET));
    }

    /// Tells the client those of its first settings that are others now.
    pub(crate) fn tell_settings(&mut self) {
        let Some(server_parameters) = self.pool().shared.server_parameters() else { return };
        let Some(startup) = &self.client.startup else { return };
        let mut edit = self.client.settings.edit();
        // Under the names that PostgreSQL reports them by.
        for (name, _) in server_parameters.iter().filter(|(name, _)| startup.get(name).is_some()) {
            let value = self.server.settings.get(name);
            if let Some(value) = value.filter(|value| edit.get(name) != Some(value)) {
                write::parameter_status(self.ports.out(self.client.conn), name, value);
                edit.set(name, value);
            }
        }
        self.client.settings = self.core_state.settings(edit);
    }

    /// Sees that it is known how the constants of the next text are read: what the client may have changed, the server
    /// reports at the end of the segment, and before that it is asked (E57, E58).
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let outstanding = &self.server.outstanding;
        let SettingsKnowledge::Unknown(_, since) = self.client.knowledge else { return Ok(()) };
        if self.client.pins.has(Pins::SETTINGS) || outstanding.has_failed() {
            return Ok(());
        }
        // An answer on its way is worth waiting for: without it the statement is nobody else's.
        if !since.reads && !outstanding.reads_settings() {
            return Ok(());
        }
        if outstanding.is_empty() {
            self.read_settings();
        }
        Err(Stop::Replies)
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
        let before = self.client.knowledge.since();
        let since = Since {
            segment: self.server.outstanding.segment(),
            reads: reads || before.is_some_and(|before| before.reads),
            hidden: hides
                || self.client.read_settings
                || before.is_some_and(|before| before.hidden),
        };
        self.client.knowledge = match self.client.knowledge {
            SettingsKnowledge::Unknown(env, _) => SettingsKnowledge::Unknown(env, since),
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.unsure(since),
        };
    }

    /// Settings may be changed, and nobody will say so.
    pub(crate) fn hide_settings(&mut self) {
        let before = self.client.knowledge.since();
        let since = Since {
            segment: self.server.outstanding.segment(),
            reads: before.is_some_and(|before| before.reads),
            hidden: true,
        };
        self.client.sets = true;
        self.client.knowledge = match self.client.knowledge {
            SettingsKnowledge::Unknown(env, _) => SettingsKnowledge::Unknown(env, since),
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.unsure(since),
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
        if self.client.names_to_read.contains(&name) {
            return;
        }
        if self.client.names_to_read.len() < PROBE_NAMES_MAX && name.len() <= PROBE_NAME_BYTES_MAX {
            self.client.names_to_read.push(name);
        } else {
            self.client.pins.add(Pins::SETTINGS);
        }
    }

    fn unsure(&self, since: Since) -> SettingsKnowledge {
        SettingsKnowledge::Unknown(self.core_state.shared.own_environment(), since)
    }

    /// A segment is over, and PostgreSQL has reported what it reports.
    pub(crate) fn settings_told(&mut self) {
        let since = self.client.knowledge.since();
        if since.is_some_and(|since| !self.server.outstanding.is_over(since.segment)) {
            return;
        }
        self.client.sets &= self.server.outstanding.status() != Status::Idle;
        let Some(since) = since.map(|since| Since { reads: false, ..since }) else { return };
        self.client.knowledge = match self.client.knowledge {
            _ if !since.hidden => SettingsKnowledge::Reported,
            SettingsKnowledge::Unknown(env, _) => SettingsKnowledge::Unknown(env, since),
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.unsure(since),
        };
    }

    /// What a probe found, with what PostgreSQL reports, are the session's settings.
    pub(crate) fn read_settings_ends(&mut self) {
        let mut edit = self.server.settings_read.take().unwrap_or_default();
        if std::mem::take(&mut self.server.overfull) {
            return self.keeps_settings();
        }
        let outstanding = &self.server.outstanding;
        let since = self.client.knowledge.since();
        // One in a segment of its own says nothing of what the client has begun behind it.
        if outstanding.is_open() && !outstanding.reads_settings_apart() {
            if let Some(startup) = &self.client.startup {
                edit.fill(startup);
            }
            let segment = outstanding.segment();
            let since = since.unwrap_or(Since { segment, reads: true, hidden: true });
            self.client.knowledge =
                SettingsKnowledge::Queried(self.core_state.settings(edit), since);
            return;
        }
        let settled = since.is_none_or(|since| outstanding.answers(since.segment));
        let before = self.client.settings.clone();
        // What is reported is known better.
        let mut has = edit.clone();
        for (name, _) in self.server.defaults.settings.iter() {
            let (server, client) = (self.server.settings.get(name), self.client.settings.get(name));
            server.into_iter().for_each(|value| has.set(name, value));
            client.into_iter().for_each(|value| edit.set(name, value));
        }
        self.server.settings = self.core_state.settings(has);
        if let Some(startup) = &self.client.startup {
            edit.fill(startup);
        }
        self.client.settings = self.core_state.settings(edit);
        let unset = std::mem::take(&mut self.server.unset);
        self.learn_defaults(unset.iter());
        self.looked(&before);
        self.client.read_settings = false;
        // What was said after it was asked may have changed them again.
        if settled {
            self.client.knowledge = SettingsKnowledge::Reported;
        }
    }
}

impl Link<'_> {
    /// The client has set more than is kept: it keeps its server, and what its texts mean is its own.
    pub(crate) fn keeps_settings(&mut self) {
        if self.client.pins.is_empty() {
            self.pool().counters.pins += 1;
        }
        self.pin(Pins::SETTINGS);
        self.client.read_settings = false;
        let since =
            Since { segment: self.server.outstanding.segment(), reads: false, hidden: true };
        self.client.knowledge = self.unsure(since);
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

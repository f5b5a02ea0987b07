//! Internal queries: queries of Refrain's own amid a client's messages, whose replies the client
//! does not get.
//!
//! They are extended messages under internal names, which are closed behind them. A Query would end
//! the transaction of the messages before it that have no Sync, and would drop the unnamed
//! statement and portal. An internal query that fails fails the client's transaction too, and the
//! client gets the error.

use refrain_sql::{Scan, Traits};
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq};
use crate::relay::link::{Link, Stop};
use crate::settings::session::{self, SettingsKnowledge, SettingsMut, Since};
use crate::state::client::Pins;
use crate::state::parts::intern_settings;
use crate::statements::of_client::Name;

/// Number of custom settings of a client that Refrain reads by name; a client that makes more keeps
/// its server.
const PROBE_NAMES_MAX: usize = 256;
/// Bytes of such a name.
const PROBE_NAME_BYTES_MAX: usize = 128;

impl Link<'_> {
    /// Sends an internal query behind the client's messages so far.
    pub(crate) fn run_internal(&mut self, text: &[u8], purpose: Purpose) {
        let name = self.core_state.shared.protocol.registry.internal();
        let tail = [text, &[0; 3]].concat();
        let out = self.ports.out(self.server.conn());
        // An earlier internal query that failed half-way may have left its statement.
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

    /// Sends an internal query, in a segment of its own unless the client's is open.
    pub(crate) fn run_alone(&mut self, text: &[u8], purpose: Purpose) {
        let open = self.server.session.outstanding.is_open();
        self.run_internal(text, purpose);
        if open {
            write::bare(self.out(), front::FLUSH);
        } else {
            self.end_segment(purpose);
        }
    }

    /// Sends a Sync whose ReadyForQuery the client does not get.
    pub(crate) fn end_segment(&mut self, purpose: Purpose) {
        write::sync(self.out());
        self.owe_us(RequestKind::Sync, purpose, 0);
    }

    /// Gives the server an empty statement of this name, in place of any statement that had it.
    pub(crate) fn take_name(&mut self, name: &[u8]) -> Seq {
        let out = self.ports.out(self.server.conn());
        write::close_statement(out, name);
        write::parse(out, name, &[0; 3]);
        self.owe_us(RequestKind::Close, Purpose::Prepare, 0);
        self.owe_us(RequestKind::Parse, Purpose::Prepare, 0)
    }

    /// Asks the server which settings the client has made.
    pub(crate) fn read_settings(&mut self) {
        let names = self.client.session.names_to_read.iter().map(|name| name.as_slice());
        let text = session::read_settings(&self.server.session.defaults.settings, names);
        (self.server.session.settings_read, self.server.session.unset) =
            (None, SettingsMut::default());
        self.server.session.overfull = false;
        self.run_alone(&text, Purpose::ReadSettings);
    }

    /// Returns the client's startup settings that a text may reset. The server would go back to its
    /// own defaults, since it was connected without the client's startup packet.
    pub(crate) fn first_settings(&self, text: &[u8], scan: &Scan) -> Option<Box<SettingsMut>> {
        // The text may start a COPY, and no query can be sent while one is under way.
        if !scan.traits.contains(Traits::RESET) || scan.traits.contains(Traits::COPY) {
            return None;
        }
        let mut first = self.client.session.startup.clone()?;
        let names: Vec<_> = refrain_sql::set_names(text).collect();
        let all = scan.traits.contains(Traits::DISCARD_ALL)
            || names.iter().any(|name| **name == *refrain_sql::ANY_PARAMETER);
        first.retain(|name| all || names.iter().any(|set| set.eq_ignore_ascii_case(name)));
        (!first.is_empty()).then_some(first)
    }

    /// Restores the startup settings behind a Query, unless it has failed; true if it does. The
    /// client gets ParameterStatus and ReadyForQuery once that is done: see
    /// [`Self::tell_settings`].
    pub(crate) fn restores_behind(&mut self, seq: Seq) -> bool {
        let barrier = self.client.session.barrier.as_mut().filter(|barrier| barrier.seq == seq);
        let Some(first) = barrier.and_then(|barrier| barrier.restores.take()) else { return false };
        self.restore_then(&first, ReplyAction::Forward);
        true
    }

    /// Restores the startup settings in a separate transaction, so that an error in the client's
    /// next message cannot roll them back.
    pub(crate) fn restore_apart(&mut self, first: &SettingsMut) {
        if self.server.session.outstanding.is_open() {
            self.end_segment(Purpose::Restore);
        }
        self.restore_then(first, ReplyAction::Skip(Purpose::Restore));
    }

    fn restore_then(&mut self, first: &SettingsMut, end: ReplyAction) {
        self.run_internal(&session::restore(first), Purpose::Restore);
        write::sync(self.out());
        self.owe(OutstandingRequest::new(RequestKind::Sync, end).with(Traits::RESET));
    }

    /// Sends ParameterStatus for the client's startup settings whose values have changed.
    pub(crate) fn tell_settings(&mut self) {
        let Some(server_parameters) = self.pool().shared.protocol.server_parameters() else {
            return;
        };
        let Some(startup) = &self.client.session.startup else { return };
        let mut edit = self.client.session.settings.edit();
        // The names of PostgreSQL's reports, since `Settings` has them in lower case.
        for (name, _) in server_parameters.iter().filter(|(name, _)| startup.get(name).is_some()) {
            let value = self.server.session.settings.get(name);
            if let Some(value) = value.filter(|value| edit.get(name) != Some(value)) {
                write::parameter_status(self.ports.out(self.client.conn()), name, value);
                edit.set(name, value);
            }
        }
        self.client.session.settings = intern_settings(self.core_state, edit);
    }

    /// Waits until Refrain knows how the server reads the constants of the next text (E57, E58).
    /// The server reports changed settings at the end of the segment; before that Refrain asks it.
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let outstanding = &self.server.session.outstanding;
        let SettingsKnowledge::Unknown(_, since) = self.client.session.knowledge else {
            return Ok(());
        };
        if self.client.session.pins.has(Pins::SETTINGS) || outstanding.has_failed() {
            return Ok(());
        }
        // Without the settings the statement could not be shared. A reply on its way is worth
        // waiting for.
        if !since.reads && !outstanding.reads_settings() {
            return Ok(());
        }
        if outstanding.is_empty() {
            self.read_settings();
        }
        Err(Stop::Replies)
    }

    /// Notes that settings may change without a report by the server.
    pub(crate) fn hide_settings(&mut self) {
        let before = self.client.session.knowledge.since();
        let since = Since {
            segment: self.server.session.outstanding.segment(),
            reads: before.is_some_and(|before| before.reads),
            hidden: true,
        };
        self.client.session.sets = true;
        self.client.session.knowledge = match self.client.session.knowledge {
            SettingsKnowledge::Unknown(env, _) => SettingsKnowledge::Unknown(env, since),
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.unsure(since),
        };
    }

    pub(crate) fn note_name(&mut self, name: &[u8]) {
        let name = Name::from_slice(name);
        if self.client.session.names_to_read.contains(&name) {
            return;
        }
        if self.client.session.names_to_read.len() < PROBE_NAMES_MAX
            && name.len() <= PROBE_NAME_BYTES_MAX
        {
            self.client.session.names_to_read.push(name);
        } else {
            self.client.session.pins.add(Pins::SETTINGS);
        }
    }

    pub(crate) fn unsure(&self, since: Since) -> SettingsKnowledge {
        SettingsKnowledge::Unknown(self.core_state.shared.protocol.own_environment(), since)
    }
}

impl Link<'_> {
    /// Pins a client whose settings are too large to be kept. Its texts get a parse environment of
    /// their own.
    pub(crate) fn keeps_settings(&mut self) {
        if self.client.session.pins.is_empty() {
            self.pool().counters.protocol.pins += 1;
        }
        self.pin(Pins::SETTINGS);
        self.client.session.read_settings = false;
        let since = Since {
            segment: self.server.session.outstanding.segment(),
            reads: false,
            hidden: true,
        };
        self.client.session.knowledge = self.unsure(since);
    }
}

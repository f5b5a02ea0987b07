//! The settings of a client, as Refrain learns them: it asks the server, restores those of the
//! client's startup packet behind a RESET, and tells the client.

use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::write;

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, Seq};
use crate::relay::link::{Link, Stop};
use crate::settings::placeholders::is_placeholder;
use crate::settings::queries::Restores;
use crate::settings::session::Since;
use crate::settings::value;
use crate::state::client::pins::Pins;
use crate::state::client::reading::Restoring;
use crate::state::parts::intern_settings;

impl Link<'_> {
    /// Asks the server which settings the client has made.
    pub(crate) fn read_settings(&mut self) {
        // The server counts an internal query among the commands of an open segment: it refuses
        // DISCARD ALL behind it, and PostgreSQL 18 makes a block of what follows. So as long as the
        // client's transaction has run nothing, the question stands in a segment of its own.
        if self.pipe.server.session.outstanding.is_barely_open() {
            self.pipe.end_segment(Purpose::ReadSettings);
        }
        let names = self.client.session.settings.names();
        let text = self.pipe.server.session.settings.read(names);
        self.pipe.run_reading(&text, self.client.session.settings.are_hurried());
    }

    /// Returns the client's startup settings that a text may reset. The server would go back to its
    /// own defaults, since it was connected without the client's startup packet.
    pub(crate) fn first_settings(&self, text: &[u8], scan: &Scan) -> Option<Box<Restores>> {
        // The text may start a COPY, and no query can be sent while one is under way.
        let local = matches!(scan.kind, Kind::SetLocal { .. });
        let resets = local || scan.traits.contains(Traits::RESET);
        if !resets || scan.traits.contains(Traits::COPY) {
            return None;
        }
        let mut settings = *self.client.session.settings.startup()?;
        let names: Vec<_> = match local {
            true => refrain_sql::reset_locally(text),
            false => refrain_sql::set_names(text).collect(),
        };
        let has = |name: &[u8]| names.iter().any(|set| set.eq_ignore_ascii_case(name));
        let (all, discards) =
            (has(refrain_sql::ANY_PARAMETER), scan.traits.contains(Traits::DISCARD_ALL));
        settings.retain(|name| match name {
            // RESET ALL leaves the role as it is. One comes back with the user of the session.
            b"role" => discards || has(name) || has(b"session_authorization"),
            _ => discards || all || has(name),
        });
        (!settings.is_empty()).then(|| Box::new(Restores { settings, local }))
    }

    /// Restores the startup settings behind a Query, unless it has failed; true if it does. The
    /// client gets ParameterStatus and ReadyForQuery once that is done: see
    /// [`Self::tell_settings`].
    pub(crate) fn restores_behind(&mut self, seq: Seq) -> bool {
        let Some(first) = self.client.session.reading.take_restores(seq) else { return false };
        self.restore(Restoring::new(first), ReplyAction::Forward);
        true
    }

    /// Restores the startup settings in a separate transaction, so that an error in the client's
    /// next message cannot roll them back. The message waits for it.
    pub(crate) fn restore_apart(&mut self, first: Box<Restores>) {
        if self.pipe.server.session.outstanding.is_open() {
            self.pipe.end_segment(Purpose::Restore);
        }
        self.restore(Restoring::new(first), ReplyAction::Skip(Purpose::Restore));
    }

    fn restore(&mut self, restoring: Restoring, end: ReplyAction) {
        let seq = self.pipe.restore_then(&restoring.settings, end);
        self.client.session.reading.bar_restoring(seq, restoring);
    }

    /// Ends the restoring of settings up to a Sync, or begins it again if a cancel request has hit
    /// it; true if so.
    pub(crate) fn restores_again(&mut self, sync: &OutstandingRequest, seq: Seq) -> bool {
        let restoring = self.client.session.reading.take_restoring(seq);
        let Some(again) = restoring.and_then(Restoring::again) else { return false };
        self.restore(again, sync.action);
        true
    }

    /// Sends ParameterStatus for the client's startup settings whose values have changed.
    pub(crate) fn tell_settings(&mut self) {
        let Some(server_parameters) = self.pipe.pool().shared.protocol.server_parameters() else {
            return;
        };
        let settings = &self.client.session.settings;
        if !settings.have_startup() {
            return;
        }
        let mut edit = settings.expected().edit();
        // The names of PostgreSQL's reports, since `Settings` has them in lower case.
        for (name, _) in server_parameters.iter().filter(|(name, _)| settings.begin_with(name)) {
            let value = self.pipe.server.session.settings.current().get(name);
            if let Some(value) = value.filter(|value| edit.get(name) != Some(value)) {
                let out = self.pipe.ports.out(self.client.conn());
                write::parameter_status(out, name, value::bytes(value));
                edit.set(name, value);
            }
        }
        self.client.session.settings.expect(intern_settings(self.pipe.core_state, edit));
    }

    /// Waits until Refrain knows how the server reads the constants of the next text (E57, E58).
    /// The server reports changed settings at the end of the segment; before that Refrain asks it.
    pub(crate) fn know_settings(&mut self) -> Result<(), Stop> {
        let outstanding = &self.pipe.server.session.outstanding;
        let Some(since) = self.client.session.settings.unknown_since() else { return Ok(()) };
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
        let segment = self.pipe.server.session.outstanding.segment();
        self.settings_change(Since { segment, reads: false, hidden: true, decides: false });
    }

    /// Notes that a text in the current segment may change any settings.
    pub(crate) fn may_change_settings(&mut self) {
        let segment = self.pipe.server.session.outstanding.segment();
        self.may_change_settings_in(segment);
    }

    /// Notes the same of a text in this segment.
    pub(crate) fn may_change_settings_in(&mut self, segment: Segment) {
        self.settings_change(Since { segment, reads: true, hidden: true, decides: true });
    }

    /// Notes that a text may change settings, as `change` says.
    pub(crate) fn settings_change(&mut self, change: Since) {
        let shared = &self.pipe.core_state.shared.protocol;
        self.client.session.settings.may_change(change, || shared.own_environment());
    }

    /// Notes that the client and its server have a parameter of the client's own from now on.
    pub(crate) fn note_placeholder(&mut self, name: &[u8]) {
        if is_placeholder(name) {
            self.client.session.settings.placeholders.add(name);
            self.pipe.note_placeholder(name);
        }
    }

    /// Notes the name of a custom setting. A client that has too many keeps its server.
    pub(crate) fn note_name(&mut self, name: &[u8]) {
        self.note_placeholder(name);
        let settings = &self.client.session.settings;
        let encoding = settings.current().get(b"client_encoding").unwrap_or_default();
        let name = value::keep(name, encoding, self.pipe.server.session.settings.encoding());
        if !self.client.session.settings.note_name(&name) {
            self.client.session.pins.pin(Pins::SETTINGS);
        }
    }
}

impl Link<'_> {
    /// Pins a client whose settings are too large to be kept. Its texts get a parse environment of
    /// their own.
    pub(crate) fn keeps_settings(&mut self) {
        if self.client.session.pins.is_empty() {
            self.pipe.pool().counters.protocol.pins += 1;
        }
        self.pin(Pins::SETTINGS);
        let segment = self.pipe.server.session.outstanding.segment();
        let env = self.pipe.core_state.shared.protocol.own_environment();
        self.client.session.settings.are_too_large(segment, env);
    }
}

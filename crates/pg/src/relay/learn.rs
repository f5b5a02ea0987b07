//! The settings of a client, as Refrain learns them: when it asks the server, and for which names.

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::Purpose;
use crate::relay::link::{Link, Stop};
use crate::settings::placeholders::is_placeholder;
use crate::settings::session::Since;
use crate::settings::value;
use crate::state::client::pins::Pins;

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

//! Messages from a server that are not part of the hot path: ParameterStatus, rows that answer
//! Refrain's queries about settings, and the process ID in notifications.

use refrain_sql::Traits;
use refrain_wire::back as read;

use crate::pipeline::outstanding::{OutstandingRequest, ReplyAction, RequestKind};
use crate::pipeline::purposes::Reports;
use crate::relay::follow::{explains_settings, learn_defaults, suspect_defaults};
use crate::relay::learn::keeps_settings;
use crate::relay::link::Link;
use crate::relay::look::{look_row, looked};
use crate::relay::pipe::Pipeline;
use crate::relay::reader::{Goes, Halt, Reader, ServerInput};
use crate::relay::run::held_notices;
use crate::results::filling::reported_age;
use crate::results::of_client::tells_age;
use crate::settings::guard::GUARDED;
use crate::settings::queries::UNSET;
use crate::settings::session::{AGE_REPORT, is_settable};
use crate::settings::value;
use crate::state::client::ClientSession;
use crate::state::parts::intern_settings;

/// Bytes of the beginning of a NotificationResponse: its header, and the process ID of the sender.
const SENDER_BYTES: usize = refrain_wire::frame::HEADER_BYTES + size_of::<u32>();

impl Link<'_> {
    /// Handles the report of a setting. `value` is `None` if it is too long to be held.
    #[inline(never)]
    pub(crate) fn tell_report(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<Goes, Halt> {
        // Refrain sets other settings for one Parse and goes back (E57). The client must not hear
        // of that.
        let own = self.pipe.server.session.outstanding.front().and_then(|entry| entry.action.own());
        if own.is_some_and(|own| own.reports == Reports::Hidden) {
            return Ok(Goes::Nowhere);
        }
        if name == AGE_REPORT {
            self.client.session.results.note_age(reported_age(value));
            let told = tells_age(self.client.session.settings.expected());
            return Ok(if told { Goes::On } else { Goes::Nowhere });
        }
        if !is_settable(name) {
            return Ok(Goes::On);
        }
        // A new default does not change a setting that the client has made itself, though the
        // server may have had its default in place of the client's value.
        let by_default = self.pipe.server.session.settings.is_default(name);
        let follows = by_default
            && self.client.session.settings.owns(name)
            && !explains_settings(&self.pipe.server.session, &self.client.session);
        let held = is_held(&self.pipe, &self.client.session, name) || follows;
        let client = (!held).then_some(&**self.client.session.settings.expected());
        match self.pipe.server.session.settings.report(name, value, client) {
            Some(true) => Ok(Goes::On),
            Some(false) => Ok(Goes::Nowhere),
            None => Err(Halt::Broken),
        }
    }

    /// Records the settings that were reported since the last call.
    #[inline]
    pub(crate) fn take_reported(&mut self) {
        if !self.pipe.server.session.settings.is_recorded() {
            self.record_reported();
        }
    }

    #[inline(never)]
    fn record_reported(&mut self) {
        let Some(reported) = self.pipe.server.session.settings.take_reported() else { return };
        suspect_defaults(
            self.client.conn(),
            &mut self.pipe,
            &mut self.client.session,
            reported.by_server(),
        );
        let settings = &mut self.pipe.server.session.settings;
        settings.were_reported(&reported, |edit| intern_settings(self.pipe.core_state, edit));
        let database = self.pipe.server.session.settings.encoding();
        if let Some(edit) = reported.of_client(self.client.session.settings.expected(), database) {
            self.client.session.settings.expect(intern_settings(self.pipe.core_state, edit));
        }
        if reported.has_lost() {
            keeps_settings(&mut self.pipe, &mut self.client.session);
        }
    }
}

/// Whether the client hears of this setting later: a RESET is under way, behind which Refrain
/// restores it.
fn is_held(pipe: &Pipeline<'_>, session: &ClientSession, name: &[u8]) -> bool {
    let later = |entry: &OutstandingRequest| {
        let own = entry.action.own().is_some_and(|own| own.reports == Reports::Later);
        own || entry.action == ReplyAction::Held || restores(entry)
    };
    pipe.server.session.outstanding.front().is_some_and(later) && session.settings.begin_with(name)
}

impl Link<'_> {
    /// Reads a row that answers the query for settings: a setting that was set in the session, and
    /// its value.
    pub(crate) fn read_settings_row(&mut self, body: &[u8]) {
        let mut columns = read::columns(body);
        if let (Some(Some(name)), Some(Some(value))) = (columns.next(), columns.next()) {
            if let Some(what) = name.strip_prefix(b"=") {
                return look_row(&mut self.pipe, &mut self.client.session, what, value);
            }
            let name = name.strip_prefix(GUARDED).unwrap_or(name);
            let unset = name.strip_suffix(UNSET);
            let name = unset.unwrap_or(name);
            self.pipe.server.session.settings.read_row(name, unset.is_some(), value);
        }
    }

    /// Ends a reading of settings: the rows, with what PostgreSQL reports, are the session's
    /// settings.
    pub(crate) fn read_settings_ends(&mut self) {
        let Some((mut edit, unset)) = self.pipe.server.session.settings.take_read() else {
            looked(&mut self.pipe, &mut self.client.session, None);
            return keeps_settings(&mut self.pipe, &mut self.client.session);
        };
        let outstanding = &self.pipe.server.session.outstanding;
        // A reading amid the client's segment holds for that transaction. One in a segment of its
        // own says nothing of a segment that the client has begun behind it.
        if outstanding.is_open() && !outstanding.reads_settings_apart() {
            let intern = |edit| intern_settings(self.pipe.core_state, edit);
            let segment = outstanding.segment();
            return self.client.session.settings.were_queried(segment, edit, intern);
        }
        let settled = self.client.session.settings.are_settled(outstanding);
        let settings = &mut self.pipe.server.session.settings;
        settings.were_read(edit.clone(), |has| intern_settings(self.pipe.core_state, has));
        self.pipe.close_if_brief();
        // Reported values take precedence over the rows, for the client as for the server.
        for (name, _) in self.pipe.server.session.settings.defaults().settings.iter() {
            let value = self.client.session.settings.expected().get(name);
            let value = value.filter(|value| !value::is_foreign(value));
            value.into_iter().for_each(|value| edit.set(name, value));
        }
        let intern = |edit| intern_settings(self.pipe.core_state, edit);
        let before = self.client.session.settings.were_read(edit, intern);
        learn_defaults(self.client.conn(), &mut self.pipe, &mut self.client.session, unset.iter());
        looked(&mut self.pipe, &mut self.client.session, Some(&before));
        self.client.session.settings.reading_ends(settled);
    }

    /// Replaces the process ID in a notification that the client's own session has sent. The client
    /// knows its session by the process ID that Refrain gave it. If so, handles the beginning of
    /// the notification.
    pub(crate) fn name_sender(&mut self, run: &mut ServerInput<'_>) -> Result<(), Halt> {
        let Some(begun) = run.input[run.at..].first_chunk::<SENDER_BYTES>() else {
            return Err(Halt::More);
        };
        let (head, pid) = begun.split_at(refrain_wire::frame::HEADER_BYTES);
        if *pid != self.pipe.server.pid().to_be_bytes() {
            return Ok(());
        }
        self.flush(run);
        let own = self.client.pid().to_be_bytes();
        let out = self.pipe.ports.out(self.client.conn());
        out.extend_from_slice(head);
        out.extend_from_slice(&own);
        self.advance(run, SENDER_BYTES, Goes::Nowhere);
        Ok(())
    }

    /// Sends the notices of an autoprepared statement that were held back: its values are bound
    /// now, so the query string will not be run again, which would raise them a second time.
    #[inline]
    pub(crate) fn release_notices(&mut self, run: &mut ServerInput<'_>) {
        if let Some(notices) = held_notices(&mut self.pipe.server.session) {
            self.flush(run);
            self.pipe.ports.out(self.client.conn()).extend_from_slice(&notices);
        }
    }
}

/// Whether the request is the Sync that ends restoring settings behind a RESET.
pub(crate) fn restores(entry: &OutstandingRequest) -> bool {
    entry.kind == RequestKind::Sync && entry.traits.contains(Traits::RESET)
}

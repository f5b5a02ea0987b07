//! What a server says of its settings: reports that come by themselves, and rows of the probe.

use refrain_wire::back as read;

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction};
use crate::relay::link::Link;
use crate::relay::to_client::{Goes, Halt, restores};
use crate::settings::session::{UNSET, is_settable};

impl Link<'_> {
    /// A setting was reported, with a value unless that is too long to be looked at.
    pub(crate) fn reported(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<Goes, Halt> {
        let passes = [ReplyAction::Skip(Purpose::Environment), ReplyAction::Skip(Purpose::Return)];
        let passing = |e: &OutstandingRequest| passes.contains(&e.action);
        if self.server.outstanding.front().is_some_and(passing) {
            return Ok(Goes::Nowhere);
        }
        if !is_settable(name) {
            return Ok(Goes::On);
        }
        let has = &self.server.settings;
        // What is its own another default does not change, which its server may have had in its place.
        let by_default = has.get(name) == self.server.defaults.get(name);
        let follows = by_default && self.client.owns(name) && !self.explains_settings();
        let held = self.is_held(name) || follows;
        let heard = &self.client.settings;
        let told = self.server.told.get_or_insert_default();
        let news = !held && !told.is_known(heard, name, value);
        if !told.note(has, Some(&**heard).filter(|_| news), name, value) {
            return Err(Halt::Broken);
        }
        Ok(if news { Goes::On } else { Goes::Nowhere })
    }

    /// InternedSettings are made of what was reported. Not of each report: a server may send any number.
    #[inline]
    pub(crate) fn take_told(&mut self) {
        let Some(told) = self.server.told.take() else { return };
        self.suspect_defaults(told.by_server());
        if let Some(edit) = told.of_server(&self.server.settings) {
            self.server.settings = self.core_state.settings(edit);
        }
        if let Some(edit) = told.of_client(&self.client.settings) {
            self.client.settings = self.core_state.settings(edit);
        }
        if told.has_lost() {
            self.keeps_settings();
        }
    }

    /// Whether the client hears of this setting only once its RESET has been put right.
    fn is_held(&self, name: &[u8]) -> bool {
        let held = [ReplyAction::Held, ReplyAction::Skip(Purpose::Restore)];
        let first = self.server.outstanding.front();
        first.is_some_and(|entry| held.contains(&entry.action) || restores(entry))
            && self.client.startup.as_ref().is_some_and(|startup| startup.get(name).is_some())
    }

    /// What the server has made of settings that it is to look at. It reports those only that have changed, and by other names
    /// some are as they were.
    pub(crate) fn sync_settings_row(&mut self, body: &[u8]) {
        self.was_reset(body);
        let Some(asked) = self.server.settings_read.take() else { return };
        let mut edit = self.server.settings.edit();
        let before = read::columns(body).count().saturating_sub(asked.iter().count());
        for ((name, _), value) in asked.iter().zip(read::columns(body).skip(before)) {
            if let Some(value) = value {
                edit.set(name, value);
            }
        }
        self.server.settings = self.core_state.settings(edit);
    }

    /// A row of the probe: a setting that was set in the session, and its value.
    pub(crate) fn read_settings_row(&mut self, body: &[u8]) {
        let mut columns = read::columns(body);
        if let (Some(Some(name)), Some(Some(value))) = (columns.next(), columns.next()) {
            if let Some(what) = name.strip_prefix(b"=") {
                return self.look_row(what, value);
            }
            let unset = name.strip_suffix(UNSET);
            let name = unset.unwrap_or(name);
            let default = self.server.defaults.get(name);
            // A function may have set what it was before.
            self.server.stuck |= unset.is_none() && default == Some(value);
            if unset.is_some() && default.is_some() {
                self.server.unset.set(name, value);
            }
            let settings_read = self.server.settings_read.get_or_insert_default();
            match settings_read.has_room(None, name, value) {
                true => settings_read.set(name, value),
                false => self.server.overfull = true,
            }
        }
    }

    /// Notes that Refrain's reset query has run: the server has its defaults again.
    pub(crate) fn reset_ends(&mut self) {
        self.server.statements.clear();
        self.server.dirty = false;
        self.server.settings = self.server.defaults.settings.clone();
        self.server.stuck = true;
    }
}

//! Reported settings: the ParameterStatus messages of a server, until [`Settings`] are made of
//! them.
//!
//! A server may report any number of settings in a row. Refrain makes one [`Settings`] for the
//! server and one for its client of all that came together. A value too long to be kept is passed
//! on and forgotten; the session then keeps its server.

use crate::settings::encoding::Encoding;
use crate::settings::session::{Settings, SettingsMut};
use crate::settings::value;

/// Settings that a server has reported and that are in no [`Settings`] yet.
#[derive(Debug, Default)]
pub(crate) struct ReportedSettings {
    /// The values that the server has now.
    server: SettingsMut,
    /// The values of these that the client was told.
    client: SettingsMut,
    /// Names of settings whose values are too long to be kept.
    lost: Vec<Box<[u8]>>,
}

/// Settings of a server whose values are too long to be kept, at most. PostgreSQL has one that can
/// be.
const LOST_MAX: usize = 16;

impl ReportedSettings {
    /// Returns the value of a setting in `settings` with these changes.
    fn value<'a>(edit: &'a SettingsMut, settings: &'a Settings, name: &[u8]) -> Option<&'a [u8]> {
        edit.get(name).or_else(|| settings.get(name))
    }

    /// Notes a setting that a server reported; `heard` are the client's settings, if the client is
    /// told. A `value` of `None` is too long to be kept. False if there are too many of those.
    #[must_use]
    pub(crate) fn note(
        &mut self,
        has: &Settings,
        heard: Option<&Settings>,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> bool {
        let fits = |edit: &SettingsMut, settings, value: &&[u8]| {
            edit.has_room(Some(settings), name, value)
        };
        let value = value.filter(|value| {
            fits(&self.server, has, value)
                && heard.is_none_or(|heard| fits(&self.client, heard, value))
        });
        let Some(value) = value else {
            self.server.remove(name);
            self.client.remove(name);
            if !self.lost.iter().any(|lost| **lost == *name) {
                self.lost.push(name.into());
            }
            return self.lost.len() <= LOST_MAX;
        };
        if Self::value(&self.server, has, name) != Some(value) {
            self.server.set(name, value);
        }
        if heard.is_some() {
            self.client.set(name, value);
        }
        true
    }

    /// True if the client, whose settings are `heard`, knows this value.
    pub(crate) fn is_known(&self, heard: &Settings, name: &[u8], value: Option<&[u8]>) -> bool {
        let lost = self.lost.iter().any(|lost| lost.eq_ignore_ascii_case(name));
        value.is_some()
            && !lost
            && Self::value(&self.client, heard, name).map(value::bytes) == value
    }

    /// True if some values are too long to be kept.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns the server's settings with those that it has reported; `None` if they are unchanged.
    pub(crate) fn of_server(&self, has: &Settings, database: Encoding) -> Option<SettingsMut> {
        self.over(&self.server, has, database)
    }

    /// Returns the settings that the server has reported.
    pub(crate) fn by_server(&self) -> &SettingsMut {
        &self.server
    }

    /// Returns the client's settings with those that it was told; `None` if they are unchanged.
    pub(crate) fn of_client(&self, heard: &Settings, database: Encoding) -> Option<SettingsMut> {
        self.over(&self.client, heard, database)
    }

    /// Reports come in the encoding that the client has when all have come.
    fn over(
        &self,
        told: &SettingsMut,
        settings: &Settings,
        database: Encoding,
    ) -> Option<SettingsMut> {
        if told.is_empty() && self.lost.is_empty() {
            return None;
        }
        let mut edit = settings.edit();
        self.lost.iter().for_each(|name| edit.remove(name));
        let encoding = Self::value(&self.server, settings, b"client_encoding").unwrap_or_default();
        for (name, value) in told.iter() {
            edit.set(name, &value::keep(value, encoding, database));
        }
        Some(edit)
    }
}

//! What a server has reported of its settings, until profiles are made of it.
//!
//! A server may report any number of settings in a row: one profile for the server and one for its client are made of
//! all that came together. A value too long to be kept is passed on and forgotten; the session then keeps its server.

use crate::settings::session::{Settings, SettingsMut};

/// Settings that a server has reported, and that no profile has yet: one is made of all that come together.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What the server has now.
    server: SettingsMut,
    /// What of that the client was told.
    client: SettingsMut,
    /// ClientStatements of settings that are too long to be kept.
    lost: Vec<Box<[u8]>>,
}

/// Settings that a server may report with values too long to be kept. PostgreSQL has one.
const LOST_MAX: usize = 16;

impl Told {
    /// The value that a profile with these in it has of a setting.
    fn value<'a>(edit: &'a SettingsMut, settings: &'a Settings, name: &[u8]) -> Option<&'a [u8]> {
        edit.get(name).or_else(|| settings.get(name))
    }

    /// Notes what a server reported; `heard` is the profile of the client, if that is told. `None` stands for a value too long
    /// to be kept. False where there are too many of those.
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

    /// Whether the client knows this value, whose profile is `heard`.
    pub(crate) fn is_known(&self, heard: &Settings, name: &[u8], value: Option<&[u8]>) -> bool {
        let lost = self.lost.iter().any(|lost| lost.eq_ignore_ascii_case(name));
        value.is_some() && !lost && Self::value(&self.client, heard, name) == value
    }

    /// Whether some are too long to be kept.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The server's settings with what it has reported; `None` where they are as they were.
    pub(crate) fn of_server(&self, has: &Settings) -> Option<SettingsMut> {
        self.over(&self.server, has)
    }

    /// What it has reported.
    pub(crate) fn by_server(&self) -> &SettingsMut {
        &self.server
    }

    /// The client's settings with what it was told.
    pub(crate) fn of_client(&self, heard: &Settings) -> Option<SettingsMut> {
        self.over(&self.client, heard)
    }

    fn over(&self, told: &SettingsMut, settings: &Settings) -> Option<SettingsMut> {
        if told.is_empty() && self.lost.is_empty() {
            return None;
        }
        let mut edit = settings.edit();
        self.lost.iter().for_each(|name| edit.remove(name));
        told.iter().for_each(|(name, value)| edit.set(name, value));
        Some(edit)
    }
}

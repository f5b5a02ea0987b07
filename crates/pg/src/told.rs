//! What a server has reported of its settings, until profiles are made of it.
//!
//! A server may report any number of settings in a row: one profile for the server and one for its client are made of
//! all that came together. A value too long to be kept is passed on and forgotten; the session then keeps its server.

use crate::settings::{Edit, Profile};

/// Settings that a server has reported, and that no profile has yet: one is made of all that come together.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What the server has now.
    server: Edit,
    /// What of that the client was told.
    client: Edit,
    /// Names of settings that are too long to be kept.
    lost: Vec<Box<[u8]>>,
}

/// Settings that a server may report with values too long to be kept. PostgreSQL has one.
const LOST_MAX: usize = 16;

impl Told {
    /// The value that a profile with these in it has of a setting.
    fn value<'a>(edit: &'a Edit, profile: &'a Profile, name: &[u8]) -> Option<&'a [u8]> {
        edit.get(name).or_else(|| profile.get(name))
    }

    /// Notes what a server reported; `heard` is the profile of the client, if that is told. `None` stands for a value too long
    /// to be kept. False where there are too many of those.
    #[must_use]
    pub(crate) fn note(
        &mut self,
        has: &Profile,
        heard: Option<&Profile>,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> bool {
        let fits = |edit: &Edit, profile, value: &&[u8]| edit.has_room(Some(profile), name, value);
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
    pub(crate) fn is_known(&self, heard: &Profile, name: &[u8], value: Option<&[u8]>) -> bool {
        let lost = self.lost.iter().any(|lost| lost.eq_ignore_ascii_case(name));
        value.is_some() && !lost && Self::value(&self.client, heard, name) == value
    }

    /// Whether some are too long to be kept.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The server's settings with what it has reported; `None` where they are as they were.
    pub(crate) fn of_server(&self, has: &Profile) -> Option<Edit> {
        self.over(&self.server, has)
    }

    /// What it has reported.
    pub(crate) fn by_server(&self) -> &Edit {
        &self.server
    }

    /// The client's settings with what it was told.
    pub(crate) fn of_client(&self, heard: &Profile) -> Option<Edit> {
        self.over(&self.client, heard)
    }

    fn over(&self, told: &Edit, profile: &Profile) -> Option<Edit> {
        if told.is_empty() && self.lost.is_empty() {
            return None;
        }
        let mut edit = profile.edit();
        self.lost.iter().for_each(|name| edit.remove(name));
        told.iter().for_each(|(name, value)| edit.set(name, value));
        Some(edit)
    }
}

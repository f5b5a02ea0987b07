//! Settings of a session: those that a client expects, those that a server has, and the queries
//! that turn one into the other.
//!
//! A [`Settings`] is immutable and interned per core, so that one comparison of pointers tells
//! whether a server has the settings that a client expects. It holds every setting that PostgreSQL
//! reports (ParameterStatus) and a client can change, and all other settings that the client has
//! changed: those of its startup packet, and those that Refrain read from the server after a SET
//! that PostgreSQL does not report. [`SETTINGS_BYTES_MAX`] limits their size.
//!
//! To sync settings, Refrain sends one query of `set_config` calls in front of the client's first
//! message. `set_config` takes a value as it is shown, lists included, and null for the server's
//! own default.
//!
//! Some settings change what a text means when it is parsed (E56 to E58: `search_path` decides
//! which table a name is, `DateStyle` how a literal is read). Their values make the parse
//! environment, an interned number that is part of every statement's identity.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::ground::ids::{EnvId, Segment};
use crate::settings::encoding::Encoding;
use crate::settings::placeholders::{OWN, is_placeholder};
use crate::settings::{refusals, value};

/// Bytes of the settings of one session, at most: names, values, and [`SETTING_COST`] for each. A
/// session that sets more keeps its server, which has them.
pub(crate) const SETTINGS_BYTES_MAX: usize = 32 * 1024;
/// Bytes that a setting costs beside its name and value.
const SETTING_COST: usize = size_of::<Setting>() + 32;

/// Settings that PostgreSQL reports but that no client can set, or that come with a role alone.
const NOT_SETTABLE: &[&str] = &[
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "scram_iterations",
    "server_encoding",
    "server_version",
    "session_authorization",
];

/// Settings that a client can change and that every PostgreSQL reports.
const REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "datestyle",
    "default_transaction_read_only",
    "intervalstyle",
    "standard_conforming_strings",
    "timezone",
];

/// Settings that can change neither what a text means, nor what is computed while it is planned.
/// Refrain takes all others to change that.
const HARMLESS: &[&str] = &[
    "application_name",
    "client_min_messages",
    "default_transaction_read_only",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "lock_timeout",
    "statement_timeout",
    "work_mem",
];

/// The setting after whose time PostgreSQL ends a session that is idle outside of a transaction.
pub(crate) const IDLE_TIMEOUT: &[u8] = b"idle_session_timeout";

/// The setting by which a session says what it wants of the result cache.
pub(crate) const CACHE_WISH: &str = "refrain.cache";

/// The setting by which a session says that it wants to be told how old the replies from the cache
/// are: another Refrain does, which keeps them too.
pub(crate) const AGES_WISH: &str = "refrain.ages";
/// The name under which a session is told that, in milliseconds, in front of ReadyForQuery.
pub(crate) const AGE_REPORT: &[u8] = b"refrain.age";

/// True if a setting cannot change what a text means.
pub(crate) fn is_harmless(name: &[u8]) -> bool {
    HARMLESS.iter().any(|harmless| harmless.as_bytes() == name) || name.starts_with(OWN)
}

/// True if a client can change this reported setting.
pub(crate) fn is_settable(name: &[u8]) -> bool {
    !NOT_SETTABLE.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// The name and the value of a setting. In [`Settings`] names are in lower case.
pub(crate) type Setting = (Box<[u8]>, Box<[u8]>);

/// The ParameterStatus messages of a server's login: names and values.
pub(crate) type ServerParameters = Vec<Setting>;

/// The settings of a session.
#[derive(Debug)]
pub(crate) struct Settings {
    settings: Vec<Setting>,
    /// The parse environment: a number for the settings that change what a text means.
    pub(crate) env: EnvId,
    /// Keeps that number in use.
    #[expect(dead_code, reason = "it is held, not read")]
    lease: Option<Arc<EnvId>>,
    /// The settings that decide how a text is analysed; `None` if these are all.
    reading: Option<Arc<Settings>>,
    /// How the bytes of a text are read under these settings.
    pub(crate) reads: Reads,
    /// A hash of the settings that PostgreSQL does not report.
    pub(crate) hidden: u64,
    /// Whether a server may refuse one of them.
    pub(crate) may_be_refused: bool,
    /// Whether there are parameters of the user's own among them, which leave placeholders.
    pub(crate) leaves_placeholders: bool,
    /// The time for which the session may be idle, outside of a transaction.
    pub(crate) idle_timeout: Option<Duration>,
}

/// How the bytes of a text are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// Whether a backslash escapes in `'…'` (`standard_conforming_strings`).
    pub(crate) backslash: bool,
    /// The client's encoding.
    pub(crate) encoding: Encoding,
}

impl Reads {
    fn under(settings: &SettingsMut) -> Self {
        let encoding = settings.get(b"client_encoding").unwrap_or_default();
        Self {
            backslash: settings.get(b"standard_conforming_strings") == Some(b"off"),
            encoding: Encoding::named(encoding),
        }
    }

    /// True if the client and a server of this encoding take each byte, wherever it stands, for
    /// what it looks like.
    pub(crate) fn is_plain(self, server: Encoding) -> bool {
        !self.backslash && self.encoding.is_same(server)
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl Eq for Settings {}

impl Hash for Settings {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.settings.hash(state);
    }
}

impl Settings {
    /// Returns the value of a setting.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.settings.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    /// Returns all settings, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.settings.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the settings that decide how a text is analysed: a statement keeps no others.
    pub(crate) fn reading(self: &Arc<Self>) -> &Arc<Self> {
        self.reading.as_ref().unwrap_or(self)
    }

    /// Returns a number for these settings, the same on all cores.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        bytes(&self.settings)
    }

    /// Returns a copy of these settings that can be changed.
    pub(crate) fn edit(&self) -> SettingsMut {
        SettingsMut(self.settings.clone())
    }
}

/// The knowledge about the settings under which the server will read a client's next text.
#[derive(Clone, Debug, Default)]
pub(crate) enum SettingsKnowledge {
    /// They are those that the client was told.
    #[default]
    Reported,
    /// Something may have changed them: the client has a parse environment of its own.
    Unknown(EnvId, Since),
    /// Refrain has read them, in a transaction whose end will report them.
    Queried(Arc<Settings>, Since),
}

/// When settings were changed last, and which kinds of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// The server's segment that changed them.
    pub(crate) segment: Segment,
    /// Whether there may be some by which constants are read, and that PostgreSQL has not reported
    /// yet.
    pub(crate) reads: bool,
    /// Whether there may be some that PostgreSQL does not report.
    pub(crate) hidden: bool,
    /// Whether there may be some that decide how a text is analysed.
    pub(crate) decides: bool,
}

impl SettingsKnowledge {
    /// Returns when they were changed, if they are not those that the client was told.
    pub(crate) fn since(&self) -> Option<Since> {
        match self {
            Self::Reported => None,
            Self::Unknown(_, since) | Self::Queried(_, since) => Some(*since),
        }
    }

    /// True if only the server knows them.
    pub(crate) fn is_hidden(&self) -> bool {
        self.since().is_some_and(|since| since.hidden)
    }
}

/// Settings being changed; [`crate::settings::interned::InternedSettings::intern`] makes
/// [`Settings`] of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsMut(Vec<Setting>);

impl SettingsMut {
    /// Returns those parameters of a server that a client can change.
    pub(crate) fn settable(server_parameters: &ServerParameters) -> Self {
        let mut settings = Self::default();
        let settable = server_parameters.iter().filter(|(name, _)| is_settable(name));
        settable.for_each(|(name, value)| settings.set(name, value));
        settings
    }

    /// Gives a setting a value.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        let name = name.to_ascii_lowercase();
        match self.0.binary_search_by(|(n, _)| (**n).cmp(&name)) {
            Ok(index) => self.0[index].1 = value.into(),
            Err(index) => self.0.insert(index, (name.into(), value.into())),
        }
    }

    /// Adds the settings of `other` that have no value here.
    pub(crate) fn fill(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            if self.0.binary_search_by(|(n, _)| n.cmp(name)).is_err() {
                self.set(name, value);
            }
        }
    }

    /// Returns the value of a setting.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    /// Keeps the settings whose names are wanted, and no others.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        self.0.retain(|(name, _)| wanted(name));
    }

    /// Takes a setting out.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        self.0.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a session may have these settings over those of `base`, and this one with this
    /// value. The size of a value that is replaced counts once.
    pub(crate) fn has_room(&self, base: Option<&Settings>, name: &[u8], value: &[u8]) -> bool {
        let old = self
            .get(name)
            .map(<[u8]>::len)
            .or(base.and_then(|base| base.get(name)).map(<[u8]>::len));
        let more = old.map_or(cost(name, value), |old| value.len().saturating_sub(old));
        bytes(&self.0) + base.map_or(0, Settings::bytes) + more <= SETTINGS_BYTES_MAX
    }

    /// Returns all settings, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Gives each setting the value that it has in `other`, if it has one there.
    pub(crate) fn take_values(&mut self, other: &Settings) {
        for (name, value) in &mut self.0 {
            if let Some(made) = other.get(name) {
                *value = made.into();
            }
        }
    }

    /// Makes [`Settings`] of these, in a parse environment.
    pub(crate) fn into_settings(
        self,
        lease: Option<Arc<EnvId>>,
        reading: Option<Arc<Settings>>,
    ) -> Settings {
        let env = lease.as_ref().map_or(EnvId::default(), |lease| **lease);
        let reads = Reads::under(&self);
        let hidden = self.hidden();
        let may_be_refused = self.0.iter().any(|(name, _)| refusals::may_come(name));
        let leaves_placeholders = self.0.iter().any(|(name, _)| is_placeholder(name));
        let idle_timeout = self.get(IDLE_TIMEOUT).and_then(value::span);
        Settings {
            settings: self.0,
            env,
            lease,
            reading,
            reads,
            hidden,
            may_be_refused,
            leaves_placeholders,
            idle_timeout,
        }
    }

    /// Returns the settings that decide how a text is analysed; `None` if these are all.
    pub(crate) fn reading(&self) -> Option<Self> {
        let part: Vec<_> = self.0.iter().filter(|(name, _)| decides(name)).cloned().collect();
        (part.len() < self.0.len()).then_some(Self(part))
    }

    /// Returns a hash of the settings that PostgreSQL does not report.
    fn hidden(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        let hidden = |name: &[u8]| !REPORTED.iter().any(|reported| reported.as_bytes() == name);
        let settings = self.0.iter().filter(|(name, _)| hidden(name));
        settings.for_each(|setting| setting.hash(&mut hasher));
        hasher.finish()
    }

    /// Returns the bytes that make the parse environment.
    pub(crate) fn environment(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.0 {
            if !is_harmless(name) {
                for part in [name, value] {
                    bytes.extend_from_slice(part);
                    bytes.push(0);
                }
            }
        }
        bytes
    }
}

/// Returns empty settings.
#[cfg(test)]
pub(crate) fn nothing() -> Arc<Settings> {
    Arc::new(SettingsMut::default().into_settings(None, None))
}

/// Returns the bytes that settings take.
pub(crate) fn bytes(settings: &[Setting]) -> usize {
    settings.iter().map(|(name, value)| cost(name, value)).sum()
}

/// Returns the bytes that a setting takes.
pub(crate) fn cost(name: &[u8], value: &[u8]) -> usize {
    SETTING_COST + name.len() + value.len()
}

/// Settings by which PostgreSQL reads the constants and comparisons of a text at Parse (E57 to
/// E59). A statement keeps what they made of it until PostgreSQL analyses it again.
const READING: [&[u8]; 11] = [
    b"array_nulls",
    b"backslash_quote",
    b"client_encoding",
    b"datestyle",
    b"intervalstyle",
    b"lc_monetary",
    b"standard_conforming_strings",
    b"timezone",
    b"timezone_abbreviations",
    b"transform_null_equals",
    b"xmloption",
];

/// Settings at whose change PostgreSQL analyses every statement again before it runs.
const ANALYSED_AGAIN: [&[u8]; 4] =
    [b"role", b"search_path", b"session_authorization", b"session_replication_role"];

/// True if a setting may decide how a text is analysed. A parameter of the user's own does not:
/// functions alone read it.
pub(crate) fn decides(name: &[u8]) -> bool {
    !is_harmless(name) && !name.contains(&b'.')
}

/// True if a text may name one of the settings by which PostgreSQL reads constants and which it
/// does not report.
pub(crate) fn names_reading(text: &[u8]) -> bool {
    let names = READING.iter().filter(|name| !REPORTED.iter().any(|it| it.as_bytes() == **name));
    names.copied().chain([&b"option"[..]]).any(|word| refrain_sql::has_word(text, word))
}

/// True if PostgreSQL analyses a statement again that it analysed under the one and runs under the
/// other.
pub(crate) fn is_analysed_again(one: &Settings, other: &Settings) -> bool {
    !are_alike(&ANALYSED_AGAIN, one, other)
}

/// Settings by which PostgreSQL scans a text. A statement keeps what they made of it for good:
/// PostgreSQL analyses the parse tree again, not the text (`raw_parse_tree` of its plan cache).
const SCANNING: [&[u8]; 3] =
    [b"backslash_quote", b"client_encoding", b"standard_conforming_strings"];

/// True if PostgreSQL scans texts alike under both settings.
pub(crate) fn scanned_alike(one: &Settings, other: &Settings) -> bool {
    are_alike(&SCANNING, one, other)
}

fn are_alike(names: &[&[u8]], one: &Settings, other: &Settings) -> bool {
    names.iter().all(|name| one.get(name) == other.get(name))
}

/// True if constants are read alike under both settings.
pub(crate) fn read_alike(one: &Arc<Settings>, other: &Arc<Settings>) -> bool {
    Arc::ptr_eq(one.reading(), other.reading())
        || READING.iter().all(|name| one.get(name) == other.get(name))
}

/// Writes the query that makes a server with settings `has` read constants as under `wants`, until
/// the transaction ends at the latest: the settings that the client made for its session stay.
pub(crate) fn reading(has: &Settings, wants: &Settings) -> Vec<u8> {
    let only = |settings: &Settings| {
        let settings = settings.settings.iter().filter(|(name, _)| READING.contains(&&**name));
        SettingsMut(settings.cloned().collect()).into_settings(None, None)
    };
    write_calls(differences(&only(has), &only(wants)), b",true)", true)
}

/// Returns the settings to change, with their values; `None` stands for the server's own.
pub(crate) fn differences<'a>(
    has: &'a Settings,
    wants: &'a Settings,
) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
    let changed = wants.iter().filter(|(name, value)| has.get(name) != Some(value));
    let gone = has.iter().filter(|(name, _)| wants.get(name).is_none());
    changed.map(|(n, v)| (n, Some(v))).chain(gone.map(|(n, _)| (n, None)))
}

/// The setting whose value PostgreSQL makes ASCII.
const APPLICATION_NAME: &[u8] = b"application_name";

/// True if a call of `set_config` in [`write_calls`] does not return the value: it might not exist
/// in the encoding of the client.
pub(crate) fn is_withheld(name: &[u8], value: &[u8], plain: bool) -> bool {
    value::is_converted(value, plain) && name != APPLICATION_NAME
}

/// Writes a query of `set_config` calls, each with this end; `None` stands for the server's own
/// value. `plain` says whether the session is in the encoding of the database, before the query and
/// behind it.
pub(crate) fn write_calls<'a>(
    calls: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    end: &[u8],
    plain: bool,
) -> Vec<u8> {
    // Room for a few calls: whether text that grows is copied depends on where it lies.
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(b"SELECT ");
    for (index, (name, value)) in calls.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(b"pg_catalog.set_config(");
        value::write(&mut text, name, plain);
        text.push(b',');
        match value {
            Some(value) if name == APPLICATION_NAME && str::from_utf8(value).is_err() => {
                value::write_cleaned(&mut text, value);
            }
            Some(value) => value::write(&mut text, value, plain),
            None => text.extend_from_slice(b"NULL"),
        }
        text.extend_from_slice(end);
        if value.is_some_and(|value| is_withheld(name, value, plain)) {
            text.extend_from_slice(b" IS NULL");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_change_a_meaning_is_not_in_the_environment() {
        let mut edit = SettingsMut::default();
        edit.set(b"application_name", b"x");
        edit.set(b"TimeZone", b"UTC");
        assert_eq!(edit.environment(), b"timezone\0UTC\0");
    }
}

//! ServerSettings: the run-time parameters of one server, and what Refrain has asked it about them.
//!
//! Both directions of a link change them: what is sent (a query that syncs settings, a text that
//! may set one) and what comes back (reports, and rows that answer Refrain's own queries). All
//! rules about them stand here: whoever sends or reads a message says what has happened.

use std::sync::Arc;
use std::time::Duration;

use refrain_pg_wire::back as read;
use refrain_pool::Now;

use crate::settings::defaults::{self, Defaults, Doubt, Resets};
use crate::settings::encoding::Encoding;
use crate::settings::guard;
use crate::settings::placeholders::Placeholders;
use crate::settings::queries::{self, Restores};
use crate::settings::reported::ReportedSettings;
use crate::settings::session::{self, Settings, SettingsMut};
use crate::settings::value;

/// The settings of a server.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    /// The settings that it will have when it has read all that was sent.
    current: Arc<Settings>,
    /// Its defaults, of the settings that it reports.
    defaults: Defaults,
    /// Whether a setting may have been set to its very default. The server would not follow a
    /// change of that default.
    stuck: bool,
    /// The query under way that syncs them.
    syncing: Syncing,
    /// The query under way that reads them.
    reading: ReadSettings,
    /// Settings that it has reported and that are not interned yet.
    reported: Option<Box<ReportedSettings>>,
    /// The encoding of its database.
    encoding: Encoding,
    /// The parameters of users' own that it has had.
    pub(crate) placeholders: Placeholders,
}

/// The parts of the answer to a query that syncs settings.
#[derive(Debug, Default)]
struct Syncing {
    /// The defaults of settings that it resets.
    resets: Resets,
    /// The settings of a startup packet, if the server checks these.
    startup: Option<SettingsMut>,
    /// Whether it is [plain](session::write_calls).
    plain: bool,
    /// The settings before, the defaults, and whether it was [stuck](ServerSettings::stuck): the
    /// server has them still if it refuses the query.
    before: Option<(Arc<Settings>, Defaults, bool)>,
}

/// A server's report of a setting, as the client of the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    /// The client has another value, and is told.
    News,
    /// The client has heard of the value, or there is no client that is told.
    Known,
    /// The server has reported too many values that are too long.
    TooMuch,
}

/// The findings so far of a query that reads settings.
#[derive(Debug)]
enum ReadSettings {
    /// Settings, and those among them that have their defaults.
    Found { settings: SettingsMut, unset: SettingsMut },
    /// More than is kept.
    TooMuch,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self::Found { settings: SettingsMut::default(), unset: SettingsMut::default() }
    }
}

impl ServerSettings {
    /// Makes the settings of a server that is being connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            current: nothing.clone(),
            defaults: Defaults { settings: nothing.clone(), since: now },
            stuck: false,
            syncing: Syncing::default(),
            reading: ReadSettings::default(),
            reported: None,
            encoding: Encoding::default(),
            placeholders: Placeholders::default(),
        }
    }

    /// Records the settings that a server has after its login: they are its defaults.
    pub(crate) fn logged_in(&mut self, settings: Arc<Settings>, encoding: Encoding, now: Now) {
        self.current = settings.clone();
        self.defaults = Defaults { settings, since: now };
        self.encoding = encoding;
    }

    /// Notes that the server has reset its session: it has its defaults. These may have changed
    /// since they were learned, which the sync for the next client will show.
    pub(crate) fn reset(&mut self) {
        self.current = self.defaults.settings.clone();
        self.stuck = true;
    }

    /// Interns the settings anew, on the core to which the server has moved.
    pub(crate) fn arrive(&mut self, mut intern: impl FnMut(SettingsMut) -> Arc<Settings>) {
        for settings in [&mut self.current, &mut self.defaults.settings] {
            *settings = intern(settings.edit());
        }
    }

    /// Returns the settings that the server will have when it has read all that was sent.
    pub(crate) fn current(&self) -> &Arc<Settings> {
        &self.current
    }

    /// Returns the server's defaults.
    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// Returns the encoding of the server's database.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// True if the session is in the encoding of the database, and stays so with these settings.
    fn stays_plain(&self, wants: &Settings) -> bool {
        self.is_plain() && wants.reads.encoding.is_same(self.encoding)
    }

    /// True if the session is in the encoding of the database.
    fn is_plain(&self) -> bool {
        self.current.reads.encoding.is_same(self.encoding)
    }

    /// Writes the query that restores the settings of a startup packet. A RESET before it may have
    /// changed the encoding, and the query itself may.
    pub(crate) fn restoring(&self, first: &Restores) -> Vec<u8> {
        let name = b"client_encoding";
        let mut others = [self.defaults.get(name), first.settings.get(name)].into_iter().flatten();
        let same = |encoding: &[u8]| Encoding::named(encoding).is_same(self.encoding);
        queries::restore(first, self.is_plain() && others.all(same))
    }

    /// True if these are the settings of a client with these defaults, and follow the defaults.
    #[inline]
    pub(crate) fn are(&self, settings: &Arc<Settings>, defaults: &Defaults) -> bool {
        Arc::ptr_eq(&self.current, settings) && self.defaults.are(defaults) && !self.stuck
    }

    /// True if a setting has its default.
    pub(crate) fn is_default(&self, name: &[u8]) -> bool {
        self.current.get(name) == self.defaults.get(name)
    }

    /// True if a setting may have been set to its very default.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Notes, if `may`, that what was sent may set a setting to its very default.
    #[inline]
    pub(crate) fn may_stick(&mut self, may: bool) {
        self.stuck |= may;
    }
}

/// Queries that sync settings.
impl ServerSettings {
    /// Gives the server a client's settings and defaults. Returns the query that does so, and
    /// whether the server may refuse it; `None` if there is nothing to do. With `checks`, the
    /// settings are those of a startup packet, which the server checks: the answer will show what
    /// it made of them.
    pub(crate) fn sync(
        &mut self,
        wants: &Arc<Settings>,
        defaults: &Defaults,
        checks: bool,
    ) -> Option<(Vec<u8>, bool)> {
        let guard = guard::in_string(&self.current);
        // A short timeout may end the query though a guard stands in front of it: it has begun.
        let may_fail = !guard.is_empty() || self.current.may_be_refused || wants.may_be_refused;
        let doubt = Doubt { stuck: self.stuck, before: &self.defaults };
        let plain = self.stays_plain(wants);
        let (made, startup) = if checks {
            let (made, asked) = defaults::put_first(&self.current, wants, defaults, doubt, plain);
            (made, Some(asked))
        } else {
            (defaults::sync_settings(&self.current, wants, defaults, doubt, plain), None)
        };
        let before = (
            std::mem::replace(&mut self.current, wants.clone()),
            std::mem::replace(&mut self.defaults, defaults.clone()),
            std::mem::replace(&mut self.stuck, false),
        );
        let (text, resets) = made?;
        let text = [guard, text].concat();
        self.syncing = Syncing { resets, startup, plain, before: Some(before) };
        Some((text, may_fail))
    }

    /// Notes that the server has refused that query: it has what it had. Returns the settings that
    /// it has, and those that it was to have.
    pub(crate) fn sync_refused(&mut self) -> (&Arc<Settings>, Arc<Settings>) {
        let wanted = self.current.clone();
        if let Some(before) = std::mem::take(&mut self.syncing).before {
            (self.current, self.defaults, self.stuck) = before;
        }
        (&self.current, wanted)
    }

    /// Gives the server settings for a job. Returns the query that does so; `None` if texts mean
    /// the same under those that it has.
    pub(crate) fn sync_for_job(&mut self, wants: &Arc<Settings>) -> Option<Vec<u8>> {
        if self.current.env == wants.env {
            return None;
        }
        let doubt = Doubt { stuck: false, before: &self.defaults };
        let plain = self.stays_plain(wants);
        let made = defaults::sync_settings(&self.current, wants, &self.defaults, doubt, plain);
        let (text, _) = made.expect("environments differ by a setting");
        let text = [guard::in_string(&self.current), text].concat();
        self.current = wants.clone();
        self.stuck = true;
        Some(text)
    }

    /// True if PostgreSQL will soon end the session, which has been idle for this long: half of the
    /// time that it has for that is over.
    pub(crate) fn end_it_soon(&self, idle: Duration) -> bool {
        self.current.idle_timeout.is_some_and(|timeout| timeout <= 2 * idle)
    }

    /// Takes the setting back that has PostgreSQL end an idle session. Returns the query that does
    /// so.
    pub(crate) fn drop_idle_timeout(
        &mut self,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) -> Vec<u8> {
        let call = std::iter::once((session::IDLE_TIMEOUT, None));
        let text = session::write_calls(call, b",false)", self.is_plain());
        let text = [guard::in_string(&self.current), text].concat();
        let mut edit = self.current.edit();
        edit.remove(session::IDLE_TIMEOUT);
        self.current = intern(edit);
        text
    }

    /// Reads the answer to a query that syncs settings: the values of those that were reset are
    /// defaults. Returns the defaults that are other than those known.
    pub(crate) fn were_reset(
        &mut self,
        row: &[u8],
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) -> SettingsMut {
        let resets = std::mem::take(&mut self.syncing.resets);
        self.syncing.before = None;
        let values: Vec<_> = read::columns(row).collect();
        let value = |column: usize| values.get(column).copied().flatten();
        let mut news = SettingsMut::default();
        for (column, name) in &resets {
            if let Some(value) = value(*column)
                && self.defaults.get(name) != Some(value)
            {
                news.set(name, value);
            }
        }
        if !news.is_empty() {
            let mut has = self.current.edit();
            news.iter().for_each(|(name, value)| has.set(name, value));
            self.current = intern(has);
        }
        news
    }

    /// Reads the same answer at a login: its last columns have the value that the server made of
    /// each setting in the startup packet. The server does not report a setting that has not
    /// changed, and another spelling may mean the same value.
    pub(crate) fn were_checked(
        &mut self,
        row: &[u8],
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) {
        let Some(asked) = self.syncing.startup.take() else { return };
        let mut edit = self.current.edit();
        let before = read::columns(row).count().saturating_sub(asked.iter().count());
        let plain = self.syncing.plain;
        for ((name, asked), value) in asked.iter().zip(read::columns(row).skip(before)) {
            let told = !session::is_withheld(name, asked, plain);
            if let Some(value) = value.filter(|_| told) {
                edit.set(name, value);
            }
        }
        self.current = intern(edit);
    }

    /// Learns changed defaults, and returns them; `None` if none has changed.
    pub(crate) fn learn_defaults<'a>(
        &mut self,
        found: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        now: Now,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) -> Option<SettingsMut> {
        let mut news = SettingsMut::default();
        let is_new = |(name, value): &(&[u8], &[u8])| {
            let known = self.defaults.get(name);
            known.is_some() && known != Some(value)
        };
        found.filter(is_new).for_each(|(name, value)| news.set(name, value));
        if news.is_empty() {
            return None;
        }
        let mut edit = self.defaults.settings.edit();
        news.iter().for_each(|(name, value)| edit.set(name, value));
        self.defaults = Defaults { settings: intern(edit), since: now };
        Some(news)
    }
}

/// Queries that read settings.
impl ServerSettings {
    /// Begins to read the settings that were made in the session. Returns the query for them:
    /// custom ones are asked for by `names`. What an earlier reading has found is dropped.
    pub(crate) fn read<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        self.reading = ReadSettings::default();
        queries::read_settings(&self.defaults.settings, names)
    }

    /// Reads a row of the answer: a setting, and whether it has its default because nobody has set
    /// it in the session.
    pub(crate) fn read_row(&mut self, name: &[u8], is_unset: bool, value: &[u8]) {
        let (name, value) = (&*value::unescape(name), &*value::unescape(value));
        let default = self.defaults.get(name);
        // The first row of a setting counts: what a guard has changed is not the session's.
        if let ReadSettings::Found { settings, .. } = &self.reading
            && settings.get(name).is_some()
        {
            return;
        }
        // A function may have set it to its default. The server would not report a change of that
        // default then.
        self.stuck |= !is_unset && default == Some(value);
        let ReadSettings::Found { settings, unset } = &mut self.reading else { return };
        if is_unset && default.is_some() {
            unset.set(name, value);
        }
        match settings.has_room(None, name, value) {
            true => settings.set(name, value),
            false => self.reading = ReadSettings::TooMuch,
        }
    }

    /// Notes that a row of the answer is too long to be kept.
    #[cold]
    pub(crate) fn read_too_much(&mut self) {
        self.reading = ReadSettings::TooMuch;
    }

    /// Ends the reading. Returns the settings that it has found, and those among them that have
    /// their defaults; `None` if they are more than is kept.
    pub(crate) fn take_read(&mut self) -> Option<(SettingsMut, SettingsMut)> {
        match std::mem::take(&mut self.reading) {
            ReadSettings::Found { settings, unset } => Some((settings, unset)),
            ReadSettings::TooMuch => None,
        }
    }

    /// Records the settings that a reading has found. Those that the server reports are known
    /// better than from its rows.
    pub(crate) fn were_read(
        &mut self,
        mut found: SettingsMut,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) {
        for (name, _) in self.defaults.settings.iter() {
            let value = self.current.get(name);
            if let Some(value) = value.filter(|value| !value::is_foreign(value)) {
                found.set(name, value);
            }
        }
        self.current = intern(found);
    }
}

/// Reports of settings.
impl ServerSettings {
    /// Notes a setting that the server has reported; a `value` of `None` is too long to be kept.
    /// `client` are the settings of a client that is told of news.
    pub(crate) fn report(
        &mut self,
        name: &[u8],
        value: Option<&[u8]>,
        client: Option<&Settings>,
    ) -> Reported {
        let reported = self.reported.get_or_insert_default();
        let told = client.filter(|heard| !reported.is_known(heard, name, value));
        match reported.note(&self.current, told, name, value) {
            false => Reported::TooMuch,
            true if told.is_some() => Reported::News,
            true => Reported::Known,
        }
    }

    /// Takes what was reported since the last call. [`Self::were_reported`] has to follow.
    #[inline]
    pub(crate) fn take_reported(&mut self) -> Option<Box<ReportedSettings>> {
        self.reported.take()
    }

    /// Records the settings that were reported. Once for all reports together: a server may send
    /// any number of them.
    pub(crate) fn were_reported(
        &mut self,
        reported: &ReportedSettings,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) {
        if let Some(edit) = reported.of_server(&self.current, self.encoding) {
            self.current = intern(edit);
        }
    }

    /// True if reports mean changed defaults, unless a client has set them: a setting had its
    /// default, and has another value.
    pub(crate) fn may_be_defaults(&self, reported: &SettingsMut) -> bool {
        reported.iter().any(|(name, value)| {
            let default = self.defaults.get(name);
            default.is_some_and(|default| default != value) && self.current.get(name) == default
        })
    }

    /// True if all that was reported is recorded.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.reported.is_none()
    }
}

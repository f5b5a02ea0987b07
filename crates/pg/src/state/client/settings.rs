//! A client's settings: those that it expects of any server, and how much Refrain knows of them.
//!
//! A login gives a client its first settings ([`ClientSettings::begin`]). From then on texts may
//! change them ([`ClientSettings::may_change`]), and reports and answers of servers say what they
//! are now. What a text does to settings is decided in [`crate::relay::knowledge`] and
//! [`crate::relay::effects`], what a server says is handled in [`crate::relay::follow`],
//! [`crate::relay::learn`] and [`crate::relay::reports`].

use std::sync::Arc;

use refrain_pg_wire::back::Status;
use refrain_pool::Now;

use crate::ground::ids::{EnvId, Segment};
use crate::ground::name::Name;
use crate::pipeline::outstanding::Outstanding;
use crate::settings::defaults::{Claims, Defaults};
use crate::settings::guard;
use crate::settings::placeholders::{Placeholders, is_placeholder};
use crate::settings::session::{Settings, SettingsKnowledge, SettingsMut, Since};
use crate::state::client::beside::{Beside, Lease, Part};

/// Number of custom settings of a client that Refrain reads by name; a client that makes more keeps
/// its server.
const PROBE_NAMES_MAX: usize = 256;
/// How often a question for settings is repeated that was cancelled.
const TRIES_MAX: u8 = 5;
/// Bytes of such a name.
const PROBE_NAME_BYTES_MAX: usize = 128;

/// The beginning of a session.
#[derive(Debug)]
struct Startup {
    /// The settings of the startup packet.
    settings: SettingsMut,
    /// The parse environment of the session then.
    env: EnvId,
}

/// A client's settings.
#[derive(Debug)]
pub(crate) struct ClientSettings {
    /// The settings that it expects.
    expected: Arc<Settings>,
    /// The servers' default settings, as the client was told them.
    defaults: Defaults,
    /// Settings that it has set itself, though their values may be the defaults.
    claims: Option<Box<Claims>>,
    /// The settings of its startup packet, to which RESET goes back.
    startup: Option<Box<Startup>>,
    /// The knowledge about the settings under which its next text is read.
    knowledge: SettingsKnowledge,
    /// Whether it may have changed settings since its last transaction ended.
    changed: bool,
    /// Whether it may have made settings that end with its transaction (SET LOCAL).
    changed_locally: bool,
    /// Whether it changed settings that PostgreSQL does not report.
    to_be_read: bool,
    /// How often the server was asked in vain since they were known last.
    tries: u8,
    /// Whether a text has set a timeout since then.
    hurried: bool,
    /// Their names, as far as `pg_settings` does not list them.
    names: Vec<Name>,
    /// The parameters of its own that it has named, be it for one transaction.
    pub(crate) placeholders: Placeholders,
    /// The things beside them that decide what a text means, if there are any.
    beside: Option<Box<Beside>>,
}

impl ClientSettings {
    /// Makes the settings of a client that has just connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            expected: nothing.clone(),
            defaults: Defaults { settings: nothing.clone(), since: now },
            claims: None,
            startup: None,
            knowledge: SettingsKnowledge::Reported,
            changed: false,
            changed_locally: false,
            to_be_read: false,
            tries: 0,
            hurried: false,
            names: Vec::new(),
            placeholders: Placeholders::default(),
            beside: None,
        }
    }

    /// Returns the settings that the client expects.
    #[inline]
    pub(crate) fn expected(&self) -> &Arc<Settings> {
        &self.expected
    }

    /// Returns the servers' default settings, as the client was told them.
    #[inline]
    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// Returns the environment in which the client's texts are parsed.
    #[inline]
    pub(crate) fn env(&self) -> EnvId {
        let env = match &self.knowledge {
            SettingsKnowledge::Unknown(env, _) => *env,
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.current().env,
        };
        match &self.beside {
            None => env,
            Some(beside) => EnvId { beside: beside.number(), ..env },
        }
    }

    /// Returns what decides, beside the settings, what a text means.
    pub(crate) fn beside(&self) -> Option<&Beside> {
        self.beside.as_deref()
    }

    /// Notes, as of a segment, a part of what stands beside the settings; `None` for nothing any
    /// more.
    pub(crate) fn put_beside(&mut self, part: Part, lease: Option<Lease>, segment: Segment) {
        if lease.is_none() && self.beside.is_none() {
            return;
        }
        let beside = self.beside.get_or_insert_default();
        match lease {
            Some(lease) => beside.set(part, lease, segment),
            None => beside.take(part, segment),
        }
        if beside.is_empty() {
            self.beside = None;
        }
    }

    /// Returns the settings under which the client's next text is read, as far as they are known.
    pub(crate) fn current(&self) -> &Arc<Settings> {
        match &self.knowledge {
            SettingsKnowledge::Queried(settings, _) => settings,
            SettingsKnowledge::Reported | SettingsKnowledge::Unknown(..) => &self.expected,
        }
    }

    /// Whether a backslash in a string constant stands for more than itself.
    #[inline]
    pub(crate) fn reads_backslash(&self) -> bool {
        self.expected.reads.backslash
    }

    /// Gives a client that logs in its settings: those of its startup packet, over the defaults.
    pub(crate) fn begin(
        &mut self,
        expected: Arc<Settings>,
        defaults: Defaults,
        startup: SettingsMut,
    ) {
        self.expected = expected;
        self.defaults = defaults;
        // `pg_settings` does not list it either. A server that has it must not seem to have none.
        if startup.get(b"role").is_some() {
            self.note_name(b"role");
        }
        let placeholders = startup.iter().filter(|(name, _)| is_placeholder(name));
        placeholders.for_each(|(name, _)| self.placeholders.add(name));
        self.startup = (!startup.is_empty())
            .then(|| Box::new(Startup { settings: startup, env: EnvId::default() }));
    }

    /// Gives the settings of the startup packet the values that servers make of them.
    pub(crate) fn startup_is_accepted(&mut self) {
        if let Some(startup) = &mut self.startup {
            startup.settings.take_values(&self.expected);
            startup.env = self.expected.env;
        }
    }

    /// Returns a number for the settings with which the session began, 0 if the startup packet had
    /// none: code that resets settings leaves something only where they were others.
    #[inline]
    pub(crate) fn beginning(&self) -> u64 {
        self.startup.as_ref().map_or(0, |startup| !startup.env.settings)
    }

    /// Whether the startup packet has this setting.
    pub(crate) fn begin_with(&self, name: &[u8]) -> bool {
        self.startup.as_ref().is_some_and(|startup| startup.settings.get(name).is_some())
    }

    /// Whether there are settings in the startup packet.
    pub(crate) fn have_startup(&self) -> bool {
        self.startup.is_some()
    }

    /// Returns a copy of the settings of the startup packet.
    pub(crate) fn startup(&self) -> Option<SettingsMut> {
        self.startup.as_ref().map(|startup| startup.settings.clone())
    }

    /// Adds the settings of the startup packet that have no value in `edit`.
    fn fill(&self, edit: &mut SettingsMut) {
        if let Some(startup) = &self.startup {
            edit.fill(&startup.settings);
        }
    }

    /// Whether the client has set this setting, at its startup or later, even to the default.
    pub(crate) fn owns(&self, name: &[u8]) -> bool {
        self.begin_with(name) || self.claims.as_ref().is_some_and(|claims| claims.has(name))
    }

    /// Notes that a text sets `name`: the setting is the client's own, even with the default value.
    pub(crate) fn claim(&mut self, name: &[u8]) {
        if self.defaults.get(name).is_some() {
            self.claims.get_or_insert_default().add(name);
        }
    }

    /// Notes that a text resets these settings.
    pub(crate) fn disclaim<N: AsRef<[u8]>>(&mut self, names: impl Iterator<Item = N>) {
        let Some(claims) = &mut self.claims else { return };
        for name in names {
            match *name.as_ref() == *refrain_sql::ANY_PARAMETER {
                true => **claims = Claims::default(),
                false => claims.remove(name.as_ref()),
            }
        }
    }

    /// Notes that DISCARD ALL has run. The settings are as after the login, and have to be read.
    pub(crate) fn discarded_all(&mut self) {
        self.beside = None;
        self.claims = None;
        self.to_be_read = true;
    }

    /// Takes back what the transaction has set, which failed or was rolled back.
    pub(crate) fn rolled_back(&mut self) {
        self.claims.iter_mut().for_each(|claims| claims.undo());
    }

    /// Keeps what the transaction has set, which is over.
    #[inline]
    pub(crate) fn transaction_ends(&mut self, is_over: impl Fn(Segment) -> bool) {
        self.changed_locally = false;
        if let Some(beside) = &mut self.beside {
            beside.transaction_ends(is_over);
        }
        if let Some(claims) = &mut self.claims {
            claims.settle();
        }
    }

    /// Replaces the settings that the client expects: it has been told, or will be.
    pub(crate) fn expect(&mut self, settings: Arc<Settings>) {
        self.expected = settings;
    }

    /// Follows a server's defaults. Returns the settings before.
    pub(crate) fn follow(&mut self, settings: Arc<Settings>, defaults: Defaults) -> Arc<Settings> {
        self.defaults = defaults;
        std::mem::replace(&mut self.expected, settings)
    }

    /// Interns the settings anew, on the core to which the client has moved.
    pub(crate) fn arrive(&mut self, mut intern: impl FnMut(SettingsMut) -> Arc<Settings>) {
        debug_assert!(self.are_known(), "a client moves with settings that are known");
        for settings in [&mut self.expected, &mut self.defaults.settings] {
            *settings = intern(settings.edit());
        }
    }

    /// Whether the client may have changed settings since its last transaction ended.
    #[inline]
    pub(crate) fn have_changed(&self) -> bool {
        self.changed
    }

    /// Whether it may have made settings that end with its transaction.
    pub(crate) fn have_changed_locally(&self) -> bool {
        self.changed_locally
    }

    /// Notes a command that may have made settings that end with the transaction.
    pub(crate) fn change_locally(&mut self) {
        self.changed_locally = true;
    }

    /// Notes that the client may have changed settings that PostgreSQL does not report, so that
    /// Refrain has to ask the server.
    pub(crate) fn read_later(&mut self) {
        self.to_be_read = true;
    }

    /// Whether Refrain has to ask the server, since PostgreSQL does not report what a command
    /// changed.
    #[inline]
    pub(crate) fn are_to_be_read(&self) -> bool {
        self.to_be_read
    }

    /// Whether there may be settings that only the server knows.
    #[inline]
    pub(crate) fn are_hidden(&self) -> bool {
        self.to_be_read || self.knowledge.is_hidden()
    }

    /// Whether Refrain knows all of them.
    pub(crate) fn are_known(&self) -> bool {
        matches!(self.knowledge, SettingsKnowledge::Reported) && !self.to_be_read
    }

    /// Returns since when a change may have made them unknown, if one has.
    pub(crate) fn unknown_since(&self) -> Option<Since> {
        match self.knowledge {
            SettingsKnowledge::Unknown(_, since) => Some(since),
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => None,
        }
    }

    /// Whether Refrain has read them, in a transaction that is not over.
    pub(crate) fn are_queried(&self) -> bool {
        matches!(self.knowledge, SettingsKnowledge::Queried(..))
    }

    /// Notes that a text may change settings. The texts behind it get a parse environment of their
    /// own, `env`.
    pub(crate) fn may_change(&mut self, change: Since, env: impl FnOnce() -> EnvId) {
        self.changed = true;
        let before = self.knowledge.since();
        let since = Since {
            segment: change.segment,
            reads: change.reads || before.is_some_and(|before| before.reads),
            hidden: change.hidden || self.to_be_read || before.is_some_and(|before| before.hidden),
            decides: change.decides || before.is_some_and(|before| before.decides),
        };
        self.be_unknown(since, env);
    }

    /// Notes at the end of a segment that PostgreSQL has sent its reports of changed settings.
    pub(crate) fn are_reported(&mut self, outstanding: &Outstanding, env: impl FnOnce() -> EnvId) {
        let since = self.knowledge.since();
        if since.is_some_and(|since| !outstanding.is_over(since.segment)) {
            return;
        }
        self.changed &= outstanding.status() != Status::Idle;
        match since {
            Some(since) if since.hidden => self.be_unknown(Since { reads: false, ..since }, env),
            Some(_) => self.knowledge = SettingsKnowledge::Reported,
            None => {}
        }
    }

    fn be_unknown(&mut self, since: Since, env: impl FnOnce() -> EnvId) {
        let env = match self.knowledge {
            SettingsKnowledge::Unknown(env, _) => env,
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => env(),
        };
        self.knowledge = SettingsKnowledge::Unknown(env, since);
    }

    /// Gives up to read settings that cannot be learned: the client keeps its server.
    pub(crate) fn give_up_reading(&mut self) {
        self.to_be_read = false;
        self.tries = 0;
    }

    /// Gives up settings that are too large to be kept, as of this segment. The client's texts get
    /// a parse environment of their own, `env`.
    pub(crate) fn are_too_large(&mut self, segment: Segment, env: EnvId) {
        self.to_be_read = false;
        self.knowledge = SettingsKnowledge::Unknown(
            env,
            Since { segment, reads: false, hidden: true, decides: true },
        );
    }

    /// Adds what was read amid the client's segment, and holds for its transaction: `intern` makes
    /// settings of it.
    pub(crate) fn were_queried(
        &mut self,
        segment: Segment,
        mut read: SettingsMut,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) {
        self.fill(&mut read);
        let since = self.knowledge.since();
        let since = since.unwrap_or(Since { segment, reads: true, hidden: true, decides: true });
        self.knowledge = SettingsKnowledge::Queried(intern(read), since);
    }

    /// Takes over what was read between the client's segments: `intern` makes settings of it.
    /// Returns the settings before. [`Self::reading_ends`] follows.
    pub(crate) fn were_read(
        &mut self,
        mut read: SettingsMut,
        intern: impl FnOnce(SettingsMut) -> Arc<Settings>,
    ) -> Arc<Settings> {
        self.fill(&mut read);
        std::mem::replace(&mut self.expected, intern(read))
    }

    /// Whether the server has answered behind the last change, so that its answer tells all.
    pub(crate) fn are_settled(&self, outstanding: &Outstanding) -> bool {
        self.knowledge.since().is_none_or(|since| outstanding.answers(since.segment))
    }

    /// Notes that a text sets a timeout, which may end the question for the settings.
    pub(crate) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Whether a timeout of the session may be so short that it ends the question.
    pub(crate) fn are_hurried(&self) -> bool {
        self.hurried || self.tries > 0 || guard::are_hurried(&self.expected)
    }

    /// Notes that the question has failed for a reason that may pass. True if it is asked again.
    pub(crate) fn read_again(&mut self) -> bool {
        self.tries += 1;
        self.tries <= TRIES_MAX
    }

    /// Ends a reading. Messages behind the query may have changed the settings again, unless they
    /// are `settled`.
    pub(crate) fn reading_ends(&mut self, settled: bool) {
        self.to_be_read = false;
        self.tries = 0;
        if settled {
            self.hurried = false;
            self.knowledge = SettingsKnowledge::Reported;
        }
    }

    /// Notes the name of a custom setting, which Refrain reads by name. False if there are too
    /// many, or the name is too long.
    pub(crate) fn note_name(&mut self, name: &[u8]) -> bool {
        let name = Name::from_slice(name);
        if self.names.contains(&name) {
            return true;
        }
        let room = self.names.len() < PROBE_NAMES_MAX && name.len() <= PROBE_NAME_BYTES_MAX;
        if room {
            self.names.push(name);
        }
        room
    }

    /// Returns the names of custom settings, which Refrain reads by name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| name.as_slice())
    }
}

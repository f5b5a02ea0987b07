//! A client's session: everything that PostgreSQL's protocol knows of a client.

use std::sync::Arc;

use refrain_pool::Now;

use crate::ground::ids::{EnvId, Segment};
use crate::pipeline::evidence::Evidence;
use crate::pipeline::outstanding::Span;
use crate::pipeline::undo::{ClientUndo, Undos};
use crate::settings::defaults::{Claims, Defaults};
use crate::settings::session::{Settings, SettingsKnowledge, SettingsMut};
use crate::state::client::login::Login;
use crate::state::client::pins::ClientPins;
use crate::state::client::reading::Reading;
use crate::state::client::suspicion::Suspicion;
use crate::statements::of_client::{ClientStatement, ClientStatements, Name};
use crate::statements::portals::Portals;

pub(crate) mod login;
pub(crate) mod pins;
pub(crate) mod suspicion;
pub(crate) mod reading;

/// A client's session, as PostgreSQL's protocol knows it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state")]
pub struct ClientSession {
    /// Its login, and the messages that it may send now.
    pub(crate) login: Login,
    /// Whether its next message is read, dropped, or waits.
    pub(crate) reading: Reading,
    /// Whether its statements are kept across servers.
    pub(crate) managed: bool,
    /// The settings it expects.
    pub(crate) settings: Arc<Settings>,
    /// The servers' default settings, as the client was told them.
    pub(crate) defaults: Defaults,
    /// Settings that it has set itself, though their values may be the defaults.
    pub(crate) claims: Option<Box<Claims>>,
    /// The settings of its startup packet, to which RESET goes back.
    pub(crate) startup: Option<Box<SettingsMut>>,
    /// The knowledge about the settings under which its next text is read.
    pub(crate) knowledge: SettingsKnowledge,
    /// Whether it may have changed settings since its last transaction ended.
    pub(crate) sets: bool,
    /// Whether it may have made settings that end with its transaction (SET LOCAL).
    pub(crate) sets_locally: bool,
    /// Its prepared statements.
    pub(crate) names: ClientStatements,
    /// How to undo changes to its statements if the server refuses or skips them.
    pub(crate) undos: Undos<ClientUndo>,
    /// Its unnamed statement.
    pub(crate) unnamed: Option<ClientStatement>,
    /// The server's segments of changes to its statements that a skipped message would undo.
    pub(crate) changed: Span,
    /// The server's segments of named Parses that were sent on.
    pub(crate) parsed: Span,
    /// The server's segment of the last change to its unnamed statement.
    pub(crate) unnamed_changed: Segment,
    /// Its portals whose statements may change the session.
    pub(crate) portals: Portals,
    /// Why its server cannot be taken from it.
    pub(crate) pins: ClientPins,
    /// Whether it changed settings that PostgreSQL does not report.
    pub(crate) read_settings: bool,
    /// Their names, as far as `pg_settings` does not list them.
    pub(crate) names_to_read: Vec<Name>,
    /// Calls with unknown effects on the session.
    pub(crate) suspicion: Suspicion,
    /// Which of these calls have run.
    pub(crate) evidence: Evidence,
}

impl ClientSession {
    /// Makes the session of a client that has just connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            login: Login::default(),
            reading: Reading::default(),
            managed: true,
            settings: nothing.clone(),
            defaults: Defaults { settings: nothing.clone(), since: now },
            claims: None,
            startup: None,
            knowledge: SettingsKnowledge::Reported,
            sets: false,
            sets_locally: false,
            names: ClientStatements::default(),
            undos: Undos::default(),
            unnamed: None,
            changed: Span::default(),
            parsed: Span::default(),
            unnamed_changed: 0,
            portals: Portals::default(),
            pins: ClientPins::default(),
            read_settings: false,
            names_to_read: Vec::new(),
            suspicion: Suspicion::default(),
            evidence: Evidence::default(),
        }
    }

    /// Returns its statements with this ID, under all their names.
    pub(crate) fn all_of(
        &mut self,
        id: u64,
    ) -> impl Iterator<Item = (&[u8], &mut ClientStatement)> {
        let unnamed = self.unnamed.iter_mut().map(|statement| (&b""[..], statement));
        let unnamed = unnamed.filter(move |(_, unnamed)| unnamed.held.cached().statement.id == id);
        unnamed.chain(self.names.all_of(id))
    }

    /// Whether the client has set this setting, at its startup or later, even to the default.
    pub(crate) fn owns(&self, name: &[u8]) -> bool {
        self.startup.as_ref().is_some_and(|startup| startup.get(name).is_some())
            || self.claims.as_ref().is_some_and(|claims| claims.has(name))
    }

    /// Ends portals and pins that end with a transaction, as far as they belong to segments that
    /// are over.
    #[inline]
    pub(crate) fn transaction_ends(&mut self, is_over: impl Fn(Segment) -> bool) {
        self.portals.end(is_over);
        self.pins.transaction_ends();
    }

    /// Returns the environment in which its texts are parsed.
    pub(crate) fn env(&self) -> EnvId {
        match &self.knowledge {
            SettingsKnowledge::Unknown(env, _) => *env,
            SettingsKnowledge::Reported | SettingsKnowledge::Queried(..) => self.current().env,
        }
    }

    /// Returns the settings under which its next text is read, as far as they are known.
    pub(crate) fn current(&self) -> &Arc<Settings> {
        match &self.knowledge {
            SettingsKnowledge::Queried(settings, _) => settings,
            SettingsKnowledge::Reported | SettingsKnowledge::Unknown(..) => &self.settings,
        }
    }
}

//! A client's session: everything that PostgreSQL's protocol knows of a client.

use std::sync::Arc;

use refrain_pool::Now;

use crate::ground::ids::{EnvId, Segment};
use crate::pipeline::evidence::Evidence;
use crate::pipeline::outstanding::{Seq, Span};
use crate::pipeline::undo::{ClientUndo, Undos};
use crate::settings::defaults::{Claims, Defaults};
use crate::settings::session::{Settings, SettingsKnowledge, SettingsMut};
use crate::state::client::login::Login;
use crate::statements::of_client::{ClientStatement, ClientStatements, Name};
use crate::statements::portals::Portals;

pub(crate) mod login;

/// State of a client that cannot be moved to another server: why it keeps the one it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins(u16);

impl Pins {
    /// SQL-level PREPARE, or a statement too large to be kept.
    pub(crate) const PREPARED: Self = Self(1);
    /// LISTEN.
    pub(crate) const LISTEN: Self = Self(2);
    /// Temporary tables.
    pub(crate) const TEMP: Self = Self(4);
    /// Session advisory locks.
    pub(crate) const ADVISORY: Self = Self(8);
    /// Cursors WITH HOLD.
    pub(crate) const HOLD: Self = Self(16);
    /// SET ROLE, SET SESSION AUTHORIZATION.
    pub(crate) const ROLE: Self = Self(32);
    /// LOAD.
    pub(crate) const LOAD: Self = Self(64);
    /// Settings that could not be learned.
    pub(crate) const SETTINGS: Self = Self(128);

    const WORDS: [(Self, &str); 8] = [
        (Self::PREPARED, "prepared"),
        (Self::LISTEN, "listen"),
        (Self::TEMP, "temporary tables"),
        (Self::ADVISORY, "advisory locks"),
        (Self::HOLD, "cursors with hold"),
        (Self::ROLE, "role"),
        (Self::LOAD, "load"),
        (Self::SETTINGS, "settings"),
    ];

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the pins as a number.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Whether `other` is among them.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Removes `other`.
    pub(crate) fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Returns the names of the pins, for logs and the console.
    pub(crate) fn words(self) -> String {
        let words: Vec<_> =
            Self::WORDS.iter().filter(|(pin, _)| self.has(*pin)).map(|(_, word)| *word).collect();
        words.join(", ")
    }
}

/// The calls of users' functions, procedures and triggers with unknown effects on the session.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    /// Whether to ask the server for the session's state once the transaction is over.
    pub(crate) looks: bool,
    /// The question under way, if any.
    pub(crate) asked: Option<Looking>,
    /// Whether the question has failed once.
    pub(crate) failed: bool,
    /// The calls of the transaction, and whether they ran.
    pub(crate) evidence: Evidence,
    /// A hash of the calls in statements that were prepared by SQL; zero for none.
    pub(crate) prepared: u64,
    /// The state that the look under way has found.
    pub(crate) found: Pins,
    /// Whether the database has functions of users'.
    pub(crate) code: bool,
    /// Names of parameters that were found in the texts of functions.
    pub(crate) parameters: Vec<Name>,
}

/// Parts of the question about a session that are not always asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looking {
    /// The pool's count of changes of code when the question was sent.
    pub(crate) code: u64,
    /// Whether it searches the texts of functions for names of parameters.
    pub(crate) names: bool,
}

/// A message that drops or makes statements if it succeeds.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// The number of its request.
    pub(crate) seq: Seq,
    /// Commands of its text that are not complete yet.
    pub(crate) commands: u32,
    /// Statements of the client's that a command of it drops by name, and how many there are from
    /// that command on.
    pub(crate) drops: Vec<(u32, Name)>,
    /// The client's startup settings, to be restored behind the message.
    pub(crate) restores: Option<Box<SettingsMut>>,
}

/// A Parse that Refrain put in front of a query string. If the server refuses it, the string is not
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// None that the string waits for.
    Nothing,
    /// It has been sent.
    Prepared,
    /// The server has refused it, in a segment of its own. The client has got the error.
    Refused,
}

/// A client's session, as PostgreSQL's protocol knows it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state")]
pub struct ClientSession {
    /// Its login, and the messages that it may send now.
    pub(crate) login: Login,
    /// Whether the server, and so Refrain, ignores its messages up to the next Sync, after an
    /// error.
    pub(crate) skipping: bool,
    /// The Parse in front of its query string, which waits for the reply.
    pub(crate) ahead: Ahead,
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
    /// The request for whose reply its next message waits.
    pub(crate) barrier: Option<Barrier>,
    /// Its portals whose statements may change the session.
    pub(crate) portals: Portals,
    /// Why its server cannot be taken from it.
    pub(crate) pins: Pins,
    /// The pins that end when the transaction commits.
    pub(crate) unpins: Pins,
    /// Whether it changed settings that PostgreSQL does not report.
    pub(crate) read_settings: bool,
    /// Their names, as far as `pg_settings` does not list them.
    pub(crate) names_to_read: Vec<Name>,
    /// Calls with unknown effects on the session.
    pub(crate) suspicion: Suspicion,
}

impl ClientSession {
    /// Makes the session of a client that has just connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            login: Login::default(),
            skipping: false,
            ahead: Ahead::Nothing,
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
            barrier: None,
            portals: Portals::default(),
            pins: Pins::default(),
            unpins: Pins::default(),
            read_settings: false,
            names_to_read: Vec::new(),
            suspicion: Suspicion::default(),
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
        self.pins.remove(std::mem::take(&mut self.unpins));
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

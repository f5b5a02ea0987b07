//! A client's session: everything that PostgreSQL's protocol knows of a client.

use std::rc::Rc;
use std::sync::Arc;

use refrain_pool::Now;

use crate::ground::ids::Segment;
use crate::normalized::compare_times::Turn;
use crate::normalized::query::QueryPlace;
use crate::pipeline::evidence::Evidence;
use crate::results::of_client::ClientResults;
use crate::settings::session::Settings;
use crate::standbys::away::Away;
use crate::state::client::login::SessionLogin;
use crate::state::client::pins::ClientPins;
use crate::state::client::reading::Reading;
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::state::client::suspicion::Suspicion;
use crate::state::client::unread::UnreadText;
use crate::statements::of_core::CachedStatement;
use crate::statements::portals::Portals;

pub(crate) mod login;
pub(crate) mod pins;
pub(crate) mod suspicion;
pub(crate) mod reading;
pub(crate) mod beside;
pub(crate) mod settings;
pub(crate) mod statements;
pub(crate) mod unread;
pub(crate) mod travel;

/// A client's session, as PostgreSQL's protocol knows it.
#[derive(Debug)]
pub struct ClientSession {
    /// Its login, and the messages that it may send now.
    pub(crate) login: SessionLogin,
    /// Whether its next message is read, dropped, or waits.
    pub(crate) reading: Reading,
    /// Its text whose rest is still to come, if Refrain has to know what that may do.
    pub(crate) unread: Option<Box<UnreadText>>,
    /// Its settings.
    pub(crate) settings: ClientSettings,
    /// Its prepared statements.
    pub(crate) statements: ClientStatements,
    /// The run to which the next Bind of its unnamed statement belongs, and its way, if autoprepare
    /// has looked at the Parse.
    pub(crate) expected_run: Option<(QueryPlace, Turn)>,
    /// The statement that it runs, if that is a read, to learn what it costs.
    pub(crate) read: Option<Rc<CachedStatement>>,
    /// The bytes of the read's replies that have come before the present input of the server; not
    /// zero once a reply to its query string has come.
    pub(crate) read_bytes: u64,
    /// Its part in the cache of results.
    pub(crate) results: ClientResults,
    /// Its reads on standbys, once one might have run there.
    pub(crate) away: Option<Box<Away>>,
    /// Its portals whose statements may change the session.
    pub(crate) portals: Portals,
    /// Why its server cannot be taken from it.
    pub(crate) pins: ClientPins,
    /// Calls with unknown effects on the session.
    pub(crate) suspicion: Suspicion,
    /// Which of these calls have run.
    pub(crate) evidence: Evidence,
}

impl ClientSession {
    /// Makes the session of a client that has just connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            login: SessionLogin::default(),
            reading: Reading::default(),
            unread: None,
            settings: ClientSettings::new(nothing, now),
            statements: ClientStatements::default(),
            expected_run: None,
            read: None,
            read_bytes: 0,
            results: ClientResults::default(),
            away: None,
            portals: Portals::default(),
            pins: ClientPins::default(),
            suspicion: Suspicion::default(),
            evidence: Evidence::default(),
        }
    }

    /// Notes that the client begins to use a server.
    #[inline]
    pub(crate) fn begin_use(&mut self) {
        self.statements.begin_use();
        self.reading.begin_use();
    }

    /// Notes that it runs a read, of which it has got nothing.
    pub(crate) fn begin_read(&mut self, read: Rc<CachedStatement>) {
        (self.read, self.read_bytes) = (Some(read), 0);
    }

    /// Notes that it has got a reply to its query string.
    pub(crate) fn begin_reply(&mut self) {
        self.read_bytes = self.read_bytes.max(1);
    }

    /// Whether its next request may share a server: nothing of its session is the server's alone,
    /// and nothing that it has sent is in doubt.
    pub(crate) fn may_share(&self) -> bool {
        self.login.is_ready()
            && self.statements.are_managed()
            && !self.reading.is_skipping()
            && !self.reading.has_barrier()
            && self.settings.are_known()
            && self.suspicion.is_clear()
            && self.pins.is_empty()
    }

    /// Whether names in its texts mean what they mean in any session with its settings: no
    /// temporary table can hide another.
    pub(crate) fn names_are_certain(&self) -> bool {
        self.statements.are_managed()
            && self.settings.are_known()
            && !self.settings.have_changed_locally()
            && self.suspicion.is_clear()
            && self.pins.is_empty()
    }

    /// Whether the session may move to another core while its client has no server: all that it
    /// refers to is known to other cores as well.
    pub(crate) fn may_travel(&self) -> bool {
        let amid = self.results.is_awaited() || self.reading.is_skipping();
        self.may_share() && self.statements.may_travel() && !amid
    }

    /// Ends portals, pins and settings that end with a transaction; portals as far as they belong
    /// to segments that are over.
    #[inline]
    pub(crate) fn transaction_ends(&mut self, is_over: impl Fn(Segment) -> bool) {
        self.pins.transaction_ends();
        self.settings.transaction_ends(&is_over);
        self.portals.end(is_over);
    }
}

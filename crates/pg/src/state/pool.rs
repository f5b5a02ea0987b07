//! PostgreSQL's part of one core's pool: its knowledge about queries, functions and settings.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::Conn;
use refrain_pool::ids::PoolId;

use crate::normalized::queries::NormalizedQueries;
use crate::pipeline::calls::Calls;
use crate::reads::queue::ReadQueue;
use crate::results::of_pool::PoolResults;
use crate::results::refresh::Refreshes;
use crate::results::repeats::Repeats;
use crate::settings::session::Settings;
use crate::state::last_login::LastLogin;
use crate::users::lookup::Lookups;

/// Most bytes of accepted startup settings; beyond it all are forgotten.
const PROVEN_BYTES_MAX: usize = 1024 * 1024;

/// PostgreSQL's part of one core's pool.
#[derive(Debug, Default)]
pub struct PoolPart {
    /// The normalized queries of its simple queries, for autoprepare.
    pub(crate) normalized_queries: NormalizedQueries,
    /// The statements about which a server is to be asked whether they are reads.
    pub(crate) reads: ReadQueue,
    /// The rules of the cache, once a client has asked for a reply.
    pub(crate) results: Option<Box<PoolResults>>,
    /// The replies of the cache that servers are to fetch again.
    pub(crate) refreshes: Refreshes,
    /// The users that the database is to be asked about.
    pub(crate) lookups: Lookups,
    /// The pool of standbys beside it, once a read might have run there.
    pub(crate) standbys: Option<PoolId>,
    /// Whether a read needs to know how far the primary is.
    pub(crate) primary_due: bool,
    /// Whether the log tells that a server cannot say how far it is.
    pub(crate) unsaid_told: bool,
    /// The requests that are repeated.
    pub(crate) repeats: Repeats,
    /// Clients whose query strings wait for news of their normalized queries.
    awaiting_analysis: Vec<Conn>,
    /// Clients whose wait for such news is over: their input is to be read again.
    woken: Vec<Conn>,
    /// Startup settings that a server has accepted, and their values as the server reported them.
    proven: HashMap<Arc<Settings>, Arc<Settings>>,
    proven_bytes: usize,
    /// The last login of a client.
    pub(crate) last_login: Option<Box<LastLogin>>,
    /// The functions that clients' texts call, and whether they leave state in a session.
    pub(crate) calls: Calls,
}

impl PoolPart {
    /// Makes a client wait for news of a normalized query.
    pub(crate) fn wait_for_news(&mut self, client: Conn) {
        self.awaiting_analysis.push(client);
    }

    /// Wakes all clients that wait for news of a normalized query.
    pub(crate) fn wake(&mut self) {
        self.woken.append(&mut self.awaiting_analysis);
    }

    /// Whether a client waits for news of a normalized query, or has got them and is to be read.
    pub(crate) fn has_waiting(&self) -> bool {
        !(self.awaiting_analysis.is_empty() && self.woken.is_empty())
    }

    /// Whether the input of any client is to be read again.
    #[inline]
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Takes the clients whose input is to be read again.
    pub(crate) fn take_woken(&mut self) -> Vec<Conn> {
        std::mem::take(&mut self.woken)
    }

    /// Returns the settings that a server reported for these startup settings, if one has accepted
    /// them.
    pub(crate) fn proven(&self, wants: &Arc<Settings>) -> Option<Arc<Settings>> {
        self.proven.get(wants).cloned()
    }

    /// Remembers that a server has accepted these startup settings, and reported `made` for them.
    pub(crate) fn prove(&mut self, wants: Arc<Settings>, made: Arc<Settings>) {
        let bytes = wants.bytes() + made.bytes();
        if self.proven_bytes + bytes > PROVEN_BYTES_MAX {
            (self.proven, self.proven_bytes) = (HashMap::new(), 0);
        }
        if self.proven.insert(wants, made).is_none() {
            self.proven_bytes += bytes;
        }
    }
}

//! PostgreSQL's part of one core's pool: what it has learned of queries, functions and settings.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::Conn;

use crate::normalized::queries::NormalizedQueries;
use crate::pipeline::calls::Calls;
use crate::settings::session::Settings;

/// Bytes of the startup settings that a server has accepted and that are kept.
const PROVEN_BYTES_MAX: usize = 1024 * 1024;

/// PostgreSQL's part of one core's pool.
#[derive(Debug, Default)]
pub struct PoolPart {
    /// The normalized queries of its simple queries, for autoprepare.
    pub(crate) normalized_queries: NormalizedQueries,
    /// Clients whose query strings wait for news of their normalized queries.
    awaiting_analysis: Vec<Conn>,
    /// Those of them that are to be read again.
    woken: Vec<Conn>,
    /// Settings that a server has accepted, and what it made of them.
    proven: HashMap<Arc<Settings>, Arc<Settings>>,
    proven_bytes: usize,
    /// What Refrain has learned of the functions that its clients' texts call.
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

    /// Takes the clients whose input is to be read again.
    #[inline]
    pub(crate) fn take_woken(&mut self) -> Vec<Conn> {
        std::mem::take(&mut self.woken)
    }

    /// Returns what a server made of these startup settings, if one has accepted them.
    pub(crate) fn proven(&self, wants: &Arc<Settings>) -> Option<Arc<Settings>> {
        self.proven.get(wants).cloned()
    }

    /// Remembers that a server has accepted these startup settings, and what it made of them.
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

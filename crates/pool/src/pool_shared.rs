//! Parts of one pool that its cores share.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use crate::ids::PoolId;
use crate::parts::Parts;
use crate::settings::PoolSettings;

/// One user of one database, over all cores.
#[derive(Debug)]
pub struct PoolShared<P: Parts> {
    /// Its number.
    pub id: PoolId,
    /// The database as clients name it.
    pub database: Arc<str>,
    /// The user as clients name themselves.
    pub user: Arc<str>,
    /// The protocol's part.
    pub protocol: P::PoolShared,
    /// Counts the times that its servers were to be connected anew.
    reconnects: AtomicU32,
    /// Whether its user or its database is not configured any more.
    removed: AtomicBool,
    /// Number of its servers that are logged in, over all cores and on the way between them.
    live: AtomicU32,
    settings: RwLock<Arc<PoolSettings>>,
}

impl<P: Parts> PoolShared<P> {
    /// Makes a pool that nobody has used yet.
    pub(crate) fn new(
        id: PoolId,
        (database, user): (Arc<str>, Arc<str>),
        settings: Arc<PoolSettings>,
        protocol: P::PoolShared,
    ) -> Self {
        Self {
            id,
            database,
            user,
            protocol,
            reconnects: AtomicU32::new(0),
            removed: AtomicBool::new(false),
            live: AtomicU32::new(0),
            settings: RwLock::new(settings),
        }
    }

    /// Puts other options in force: `None` where its user or its database is not configured any
    /// more.
    pub(crate) fn configure(&self, settings: Option<Arc<PoolSettings>>) {
        self.removed.store(settings.is_none(), Relaxed);
        let Some(settings) = settings else { return };
        P::configure(&self.protocol, &settings);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Makes all servers be connected anew, as they come free.
    pub fn begin_reconnect(&self) {
        self.reconnects.fetch_add(1, Relaxed);
    }

    /// Returns how often its servers were to be connected anew. A server that was connected under
    /// another number is closed as it comes free.
    pub fn reconnects(&self) -> u32 {
        self.reconnects.load(Relaxed)
    }

    /// Whether its user or its database is not configured any more: its clients leave, and no other
    /// is let in.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Relaxed)
    }

    /// Returns the options in force, or those that were in force last.
    pub fn settings(&self) -> Arc<PoolSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a server that is logged in. Returns whether it is the only one.
    pub(crate) fn server_lives(&self) -> bool {
        self.live.fetch_add(1, Relaxed) == 0
    }

    /// Counts a server out that was logged in.
    pub(crate) fn server_dies(&self) {
        let before = self.live.fetch_sub(1, Relaxed);
        assert!(before > 0, "no more servers go than were logged in to");
    }

    /// Whether a server is logged in: then its database is there.
    pub fn is_live(&self) -> bool {
        self.live.load(Relaxed) > 0
    }
}

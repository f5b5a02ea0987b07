//! The part of one pool that all cores share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::crowd::Crowd;
use crate::ids::{ClientSerial, Core, PoolId};
use crate::parts::Parts;
use crate::reconnects::Reconnects;
use crate::refusal::LastRefusal;
use crate::settings::PoolSettings;
use crate::time::Now;
use crate::width::{Load, Width};

/// The names of a pool's database and user, and the variant of its servers. A pool that users share
/// has no user's name here.
pub(crate) type PoolKey = (Arc<str>, Arc<str>, u16);

/// A pool over all cores: one user of one database, or all users for whom servers log in as one.
#[derive(Debug)]
pub struct PoolShared<P: Parts> {
    /// The pool's number.
    pub id: PoolId,
    /// The database as clients name it.
    pub database: Arc<str>,
    /// The user as clients name themselves, or the servers' user if users share the pool.
    pub user: Arc<str>,
    /// Whether users share the pool.
    pub is_common: bool,
    /// The variant of the pool's servers ([`crate::shared::Shared::pool_of_variant`]).
    pub variant: u16,
    /// The protocol's part.
    pub protocol: P::PoolShared,
    /// [`Reconnects::obsolete`] of now.
    obsoleted: AtomicU32,
    /// [`Reconnects::renewed`] of now.
    renewed: AtomicU32,
    /// The serial below which clients were to be killed.
    killed: AtomicU64,
    /// Whether the pool's user or database is not configured any more.
    removed: AtomicBool,
    /// Whether a server of another pool is to make room for one of this pool.
    wants_room: AtomicBool,
    /// Number of servers that are logged in, over all cores and on the way between them.
    live: AtomicU32,
    settings: RwLock<Arc<PoolSettings>>,
    /// The place of the servers when the pool was made.
    place: String,
    /// The number of servers on which reads run before reads share a server.
    width: Mutex<Width>,
    /// The clients that wait because of a limit.
    pub(crate) crowd: Crowd,
    /// The last refusal of the login to the pool's servers.
    pub(crate) refusal: LastRefusal,
}

impl<P: Parts> PoolShared<P> {
    /// Makes a pool without servers and clients.
    pub(crate) fn new(
        id: PoolId,
        (database, user, variant): PoolKey,
        common_user: Option<Arc<str>>,
        settings: Arc<PoolSettings>,
        protocol: P::PoolShared,
    ) -> Self {
        let place = settings.place(&database);
        Self {
            id,
            place,
            database,
            is_common: common_user.is_some(),
            user: common_user.unwrap_or(user),
            variant,
            protocol,
            obsoleted: AtomicU32::new(0),
            renewed: AtomicU32::new(0),
            killed: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            live: AtomicU32::new(0),
            settings: RwLock::new(settings),
            width: Mutex::default(),
            crowd: Crowd::default(),
            refusal: LastRefusal::default(),
        }
    }

    /// Returns the key under which the process finds the pool.
    pub(crate) fn key(&self) -> PoolKey {
        let user = if self.is_common { "".into() } else { self.user.clone() };
        (self.database.clone(), user, self.variant)
    }

    /// Puts new options into force. `None` means that the pool's user or database is not
    /// configured any more.
    pub(crate) fn configure(&self, settings: Option<Arc<PoolSettings>>) {
        self.removed.store(settings.is_none(), Relaxed);
        let Some(mut settings) = settings else { return };
        if settings.place(&self.database) != self.place {
            settings = Arc::new(settings.elsewhere());
        }
        let before = self.settings();
        P::configure(&self.protocol, &settings);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings.clone();
        // A server is asked which one it is when it is connected.
        if settings.cache.follows_changes() && !before.cache.follows_changes() {
            self.renew_servers();
        }
        // Where and how servers are reached counts at once.
        if (&before.host, &before.server) != (&settings.host, &settings.server) {
            P::moved(&self.protocol);
            self.begin_reconnect();
        }
    }

    /// Orders that each server is closed when it comes free, and connected anew. A client that has
    /// one may lose it before (`server_fast_close`).
    pub(crate) fn begin_reconnect(&self) {
        self.obsoleted.fetch_add(1, Relaxed);
        self.login_changes();
    }

    /// Orders that each server is closed when it comes free, and connected anew, since the defaults
    /// of new sessions have changed. A client that has one keeps it.
    pub fn renew_servers(&self) {
        self.renewed.fetch_add(1, Relaxed);
        self.login_changes();
    }

    /// Notes that the next login to a server is not the one that servers have refused.
    pub fn login_changes(&self) {
        self.refusal.forget();
    }

    /// Returns how often the pool's servers were to be connected anew. A server that was connected
    /// under other counts is closed when it comes free.
    pub fn reconnects(&self) -> Reconnects {
        Reconnects { obsolete: self.obsoleted.load(Relaxed), renewed: self.renewed.load(Relaxed) }
    }

    /// Orders that the clients with serials below this one are killed, wherever they are.
    pub(crate) fn kill_below(&self, serial: u64) {
        self.killed.fetch_max(serial, Relaxed);
    }

    /// Whether a client was to be killed. A client on its way between two cores has missed the
    /// command that they got.
    pub(crate) fn has_killed(&self, client: ClientSerial) -> bool {
        client.0 < self.killed.load(Relaxed)
    }

    /// Whether the pool's user or database is not configured any more. The pool's clients leave,
    /// and no other is let in.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Relaxed)
    }

    /// Returns the settings in force, or for a removed pool the last ones in force.
    pub fn settings(&self) -> Arc<PoolSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in the reads that a core has sent since its last report. Returns the number of servers
    /// on which the core's reads run before they share one: between `least` and `most` over all
    /// cores.
    pub(crate) fn report_reads(
        &self,
        core: Core,
        now: Now,
        load: Load,
        (least, most): (u32, u32),
    ) -> usize {
        let mut width = self.width.lock().unwrap_or_else(PoisonError::into_inner);
        width.report(core, now, load, least as usize, most as usize);
        width.of_core(core)
    }

    /// Returns the number of servers on which reads of all cores run before they share one, if it
    /// was looked for.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width.lock().unwrap_or_else(PoisonError::into_inner).total()
    }

    /// Notes that a server of another pool is to make room for one of this pool.
    pub(crate) fn want_room(&self) {
        self.wants_room.store(true, Relaxed);
    }

    /// Whether a server of another pool is to make room. The caller has to see to it: of several
    /// cores that could, one does.
    pub(crate) fn is_room_due(&self) -> bool {
        self.wants_room.swap(false, Relaxed)
    }

    /// Counts a server that has logged in. Returns whether it is the only one.
    pub(crate) fn server_lives(&self) -> bool {
        self.live.fetch_add(1, Relaxed) == 0
    }

    /// Counts out a server that was logged in.
    pub(crate) fn server_dies(&self) {
        let before = self.live.fetch_sub(1, Relaxed);
        assert!(before > 0, "no more servers go than were logged in to");
    }

    /// Whether a server is logged in, which means that its database exists.
    pub fn is_live(&self) -> bool {
        self.live.load(Relaxed) > 0
    }
}

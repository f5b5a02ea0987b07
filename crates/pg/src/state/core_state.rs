//! The state of one core's engine beside its connections: statements, settings, pools.

use std::sync::Arc;

use refrain_sql::normalize::Span;

use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::{Core, EnvId, Peer, PoolId};
use crate::ground::stats::Counters;
use crate::ground::time::Now;
use crate::settings::interned::InternedSettings;
use crate::settings::session::{Settings, SettingsMut};
use crate::state::client::Client;
use crate::state::database_drain::DatabaseDrain;
use crate::state::event::{Action, Level, Note};
use crate::state::pool::Pool;
use crate::state::ports::Ports;
use crate::state::shared::{PoolShared, Shared};
use crate::statements::of_core::CoreStatements;

/// Bytes queued to a client of the console at which it is read on.
const CONSOLE_LOW: usize = 64 * 1024;

/// Fills a slice with random bytes.
pub(crate) type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

/// What one core's engine has beside its connections.
pub(crate) struct CoreState {
    /// Which core this is.
    pub(crate) core: Core,
    /// What the cores share.
    pub(crate) shared: Arc<Shared>,
    /// The statements this core knows.
    pub(crate) statements: CoreStatements,
    /// The settings this core knows.
    pub(crate) interned_settings: InternedSettings,
    /// No settings at all.
    pub(crate) nothing: Arc<Settings>,
    /// Whether no new clients are taken, and those there are leave when they can.
    pub(crate) draining: bool,
    /// Databases that are drained.
    pub(crate) database_drain: DatabaseDrain,
    /// For names on their way into a message.
    pub(crate) scratch: Vec<u8>,
    /// For the literals of a text.
    pub(crate) spans: Vec<Span>,
    /// What was done for pools that are forgotten.
    pub(crate) forgotten: Counters,
    pools: Vec<Option<Box<Pool>>>,
    entropy: Entropy,
}

impl CoreState {
    /// A core that has seen nothing yet.
    pub(crate) fn new(core: Core, shared: Arc<Shared>, entropy: Entropy) -> Self {
        let mut interned_settings = InternedSettings::default();
        let nothing = interned_settings.intern(SettingsMut::default(), |_| Arc::new(EnvId(0)));
        let statements = CoreStatements::default();
        let draining = false;
        let scratch = Vec::new();
        Self {
            core,
            shared,
            statements,
            interned_settings,
            nothing,
            draining,
            database_drain: DatabaseDrain::default(),
            scratch,
            spans: Vec::new(),
            forgotten: Counters::default(),
            pools: Vec::new(),
            entropy,
        }
    }

    /// Interns settings.
    pub(crate) fn settings(&mut self, edit: SettingsMut) -> Arc<Settings> {
        self.interned_settings.intern(edit, |bytes| self.shared.environment(bytes))
    }

    /// Forgets statements, settings and pools that are not used any more.
    pub(crate) fn sweep(&mut self) {
        self.statements.sweep();
        self.interned_settings.sweep();
        self.shared.sweep();
    }

    /// This core's part of a pool, made on first use.
    pub(crate) fn open_pool(&mut self, shared: &Arc<PoolShared>, now: Now) -> &mut Pool {
        let place = shared.id.place();
        if self.pools.len() <= place {
            self.pools.resize_with(place + 1, || None);
        }
        let paused = || self.shared.is_paused(&shared.database);
        let make = || Box::new(Pool::new(shared.clone(), paused(), now));
        let pool = self.pools[place].get_or_insert_with(make);
        assert_eq!(pool.shared.id, shared.id, "a place is used again when all have left it");
        pool
    }

    /// Closes this core's part of a pool that nobody here has. If no other core has it open, it is
    /// forgotten.
    pub(crate) fn close_pool(&mut self, id: PoolId) {
        let pool = self.pools[id.place()].take().expect("it is open");
        assert!(pool.shared.id == id && pool.is_unused(), "nobody has it");
        self.forgotten.add(&pool.counters);
        self.forgotten.pools_forgotten += 1;
        drop(pool);
        self.shared.forget_pool(id);
    }

    /// This core's part of a pool that a client or server of this core belongs to.
    ///
    /// # Panics
    /// Where no such pool was opened here.
    #[inline]
    pub(crate) fn pool(&mut self, id: PoolId) -> &mut Pool {
        self.find_pool(id).expect("a pool in use is open")
    }

    /// The same, where the pool may not be open here.
    #[inline]
    pub(crate) fn find_pool(&mut self, id: PoolId) -> Option<&mut Pool> {
        let pool = self.pools.get_mut(id.place())?.as_deref_mut();
        pool.filter(|pool| pool.shared.id == id)
    }

    /// The same, to look at.
    #[inline]
    pub(crate) fn peek_pool(&self, id: PoolId) -> Option<&Pool> {
        self.pools.get(id.place())?.as_deref().filter(|pool| pool.shared.id == id)
    }

    /// Whether a pool's database is drained, so that its servers have to go.
    #[inline]
    pub(crate) fn is_draining(&self, id: PoolId, now: Now) -> bool {
        self.peek_pool(id).is_some_and(|pool| self.database_drain.concerns(pool, now))
    }

    /// Bytes queued to a connection at which reading for it starts again; the console has no pool.
    pub(crate) fn low_mark(&self, id: PoolId) -> usize {
        self.peek_pool(id).map_or(CONSOLE_LOW, |pool| pool.settings.options.buffer_low)
    }

    /// All pools of this core.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter().flatten().map(|pool| &**pool)
    }

    /// All pools of this core.
    pub(crate) fn pools_mut(&mut self) -> impl Iterator<Item = &mut Pool> {
        self.pools.iter_mut().flatten().map(|pool| &mut **pool)
    }

    /// Random bytes.
    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.entropy)(&mut bytes);
        bytes
    }

    /// All other cores.
    pub(crate) fn others(&self) -> impl Iterator<Item = Core> + use<> {
        let own = self.core;
        (0..self.shared.cores).map(Core).filter(move |core| *core != own)
    }
}

impl std::fmt::Debug for CoreState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreState").field("core", &self.core).finish_non_exhaustive()
    }
}

/// Puts a line about a client into the log.
pub(crate) fn note_client(
    ports: &mut Ports,
    level: Level,
    cause: DisconnectReason,
    (client, pool): (&Client, Option<&Pool>),
    detail: String,
) {
    let peer = match &client.peer {
        Peer::Tcp(address) => address.to_string(),
        Peer::Unix { .. } => "unix".to_owned(),
    };
    ports.act(Action::Note(Box::new(Note {
        level,
        cause: cause.key(),
        client: Some(client.serial),
        peer: Some(peer),
        database: pool.map(|pool| pool.shared.database.clone()),
        user: pool.map(|pool| pool.shared.user.clone()),
        detail,
    })));
}

/// Puts a line about a pool or the whole into the log.
pub(crate) fn note(
    ports: &mut Ports,
    level: Level,
    cause: &'static str,
    pool: &Pool,
    detail: String,
) {
    ports.act(Action::Note(Box::new(Note {
        level,
        cause,
        client: None,
        peer: None,
        database: Some(pool.shared.database.clone()),
        user: Some(pool.shared.user.clone()),
        detail,
    })));
}

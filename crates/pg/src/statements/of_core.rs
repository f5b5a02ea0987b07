//! CoreStatements: the prepared statements that one core knows; a Parse looks here first, without a
//! lock.
//!
//! A text that any client of this core has prepared is found here by one hash and one comparison.
//! Each entry counts its clients of this core in a plain integer, and changes the shared counts
//! only when the first client comes and when the last has gone: many clients that prepare the same
//! statements do not move a cache line between cores.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::settings::session::Settings;
use crate::statements::columns::Columns;
use crate::statements::registry::Registry;
use crate::statements::statement::{Generation, Identity, Statement};

/// Bytes of a ParameterDescription that is kept, at most.
const PARAMETERS_MAX: usize = 4096;
/// Uses of a statement before its core notices it.
const USES_MIN: u64 = 5;
/// Most statements that a core notices between two ticks. Those beyond are noticed later.
const NOTICED_MAX: usize = 64;

/// Statements that are used often, until a tick takes them.
type Noticed = Rc<RefCell<Vec<Arc<Statement>>>>;

/// The answer of servers to a Describe of a statement.
#[derive(Debug, Default)]
enum Described {
    /// None yet: no server was asked.
    #[default]
    Not,
    /// It returns no rows, and has these parameters (the body of ParameterDescription).
    NoRows(Box<[u8]>),
    /// It returns rows, or has more parameters than are kept.
    Otherwise,
}

/// The cost of a statement on a server: means in which the last runs weigh most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The microseconds that it takes; zero if no run is known.
    pub(crate) us: u32,
    /// The bytes of its replies.
    pub(crate) bytes: u32,
}

impl Cost {
    /// Returns the means with one more run.
    fn and(self, new: Self) -> Self {
        let mean = |old: u32, new: u32| (old - old / 8).saturating_add(new / 8).max(1);
        Self { us: mean(self.us, new.us), bytes: mean(self.bytes, new.bytes) }
    }
}

/// A statement as one core has it; the clients' maps refer to it.
#[derive(Debug)]
pub(crate) struct CachedStatement {
    /// The statement.
    pub(crate) statement: Arc<Statement>,
    /// Settings under which its text was parsed: those that decide how its constants are read, and
    /// no others.
    pub(crate) settings: Arc<Settings>,
    clients: Cell<u32>,
    /// Uses at this core.
    uses: Cell<u32>,
    /// How many of them have been added to the shared count.
    shared_uses: Cell<u32>,
    /// How many there were at the last sweep.
    swept_uses: Cell<u32>,
    /// The use at which the core notices the statement.
    notice: Cell<u32>,
    /// The core's list of such statements; `None` if the statement is in no table.
    noticed: Option<Noticed>,
    /// One more than the generation that a server has accepted last; zero if none has.
    accepted: Cell<u32>,
    /// The columns that a generation of it returns, as a server said last.
    columns: Cell<(Generation, Columns)>,
    /// Its parameters, if it returns no rows: then Describe says the same whatever happens to the
    /// schema.
    described: RefCell<Described>,
    /// The cost of the current generation on a server.
    cost: Cell<(Generation, Cost)>,
    /// Requests that shared a server to run it, at this core.
    shared: Cell<u32>,
    /// How many of them have been added to the shared count.
    told_shared: Cell<u32>,
    /// Uses at this core, as far as they matter: a statement that is used once gets no name.
    seen: Cell<u8>,
}

impl CachedStatement {
    /// Makes a statement that is in no map.
    pub(crate) fn new(statement: Arc<Statement>, settings: &Arc<Settings>) -> Self {
        let (_, servers, uses) = statement.counts();
        // A statement that is worth a name at another core is worth one here.
        let seen = if servers > 0 || uses > 1 { 2 } else { 0 };
        let cached = Self {
            statement,
            settings: settings.reading().clone(),
            clients: Cell::new(0),
            uses: Cell::new(0),
            shared_uses: Cell::new(0),
            swept_uses: Cell::new(0),
            notice: Cell::new(0),
            noticed: None,
            accepted: Cell::new(0),
            columns: Cell::new((0, Columns::Of { server: 0, parse: 0 })),
            described: RefCell::default(),
            cost: Cell::default(),
            shared: Cell::new(0),
            told_shared: Cell::new(0),
            seen: Cell::new(seen),
        };
        cached.watch();
        cached
    }

    /// Learns the time that a server took to run the statement, in microseconds, and the bytes of
    /// its replies.
    pub(crate) fn learn_cost(&self, took: u64, bytes: u64) {
        let new = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).max(1);
        let new = Cost { us: new(took), bytes: new(bytes) };
        let cost = self.cost().map_or(new, |old| old.and(new));
        self.cost.set((self.statement.generation(), cost));
    }

    /// Returns the cost of the statement's current generation, if it is known.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let (generation, cost) = self.cost.get();
        (cost.us > 0 && generation == self.statement.generation()).then_some(cost)
    }

    /// Counts a request that shares a server to run the statement.
    pub(crate) fn count_shared(&self) {
        self.shared.set(self.shared.get().wrapping_add(1));
    }

    /// Counts a use. True if the statement is worth a name on the server: from the second use on.
    #[inline]
    pub(crate) fn used(&self) -> bool {
        let seen = self.seen.get();
        self.seen.set(seen.saturating_add(1));
        seen >= 1
    }

    /// True if it is in the core's table, so that other cores find the statement as well.
    pub(crate) fn is_in_table(&self) -> bool {
        self.noticed.is_some()
    }

    /// True if the next use is worth a name.
    #[inline]
    pub(crate) fn is_worth_a_name(&self) -> bool {
        self.seen.get() >= 1
    }

    /// Notes that a server has accepted the current generation.
    pub(crate) fn accept(&self) {
        self.accepted.set(self.statement.generation() + 1);
    }

    /// True if a server has accepted the current generation, and the schema is still that of
    /// `schema_version`.
    pub(crate) fn is_accepted(&self, schema_version: u64) -> bool {
        self.accepted.get() == self.statement.generation() + 1
            && self.statement.schema_version() >= schema_version
    }

    /// Notes which columns a generation returns, as a server has said. True if a server said
    /// otherwise of this generation before.
    pub(crate) fn learn_columns(&self, generation: Generation, columns: Columns) -> bool {
        let (before, known) = self.columns.replace((generation, columns));
        before == generation && known.agree(columns) == Some(false)
    }

    /// Returns the columns of the current generation, if they are known.
    pub(crate) fn columns(&self) -> Option<Columns> {
        let (generation, columns) = self.columns.get();
        match columns {
            _ if !self.statement.returns => Some(Columns::Fixed),
            Columns::Known(_) if generation == self.statement.generation() => Some(columns),
            Columns::Known(_) | Columns::Of { .. } | Columns::Fixed => None,
        }
    }

    /// Notes what a server has said to Describe: this ParameterDescription, and whether rows
    /// follow.
    pub(crate) fn learn_description(&self, parameters: &[u8], rows: bool) {
        let known = !rows && (2..=PARAMETERS_MAX).contains(&parameters.len());
        let mut described = self.described.borrow_mut();
        match &*described {
            Described::NoRows(old) if known && **old == *parameters => {}
            _ if known => *described = Described::NoRows(parameters.into()),
            _ => *described = Described::Otherwise,
        }
    }

    /// True if a server has described the statement.
    pub(crate) fn is_described(&self) -> bool {
        !matches!(*self.described.borrow(), Described::Not)
    }

    /// Returns the body of its ParameterDescription, if it is known to return no rows.
    pub(crate) fn parameters(&self) -> Option<Box<[u8]>> {
        match &*self.described.borrow() {
            Described::NoRows(parameters) => Some(parameters.clone()),
            Described::Not | Described::Otherwise => None,
        }
    }

    /// Counts a use.
    #[inline]
    pub(crate) fn count_use(&self) {
        let uses = self.uses.get().wrapping_add(1);
        self.uses.set(uses);
        if uses == self.notice.get() {
            self.be_noticed();
        }
    }

    /// Puts the statement on the core's list of those that are used often, or else tries later.
    #[cold]
    fn be_noticed(&self) {
        let Some(noticed) = &self.noticed else { return };
        let mut noticed = noticed.borrow_mut();
        if noticed.len() < NOTICED_MAX {
            noticed.push(self.statement.clone());
        } else {
            self.watch();
        }
    }

    /// Has the core notice the statement when it has been used often: uses of clients that have
    /// left, and of other cores, count too.
    fn watch(&self) {
        let (_, _, uses) = self.statement.counts();
        let missing = USES_MIN.saturating_sub(uses).max(1) as u32;
        self.notice.set(self.uses.get().wrapping_add(missing));
    }

    /// True if it was used at this core since the last sweep.
    pub(crate) fn is_in_use(&self) -> bool {
        self.uses.get() != self.swept_uses.get()
    }

    /// Counts a client whose map has it from now on.
    pub(crate) fn add_client(&self) {
        let clients = self.clients.get();
        if clients == 0 {
            self.statement.add_clients(1);
        }
        self.clients.set(clients + 1);
    }

    /// Counts out a client whose map has it no more.
    pub(crate) fn drop_client(&self) {
        let clients = self.clients.get();
        assert!(clients > 0, "no more clients leave a statement than came");
        if clients == 1 {
            self.statement.drop_clients(1);
        }
        self.clients.set(clients - 1);
        self.flush_uses();
    }

    /// Adds the uses counted here to the shared count.
    fn flush_uses(&self) {
        let uses = self.uses.get();
        let new = uses.wrapping_sub(self.shared_uses.replace(uses));
        if new > 0 {
            self.statement.add_uses(u64::from(new));
        }
        let shared = self.shared.get();
        let new = shared.wrapping_sub(self.told_shared.replace(shared));
        if new > 0 {
            self.statement.add_shared(u64::from(new));
        }
    }

    /// Adds its uses to the shared count. If nobody has asked whether it is a read, the core may
    /// notice it once more.
    fn sweep(&self) {
        self.flush_uses();
        self.swept_uses.set(self.uses.get());
        if !self.statement.verdict.was_asked() {
            self.watch();
        }
    }

    /// Returns the number of clients of this core that have it.
    pub(crate) fn clients(&self) -> u32 {
        self.clients.get()
    }
}

/// All statements of one core.
#[derive(Debug, Default)]
pub(crate) struct CoreStatements {
    table: HashTable<(u64, Rc<CachedStatement>)>,
    noticed: Noticed,
}

impl CoreStatements {
    /// Returns the statement with this identity, from this table or else from the registry.
    pub(crate) fn intern(
        &mut self,
        registry: &Registry,
        identity: Identity<'_>,
        settings: &Arc<Settings>,
    ) -> Rc<CachedStatement> {
        let hash = registry.hash(&identity);
        if let Some((_, cached)) =
            self.table.find(hash, |(_, l)| l.statement.identity() == identity)
        {
            return cached.clone();
        }
        let mut cached = CachedStatement::new(registry.intern(identity, hash), settings);
        cached.noticed = Some(self.noticed.clone());
        let cached = Rc::new(cached);
        self.table.insert_unique(hash, (hash, cached.clone()), |(hash, _)| *hash);
        cached
    }

    /// Returns the statement with this identity, if this core knows it.
    pub(crate) fn find(
        &self,
        registry: &Registry,
        identity: Identity<'_>,
    ) -> Option<Rc<CachedStatement>> {
        let hash = registry.hash(&identity);
        let found = self.table.find(hash, |(_, l)| l.statement.identity() == identity);
        found.map(|(_, cached)| cached.clone())
    }

    /// Iterates over all statements of this core.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<CachedStatement>> {
        self.table.iter().map(|(_, cached)| cached)
    }

    /// Takes the statements that have been used often since the last call, at most
    /// [`NOTICED_MAX`].
    pub(crate) fn take_noticed(&mut self) -> Vec<Arc<Statement>> {
        self.noticed.take()
    }

    /// Returns the IDs of the statements that clients of this core have, each with the number of
    /// the clients.
    pub(crate) fn clients(&self) -> Vec<(u64, u32)> {
        let held = self.table.iter().filter(|(_, cached)| cached.clients() > 0);
        held.map(|(_, cached)| (cached.statement.id, cached.clients())).collect()
    }

    /// Drops the statements that no client of this core has, and adds the uses of the rest to the
    /// shared counts.
    pub(crate) fn sweep(&mut self) {
        self.table.retain(|(_, cached)| {
            cached.sweep();
            Rc::strong_count(cached) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::registry::Seed;
    use refrain_pool::ids::PoolId;

    #[test]
    fn the_shared_count_hears_of_the_first_and_the_last_client_only() {
        let registry = Registry::new(1, Seed::default());
        let mut statements = CoreStatements::default();
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail: b"x\0\0\0" };
        let cached = statements.intern(&registry, identity, &crate::settings::session::nothing());
        assert!(Rc::ptr_eq(
            &cached,
            &statements.intern(&registry, identity, &crate::settings::session::nothing())
        ));
        cached.add_client();
        cached.add_client();
        assert_eq!(cached.statement.counts().0, 1);
        cached.drop_client();
        assert_eq!(cached.statement.counts().0, 1);
        cached.drop_client();
        assert_eq!(cached.statement.counts().0, 0);
        drop(cached);
        statements.sweep();
        assert_eq!(statements.table.len(), 0);
        assert_eq!(registry.entries(), 1, "the registry keeps it until its own purge");
    }

    #[test]
    fn a_statement_is_noticed_though_its_clients_come_and_go() {
        let registry = Registry::new(1, Seed::default());
        let mut statements = CoreStatements::default();
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail: b"x\0\0\0" };
        let cached = statements.intern(&registry, identity, &crate::settings::session::nothing());
        let mut noticed = Vec::new();
        for _ in 0..10 {
            cached.add_client();
            cached.count_use();
            noticed.push(statements.take_noticed().len());
            cached.drop_client();
        }
        assert_eq!(noticed, [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert!(cached.is_in_use());
        statements.sweep();
        assert!(!cached.is_in_use());
        cached.count_use();
        assert_eq!(statements.take_noticed().len(), 1, "nobody has asked about it");
    }

    #[test]
    fn the_second_use_is_worth_a_name() {
        let registry = Registry::new(1, Seed::default());
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail: b"x\0\0\0" };
        let cached = CoreStatements::default().intern(
            &registry,
            identity,
            &crate::settings::session::nothing(),
        );
        assert!(!cached.used());
        assert!(cached.used());
    }
}

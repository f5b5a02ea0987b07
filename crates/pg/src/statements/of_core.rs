//! CoreStatements: the prepared statements that one core knows; a Parse looks here first, without a
//! lock.
//!
//! A text that any client of this core has prepared is found here by one hash and one comparison.
//! Each entry counts its clients of this core in a plain integer, and changes the shared counts
//! only when the first client comes and when the last has gone: many clients that prepare the same
//! statements do not move a cache line between cores.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::settings::session::Settings;
use crate::statements::columns::{Agreement, Columns};
use crate::statements::registry::Registry;
use crate::statements::statement::{Generation, Identity, Statement};

/// Bytes of a ParameterDescription that is kept, at most.
const PARAMETERS_MAX: usize = 4096;
/// Uses of a statement before its core notices it.
const USES_MIN: u64 = 5;
/// Most statements that a core notices between two ticks. Those beyond are noticed later.
const NOTICED_MAX: usize = 64;

/// Statements that are used often, until a tick takes them.
type Noticed = Rc<RefCell<Vec<Statement>>>;

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
    pub(crate) statement: Statement,
    /// Settings under which its text was parsed: those that decide how its constants are read, and
    /// no others.
    pub(crate) settings: Arc<Settings>,
    /// The core's list of statements that are used often; `None` if the statement is in no table.
    noticed: Option<Noticed>,
    /// Facts about it if it is used often, or returns no rows.
    often: OnceCell<Box<OftenHere>>,
    /// The columns that a generation of it returns, as a server said last.
    columns: Cell<Columns>,
    /// That generation.
    columns_of: Cell<Generation>,
    /// One more than the generation that a server has accepted last; zero if none has.
    accepted: Cell<u32>,
    clients: Cell<u32>,
    /// Uses at this core that have yet to be added to the shared count.
    fresh_uses: Cell<u32>,
    /// Uses until the core notices the statement.
    until_noticed: Cell<u32>,
    /// Whether uses since the last sweep were added to the shared count.
    was_used: Cell<bool>,
    /// Whether a server has answered a Describe of it.
    described: Cell<bool>,
    /// Uses at this core, as far as they matter: a statement that is used once gets no name.
    seen: Cell<u8>,
}

/// Facts that a core knows about a statement that is used often, or that returns no rows.
#[derive(Debug, Default)]
struct OftenHere {
    /// The cost of a generation on a server.
    cost: Cell<(Generation, Cost)>,
    /// Requests that shared a server to run it, which have yet to be added to the shared count.
    fresh_shared: Cell<u32>,
    /// Its parameters (the body of ParameterDescription), if it returns no rows: then Describe says
    /// the same whatever happens to the schema.
    parameters: RefCell<Option<Box<[u8]>>>,
}

impl CachedStatement {
    /// Makes a statement that is in no map.
    pub(crate) fn new(statement: Statement, settings: &Arc<Settings>) -> Self {
        let (_, servers, uses) = statement.counts();
        // A statement that is worth a name at another core is worth one here.
        let seen = if servers > 0 || uses > 1 { 2 } else { 0 };
        let cached = Self {
            statement,
            settings: settings.reading().clone(),
            noticed: None,
            often: OnceCell::new(),
            columns: Cell::new(Columns::Of { server: 0, parse: 0 }),
            columns_of: Cell::new(0),
            accepted: Cell::new(0),
            clients: Cell::new(0),
            fresh_uses: Cell::new(0),
            until_noticed: Cell::new(0),
            was_used: Cell::new(false),
            described: Cell::new(false),
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
        self.often().cost.set((self.statement.generation(), cost));
    }

    /// Returns the cost of the statement's current generation, if it is known.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let (generation, cost) = self.often.get()?.cost.get();
        (cost.us > 0 && generation == self.statement.generation()).then_some(cost)
    }

    /// Counts a request that shares a server to run the statement.
    pub(crate) fn count_shared(&self) {
        let fresh = &self.often().fresh_shared;
        fresh.set(fresh.get().wrapping_add(1));
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
        let (before, known) = (self.columns_of.replace(generation), self.columns.replace(columns));
        before == generation && known.compare(columns) == Agreement::Other
    }

    /// Returns the columns of the current generation, if they are known.
    pub(crate) fn columns(&self) -> Option<Columns> {
        let (generation, columns) = (self.columns_of.get(), self.columns.get());
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
        self.described.set(true);
        if !known && self.often.get().is_none() {
            return;
        }
        let mut kept = self.often().parameters.borrow_mut();
        match &*kept {
            Some(old) if known && **old == *parameters => {}
            _ => *kept = known.then(|| parameters.into()),
        }
    }

    /// True if a server has described the statement.
    pub(crate) fn is_described(&self) -> bool {
        self.described.get()
    }

    /// Returns the body of its ParameterDescription, if it is known to return no rows.
    pub(crate) fn parameters(&self) -> Option<Box<[u8]>> {
        self.often.get()?.parameters.borrow().clone()
    }

    fn often(&self) -> &OftenHere {
        self.often.get_or_init(Box::default)
    }

    /// Counts a use.
    #[inline]
    pub(crate) fn count_use(&self) {
        self.fresh_uses.set(self.fresh_uses.get().wrapping_add(1));
        let until_noticed = self.until_noticed.get().wrapping_sub(1);
        self.until_noticed.set(until_noticed);
        if until_noticed == 0 {
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
        self.until_noticed.set(missing);
    }

    /// True if it was used at this core since the last sweep.
    pub(crate) fn is_in_use(&self) -> bool {
        self.was_used.get() || self.fresh_uses.get() > 0
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
        let new = self.fresh_uses.take();
        if new > 0 {
            self.was_used.set(true);
            self.statement.add_uses(u64::from(new));
        }
        let shared = self.often.get().map_or(0, |often| often.fresh_shared.take());
        if shared > 0 {
            self.statement.add_shared(u64::from(shared));
        }
    }

    /// Adds its uses to the shared count. If nobody has asked whether it is a read, the core may
    /// notice it once more.
    fn sweep(&self) {
        self.flush_uses();
        self.was_used.set(false);
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
    table: HashTable<Rc<CachedStatement>>,
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
        if let Some(cached) = self.table.find(hash, |it| it.statement.identity() == identity) {
            return cached.clone();
        }
        let mut cached = CachedStatement::new(registry.intern(identity, hash), settings);
        cached.noticed = Some(self.noticed.clone());
        let cached = Rc::new(cached);
        let hash_of = |it: &Rc<CachedStatement>| registry.hash(&it.statement.identity());
        self.table.insert_unique(hash, cached.clone(), hash_of);
        cached
    }

    /// Returns the statement with this identity, if this core knows it.
    pub(crate) fn find(
        &self,
        registry: &Registry,
        identity: Identity<'_>,
    ) -> Option<Rc<CachedStatement>> {
        let hash = registry.hash(&identity);
        self.table.find(hash, |it| it.statement.identity() == identity).cloned()
    }

    /// Iterates over all statements of this core.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<CachedStatement>> {
        self.table.iter()
    }

    /// Takes the statements that have been used often since the last call, at most
    /// [`NOTICED_MAX`].
    pub(crate) fn take_noticed(&mut self) -> Vec<Statement> {
        self.noticed.take()
    }

    /// Returns the IDs of the statements that clients of this core have, each with the number of
    /// the clients.
    pub(crate) fn clients(&self) -> Vec<(u64, u32)> {
        let held = self.table.iter().filter(|cached| cached.clients() > 0);
        held.map(|cached| (cached.statement.id, cached.clients())).collect()
    }

    /// Drops the statements that no client of this core has, and adds the uses of the rest to the
    /// shared counts.
    pub(crate) fn sweep(&mut self) {
        self.table.retain(|cached| {
            cached.sweep();
            Rc::strong_count(cached) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use refrain_pool::ids::PoolId;
    use refrain_pool::seed::Seed;

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

//! The prepared statements that clients and servers of a core have, by their texts.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use refrain_pool::ids::PoolId;
use refrain_pool::seed::Seed;

use crate::definitions::{Definitions, Moment};
use crate::settings::Settings;
use crate::statement::{Draft, Statement};
use crate::sweep::Sweep;

/// The statements.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    known: HashTable<Known>,
    seed: Seed,
    sweep: Sweep,
    /// The length of all definitions.
    bytes: usize,
}

/// A statement, and what a server has said of it last.
#[derive(Debug)]
struct Known {
    hash: u64,
    statement: Arc<Statement>,
    definitions: Option<Arc<Definitions>>,
}

/// The most bytes of definitions that a core keeps.
const DEFINITION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The parts of a statement that make it another one: its pool, the settings under which it is
/// prepared, and its text.
pub(crate) type Identity<'a> = (PoolId, &'a Settings, &'a [u8]);

/// Returns the number under which a statement is counted whose pool and text have this hash. Those
/// of PostgreSQL's protocol are counted from 1 and do not come near, and it is one in JavaScript.
pub(crate) fn number_of(hash: u64) -> u64 {
    1 << 52 | hash >> 12
}

impl Known {
    fn is(&self, (pool, settings, text): Identity<'_>) -> bool {
        let its = &self.statement;
        its.pool == pool && *its.text == *text && settings.have_environment(&its.environment)
    }
}

impl Registry {
    /// Makes an empty registry.
    pub(crate) fn new(seed: Seed) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Clients with other settings are few, and their texts others, so settings are not hashed.
    fn hash(&self, (pool, _, text): Identity<'_>) -> u64 {
        self.seed.hash_one((pool, text))
    }

    /// Returns a statement whose definitions are known.
    pub(crate) fn find(
        &self,
        identity: Identity<'_>,
    ) -> Option<(&Arc<Statement>, &Arc<Definitions>)> {
        let known = self.known.find(self.hash(identity), |known| known.is(identity))?;
        Some((&known.statement, known.definitions.as_ref()?))
    }

    /// Returns the statement that is shared. One whose text is not all there is not.
    pub(crate) fn share(
        &mut self,
        pool: PoolId,
        settings: &Settings,
        draft: Draft,
    ) -> Arc<Statement> {
        let Draft { text, is_whole, facts, .. } = draft;
        let make = |id, text| {
            let environment = settings.environment();
            let first_types = OnceLock::new();
            Arc::new(Statement { id, pool, environment, text, is_whole, facts, first_types })
        };
        if !is_whole {
            return make(0, text);
        }
        self.sweep();
        let identity = (pool, settings, &text[..]);
        let hash = self.hash(identity);
        match self.known.entry(hash, |known| known.is(identity), |known| known.hash) {
            Entry::Occupied(there) => there.get().statement.clone(),
            Entry::Vacant(place) => {
                let statement = make(number_of(hash), text);
                place.insert(Known { hash, statement: statement.clone(), definitions: None });
                statement
            }
        }
    }

    /// Returns all statements that are known.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Statement>> {
        self.known.iter().map(|known| &known.statement)
    }

    /// Forgets the statements that nobody has any more, if there are many.
    fn sweep(&mut self) {
        if !self.sweep.is_due(self.known.len()) {
            return;
        }
        let bytes = &mut self.bytes;
        self.known.retain(|known| {
            let stays = Arc::strong_count(&known.statement) > 1;
            if !stays {
                *bytes -= known.definitions.as_ref().map_or(0, |its| its.bytes());
            }
            stays
        });
        self.sweep.done(self.known.len());
    }

    /// Keeps the definitions of a statement, if there is room for them.
    pub(crate) fn keep(&mut self, statement: &Arc<Statement>, definitions: Definitions) {
        let identity = (statement.pool, &statement.environment, &statement.text[..]);
        let hash = self.hash(identity);
        let is_it = |known: &Known| Arc::ptr_eq(&known.statement, statement);
        let Some(known) = self.known.find_mut(hash, is_it) else { return };
        self.bytes -= known.definitions.take().map_or(0, |old| old.bytes());
        if self.bytes + definitions.bytes() <= DEFINITION_BYTES_MAX {
            self.bytes += definitions.bytes();
            known.definitions = Some(Arc::new(definitions));
        }
    }

    /// Returns the statement of this core that another core's is.
    pub(crate) fn adopt(&mut self, other: &Arc<Statement>) -> Arc<Statement> {
        let Statement { pool, environment, text, is_whole, facts, .. } = &**other;
        let since = Moment::default();
        let draft = Draft { text: text.clone(), is_whole: *is_whole, facts: *facts, since };
        self.share(*pool, environment, draft)
    }
}

//! DatabaseChanges: what all cores know of the replication stream of a database.
//!
//! A thread of the program follows the stream ([`crate::changes`]). A core looks here whether the
//! stream is recent enough for a reply by a rule with `consistency = "commits"`, and whether the
//! tables of the reply are in the stream. That a commit has come is seen by the topics, as with all
//! other writes: so a core looks here first, and at the topics of the reply behind that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use refrain_pool::Now;
use refrain_pool::stats::Histogram;
use refrain_sql::normalize::Reason;

use crate::ground::ids::ServerOrigin;

/// Most tables about which the catalog is asked. Replies that read others are not kept by
/// `commits`.
const TABLES_MAX: usize = 16 * 1024;
/// Bits of a time in microseconds that do not count where a use is noted: about four seconds.
const USE_BITS: u32 = 22;

/// The knowledge of all cores about the stream of a database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseChanges {
    /// The moment up to which all commits have been heard; zero as long as there is none.
    proven: AtomicU64,
    /// When a reply was last asked for that depends on it, without its [`USE_BITS`].
    used: AtomicU64,
    /// Counts the changes of what is covered.
    version: AtomicU64,
    known: Mutex<KnownChanges>,
}

#[derive(Debug, Default)]
struct KnownChanges {
    /// The server whose stream it is, once the stream is live.
    origin: Option<ServerOrigin>,
    /// Whether a server of the pools has said to be another since.
    are_elsewhere: bool,
    /// The tables that replies read, by OID, and whether their changes are in the stream.
    tables: BTreeMap<u32, Result<(), Uncovered>>,
    view: ChangesView,
}

/// The state of a stream, for the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesView {
    /// The database, as clients name it; empty if nobody follows its stream.
    pub database: String,
    /// `starting` or `live`.
    pub state: &'static str,
    /// Why it is not live, if it is not.
    pub why: String,
    /// The publications of which it is.
    pub publications: Vec<String>,
    /// The name of the slot.
    pub slot: String,
    /// The position up to which all commits have been heard.
    pub mark: u64,
    /// The moment up to which all commits have been heard; zero if there is none.
    pub proven: Now,
    /// Proofs so far.
    pub proofs: u64,
    /// Snapshots so far.
    pub snapshots: u64,
    /// Commits with changes so far.
    pub commits: u64,
    /// Topics that these have voided: tables, names of tables, and whole databases.
    pub voids: u64,
    /// Commits in doubt now.
    pub doubts: u64,
    /// How often the stream was lost.
    pub losses: u64,
    /// The tables that replies read, and those of them that are not covered.
    pub tables: u64,
    /// See [`Self::tables`].
    pub uncovered: u64,
    /// Time from the question of each proof until it is one.
    pub lag: Histogram,
    /// Age of the last proof when the next one came.
    pub age: Histogram,
}

/// A table that replies read, and whether its changes are in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCoverage {
    /// The database, as clients name it.
    pub database: String,
    /// Its OID.
    pub oid: u32,
    /// Why its changes are not in the stream, if they are not.
    pub why: Option<&'static Reason>,
}

/// The reason why the changes of a table are not known to be in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncovered {
    /// The catalog has not been asked yet.
    Unknown,
    /// There is no such table.
    Missing,
    Unpublished,
    Kinds,
    Filtered,
    Unlogged,
    Materialized,
    Foreign,
    Relation,
    /// A partition or another child is not covered.
    Child,
    /// Transactions run that ran before it was published.
    Late,
    /// The statement calls functions, and nobody knows which tables they read.
    Functions,
    /// There are too many tables.
    Many,
}

impl Uncovered {
    /// Returns the reason in words.
    pub(crate) fn reason(self) -> &'static Reason {
        macro_rules! reason {
            ($name:literal, $text:literal) => {
                &Reason { name: $name, text: $text }
            };
        }
        match self {
            Self::Unknown => reason!("coverage", "the catalog has not been asked about its tables"),
            Self::Missing => reason!("missing", "a table is gone"),
            Self::Unpublished => {
                reason!("unpublished", "a table is in none of the publications of the database")
            }
            Self::Kinds => {
                reason!("kinds", "a publication leaves inserts, updates, deletes or truncates out")
            }
            Self::Filtered => reason!("row-filter", "a publication has some rows of a table only"),
            Self::Unlogged => reason!("unlogged", "a table is not logged, so no stream has it"),
            Self::Materialized => {
                reason!("materialized", "a materialized view cannot be published")
            }
            Self::Foreign => reason!("foreign", "a foreign table cannot be published"),
            Self::Relation => reason!("relation", "a relation of this kind cannot be published"),
            Self::Child => {
                reason!("child", "a partition or another child of a table is not published")
            }
            Self::Late => {
                reason!("late", "transactions run that ran before a table was published")
            }
            Self::Functions => {
                reason!("functions", "nobody knows which tables a function reads")
            }
            Self::Many => reason!("many-tables", "replies read too many different tables"),
        }
    }

    /// Returns the reason of this name in an answer of the catalog.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "unpublished" => Self::Unpublished,
            "kinds" => Self::Kinds,
            "filtered" => Self::Filtered,
            "unlogged" => Self::Unlogged,
            "materialized" => Self::Materialized,
            "foreign" => Self::Foreign,
            _ => Self::Relation,
        }
    }
}

/// Whether the tables of a statement are covered, as of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coverage {
    pub(crate) version: u64,
    /// The reason why one of them is not, if there is such a table.
    pub(crate) uncovered: Option<Uncovered>,
}

impl DatabaseChanges {
    /// True if all commits that were acknowledged this long ago have been heard, in microseconds.
    #[inline]
    pub(crate) fn are_proven(&self, now: Now, staleness: u64) -> bool {
        let proven = self.proven.load(SeqCst);
        proven > 0 && proven.saturating_add(staleness) >= now.0
    }

    /// Notes that a reply was asked for that depends on the stream.
    #[inline]
    pub(crate) fn note_use(&self, now: Now) {
        let used = now.0 >> USE_BITS;
        if self.used.load(Relaxed) != used {
            self.used.store(used, Relaxed);
        }
    }

    /// Whether replies were asked for of late.
    pub(crate) fn are_used(&self, now: Now) -> bool {
        self.used.load(Relaxed) + 1 >= now.0 >> USE_BITS
    }

    /// Returns the count of changes of what is covered.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(SeqCst)
    }

    /// Returns whether tables are covered. The catalog will be asked about those that are new.
    pub(crate) fn coverage(&self, tables: impl Iterator<Item = u32>) -> Coverage {
        let mut known = self.known();
        let mut uncovered = None;
        for oid in tables {
            let room = known.tables.len() < TABLES_MAX;
            let found = match known.tables.get(&oid) {
                Some(found) => *found,
                None if room => *known.tables.entry(oid).or_insert(Err(Uncovered::Unknown)),
                None => Err(Uncovered::Many),
            };
            uncovered = uncovered.or(found.err());
        }
        Coverage { version: self.version(), uncovered }
    }

    /// Whether a reply of this server may be kept. `falls_back` says that it may also be while
    /// there is no stream: replies from before a stream are void when it is live.
    pub(crate) fn may_keep(&self, server: Option<ServerOrigin>, falls_back: bool) -> bool {
        match self.known().origin {
            None => falls_back,
            Some(origin) => server == Some(origin),
        }
    }

    /// Returns the tables about which the catalog is to be asked.
    pub(crate) fn tables(&self) -> Vec<u32> {
        self.known().tables.keys().copied().collect()
    }

    /// Returns all tables that replies read.
    pub(crate) fn coverages(&self) -> Vec<TableCoverage> {
        let known = self.known();
        let of = |(oid, found): (&u32, &Result<(), Uncovered>)| TableCoverage {
            database: known.view.database.clone(),
            oid: *oid,
            why: found.err().map(Uncovered::reason),
        };
        known.tables.iter().map(of).collect()
    }

    /// Takes in what is true of tables and was not before. Tables that are gone are forgotten.
    pub(crate) fn learn(&self, found: BTreeMap<u32, Result<(), Uncovered>>) {
        let mut known = self.known();
        let mut differ = false;
        for (oid, covered) in found {
            let before = match covered {
                Err(Uncovered::Missing) => known.tables.remove(&oid),
                covered => known.tables.insert(oid, covered),
            };
            // A table that is not covered may be so for whatever reason: plans stay as they are.
            // One that is gone, and asked about all the same, would have all of them made anew at
            // each look.
            differ |= covered.is_ok() != before.is_some_and(|before| before.is_ok());
        }
        self.version.fetch_add(u64::from(differ), SeqCst);
    }

    /// Notes that the stream of a server is live.
    pub(crate) fn goes_live(&self, origin: ServerOrigin) {
        let mut known = self.known();
        (known.origin, known.are_elsewhere) = (Some(origin), false);
    }

    /// Notes that a server of a pool has said which one it is. If it is another than that of the
    /// stream, there is another primary, and the stream of the old one proves nothing any more.
    pub(crate) fn meet(&self, server: ServerOrigin) {
        let mut known = self.known();
        if known.origin.is_some_and(|origin| origin != server) {
            known.are_elsewhere = true;
            self.proven.store(0, SeqCst);
        }
    }

    /// Whether a pool has met another server than that of the stream.
    pub(crate) fn are_elsewhere(&self) -> bool {
        self.known().are_elsewhere
    }

    /// Notes up to which moment all commits have been heard.
    pub(crate) fn prove(&self, upto: Now) {
        let known = self.known();
        if !known.are_elsewhere {
            self.proven.store(upto.0, SeqCst);
        }
    }

    /// Notes that there is no stream: nothing is proven, and nothing is covered.
    pub(crate) fn lose(&self) {
        self.proven.store(0, SeqCst);
        let mut known = self.known();
        (known.origin, known.are_elsewhere) = (None, false);
        known.tables.values_mut().for_each(|covered| *covered = Err(Uncovered::Unknown));
        self.version.fetch_add(1, SeqCst);
    }

    /// Shows the state of the stream.
    pub(crate) fn show(&self, view: ChangesView) {
        let mut known = self.known();
        let uncovered = known.tables.values().filter(|covered| covered.is_err()).count() as u64;
        let (tables, proven) = (known.tables.len() as u64, Now(self.proven.load(Relaxed)));
        known.view = ChangesView { tables, uncovered, proven, ..view };
    }

    /// Returns the state of the stream.
    pub(crate) fn view(&self) -> ChangesView {
        let view = self.known().view.clone();
        ChangesView { proven: Now(self.proven.load(Relaxed)), ..view }
    }

    fn known(&self) -> MutexGuard<'_, KnownChanges> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ServerOrigin = ServerOrigin { cluster: 1, started: 5 };

    #[test]
    fn a_proof_counts_for_a_while_and_a_loss_ends_it() {
        let changes = DatabaseChanges::default();
        assert!(!changes.are_proven(Now(5), u64::MAX), "nothing was ever proven");
        changes.prove(Now(100));
        assert!(changes.are_proven(Now(150), 50) && !changes.are_proven(Now(151), 50));
        changes.lose();
        assert!(!changes.are_proven(Now(100), u64::MAX));
    }

    #[test]
    fn a_table_is_covered_once_the_catalog_says_so() {
        let changes = DatabaseChanges::default();
        let of = |oids: &[u32]| changes.coverage(oids.iter().copied());
        assert_eq!(of(&[]), Coverage { version: 0, uncovered: None });
        assert_eq!(of(&[7, 8]).uncovered, Some(Uncovered::Unknown));
        assert_eq!(changes.tables(), [7, 8]);
        let found = [(7, Ok(())), (8, Err(Uncovered::Filtered)), (9, Err(Uncovered::Missing))];
        changes.learn(found.into());
        assert_eq!(of(&[7]), Coverage { version: 1, uncovered: None });
        assert_eq!(of(&[7, 8]).uncovered, Some(Uncovered::Filtered));
        assert_eq!(of(&[9]).uncovered, Some(Uncovered::Unknown));
        changes.learn([(9, Err(Uncovered::Missing)), (8, Err(Uncovered::Late))].into());
        assert_eq!(changes.version(), 1, "none is covered that was not, or the other way round");
        assert_eq!(changes.tables(), [7, 8]);
        changes.learn([(8, Ok(()))].into());
        assert_eq!(of(&[7, 8]), Coverage { version: 2, uncovered: None });
        changes.lose();
        assert_eq!(of(&[7]), Coverage { version: 3, uncovered: Some(Uncovered::Unknown) });
    }

    #[test]
    fn replies_are_kept_of_the_server_of_the_stream() {
        let changes = DatabaseChanges::default();
        assert!(changes.may_keep(None, true) && !changes.may_keep(Some(ONE), false));
        changes.goes_live(ONE);
        let other = ServerOrigin { started: 6, ..ONE };
        assert!(changes.may_keep(Some(ONE), false));
        assert!(!changes.may_keep(Some(other), true) && !changes.may_keep(None, true));
        changes.lose();
        assert!(!changes.may_keep(Some(ONE), false));
    }

    #[test]
    fn nothing_is_proven_once_a_pool_has_met_another_server() {
        let changes = DatabaseChanges::default();
        changes.meet(ONE);
        changes.goes_live(ONE);
        changes.prove(Now(100));
        changes.meet(ONE);
        assert!(changes.are_proven(Now(100), 0) && !changes.are_elsewhere());
        changes.meet(ServerOrigin { started: 6, ..ONE });
        assert!(changes.are_elsewhere() && !changes.are_proven(Now(100), u64::MAX));
        changes.prove(Now(200));
        assert!(!changes.are_proven(Now(200), u64::MAX), "those proofs are of the old one");
        changes.lose();
        changes.goes_live(ServerOrigin { started: 6, ..ONE });
        changes.prove(Now(300));
        assert!(changes.are_proven(Now(300), 0) && !changes.are_elsewhere());
    }

    #[test]
    fn uses_are_forgotten_after_seconds() {
        let changes = DatabaseChanges::default();
        changes.note_use(Now(60_000_000));
        assert!(changes.are_used(Now(60_000_001)) && !changes.are_used(Now(70_000_000)));
    }
}

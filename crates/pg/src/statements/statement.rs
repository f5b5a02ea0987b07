//! Prepared statement: what makes it the same as another, and the name that servers know it by.
//!
//! The identity of a statement is exact bytes: the pool, the parse environment (settings that
//! change what a text means, see `crate::settings::session`), the text and the parameter types. A
//! [`Statement`] is immutable and shared; the counts beside it change when a client or server
//! prepares or closes it, never on Bind, Describe or Execute.
//!
//! Internal names carry a nonce of this process and are never used twice: a name that survives on a
//! server behind another pooler cannot be taken for one of this process (pgdog issue 1331; E9 to
//! E11).
//!
//! A *generation* begins when the schema under a statement has changed. Servers keep the generation
//! that they prepared; Refrain treats a copy of an older one as absent. So each server prepares a
//! stale statement anew when a client next uses it there, and not all servers at once.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use once_cell::race::OnceBox;
use refrain_cache::Topic;
use refrain_pg_wire::back::{Fields, field};
use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::lex::Lexer;
use refrain_sql::writes::may_write;
use refrain_sql::{Kind, Scan, Traits};
use triomphe::ThinArc;

use crate::ground::ids::EnvId;
use crate::statements::columns;
use crate::statements::often::Often;
use crate::statements::relations::{Changes, Relations, Table};
use crate::statements::verdict::Verdict;

/// Counts how often a change of schema has begun a statement anew.
pub type Generation = u32;

/// The identity of a statement: two Parses with the same identity share one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The pool: a text is never shared between pools.
    pub pool: PoolId,
    /// The parse environment: it decides what the text means.
    pub env: EnvId,
    /// The text with its zero byte and the parameter types, as on the wire.
    pub tail: &'a [u8],
}

/// One statement, shared by every client and server that has it. The text stands behind the rest,
/// in the same memory.
#[derive(Clone, Debug)]
pub struct Statement(ThinArc<Head, u8>);

/// A statement without its text.
#[derive(Debug)]
pub struct Head {
    /// Never used twice.
    pub id: u64,
    /// The pool that it belongs to.
    pub pool: PoolId,
    /// The parse environment of its text.
    pub env: EnvId,
    /// The scan of the text: its kind, and its effects on a session.
    pub scan: Scan,
    /// Whether the columns that it returns may change with the schema.
    pub returns: bool,
    /// Whether it names something of the session (EXECUTE, FETCH) that decides which columns it
    /// returns.
    pub names: bool,
    /// Whether it may write, as far as the text shows.
    pub(crate) writes: bool,
    /// Whether `common` counts it while it has no clients and no servers.
    is_counted: bool,
    generation: AtomicU32,
    /// The pool's schema version when the generation began.
    schema_version: AtomicU64,
    /// Whether it is a read.
    pub(crate) verdict: Verdict,
    /// Clients, plus servers times [`SERVER`]: one number shows when the last of both has gone.
    holders: AtomicU64,
    uses: AtomicU64,
    common: Arc<Common>,
    /// Facts about it if it is used often. Most statements of a large program are not.
    often: OnceBox<Often>,
}

/// Facts that all statements of a registry have in common.
#[derive(Debug, Default)]
pub struct Common {
    /// The beginning of their internal names.
    pub(crate) prefix: Box<[u8]>,
    /// How many statements of the registry have no client and no server.
    pub(crate) idle: AtomicUsize,
}

/// Statements whose constants PostgreSQL reads at Parse; other commands are analysed when they run.
const READERS: &[&str] = &[
    "create", "declare", "delete", "explain", "insert", "merge", "select", "table", "update",
    "values", "with",
];

/// The function of PostgreSQL that finds that the result of a plan has changed; its name in errors
/// is never translated.
pub(crate) const STALE_ROUTINE: &[u8] = b"RevalidateCachedQuery";
/// The file of that function.
pub(crate) const STALE_FILE: &[u8] = b"plancache.c";
/// The message of its error, in English.
pub(crate) const STALE_MESSAGE: &[u8] = b"cached plan must not change result type";

/// The share of one server in the count of holders.
const SERVER: u64 = 1 << 32;

impl Statement {
    /// Makes a statement that has no clients and no servers yet.
    pub fn new(id: u64, identity: Identity<'_>, common: &Arc<Common>) -> Self {
        Self::of(Head::new(id, identity, common), identity)
    }

    /// Makes a statement that `common` counts while it has no clients and no servers.
    pub(crate) fn counted(id: u64, identity: Identity<'_>, common: &Arc<Common>) -> Self {
        common.idle.fetch_add(1, Relaxed);
        let head = Head::new(id, identity, common);
        Self::of(Head { is_counted: true, ..head }, identity)
    }

    fn of(head: Head, identity: Identity<'_>) -> Self {
        Self(ThinArc::from_header_and_slice(head, identity.tail))
    }

    /// True if nothing else refers to it.
    pub(crate) fn is_nobodys(&self) -> bool {
        ThinArc::strong_count(&self.0) == 1
    }

    /// Returns the text with its zero byte and the parameter types, as on the wire.
    #[inline]
    pub fn tail(&self) -> &[u8] {
        &self.0.slice
    }

    /// Estimates the memory that a server needs for the statement and its plan, in bytes.
    /// `pg_backend_memory_contexts` shows 12 KiB for a lookup, 80 KiB for a join of four tables,
    /// 330 KiB for an INSERT of a hundred rows; and for each partition in a plan, 5 KiB with three
    /// columns and 10 KiB with twenty.
    pub(crate) fn memory(&self) -> usize {
        let partitions = self.often.get().map_or(0, |often| often.partitions.load(Relaxed));
        8 * 1024 + 32 * self.tail().len() + partitions
    }

    /// Returns its identity.
    pub fn identity(&self) -> Identity<'_> {
        Identity { pool: self.pool, env: self.env, tail: self.tail() }
    }

    /// Returns the text without its zero byte.
    pub fn text(&self) -> &[u8] {
        refrain_pg_wire::frame::split_text(self.tail()).map_or(&[], |(text, _)| text)
    }

    /// Returns the types of the parameters as the Parse has them: their number, and each OID.
    pub fn parameters(&self) -> &[u8] {
        refrain_pg_wire::frame::split_text(self.tail()).map_or(&[], |(_, types)| types)
    }

    /// True if PostgreSQL may read constants of the text at Parse; see [`reads_constants`].
    pub fn has_constants(&self) -> bool {
        reads_constants(self.text(), self.scan.traits)
    }

    /// Returns the bytes that it takes, roughly.
    pub fn bytes(&self) -> usize {
        size_of::<Head>() + self.tail().len()
    }
}

impl Deref for Statement {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        &self.0.header.header
    }
}

impl Head {
    fn new(id: u64, identity: Identity<'_>, common: &Arc<Common>) -> Self {
        let text = identity.tail.split(|&b| b == 0).next().unwrap_or(&[]);
        let scan = refrain_sql::scan(text);
        Self {
            id,
            pool: identity.pool,
            env: identity.env,
            names: names(text, &scan),
            writes: may_write(text, &scan, false),
            scan,
            returns: columns::may_change(text),
            is_counted: false,
            generation: AtomicU32::new(0),
            schema_version: AtomicU64::new(0),
            verdict: Verdict::default(),
            holders: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            common: common.clone(),
            often: OnceBox::new(),
        }
    }

    /// Notes that a request said the same as one shortly before, and took this time in
    /// microseconds.
    pub(crate) fn was_repeated(&self, took: u64) {
        self.often().repeated_us.fetch_add(took, Relaxed);
    }

    /// Returns the time of requests that said the same as one shortly before, in the seconds that
    /// were looked at.
    pub(crate) fn repeated_us(&self) -> u64 {
        self.often.get().map_or(0, |often| often.repeated_us.load(Relaxed))
    }

    /// Notes the memory that a plan takes for partitions, in bytes.
    pub(crate) fn found_partitions(&self, bytes: usize) {
        self.often().partitions.store(bytes, Relaxed);
    }

    /// Returns the tables that it reads, and those that it may change, as far as they are known.
    pub(crate) fn relations(&self) -> &Relations {
        static UNKNOWN: LazyLock<Relations> = LazyLock::new(Relations::default);
        self.often.get().map_or_else(|| &*UNKNOWN, |often| &often.relations)
    }

    /// Counts how often the tables that it reads were found to be others.
    #[inline]
    pub(crate) fn readings(&self) -> u64 {
        self.often.get().map_or(0, |often| often.relations.readings())
    }

    /// Records the tables on whose rows the result depends, and the topics of writes to their
    /// parents that reach all children.
    pub(crate) fn learn_reads(&self, reads: Vec<Table>, above: Vec<Topic>) {
        self.often().relations.learn_reads(reads, above);
    }

    /// Records what the statement may change, as of this count of schema changes.
    pub(crate) fn learn_changes(&self, changes: Changes, schema_changes: u64) {
        self.often().relations.learn_changes(changes, schema_changes);
    }

    fn often(&self) -> &Often {
        self.often.get_or_init(Box::default)
    }

    /// True if running it may do something to the session, or end a transaction.
    #[inline]
    pub fn acts(&self) -> bool {
        let ends = matches!(self.scan.kind, Kind::TransactionEnd | Kind::Chain | Kind::Other);
        ends || self.names || !self.scan.traits.is_empty()
    }

    /// True if it is known, as of this count of schema changes, to be a read: a server may run it
    /// while it runs statements of other clients, and it may run twice. See `crate::reads`.
    #[inline]
    pub fn is_read(&self, schema_changes: u64) -> bool {
        self.verdict.is_read(schema_changes)
    }

    /// True if no core finds out anything about the statement: the caller does so from now on.
    pub(crate) fn begins_question(&self, schema_changes: u64, now: Now) -> bool {
        let voided = self.relations().take_voided(schema_changes);
        self.verdict.begin(schema_changes, now, voided)
    }

    /// Appends the name that servers know `generation` by.
    #[inline]
    pub fn write_name(&self, out: &mut Vec<u8>, generation: Generation) {
        out.extend_from_slice(&self.common.prefix);
        base36(out, self.id);
        if generation > 0 {
            out.push(b'.');
            base36(out, u64::from(generation));
        }
    }

    /// Returns the length of that name in bytes.
    #[inline]
    pub fn name_bytes(&self, generation: Generation) -> usize {
        let suffix = if generation > 0 { 1 + base36_digits(u64::from(generation)) } else { 0 };
        self.common.prefix.len() + base36_digits(self.id) + suffix
    }

    /// Returns the generation to prepare from now on.
    #[inline]
    pub fn generation(&self) -> Generation {
        self.generation.load(Relaxed)
    }

    /// Begins a new generation, unless one has begun since `seen`. True if this call began it.
    pub fn begin_generation(&self, seen: Generation, schema_version: u64) -> bool {
        self.schema_version.fetch_max(schema_version, Relaxed);
        self.generation.compare_exchange(seen, seen + 1, Relaxed, Relaxed).is_ok()
    }

    /// Has autoprepare use no plans older than this count of schema changes. True if servers may
    /// have older plans.
    pub fn follow(&self, schema_changes: u64) -> bool {
        let older = self.often().schema_changes.fetch_max(schema_changes, Relaxed) < schema_changes;
        older && !self.is_new()
    }

    /// Notes the schema version in which the first generation began.
    pub fn start_schema_version(&self, schema_version: u64) {
        self.schema_version.fetch_max(schema_version, Relaxed);
    }

    /// True if no client and no server has had it, and it was never used.
    pub fn is_new(&self) -> bool {
        self.counts() == (0, 0, 0)
    }

    /// Returns the schema version in which the current generation began.
    pub fn schema_version(&self) -> u64 {
        self.schema_version.load(Relaxed)
    }

    /// Adds `by` clients of one core, and as many uses.
    pub fn add_clients(&self, by: u32) {
        self.add_holders(u64::from(by));
        self.add_uses(u64::from(by));
    }

    /// Takes `by` clients away.
    pub fn drop_clients(&self, by: u32) {
        let before = self.drop_holders(u64::from(by)) % SERVER;
        assert!(before >= u64::from(by), "no more clients leave a statement than came");
    }

    /// Adds the requests that one core counted that shared a server to run the statement.
    pub fn add_shared(&self, by: u64) {
        self.often().shared.fetch_add(by, Relaxed);
    }

    /// Returns the number of requests that shared a server to run the statement.
    pub fn shared(&self) -> u64 {
        self.often.get().map_or(0, |often| often.shared.load(Relaxed))
    }

    /// Adds the uses that one core counted.
    pub fn add_uses(&self, by: u64) {
        self.uses.fetch_add(by, Relaxed);
    }

    /// Counts a server that has it from now on.
    pub fn add_server(&self) {
        self.add_holders(SERVER);
    }

    /// Counts out a server that has it no more.
    pub fn drop_server(&self) {
        let before = self.drop_holders(SERVER);
        assert!(before >= SERVER, "no more servers lose a statement than had it");
    }

    /// Returns the numbers of clients, servers and uses.
    pub fn counts(&self) -> (u32, u32, u64) {
        let holders = self.holders.load(Relaxed);
        let (clients, servers) = (holders as u32, (holders / SERVER) as u32);
        (clients, servers, self.uses.load(Relaxed))
    }

    fn add_holders(&self, holders: u64) {
        if self.holders.fetch_add(holders, Relaxed) == 0 && self.is_counted {
            self.common.idle.fetch_sub(1, Relaxed);
        }
    }

    /// Takes holders away, and returns how many there were before.
    fn drop_holders(&self, holders: u64) -> u64 {
        let before = self.holders.fetch_sub(holders, Relaxed);
        assert!(before >= holders, "no more leave a statement than came");
        if before == holders && self.is_counted {
            self.common.idle.fetch_add(1, Relaxed);
        }
        before
    }
}

/// True if a text names something of the session that decides which columns it returns.
fn names(text: &[u8], scan: &Scan) -> bool {
    let executes =
        matches!(scan.kind, Kind::Execute(_) | Kind::ExplainExecute(_) | Kind::CreateAsExecute(_));
    let first = || Lexer::new(text, false).significant();
    executes || first().is_some_and(|word| word.of(text).eq_ignore_ascii_case(b"fetch"))
}

/// True if PostgreSQL may read constants of a text at Parse, so that the settings of that moment
/// decide what they mean (E57). It reads no constants of other commands then, and some of these
/// must stand alone in their transaction.
pub fn reads_constants(text: &[u8], traits: Traits) -> bool {
    let first = text.split(|byte| !byte.is_ascii_alphabetic()).find(|word| !word.is_empty());
    let reads = first.is_none_or(|word| {
        READERS.iter().any(|reader| word.eq_ignore_ascii_case(reader.as_bytes()))
    });
    let alone = Traits::ALONE | Traits::PROCEDURAL;
    !traits.intersects(alone) && (reads || text.contains(&b'\\'))
}

/// True if an error means that a statement no longer fits the schema, so that nothing but a new
/// Parse helps. Errors of data, constraints and transactions do not mean that.
pub(crate) fn is_stale(fields: &Fields<'_>) -> bool {
    let stale_plan = fields.get(field::ROUTINE) == Some(STALE_ROUTINE);
    match fields.sqlstate() {
        b"0A000" => stale_plan,
        b"XX000" => {
            fields.get(field::MESSAGE).is_some_and(|m| m.starts_with(b"cache lookup failed"))
        }
        // Undefined table, column, function, type; wrong types: what the text was analysed against
        // is gone.
        b"42P01" | b"42703" | b"42883" | b"42704" | b"42804" | b"3F000" => true,
        _ => false,
    }
}

/// Spreads statement IDs over a table, which uses the upper bits of a hash too. The IDs are dense
/// and never used twice, so a multiplication will do.
#[inline]
pub(crate) fn spread(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Appends `value` in base 36.
pub fn base36(out: &mut Vec<u8>, mut value: u64) {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = [0; 13];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = DIGITS[(value % 36) as usize];
        value /= 36;
        if value == 0 {
            return out.extend_from_slice(&digits[first..]);
        }
    }
}

#[inline]
fn base36_digits(mut value: u64) -> usize {
    let mut digits = 1;
    while value >= 36 {
        (digits, value) = (digits + 1, value / 36);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement() -> Statement {
        let identity = Identity { pool: PoolId(1), env: EnvId::of(0), tail: b"select 1\0\0\0" };
        let common = Common { prefix: (*b"_x_").into(), ..Common::default() };
        Statement::new(37, identity, &Arc::new(common))
    }

    fn name(statement: &Statement, generation: Generation) -> Vec<u8> {
        let mut out = Vec::new();
        statement.write_name(&mut out, generation);
        out
    }

    #[test]
    fn a_generation_has_a_name_of_its_own() {
        let statement = statement();
        assert_eq!(name(&statement, 0), b"_x_11");
        assert_eq!(name(&statement, 36), b"_x_11.10");
        for generation in [0, 1, 35, 36, 1295, 1296] {
            assert_eq!(name(&statement, generation).len(), statement.name_bytes(generation));
        }
    }

    #[test]
    fn a_generation_begins_once_for_all_who_saw_the_same_one_fail() {
        let statement = statement();
        assert!(statement.begin_generation(0, 5));
        assert!(!statement.begin_generation(0, 6));
        assert_eq!((statement.generation(), statement.schema_version()), (1, 6));
    }

    #[test]
    fn what_names_what_the_session_has() {
        let named = |text: &str| names(text.as_bytes(), &refrain_sql::scan(text.as_bytes()));
        for text in ["execute q", "/* c */ FETCH 1 FROM c", "explain execute q(1)"] {
            assert!(named(text), "{text}");
        }
        for text in ["", "select 'fetch'", "select 1 fetch first row only", "explain select 1"] {
            assert!(!named(text), "{text}");
        }
    }

    #[test]
    fn errors_of_data_teach_nothing() {
        for (sqlstate, stale) in [("22012", false), ("23505", false), ("42P01", true)] {
            let body = format!("C{sqlstate}\0\0");
            assert_eq!(is_stale(&Fields(body.as_bytes())), stale, "{sqlstate}");
        }
        assert!(is_stale(&Fields(b"C0A000\0RRevalidateCachedQuery\0\0")));
        assert!(!is_stale(&Fields(b"C0A000\0Rsomething\0\0")));
    }
}

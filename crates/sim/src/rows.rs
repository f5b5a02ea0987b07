//! The rows of the model server: a version for each, the locks on them, and who wrote which
//! version.
//!
//! All sessions of a server have the same [`Rows`]. A transaction's versions show to others once it
//! has committed. The private session of a client's oracle has rows of its own, which say what the
//! client's acknowledged transactions have written.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The position in the log where a world begins. Positions are never a multiple of eight here, as
/// PostgreSQL's are: so no record stands right behind the header of a page, where the engine has to
/// look twice.
const LOG_BEGIN: u64 = 0x300_0104;
/// Bytes of the record of a commit.
const COMMIT_BYTES: u64 = 96;

/// A row: its table and its key.
pub type RowId = (String, String);

/// The tables that exist. Every key has a row.
pub const TABLES: [&str; 2] = ["rows_a", "rows_b"];

/// A statement's need of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A row is read.
    Read(RowId),
    /// A row is written.
    Write(RowId),
    /// The table is locked against all others.
    All(String),
}

/// A version that a transaction has written and not committed.
#[derive(Clone, Debug)]
struct Pending {
    session: usize,
    version: u32,
    writer: String,
}

/// A bug in what reads see: [`crate::plant`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Reads see what is committed.
    #[default]
    Committed,
    /// Reads see what others have not committed.
    Dirty,
    /// The reads of a session see what its first read saw.
    Old,
}

#[derive(Debug, Default)]
struct Inner {
    sight: Sight,
    /// Whether commits are lost: [`crate::plant::Plant::LostCommit`].
    forgets: bool,
    /// The committed versions of each row, each with the end of its commit in the log.
    committed: BTreeMap<RowId, Vec<(u64, u32)>>,
    /// Bytes in the log beyond [`LOG_BEGIN`].
    logged: u64,
    pending: BTreeMap<RowId, Pending>,
    /// The session that has locked a table against all others.
    locked: BTreeMap<String, usize>,
    /// The last version of any row. A version that was rolled back does not come again.
    last: u32,
    /// The versions that writers wrote, by their tags.
    by_writer: BTreeMap<String, u32>,
    /// The writes that were committed since the last look: the row, and the writer.
    news: Vec<(RowId, String)>,
    /// Whether a lock was given up since the last look.
    released: bool,
    /// The versions that the first read of each session saw.
    snapshots: BTreeMap<usize, BTreeMap<RowId, u32>>,
}

/// The rows of a server.
#[derive(Clone, Debug, Default)]
pub struct Rows(Rc<RefCell<Inner>>);

impl Rows {
    /// Creates rows whose reads have a bug.
    pub(crate) fn planted(sight: Sight, forgets: bool) -> Self {
        Self(Rc::new(RefCell::new(Inner { sight, forgets, ..Inner::default() })))
    }

    /// Whether a session has to wait for another one before it can do this.
    pub(crate) fn must_wait(&self, session: usize, need: &Need) -> bool {
        let inner = self.0.borrow();
        let table = match need {
            Need::Read((table, _)) | Need::Write((table, _)) | Need::All(table) => table,
        };
        if inner.locked.get(table).is_some_and(|holder| *holder != session) {
            return true;
        }
        inner.pending.iter().filter(|(_, pending)| pending.session != session).any(|(row, _)| {
            match need {
                Need::Read(_) => false,
                Need::Write(wanted) => row == wanted,
                Need::All(table) => row.0 == *table,
            }
        })
    }

    /// Writes a row in a session's transaction.
    pub(crate) fn write(&self, session: usize, row: RowId, writer: &str) {
        let inner = &mut *self.0.borrow_mut();
        inner.last += 1;
        let version = inner.last;
        inner.by_writer.insert(writer.to_owned(), version);
        inner.pending.insert(row, Pending { session, version, writer: writer.to_owned() });
    }

    /// Locks a table against all others until the session's transaction is over.
    pub(crate) fn lock(&self, session: usize, table: &str) {
        self.0.borrow_mut().locked.insert(table.to_owned(), session);
    }

    /// Returns the version of a row that a session sees, whose host has replayed the log so far.
    pub(crate) fn version(&self, session: usize, replayed: u64, row: &RowId) -> u32 {
        let inner = &mut *self.0.borrow_mut();
        let pending = inner.pending.get(row);
        let sees = |it: &&Pending| it.session == session || inner.sight == Sight::Dirty;
        if let Some(pending) = pending.filter(sees) {
            return pending.version;
        }
        if inner.sight == Sight::Old {
            let latest =
                |(row, all): (&RowId, &Vec<(u64, u32)>)| Some((row.clone(), all.last()?.1));
            let now = || inner.committed.iter().filter_map(latest).collect();
            let seen = inner.snapshots.entry(session).or_insert_with(now);
            return seen.get(row).copied().unwrap_or(0);
        }
        let shows = |(end, _): &&(u64, u32)| *end <= replayed;
        let all = inner.committed.get(row).into_iter().flatten().rev();
        all.into_iter().find(shows).map_or(0, |(_, version)| *version)
    }

    /// Commits a session's transaction.
    pub(crate) fn commit(&self, session: usize) {
        let inner = &mut *self.0.borrow_mut();
        let own = inner.pending.iter().filter(|(_, pending)| pending.session == session);
        let own: BTreeSet<RowId> = own.map(|(row, _)| row.clone()).collect();
        inner.logged += if own.is_empty() { 0 } else { COMMIT_BYTES };
        let end = LOG_BEGIN + inner.logged;
        for row in own {
            let Some(pending) = inner.pending.remove(&row) else { continue };
            if !inner.forgets {
                inner.committed.entry(row.clone()).or_default().push((end, pending.version));
            }
            inner.news.push((row, pending.writer));
            inner.released = true;
        }
        inner.unlock(session);
    }

    /// Rolls a session's transaction back.
    pub(crate) fn rollback(&self, session: usize) {
        let inner = &mut *self.0.borrow_mut();
        let before = inner.pending.len();
        inner.pending.retain(|_, pending| pending.session != session);
        inner.released |= inner.pending.len() < before;
        inner.unlock(session);
    }

    /// Returns the end of the log: all that is committed is in front of it.
    pub(crate) fn log_end(&self) -> u64 {
        LOG_BEGIN + self.0.borrow().logged
    }

    /// Writes records to the log that change no row.
    pub(crate) fn log(&self, bytes: u64) {
        self.0.borrow_mut().logged += bytes.next_multiple_of(8);
    }

    /// Returns whether a lock was given up since the last call.
    pub(crate) fn take_released(&self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().released)
    }

    /// Returns what was committed since the last call: the row, and the writer.
    pub(crate) fn take_news(&self) -> Vec<(RowId, String)> {
        std::mem::take(&mut self.0.borrow_mut().news)
    }

    /// Returns the version that a writer has written, committed or not.
    pub(crate) fn written_by(&self, writer: &str) -> Option<u32> {
        self.0.borrow().by_writer.get(writer).copied()
    }

    /// Returns the writer of a version.
    pub(crate) fn writer_of(&self, version: u32) -> Option<String> {
        let inner = self.0.borrow();
        let found = inner.by_writer.iter().find(|(_, written)| **written == version);
        found.map(|(writer, _)| writer.clone())
    }

    /// Whether a version of a row is committed.
    pub(crate) fn is_committed(&self, row: &RowId, version: u32) -> bool {
        let inner = self.0.borrow();
        let is_it = |(_, committed): &(u64, u32)| *committed == version;
        version == 0 || inner.committed.get(row).is_some_and(|all| all.iter().any(is_it))
    }
}

impl Inner {
    fn unlock(&mut self, session: usize) {
        let before = self.locked.len();
        self.locked.retain(|_, holder| *holder != session);
        self.released |= self.locked.len() < before;
    }
}

/// Whether a name is that of a table with rows.
pub(crate) fn is_table(name: &str) -> bool {
    TABLES.contains(&name)
}

/// Returns the OID of a table with rows.
pub(crate) fn oid(name: &str) -> Option<usize> {
    TABLES.iter().position(|table| *table == name).map(|place| 17_000 + place)
}

/// Number of digits of a version in a text.
const DIGITS: usize = 8;

/// Returns a version of a row in the form in which a row shows it.
pub(crate) fn show(row: &RowId, version: u32) -> String {
    format!("{}.{}={version:0DIGITS$}", row.0, row.1)
}

/// Reads what [`show`] writes.
pub(crate) fn read(text: &str) -> Option<(RowId, u32)> {
    let (row, version) = text.split_once('=')?;
    let (table, key) = row.split_once('.')?;
    let found = is_table(table).then(|| (table.to_owned(), key.to_owned()))?;
    Some((found, version.parse().ok()?))
}

/// Overwrites the version in a DataRow whose first column is one, so that all versions of the row
/// look alike.
pub(crate) fn hide(body: &mut [u8]) {
    // The number of columns, and the length of the first one.
    let Some((first, rest)) = body.get_mut(2..).and_then(|rest| rest.split_first_chunk_mut::<4>())
    else {
        return;
    };
    let length = usize::try_from(u32::from_be_bytes(*first)).unwrap_or(0);
    let Some(text) = rest.get_mut(..length) else { return };
    if std::str::from_utf8(text).ok().and_then(read).is_some() {
        text[length - DIGITS..].fill(b'0');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str) -> RowId {
        (TABLES[0].to_owned(), key.to_owned())
    }

    #[test]
    fn a_version_shows_to_others_once_it_is_committed() {
        let rows = Rows::default();
        rows.write(1, row("k"), "c1-1");
        let version = |session| rows.version(session, u64::MAX, &row("k"));
        assert_eq!((version(1), version(2)), (1, 0));
        assert!(rows.must_wait(2, &Need::Write(row("k"))));
        assert!(!rows.must_wait(2, &Need::Write(row("other"))));
        assert!(!rows.must_wait(2, &Need::Read(row("k"))));
        rows.commit(1);
        assert_eq!(version(2), 1);
        assert!(rows.take_released() && !rows.must_wait(2, &Need::Write(row("k"))));
        assert_eq!(rows.take_news(), [(row("k"), "c1-1".to_owned())]);
    }

    #[test]
    fn a_host_shows_what_it_has_replayed() {
        let rows = Rows::default();
        let before = rows.log_end();
        rows.write(1, row("k"), "c1-1");
        rows.commit(1);
        rows.log(20);
        let first = rows.log_end();
        rows.write(1, row("k"), "c1-2");
        rows.commit(1);
        let shows = |replayed| rows.version(2, replayed, &row("k"));
        assert_eq!([before, first - 1, first, rows.log_end() - 1].map(shows), [0, 1, 1, 1]);
        assert_eq!(shows(rows.log_end()), 2);
        rows.commit(1);
        assert_eq!(shows(rows.log_end()), 2, "a transaction that writes nothing has no record");
    }

    #[test]
    fn a_version_that_was_rolled_back_does_not_come_again() {
        let rows = Rows::default();
        rows.write(1, row("k"), "c1-1");
        rows.rollback(1);
        rows.write(2, row("k"), "c2-1");
        rows.commit(2);
        assert_eq!(rows.version(1, u64::MAX, &row("k")), 2);
        assert!(!rows.is_committed(&row("k"), 1));
    }

    #[test]
    fn a_locked_table_keeps_even_readers_out() {
        let rows = Rows::default();
        rows.lock(1, TABLES[0]);
        assert!(rows.must_wait(2, &Need::Read(row("k"))));
        assert!(rows.must_wait(2, &Need::All(TABLES[0].to_owned())));
        assert!(!rows.must_wait(1, &Need::Write(row("k"))));
        assert!(!rows.must_wait(2, &Need::Read((TABLES[1].to_owned(), "k".to_owned()))));
        rows.rollback(1);
        assert!(!rows.must_wait(2, &Need::Read(row("k"))));
    }

    #[test]
    fn a_version_reads_as_it_was_shown() {
        assert_eq!(read(&show(&row("2"), 17)), Some((row("2"), 17)));
        assert_eq!(read("c1-2"), None);
    }
}

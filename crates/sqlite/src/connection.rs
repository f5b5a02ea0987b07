//! Opens a database, and what a connection can do.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use rusqlite::ffi as sqlite;
use rusqlite::functions::{Context, FunctionFlags, SqlFnOutput};
use rusqlite::limits::Limit;

use crate::authorizer::{Authorizer, Trust};
use crate::cache::Cache;
use crate::core::Core;
use crate::error::Error;
use crate::ffi::{self, Handle, Index};
use crate::file_id::WalFile;
use crate::interrupt::{Interrupter, Job};
use crate::limits::{Limits, Meter, PACE};
use crate::options::{CacheOptions, OpenOptions, Synchronous};
use crate::statement::{Parked, Run, Statement, Step};
use crate::stats::{CacheStats, StatementStats};
use crate::text::Text;
use crate::value::Value;

/// The settings of every connection, whatever the options say, and why.
const SETTINGS: &[(DbConfig, bool)] = &[
    // Otherwise SQLite compiles a statement again whenever it is bound again (rule 1).
    (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
    // A client cannot corrupt the file with plain SQL, nor write to `sqlite_schema`.
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    // A view or trigger from the file calls no function with side effects.
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    // `"nosuch"` is a column that does not exist, and not a string.
    (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
];

/// The most parameters that a statement may have.
const PARAMETERS_MAX: i32 = 32_766;

/// The number of WAL pages from which on a commit copies the WAL into the file: SQLite's default.
const WAL_PAGES: i32 = 1000;

/// The page cache of a connection in bytes, at least: about SQLite's default.
const PAGES_MIN: usize = 2 * 1024 * 1024;

/// A database file and how connections to it are opened.
#[derive(Clone, Debug)]
pub struct Database {
    path: PathBuf,
    options: OpenOptions,
}

/// A connection to a database, for one thread at a time.
pub struct Connection {
    number: u64,
    wal_file: WalFile,
    /// The longest value that it ever takes, and (`length`) that it takes now, in bytes.
    longest: i32,
    length: Cell<i32>,
    keeps_wal: Cell<bool>,
    /// True for a pool's connection for short reads.
    is_reader: Cell<bool>,
    core: Core,
}

/// The number of the next connection.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The first statement of a text.
pub struct Prepared<'c> {
    /// The statement; none if there was nothing but white space and comments.
    pub statement: Option<Statement<'c>>,
    /// Its length in the text, in bytes: the next statement begins there.
    pub length: usize,
}

/// The statements of a text. Each is compiled when the iterator reaches it, as an earlier one may
/// create the table that a later one reads. Ends at the first error.
pub struct Split<'c, 't> {
    connection: &'c Connection,
    rest: &'t str,
}

impl Database {
    /// Names a database. The file is neither opened nor created before the first
    /// [`Database::connect`].
    pub fn new(path: impl AsRef<Path>, options: OpenOptions) -> Database {
        Database { path: path.as_ref().to_owned(), options }
    }

    /// Leaves the wait for the disk to the owner of the connections, where a commit has to be on
    /// disk. Returns true if it does.
    pub fn sync_later(&mut self) -> bool {
        if self.options.synchronous == Synchronous::Full {
            self.options.synchronous = Synchronous::Later;
        }
        self.options.synchronous == Synchronous::Later
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the longest text, blob or row that its connections take, in bytes.
    pub fn longest(&self) -> usize {
        self.options.max_length
    }

    /// Returns how many statements each connection keeps at most.
    pub fn cache_size(&self) -> usize {
        self.options.cache.size
    }

    /// Makes a connection the one for short reads: it caches more pages than others do
    /// ([`OpenOptions::reader_pages`]).
    ///
    /// # Errors
    /// The error of SQLite's `PRAGMA cache_size`.
    pub fn make_reader(&self, connection: &Connection) -> Result<(), Error> {
        connection.is_reader.set(true);
        // Cached pages count as the connection's memory, and most of that is for statements.
        let most = self.options.max_memory / 4;
        let kibibytes = self.options.reader_pages.min(most).max(PAGES_MIN) / 1024;
        let size = i64::try_from(kibibytes).unwrap_or(i64::MAX);
        let handle = &connection.core.handle;
        let set = |_: &Connection| handle.connection().pragma_update(None, "cache_size", -size);
        Ok(connection.trusted(set)?)
    }

    /// Opens a connection. Creates the file if it does not exist, and sets its journal to WAL.
    pub fn connect(&self) -> Result<Connection, Error> {
        self.open(OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a connection to an existing file.
    ///
    /// # Errors
    /// SQLite's, also if there is no such file.
    pub fn connect_again(&self) -> Result<Connection, Error> {
        self.open(OpenFlags::empty())
    }

    fn open(&self, create: OpenFlags) -> Result<Connection, Error> {
        let access = match self.options.read_only {
            true => OpenFlags::SQLITE_OPEN_READ_ONLY,
            false => OpenFlags::SQLITE_OPEN_READ_WRITE | create,
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        ffi::configure();
        let (authorizer, meter) = (Authorizer::new(), Meter::new(self.options.busy_timeout));
        let opened = rusqlite::Connection::open_with_flags_and_vfs(&self.path, flags, ffi::VFS)?;
        let mut handle = Handle::new(opened, meter.clone(), self.options.max_memory)?;
        self.configure(&handle)?;
        // Hooks come last: setting one expires all statements, and there are none yet.
        let connection = handle.connection_mut();
        let looks = meter.clone();
        connection.progress_handler(PACE, Some(move || looks.look()))?;
        let asked = authorizer.clone();
        connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
            asked.authorize(&context)
        }))?;
        let core = Core::new(handle, Cache::new(self.options.cache), authorizer, meter)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (longest, wal_file) = (self.longest_value(), WalFile::of(&self.path));
        let (length, keeps_wal) = (Cell::new(longest), Cell::new(false));
        let is_reader = Cell::new(false);
        Ok(Connection { number, wal_file, longest, length, keeps_wal, is_reader, core })
    }

    fn longest_value(&self) -> i32 {
        i32::try_from(self.options.max_length).unwrap_or(i32::MAX)
    }

    fn configure(&self, handle: &Handle) -> Result<(), Error> {
        let connection = handle.connection();
        for (setting, value) in SETTINGS {
            connection.set_db_config(*setting, *value)?;
        }
        handle.name_main()?;
        connection.set_limit(Limit::SQLITE_LIMIT_VARIABLE_NUMBER, PARAMETERS_MAX)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, self.longest_value())?;
        connection.pragma_update(None, "synchronous", self.options.synchronous.word())?;
        let mmap_size = i64::try_from(self.options.mmap_size).unwrap_or(i64::MAX);
        connection.pragma_update(None, "mmap_size", mmap_size)?;
        if !self.options.read_only {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
            let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", read)?;
            if !mode.eq_ignore_ascii_case("wal") && self.options.synchronous == Synchronous::Later {
                let full = Synchronous::Full.word();
                connection.pragma_update(None, "synchronous", full)?;
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Closes the connection. Dropping it does the same, but loses the error.
    pub fn close(self) -> Result<(), Error> {
        self.core.close()
    }

    /// Returns a number that no other connection of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// True if [`Database::make_reader`] was called for this connection.
    pub fn is_reader(&self) -> bool {
        self.is_reader.get()
    }

    /// Returns the first statement of a text, from the cache or compiled.
    pub fn prepare<'t>(&self, text: impl Into<Text<'t>>) -> Result<Prepared<'_>, Error> {
        let (kept, length) = self.core.prepare(&text.into())?;
        let statement = kept.map(|kept| Statement::new(&self.core, kept));
        Ok(Prepared { statement, length })
    }

    /// Returns the only statement of a text.
    pub fn statement<'t>(&self, text: impl Into<Text<'t>>) -> Result<Statement<'_>, Error> {
        let text = text.into();
        let prepared = self.prepare(text)?;
        let statement = prepared.statement.ok_or_else(|| misuse("no statement in the text"))?;
        let rest = &text.sql()[prepared.length..];
        if !rest.trim().is_empty() && self.prepare(rest)?.statement.is_some() {
            return Err(misuse("more than one statement in the text"));
        }
        Ok(statement)
    }

    /// Returns all statements of a text, one after the other.
    pub fn split<'c, 't>(&'c self, sql: &'t str) -> Split<'c, 't> {
        Split { connection: self, rest: sql }
    }

    /// Runs the only statement of a text to its end. Returns how many rows it changed.
    pub fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Error> {
        let before = self.total_changes();
        let mut run = self.statement(sql)?.start();
        run.bind_all(values)?;
        while run.step()? == Step::Row {}
        Ok(self.total_changes() - before)
    }

    /// Resumes a run that was parked on this connection; none if it was discarded.
    pub fn resume(&self, parked: Parked) -> Option<Run<'_, 'static>> {
        Run::resume(&self.core, parked)
    }

    /// Discards all parked runs, as at the end of a transaction.
    pub fn discard_parked(&self) {
        self.core.discard_suspended();
    }

    /// Returns a number that changes when any connection has changed the schema. Reads the file's
    /// header, which begins a snapshot if the transaction has none yet.
    pub fn schema_epoch(&self) -> Result<u64, Error> {
        self.core.look_at_schema()
    }

    /// True if no `BEGIN` or savepoint has an open transaction.
    ///
    /// Ask this after every error: some errors end the transaction.
    pub fn autocommit(&self) -> bool {
        self.core.handle.connection().is_autocommit()
    }

    /// True if a transaction is open.
    pub fn in_transaction(&self) -> bool {
        !self.autocommit()
    }

    /// True if a statement is in the middle of its rows.
    pub fn is_busy(&self) -> bool {
        self.core.handle.is_busy()
    }

    /// Returns the rowid that the last INSERT gave.
    pub fn last_insert(&self) -> i64 {
        self.core.handle.connection().last_insert_rowid()
    }

    /// Returns how many rows the last INSERT, UPDATE or DELETE changed, without those that its
    /// triggers changed.
    pub fn changes(&self) -> u64 {
        self.core.handle.connection().changes()
    }

    /// Returns how many rows were changed since the connection was opened.
    pub fn total_changes(&self) -> u64 {
        self.core.handle.connection().total_changes()
    }

    /// Sets whether statements that write are refused, with SQLSTATE 25006.
    pub fn set_read_only(&self, read_only: bool) {
        self.core.read_only.set(read_only);
    }

    /// Sets how long statements may run from now on.
    pub fn set_limits(&self, limits: Limits) {
        self.core.meter.set(limits);
        let length = limits.length.and_then(|length| i32::try_from(length).ok());
        let length = length.map_or(self.longest, |length| length.min(self.longest));
        if self.length.replace(length) != length {
            // This fails for an unknown limit alone, and SQLite knows this one.
            let _ = self.core.handle.connection().set_limit(Limit::SQLITE_LIMIT_LENGTH, length);
        }
        if self.keeps_wal.replace(limits.keeps_wal) != limits.keeps_wal {
            self.core.handle.checkpoint_from(if limits.keeps_wal { 0 } else { WAL_PAGES });
        }
    }

    /// True if a statement was not compiled, or ended with an error, because it needs more steps or
    /// longer values than [`Connection::set_limits`] allows. Calling this resets it.
    pub fn take_outgrown(&self) -> bool {
        self.core.outgrown.take()
    }

    /// Returns a handle that stops this connection's statements from other threads.
    pub fn interrupter(&self) -> Interrupter {
        self.core.interrupter.clone()
    }

    /// Sets whose statements the connection runs, until the result is dropped: see [`Interrupter`].
    pub fn job(&self, token: u64) -> Job<'_> {
        self.core.interrupter.begin(token)
    }

    /// True if the paths of the file and of its WAL still lead to the ones that are open. A system
    /// call for each.
    pub fn is_in_place(&self) -> bool {
        !self.core.handle.has_moved() && self.wal_file.is_in_place()
    }

    /// True if the WAL's index was found not to be whole. Every statement fails then, until no
    /// connection to the file is open.
    pub fn has_broken_index(&self) -> bool {
        self.core.handle.index().is_some_and(Index::is_broken)
    }

    /// Checks the WAL's index. A system call.
    ///
    /// # Errors
    /// The index is not whole.
    pub fn check_index(&self) -> Result<(), Error> {
        let whole = self.core.handle.index().is_none_or(Index::is_whole);
        if whole { Ok(()) } else { Err(Error::broken_index()) }
    }

    /// Copies all of the WAL into the file and empties it.
    ///
    /// # Errors
    /// SQLite's, `SQLITE_BUSY` among them: another connection reads or writes.
    pub fn empty_wal(&self) -> Result<(), Error> {
        self.core.handle.checkpoint(sqlite::SQLITE_CHECKPOINT_TRUNCATE).map(drop)
    }

    /// Copies pages from the WAL into the file without waiting for readers or writers. Returns how
    /// many pages the WAL has, and how many of them are copied.
    pub fn checkpoint(&self) -> Result<(i32, i32), Error> {
        self.core.handle.checkpoint(sqlite::SQLITE_CHECKPOINT_PASSIVE)
    }

    /// Runs `work`, which may do what a client may not, such as attaching a database: no text in
    /// `work` may come from a client.
    pub fn trusted<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let _until_the_end = self.core.authorizer.trust(Trust::Full);
        work(self)
    }

    /// True if each foreign key of a table's rows refers to a row.
    ///
    /// # Errors
    /// SQLite's.
    pub fn has_sound_keys(&self, table: &str) -> Result<bool, Error> {
        const CHECK: &str = "SELECT 1 FROM pragma_foreign_key_check(?1) LIMIT 1";
        self.trusted(|connection| {
            let mut run = connection.statement(CHECK)?.start();
            run.bind(1, Value::from(table))?;
            Ok(run.step()? == Step::Done)
        })
    }

    /// Defines a function. Call this once, when the connection is opened: SQLite compiles all kept
    /// statements again after it.
    pub fn define_function<F, T>(
        &self,
        name: &str,
        arguments: i32,
        flags: FunctionFlags,
        function: F,
    ) -> Result<(), Error>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + 'static,
        T: SqlFnOutput,
    {
        self.core.authorizer.give(name);
        let connection = self.core.handle.connection();
        Ok(connection.create_scalar_function(name, arguments, flags, function)?)
    }

    /// Returns what the statement cache did so far.
    pub fn cache_stats(&self) -> CacheStats {
        self.core.cache.borrow().stats()
    }

    /// Returns the kept statements that are not in use, most recently used first.
    pub fn statement_stats(&self) -> Vec<StatementStats> {
        self.core.cache.borrow().statements()
    }

    /// Returns the options of the statement cache.
    pub fn cache_options(&self) -> CacheOptions {
        self.core.cache.borrow().options()
    }

    /// Sets the options of the statement cache. A smaller size evicts at once.
    pub fn set_cache_options(&self, options: CacheOptions) {
        self.core.cache.borrow_mut().set_options(options);
    }

    /// Finalises all kept statements.
    pub fn clear_cache(&self) {
        self.core.cache.borrow_mut().clear();
    }
}

impl<'c> Iterator for Split<'c, '_> {
    type Item = Result<Statement<'c>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.connection.prepare(self.rest) {
            Ok(prepared) => {
                self.rest = &self.rest[prepared.length..];
                prepared.statement.map(Ok)
            }
            Err(error) => {
                self.rest = "";
                Some(Err(error))
            }
        }
    }
}

impl Split<'_, '_> {
    /// Returns the rest of the text.
    pub fn rest(&self) -> &str {
        self.rest
    }
}

fn misuse(message: &str) -> Error {
    Error::new(sqlite::SQLITE_MISUSE, message).with_state("42601")
}

mod redefine;

#[cfg(test)]
mod tests;

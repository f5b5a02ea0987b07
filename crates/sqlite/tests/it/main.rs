//! The library as its users see it: cache, schema changes, errors, limits and safety.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod admission;
mod bindings;
mod index;
mod interrupts;
mod safety;
mod schema;
mod statements;
mod texts;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use refrain_sqlite::{
    Admit, CacheOptions, CacheStats, Connection, Database, OpenOptions, Step, Synchronous, Type,
    Value,
};

/// A database file of one test, removed when the test is over.
pub(crate) struct TestFile {
    path: PathBuf,
}

impl TestFile {
    pub(crate) fn new() -> TestFile {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("refrain-sqlite-{}-{number}.db", std::process::id());
        let file = TestFile { path: std::env::temp_dir().join(name) };
        file.remove();
        file
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub(crate) fn connect(&self) -> Connection {
        Database::new(&self.path, options(256)).connect().unwrap()
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns options without waiting for locks or for the disk.
pub(crate) fn options(size: usize) -> OpenOptions {
    OpenOptions {
        busy_timeout: Duration::ZERO,
        synchronous: Synchronous::Off,
        cache: CacheOptions { size, ..CacheOptions::default() },
        ..OpenOptions::default()
    }
}

pub(crate) fn memory(size: usize) -> Connection {
    Database::new(":memory:", options(size)).connect().unwrap()
}

/// Opens a connection that keeps statements from their first use on.
pub(crate) fn keeping(size: usize) -> Connection {
    let connection = memory(size);
    connection
        .set_cache_options(CacheOptions { admit: Admit::Always, ..connection.cache_options() });
    connection
}

/// Runs all statements of a text.
pub(crate) fn run(connection: &Connection, sql: &str) {
    for statement in connection.split(sql) {
        let mut run = statement.unwrap().start();
        while run.step().unwrap() == Step::Row {}
    }
}

/// Returns the rows of a query as text, with a bar between columns.
pub(crate) fn rows(connection: &Connection, sql: &str, values: &[Value<'_>]) -> Vec<String> {
    let mut run = connection.statement(sql).unwrap().start();
    run.bind_all(values).unwrap();
    let mut rows = Vec::new();
    while run.step().unwrap() == Step::Row {
        let columns = (0..run.column_count()).map(|column| shown(run.column(column)));
        rows.push(columns.collect::<Vec<_>>().join("|"));
    }
    rows
}

pub(crate) fn shown(value: Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => format!("{bytes:02x?}"),
    }
}

/// Returns the SQLSTATE with which the only statement of a text ends, when it is compiled or run.
pub(crate) fn state(connection: &Connection, sql: &str) -> &'static str {
    connection.execute(sql, &[]).unwrap_err().sqlstate()
}

/// Returns hits and misses since `before`.
pub(crate) fn since(before: CacheStats, now: CacheStats) -> (u64, u64) {
    (now.hits - before.hits, now.misses - before.misses)
}

#[test]
fn values_have_kinds() {
    assert_eq!(Value::from(Some(1)).kind(), Type::Integer);
    assert_eq!(Value::from(None::<&str>).kind(), Type::Null);
}

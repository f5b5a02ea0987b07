//! The file that the queries read: a thousand monsters.

use std::path::PathBuf;

use refrain_sqlite::{CacheOptions, Connection, Database, OpenOptions};

/// Number of rows.
pub(crate) const ROWS: usize = 1000;

/// A database file, removed at the end.
pub(crate) struct World {
    pub(crate) path: PathBuf,
}

impl World {
    pub(crate) fn new() -> World {
        let name = format!("refrain-sqlite-bench-{}.db", std::process::id());
        let world = World { path: std::env::temp_dir().join(name) };
        let connection = world.connect(0);
        run(
            &connection,
            "CREATE TABLE monster (id INTEGER PRIMARY KEY, name TEXT, hp INTEGER, attack INTEGER)",
        );
        run(&connection, "BEGIN");
        for id in 1..=ROWS as i64 {
            let name = format!("monster {id}");
            let values = [id.into(), name.as_str().into(), (id * 7 % 100).into(), (id % 13).into()];
            connection.execute("INSERT INTO monster VALUES (?, ?, ?, ?)", &values).unwrap();
        }
        run(&connection, "COMMIT");
        world
    }

    /// Opens a connection whose cache has this size.
    pub(crate) fn connect(&self, size: usize) -> Connection {
        Database::new(&self.path, options(size)).connect().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
}

pub(crate) fn options(size: usize) -> OpenOptions {
    let cache = CacheOptions { size, ..CacheOptions::default() };
    OpenOptions { cache, ..OpenOptions::default() }
}

pub(crate) fn run(connection: &Connection, sql: &str) {
    connection.execute(sql, &[]).unwrap();
}

//! SQLite with a statement cache of its own.
//!
//! A [`Database`] opens [`Connection`]s to one file. A connection compiles a text into a
//! [`Statement`], runs it as a [`Run`], and keeps statements that are used again in its cache.
//!
//! Why: to compile a text takes longer than to run it, and a cache on the C interface is easily
//! useless or harmful: without the planner's stability guarantee SQLite may compile a statement
//! again when it is bound again, texts that come once push out those that come often, and after a
//! schema change a statement shows old columns. `docs/sqlite.md` has the rules against these
//! faults; the modules here name the rules that they keep.
//!
//! Always true: a kept statement is reset and points at no memory of a caller; a text is found by
//! its exact bytes; every statement is finalised before its connection closes. Unsafe code is in
//! `ffi` and nowhere else.
//!
//! Not here: threads, pools, waiting. One thread at a time uses a connection.
//!
//! ```
//! use refrain_sqlite::{Database, OpenOptions, Step, Value};
//!
//! let database = Database::new(":memory:", OpenOptions::default());
//! let connection = database.connect()?;
//! connection.execute("CREATE TABLE monster (id INTEGER PRIMARY KEY, name TEXT)", &[])?;
//! connection.execute("INSERT INTO monster (name) VALUES (?)", &["slime".into()])?;
//!
//! for _ in 0..3 {
//!     let mut run = connection.statement("SELECT name FROM monster WHERE id = ?")?.start();
//!     run.bind(1, Value::Integer(1))?;
//!     while run.step()? == Step::Row {
//!         assert_eq!(run.column(0), Value::Text(b"slime"));
//!     }
//! }
//! assert_eq!(connection.cache_stats().hits, 1);
//! # Ok::<(), refrain_sqlite::Error>(())
//! ```

#![deny(unsafe_code)]

mod value;

mod error;

mod marks;

mod limits;

mod file_id;

mod ffi;

mod text;

mod options;

mod stats;

mod authorizer;

mod interrupt;

mod cache;

mod core;

mod statement;

mod connection;

pub use connection::{Connection, Database, Prepared, Split};
pub use error::{Error, Interruption};
pub use ffi::{nested, real_text};
pub use file_id::{FileId, sync_wal, wal_path};
pub use interrupt::{Interrupter, Job};
pub use limits::Limits;
pub use options::{Admit, CacheOptions, OpenOptions, Synchronous};
pub use rusqlite::functions;
pub use statement::{Parked, Run, Statement, Step};
pub use stats::{CacheStats, StatementStats};
pub use text::Text;
pub use value::{Type, Value};

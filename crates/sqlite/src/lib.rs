//! SQLite with a statement cache of its own.
//!
//! What: a [`Database`] opens [`Connection`]s to one file. A connection compiles a text into a
//! [`Statement`], runs it as a [`Run`], and keeps what is used again in its cache.
//!
//! Why: compiling a text costs two to eight times what running it costs, and a cache on the C
//! interface is easily useless or harmful: a statement that is bound anew may be compiled anew
//! unless the stability guarantee of the planner is on, texts that come once push out those that
//! come often, and a schema that changed shows old columns. The rules against these stand in
//! `docs/sqlite.md`; the modules here name the one they keep.
//!
//! What always holds: a kept statement is reset and points at no memory of a caller; a text is
//! found by its exact bytes; every statement is finalised before its connection closes. Unsafe
//! code is in `ffi` and nowhere else.
//!
//! What it does not do: threads, pools, waiting. A connection belongs to one thread at a time.
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
pub use file_id::FileId;
pub use interrupt::{Interrupter, Job};
pub use limits::Limits;
pub use options::{Admit, CacheOptions, OpenOptions, Synchronous};
pub use rusqlite::functions;
pub use statement::{Parked, Run, Statement, Step};
pub use stats::{CacheStats, StatementStats};
pub use text::Text;
pub use value::{Type, Value};

//! SQLite that answers as a PostgreSQL server would.
//!
//! A [`Session`] takes the bytes of a client and answers them in PostgreSQL's protocol. The
//! client's SQL is PostgreSQL's, and a session translates it to SQLite's. `docs/sqlite.md` lists
//! what is promised and what is not.
//!
//! Why: drivers, psql and the pooler in front of SQLite see a PostgreSQL server and need no change.
//!
//! Always true: on the loop of many clients a statement has a limited number of steps and bytes
//! (`machine/bounds.rs`). One that needs more goes on on a thread of the [`Backend`].
//!
//! Not here: sockets, logins, TLS. Bytes come and go through a session's methods.
//!
//! The modules, from the ground up: values and types (`types` to `encode`), SQL texts (`text` to
//! `command`), the state of a session (`settings` to `transaction`), its behaviour (`machine`), and
//! its owner's interface (`session`).

#![forbid(unsafe_code)]

mod failure;

mod arrays;

mod keywords;

mod sql_text;

mod enums;

mod types;

mod calendar;

mod intervals;

mod moments;

mod json;

mod sequences;

mod byte_texts;

mod decode;

mod encode;

mod text;

mod infer;

mod tokens;

mod catalog;

mod key_mark;

mod standard;

mod key_sequences;

mod comments;

mod default_text;

mod dialect;

mod command;

mod schema_reads;

mod attributes;

mod schemas;

mod normalized;

mod translation_cache;
mod violations;

mod settings;

mod control;

mod write_queue;

mod watch;

mod operator_log;

mod threads;

mod advisory;

mod context;

mod sequence_calls;

mod enum_functions;

mod functions;

mod once;

mod regexps;

mod arguments;

mod lookups;

mod json_parts;

mod times;

mod more_functions;

mod compute;

mod turn;

mod runs_on;

mod idle;

mod checkpoint_timer;

mod disk;

mod group_commit;

mod backend;

mod shape;

mod copy;

mod prepared;

mod transaction;

mod machine;

mod input;

mod pieces;

mod thread_job;

mod session;

pub use backend::{Backend, ConnectionView, Pool, PoolView};
pub use control::{CancelHandle, Waker};
pub use group_commit::SyncWal;
pub use operator_log::LogSink;
pub use session::{Progress, Session};

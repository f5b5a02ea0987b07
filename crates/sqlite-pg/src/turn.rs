//! Holds SQLite's read lock over all reads of a turn.
//!
//! A read locks its snapshot and unlocks it, with a system call each. While another connection of
//! the process holds the same lock, SQLite just counts. So when a second session reads in the same
//! turn of a core's loop, one more connection takes the lock and holds it until the turn is over.
//!
//! Always true: every read finds the newest snapshot itself. If a session has written since the
//! turn began, that snapshot has another lock, and the read takes this lock itself.

use refrain_sqlite::{Admit, CacheOptions, Connection, Error, Parked, Step};

/// The statement that holds the lock while it stands at its first row. A file without a table needs
/// no lock.
const TEXT: &str = "SELECT 1 FROM sqlite_schema";

/// The reads of a turn so far.
#[derive(Default)]
pub(crate) struct Turn {
    reads: Reads,
    keeper: Option<Keeper>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reads {
    /// [`Turn::end`] was never called, so the lock would never be released.
    #[default]
    Unknown,
    None,
    One,
    More,
}

/// The connection that does nothing but hold the lock.
struct Keeper {
    connection: Connection,
    held: Option<Parked>,
}

impl Turn {
    /// Notes a read.
    pub(crate) fn reads<E: From<Error>>(
        &mut self,
        connect: impl FnOnce() -> Result<Connection, E>,
    ) {
        self.reads = match self.reads {
            Reads::Unknown => return,
            Reads::None => Reads::One,
            Reads::One => {
                // If this fails, reads are slower and nothing else happens.
                let _ = self.hold(connect);
                Reads::More
            }
            Reads::More => return,
        };
    }

    /// Ends the turn: releases the lock.
    pub(crate) fn end(&mut self) {
        self.reads = Reads::None;
        if let Some(Keeper { connection, held }) = &mut self.keeper {
            drop(held.take().and_then(|held| connection.resume(held)));
        }
    }

    fn hold<E: From<Error>>(
        &mut self,
        connect: impl FnOnce() -> Result<Connection, E>,
    ) -> Result<(), E> {
        if self.keeper.is_none() {
            let connection = connect()?;
            let options = CacheOptions { size: 1, admit: Admit::Always, max_sql: TEXT.len() };
            connection.set_cache_options(options);
            self.keeper = Some(Keeper { connection, held: None });
        }
        let Some(Keeper { connection, held }) = &mut self.keeper else { return Ok(()) };
        let mut run = connection.statement(TEXT)?.start();
        if run.step()? == Step::Row {
            *held = Some(run.park());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_sqlite::Database;
    use refrain_sqlite::OpenOptions;
    use refrain_sqlite::Value;

    #[test]
    fn the_lock_is_held_from_the_second_read_to_the_end_and_hides_nothing() {
        let folder = std::env::temp_dir().join(format!("refrain-turn-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let database = Database::new(folder.join("turn.db"), OpenOptions::default());
        let (writer, reader) = (database.connect().unwrap(), database.connect().unwrap());
        writer.execute("CREATE TABLE t (a)", &[]).unwrap();
        let count = || {
            let mut run = reader.statement("SELECT count(*) FROM t").unwrap().start();
            assert_eq!(run.step(), Ok(Step::Row));
            let Value::Integer(count) = run.column(0) else { panic!("count is a number") };
            count
        };
        let mut turn = Turn::default();
        let read = |turn: &mut Turn| turn.reads(|| database.connect());
        let holds = |turn: &Turn| turn.keeper.as_ref().is_some_and(|keeper| keeper.held.is_some());

        read(&mut turn);
        read(&mut turn);
        assert!(!holds(&turn), "`end` was never called");
        for turns in 1..=3 {
            turn.end();
            read(&mut turn);
            assert!(!holds(&turn), "one read alone gains nothing");
            read(&mut turn);
            read(&mut turn);
            assert!(holds(&turn));
            writer.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
            assert_eq!(count(), turns, "reads see what was written since");
        }
        let (frames, copied) = writer.checkpoint().unwrap();
        assert!(copied < frames, "what is read is not written over");
        turn.end();
        assert!(!holds(&turn));
        let (frames, copied) = writer.checkpoint().unwrap();
        assert_eq!(copied, frames);
        drop((turn, reader, writer));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

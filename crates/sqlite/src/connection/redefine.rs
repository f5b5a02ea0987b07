//! New definitions of tables, for changes that SQLite has no ALTER TABLE for.
//!
//! The rows stay as they are. An index of a key is made like any other one; then it gets the name
//! by which SQLite finds the index of a key in the definition, and the other way round.

use rusqlite::config::DbConfig;

use super::{Connection, sqlite};
use crate::error::Error;
use crate::statement::Step;
use crate::value::Value;

/// The index of a key: its row in SQLite's schema, its name, and the SQL of its columns.
struct KeyIndex {
    row: i64,
    name: String,
    columns: String,
}

/// The table that shows which indexes a definition needs.
const TRIAL: &str = "refrain_trial";

impl Connection {
    /// Gives a table a new CREATE statement, in the transaction of a statement that has changed the
    /// schema. The rows stay as they are: the new statement must store them in the same way. Its
    /// keys may be others. `others` are names and new CREATE statements of other objects, which
    /// keep their columns and keys. SQLite reads all as it runs `end`, which changes the schema
    /// once more. If this fails, the transaction must be rolled back.
    ///
    /// # Errors
    /// SQLite's: the statement is malformed, or rows are not unique.
    pub fn redefine(
        &self,
        table: &str,
        sql: &str,
        others: &[(String, String)],
        end: &str,
    ) -> Result<(), Error> {
        const OTHER: &str =
            "UPDATE sqlite_schema SET sql = ?2 WHERE type <> 'trigger' AND name = ?1";
        const WRITE: &str = "UPDATE sqlite_schema SET sql = ?2 WHERE type = 'table' AND name = ?1";
        const RENAME: &str = "UPDATE sqlite_schema SET name = ?2, sql = ?3 WHERE rowid = ?1";
        let (renamed, gone) = self.trusted(|connection| connection.moved_keys(table, sql))?;
        let handle = self.core.handle.connection();
        handle.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
        let made = self.trusted(|connection| {
            // No interrupt can leave it on.
            handle.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
            let made = connection.execute(WRITE, &[Value::from(table), Value::from(sql)]);
            let made = made.and_then(|_| {
                for (row, name, sql) in &renamed {
                    let sql = sql.as_deref().map_or(Value::Null, Value::from);
                    let row = Value::Integer(*row);
                    connection.execute(RENAME, &[row, Value::from(name.as_str()), sql])?;
                }
                for (name, sql) in others {
                    let values = [Value::from(name.as_str()), Value::from(sql.as_str())];
                    connection.execute(OTHER, &values)?;
                }
                Ok(())
            });
            handle.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false)?;
            made.and_then(|()| connection.execute(end, &[]))?;
            gone.iter().try_for_each(|drop| connection.execute(drop, &[]).map(|_| ()))
        });
        handle.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        made
    }

    /// Makes the indexes of new keys. Returns which rows of SQLite's schema get which names and
    /// CREATE statements, and the statements that drop the indexes of the keys that are gone.
    #[expect(clippy::type_complexity, reason = "for one caller")]
    fn moved_keys(
        &self,
        table: &str,
        sql: &str,
    ) -> Result<(Vec<(i64, String, Option<String>)>, Vec<String>), Error> {
        let mut old = self.keys_of(table)?;
        if old.iter().any(|key| key.row == 0) {
            return Err(no_row());
        }
        let named = sql.find(&quoted(table)).map_or(0, |at| at + quoted(table).len());
        let rest = sql.get(named..).unwrap_or_default();
        let parts = rest.find('(').and_then(|at| rest.get(at..)).unwrap_or_default();
        let parts = without_autoincrement(parts);
        let trial = format!("CREATE TEMP TABLE {TRIAL} {parts}");
        self.execute(&trial, &[])?;
        let wanted = self.keys_of(TRIAL);
        self.execute(&format!("DROP TABLE temp.{TRIAL}"), &[])?;
        let (mut renamed, mut gone) = (Vec::new(), Vec::new());
        for (number, key) in wanted?.into_iter().enumerate() {
            let known = old.iter().position(|known| known.columns == key.columns);
            let known = match known {
                Some(place) => old.remove(place),
                None => {
                    let name = format!("refrain_key_{number}");
                    let on = quoted(table);
                    let columns = key.columns;
                    self.execute(&format!("CREATE UNIQUE INDEX {name} ON {on} ({columns})"), &[])?;
                    KeyIndex { row: self.row_of(&name)?, name, columns }
                }
            };
            let name = key.name.replacen(TRIAL, table, 1);
            if known.name != name {
                renamed.push((known.row, name, None));
            }
        }
        for (number, key) in old.into_iter().enumerate() {
            let name = format!("refrain_gone_{number}");
            let sql = format!("CREATE UNIQUE INDEX {name} ON {} ({})", quoted(table), key.columns);
            gone.push(format!("DROP INDEX {name}"));
            renamed.push((key.row, name, Some(sql)));
        }
        Ok((renamed, gone))
    }

    /// Returns the indexes of a table's keys, in their order. A key that is the row's number has
    /// none.
    fn keys_of(&self, table: &str) -> Result<Vec<KeyIndex>, Error> {
        const KEYS: &str = "SELECT name, coalesce((SELECT rowid FROM sqlite_schema s WHERE s.name \
                            = l.name), 0), (SELECT group_concat('\"' || replace(x.name, '\"', \
                            '\"\"') || '\"' || iif(x.desc, ' DESC', '') || iif(x.coll <> 'BINARY', \
                            ' COLLATE ' || x.coll, ''), ', ' ORDER BY x.seqno) FROM \
                            pragma_index_xinfo(l.name) x WHERE x.key) FROM pragma_index_list(?1) l \
                            WHERE origin IN ('u', 'pk') ORDER BY seq DESC";
        let mut run = self.statement(KEYS)?.start();
        run.bind(1, Value::from(table))?;
        let mut all = Vec::new();
        while run.step()? == Step::Row {
            let text = |column| match run.column(column) {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            let row = if let Value::Integer(row) = run.column(1) { row } else { 0 };
            all.push(KeyIndex { row, name: text(0), columns: text(2) });
        }
        Ok(all)
    }

    fn row_of(&self, index: &str) -> Result<i64, Error> {
        const ROW: &str = "SELECT rowid FROM sqlite_schema WHERE type = 'index' AND name = ?1";
        let mut run = self.statement(ROW)?.start();
        run.bind(1, Value::from(index))?;
        match run.step()? {
            Step::Row => match run.column(0) {
                Value::Integer(row) => Ok(row),
                _ => Err(no_row()),
            },
            Step::Done => Err(no_row()),
        }
    }
}

/// Returns the error for an index that is not in the schema of the main file: its table is a
/// temporary one.
fn no_row() -> Error {
    let message = "an index of a key is not in the schema of the main file";
    Error::new(sqlite::SQLITE_ERROR, message).with_state("0A000")
}

/// Returns the parentheses of a CREATE TABLE without AUTOINCREMENT, which changes no index, but
/// makes a table of its own.
fn without_autoincrement(parts: &str) -> String {
    const WORD: &str = "AUTOINCREMENT";
    let mut made = parts.to_owned();
    while let Some(at) = made.to_ascii_uppercase().find(&format!(" {WORD}")) {
        made.replace_range(at..=at + WORD.len(), "");
    }
    made
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! The names of the sequences of keys.
//!
//! CREATE TABLE chooses a name that is free and keeps it in the mark of the key, so a table or a
//! column with another name keeps its sequence, as in the server. The tables of earlier versions
//! have no such names: each is made of those of the table and its column. Of those that are cut
//! alike, the one of the table that was made later has a number.

use crate::key_mark::{GivenBy, KeyMark};
use crate::sql_text::object_name;
use crate::standard;
use crate::types::Type;

/// The end of such names.
pub(crate) const ENDING: &str = "seq";

/// The sequence of a table's key.
pub(crate) struct KeySequence {
    pub(crate) name: String,
    pub(crate) table: String,
    column: String,
    /// The type of the key.
    pub(crate) is: Type,
    /// True if the mark of the key has the name.
    kept: bool,
}

/// Returns the sequences of the keys of these tables, which are in the order in which they were
/// made, each with its CREATE statement.
pub(crate) fn key_sequences(tables: Vec<(String, String)>) -> Vec<KeySequence> {
    let of = |(table, sql): (String, String)| {
        let mark = KeyMark::read(&sql).filter(|mark| mark.given != GivenBy::Key)?;
        let column = standard::row_number(&sql)?;
        let kept = mark.sequence.is_some();
        let name = mark.sequence.unwrap_or_else(|| object_name(&table, &column, ENDING));
        Some(KeySequence { name, table, column, is: mark.is, kept })
    };
    let (cut, mut all): (Vec<_>, Vec<_>) = tables.into_iter().filter_map(of).partition(is_cut);
    for mut it in cut {
        let mut number = 0;
        // A temporary table may have the name of a permanent one.
        let is_other = |known: &KeySequence, it: &KeySequence| {
            known.name == it.name && known.table != it.table
        };
        while all.iter().any(|known| is_other(known, &it)) {
            number += 1;
            it.name = object_name(&it.table, &it.column, &format!("{ENDING}{number}"));
        }
        all.push(it);
    }
    all
}

/// Returns the name of the sequence of a table's key; `sql` is its CREATE statement. The tables are
/// read only if an earlier version has made the name, and has cut it.
///
/// # Errors
/// Those of reading the tables.
pub(crate) fn key_sequence_name<E>(
    sql: &str,
    table: &str,
    column: &str,
    tables: impl FnOnce() -> Result<Vec<(String, String)>, E>,
) -> Result<String, E> {
    if let Some(kept) = KeyMark::read(sql).and_then(|mark| mark.sequence) {
        return Ok(kept);
    }
    let name = object_name(table, column, ENDING);
    let (table, column) = (table.to_owned(), column.to_owned());
    let plain = KeySequence { name, table, column, is: Type::Int8, kept: false };
    if !is_cut(&plain) {
        return Ok(plain.name);
    }
    let known = key_sequences(tables()?).into_iter().find(|known| known.table == plain.table);
    Ok(known.map_or(plain.name, |known| known.name))
}

/// True if an earlier version has made the name of a sequence, and has cut it.
fn is_cut(it: &KeySequence) -> bool {
    !it.kept && it.name.len() < format!("{}_{}_{ENDING}", it.table, it.column).len()
}

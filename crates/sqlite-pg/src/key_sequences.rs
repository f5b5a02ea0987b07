//! The names of the sequences of keys.
//!
//! The file has no such names: each is made of those of the table and its column. A name of more
//! than 63 bytes is cut, and can then be that of another table's sequence. As in the server, the
//! table that was made later has a number in its name.

use crate::key_mark::{GivenBy, KeyMark};
use crate::sql_text::object_name;
use crate::standard;
use crate::types::Type;

/// The end of such names.
const ENDING: &str = "seq";

/// The sequence of a table's key.
pub(crate) struct KeySequence {
    pub(crate) name: String,
    pub(crate) table: String,
    column: String,
    /// The type of the key.
    pub(crate) is: Type,
}

/// Returns the sequences of the keys of these tables, which are in the order in which they were
/// made, each with its CREATE statement.
pub(crate) fn key_sequences(tables: Vec<(String, String)>) -> Vec<KeySequence> {
    let of = |(table, sql): (String, String)| {
        let mark = KeyMark::read(&sql).filter(|mark| mark.given != GivenBy::Key)?;
        let column = standard::row_number(&sql)?;
        let name = object_name(&table, &column, ENDING);
        Some(KeySequence { name, table, column, is: mark.is })
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

/// Returns the name of the sequence of a table's key. The tables are read only if it is cut.
///
/// # Errors
/// Those of reading the tables.
pub(crate) fn key_sequence_name<E>(
    table: &str,
    column: &str,
    tables: impl FnOnce() -> Result<Vec<(String, String)>, E>,
) -> Result<String, E> {
    let name = object_name(table, column, ENDING);
    let plain =
        KeySequence { name, table: table.to_owned(), column: column.to_owned(), is: Type::Int8 };
    if !is_cut(&plain) {
        return Ok(plain.name);
    }
    let known = key_sequences(tables()?).into_iter().find(|known| known.table == table);
    Ok(known.map_or(plain.name, |known| known.name))
}

fn is_cut(it: &KeySequence) -> bool {
    it.name.len() < format!("{}_{}_{ENDING}", it.table, it.column).len()
}

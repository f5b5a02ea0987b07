//! The table that a statement writes to, as its errors need it.

use super::value::name;

/// The table that a statement writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteTarget {
    pub(crate) table: String,
    pub(crate) verb: WriteVerb,
    /// The sequence of a key that SQLite generates, and whether the last row's key is its number.
    pub(crate) key: Option<(String, bool)>,
}

/// A statement that writes, and how its rows are found in SQLite's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    /// The columns, and the length of the text in front of the rows.
    Insert {
        columns: Vec<String>,
        head: usize,
    },
    Update,
    /// The alias of the table, and the length of the text in front of FROM.
    Delete {
        alias: String,
        head: usize,
    },
}

/// The mark behind the rows of such a statement, where it goes on.
pub(super) const END_OF_ROWS: &str = " /*refrain rows*/";

impl WriteTarget {
    /// Returns the beginning of a query in which `s` has the rows that the statement writes or
    /// deletes; none if they are not known. `sql` is its text, with its values.
    pub(crate) fn rows(&self, sql: &str) -> Option<String> {
        let rows = |head: usize| {
            let rest = sql.get(head..)?;
            Some(rest.rsplit_once(END_OF_ROWS).map_or(rest, |(rows, _)| rows))
        };
        match &self.verb {
            WriteVerb::Insert { columns, head } => {
                let names: Vec<String> = columns.iter().map(|column| name(column)).collect();
                Some(format!("WITH s({}) AS ({})", names.join(", "), rows(*head)?))
            }
            WriteVerb::Update => None,
            WriteVerb::Delete { alias, head } => {
                Some(format!("WITH s AS (SELECT {}.* {})", name(alias), rows(*head)?))
            }
        }
    }

    /// True if the rows of that query have this column.
    pub(crate) fn has(&self, column: &str) -> bool {
        match &self.verb {
            WriteVerb::Insert { columns, .. } => columns.iter().any(|known| known == column),
            WriteVerb::Update => false,
            WriteVerb::Delete { .. } => true,
        }
    }
}

//! Infers the types of a statement's parameters and results from its text.
//!
//! SQLite knows the declared type of a plain column, and nothing of expressions and parameters. So
//! the text is read once more for those: an expression has the type of its operator or function, a
//! parameter the type of the value that it is compared with, assigned to or inserted into. What the
//! reader does not understand has no type here, and the caller assumes text.
//!
//! Nothing here decides what a statement does; SQLite has compiled the text before. Reading stops,
//! without an error, at nesting deeper than [`DEPTH_MAX`].
//!
//! Not here: values. A value that does not fit the type of its column is an error when it is sent.

mod tables;
mod reader;
mod functions;
mod queries;

use refrain_sql::lex::{Lexer, Token};

use crate::types::Type;

use reader::TypeReader;
pub(crate) use tables::ColumnLookup;
use tables::NamedTables;

/// Maximum depth of expressions and subqueries that are read.
const DEPTH_MAX: usize = 64;

/// Words that end an expression.
const ENDS: &[&str] = &[
    "from",
    "where",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "as",
    "asc",
    "desc",
    "union",
    "except",
    "intersect",
    "values",
    "set",
    "returning",
    "on",
    "using",
    "join",
    "left",
    "inner",
    "cross",
    "natural",
    "right",
    "full",
    "when",
    "then",
    "else",
    "end",
    "and",
    "or",
    "between",
    "in",
    "is",
    "not",
    "like",
    "glob",
    "match",
    "regexp",
    "isnull",
    "notnull",
    "collate",
    "escape",
    "nulls",
    "window",
    "filter",
    "over",
    "do",
    "select",
    "by",
    "with",
];

/// A column of the result in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `*` or `t.*`.
    Star,
    /// An expression.
    Is(Option<Type>),
}

/// The types in the text of a statement.
#[derive(Debug, Default)]
pub(crate) struct Inferred {
    /// The parameters, in order of their numbers.
    pub(crate) parameters: Vec<Option<Type>>,
    /// The list of SELECT, RETURNING or VALUES.
    items: Vec<Item>,
    /// The types of the columns of the table, if the text names one table.
    all: Vec<Option<Type>>,
}

impl Inferred {
    /// Reads a statement of the client's text.
    pub(crate) fn read(text: &[u8], schema: &dyn ColumnLookup) -> Self {
        let tokens: Vec<Token> = std::iter::from_fn({
            let mut lexer = Lexer::new(text, false);
            move || lexer.significant()
        })
        .collect();
        let tables = NamedTables::find(text, &tokens, schema);
        let mut reader = TypeReader {
            text,
            tokens,
            at: 0,
            depth: 0,
            tables,
            parameters: Vec::new(),
            target: Vec::new(),
        };
        let items = reader.body();
        let all = reader.tables.only();
        Self { parameters: reader.parameters, items, all }
    }

    /// Returns the type of column `index` of a result with `count` columns.
    pub(crate) fn result(&self, index: usize, count: usize) -> Option<Type> {
        let stars = self.items.iter().filter(|item| **item == Item::Star).count();
        let from_left = self.items.get(index);
        let from_right = (self.items.len() + index).checked_sub(count);
        let item = match stars {
            0 => from_left,
            // Columns left of one star are counted from the left, columns right of it from the
            // right.
            1 => {
                let star = self.items.iter().position(|item| *item == Item::Star)?;
                let starred = (count + 1).checked_sub(self.items.len())?;
                if index < star {
                    from_left
                } else if index < star + starred {
                    let known = starred == self.all.len();
                    return self.all.get(index - star).copied().flatten().filter(|_| known);
                } else {
                    from_right.filter(|right| *right > star).and_then(|right| self.items.get(right))
                }
            }
            _ => None,
        };
        match item {
            Some(Item::Is(is)) => *is,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

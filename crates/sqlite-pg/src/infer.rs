//! What types the parameters and the results of a statement have, as far as its text says.
//!
//! SQLite says what a plain column was declared as, and nothing of expressions and parameters. This
//! reads the text once more for those: an expression has the type its operator or function gives
//! it, a parameter the type of what it is compared with, assigned to or inserted into. Whatever is
//! not understood has no type here, and the caller takes text for it.
//!
//! Nothing here decides what a statement does; SQLite has compiled the text before. Reading stops,
//! without a word, at nesting deeper than [`DEPTH_MAX`].
//!
//! Not here: values. A value that does not fit the type its column got is found when it is sent.

mod tables;
mod reader;
mod functions;
mod queries;

use refrain_sql::lex::{Lexer, Token};

use crate::types::Type;

use reader::TypeReader;
pub(crate) use tables::ColumnLookup;
use tables::NamedTables;

/// How deep expressions and subqueries are followed.
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

/// A column of the result as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `*` or `t.*`.
    Star,
    /// An expression.
    Is(Option<Type>),
}

/// What the text of a statement says.
#[derive(Debug, Default)]
pub(crate) struct Inferred {
    /// The parameters, in order of their numbers.
    pub(crate) parameters: Vec<Option<Type>>,
    /// What stands in the list of SELECT, RETURNING or VALUES.
    items: Vec<Item>,
    /// The columns of the only table that is named.
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

    /// The type of the result's column number `index` of `count`.
    pub(crate) fn result(&self, index: usize, count: usize) -> Option<Type> {
        let stars = self.items.iter().filter(|item| **item == Item::Star).count();
        let from_left = self.items.get(index);
        let from_right = (self.items.len() + index).checked_sub(count);
        let item = match stars {
            0 => from_left,
            // What stands on either side of one star is found from that side.
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

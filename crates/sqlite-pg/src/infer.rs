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
mod functions;
mod expressions;

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::types::Type;

use tables::NamedTables;
pub(crate) use tables::{ColumnLookup, plain_name};

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

/// What is known of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    Is(Type),
    /// A parameter without a type so far, by its number less one.
    Parameter(usize),
    Nothing,
}

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

struct TypeReader<'a> {
    text: &'a [u8],
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    tables: NamedTables<'a>,
    parameters: Vec<Option<Type>>,
    /// The types of the columns that an INSERT gives.
    target: Vec<Option<Type>>,
}

impl TypeReader<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    fn bytes(&self, ahead: usize) -> &[u8] {
        self.tokens.get(self.at + ahead).map_or(b"", |token| token.of(self.text))
    }

    fn is_word(&self, ahead: usize, words: &[&str]) -> bool {
        self.kind(ahead) == Some(TokenKind::Word)
            && words.iter().any(|word| self.bytes(ahead).eq_ignore_ascii_case(word.as_bytes()))
    }

    fn take_word(&mut self, words: &[&str]) -> bool {
        let found = self.is_word(0, words);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.kind(0) == Some(kind);
        self.at += usize::from(found);
        found
    }

    fn take_operator(&mut self, operators: &[&str]) -> bool {
        let found = self.kind(0) == Some(TokenKind::Operator)
            && operators.iter().any(|operator| self.bytes(0) == operator.as_bytes());
        self.at += usize::from(found);
        found
    }

    fn is_query(&self, ahead: usize) -> bool {
        self.is_word(ahead, &["select", "values", "with"])
    }

    /// Reads a statement, or a query in parentheses, up to its end: the items of its result.
    fn body(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        self.depth += 1;
        while let Some(token) = self.peek().filter(|_| self.depth < DEPTH_MAX) {
            match token.kind {
                TokenKind::Close | TokenKind::Semicolon => break,
                TokenKind::Word => self.clause(&mut items),
                TokenKind::Open => {
                    self.parenthesised();
                }
                _ => self.at += 1,
            }
        }
        self.depth -= 1;
        items
    }

    /// Reads a word that may begin a clause, and the clause.
    fn clause(&mut self, items: &mut Vec<Item>) {
        if self.take_word(&["select", "returning"]) {
            self.take_word(&["distinct", "all"]);
            let found = self.items();
            if items.is_empty() {
                *items = found;
            }
        } else if self.take_word(&["values"]) {
            let found = self.tuples();
            if items.is_empty() && self.target.is_empty() {
                *items = found;
            }
        } else if self.take_word(&["where", "having", "set", "by", "on"]) {
            self.take_word(&["conflict"]);
            self.list(Guess::Nothing);
        } else if self.take_word(&["limit", "offset"]) {
            self.list(Guess::Is(Type::Int8));
        } else if self.take_word(&["into"]) {
            self.target();
        } else {
            self.at += 1;
        }
    }

    /// `(…)` where a table, a list of names or a query may stand.
    fn parenthesised(&mut self) {
        self.at += 1;
        self.body();
        self.take(TokenKind::Close);
    }

    /// The list behind SELECT or RETURNING. A parameter in the SELECT of an INSERT is of its
    /// column's type.
    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let qualified = self.kind(1) == Some(TokenKind::Dot) && self.bytes(2) == b"*";
            if self.take_operator(&["*"]) {
                items.push(Item::Star);
            } else if qualified {
                self.at += 3;
                items.push(Item::Star);
            } else {
                let target = self.target.get(items.len()).copied().flatten();
                let guess = self.expression(0);
                let guess = self.unify(guess, target.map_or(Guess::Nothing, Guess::Is));
                items.push(Item::Is(self.settled(guess)));
                self.alias();
            }
            if !self.take(TokenKind::Comma) {
                return items;
            }
        }
    }

    fn alias(&mut self) {
        self.take_word(&["as"]);
        let name =
            matches!(self.kind(0), Some(TokenKind::Word | TokenKind::Quoted | TokenKind::Text));
        if name && !self.is_word(0, ENDS) {
            self.at += 1;
        }
    }

    /// The rows behind VALUES; the first says what the result is.
    fn tuples(&mut self) -> Vec<Item> {
        let mut first = Vec::new();
        while self.take(TokenKind::Open) {
            let mut row = Vec::new();
            loop {
                let target = self.target.get(row.len()).copied().flatten();
                let guess = self.expression(0);
                let guess = self.unify(guess, target.map_or(Guess::Nothing, Guess::Is));
                row.push(Item::Is(self.settled(guess)));
                if !self.take(TokenKind::Comma) {
                    break;
                }
            }
            self.take(TokenKind::Close);
            if first.is_empty() {
                first = row;
            }
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        first
    }

    /// What stands behind INSERT INTO.
    fn target(&mut self) {
        let table = self.name();
        self.alias();
        let mut columns = Vec::new();
        if self.kind(0) == Some(TokenKind::Open) && !self.is_query(1) {
            self.at += 1;
            while self.kind(0).is_some() && !self.take(TokenKind::Close) {
                let name = plain_name(self.bytes(0));
                columns.push(self.tables.column(Some(&table), &name));
                self.at += 1;
                self.take(TokenKind::Comma);
            }
        } else {
            columns = self.tables.columns(&table);
        }
        self.target = columns;
    }

    /// A name, of which the last part counts.
    fn name(&mut self) -> String {
        if self.kind(1) == Some(TokenKind::Dot) {
            self.at += 2;
        }
        let name = plain_name(self.bytes(0));
        self.at += 1;
        name
    }

    /// Expressions with commas between them; parameters among them are `as_type`.
    fn list(&mut self, as_type: Guess) -> Vec<Guess> {
        let mut all = Vec::new();
        loop {
            let guess = self.expression(0);
            all.push(self.unify(guess, as_type));
            self.take_word(&["asc", "desc"]);
            if self.take_word(&["nulls"]) {
                self.at += 1;
            }
            if !self.take(TokenKind::Comma) {
                return all;
            }
        }
    }
}

#[cfg(test)]
mod tests;

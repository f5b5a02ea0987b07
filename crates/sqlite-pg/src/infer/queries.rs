//! Queries and expressions, each of which may hold the other: clauses, operators by precedence,
//! words and functions.

use refrain_sql::lex::TokenKind;

use crate::types::Type;

use super::reader::{Guess, TypeReader};
use super::tables::plain_name;
use super::{DEPTH_MAX, ENDS, Item};

/// Operators by precedence, the lowest first (SQLite's manual, "Operators, and Parse-Affecting
/// Attributes").
const COMPARES: &[&str] = &["=", "==", "<>", "!=", "<", "<=", ">", ">="];
const BITS: &[&str] = &["&", "|", "<<", ">>"];
const SUMS: &[&str] = &["+", "-"];
const PRODUCTS: &[&str] = &["*", "/", "%"];
const JOINS: &[&str] = &["||", "->", "->>"];

impl TypeReader<'_> {
    /// Reads a statement, or a query in parentheses, up to its end. Returns the columns of its
    /// result.
    pub(super) fn body(&mut self) -> Vec<Item> {
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

    /// Reads `(…)` where a table, a list of names or a query may stand.
    fn parenthesised(&mut self) {
        self.at += 1;
        self.body();
        self.take(TokenKind::Close);
    }

    /// Reads the list of SELECT or RETURNING. A parameter in the SELECT of an INSERT gets the type
    /// of its column.
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

    /// Reads the rows of VALUES. The first row gives the types of the result.
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

    /// Reads expressions with commas between them; parameters among them get the type `as_type`.
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

    /// Reads an expression of operators of precedence `level` or higher.
    fn expression(&mut self, level: usize) -> Guess {
        if self.depth >= DEPTH_MAX {
            self.at = self.tokens.len();
            return Guess::Nothing;
        }
        self.depth += 1;
        let guess = match level {
            0 => self.logic(&["or"], 1),
            1 => self.logic(&["and"], 2),
            2 if self.take_word(&["not"]) => {
                self.expression(2);
                Guess::Is(Type::Bool)
            }
            2 => self.comparison(),
            3 => self.arithmetic(BITS, 4),
            4 => self.arithmetic(SUMS, 5),
            5 => self.arithmetic(PRODUCTS, 6),
            6 => self.joined(),
            _ => self.unary(),
        };
        self.depth -= 1;
        guess
    }

    fn logic(&mut self, words: &[&str], next: usize) -> Guess {
        let mut guess = self.expression(next);
        while self.take_word(words) {
            self.expression(next);
            guess = Guess::Is(Type::Bool);
        }
        guess
    }

    /// Reads a comparison, whose result is a boolean.
    fn comparison(&mut self) -> Guess {
        let mut left = self.expression(3);
        loop {
            let before = self.at;
            let not = self.take_word(&["not"]);
            if self.take_operator(COMPARES) {
                let right = self.expression(3);
                self.unify(left, right);
            } else if self.take_word(&["is"]) {
                self.take_word(&["not"]);
                if self.take_word(&["distinct"]) {
                    self.take_word(&["from"]);
                }
                let right = self.expression(3);
                self.unify(left, right);
            } else if self.take_word(&["between"]) {
                let low = self.expression(3);
                self.unify(left, low);
                self.take_word(&["and"]);
                let high = self.expression(3);
                self.unify(left, high);
            } else if self.take_word(&["in"]) {
                self.within(left);
            } else if self.take_word(&["like", "glob", "match", "regexp"]) {
                self.unify(left, Guess::Is(Type::Text));
                let pattern = self.expression(3);
                self.unify(pattern, Guess::Is(Type::Text));
                if self.take_word(&["escape"]) {
                    self.expression(3);
                }
            } else {
                let null = self.take_word(&["isnull", "notnull"]);
                let null = null || not && self.take_word(&["null"]);
                if !null {
                    self.at = before;
                    return left;
                }
            }
            left = Guess::Is(Type::Bool);
        }
    }

    /// Reads the right side of IN.
    fn within(&mut self, left: Guess) {
        if !self.take(TokenKind::Open) {
            self.name();
            return;
        }
        if self.is_query(0) {
            let items = self.body();
            if let Some(Item::Is(Some(is))) = items.first() {
                self.unify(left, Guess::Is(*is));
            }
        } else if self.kind(0) != Some(TokenKind::Close) {
            for guess in self.list(left) {
                self.unify(left, guess);
            }
        }
        self.take(TokenKind::Close);
    }

    /// Reads arithmetic. The result is an integer if both operands are; a parameter gets the type
    /// of the other operand.
    fn arithmetic(&mut self, operators: &[&str], next: usize) -> Guess {
        let mut left = self.expression(next);
        while self.take_operator(operators) {
            let right = self.expression(next);
            let both = self.unify(left, right);
            let whole = |guess| matches!(guess, Guess::Is(is) if is.is_integer());
            let bits = operators == BITS;
            let parameter = |guess| matches!(guess, Guess::Parameter(_));
            let whole = whole(both)
                && (parameter(left) || whole(left))
                && (parameter(right) || whole(right));
            left = Guess::Is(if whole || bits { Type::Int8 } else { Type::Float8 });
        }
        left
    }

    fn joined(&mut self) -> Guess {
        let mut left = self.expression(7);
        loop {
            let json = self.bytes(0).starts_with(b"->");
            if !self.take_operator(JOINS) {
                return left;
            }
            let right = self.expression(7);
            if !json {
                self.unify(left, Guess::Is(Type::Text));
                self.unify(right, Guess::Is(Type::Text));
            }
            left = Guess::Is(Type::Text);
        }
    }

    fn unary(&mut self) -> Guess {
        if self.take_operator(&["+", "-", "~"]) {
            return self.expression(7);
        }
        let guess = self.primary();
        if self.take_word(&["collate"]) {
            self.at += 1;
        }
        guess
    }

    fn primary(&mut self) -> Guess {
        let Some(token) = self.peek() else { return Guess::Nothing };
        match token.kind {
            TokenKind::Close | TokenKind::Comma | TokenKind::Semicolon => return Guess::Nothing,
            TokenKind::Word if self.is_word(0, ENDS) => return Guess::Nothing,
            TokenKind::Word | TokenKind::Quoted => return self.word(),
            _ => self.at += 1,
        }
        match token.kind {
            TokenKind::Integer => Guess::Is(Type::Int8),
            TokenKind::Decimal => Guess::Is(Type::Float8),
            TokenKind::Text => Guess::Is(Type::Text),
            TokenKind::BitText => Guess::Is(Type::Bytea),
            TokenKind::Parameter => self.parameter(token),
            TokenKind::Open => self.parentheses(),
            _ => Guess::Nothing,
        }
    }

    /// Reads the rest of an expression in parentheses. The type is that of a query's first column,
    /// or of the only expression in a list.
    fn parentheses(&mut self) -> Guess {
        let guess = if self.is_query(0) {
            match self.body().first() {
                Some(Item::Is(Some(is))) => Guess::Is(*is),
                _ => Guess::Nothing,
            }
        } else {
            match self.list(Guess::Nothing)[..] {
                [only] => only,
                _ => Guess::Nothing,
            }
        };
        self.take(TokenKind::Close);
        guess
    }

    /// Reads a key word, a function or a column.
    fn word(&mut self) -> Guess {
        if self.take_word(&["null"]) {
            Guess::Nothing
        } else if self.take_word(&["true", "false"]) {
            Guess::Is(Type::Bool)
        } else if self.take_word(&["current_timestamp"]) {
            Guess::Is(Type::Timestamptz)
        } else if self.take_word(&["current_date"]) {
            Guess::Is(Type::Date)
        } else if self.take_word(&["current_time"]) {
            Guess::Is(Type::Time)
        } else if self.take_word(&["case"]) {
            self.case()
        } else if self.is_word(0, &["cast"]) && self.kind(1) == Some(TokenKind::Open) {
            self.cast()
        } else if self.is_word(0, &["exists"]) && self.kind(1) == Some(TokenKind::Open) {
            self.at += 2;
            self.body();
            self.take(TokenKind::Close);
            Guess::Is(Type::Bool)
        } else if self.kind(1) == Some(TokenKind::Open) {
            self.function()
        } else {
            self.column()
        }
    }

    fn column(&mut self) -> Guess {
        let mut qualifier = None;
        let mut name = plain_name(self.bytes(0));
        self.at += 1;
        while self.take(TokenKind::Dot) {
            qualifier = Some(std::mem::replace(&mut name, plain_name(self.bytes(0))));
            self.at += 1;
            if self.kind(0) == Some(TokenKind::Open) {
                self.at -= 1; // `pg_catalog.f(…)`
                return self.function();
            }
        }
        self.tables.column(qualifier.as_deref(), &name).map_or(Guess::Nothing, Guess::Is)
    }

    fn case(&mut self) -> Guess {
        let base = if self.is_word(0, &["when"]) { Guess::Nothing } else { self.expression(0) };
        let mut all = Guess::Nothing;
        while self.take_word(&["when"]) {
            let condition = self.expression(0);
            self.unify(base, condition);
            self.take_word(&["then"]);
            let result = self.expression(0);
            all = self.unify(all, result);
        }
        if self.take_word(&["else"]) {
            let result = self.expression(0);
            all = self.unify(all, result);
        }
        self.take_word(&["end"]);
        all
    }

    fn cast(&mut self) -> Guess {
        self.at += 2;
        let inner = self.expression(0);
        self.take_word(&["as"]);
        let name = self.type_name();
        self.take(TokenKind::Close);
        let name = name.trim();
        // A parameter may have any type of PostgreSQL's; the result has a type of SQLite's CAST.
        let wire = Type::named(name).unwrap_or_else(|| Type::declared(name));
        if let Guess::Parameter(_) = inner {
            self.unify(inner, Guess::Is(wire));
        }
        Guess::Is(Type::declared(name))
    }

    fn function(&mut self) -> Guess {
        let name = plain_name(self.bytes(0));
        self.at += 2;
        self.take_word(&["distinct"]);
        let star = self.take_operator(&["*"]);
        let empty = star || self.kind(0) == Some(TokenKind::Close);
        let arguments = if empty { Vec::new() } else { self.list(Guess::Nothing) };
        if self.take_word(&["order"]) {
            self.take_word(&["by"]);
            self.list(Guess::Nothing);
        }
        self.take(TokenKind::Close);
        self.tail();
        self.yielded(&name, &arguments)
    }

    /// Reads FILTER and OVER after a function.
    fn tail(&mut self) {
        while self.take_word(&["filter", "over"]) {
            if self.take(TokenKind::Open) {
                self.body();
                self.take(TokenKind::Close);
            } else {
                self.at += 1;
            }
        }
    }
}

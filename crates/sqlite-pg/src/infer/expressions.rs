//! Expressions: operators by precedence, and what their sides are.

use refrain_sql::lex::{Token, TokenKind};

use crate::types::Type;

use super::{DEPTH_MAX, ENDS, Guess, Item, TypeReader};

/// Operators by how tightly they bind (SQLite's manual, "Operators, and Parse-Affecting
/// Attributes").
const COMPARES: &[&str] = &["=", "==", "<>", "!=", "<", "<=", ">", ">="];
const BITS: &[&str] = &["&", "|", "<<", ">>"];
const SUMS: &[&str] = &["+", "-"];
const PRODUCTS: &[&str] = &["*", "/", "%"];
const JOINS: &[&str] = &["||", "->", "->>"];

impl TypeReader<'_> {
    /// Makes a parameter on either side what the other side is.
    pub(super) fn unify(&mut self, left: Guess, right: Guess) -> Guess {
        match (left, right) {
            (Guess::Parameter(number), Guess::Is(is))
            | (Guess::Is(is), Guess::Parameter(number)) => {
                if let Some(parameter) = self.parameters.get_mut(number) {
                    parameter.get_or_insert(is);
                }
                Guess::Is(is)
            }
            (Guess::Nothing, other) => other,
            (left, _) => left,
        }
    }

    /// The type of an expression, if it has one by now.
    pub(super) fn settled(&self, guess: Guess) -> Option<Type> {
        match guess {
            Guess::Is(is) => Some(is),
            Guess::Parameter(number) => self.parameters.get(number).copied().flatten(),
            Guess::Nothing => None,
        }
    }

    /// An expression of operators that bind at least as tightly as those of `level`.
    pub(super) fn expression(&mut self, level: usize) -> Guess {
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

    pub(super) fn logic(&mut self, words: &[&str], next: usize) -> Guess {
        let mut guess = self.expression(next);
        while self.take_word(words) {
            self.expression(next);
            guess = Guess::Is(Type::Bool);
        }
        guess
    }

    /// Comparisons yield a truth, whatever is compared.
    pub(super) fn comparison(&mut self) -> Guess {
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

    /// What stands behind IN.
    pub(super) fn within(&mut self, left: Guess) {
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

    /// Whole numbers only where both sides are; a parameter is what the other side is.
    pub(super) fn arithmetic(&mut self, operators: &[&str], next: usize) -> Guess {
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

    pub(super) fn joined(&mut self) -> Guess {
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

    pub(super) fn unary(&mut self) -> Guess {
        if self.take_operator(&["+", "-", "~"]) {
            return self.expression(7);
        }
        let guess = self.primary();
        if self.take_word(&["collate"]) {
            self.at += 1;
        }
        guess
    }

    pub(super) fn primary(&mut self) -> Guess {
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

    pub(super) fn parameter(&mut self, token: Token) -> Guess {
        let digits = token.of(self.text).get(1..).unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let in_range = |number: &usize| (1..=crate::text::PARAMETERS_MAX).contains(number);
        let Some(number) = number.filter(in_range).map(|number| number - 1) else {
            return Guess::Nothing;
        };
        if self.parameters.len() <= number {
            self.parameters.resize(number + 1, None);
        }
        if self.take(TokenKind::Cast) {
            let cast = Type::named(&String::from_utf8_lossy(self.bytes(0)));
            self.type_name();
            let guess = cast.map_or(Guess::Nothing, Guess::Is);
            return self.unify(guess, Guess::Parameter(number));
        }
        match self.parameters[number] {
            Some(is) => Guess::Is(is),
            None => Guess::Parameter(number),
        }
    }

    /// Passes the name of a type.
    pub(super) fn type_name(&mut self) -> String {
        let mut name = String::new();
        while self.kind(0) == Some(TokenKind::Word) && !self.is_word(0, ENDS) {
            name.push_str(&String::from_utf8_lossy(self.bytes(0)));
            name.push(' ');
            self.at += 1;
        }
        if self.take(TokenKind::Open) {
            while self.kind(0).is_some() && !self.take(TokenKind::Close) {
                self.at += 1;
            }
        }
        name
    }

    /// An open parenthesis has been taken: a query's first column, or the only one of a list.
    pub(super) fn parentheses(&mut self) -> Guess {
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
}

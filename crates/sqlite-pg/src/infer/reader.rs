//! The reader of a text: its tokens, its place, and the types of parameters that it has found.

use refrain_sql::lex::{Token, TokenKind};

use crate::types::Type;

use super::ENDS;
use super::tables::{NamedTables, plain_name};

/// The type of an expression, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    Is(Type),
    /// A parameter without a type so far. The number counts from 0.
    Parameter(usize),
    Nothing,
}

/// A position in a text, and the types that are known there.
pub(super) struct TypeReader<'a> {
    pub(super) text: &'a [u8],
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) tables: NamedTables<'a>,
    pub(super) parameters: Vec<Option<Type>>,
    /// The types of the columns that an INSERT fills.
    pub(super) target: Vec<Option<Type>>,
}

impl TypeReader<'_> {
    pub(super) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    pub(super) fn bytes(&self, ahead: usize) -> &[u8] {
        self.tokens.get(self.at + ahead).map_or(b"", |token| token.of(self.text))
    }

    pub(super) fn is_word(&self, ahead: usize, words: &[&str]) -> bool {
        self.kind(ahead) == Some(TokenKind::Word)
            && words.iter().any(|word| self.bytes(ahead).eq_ignore_ascii_case(word.as_bytes()))
    }

    pub(super) fn take_word(&mut self, words: &[&str]) -> bool {
        let found = self.is_word(0, words);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.kind(0) == Some(kind);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_operator(&mut self, operators: &[&str]) -> bool {
        let found = self.kind(0) == Some(TokenKind::Operator)
            && operators.iter().any(|operator| self.bytes(0) == operator.as_bytes());
        self.at += usize::from(found);
        found
    }

    pub(super) fn is_query(&self, ahead: usize) -> bool {
        self.is_word(ahead, &["select", "values", "with"])
    }

    pub(super) fn alias(&mut self) {
        self.take_word(&["as"]);
        let name =
            matches!(self.kind(0), Some(TokenKind::Word | TokenKind::Quoted | TokenKind::Text));
        if name && !self.is_word(0, ENDS) {
            self.at += 1;
        }
    }

    /// Reads a name, and returns its last part.
    pub(super) fn name(&mut self) -> String {
        if self.kind(1) == Some(TokenKind::Dot) {
            self.at += 2;
        }
        let name = plain_name(self.bytes(0));
        self.at += 1;
        name
    }

    /// Reads the target of INSERT INTO.
    pub(super) fn target(&mut self) {
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

    /// Gives a parameter on either side the type of the other side.
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

    /// Returns the type of an expression, if it is known by now.
    pub(super) fn settled(&self, guess: Guess) -> Option<Type> {
        match guess {
            Guess::Is(is) => Some(is),
            Guess::Parameter(number) => self.parameters.get(number).copied().flatten(),
            Guess::Nothing => None,
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

    /// Reads the name of a type.
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
}

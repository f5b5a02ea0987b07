//! Lookahead within one statement.
//!
//! What: [`Ahead`] reads the tokens of a statement from a place on, without blanks and comments, up
//! to its semicolon, and tries the steps of a rule on them.
//!
//! What always holds: it works on its own copy of the lexer, so looking ahead never moves the
//! reader. It never reads past the first semicolon, not even one in parentheses, so the time is
//! linear in the length of the statement.

use crate::lex::{Lexer, Token, TokenKind};
use crate::name::{Name, unquoted};
use crate::rules::{Step, is_word};

/// The tokens of a statement from a place on, with the next one at hand.
#[derive(Clone)]
pub(crate) struct Ahead<'a> {
    lexer: Lexer<'a>,
    next: Option<Token>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(lexer: &Lexer<'a>) -> Self {
        let mut lexer = lexer.clone();
        let next = lexer.significant().filter(|token| token.kind != TokenKind::Semicolon);
        Ahead { lexer, next }
    }

    /// Returns the next token; `None` at the end of the statement.
    pub(crate) fn peek(&self) -> Option<Token> {
        self.next
    }

    /// Takes the next token. At the end of the statement, the position stays there.
    pub(crate) fn take(&mut self) -> Option<Token> {
        let token = self.next?;
        self.next = self.lexer.significant().filter(|token| token.kind != TokenKind::Semicolon);
        Some(token)
    }

    /// Returns the lexer, which stands just past the next token.
    pub(crate) fn lexer(&self) -> &Lexer<'a> {
        &self.lexer
    }

    /// Returns the bytes of a token.
    pub(crate) fn of(&self, token: Token) -> &'a [u8] {
        token.of(self.lexer.text())
    }

    /// True if the next token is of this kind.
    pub(crate) fn at(&self, kind: TokenKind) -> bool {
        self.next.is_some_and(|token| token.kind == kind)
    }

    /// True if the next token is one of these key words.
    pub(crate) fn at_word(&self, words: &[&str]) -> bool {
        self.next.is_some_and(|token| self.is_word(token, words))
    }

    /// Takes the next token if it is one of these key words.
    pub(crate) fn take_word(&mut self, words: &[&str]) -> bool {
        let found = self.at_word(words);
        if found {
            self.take();
        }
        found
    }

    /// Takes the next token if it is a name that can be read: not `U&"…"`.
    pub(crate) fn take_name(&mut self) -> Option<Token> {
        self.next.filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted))?;
        self.take()
    }

    fn is_word(&self, token: Token, words: &[&str]) -> bool {
        let text = self.of(token);
        token.kind == TokenKind::Word && words.iter().any(|word| is_word(text, word))
    }

    /// Walks all the steps. [`Step::Name`] sets `name`. Returns `None` if the steps do not fit.
    pub(crate) fn walk(&mut self, steps: &[Step], name: &mut Option<Name>) -> Option<()> {
        steps.iter().try_for_each(|step| self.step(step, name))
    }

    fn step(&mut self, step: &Step, name: &mut Option<Name>) -> Option<()> {
        let fits = match step {
            Step::Word(words) => self.take_word(words),
            Step::Opt(words) => {
                self.take_word(words);
                true
            }
            Step::Skip(words) => {
                while self.take_word(words) {}
                true
            }
            Step::OptParens => {
                self.skip_parens();
                true
            }
            Step::Find(places) => self.find(places),
            Step::Schema(prefix) => self.find_schema(prefix),
            Step::Star => self.take().is_some_and(|token| self.of(token) == b"*"),
            Step::Text => self.take().is_some_and(|token| token.kind.is_text()),
            Step::Name => {
                let token = self.take_name()?;
                *name = Some(Name { start: token.start, end: token.end });
                true
            }
            Step::End => self.next.is_none(),
            Step::Arguments => {
                self.next.is_none() || self.at(TokenKind::Open) || self.at_word(&["with"])
            }
        };
        fits.then_some(())
    }

    /// Skips `( … )` if that is next.
    fn skip_parens(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.next {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth = depth.saturating_sub(1),
                _ if depth == 0 => return,
                _ => {}
            }
            self.take();
            if depth == 0 {
                return;
            }
        }
    }

    /// Takes all tokens up to and including the first place, outside parentheses, where these key
    /// words stand side by side.
    fn find(&mut self, places: &[&[&str]]) -> bool {
        let mut depth = 0_usize;
        let mut matched = 0;
        while let Some(token) = self.take() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            let fits = |at: usize| depth == 0 && self.is_word(token, places[at]);
            // No word occurs twice in a row, so a failed match can only begin again.
            matched = if fits(matched) { matched + 1 } else { usize::from(fits(0)) };
            if matched == places.len() {
                return true;
            }
        }
        false
    }

    /// Takes all tokens up to the first name with this prefix and a dot after it.
    fn find_schema(&mut self, prefix: &str) -> bool {
        while self.next.is_some() {
            if self.take_schema(prefix) {
                return true;
            }
        }
        false
    }

    /// Takes the next token. Returns true if it is a name with this prefix and a dot after it.
    pub(crate) fn take_schema(&mut self, prefix: &str) -> bool {
        let Some(token) = self.take() else { return false };
        let written = self.of(token);
        let name = unquoted(written).unwrap_or(written);
        let start = name.get(..prefix.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(prefix.as_bytes()) && self.at(TokenKind::Dot)
    }
}

//! Reads a command token by token.

use refrain_sql::Name;
use refrain_sql::lex::{Lexer, Token, TokenKind};

/// The tokens of one statement, with a look at the next one. The statement ends at a semicolon or
/// at the end of the text.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    lexer: Lexer<'a>,
    next: Option<Token>,
}

impl<'a> Tokens<'a> {
    /// Begins at the start of `text`.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut tokens = Self { lexer: Lexer::new(text, false), next: None };
        tokens.advance();
        tokens
    }

    fn advance(&mut self) {
        let before = self.lexer.clone();
        self.next = self.lexer.significant();
        if self.kind() == Some(TokenKind::Semicolon) {
            self.next = None;
            self.lexer = before;
        }
    }

    /// Returns the kind of the next token; `None` at the end.
    pub(crate) fn kind(&self) -> Option<TokenKind> {
        self.next.map(|token| token.kind)
    }

    /// Returns the next token without taking it.
    pub(crate) fn peek(&self) -> Option<Token> {
        self.next
    }

    /// Returns the bytes of the next token.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.next.map_or(b"", |token| token.of(self.lexer.text()))
    }

    /// True at the end of the statement.
    pub(crate) fn is_end(&self) -> bool {
        self.next.is_none()
    }

    /// Returns the position behind the statement and its semicolon. The caller has taken all
    /// tokens.
    pub(crate) fn end(&self) -> usize {
        let mut lexer = self.lexer.clone();
        match lexer.significant() {
            Some(token) if token.kind == TokenKind::Semicolon => token.end as usize,
            _ => self.lexer.text().len(),
        }
    }

    /// Takes the next token.
    pub(crate) fn take(&mut self) -> Option<Token> {
        let token = self.next?;
        self.advance();
        Some(token)
    }

    /// Takes the rest of the tokens.
    pub(crate) fn skip(&mut self) {
        while self.take().is_some() {}
    }

    /// True if the next token is one of these key words.
    pub(crate) fn at_word(&self, words: &[&str]) -> bool {
        self.kind() == Some(TokenKind::Word)
            && words.iter().any(|word| self.bytes().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Takes the next token if it is one of these key words.
    pub(crate) fn take_word(&mut self, words: &[&str]) -> bool {
        let found = self.at_word(words);
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next tokens if they are these key words.
    pub(crate) fn take_words(&mut self, words: &[&str]) -> bool {
        let before = self.clone();
        let found = words.iter().all(|word| self.take_word(&[word]));
        if !found {
            *self = before;
        }
        found
    }

    /// Takes the next token if it is of this kind.
    pub(crate) fn take_kind(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == Some(kind);
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next token if it is this operator.
    pub(crate) fn take_operator(&mut self, operator: &str) -> bool {
        let found = self.kind() == Some(TokenKind::Operator) && self.bytes() == operator.as_bytes();
        if found {
            self.advance();
        }
        found
    }

    /// Takes a name, folded as in PostgreSQL.
    pub(crate) fn take_name(&mut self) -> Option<String> {
        let token = self.next?;
        if !matches!(token.kind, TokenKind::Word | TokenKind::Quoted) {
            return None;
        }
        let name = Name { start: token.start, end: token.end }.fold(self.lexer.text());
        let name = String::from_utf8_lossy(&name).into_owned();
        self.advance();
        Some(name)
    }

    /// Takes a name with dots in it.
    pub(crate) fn take_dotted(&mut self) -> Option<String> {
        let mut name = self.take_name()?;
        while self.take_kind(TokenKind::Dot) {
            name.push('.');
            name.push_str(&self.take_name()?);
        }
        Some(name)
    }

    /// Takes a string constant, and returns its value.
    pub(crate) fn take_text(&mut self) -> Option<String> {
        let written = std::str::from_utf8(self.bytes()).ok()?;
        let value = match self.kind()? {
            TokenKind::Text => unquoted(written)?.replace("''", "'"),
            TokenKind::EscapeText => unescaped(unquoted(written.get(1..)?)?)?,
            _ => return None,
        };
        self.advance();
        Some(value)
    }
}

fn unquoted(written: &str) -> Option<&str> {
    written.strip_prefix('\'')?.strip_suffix('\'')
}

/// Replaces the escapes of `E'…'`, as far as they are unambiguous without an encoding.
pub(crate) fn unescaped(inside: &str) -> Option<String> {
    let mut value = String::with_capacity(inside.len());
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                letters.next();
                value.push('\'');
            }
            '\\' => value.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\x08',
                'f' => '\x0c',
                '0'..='9' | 'x' | 'u' | 'U' => return None,
                other => other,
            }),
            other => value.push(other),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_word_by_word() {
        let text = b"SET \"My\".Name = E'a\\\\b''c' ; next";
        let mut tokens = Tokens::new(text);
        assert!(tokens.take_word(&["set"]));
        assert_eq!(tokens.take_dotted().unwrap(), "My.name");
        assert!(tokens.take_operator("="));
        assert_eq!(tokens.take_text().unwrap(), "a\\b'c");
        assert!(tokens.is_end());
        assert_eq!(&text[tokens.end()..], b" next");
    }
}

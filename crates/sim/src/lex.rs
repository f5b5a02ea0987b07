//! Tokens of the tiny language.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word or number in lower case, dots included.
    Word(String),
    /// A string constant.
    Text(String),
    /// A name in double quotes.
    Quoted(String),
    /// `$1`
    Param(usize),
    /// Any other character.
    Sign(char),
}

/// Splits a text into tokens, without blanks and comments.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        let next = rest.peek().copied();
        match first {
            c if c.is_ascii_whitespace() => {}
            '/' if next == Some('*') => while rest.next_if(|c| *c != '/').is_some() {},
            '/' => {}
            '\'' => found.push(Token::Text(quoted(&mut rest, '\'', false))),
            'E' | 'e' if next == Some('\'') => {
                rest.next();
                found.push(Token::Text(quoted(&mut rest, '\'', true)));
            }
            '"' => found.push(Token::Quoted(quoted(&mut rest, '"', false))),
            '$' => {
                let digits = word(String::new(), &mut rest);
                found.push(Token::Param(digits.parse().unwrap_or(0)));
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                found.push(Token::Word(word(c.to_string(), &mut rest).to_ascii_lowercase()));
            }
            c => found.push(Token::Sign(c)),
        }
    }
    found
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn word(mut word: String, rest: &mut Rest<'_>) -> String {
    while let Some(next) = rest.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
        word.push(next);
    }
    word
}

fn quoted(rest: &mut Rest<'_>, quote: char, escapes: bool) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == quote && rest.next_if_eq(&quote).is_none() {
            break;
        }
        if c == '\\' && escapes {
            text.extend(rest.next());
        } else {
            text.push(c);
        }
    }
    text
}

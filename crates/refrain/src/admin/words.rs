//! Words of the console's commands.

use crate::console::Refusal;

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    quoted: bool,
}

impl Word {
    /// Returns this keyword and the next one as one, with a blank between them.
    pub(super) fn and(&self, next: &Self) -> Self {
        Self { text: format!("{} {}", self.text, next.text), quoted: self.quoted || next.quoted }
    }

    /// True if it is this keyword, in upper or lower case. A quoted word is a name and never a
    /// keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// Returns the rest of a text that begins with these keywords.
pub(super) fn behind<'a>(text: &'a str, keywords: &[&str]) -> Option<&'a str> {
    keywords.iter().try_fold(text, |rest, keyword| {
        let (word, rest) = rest.trim_start().split_at_checked(keyword.len())?;
        let ends = rest.chars().next().is_none_or(char::is_whitespace);
        (ends && word.eq_ignore_ascii_case(keyword)).then_some(rest)
    })
}

/// Splits a command into words. `;` at the end is ignored, and `=` is a word of its own.
///
/// # Errors
/// If there is more than one command, or a quote has no end.
pub(super) fn split(query: &str) -> Result<Vec<Word>, Refusal> {
    let mut words = Vec::new();
    let mut rest = query.trim_start();
    let mut ended = false;
    while let Some(first) = rest.chars().next() {
        if first == ';' {
            ended = true;
            rest = &rest[1..];
        } else if ended {
            return Err(Refusal::new("42601", "one command at a time, please"));
        } else {
            let (word, after) = next_word(rest, first).ok_or_else(|| Refusal::syntax(query))?;
            words.push(word);
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok(words)
}

fn next_word(text: &str, first: char) -> Option<(Word, &str)> {
    match first {
        '"' | '\'' => {
            let mut word = String::new();
            let mut rest = &text[1..];
            loop {
                let (before, after) = rest.split_once(first)?;
                word += before;
                rest = after;
                let Some(doubled) = rest.strip_prefix(first) else { break };
                word.push(first);
                rest = doubled;
            }
            Some((Word { text: word, quoted: true }, rest))
        }
        '=' => Some((Word { text: "=".to_owned(), quoted: false }, &text[1..])),
        _ => {
            let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '=' | '"' | '\'');
            let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
            Some((Word { text: word.to_owned(), quoted: false }, rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(query: &str) -> Vec<String> {
        split(query).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn commands_are_split_into_words() {
        assert_eq!(texts(" SHOW  pools ; "), ["SHOW", "pools"]);
        assert_eq!(texts("set x='a ''b'"), ["set", "x", "=", "a 'b"]);
        assert_eq!(texts("PAUSE \"my;\"\"db\""), ["PAUSE", "my;\"db"]);
        assert_eq!(texts("pause my-db;;"), ["pause", "my-db"]);
        assert!(texts(" ;; ").is_empty());
        assert!(split("show pools; show stats").is_err());
        assert!(split("pause \"db").is_err());
    }

    #[test]
    fn what_follows_keywords_is_left_as_it_is() {
        let behind = |text| behind(text, &["explain", "autoprepare"]);
        assert_eq!(behind("Explain\n AUTOPREPARE select 'é;"), Some(" select 'é;"));
        assert_eq!(behind("explain autoprepare"), Some(""));
        assert_eq!(behind("explain autoprepared x"), None);
        assert_eq!(behind("explain é"), None);
    }

    #[test]
    fn a_quoted_word_is_no_keyword() {
        assert!(split("show").unwrap()[0].is("SHOW"));
        assert!(!split("\"show\"").unwrap()[0].is("SHOW"));
    }
}

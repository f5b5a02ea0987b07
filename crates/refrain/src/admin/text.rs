//! Texts of the console: splits commands into words, and makes messages.

use refrain_wire::back::field;
use refrain_wire::tag::back;
use refrain_wire::write::{self, Report};

/// The error with which a command is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    sqlstate: &'static str,
    message: String,
}

impl Refusal {
    pub(super) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    /// Makes error 42601, `syntax_error`.
    pub(super) fn syntax(command: &str) -> Self {
        Self::new("42601", format!("invalid command '{command}', use SHOW HELP;"))
    }

    /// Makes error 42601 with the command that was probably meant, if there is one.
    pub(super) fn meant(command: &str, meant: Option<String>) -> Self {
        let Some(meant) = meant else { return Self::syntax(command) };
        let meant = meant.trim().to_uppercase();
        Self::new("42601", format!("invalid command '{command}'; did you mean {meant}?"))
    }

    /// Makes error 42501, `insufficient_privilege`.
    pub(super) fn not_allowed() -> Self {
        Self::new("42501", "admin access needed")
    }

    /// Makes error 3D000, `invalid_catalog_name`, with the database that was probably meant.
    pub(super) fn no_database(name: &str, meant: Option<&str>) -> Self {
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Self::new("3D000", format!("no such database: {name}{meant}"))
    }

    /// Makes error 57014, `query_canceled`.
    pub(super) fn undone() -> Self {
        Self::new("57014", "the database was resumed meanwhile")
    }

    /// Returns the ErrorResponse.
    pub(super) fn reply(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Self { sqlstate, message } = self;
        write::error(&mut out, &Report { severity: "ERROR", sqlstate, message, hint: "" });
        out
    }
}

/// Returns a CommandComplete.
pub(super) fn done(tag: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::command_complete(&mut out, tag.as_bytes());
    out
}

/// Returns an EmptyQueryResponse.
pub(super) fn empty() -> Vec<u8> {
    let mut out = Vec::new();
    write::bare(&mut out, back::EMPTY_QUERY_RESPONSE);
    out
}

/// Appends a NoticeResponse with a detail.
pub(super) fn notice(out: &mut Vec<u8>, text: &str, detail: &str) {
    let fields = [
        (field::SEVERITY, "NOTICE"),
        (field::SEVERITY_PLAIN, "NOTICE"),
        (field::SQLSTATE, "00000"),
        (field::MESSAGE, text),
        (field::DETAIL, detail),
    ];
    write::message(out, back::NOTICE_RESPONSE, |out| {
        for (code, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            out.push(*code);
            write::string(out, value.as_bytes());
        }
        out.push(0);
    });
}

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
pub(super) fn words(query: &str) -> Result<Vec<Word>, Refusal> {
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
        words(query).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn commands_are_split_into_words() {
        assert_eq!(texts(" SHOW  pools ; "), ["SHOW", "pools"]);
        assert_eq!(texts("set x='a ''b'"), ["set", "x", "=", "a 'b"]);
        assert_eq!(texts("PAUSE \"my;\"\"db\""), ["PAUSE", "my;\"db"]);
        assert_eq!(texts("pause my-db;;"), ["pause", "my-db"]);
        assert!(texts(" ;; ").is_empty());
        assert!(words("show pools; show stats").is_err());
        assert!(words("pause \"db").is_err());
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
    fn a_refusal_says_what_was_probably_meant() {
        let message = |refusal: Refusal| refusal.message;
        let meant = Refusal::meant("show x", Some("show mem ".to_owned()));
        assert_eq!(message(meant), "invalid command 'show x'; did you mean SHOW MEM?");
        assert_eq!(message(Refusal::meant("x", None)), "invalid command 'x', use SHOW HELP;");
        let database = Refusal::no_database("shpo", Some("shop"));
        assert_eq!(message(database), "no such database: shpo; did you mean shop?");
        assert_eq!(message(Refusal::no_database("x", None)), "no such database: x");
    }

    #[test]
    fn a_quoted_word_is_no_keyword() {
        assert!(words("show").unwrap()[0].is("SHOW"));
        assert!(!words("\"show\"").unwrap()[0].is("SHOW"));
    }
}

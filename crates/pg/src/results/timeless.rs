//! Words in the text of a read that make its result depend on the time or on the session.
//!
//! A read may show the present: a prepared statement may, a reply that is kept may not. The catalog
//! says which functions do ([`crate::reads`]); some words do so without a function.

use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sql::moments::names_moment;

/// Words that stand for the present time, for the session or for a place in the table.
const PRESENT: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
    "system_user",
    "tablesample",
    "ctid",
    "xmin",
    "xmax",
    "cmin",
    "cmax",
];

/// Whether no word of a text shows the present. Its strings count if `strings` says so: those of a
/// query string are looked at each time.
pub(crate) fn is_timeless(text: &[u8], strings: bool) -> bool {
    let mut lexer = Lexer::new(text, false);
    while let Some(token) = lexer.significant() {
        let word = token.of(text);
        let shows = match token.kind {
            TokenKind::Word => {
                PRESENT.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
            }
            kind => kind.is_text() && strings && names_moment(word),
        };
        if shows {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_the_time_or_the_session_is_not_timeless() {
        for text in ["select a from t where b = $1 and c = 'x'", "select \"user\" from t"] {
            assert!(is_timeless(text.as_bytes(), true), "{text}");
        }
        for text in ["select current_date", "select * from t where d = 'today'", "select USER"] {
            assert!(!is_timeless(text.as_bytes(), true), "{text}");
        }
        assert!(is_timeless(b"select 'today'", false));
    }
}

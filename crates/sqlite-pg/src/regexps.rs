//! Regular expressions of PostgreSQL, as far as they mean the same to the crate `regex`.

use std::cell::RefCell;

use hashlink::LruCache;
use regex::{Regex, RegexBuilder};

use crate::failure::Failure;

/// The most expressions that a thread keeps compiled.
const KEPT_MAX: usize = 64;
/// The most memory of a compiled expression.
const SIZE_MAX: usize = 1 << 20;

thread_local! {
    static KEPT: RefCell<LruCache<(String, bool), Regex>> = RefCell::new(LruCache::new(KEPT_MAX));
}

/// True if a part of the text matches; `fold` ignores case.
///
/// # Errors
/// 0A000 for an expression that is not supported.
pub(crate) fn is_match(text: &str, pattern: &str, fold: bool) -> Result<bool, Failure> {
    KEPT.with_borrow_mut(|kept| {
        let key = (pattern.to_owned(), fold);
        if let Some(known) = kept.get(&key) {
            return Ok(known.is_match(text));
        }
        let compiled = compile(pattern, fold).ok_or_else(|| refused(pattern))?;
        let is = compiled.is_match(text);
        kept.insert(key, compiled);
        Ok(is)
    })
}

fn refused(pattern: &str) -> Failure {
    let message = format!("this regular expression is not supported: {pattern}");
    Failure::unsupported(message).hint("write it without back references, constraints and options")
}

fn compile(pattern: &str, fold: bool) -> Option<Regex> {
    let mut builder = RegexBuilder::new(&translated(pattern)?);
    // In PostgreSQL a dot matches a newline too.
    builder.case_insensitive(fold).dot_matches_new_line(true).size_limit(SIZE_MAX);
    builder.build().ok()
}

/// Writes an expression in the syntax of `regex`; `None` for what that does not have, or has with
/// another meaning.
fn translated(pattern: &str) -> Option<String> {
    let mut letters = pattern.chars().peekable();
    let mut out = String::new();
    let mut bracket = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push_str(&escape(letters.next()?, bracket)?),
            // A class within brackets: [:alpha:]. Other brackets there mean themselves.
            '[' if bracket && letters.peek() == Some(&':') => {
                out.push('[');
                for inside in letters.by_ref() {
                    out.push(inside);
                    if inside == ']' {
                        break;
                    }
                }
            }
            '[' if bracket => out.push_str("\\["),
            '[' => {
                bracket = true;
                out.push('[');
                if let Some(not) = letters.next_if_eq(&'^') {
                    out.push(not);
                }
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if bracket => {
                bracket = false;
                out.push(']');
            }
            // `regex` has operations on sets of letters.
            '&' | '~' if bracket => out.extend(['\\', letter]),
            '-' if bracket && letters.peek() == Some(&'-') => return None,
            '(' if !bracket && letters.next_if_eq(&'?').is_some() => {
                letters.next_if_eq(&':')?;
                out.push_str("(?:");
            }
            '*' if out.is_empty() => return None,
            letter => out.push(letter),
        }
    }
    (!bracket).then_some(out)
}

fn escape(letter: char, bracket: bool) -> Option<String> {
    let class = |plain: &str| Some(if bracket { plain.to_owned() } else { format!("[{plain}]") });
    match letter {
        'd' => class("0-9"),
        'w' => class("0-9A-Za-z_"),
        's' => class(" \\t\\n\\r\\x0b\\x0c"),
        'D' | 'W' | 'S' if bracket => None,
        'D' => Some("[^0-9]".to_owned()),
        'W' => Some("[^0-9A-Za-z_]".to_owned()),
        'S' => Some("[^ \\t\\n\\r\\x0b\\x0c]".to_owned()),
        'n' | 't' | 'r' => Some(format!("\\{letter}")),
        letter if letter.is_alphanumeric() => None,
        letter => Some(regex::escape(&letter.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_to_the_server() {
        for (text, pattern, is) in [
            ("table", "^(t.*)$", true),
            ("tables", "^(table)$", false),
            ("pg_toast", "^pg_toast", true),
            ("ab", "a|c", true),
            ("a]b", "[]x]", true),
            ("a[b", "[[x]", true),
            ("x&y", "[&]", true),
            ("7", "^\\d$", true),
            ("a.c", "a\\.c", true),
            ("abc", "a\\.c", false),
            ("a\nb", "a.b", true),
            ("b1", "^[[:alpha:]][[:digit:]]$", true),
        ] {
            assert_eq!(is_match(text, pattern, false), Ok(is), "{text} {pattern}");
        }
        // Patterns of psql.
        for (pattern, text, is) in [
            ("t", "t", true),
            ("t", "tt", false),
            ("t.*", "table", true),
            (".*b.*e", "table", true),
            ("a.c", "abc", true),
            ("a\\.c", "abc", false),
            (".*x", "abc", false),
            ("", "", true),
        ] {
            let pattern = format!("^({pattern})$");
            assert_eq!(is_match(text, &pattern, false), Ok(is), "{text} {pattern}");
        }
        let long = format!("^({})$", ".*a".repeat(500));
        assert_eq!(is_match(&("a".repeat(5000) + "b"), &long, false), Ok(false));
        assert_eq!(is_match("ABC", "b", true), Ok(true));
        for pattern in ["(a)\\1", "a(?=b)", "\\ya", "(?i)a", "***=a", "[a--b]", "("] {
            let failure = is_match("a", pattern, false).expect_err(pattern);
            assert_eq!(failure.sqlstate, "0A000", "{pattern}");
        }
    }
}

//! Hints: what a client asks of the result cache in the first comment of a text, as in
//! `/* refrain: ttl=5s swr=30s tag=shop */ SELECT …`.

use std::time::Duration;

use crate::lex::{Lexer, TokenKind};

/// The beginning of a hint.
const MARK: &[u8] = b"refrain:";
/// Longest time.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Most tags of a hint.
const TAGS_MAX: usize = 8;
/// Most bytes of a tag.
const TAG_MAX: usize = 64;

/// The words of a hint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The time for which the reply may be given.
    pub ttl: Option<Duration>,
    /// The time beyond that for which it may be given while another is fetched.
    pub swr: Option<Duration>,
    /// Tags by which the reply can be dropped.
    pub tags: Vec<String>,
}

/// A word of a hint that says nothing known, or says it twice. Such a hint counts as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHint<'a>(pub &'a [u8]);

/// Returns the comment that is a text's hint, understood or not.
#[inline]
pub fn hint_of(text: &[u8]) -> Option<&[u8]> {
    let begins = text.trim_ascii_start().starts_with(b"/*");
    if begins { comment(text).map(|(comment, _)| comment) } else { None }
}

/// Returns the hint of a text, if its first comment is one and stands before its first token.
///
/// # Errors
/// The first word that is not understood.
#[inline]
pub fn hint(text: &[u8]) -> Option<Result<Hint, BadHint<'_>>> {
    let begins = text.trim_ascii_start().starts_with(b"/*");
    if begins { read(text) } else { None }
}

#[cold]
fn read(text: &[u8]) -> Option<Result<Hint, BadHint<'_>>> {
    let (_, words) = comment(text)?;
    let words = words.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
    let mut hint = Hint::default();
    for word in words.filter(|word| !word.is_empty()) {
        if hint.take(word).is_none() {
            return Some(Err(BadHint(word)));
        }
    }
    Some(Ok(hint))
}

/// Returns the first comment of a text and the words in it, if it is a hint.
fn comment(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut tokens = Lexer::new(text, false).skip_while(|token| token.kind == TokenKind::Space);
    let comment = tokens.next().filter(|token| token.kind == TokenKind::BlockComment)?.of(text);
    let inside = comment.strip_prefix(b"/*")?.strip_suffix(b"*/")?;
    Some((comment, inside.trim_ascii().strip_prefix(MARK)?))
}

impl Hint {
    /// Takes a word.
    fn take(&mut self, word: &[u8]) -> Option<()> {
        let (name, value) = std::str::from_utf8(word).ok()?.split_once('=')?;
        let slot = match name {
            "ttl" => &mut self.ttl,
            "swr" => &mut self.swr,
            "tag" => {
                let fits = is_tag(value) && self.tags.len() < TAGS_MAX;
                return fits.then(|| self.tags.push(value.to_owned()));
            }
            _ => return None,
        };
        let time = time(value)?;
        slot.replace(time).is_none().then_some(())
    }
}

fn is_tag(value: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=TAG_MAX).contains(&value.len()) && value.bytes().all(known)
}

/// Returns a time of at least a millisecond.
fn time(value: &str) -> Option<Duration> {
    let digits = value.len() - value.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (number, unit) = value.split_at(digits);
    let unit: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let time = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(unit)?);
    (!time.is_zero() && time <= LONGEST).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        let ms = |ms| Some(Duration::from_millis(ms));
        for (text, ttl, swr, tags) in [
            ("/* refrain: ttl=5s swr=30s tag=x */ select 1", ms(5000), ms(30_000), &["x"][..]),
            ("  /*refrain:ttl=250ms*/select 1", ms(250), None, &[]),
            ("\n/* refrain: tag=a,tag=b ttl=2m */ select 1", ms(120_000), None, &["a", "b"]),
            ("/* refrain:\n  ttl=1h\n */", ms(3_600_000), None, &[]),
            ("/* refrain: */ select 1", None, None, &[]),
        ] {
            let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
            assert_eq!(hint(text.as_bytes()), Some(Ok(Hint { ttl, swr, tags })), "{text}");
        }
    }

    #[test]
    fn texts_without_a_hint() {
        for text in [
            "",
            "select 1",
            "select /* refrain: ttl=5s */ 1",
            "select 1 /* refrain: ttl=5s */",
            "/* a */ /* refrain: ttl=5s */ select 1",
            "-- refrain: ttl=5s\nselect 1",
            "/* Refrain is fine */ select 1",
            "/*traceparent='00-a'*/ select 1",
            "/* refrain: ttl=5s",
            "'/* refrain: ttl=5s */'",
        ] {
            assert_eq!(hint(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn words_that_are_not_understood() {
        let long = format!("tag={}", "x".repeat(TAG_MAX + 1));
        for word in [
            "ttl",
            "ttl=",
            "ttl=5",
            "ttl=0s",
            "ttl=-5s",
            "ttl=5d",
            "ttl=9000h",
            "TTL=5s",
            "age=5s",
            "ttl=1.5s",
            "ttl=99999999999999999999s",
            "tag=",
            "tag=a;b",
            "tag=ä",
            "/*",
            &long,
        ] {
            let text = format!("/* refrain: swr=1s {word} */ select 1");
            assert_eq!(
                hint(text.as_bytes()),
                (word != "/*").then_some(Err(BadHint(word.as_bytes()))),
                "{word}"
            );
        }
        let twice = b"/* refrain: ttl=5s ttl=6s */";
        assert_eq!(hint(twice), Some(Err(BadHint(b"ttl=6s"))));
        let nested = b"/* refrain: ttl=5s /* x */ */";
        assert_eq!(hint(nested), Some(Err(BadHint(b"/*"))));
        let many = format!("/* refrain: {} */", "tag=a ".repeat(TAGS_MAX + 1));
        assert_eq!(hint(many.as_bytes()), Some(Err(BadHint(b"tag=a"))));
    }
}

//! Texts as people may see them: without literals, which are data of users, and without comments.
//!
//! Where it is not certain what a server takes for a literal, the rest of the text is left out:
//! behind a backslash in a string, which is an escape or not (`NO_BACKSLASH_ESCAPES`), behind the
//! beginning of a dollar-quoted body, and behind anything that does not end. So it is behind a
//! comment that some servers run and whose end may be within a string there, and, if a byte of a
//! character may be a quote, behind a name with such a character.

use std::borrow::Cow;

/// Stands for the part of a text that is left out.
const LEFT_OUT: &str = "…";

/// Bytes at most of the beginning of a text, as it is shown.
const BEGINNING_BYTES: usize = 1024;
/// Bytes at most of a text that are read for its beginning.
const READ_BYTES: usize = 16 * 1024;

/// Returns a text with `''` for each string and `0` for each number, and without its comments.
/// `is_multibyte` says whether a byte of a character may be a quote.
pub(crate) fn without_literals(text: &[u8], is_multibyte: bool) -> String {
    let mut shown = Vec::with_capacity(text.len());
    let is_whole = pieces(text, is_multibyte, |piece| {
        shown.extend_from_slice(piece);
        true
    });
    words(&shown, is_whole, usize::MAX).into_owned()
}

/// Returns the beginning of a text in the same form, in at most [`BEGINNING_BYTES`]. What is found
/// in `room` is overwritten.
pub(crate) fn beginning<'a>(
    text: &[u8],
    is_multibyte: bool,
    room: &'a mut Vec<u8>,
) -> Cow<'a, str> {
    room.clear();
    let read = text.trim_ascii_start();
    let read = &read[..read.len().min(READ_BYTES)];
    let is_whole = pieces(read, is_multibyte, |piece| {
        // Blanks are not shown at the beginning, also in place of a comment.
        let piece = if room.is_empty() { piece.trim_ascii_start() } else { piece };
        let fits = piece.len() <= BEGINNING_BYTES - room.len();
        room.extend_from_slice(&piece[..piece.len().min(BEGINNING_BYTES - room.len())]);
        fits
    });
    let is_whole = is_whole && read.len() == text.trim_ascii_start().len();
    words(room, is_whole, BEGINNING_BYTES)
}

/// Returns what is shown of a text as words, of which there are so many bytes at most.
fn words(shown: &[u8], is_whole: bool, most: usize) -> Cow<'_, str> {
    // What is no UTF-8 gets longer.
    let words = String::from_utf8_lossy(shown.trim_ascii());
    if is_whole && words.len() <= most {
        return words;
    }
    let kept = words.floor_char_boundary(most - LEFT_OUT.len() - 1);
    (words[..kept].trim_end().to_owned() + " " + LEFT_OUT).into()
}

/// Passes on the pieces of a text as it is shown, until `emit` says that there are enough. Returns
/// false if a part of the text is left out.
fn pieces(text: &[u8], is_multibyte: bool, mut emit: impl FnMut(&[u8]) -> bool) -> bool {
    // What has been passed is shown as it is from there on.
    let (mut begins, mut at) = (0, 0);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let length = token(rest).filter(|length| !is_multibyte || is_plain(&rest[..*length]));
        let shown: Option<&[u8]> = match byte {
            _ if length.is_none() => Some(b""),
            // A string between double quotes may be a name, and is not told from one.
            b'\'' | b'"' => Some(b"''"),
            b'0'..=b'9' => Some(b"0"),
            _ if is_comment(rest) => Some(b" "),
            _ => None,
        };
        if let Some(shown) = shown {
            if !emit(&text[begins..at]) || !emit(shown) {
                return false;
            }
            begins = at + length.unwrap_or(0);
        }
        let Some(length) = length else { return false };
        at += length;
    }
    emit(&text[begins..])
}

/// Returns the length of the token that a text begins with; `None` if it is not certain.
fn token(text: &[u8]) -> Option<usize> {
    let of = |is_in: fn(&u8) -> bool| text.iter().take_while(|byte| is_in(byte)).count();
    match text[0] {
        quote @ (b'\'' | b'"' | b'`') => quoted(text, quote),
        b'0'..=b'9' => Some(of(|byte| is_word(byte) || *byte == b'.')),
        b'.' if text.get(1).is_some_and(u8::is_ascii_digit) => Some(1),
        b'$' => None,
        byte if is_word(&byte) => Some(of(is_word)),
        b'/' if is_comment(text) => {
            let end = text.get(2..)?.windows(2).position(|two| two == b"*/")?;
            let content = &text[2..2 + end];
            (!may_be_run(content) || ends_alike(content)).then_some(end + 4)
        }
        _ if is_comment(text) => Some(of(|byte| *byte != b'\n')),
        _ => Some(1),
    }
}

/// Returns the length of what stands between quotes, which are doubled within.
fn quoted(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'\\' if quote != b'`' => return None,
            byte if *byte != quote => at += 1,
            _ if text.get(at + 1) == Some(&quote) => at += 2,
            _ => return Some(at + 1),
        }
    }
}

/// Whether a text begins with a comment. Two dashes begin one if a blank follows them.
fn is_comment(text: &[u8]) -> bool {
    match text {
        [b'#', ..] | [b'/', b'*', ..] | [b'-', b'-'] => true,
        [b'-', b'-', next, ..] => *next <= b' ' || *next == 0x7F,
        _ => false,
    }
}

/// Whether a comment with this content is one whose content some servers read: for what they run,
/// and for hints.
fn may_be_run(content: &[u8]) -> bool {
    matches!(content, [b'!' | b'+', ..] | [b'M', b'!', ..])
}

/// Whether the comment ends behind this content whether it is run or not: nothing begins in it in
/// which its end would not be one.
fn ends_alike(content: &[u8]) -> bool {
    let begins_none = |byte: &u8| !matches!(byte, b'\'' | b'"' | b'`' | b'#' | b'$');
    let hides = |two: &[u8]| two == b"--" || two == b"/*";
    content.iter().all(begins_none) && !content.windows(2).any(hides)
}

/// Whether a token means the same if a byte of a character may be a quote. Only in a name such a
/// byte is taken for one: in a string a backslash leaves out the rest, and the other quotes are
/// part of no character.
fn is_plain(token: &[u8]) -> bool {
    matches!(token[0], b'\'' | b'"') || is_comment(token) || token.is_ascii()
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_numbers_and_comments_are_left_out() {
        for (text, shown) in [
            ("SELECT 'ann', \"bob\", 12.5e3, x'41', _utf8'c'", "SELECT '', '', 0, x'', _utf8''"),
            ("select 'it''s' from `o'b` where a1 = ?", "select '' from `o'b` where a1 = ?"),
            ("select a--1, b -- 'c'\nfrom t # 'd'", "select a--0, b  \nfrom t"),
            ("select /*! a */ 1 /* 'b */", "select   0"),
            ("select /*+ NO_ICP(t) */ 1, a --\x7f'b\n, c", "select   0, a  \n, c"),
            ("select .5, 0x4A, 5--'ann'", "select .0, 0, 0--''"),
            ("select 'größe', größe", "select '', größe"),
            ("", ""),
        ] {
            assert_eq!(without_literals(text.as_bytes(), false), shown, "{text}");
        }
    }

    /// The words behind a backslash may be within a literal or not.
    #[test]
    fn nothing_is_shown_that_may_be_a_literal() {
        for text in [
            r"select '\', 'secret', 1",
            r#"select "\", "secret""#,
            "select 'secret",
            "select a /* 'secret",
            "do $$ 'secret' $$",
            "select `secret",
            "select /*! '*/', */ 'secret', 'x'",
            "select /*M! \"*/\", */ 'secret', 'x'",
            "select /*!99999 `*/`, */ 'secret', 'x'",
            "select /*! # */ '\n 'secret'",
            "select /*! -- */ '\n 'secret'",
            "select /*!99999 /* */ ' */ 'secret'",
            "select /*! $$*/$$, 'secret'",
            "select /*+ SET_VAR(sql_mode = '*/') */ 'secret', 'x'",
        ] {
            let shown = without_literals(text.as_bytes(), false);
            assert!(!shown.contains("secret") && shown.ends_with(LEFT_OUT), "{text}: {shown}");
        }
        let multibyte: [&[u8]; 3] = [
            b"select `\x81`, 'secret', `a`",
            b"select `b\x81``, 'secret', `a`",
            b"select a\x81`, 'secret', `a`",
        ];
        for text in multibyte {
            let shown = without_literals(text, true);
            let text = text.escape_ascii();
            assert!(!shown.contains("secret") && shown.ends_with(LEFT_OUT), "{text}: {shown}");
        }
        let shown = without_literals(b"select '\x81`', a -- \x81`\n from `t`", true);
        assert_eq!(shown, "select '', a  \n from `t`");
    }

    #[test]
    fn a_beginning_has_no_blanks_around_it_and_a_greatest_length() {
        let mut room = Vec::new();
        for text in [" select 1", "/* a */ select 1", "select/* a */2 ", "# a\nselect 1"] {
            assert_eq!(beginning(text.as_bytes(), false, &mut room), "select 0", "{text}");
        }
        for text in [vec![0xFF; 1024], b"a".repeat(1025), vec![0xFF; 2000], b"ab ".repeat(400)] {
            let shown = beginning(&text, false, &mut room);
            assert!(shown.len() <= BEGINNING_BYTES && shown.ends_with(LEFT_OUT), "{shown}");
        }
        let most = "a".repeat(BEGINNING_BYTES);
        assert_eq!(beginning(most.as_bytes(), false, &mut room), most);
    }
}

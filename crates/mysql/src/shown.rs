//! Texts as people may see them: without literals, which are data of users, and without comments.
//!
//! Where it is not certain what a server takes for a literal, the rest of the text is left out:
//! behind a backslash in a string, which is an escape or not (`NO_BACKSLASH_ESCAPES`), behind the
//! beginning of a dollar-quoted body, and behind anything that does not end.

/// Stands for the part of a text that is left out.
const LEFT_OUT: &str = "…";

/// Bytes at most of the beginning of a text, as it is shown.
const BEGINNING_BYTES: usize = 1024;
/// Bytes at most of a text that are read for its beginning.
const READ_BYTES: usize = 16 * 1024;

/// Returns a text with `''` for each string and `0` for each number, and without its comments.
pub(crate) fn without_literals(text: &[u8]) -> String {
    let mut shown = Vec::with_capacity(text.len());
    let is_whole = pieces(text, |piece| {
        shown.extend_from_slice(piece);
        true
    });
    words(&shown, is_whole)
}

/// Returns the beginning of a text in the same form.
pub(crate) fn beginning(text: &[u8]) -> String {
    let mut shown = Vec::new();
    let is_whole = pieces_of_beginning(text, |piece| shown.extend_from_slice(piece));
    words(&shown, is_whole)
}

fn words(shown: &[u8], is_whole: bool) -> String {
    let shown = String::from_utf8_lossy(shown);
    if is_whole { shown.trim().to_owned() } else { shown.trim().to_owned() + " " + LEFT_OUT }
}

/// Passes on the pieces of which [`beginning`] is made, without its blanks at both ends. Returns
/// false if a part of the text is left out.
pub(crate) fn pieces_of_beginning(text: &[u8], mut emit: impl FnMut(&[u8])) -> bool {
    let mut room = BEGINNING_BYTES;
    let read = &text[..text.len().min(READ_BYTES)];
    let is_whole = pieces(read, |piece| {
        let fits = piece.len() <= room;
        let piece = &piece[..piece.len().min(room)];
        room -= piece.len();
        emit(piece);
        fits
    });
    is_whole && read.len() == text.len()
}

/// Passes on the pieces of a text as it is shown, until `emit` says that there are enough. Returns
/// false if a part of the text is left out.
fn pieces(text: &[u8], mut emit: impl FnMut(&[u8]) -> bool) -> bool {
    // What has been passed is shown as it is from there on.
    let (mut begins, mut at) = (0, 0);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let length = token(rest);
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
            Some(end + 4)
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
        [b'-', b'-', next, ..] => *next <= b' ',
        _ => false,
    }
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
            ("select /*! 'a' */ 1 /* 'b */", "select   0"),
            ("select .5, 0x4A, 5--'ann'", "select .0, 0, 0--''"),
            ("select 'größe', größe", "select '', größe"),
            ("", ""),
        ] {
            assert_eq!(without_literals(text.as_bytes()), shown, "{text}");
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
        ] {
            let shown = without_literals(text.as_bytes());
            assert!(!shown.contains("secret") && shown.ends_with(LEFT_OUT), "{text}: {shown}");
        }
    }
}

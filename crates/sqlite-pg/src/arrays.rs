//! Arrays of one dimension, kept as arrays of JSON: their texts and their binary form.
//!
//! SQLite reads JSON by itself: `json_each` gives the elements, `->>` one of them. Numbers and
//! booleans are numbers of JSON, all other elements are strings.

use crate::failure::{Failure, state};

/// An element: its text, or the reason why it has none.
pub(crate) type Element = Option<String>;

/// Splits the text of an array.
///
/// # Errors
/// 22P02 for a text that is no array, 0A000 for more than one dimension.
pub(crate) fn split(text: &str) -> Result<Vec<Element>, Failure> {
    let malformed = || {
        let message = format!("malformed array literal: \"{text}\"");
        Failure::new(state::BAD_TEXT, message)
    };
    if text.trim_start().starts_with('[') && text.contains('=') {
        let failure =
            Failure::unsupported("arrays whose subscripts do not begin at 1 are not supported");
        return Err(failure.hint("write the elements alone"));
    }
    let inside = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inside = inside.ok_or_else(malformed)?.trim();
    let mut all = Vec::new();
    if inside.is_empty() {
        return Ok(all);
    }
    let mut letters = inside.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let (mut element, mut quoted, mut escaped) = (String::new(), false, false);
        if letters.next_if_eq(&'"').is_some() {
            quoted = true;
            loop {
                match letters.next().ok_or_else(malformed)? {
                    '"' => break,
                    '\\' => element.push(letters.next().ok_or_else(malformed)?),
                    letter => element.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                match letter {
                    '{' | '}' => {
                        let failure =
                            Failure::unsupported("arrays of several dimensions are not supported");
                        return Err(failure.hint("keep them as jsonb"));
                    }
                    '"' => return Err(malformed()),
                    '\\' => {
                        escaped = true;
                        element.push(letters.next().ok_or_else(malformed)?);
                    }
                    letter => element.push(letter),
                }
            }
            element.truncate(element.trim_end().len());
            if element.is_empty() {
                return Err(malformed());
            }
        }
        let null = !quoted && !escaped && element.eq_ignore_ascii_case("null");
        all.push((!null).then_some(element));
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        match letters.next() {
            None => return Ok(all),
            Some(',') => {}
            Some(_) => return Err(malformed()),
        }
    }
}

/// Writes an element's text as PostgreSQL does within an array (`array_out`).
pub(crate) fn quoted(element: &str) -> String {
    let plain = |letter: char| !"{}\"\\,".contains(letter) && !letter.is_whitespace();
    if !element.is_empty() && element.chars().all(plain) && !element.eq_ignore_ascii_case("null") {
        return element.to_owned();
    }
    format!("\"{}\"", element.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a string of JSON as SQLite does, so that equal arrays are equal texts.
pub(crate) fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Reads an array of JSON. Strings lose their quotes.
pub(crate) fn read(json: &str) -> Option<Vec<Element>> {
    let mut letters = json.trim().strip_prefix('[')?.strip_suffix(']')?.chars().peekable();
    let mut all = Vec::new();
    while letters.peek().is_some() {
        if letters.next_if_eq(&'"').is_some() {
            all.push(Some(string(&mut letters)?));
        } else {
            let mut word = String::new();
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                word.push(letter);
            }
            let word = word.trim();
            all.push((word != "null").then(|| word.to_owned()));
        }
        while letters.next_if(|letter| letter.is_whitespace() || *letter == ',').is_some() {}
    }
    Some(all)
}

fn string(letters: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = letters.take(4).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                letter => letter,
            }),
            letter => text.push(letter),
        }
    }
}

/// An array in the binary form: the OID of its elements' type, and the elements.
pub(crate) struct Sent<'a> {
    pub(crate) of: u32,
    pub(crate) elements: Vec<Option<&'a [u8]>>,
}

/// Splits an array in the binary form (`array_send`). `None` if it is malformed, or has more than
/// one dimension.
pub(crate) fn split_binary(bytes: &[u8]) -> Option<Sent<'_>> {
    let mut rest = bytes;
    let mut number = || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        Some(i32::from_be_bytes(*head))
    };
    let (dimensions, _, of) = (number()?, number()?, number()?.cast_unsigned());
    if dimensions == 0 {
        return Some(Sent { of, elements: Vec::new() });
    }
    let (count, _) = (number()?, number()?);
    let mut elements = Vec::new();
    for _ in 0..count {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        elements.push(match usize::try_from(i32::from_be_bytes(*head)) {
            Ok(length) => {
                let (element, tail) = rest.split_at_checked(length)?;
                rest = tail;
                Some(element)
            }
            Err(_) => None,
        });
    }
    (dimensions == 1 && rest.is_empty()).then_some(Sent { of, elements })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_arrays_are_read_as_the_server_reads_them() {
        let of = |text: &str| split(text).map_err(|failure| failure.sqlstate);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("{}"), Ok(vec![]));
        assert_eq!(
            of(" { a , \"b, \\\"c\" ,NULL,\"null\"}"),
            Ok(vec![some("a"), some("b, \"c"), None, some("null")])
        );
        assert_eq!(of("{1,,2}"), Err("22P02"));
        assert_eq!(of("1,2"), Err("22P02"));
        assert_eq!(of("{{1},{2}}"), Err("0A000"));
    }

    #[test]
    fn an_array_is_kept_as_json() {
        let text = "a\"\\\n\u{1}é";
        let json = format!("[{},null,12]", json_string(text));
        assert_eq!(read(&json), Some(vec![Some(text.to_owned()), None, Some("12".to_owned())]));
        assert_eq!(read("[]"), Some(vec![]));
        assert_eq!(quoted("a b"), "\"a b\"");
        assert_eq!(quoted("null"), "\"null\"");
        assert_eq!(quoted("a'b"), "a'b");
    }

    #[test]
    fn binary_arrays_have_one_dimension() {
        let words =
            |words: &[i32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let sent = words(&[1, 1, 23, 2, 1, 4, 7, -1]);
        let read = split_binary(&sent).expect("an array");
        assert_eq!((read.of, read.elements), (23, vec![Some(&[0, 0, 0, 7][..]), None]));
        assert!(split_binary(&words(&[0, 0, 25])).is_some_and(|sent| sent.elements.is_empty()));
        assert!(split_binary(&words(&[2, 0, 23, 1, 1, 1, 1, 4, 7])).is_none());
        assert!(split_binary(&sent[..20]).is_none());
    }
}

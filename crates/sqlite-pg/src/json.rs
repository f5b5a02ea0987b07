//! JSON: checks a text, and writes it in the form of `jsonb`.
//!
//! `json` keeps its text. `jsonb` keeps the last of several equal keys, sorts keys by length and
//! then by bytes, and writes a blank after colons and commas. Numbers keep their digits, as
//! `numeric` would print them.

use crate::failure::{Failure, state};

/// Maximum nesting depth of values.
const DEPTH_MAX: usize = 64;

enum Json {
    /// The text of a scalar, in the form of `jsonb`.
    Plain(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Checks that a text is JSON.
///
/// # Errors
/// 22P02.
pub(crate) fn check(text: &str) -> Result<(), Failure> {
    parse(text, "json").map(drop)
}

/// Returns a text in the form of `jsonb`.
///
/// # Errors
/// 22P02.
pub(crate) fn normal(text: &str) -> Result<String, Failure> {
    let mut out = String::with_capacity(text.len());
    write(&parse(text, "jsonb")?, &mut out);
    Ok(out)
}

/// An element of an array, or an entry of an object with its key as a string of JSON.
pub(crate) struct Part<'a> {
    pub(crate) key: Option<String>,
    pub(crate) text: &'a str,
}

/// Returns the elements of an array or an object; none of a scalar.
pub(crate) fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut reader = JsonReader { rest: text, depth: 0, binary: false, refused: None };
    let of_object = reader.take('{');
    if !of_object && !reader.take('[') {
        return None;
    }
    let mut all = Vec::new();
    loop {
        reader.blanks();
        if reader.rest.starts_with(['}', ']']) {
            return Some(all);
        }
        let key = match of_object {
            true => Some(reader.string().filter(|_| reader.take(':'))?),
            false => None,
        };
        reader.blanks();
        let before = reader.rest;
        reader.value()?;
        all.push(Part { key, text: before.get(..before.len() - reader.rest.len())? });
        reader.take(',');
    }
}

/// Writes a text as a string of JSON, in the form that keys of [`parts`] have.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    text.chars().for_each(|letter| push(letter, &mut out));
    out.push('"');
    out
}

/// Returns a string of JSON without its quotes and escapes, and any other value as it is.
///
/// # Errors
/// 22P05: it has a zero byte.
pub(crate) fn plain(part: &str) -> Result<String, Failure> {
    let Some(mut rest) = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Ok(part.to_owned());
    };
    let mut out = String::with_capacity(rest.len());
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let read = if letter == '\\' { escape(rest, true) } else { Some((letter, rest)) };
        let Some((letter, after)) = read else {
            return Err(Failure::new("22P05", "unsupported Unicode escape sequence")
                .hint("\\u0000 cannot be converted to text"));
        };
        out.push(letter);
        rest = after;
    }
    Ok(out)
}

fn parse(text: &str, is: &str) -> Result<Json, Failure> {
    let mut reader = JsonReader { rest: text, depth: 0, binary: is == "jsonb", refused: None };
    let value = reader.value().filter(|_| reader.rest.trim_start_matches(BLANKS).is_empty());
    let refused = reader.refused;
    // A zero byte is the one escape that json accepts and jsonb does not.
    let zero = || is == "jsonb" && text.contains("\\u0000") && parse(text, "json").is_ok();
    value.ok_or_else(|| match refused {
        Some((message, hint)) => Failure::unsupported(message).hint(hint),
        None if zero() => Failure::new("22P05", "unsupported Unicode escape sequence")
            .hint("\\u0000 cannot be converted to text"),
        None => Failure::new(state::BAD_TEXT, "invalid input syntax for type json"),
    })
}

pub(crate) const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

struct JsonReader<'a> {
    rest: &'a str,
    depth: usize,
    binary: bool,
    /// Valid JSON that is refused here: the message and the hint.
    refused: Option<(&'static str, &'static str)>,
}

impl JsonReader<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(BLANKS);
    }

    fn take(&mut self, wanted: char) -> bool {
        self.blanks();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Option<Json> {
        self.blanks();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.refused =
                Some(("JSON of more than 64 levels is not supported", "nest it less deeply"));
            return None;
        }
        let made = match self.rest.chars().next()? {
            '{' => self.object(),
            '[' => self.array(),
            '"' => self.string().map(Json::Plain),
            '-' | '0'..='9' => self.number().map(Json::Plain),
            _ => ["true", "false", "null"].into_iter().find_map(|word| {
                self.rest = self.rest.strip_prefix(word)?;
                Some(Json::Plain(word.to_owned()))
            }),
        };
        self.depth -= 1;
        made
    }

    fn object(&mut self) -> Option<Json> {
        self.take('{');
        let mut entries = Vec::new();
        if self.take('}') {
            return Some(Json::Object(entries));
        }
        loop {
            self.blanks();
            let key = self.string()?;
            if !self.take(':') {
                return None;
            }
            entries.push((key, self.value()?));
            if self.take('}') {
                return Some(Json::Object(entries));
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    fn array(&mut self) -> Option<Json> {
        self.take('[');
        let mut items = Vec::new();
        if self.take(']') {
            return Some(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.take(']') {
                return Some(Json::Array(items));
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// Reads a string. Writes it with no more escapes than it needs.
    fn string(&mut self) -> Option<String> {
        let mut rest = self.rest.strip_prefix('"')?;
        let mut out = String::from('"');
        loop {
            let letter = rest.chars().next()?;
            rest = &rest[letter.len_utf8()..];
            match letter {
                '"' => break,
                '\\' => {
                    let (letter, after) = escape(rest, self.binary)?;
                    rest = after;
                    push(letter, &mut out);
                }
                control if u32::from(control) < 0x20 => return None,
                other => out.push(other),
            }
        }
        out.push('"');
        self.rest = rest;
        Some(out)
    }

    fn number(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let digits = number.strip_prefix('-').unwrap_or(number);
        let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let all_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let sound = all_digits(whole)
            && all_digits(fraction)
            && all_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
            && (whole == "0" || !whole.starts_with('0'));
        // `jsonb` would write out an exponent as zeros, and minus zero as zero.
        let kept = !self.binary || exponent == "0" && number != "-0";
        self.rest = rest;
        if sound && !kept {
            let hint = "write the number out, or keep the value as json";
            self.refused = Some(("jsonb numbers with an exponent are not supported", hint));
        }
        (sound && kept).then(|| number.to_owned())
    }
}

/// Reads the rest of an escape after its backslash. Returns the character, and the rest of the
/// text.
fn escape(rest: &str, binary: bool) -> Option<(char, &str)> {
    let letter = rest.chars().next()?;
    let after = &rest[letter.len_utf8()..];
    let plain = match letter {
        '"' | '\\' | '/' => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(after, binary),
        _ => return None,
    };
    Some((plain, after))
}

fn unicode(rest: &str, binary: bool) -> Option<(char, &str)> {
    let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(rest)?;
    let after = rest.get(4..)?;
    if let Some(letter) = char::from_u32(first) {
        return (first > 0 || !binary).then_some((letter, after));
    }
    let second = unit(after.strip_prefix("\\u")?)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(code)?, after.get(6..)?))
}

/// Appends a character as `escape_json` of the server does.
fn push(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        control if u32::from(control) < 0x20 => {
            out.push_str(&format!("\\u{:04x}", u32::from(control)));
        }
        other => out.push(other),
    }
}

fn write(json: &Json, out: &mut String) {
    match json {
        Json::Plain(text) => out.push_str(text),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            let mut kept: Vec<&(String, Json)> = Vec::new();
            for entry in entries {
                kept.retain(|known| known.0 != entry.0);
                kept.push(entry);
            }
            kept.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
            out.push('{');
            for (index, (key, value)) in kept.into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(key);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonb_has_one_form() {
        for (text, form) in [
            ("{\"bb\":1,\"a\":[1,2 , {}],\"bb\" : null}", "{\"a\": [1, 2, {}], \"bb\": null}"),
            (" \"a\\u00e4\\n\\/\" ", "\"aä\\n/\""),
            ("-1.50", "-1.50"),
            ("\"\\ud83d\\ude00\"", "\"😀\""),
        ] {
            assert_eq!(normal(text).unwrap(), form);
        }
        for text in ["", "{", "{a:1}", "01", "1 2", "\"\\x\"", "nul", "[1,]", "1e"] {
            assert_eq!(check(text).unwrap_err().sqlstate, "22P02", "{text}");
        }
        assert!(check(&"[".repeat(100_000)).is_err());
        assert_eq!(check("1e5"), Ok(()));
    }
}

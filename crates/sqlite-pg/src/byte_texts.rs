//! Bytes as texts: the notations of `bytea` and `uuid`.

use crate::failure::{Failure, state};

/// Reads the two notations of `bytea`: `\x` and hexadecimal digits, or bytes with escapes.
pub(crate) fn bytea(text: &[u8]) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix(b"\\x") {
        let digits: Vec<u8> =
            digits.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return hex(&digits);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            (b'\\', _) => return None,
            _ => bytes.push(first),
        }
    }
    Some(bytes)
}

/// Returns the error for wrong digits of a `bytea`; none if the text has the notation of escapes.
/// Wrong digits are a wrong parameter value, because the server's `decode` raises the error.
pub(crate) fn bytea_trouble(text: &str) -> Option<Failure> {
    let digits = text.strip_prefix("\\x")?;
    let other = |letter: &char| !letter.is_ascii_hexdigit() && !letter.is_ascii_whitespace();
    let message = match digits.chars().find(other) {
        Some(letter) => format!("invalid hexadecimal digit: \"{letter}\""),
        None => "invalid hexadecimal data: odd number of digits".to_owned(),
    };
    Some(Failure::new(state::BAD_PARAMETER_VALUE, message))
}

fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let pairs = digits.chunks(2);
    pairs.map(|pair| Some(value(*pair.first()?)? << 4 | value(*pair.get(1)?)?)).collect()
}

/// Reads a UUID, with or without braces and hyphens.
pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let mut digits: Vec<u8> = Vec::with_capacity(32);
    for byte in inside.bytes() {
        match byte {
            // A hyphen may stand after any four digits, as in `uuid_in`.
            b'-' if digits.len().is_multiple_of(4) && (1..32).contains(&digits.len()) => {}
            b'-' => return None,
            digit => digits.push(digit),
        }
    }
    hex(&digits)?.try_into().ok()
}

/// Writes a UUID in its usual form.
pub(crate) fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

//! The value of a literal.

use super::Class;

/// The error for a literal without a value that would be the same in a Bind: the server refuses it,
/// or its meaning is not in the text alone. The text must then run as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;

/// Appends the value of a literal to `out`, in the text format of a parameter of its class. `utf8`
/// is true if client and server both use UTF-8. Otherwise an escape for anything but an ASCII
/// character stands for bytes of the server's encoding, and cannot be decoded here.
pub fn value(
    class: Class,
    literal: &[u8],
    utf8: bool,
    out: &mut Vec<u8>,
) -> Result<(), Undecodable> {
    match class {
        Class::Str => undouble(inside(literal, 1)?, out),
        Class::EStr => return escapes(inside(literal, 2)?, utf8, out),
        Class::Dollar => {
            let tag = 2 + literal.iter().skip(1).take_while(|byte| **byte != b'$').count();
            let end = literal.len().saturating_sub(tag);
            out.extend_from_slice(literal.get(tag..end).ok_or(Undecodable)?);
        }
        // The form that the server's own scanner produces: `b101`, `x1F`.
        Class::Bit | Class::Hex => {
            out.push(if class == Class::Bit { b'b' } else { b'x' });
            out.extend_from_slice(inside(literal, 2)?);
        }
        _ => out.extend_from_slice(literal),
    }
    Ok(())
}

/// Returns the bytes between the quotes; the first quote ends at `from`.
fn inside(literal: &[u8], from: usize) -> Result<&[u8], Undecodable> {
    literal.get(from..literal.len().saturating_sub(1)).ok_or(Undecodable)
}

fn undouble(inside: &[u8], out: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\'') {
        out.extend_from_slice(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Decodes escapes as in state `xe` of `scan.l`.
fn escapes(inside: &[u8], utf8: bool, out: &mut Vec<u8>) -> Result<(), Undecodable> {
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\'' | b'\\')) {
        out.extend_from_slice(&rest[..at]);
        let next = *rest.get(at + 1).ok_or(Undecodable)?;
        let after = &rest[at + 2..];
        rest = match (rest[at], next) {
            (b'\'', _) => {
                out.push(b'\'');
                after
            }
            (_, b'0'..=b'7') => byte(&rest[at + 1..], 3, 8, utf8, out)?,
            (_, b'x') if after.first().is_some_and(u8::is_ascii_hexdigit) => {
                byte(after, 2, 16, utf8, out)?
            }
            (_, b'u') => character(after, 4, utf8, out)?,
            (_, b'U') => character(after, 8, utf8, out)?,
            // `\'` is refused where `backslash_quote` is off, and `\v` is a letter before version
            // 16.
            (_, b'\'' | b'v') => return Err(Undecodable),
            (_, letter) => {
                out.push(single(letter));
                after
            }
        };
    }
    out.extend_from_slice(rest);
    Ok(())
}

const fn single(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}

/// Reads one byte written as at most `most` digits. Returns the rest.
fn byte<'a>(
    digits: &'a [u8],
    most: usize,
    radix: u32,
    utf8: bool,
    out: &mut Vec<u8>,
) -> Result<&'a [u8], Undecodable> {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let length = digits.iter().take(most).take_while(is_digit).count();
    let code = number(&digits[..length], radix)? as u8;
    // No string may contain a NUL, and the server says so.
    if code == 0 || (code >= 0x80 && !utf8) {
        return Err(Undecodable);
    }
    out.push(code);
    Ok(&digits[length..])
}

/// Reads a character written as exactly `length` digits, or as two such escapes that are halves of
/// a UTF-16 pair. Returns the rest.
fn character<'a>(
    digits: &'a [u8],
    length: usize,
    utf8: bool,
    out: &mut Vec<u8>,
) -> Result<&'a [u8], Undecodable> {
    let (mut code, mut rest) = unit(digits, length)?;
    if (0xd800..0xdc00).contains(&code) {
        let (low, after) = match rest {
            [b'\\', b'u', low @ ..] => unit(low, 4)?,
            [b'\\', b'U', low @ ..] => unit(low, 8)?,
            _ => return Err(Undecodable),
        };
        if !(0xdc00..0xe000).contains(&low) {
            return Err(Undecodable);
        }
        code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        rest = after;
    }
    let character = char::from_u32(code).filter(|it| *it != '\0').ok_or(Undecodable)?;
    if !character.is_ascii() && !utf8 {
        return Err(Undecodable);
    }
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(rest)
}

fn unit(digits: &[u8], length: usize) -> Result<(u32, &[u8]), Undecodable> {
    let (unit, rest) = digits.split_at_checked(length).ok_or(Undecodable)?;
    Ok((number(unit, 16)?, rest))
}

fn number(digits: &[u8], radix: u32) -> Result<u32, Undecodable> {
    let add =
        |sum: u32, digit: &u8| Some((sum << radix.ilog2()) | char::from(*digit).to_digit(radix)?);
    digits.iter().try_fold(0, add).ok_or(Undecodable)
}

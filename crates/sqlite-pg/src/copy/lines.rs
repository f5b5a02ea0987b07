//! The text formats of COPY: fields of a line, escaped or in quotes.

use std::iter::Peekable;

use crate::failure::{Failure, state};

use super::{CopyFormat, Fields, Style};

impl Style {
    /// Appends a field of a line, `None` for NULL.
    pub(super) fn field(&self, out: &mut Vec<u8>, index: usize, value: Option<&[u8]>) {
        if index > 0 {
            out.push(self.delimiter);
        }
        let Some(value) = value else { return out.extend_from_slice(&self.null) };
        if self.kind != CopyFormat::Csv {
            return value.iter().for_each(|byte| self.escaped(out, *byte));
        }
        let special = [self.delimiter, self.quote, b'\n', b'\r'];
        let bare = value != self.null
            && value != b"\\."
            && !value.iter().any(|byte| special.contains(byte));
        if bare {
            return out.extend_from_slice(value);
        }
        out.push(self.quote);
        for byte in value {
            if *byte == self.quote || *byte == self.escape {
                out.push(self.escape);
            }
            out.push(*byte);
        }
        out.push(self.quote);
    }

    fn escaped(&self, out: &mut Vec<u8>, byte: u8) {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            11 => out.extend_from_slice(b"\\v"),
            12 => out.extend_from_slice(b"\\f"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte if byte == self.delimiter => out.extend_from_slice(&[b'\\', byte]),
            byte => out.push(byte),
        }
    }

    /// Returns the position after the first newline that ends a line; `None` if the line is
    /// incomplete.
    pub(super) fn line_end(&self, bytes: &[u8]) -> Option<usize> {
        let (csv, mut quoted) = (self.kind == CopyFormat::Csv, false);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\n' if !quoted => return Some(at),
                b'\\' if !csv => at += 1,
                byte if csv && quoted && byte == self.escape && self.escape != self.quote => {
                    at += 1
                }
                byte if csv && byte == self.quote => quoted = !quoted,
                _ => {}
            }
        }
        None
    }

    /// Returns the fields of a line without its newline.
    ///
    /// # Errors
    /// 22P04: a quoted field does not end.
    pub(super) fn fields(&self, line: &[u8]) -> Result<Fields, Failure> {
        if self.kind == CopyFormat::Csv {
            self.csv_fields(line)
        } else {
            Ok(self.text_fields(line))
        }
    }

    fn text_fields(&self, line: &[u8]) -> Fields {
        let mut fields = Vec::new();
        let (mut field, mut raw) = (Vec::new(), Vec::new());
        let mut bytes = line.iter().copied().peekable();
        loop {
            let byte = bytes.next();
            match byte {
                Some(b'\\') => {
                    raw.push(b'\\');
                    let Some(escaped) = bytes.next() else { continue };
                    raw.push(escaped);
                    field.push(unescaped(escaped, &mut bytes));
                }
                Some(byte) if byte != self.delimiter => {
                    raw.push(byte);
                    field.push(byte);
                }
                _ => {
                    let field = std::mem::take(&mut field);
                    let null = std::mem::take(&mut raw) == self.null;
                    fields.push((!null).then_some(field));
                    if byte.is_none() {
                        return fields;
                    }
                }
            }
        }
    }

    fn csv_fields(&self, line: &[u8]) -> Result<Fields, Failure> {
        let mut fields = Vec::new();
        let mut field = Vec::new();
        let (mut inside, mut was_quoted) = (false, false);
        let mut bytes = line.iter().copied().peekable();
        loop {
            let byte = bytes.next();
            match byte {
                Some(byte)
                    if inside
                        && byte == self.escape
                        && bytes
                            .peek()
                            .is_some_and(|next| *next == self.quote || *next == self.escape) =>
                {
                    field.extend(bytes.next());
                }
                Some(byte) if byte == self.quote => {
                    inside = !inside;
                    was_quoted = true;
                }
                Some(byte) if inside || byte != self.delimiter => field.push(byte),
                None if inside => {
                    return Err(Failure::new(state::BAD_COPY, "unterminated CSV quoted field"));
                }
                _ => {
                    let field = std::mem::take(&mut field);
                    let null = !std::mem::take(&mut was_quoted) && field == self.null;
                    fields.push((!null).then_some(field));
                    if byte.is_none() {
                        return Ok(fields);
                    }
                }
            }
        }
    }
}

/// Returns the byte of an escape after its backslash: a letter, up to three octal digits or two
/// hexadecimal ones.
fn unescaped(escaped: u8, rest: &mut Peekable<impl Iterator<Item = u8>>) -> u8 {
    let mut digits = |first: Option<u8>, base: u32, most: usize| {
        let digit = |byte: u8| char::from(byte).to_digit(base);
        let mut value = first.and_then(digit);
        for _ in 0..most {
            let Some(next) = rest.peek().and_then(|byte| digit(*byte)) else { break };
            rest.next();
            value = Some(value.unwrap_or(0) * base + next);
        }
        // A value that is too large loses its upper bits, as in PostgreSQL.
        value.map(|value| (value & 0xff) as u8)
    };
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'0'..=b'7' => digits(Some(escaped), 8, 2).unwrap_or(escaped),
        b'x' => digits(None, 16, 2).unwrap_or(escaped),
        other => other,
    }
}

//! Rows of a result set, as text and in binary form. (MySQL, "Text Resultset Row" and "Binary
//! Protocol Resultset Row"; MariaDB, "Result Set Packets".)

use crate::fields::{Fields, put_string};

/// The byte that stands for NULL.
const NULL: u8 = 0xFB;

/// Returns the values of a row; NULL as nothing. `None` if the payload is no row.
pub fn strings(payload: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let (mut row, mut fields) = (Vec::new(), Fields(payload));
    while let Some(&first) = fields.rest().first() {
        let value = if first == NULL { fields.bytes(1).map(|_| &b""[..]) } else { fields.string() };
        row.push(value?.into());
    }
    Some(row)
}

/// Appends the payload of a row of texts, `None` for NULL.
pub fn write_text<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = Option<&'a [u8]>>) {
    for value in values {
        match value {
            Some(value) => put_string(out, value),
            None => out.push(NULL),
        }
    }
}

/// A value of a row in binary form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary<'a> {
    /// One of the type LONG.
    Long(i32),
    /// One of the type LONGLONG.
    LongLong(i64),
    /// One of the type DOUBLE.
    Double(f64),
    /// One of a type whose values have their lengths in front.
    String(&'a [u8]),
}

/// The first byte of a row in binary form.
const BINARY_HEAD: u8 = 0;
/// The number of the first column's bit in the map of NULLs.
const NULLS_FROM: usize = 2;

/// Appends the payload of a row in binary form, `None` for NULL.
pub fn write_binary(out: &mut Vec<u8>, values: &[Option<Binary<'_>>]) {
    out.push(BINARY_HEAD);
    let map = out.len();
    out.resize(map + (values.len() + NULLS_FROM).div_ceil(8), 0);
    for (column, value) in values.iter().enumerate() {
        match value {
            Some(Binary::Long(value)) => out.extend_from_slice(&value.to_le_bytes()),
            Some(Binary::LongLong(value)) => out.extend_from_slice(&value.to_le_bytes()),
            Some(Binary::Double(value)) => out.extend_from_slice(&value.to_le_bytes()),
            Some(Binary::String(value)) => put_string(out, value),
            None => {
                let bit = column + NULLS_FROM;
                out[map + bit / 8] |= 1 << (bit % 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lengths_in_front() {
        let row = strings(b"\x01a\xfb\xfc\x02\x00bc").expect("a row");
        assert_eq!(row, [b"a"[..].into(), b""[..].into(), b"bc"[..].into()]);
        assert_eq!(strings(b"\x02a"), None);
        assert_eq!(strings(b"\xfd\x01\x00\x00a"), Some(vec![b"a"[..].into()]));
        assert_eq!(strings(b"\xfe\x01\x00\x00a"), None);
    }

    #[test]
    fn a_row_of_texts_is_written_as_it_is_read() {
        let mut out = Vec::new();
        write_text(&mut out, [Some(&b"a"[..]), None, Some(b"")].into_iter());
        assert_eq!(out, b"\x01a\xfb\x00");
        assert_eq!(strings(&out).map(|row| row.len()), Some(3));
    }

    #[test]
    fn a_row_in_binary_form_has_a_map_of_its_nulls() {
        let write = |values: &[Option<Binary<'_>>]| {
            let mut out = Vec::new();
            write_binary(&mut out, values);
            out
        };
        // As in MySQL's manual.
        let row = [Some(Binary::String(b"foobar"))];
        assert_eq!(write(&row), b"\x00\x00\x06foobar");
        let numbers =
            [Some(Binary::Long(-2)), None, Some(Binary::LongLong(1)), Some(Binary::Double(10.2))];
        let due = b"\x00\x08\xfe\xff\xff\xff\x01\0\0\0\0\0\0\0\x66\x66\x66\x66\x66\x66\x24\x40";
        assert_eq!(write(&numbers), due);
        // The seventh column's bit is the first of the second byte.
        assert_eq!(write(&[None; 7]), b"\x00\xfc\x01");
        assert_eq!(write(&[]), b"\x00\x00");
    }
}

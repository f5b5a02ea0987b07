//! The binary format of COPY: a header, rows of fields with their lengths, and an end mark.

use std::borrow::Cow;

use crate::failure::{Failure, state};

use super::Fields;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Stands in the place of a row's number of fields at the end.
pub(super) const END: [u8; 2] = (-1i16).to_be_bytes();

/// Flags that a reader must understand.
const CRITICAL: u32 = 0xffff_0000;

/// Appends the header: the signature, no flags, no extension.
pub(super) fn header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// The next part of the data.
#[derive(Debug, Default)]
pub(super) enum BinaryReader {
    #[default]
    Header,
    Rows,
    Ended,
}

impl BinaryReader {
    /// Takes the complete rows off the front of some bytes. `last` is true at the end of the data.
    ///
    /// # Errors
    /// 22P04: the data does not have this format, or a row has too many fields or too few.
    pub(super) fn rows(
        &mut self,
        rest: &mut &[u8],
        columns: usize,
        last: bool,
    ) -> Result<Vec<Fields>, Failure> {
        let mut rows = Vec::new();
        while !rest.is_empty() {
            let mut behind = *rest;
            let whole = match self {
                Self::Header => read_header(&mut behind)?.map(|()| *self = Self::Rows),
                Self::Ended => return Err(bad("received copy data after EOF marker")),
                Self::Rows => read_row(&mut behind, columns)?.map(|row| match row {
                    BinaryRow::Fields(fields) => rows.push(fields),
                    BinaryRow::End => *self = Self::Ended,
                }),
            };
            match whole {
                Some(()) => *rest = behind,
                None if last => return Err(bad("unexpected EOF in COPY data")),
                None => break,
            }
        }
        if last && matches!(self, Self::Header) {
            return Err(bad("COPY file signature not recognized"));
        }
        Ok(rows)
    }
}

enum BinaryRow {
    Fields(Fields),
    End,
}

/// Reads the header; `None` if it is incomplete.
fn read_header(rest: &mut &[u8]) -> Result<Option<()>, Failure> {
    let Some(signature) = take::<11>(rest) else { return Ok(None) };
    if signature != *SIGNATURE {
        return Err(bad("COPY file signature not recognized"));
    }
    let Some(flags) = take(rest).map(u32::from_be_bytes) else { return Ok(None) };
    if flags & CRITICAL != 0 {
        return Err(bad("unrecognized critical flags in COPY file header"));
    }
    let Some(extension) = take(rest).map(i32::from_be_bytes) else { return Ok(None) };
    let length = usize::try_from(extension);
    let length = length.map_err(|_| bad("invalid COPY file header (wrong length)"))?;
    Ok(split(rest, length).map(|_| ()))
}

/// Reads a row; `None` if it is incomplete.
fn read_row(rest: &mut &[u8], columns: usize) -> Result<Option<BinaryRow>, Failure> {
    let Some(count) = take(rest) else { return Ok(None) };
    if count == END {
        return Ok(Some(BinaryRow::End));
    }
    let count = i16::from_be_bytes(count);
    if usize::try_from(count) != Ok(columns) {
        return Err(bad(format!("row field count is {count}, expected {columns}")));
    }
    let mut fields = Vec::with_capacity(columns);
    for _ in 0..columns {
        let Some(length) = take(rest).map(i32::from_be_bytes) else { return Ok(None) };
        if length == -1 {
            fields.push(None);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| bad("invalid field size"))?;
        let Some(field) = split(rest, length) else { return Ok(None) };
        fields.push(Some(field.to_vec()));
    }
    Ok(Some(BinaryRow::Fields(fields)))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

fn bad(message: impl Into<Cow<'static, str>>) -> Failure {
    Failure::new(state::BAD_COPY, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rows: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        header(&mut file);
        file.extend_from_slice(rows);
        file
    }

    #[test]
    fn rows_come_in_pieces() {
        let file = file(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x02\0\0\0\0\0\0\0\x02bc\xff\xff");
        let (mut reader, mut kept, mut rows) = (BinaryReader::default(), Vec::new(), Vec::new());
        for byte in &file {
            kept.push(*byte);
            let mut rest = &kept[..];
            rows.extend(reader.rows(&mut rest, 2, false).unwrap());
            kept = rest.to_vec();
        }
        assert!(reader.rows(&mut &kept[..], 2, true).unwrap().is_empty());
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(rows, [[text("a"), None], [text(""), text("bc")]]);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        for (bytes, message) in [
            (&b"1\t2\n1\t2\n1\t2\n1\t2\n"[..], "COPY file signature not recognized"),
            (b"", "COPY file signature not recognized"),
            (b"PGCOPY", "unexpected EOF in COPY data"),
            (
                b"PGCOPY\n\xff\r\n\0\0\x01\0\0\0\0\0\0",
                "unrecognized critical flags in COPY file header",
            ),
            (&file(b"\0\x02\0\0\0\x01ab"), "unexpected EOF in COPY data"),
            (&file(b"\0\x03"), "row field count is 3, expected 2"),
            (&file(b"\0\x02\xff\xff\xff\xfe"), "invalid field size"),
            (&file(b"\xff\xff\0"), "received copy data after EOF marker"),
        ] {
            let refused = BinaryReader::default().rows(&mut &*bytes, 2, true).unwrap_err();
            assert_eq!((refused.sqlstate, &*refused.message), ("22P04", message));
        }
    }
}

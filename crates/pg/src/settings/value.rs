//! Values of settings: characters, which are bytes in some encoding.
//!
//! PostgreSQL keeps values in the encoding of the database, and converts those that it sends or
//! gets from and to the encoding of the client, which may change at any time. So Refrain keeps a
//! value in the encoding of the database: it asks for values in that form ([`READ`]), and a startup
//! packet has them so, since PostgreSQL converts nothing there. A value that PostgreSQL reports in
//! another encoding is kept as it is, with the name of the encoding behind it. A server gets values
//! in a form that no encoding of its session changes.
//!
//! All of this concerns values that are not ASCII. Names are treated alike.

use std::time::Duration;

use crate::settings::encoding::Encoding;

/// Stands between a value and the name of its encoding.
const MARK: u8 = 0;

/// The call by which Refrain asks for a value, before and behind the argument. The answer is ASCII,
/// whatever the encodings are; [`unescape`] undoes it.
pub(crate) const READ: (&[u8], &[u8]) =
    (b"pg_catalog.encode(pg_catalog.convert_to(", b",pg_catalog.getdatabaseencoding()),'escape')");

/// Returns the form in which a value is kept that came in the encoding of this name, from a session
/// in a database with the encoding `database`.
pub(crate) fn keep(value: &[u8], encoding: &[u8], database: Encoding) -> Box<[u8]> {
    if value.is_ascii() || Encoding::named(encoding).converts_nothing(database) {
        return value.into();
    }
    [value, &[MARK], encoding].concat().into()
}

/// Returns the bytes of a value as they came.
pub(crate) fn bytes(value: &[u8]) -> &[u8] {
    split(value).0
}

/// True if a value is kept in another encoding than the database's.
pub(crate) fn is_foreign(value: &[u8]) -> bool {
    split(value).1.is_some()
}

fn split(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    match value.iter().position(|byte| *byte == MARK) {
        Some(at) => (&value[..at], Some(&value[at + 1..])),
        None => (value, None),
    }
}

/// Undoes [`READ`].
pub(crate) fn unescape(escaped: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    out.into()
}

/// True if [`write()`] cannot write a value as a literal.
pub(crate) fn is_converted(value: &[u8], plain: bool) -> bool {
    !value.is_ascii() && (!plain || is_foreign(value))
}

/// Appends an expression for a value. It is a literal if the session reads it in the encoding of
/// the database (`plain`), or if it is ASCII.
pub(crate) fn write(out: &mut Vec<u8>, value: &[u8], plain: bool) {
    if !is_converted(value, plain) {
        return write_literal(out, value);
    }
    let (bytes, encoding) = split(value);
    out.extend_from_slice(b"pg_catalog.convert_from(pg_catalog.decode('");
    for byte in bytes {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).map_or(b'0', |it| it as u8);
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    out.extend_from_slice(b"','hex'),");
    match encoding {
        Some(encoding) => write_literal(out, encoding),
        None => out.extend_from_slice(b"pg_catalog.getdatabaseencoding()"),
    }
    out.push(b')');
}

/// Appends an expression for what PostgreSQL makes of an `application_name` in a startup packet
/// that is not valid text: it replaces each byte that is not ASCII, since version 16 by its number.
pub(crate) fn write_cleaned(out: &mut Vec<u8>, value: &[u8]) {
    let clean = |by: fn(u8) -> String| {
        let part = |byte: &u8| match byte.is_ascii() {
            true => char::from(*byte).to_string(),
            false => by(*byte),
        };
        value.iter().map(part).collect::<String>()
    };
    out.extend_from_slice(
        b"CASE WHEN pg_catalog.current_setting('server_version_num') OPERATOR(pg_catalog.<) \
        '160000' THEN ",
    );
    write_literal(out, clean(|_| "?".to_owned()).as_bytes());
    out.extend_from_slice(b" ELSE ");
    write_literal(out, clean(|byte| format!("\\x{byte:02x}")).as_bytes());
    out.extend_from_slice(b" END");
}

/// Returns the time that the value of a setting in milliseconds means, such as `1min`; `None` for
/// none at all, or for another way to write it than that of SHOW.
pub(crate) fn span(value: &[u8]) -> Option<Duration> {
    let value = str::from_utf8(value).ok()?.trim();
    let bare = value.ends_with(|c: char| c.is_ascii_digit());
    let unit = if bare { "ms" } else { "" };
    refrain_config::time(&format!("{value}{unit}")).filter(|span| !span.is_zero())
}

/// Appends a string literal that means the same whatever `standard_conforming_strings` says.
pub(crate) fn write_literal(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(if value.contains(&b'\\') { b" E'" } else { b"'" });
    for &byte in value {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &[u8], plain: bool) -> String {
        let mut out = Vec::new();
        write(&mut out, value, plain);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_is_kept_with_its_encoding() {
        let (utf8, ascii) = (Encoding::named(b"UTF8"), Encoding::named(b"SQL_ASCII"));
        assert_eq!(*keep(b"\xfc", b"LATIN1", utf8), *b"\xfc\0LATIN1");
        assert_eq!(bytes(b"\xfc\0LATIN1"), b"\xfc");
        for (value, encoding, database) in
            [("ü", "utf-8", utf8), ("u", "LATIN1", utf8), ("ü", "LATIN1", ascii)]
        {
            let kept = keep(value.as_bytes(), encoding.as_bytes(), database);
            assert_eq!(*kept, *value.as_bytes());
            assert!(!is_foreign(&kept));
        }
    }

    #[test]
    fn a_value_is_written_for_any_encoding_of_the_session() {
        assert_eq!(written(b"it's", false), "'it''s'");
        assert_eq!(written("ü".as_bytes(), true), "'ü'");
        assert_eq!(
            written("ü".as_bytes(), false),
            "pg_catalog.convert_from(pg_catalog.decode('c3bc','hex'),\
             pg_catalog.getdatabaseencoding())"
        );
        assert_eq!(
            written(b"\xfc\0LATIN1", true),
            "pg_catalog.convert_from(pg_catalog.decode('fc','hex'),'LATIN1')"
        );
    }

    #[test]
    fn a_span_has_a_unit_of_its_own() {
        let milliseconds = [
            ("0", None),
            ("1ms", Some(1)),
            ("200", Some(200)),
            (" 5 s ", Some(5000)),
            ("1min", Some(60_000)),
            ("2h", Some(7_200_000)),
            ("24d", Some(2_073_600_000)),
            ("1y", None),
            ("-1", None),
            ("99999999999999999999d", None),
            ("999999999999999999d", None),
        ];
        for (value, due) in milliseconds {
            assert_eq!(span(value.as_bytes()), due.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn what_is_read_is_unescaped() {
        assert_eq!(*unescape(b"a\\\\b\\303\\274"), *"a\\bü".as_bytes());
        assert_eq!(*unescape(b"plain"), *b"plain");
    }
}

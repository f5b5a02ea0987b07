//! Types of values, and where a value of a prepared statement's parameter ends.
//!
//! (MySQL, "enum_field_types" and "Binary Protocol Value"; MariaDB, "Result Set Packets", "Field
//! Types", and "COM_STMT_EXECUTE", "Binary Parameter Encoding".)

use crate::fields::Fields;

/// Types of columns and parameters. Flags of a parameter stand in the byte behind its type.
pub mod kind {
    /// The flag of an unsigned integer, in the byte behind a parameter's type.
    pub const UNSIGNED: u8 = 0x80;

    /// DECIMAL of servers before MySQL 5.0.
    pub const DECIMAL: u8 = 0x00;
    /// TINYINT.
    pub const TINY: u8 = 0x01;
    /// SMALLINT.
    pub const SHORT: u8 = 0x02;
    /// INT.
    pub const LONG: u8 = 0x03;
    /// FLOAT.
    pub const FLOAT: u8 = 0x04;
    /// DOUBLE.
    pub const DOUBLE: u8 = 0x05;
    /// NULL.
    pub const NULL: u8 = 0x06;
    /// TIMESTAMP.
    pub const TIMESTAMP: u8 = 0x07;
    /// BIGINT.
    pub const LONGLONG: u8 = 0x08;
    /// MEDIUMINT.
    pub const INT24: u8 = 0x09;
    /// DATE.
    pub const DATE: u8 = 0x0A;
    /// TIME.
    pub const TIME: u8 = 0x0B;
    /// DATETIME.
    pub const DATETIME: u8 = 0x0C;
    /// YEAR.
    pub const YEAR: u8 = 0x0D;
    /// VARCHAR, as a parameter.
    pub const VARCHAR: u8 = 0x0F;
    /// BIT.
    pub const BIT: u8 = 0x10;
    /// VECTOR (MySQL).
    pub const VECTOR: u8 = 0xF2;
    /// JSON.
    pub const JSON: u8 = 0xF5;
    /// DECIMAL.
    pub const NEWDECIMAL: u8 = 0xF6;
    /// ENUM.
    pub const ENUM: u8 = 0xF7;
    /// SET.
    pub const SET: u8 = 0xF8;
    /// TINYBLOB.
    pub const TINY_BLOB: u8 = 0xF9;
    /// MEDIUMBLOB.
    pub const MEDIUM_BLOB: u8 = 0xFA;
    /// LONGBLOB.
    pub const LONG_BLOB: u8 = 0xFB;
    /// BLOB and TEXT.
    pub const BLOB: u8 = 0xFC;
    /// VARCHAR, as a column.
    pub const VAR_STRING: u8 = 0xFD;
    /// CHAR.
    pub const STRING: u8 = 0xFE;
    /// Geometry.
    pub const GEOMETRY: u8 = 0xFF;
}

/// The length of a value of some type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// As many bytes.
    Fixed(usize),
    /// As many as the byte in front of it says.
    Byte,
    /// As many as the length-encoded integer in front of it says.
    Encoded,
}

/// Returns the length of values of a type; `None` if there is no such type.
fn length(of: u8) -> Option<Length> {
    Some(match of {
        kind::NULL => Length::Fixed(0),
        kind::TINY => Length::Fixed(1),
        kind::SHORT | kind::YEAR => Length::Fixed(2),
        kind::LONG | kind::INT24 | kind::FLOAT => Length::Fixed(4),
        kind::LONGLONG | kind::DOUBLE => Length::Fixed(8),
        kind::DATE | kind::TIME | kind::DATETIME | kind::TIMESTAMP => Length::Byte,
        kind::DECIMAL | kind::VARCHAR | kind::BIT | kind::VECTOR | kind::JSON.. => Length::Encoded,
        _ => return None,
    })
}

/// Splits a value off the front of `bytes`, with its length; `None` if it is incomplete or of no
/// known type.
pub fn split(of: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields(bytes);
    match length(of)? {
        Length::Fixed(count) => fields.bytes(count)?,
        Length::Byte => {
            let count = fields.u8()?;
            fields.bytes(usize::from(count))?
        }
        Length::Encoded => fields.string()?,
    };
    bytes.split_at_checked(bytes.len() - fields.rest().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_its_type_says() {
        let cases: [(u8, &[u8], usize); 6] = [
            (kind::LONG, b"\x01\0\0\0x", 4),
            (kind::NULL, b"x", 0),
            (kind::DATETIME, b"\x04\xda\x07\x0a\x11x", 5),
            (kind::DATETIME, b"\0x", 1),
            (kind::VAR_STRING, b"\x03foox", 4),
            (kind::NEWDECIMAL, b"\x031.5x", 4),
        ];
        for (of, bytes, length) in cases {
            let (value, rest) = split(of, bytes).expect("a value");
            assert_eq!((value.len(), rest), (length, &b"x"[..]));
            for cut in 0..length {
                assert_eq!(split(of, &bytes[..cut]), None, "{of} cut at {cut}");
            }
        }
        assert_eq!(split(0x20, b"abc"), None);
    }
}

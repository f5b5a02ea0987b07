//! Definitions of columns and parameters.

use crate::Malformed;
use crate::capability::Capabilities;
use crate::fields::{Fields, put_integer, put_string};

/// Bytes of the fields of fixed length.
const FIXED_BYTES: u64 = 12;
/// The catalog that every column has.
const CATALOG: &[u8] = b"def";

/// The definition of a column or parameter (MySQL, "Column Definition" of "Text Resultset";
/// MariaDB, "Result Set Packets", "Column Definition Packet").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// The table's database.
    pub schema: &'a [u8],
    /// The table, by its name in the query.
    pub table: &'a [u8],
    /// The table's own name.
    pub org_table: &'a [u8],
    /// The column, by its name in the query.
    pub name: &'a [u8],
    /// The column's own name.
    pub org_name: &'a [u8],
    /// MariaDB's name of the type, under [`Capabilities::EXTENDED_METADATA`].
    pub extended: &'a [u8],
    /// The collation's id; 63 for bytes.
    pub collation: u16,
    /// The most bytes of a value.
    pub length: u32,
    /// The type; see [`crate::value`].
    pub kind: u8,
    /// Flags, such as NOT NULL and UNSIGNED.
    pub flags: u16,
    /// Digits behind the point.
    pub decimals: u8,
    /// The default value, which COM_FIELD_LIST alone has. It is not read: bytes behind the fields
    /// of fixed length.
    pub default: &'a [u8],
}

impl<'a> ColumnDefinition<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// A payload that ends before its fields do.
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        Self::fields(payload, capabilities).ok_or(Malformed::new("column definition"))
    }

    fn fields(payload: &'a [u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields(payload);
        fields.string()?;
        let mut column = Self {
            schema: fields.string()?,
            table: fields.string()?,
            org_table: fields.string()?,
            name: fields.string()?,
            org_name: fields.string()?,
            ..Self::default()
        };
        if capabilities.has(Capabilities::EXTENDED_METADATA) {
            column.extended = fields.string()?;
        }
        let mut fixed = Fields(fields.string()?);
        column.collation = fixed.u16()?;
        column.length = fixed.u32()?;
        column.kind = fixed.u8()?;
        column.flags = fixed.u16()?;
        column.decimals = fixed.u8()?;
        column.default = fields.rest();
        Some(column)
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        for text in [CATALOG, self.schema, self.table, self.org_table, self.name, self.org_name] {
            put_string(out, text);
        }
        if capabilities.has(Capabilities::EXTENDED_METADATA) {
            put_string(out, self.extended);
        }
        put_integer(out, FIXED_BYTES);
        out.extend_from_slice(&self.collation.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.kind);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&[self.decimals, 0, 0]);
        out.extend_from_slice(self.default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::kind;

    #[test]
    fn a_definition_as_in_the_manual() {
        let payload =
            b"\x03def\x00\x00\x00\x01?\x00\x0c\x3f\x00\x00\x00\x00\x00\xfd\x80\x00\x00\x00\x00";
        let column = ColumnDefinition::read(payload, Capabilities::NONE).expect("a definition");
        let due = ColumnDefinition {
            name: b"?",
            collation: 63,
            kind: kind::VAR_STRING,
            flags: 0x80,
            ..ColumnDefinition::default()
        };
        assert_eq!(column, due);
        let mut out = Vec::new();
        column.write(&mut out, Capabilities::NONE);
        assert_eq!(out, payload);
    }

    #[test]
    fn a_definition_of_mariadb_may_have_one_more_string() {
        let column =
            ColumnDefinition { name: b"j", extended: b"\x01\x04json", ..Default::default() };
        let mut out = Vec::new();
        column.write(&mut out, Capabilities::EXTENDED_METADATA);
        assert_eq!(ColumnDefinition::read(&out, Capabilities::EXTENDED_METADATA), Ok(column));
        assert!(ColumnDefinition::read(&out, Capabilities::NONE).is_err());
    }
}

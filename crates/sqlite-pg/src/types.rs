//! PostgreSQL's types that Refrain has, and the types of SQLite's declarations.
//!
//! A column of a statement has one static type, the same in every message about it: the declared
//! type of the column, else the type of its expression, else text.

use crate::enums::EnumType;

/// A type of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Bool,
    Bytea,
    Char,
    Name,
    Int8,
    Int2,
    Int4,
    Text,
    Oid,
    Json,
    Float4,
    Float8,
    Unknown,
    Bpchar,
    Varchar,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Numeric,
    Interval,
    Uuid,
    Jsonb,
    Void,
    Regproc,
    Regprocedure,
    Regclass,
    Regtype,
    Regnamespace,
    BoolArray,
    CharArray,
    NameArray,
    Int2Array,
    Int4Array,
    TextArray,
    BpcharArray,
    VarcharArray,
    Int8Array,
    Float4Array,
    Float8Array,
    OidArray,
    UuidArray,
    DateArray,
    TimeArray,
    TimestampArray,
    TimestamptzArray,
    IntervalArray,
    JsonArray,
    JsonbArray,
    Int2Vector,
    OidVector,
    AclitemArray,
    /// A type that CREATE TYPE … AS ENUM has made.
    Enum(EnumType),
    /// Arrays of it.
    EnumArray(EnumType),
}

/// A row of [`TYPES`].
struct TypeRow {
    is: Type,
    oid: u32,
    /// The size of a value in bytes, or -1 if it varies (`pg_type.typlen`).
    size: i16,
    /// Its names in casts, in lower case: first `pg_type.typname`, then its name in SQL, if there
    /// is one.
    names: &'static [&'static str],
}

const fn row(is: Type, oid: u32, size: i16, names: &'static [&'static str]) -> TypeRow {
    TypeRow { is, oid, size, names }
}

/// OIDs and sizes as in `pg_type.dat`.
const TYPES: &[TypeRow] = &[
    row(Type::Bool, 16, 1, &["bool", "boolean"]),
    row(Type::Bytea, 17, -1, &["bytea"]),
    row(Type::Char, 18, 1, &["\"char\""]),
    row(Type::Name, 19, 64, &["name"]),
    row(Type::Int8, 20, 8, &["int8", "bigint", "bigserial", "serial8"]),
    row(Type::Int2, 21, 2, &["int2", "smallint", "smallserial", "serial2"]),
    row(Type::Int4, 23, 4, &["int4", "integer", "int", "serial", "serial4"]),
    row(Type::Text, 25, -1, &["text"]),
    row(Type::Oid, 26, 4, &["oid"]),
    row(Type::Json, 114, -1, &["json"]),
    row(Type::Float4, 700, 4, &["float4", "real"]),
    row(Type::Float8, 701, 8, &["float8", "double precision", "float"]),
    row(Type::Unknown, 705, -2, &["unknown"]),
    row(Type::Bpchar, 1042, -1, &["bpchar", "character", "char"]),
    row(Type::Varchar, 1043, -1, &["varchar", "character varying"]),
    row(Type::Date, 1082, 4, &["date"]),
    row(Type::Time, 1083, 8, &["time", "time without time zone"]),
    row(Type::Timestamp, 1114, 8, &["timestamp", "timestamp without time zone"]),
    row(Type::Timestamptz, 1184, 8, &["timestamptz", "timestamp with time zone"]),
    row(Type::Numeric, 1700, -1, &["numeric", "numeric", "decimal"]),
    row(Type::Interval, 1186, 16, &["interval"]),
    row(Type::Uuid, 2950, 16, &["uuid"]),
    row(Type::Jsonb, 3802, -1, &["jsonb"]),
    row(Type::Void, 2278, 4, &["void"]),
    row(Type::Regproc, 24, 4, &["regproc"]),
    row(Type::Regclass, 2205, 4, &["regclass"]),
    row(Type::Regtype, 2206, 4, &["regtype"]),
    row(Type::Regnamespace, 4089, 4, &["regnamespace"]),
    row(Type::BoolArray, 1000, -1, &["_bool", "boolean[]"]),
    row(Type::CharArray, 1002, -1, &["_char", r#""char"[]"#]),
    row(Type::NameArray, 1003, -1, &["_name", "name[]"]),
    row(Type::Int2Array, 1005, -1, &["_int2", "smallint[]"]),
    row(Type::Int4Array, 1007, -1, &["_int4", "integer[]"]),
    row(Type::TextArray, 1009, -1, &["_text", "text[]"]),
    row(Type::BpcharArray, 1014, -1, &["_bpchar", "character[]"]),
    row(Type::VarcharArray, 1015, -1, &["_varchar", "character varying[]"]),
    row(Type::Int8Array, 1016, -1, &["_int8", "bigint[]"]),
    row(Type::Float4Array, 1021, -1, &["_float4", "real[]"]),
    row(Type::Float8Array, 1022, -1, &["_float8", "double precision[]"]),
    row(Type::OidArray, 1028, -1, &["_oid", "oid[]"]),
    row(Type::UuidArray, 2951, -1, &["_uuid", "uuid[]"]),
    row(Type::DateArray, 1182, -1, &["_date", "date[]"]),
    row(Type::TimeArray, 1183, -1, &["_time", "time[]"]),
    row(Type::TimestampArray, 1115, -1, &["_timestamp", "timestamp without time zone[]"]),
    row(Type::TimestamptzArray, 1185, -1, &["_timestamptz", "timestamp with time zone[]"]),
    row(Type::IntervalArray, 1187, -1, &["_interval", "interval[]"]),
    row(Type::JsonArray, 199, -1, &["_json", "json[]"]),
    row(Type::JsonbArray, 3807, -1, &["_jsonb", "jsonb[]"]),
    row(Type::Int2Vector, 22, -1, &["int2vector"]),
    row(Type::OidVector, 30, -1, &["oidvector"]),
    row(Type::AclitemArray, 1034, -1, &["_aclitem", "aclitem[]"]),
    row(Type::Regprocedure, 2202, 4, &["regprocedure"]),
];

/// Array types with the types of their elements. Values are kept as arrays of JSON.
const ARRAYS: &[(Type, Type)] = &[
    (Type::BoolArray, Type::Bool),
    (Type::CharArray, Type::Char),
    (Type::NameArray, Type::Name),
    (Type::Int2Array, Type::Int2),
    (Type::Int4Array, Type::Int4),
    (Type::TextArray, Type::Text),
    (Type::BpcharArray, Type::Bpchar),
    (Type::VarcharArray, Type::Varchar),
    (Type::Int8Array, Type::Int8),
    (Type::Float4Array, Type::Float4),
    (Type::Float8Array, Type::Float8),
    (Type::OidArray, Type::Oid),
    (Type::UuidArray, Type::Uuid),
    (Type::DateArray, Type::Date),
    (Type::TimeArray, Type::Time),
    (Type::TimestampArray, Type::Timestamp),
    (Type::TimestamptzArray, Type::Timestamptz),
    (Type::IntervalArray, Type::Interval),
    (Type::JsonArray, Type::Json),
    (Type::JsonbArray, Type::Jsonb),
    (Type::Int2Vector, Type::Int2),
    (Type::OidVector, Type::Oid),
    (Type::AclitemArray, Type::Text),
];

/// Types by words in a declaration. The first row that fits counts, so longer words stand before
/// the shorter ones that they contain. Columns without a known word are text.
const DECLARED: &[(&str, Type)] = &[
    ("TIMESTAMPTZ", Type::Timestamptz),
    ("TIMESTAMP WITH TIME ZONE", Type::Timestamptz),
    ("TIMESTAMP", Type::Timestamp),
    ("DATETIME", Type::Timestamp),
    ("JSONB", Type::Jsonb),
    ("JSON", Type::Json),
    ("NAME", Type::Name),
    ("BIGINT", Type::Int8),
    ("BIG INT", Type::Int8),
    ("INT8", Type::Int8),
    ("BIGSERIAL", Type::Int8),
    ("SMALLINT", Type::Int2),
    ("INT2", Type::Int2),
    ("SMALLSERIAL", Type::Int2),
    ("INT", Type::Int4),
    ("SERIAL", Type::Int4),
    ("BOOL", Type::Bool),
    ("FLOAT4", Type::Float4),
    ("REAL", Type::Float8),
    ("FLOA", Type::Float8),
    ("DOUB", Type::Float8),
    ("NUMERIC", Type::Float8),
    ("DECIMAL", Type::Float8),
    ("VARCHAR", Type::Varchar),
    ("VARYING", Type::Varchar),
    ("CHAR", Type::Bpchar),
    ("CLOB", Type::Text),
    ("TEXT", Type::Text),
    ("BLOB", Type::Bytea),
    ("BYTEA", Type::Bytea),
    ("DATE", Type::Date),
    ("TIME", Type::Time),
    ("UUID", Type::Uuid),
    ("OID", Type::Oid),
];

impl Type {
    fn row(self) -> &'static TypeRow {
        // Every type but enums has a row; a test checks that. The fallback avoids a panic.
        TYPES.iter().find(|row| row.is == self).unwrap_or(&TYPES[0])
    }

    /// Returns the type with this OID.
    pub(crate) fn of_oid(oid: u32) -> Option<Self> {
        TYPES.iter().find(|row| row.oid == oid).map(|row| row.is)
    }

    /// Returns the type of this name, in any case and without its modifier.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let known = |row: &&TypeRow| row.names.iter().any(|known| known.eq_ignore_ascii_case(name));
        TYPES.iter().find(known).map(|row| row.is)
    }

    /// Returns the type of this name in a cast or a column, as the grammar gives it.
    pub(crate) fn catalog_named(name: &str) -> Option<Self> {
        let serial = name.contains("serial");
        Self::named(name).filter(|_| !serial && name == name.to_ascii_lowercase())
    }

    /// Returns `pg_type.typname`.
    pub(crate) fn catalog_name(self) -> &'static str {
        if let Self::Enum(of) | Self::EnumArray(of) = self {
            return of.own_name();
        }
        self.row().names.first().map_or("", |name| name.trim_matches('"'))
    }

    /// Returns the name that a cast to it gives a column: that of an array's elements.
    pub(crate) fn written_name(self) -> &'static str {
        self.element().filter(|_| !self.is_vector()).unwrap_or(self).catalog_name()
    }

    /// Returns the declaration of a column of this type in an SQLite file: [`Type::declared`] reads
    /// it back, and SQLite stores the values unchanged.
    pub(crate) fn declaration(self, limit: Option<u32>) -> String {
        let word = match self {
            Self::Bool => "BOOLEAN",
            Self::Bytea => "BYTEA",
            Self::Int8 => "BIGINT",
            Self::Int2 => "SMALLINT",
            Self::Int4 => "INTEGER",
            Self::Json => "JSON TEXT",
            Self::Jsonb => "JSONB TEXT",
            Self::Float4 => "FLOAT4",
            Self::Float8 => "DOUBLE PRECISION",
            Self::Bpchar => "CHAR",
            Self::Varchar => "VARCHAR",
            Self::Date => "DATE",
            Self::Time => "TIME",
            Self::Timestamp => "TIMESTAMP",
            Self::Timestamptz => "TIMESTAMPTZ",
            Self::Uuid => "UUID",
            Self::Name => "NAME TEXT",
            is if is == Self::Oid || is.is_reg() => "OID",
            Self::Enum(of) => return of.declaration(false),
            Self::EnumArray(of) => return of.declaration(true),
            is if is.element().is_some() => return format!("{} TEXT", is.catalog_name()),
            _ => "TEXT",
        };
        limit.map_or(word.to_owned(), |limit| format!("{word}({limit})"))
    }

    /// Returns the type of a declaration.
    pub(crate) fn declared(declaration: &str) -> Self {
        if declaration.starts_with('_')
            && let Some(array) = declaration.split(' ').next().and_then(Self::named)
        {
            return array;
        }
        let declaration = declaration.to_ascii_uppercase();
        let row = DECLARED.iter().find(|(word, _)| declaration.contains(word));
        row.map_or(Self::Text, |(_, is)| *is)
    }

    /// Returns a word that no other type has.
    pub(crate) fn mark(self) -> String {
        match self {
            Self::Enum(_) | Self::EnumArray(_) => format!("#{}", self.oid()),
            is => char::from(is.letter()).to_string(),
        }
    }

    /// Returns a letter that no other type with a row has.
    pub(crate) fn letter(self) -> u8 {
        let place = TYPES.iter().position(|row| row.is == self).unwrap_or(0);
        let place = u8::try_from(place).unwrap_or(0);
        if place < 26 { b'a' + place } else { b'A' + place - 26 }
    }

    /// Returns the type of its elements, if it is an array or a vector.
    pub(crate) fn element(self) -> Option<Self> {
        match self {
            Self::EnumArray(of) => Some(Self::Enum(of)),
            is => ARRAYS.iter().find(|(array, _)| *array == is).map(|(_, element)| *element),
        }
    }

    /// Returns the type of arrays of it.
    pub(crate) fn array(self) -> Option<Self> {
        match self {
            Self::Enum(of) => Some(Self::EnumArray(of)),
            is => ARRAYS.iter().find(|(_, element)| *element == is).map(|(array, _)| *array),
        }
    }

    /// True for arrays of the catalog alone.
    pub(crate) fn is_vector(self) -> bool {
        matches!(self, Self::Int2Vector | Self::OidVector | Self::AclitemArray)
    }

    /// True if arrays of it are equal if their texts are, so that columns may have their type.
    pub(crate) fn is_equal_by_text(self) -> bool {
        let number = self.is_integer() || matches!(self, Self::Float4 | Self::Float8 | Self::Bool);
        let moment = matches!(self, Self::Date | Self::Time | Self::Timestamp | Self::Timestamptz);
        let text =
            matches!(self, Self::Text | Self::Varchar | Self::Name | Self::Uuid | Self::Enum(_));
        number && !self.is_reg() || moment || text
    }

    /// Returns the subscript of the first element: vectors of the catalog count from 0.
    pub(crate) fn first_subscript(self) -> u8 {
        u8::from(!self.is_vector() || self == Self::AclitemArray)
    }

    /// True if its values are OIDs that print as the name of an object.
    pub(crate) fn is_reg(self) -> bool {
        matches!(
            self,
            Self::Regproc
                | Self::Regprocedure
                | Self::Regclass
                | Self::Regtype
                | Self::Regnamespace
        )
    }

    /// Returns its OID.
    pub(crate) fn oid(self) -> u32 {
        match self {
            Self::Enum(of) => of.oid(),
            Self::EnumArray(of) => of.array_oid(),
            is => is.row().oid,
        }
    }

    /// Returns its size in bytes, or -1 if it varies.
    pub(crate) fn size(self) -> i16 {
        match self {
            Self::Enum(_) => 4,
            Self::EnumArray(_) => -1,
            is => is.row().size,
        }
    }

    /// Returns its name for a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Enum(of) => return of.name(),
            Self::EnumArray(of) => return of.array_name(),
            _ => {}
        }
        let names = self.row().names;
        names.get(1).or(names.first()).copied().unwrap_or_default()
    }

    /// Returns every type, for `pg_type`.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TYPES.iter().map(|row| row.is)
    }

    /// True if it is the same type and, for an enum, has the same labels.
    pub(crate) fn is_unchanged(self, other: Self) -> bool {
        match (self, other) {
            (Self::Enum(one), Self::Enum(other))
            | (Self::EnumArray(one), Self::EnumArray(other)) => one.is_unchanged(other),
            (one, other) => one == other,
        }
    }

    /// True if its values are integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid) || self.is_reg()
    }

    /// True if its values are any text.
    pub(crate) fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Varchar | Self::Bpchar | Self::Name | Self::Char | Self::Unknown
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_row() {
        for row in TYPES {
            assert_eq!(row.is.oid(), row.oid);
            assert_eq!(Type::of_oid(row.oid), Some(row.is));
            for name in row.names {
                assert_eq!(Type::named(&name.to_uppercase()), Some(row.is), "{name}");
            }
        }
        assert_eq!(Type::all().count(), TYPES.len());
    }

    #[test]
    fn declarations_as_people_write_them() {
        for (declared, is) in [
            ("INTEGER", Type::Int4),
            ("bigserial", Type::Int8),
            ("varchar(20)", Type::Varchar),
            ("boolean", Type::Bool),
            ("double precision", Type::Float8),
            ("DECIMAL(10,2)", Type::Float8),
            ("timestamp with time zone", Type::Timestamptz),
            ("timestamp", Type::Timestamp),
            ("DATETIME", Type::Timestamp),
            ("date", Type::Date),
            ("jsonb", Type::Jsonb),
            ("", Type::Text),
            ("STRANGE", Type::Text),
            ("_int4 TEXT", Type::Int4Array),
            ("_strange INT", Type::Int4),
        ] {
            assert_eq!(Type::declared(declared), is, "{declared}");
        }
    }
}

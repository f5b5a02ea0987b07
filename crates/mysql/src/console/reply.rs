//! Replies of the console: parts of what the program says, and the packets that they become.
//!
//! A column has the type that all its values fit, so that a row in binary form has no value that
//! its column could not hold. Each reply repeats the types, as servers do.

use refrain_mysql_wire::column::ColumnDefinition;
use refrain_mysql_wire::error_code::ErrorCode;
use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::{EofPacket, Head, OkPacket, first};
use refrain_mysql_wire::row::{self, Binary};
use refrain_mysql_wire::value::kind;
use refrain_mysql_wire::{Capabilities, Status, error_code, packet};

use crate::errors;

/// The most bytes of a command.
pub(crate) const COMMAND_BYTES_MAX: u32 = 64 * 1024;

/// The collation of the console's texts: utf8mb4_general_ci.
const UTF8: u16 = 45;
/// The collation of numbers: binary.
const BINARY: u16 = 63;
/// The flag of a column whose values are bytes, as numbers have it.
const BINARY_FLAG: u16 = 0x80;
/// The number of decimals of a column that may have any number of them.
const ANY_DECIMALS: u8 = 31;

/// The form in which a client needs a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The part of the reply that it needs.
    pub wanted: Needed,
    /// The capabilities of the session.
    pub capabilities: Capabilities,
    /// Whether a text may have several commands.
    pub has_several: bool,
}

/// The part of the reply that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Everything, with rows as texts.
    Text,
    /// Everything, with rows in binary form.
    Binary,
    /// The columns of the rows. The command takes no effect.
    Columns,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyPart {
    /// Rows.
    Rows(Rows),
    /// A command without rows has been carried out; what else is to be said of it.
    Done(String),
    /// A command is refused: the error, and its words.
    Refused(ErrorCode, String),
}

/// Rows of values in words, `None` for NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The kind of the values.
    pub kind: ValueKind,
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Words.
    Text,
    /// Whole numbers of four bytes.
    Long,
    /// Whole numbers of eight bytes.
    LongLong,
    /// Numbers of any size.
    Decimal,
    /// Numbers with a floating point.
    Double,
}

/// The reply to a command.
#[derive(Debug, PartialEq, Eq)]
pub enum ConsoleReply {
    /// Packets, from the sequence id 1 on.
    Packets(Vec<u8>),
    /// The columns of a command that is to be prepared.
    Columns(Vec<Column>),
}

/// The errors of MySQL for those of the console, which have PostgreSQL's SQLSTATEs.
const ERRORS: &[(&str, ErrorCode)] = &[
    // no_data: no client has the number.
    ("02000", error_code::NO_SUCH_THREAD),
    ("0A000", error_code::NOT_SUPPORTED_YET),
    // invalid_parameter_value, invalid_text_representation
    ("22023", error_code::WRONG_VALUE_FOR_VAR),
    ("22P02", error_code::WRONG_ARGUMENTS),
    // invalid_catalog_name
    ("3D000", error_code::BAD_DB),
    // insufficient_privilege, syntax_error, undefined_object, undefined_table
    ("42501", error_code::SPECIFIC_ACCESS_DENIED),
    ("42601", error_code::PARSE),
    ("42704", error_code::UNKNOWN_SYSTEM_VARIABLE),
    ("42P01", error_code::NO_SUCH_TABLE),
    // cant_change_runtime_param
    ("55P02", error_code::INCORRECT_GLOBAL_LOCAL_VAR),
    // query_canceled, admin_shutdown
    ("57014", error_code::QUERY_INTERRUPTED),
    ("57P01", error_code::SERVER_SHUTDOWN),
];

impl ReplyPart {
    /// Makes the error that stands for one with PostgreSQL's SQLSTATE.
    pub fn refused(sqlstate: &str, words: String) -> Self {
        let known = ERRORS.iter().find(|(its, _)| *its == sqlstate);
        Self::Refused(known.map_or(error_code::UNKNOWN, |(_, code)| *code), words)
    }

    /// Makes the error of a text without a command.
    pub fn empty() -> Self {
        Self::Refused(error_code::EMPTY_QUERY, "Query was empty".to_owned())
    }
}

impl ValueKind {
    /// Returns the number of the type, and that of the decimals.
    fn type_of(self) -> (u8, u8) {
        match self {
            Self::Text => (kind::VAR_STRING, 0),
            Self::Long => (kind::LONG, 0),
            Self::LongLong => (kind::LONGLONG, 0),
            Self::Decimal => (kind::NEWDECIMAL, 0),
            Self::Double => (kind::DOUBLE, ANY_DECIMALS),
        }
    }

    /// Returns the greatest length of a value as text, in bytes.
    fn length(self) -> u32 {
        match self {
            Self::Text => 65_535,
            Self::Long => 11,
            Self::LongLong => 20,
            Self::Decimal => 66,
            Self::Double => 22,
        }
    }

    /// Returns a value in binary form; `None` if it is none of this kind.
    fn binary(self, value: &str) -> Option<Binary<'_>> {
        Some(match self {
            Self::Text => Binary::String(value.as_bytes()),
            Self::Long => Binary::Long(value.parse().ok()?),
            Self::LongLong => Binary::LongLong(value.parse().ok()?),
            Self::Decimal => {
                let digits = value.strip_prefix('-').unwrap_or(value);
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                let points = digits.bytes().filter(|byte| *byte == b'.').count();
                let is_decimal = is_number && points <= 1 && digits.len() > points;
                is_decimal.then_some(Binary::String(value.as_bytes()))?
            }
            Self::Double => Binary::Double(value.parse().ok()?),
        })
    }

    /// Returns the kinds in whose place a value can stand that is none of this kind, in order.
    fn wider(self) -> &'static [Self] {
        match self {
            Self::Long => &[Self::LongLong, Self::Decimal, Self::Text],
            Self::LongLong | Self::Double => &[Self::Decimal, Self::Text],
            Self::Decimal => &[Self::Text],
            Self::Text => &[],
        }
    }
}

impl Rows {
    /// Returns the kind of a column that all values fit.
    fn kind(&self, column: usize) -> ValueKind {
        let declared = self.columns[column].kind;
        let values = || self.rows.iter().filter_map(|row| row.get(column)?.as_deref());
        let fits = |kind: &ValueKind| values().all(|value| kind.binary(value).is_some());
        let kinds = [declared].into_iter().chain(declared.wider().iter().copied());
        kinds.clone().find(fits).unwrap_or(ValueKind::Text)
    }
}

impl Column {
    fn definition(&self, kind: ValueKind) -> ColumnDefinition<'_> {
        let (number, decimals) = kind.type_of();
        let is_text = kind == ValueKind::Text;
        ColumnDefinition {
            name: self.name.as_bytes(),
            collation: if is_text { UTF8 } else { BINARY },
            length: kind.length(),
            kind: number,
            flags: if is_text { 0 } else { BINARY_FLAG },
            decimals,
            ..ColumnDefinition::default()
        }
    }
}

/// Returns a reply in the form that a client needs.
pub fn in_form(parts: &[ReplyPart], form: &Form) -> ConsoleReply {
    let columns = || {
        parts.iter().find_map(|part| match part {
            ReplyPart::Rows(rows) => Some(rows.columns.clone()),
            ReplyPart::Done(_) | ReplyPart::Refused(..) => None,
        })
    };
    let is_refused = parts.iter().any(|part| matches!(part, ReplyPart::Refused(..)));
    if form.wanted == Needed::Columns && !is_refused {
        return ConsoleReply::Columns(columns().unwrap_or_default());
    }
    let mut writer = Writer { out: Vec::new(), sequence: 1, form };
    for (at, part) in parts.iter().enumerate() {
        // A refused PREPARE has its error alone.
        if form.wanted != Needed::Columns || matches!(part, ReplyPart::Refused(..)) {
            writer.part(part, at + 1 < parts.len());
        }
    }
    ConsoleReply::Packets(writer.out)
}

/// Appends the reply to a PREPARE.
pub(crate) fn prepared(
    out: &mut Vec<u8>,
    number: u32,
    columns: &[Column],
    capabilities: Capabilities,
) {
    let head = PrepareOk {
        statement: number,
        columns: columns.len() as u16,
        parameters: 0,
        warnings: 0,
        defined: true,
    };
    let mut sequence = packet::message(out, 1, |out| head.write(out, capabilities));
    for column in columns {
        let definition = column.definition(column.kind);
        sequence = packet::message(out, sequence, |out| definition.write(out, capabilities));
    }
    if !columns.is_empty() && !capabilities.has(Capabilities::DEPRECATE_EOF) {
        let eof = EofPacket { warnings: 0, status: Status::AUTOCOMMIT };
        packet::message(out, sequence, |out| eof.write(out));
    }
}

/// A reply while it is written.
struct Writer<'a> {
    out: Vec<u8>,
    sequence: u8,
    form: &'a Form,
}

impl Writer<'_> {
    fn part(&mut self, part: &ReplyPart, has_more: bool) {
        let more = if has_more { Status::MORE_RESULTS_EXISTS } else { Status(0) };
        let status = Status::AUTOCOMMIT.with(more);
        match part {
            ReplyPart::Rows(rows) => self.rows(rows, status),
            ReplyPart::Done(info) => {
                let ok = OkPacket { status, info: info.as_bytes(), ..OkPacket::default() };
                let capabilities = self.form.capabilities;
                self.packet(|out| ok.write(out, first::OK, capabilities));
            }
            ReplyPart::Refused(code, words) => {
                self.sequence =
                    errors::write(&mut self.out, self.sequence, *code, words.as_bytes());
            }
        }
    }

    fn rows(&mut self, rows: &Rows, status: Status) {
        let capabilities = self.form.capabilities;
        let kinds: Vec<ValueKind> =
            (0..rows.columns.len()).map(|column| rows.kind(column)).collect();
        let head = Head::Columns { count: kinds.len() as u64, defined: true };
        self.packet(|out| head.write(out, capabilities));
        for (column, kind) in rows.columns.iter().zip(&kinds) {
            let definition = column.definition(*kind);
            self.packet(|out| definition.write(out, capabilities));
        }
        let is_short = !capabilities.has(Capabilities::DEPRECATE_EOF);
        if is_short {
            self.packet(|out| EofPacket { warnings: 0, status }.write(out));
        }
        for row in &rows.rows {
            let values = row.iter().map(Option::as_deref);
            if self.form.wanted == Needed::Binary {
                let values = values.zip(&kinds);
                let values: Vec<_> = values.map(|(value, kind)| kind.binary(value?)).collect();
                self.packet(|out| row::write_binary(out, &values));
            } else {
                let bytes = values.map(|value| value.map(str::as_bytes));
                self.packet(|out| row::write_text(out, bytes));
            }
        }
        if is_short {
            return self.packet(|out| EofPacket { warnings: 0, status }.write(out));
        }
        let end = OkPacket { status, ..OkPacket::default() };
        self.packet(|out| end.write(out, first::EOF, capabilities));
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = packet::message(&mut self.out, self.sequence, fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Capabilities = Capabilities::PROTOCOL_41;

    fn form(wanted: Needed, capabilities: Capabilities) -> Form {
        Form { wanted, capabilities, has_several: false }
    }

    fn rows(kind: ValueKind, values: &[Option<&str>]) -> ReplyPart {
        let columns = vec![Column { name: "n".to_owned(), kind }];
        let row = |value: &Option<&str>| vec![value.map(str::to_owned)];
        ReplyPart::Rows(Rows { columns, rows: values.iter().map(row).collect() })
    }

    fn packets(parts: &[ReplyPart], form: Form) -> Vec<(u8, Vec<u8>)> {
        let ConsoleReply::Packets(bytes) = in_form(parts, &form) else { panic!("no packets") };
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while let Some(one) = packet::split(rest) {
            found.push((one.header.sequence, one.payload.to_vec()));
            rest = one.rest;
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn rows_come_between_definitions_and_an_end() {
        let reply = [rows(ValueKind::LongLong, &[Some("5"), None])];
        let old = packets(&reply, form(Needed::Text, SHORT));
        let ids: Vec<u8> = old.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
        let definition = ColumnDefinition::read(&old[1].1, SHORT).expect("a definition");
        assert_eq!((definition.name, definition.kind), (&b"n"[..], kind::LONGLONG));
        let payloads: Vec<&[u8]> = old.iter().map(|(_, payload)| &payload[..]).collect();
        let eof = b"\xfe\0\0\x02\0";
        assert_eq!((payloads[0], payloads[2], payloads[5]), (&b"\x01"[..], &eof[..], &eof[..]));
        assert_eq!((payloads[3], payloads[4]), (&b"\x015"[..], &b"\xfb"[..]));
        let new = packets(&reply, form(Needed::Binary, SHORT | Capabilities::DEPRECATE_EOF));
        assert_eq!(new[2].1, b"\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(new[3].1, b"\0\x04");
        assert_eq!(new[4].1, b"\xfe\0\0\x02\0\0\0");
        assert_eq!(new.len(), 5);
    }

    #[test]
    fn errors_have_numbers_of_mysql() {
        let number = |sqlstate: &str| match ReplyPart::refused(sqlstate, String::new()) {
            ReplyPart::Refused(code, _) => code.number,
            other => panic!("{other:?}"),
        };
        assert_eq!(["42601", "42501", "3D000", "F0000"].map(number), [1064, 1227, 1049, 1105]);
    }

    #[test]
    fn a_column_is_as_wide_as_its_values() {
        for (declared, values, due) in [
            (ValueKind::Long, &[Some("7"), None][..], ValueKind::Long),
            (ValueKind::Long, &[Some("4294967295")], ValueKind::LongLong),
            (ValueKind::LongLong, &[Some("18446744073709551615")], ValueKind::Decimal),
            (ValueKind::Decimal, &[Some("-1.50")], ValueKind::Decimal),
            (ValueKind::Decimal, &[Some("1.2.3")], ValueKind::Text),
            (ValueKind::Decimal, &[Some(".")], ValueKind::Text),
            (ValueKind::Double, &[Some("1e300")], ValueKind::Double),
            (ValueKind::Long, &[Some("seven")], ValueKind::Text),
            (ValueKind::Text, &[Some("7")], ValueKind::Text),
        ] {
            let ReplyPart::Rows(table) = rows(declared, values) else { panic!("rows") };
            assert_eq!(table.kind(0), due, "{declared:?} {values:?}");
        }
    }

    #[test]
    fn each_result_but_the_last_says_that_more_come() {
        let done = ReplyPart::Done("RELOAD".to_owned());
        let refused = ReplyPart::Refused(error_code::PARSE, "no".to_owned());
        let all = packets(&[rows(ValueKind::Text, &[]), done, refused], form(Needed::Text, SHORT));
        let payloads: Vec<&[u8]> = all.iter().map(|(_, payload)| &payload[..]).collect();
        let [_, _, _, end, ok, error] = payloads[..] else { panic!("{payloads:?}") };
        assert_eq!(end, b"\xfe\0\0\x0a\0");
        assert_eq!(ok, b"\0\0\0\x0a\0\0\0\x06RELOAD");
        assert_eq!(error, b"\xff\x28\x04#42000no");
        assert_eq!(all.last().map(|(sequence, _)| *sequence), Some(6));
    }

    #[test]
    fn a_command_that_is_prepared_tells_its_columns_or_its_error() {
        let columns = vec![Column { name: "n".to_owned(), kind: ValueKind::Text }];
        let known = in_form(&[rows(ValueKind::Text, &[])], &form(Needed::Columns, SHORT));
        assert_eq!(known, ConsoleReply::Columns(columns.clone()));
        assert_eq!(in_form(&[], &form(Needed::Columns, SHORT)), ConsoleReply::Columns(Vec::new()));
        let refused = ReplyPart::Refused(error_code::PARSE, "no".to_owned());
        let parts = [rows(ValueKind::Text, &[]), refused];
        assert_eq!(packets(&parts, form(Needed::Columns, SHORT)).len(), 1);
        for (capabilities, due) in [(SHORT, 3), (SHORT | Capabilities::DEPRECATE_EOF, 2)] {
            let mut out = Vec::new();
            prepared(&mut out, 4, &columns, capabilities);
            let (mut rest, mut count) = (&out[..], 0);
            while let Some(one) = packet::split(rest) {
                (rest, count) = (one.rest, count + 1);
            }
            assert_eq!((count, rest), (due, &b""[..]));
        }
    }
}

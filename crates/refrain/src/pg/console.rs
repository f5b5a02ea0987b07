//! Replies of the console in PostgreSQL's messages.

use refrain_pg::console::reply::{self as pg, Format, ReplyForm};
use refrain_pg_wire::back::field;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write::{self, Report};

use crate::console::{Heading, Kind, Part, Refusal, Table};

/// Returns a reply in the form that a client needs.
pub(super) fn in_form(reply: &[Part], form: &ReplyForm) -> pg::ProgramReply {
    let mut out = Vec::new();
    let refused = matches!(reply.last(), Some(Part::Refused(_)));
    let wrong = if refused { None } else { misfit(reply, form) };
    if let Some(message) = wrong {
        write::error(&mut out, &Report { severity: "ERROR", sqlstate: "0A000", message, hint: "" });
        return pg::ProgramReply::Refused(out);
    }
    if *form == ReplyForm::Columns && !refused {
        return pg::ProgramReply::Columns(columns(reply));
    }
    reply.iter().for_each(|part| append(&mut out, part, form));
    if refused { pg::ProgramReply::Refused(out) } else { pg::ProgramReply::Messages(out) }
}

/// Returns why a reply has no such form, if it has not.
fn misfit(reply: &[Part], form: &ReplyForm) -> Option<&'static str> {
    let mut tables = reply.iter().filter_map(|part| match part {
        Part::Rows(table) => Some(table),
        _ => None,
    });
    let (first, second) = (tables.next(), tables.next());
    let known = match form {
        ReplyForm::Whole => return None,
        _ if second.is_some() => {
            return Some("several tables are the reply to a simple query alone");
        }
        ReplyForm::Columns => return None,
        ReplyForm::Rows(known) => known,
    };
    let (columns, rows) = first.map_or((&[][..], &[][..]), |table| (&table.columns, &table.rows));
    let names = columns.iter().map(|heading| &*heading.name);
    let same = names.eq(known.iter().map(|(column, _)| &*column.name));
    let fit = |row: &Vec<Option<String>>| {
        row.iter().zip(known).all(|(value, (column, _))| {
            value.as_deref().is_none_or(|value| fits(value, column.oid))
        })
    };
    // PostgreSQL's words for the same.
    (!same || !rows.iter().all(fit)).then_some("cached plan must not change result type")
}

/// Returns the columns of the rows in a reply.
fn columns(reply: &[Part]) -> Vec<pg::ShownColumn> {
    let table = reply.iter().find_map(|part| match part {
        Part::Rows(table) => Some(table),
        _ => None,
    });
    let column = |Heading { name, kind }: &Heading| {
        let (oid, size) = oid_and_size(*kind);
        pg::ShownColumn { name: name.to_string(), oid, size }
    };
    table.map(|table| table.columns.iter().map(column).collect()).unwrap_or_default()
}

/// Appends the messages of a part.
fn append(out: &mut Vec<u8>, part: &Part, form: &ReplyForm) {
    match part {
        Part::Rows(table) => rows(out, table, form),
        Part::Notice { text, detail } => notice(out, text, detail),
        Part::Done(tag) => write::command_complete(out, tag.as_bytes()),
        Part::Nothing => write::bare(out, back::EMPTY_QUERY_RESPONSE),
        Part::Refused(Refusal { sqlstate, message }) => {
            write::error(out, &Report { severity: "ERROR", sqlstate, message, hint: "" });
        }
    }
}

/// Appends DataRows, and a RowDescription in front if the form has one.
fn rows(out: &mut Vec<u8>, table: &Table, form: &ReplyForm) {
    let ReplyForm::Rows(known) = form else {
        let described = table.columns.iter().map(|Heading { name, kind }| {
            let (oid, size) = oid_and_size(*kind);
            write::Column { name, oid, size, format: Format::Text.code() }
        });
        write::columns(out, described);
        for row in &table.rows {
            write::text_row(out, row.iter().map(Option::as_deref));
        }
        return;
    };
    for row in &table.rows {
        // The client knows the columns by an earlier reply, so the types are those of that one.
        let value = |(value, (column, format)): (&Option<String>, &(pg::ShownColumn, Format))| {
            let value = value.as_deref()?;
            Some(match format {
                Format::Text => value.as_bytes().to_vec(),
                Format::Binary => binary(value, column.oid),
            })
        };
        write::row(out, row.iter().zip(known).map(value).collect::<Vec<_>>().into_iter());
    }
}

/// The OIDs of types in PostgreSQL.
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const FLOAT8: u32 = 701;
const NUMERIC: u32 = 1700;

/// Returns the OID of a type in PostgreSQL, and the bytes of a value, -1 for any number of them.
fn oid_and_size(kind: Kind) -> (u32, i16) {
    match kind {
        Kind::Int8 => (INT8, 8),
        Kind::Int4 => (INT4, 4),
        Kind::Text => (TEXT, -1),
        Kind::Numeric => (NUMERIC, -1),
        Kind::Float8 => (FLOAT8, 8),
    }
}

/// True if a value can be shown as one of this type.
fn fits(value: &str, oid: u32) -> bool {
    match oid {
        INT4 | INT8 => value.parse::<i128>().is_ok(),
        NUMERIC => value.parse::<u64>().is_ok(),
        FLOAT8 => value.parse::<f64>().is_ok(),
        _ => true,
    }
}

/// Returns a value as its type's send function does. A number beyond its type becomes the type's
/// largest.
fn binary(value: &str, oid: u32) -> Vec<u8> {
    match oid {
        INT4 => value.parse().unwrap_or(i32::MAX).to_be_bytes().to_vec(),
        INT8 => value.parse().unwrap_or(i64::MAX).to_be_bytes().to_vec(),
        FLOAT8 => value.parse().unwrap_or(f64::MAX).to_be_bytes().to_vec(),
        NUMERIC => numeric(value.parse().unwrap_or(u64::MAX)),
        _ => value.as_bytes().to_vec(),
    }
}

/// Returns a whole number as `numeric_send` does: the number of digits to the base of 10,000, the
/// power of the base that the first one counts, the sign, the digits behind the decimal point of
/// its text, and the digits.
fn numeric(mut value: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    while value > 0 {
        digits.push((value % 10_000) as u16);
        value /= 10_000;
    }
    let power = (digits.len() as u16).saturating_sub(1);
    // The last digits have no place if they are zero.
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    let head = [digits.len() as u16, power, 0, 0];
    head.into_iter().chain(digits.iter().rev().copied()).flat_map(u16::to_be_bytes).collect()
}

/// Appends a NoticeResponse with a detail.
fn notice(out: &mut Vec<u8>, text: &str, detail: &str) {
    let fields = [
        (field::SEVERITY, "NOTICE"),
        (field::SEVERITY_PLAIN, "NOTICE"),
        (field::SQLSTATE, "00000"),
        (field::MESSAGE, text),
        (field::DETAIL, detail),
    ];
    write::message(out, back::NOTICE_RESPONSE, |out| {
        for (code, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            out.push(*code);
            write::string(out, value.as_bytes());
        }
        out.push(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_messages_in_order() {
        let reply = [Part::Rows(Table::of("a", "b")), Part::Done("SHOW".into()), Part::Nothing];
        let described = b"T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let row = b"D\0\0\0\x0b\0\x01\0\0\0\x01b";
        let ends = b"C\0\0\0\x09SHOW\0I\0\0\0\x04";
        let whole = [&described[..], row, ends].concat();
        assert_eq!(in_form(&reply, &ReplyForm::Whole), pg::ProgramReply::Messages(whole));
        let column = pg::ShownColumn { name: "a".to_owned(), oid: 25, size: -1 };
        let rows = ReplyForm::Rows(vec![(column.clone(), Format::Text)]);
        assert_eq!(in_form(&reply, &rows), pg::ProgramReply::Messages([&row[..], ends].concat()));
        assert_eq!(
            in_form(&reply, &ReplyForm::Columns),
            pg::ProgramReply::Columns(vec![column.clone()])
        );
    }

    #[test]
    fn rows_have_the_types_that_the_client_knows() {
        let shown = |value: &str, oid| {
            let reply = [Part::Rows(Table::of("a", value)), Part::Done("SELECT 1".into())];
            let column = pg::ShownColumn { name: "a".to_owned(), oid, size: 8 };
            in_form(&reply, &ReplyForm::Rows(vec![(column, Format::Binary)]))
        };
        let one = b"D\0\0\0\x12\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x01C\0\0\0\x0dSELECT 1\0";
        assert_eq!(shown("1", INT8), pg::ProgramReply::Messages(one.to_vec()));
        assert!(matches!(shown("1.5", FLOAT8), pg::ProgramReply::Messages(_)));
        assert!(matches!(shown("1.5", INT8), pg::ProgramReply::Refused(_)));
        assert!(matches!(shown("x", NUMERIC), pg::ProgramReply::Refused(_)));
        let two = [Part::Rows(Table::of("a", "1")), Part::Rows(Table::of("b", "2"))];
        assert!(matches!(in_form(&two, &ReplyForm::Columns), pg::ProgramReply::Refused(_)));
        assert!(matches!(in_form(&two, &ReplyForm::Whole), pg::ProgramReply::Messages(_)));
    }

    /// The bytes are those that PostgreSQL 15 sends for the same values.
    #[test]
    fn binary_values_are_those_of_send_functions() {
        assert_eq!(binary("258", INT4), [0, 0, 1, 2]);
        assert_eq!(binary("-2", INT8), [255, 255, 255, 255, 255, 255, 255, 254]);
        assert_eq!(binary("é", TEXT), "é".as_bytes());
        assert_eq!(binary("0", NUMERIC), [0; 8]);
        assert_eq!(binary("7", NUMERIC), [0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
        let twenty_thousand = [0, 1, 0, 1, 0, 0, 0, 0, 0, 2];
        assert_eq!(binary("20000", NUMERIC), twenty_thousand);
        let with_more = [0, 2, 0, 1, 0, 0, 0, 0, 0, 2, 0, 3];
        assert_eq!(binary("20003", NUMERIC), with_more);
    }
}

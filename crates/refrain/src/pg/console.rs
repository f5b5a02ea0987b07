//! Replies of the console in PostgreSQL's messages.

use refrain_wire::back::field;
use refrain_wire::tag::back;
use refrain_wire::write::{self, Report};

use crate::console::{Heading, Kind, Part, Refusal, Table};

/// Returns the messages of a reply, up to but without ReadyForQuery.
pub(super) fn messages(reply: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in reply {
        match part {
            Part::Rows(table) => rows(&mut out, table),
            Part::Notice { text, detail } => notice(&mut out, text, detail),
            Part::Done(tag) => write::command_complete(&mut out, tag.as_bytes()),
            Part::Nothing => write::bare(&mut out, back::EMPTY_QUERY_RESPONSE),
            Part::Refused(Refusal { sqlstate, message }) => {
                write::error(&mut out, &Report { severity: "ERROR", sqlstate, message, hint: "" });
            }
        }
    }
    out
}

/// Appends a RowDescription and DataRows.
fn rows(out: &mut Vec<u8>, table: &Table) {
    write::message(out, back::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&u16::try_from(table.columns.len()).unwrap_or(0).to_be_bytes());
        for Heading { name, kind } in &table.columns {
            let (oid, size) = oid_and_size(*kind);
            write::string(out, name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table, no column of it
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes()); // no modifier
            out.extend_from_slice(&0_u16.to_be_bytes()); // as text
        }
    });
    for row in &table.rows {
        write::text_row(out, row.iter().map(Option::as_deref));
    }
}

/// Returns the OID of a type in PostgreSQL, and the bytes of a value, -1 for any number of them.
fn oid_and_size(kind: Kind) -> (u32, i16) {
    match kind {
        Kind::Int8 => (20, 8),
        Kind::Int4 => (23, 4),
        Kind::Text => (25, -1),
        Kind::Numeric => (1700, -1),
    }
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
        let reply = [Part::Rows(Table::of("a", "b")), Part::Done("SHOW"), Part::Nothing];
        let described = b"T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let row = b"D\0\0\0\x0b\0\x01\0\0\0\x01b";
        let ends = b"C\0\0\0\x09SHOW\0I\0\0\0\x04";
        assert_eq!(messages(&reply), [&described[..], row, ends].concat());
    }
}

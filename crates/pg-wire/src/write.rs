//! Writers, which append messages to a buffer.

use crate::back::{Status, field};
use crate::frame::patch_length;
use crate::tag::{self, back, front};

/// Appends a message; `fill` writes its body.
pub fn message(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    patch_length(out, start);
}

/// Appends the beginning of a message. `fill` writes the beginning of the body; `missing` bytes are
/// to follow.
pub fn beginning(out: &mut Vec<u8>, tag: u8, missing: usize, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let length = u32::try_from(out.len() - start + missing).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the header of a message with `body` bytes to follow.
#[inline]
pub fn header(out: &mut Vec<u8>, tag: u8, body: u32) {
    let [a, b, c, d] = (body + 4).to_be_bytes();
    out.extend_from_slice(&[tag, a, b, c, d]);
}

/// Appends a string and its zero byte.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends a message without a body.
pub fn bare(out: &mut Vec<u8>, tag: u8) {
    header(out, tag, 0);
}

/// Appends a Sync.
pub fn sync(out: &mut Vec<u8>) {
    bare(out, front::SYNC);
}

/// Appends a Query.
pub fn query(out: &mut Vec<u8>, text: &[u8]) {
    message(out, front::QUERY, |out| string(out, text));
}

/// Appends a Parse; `tail` is the text with its zero byte and the parameter types.
pub fn parse(out: &mut Vec<u8>, name: &[u8], tail: &[u8]) {
    message(out, front::PARSE, |out| {
        string(out, name);
        out.extend_from_slice(tail);
    });
}

/// Appends a Close of a statement.
pub fn close_statement(out: &mut Vec<u8>, name: &[u8]) {
    message(out, front::CLOSE, |out| {
        out.push(tag::STATEMENT);
        string(out, name);
    });
}

/// Appends a Close of a portal.
pub fn close_portal(out: &mut Vec<u8>, name: &[u8]) {
    message(out, front::CLOSE, |out| {
        out.push(tag::PORTAL);
        string(out, name);
    });
}

/// Appends a Bind without parameters, for results in text format.
pub fn bind(out: &mut Vec<u8>, portal: &[u8], statement: &[u8]) {
    message(out, front::BIND, |out| {
        string(out, portal);
        string(out, statement);
        out.extend_from_slice(&[0; 6]);
    });
}

/// Appends an Execute without a row limit.
pub fn execute(out: &mut Vec<u8>, portal: &[u8]) {
    message(out, front::EXECUTE, |out| {
        string(out, portal);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends a Describe of a statement.
pub fn describe_statement(out: &mut Vec<u8>, name: &[u8]) {
    message(out, front::DESCRIBE, |out| {
        out.push(tag::STATEMENT);
        string(out, name);
    });
}

/// Appends a Describe of a portal.
pub fn describe_portal(out: &mut Vec<u8>, name: &[u8]) {
    message(out, front::DESCRIBE, |out| {
        out.push(tag::PORTAL);
        string(out, name);
    });
}

/// Appends a Terminate.
pub fn terminate(out: &mut Vec<u8>) {
    bare(out, front::TERMINATE);
}

/// Appends a PasswordMessage, SASLResponse or the like around `body`.
pub fn password(out: &mut Vec<u8>, body: &[u8]) {
    message(out, front::PASSWORD, |out| out.extend_from_slice(body));
}

/// Appends a ReadyForQuery.
#[inline]
pub fn ready(out: &mut Vec<u8>, status: Status) {
    out.extend_from_slice(&[back::READY_FOR_QUERY, 0, 0, 0, 5, status.letter()]);
}

/// Appends a CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &[u8]) {
    message(out, back::COMMAND_COMPLETE, |out| string(out, tag));
}

/// Appends a ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    message(out, back::PARAMETER_STATUS, |out| {
        string(out, name);
        string(out, value);
    });
}

/// Appends a BackendKeyData.
pub fn backend_key(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    message(out, back::BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// Appends an Authentication message: its number and what follows.
pub fn authentication(out: &mut Vec<u8>, code: u32, rest: &[u8]) {
    message(out, back::AUTHENTICATION, |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(rest);
    });
}

/// Appends a NegotiateProtocolVersion: the newest minor version that Refrain supports, and the
/// protocol options (`_pq_.…`) that it does not know.
pub fn negotiate(out: &mut Vec<u8>, minor: u16, unknown: &[&[u8]]) {
    message(out, back::NEGOTIATE_PROTOCOL_VERSION, |out| {
        // The manual says "minor version"; PostgreSQL sends, and libpq reads, major and minor.
        out.extend_from_slice(&(0x0003_0000 | u32::from(minor)).to_be_bytes());
        out.extend_from_slice(&u32::try_from(unknown.len()).unwrap_or(0).to_be_bytes());
        for name in unknown {
            string(out, name);
        }
    });
}

/// The fields of an error or a notice.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// `ERROR`, `FATAL`, `WARNING`, ….
    pub severity: &'a str,
    /// The SQLSTATE: five letters and digits.
    pub sqlstate: &'a str,
    /// The message, in one line.
    pub message: &'a str,
    /// The hint; empty for none.
    pub hint: &'a str,
}

/// Appends an ErrorResponse.
pub fn error(out: &mut Vec<u8>, report: &Report<'_>) {
    report_as(out, back::ERROR_RESPONSE, report);
}

/// Appends a NoticeResponse.
pub fn notice(out: &mut Vec<u8>, report: &Report<'_>) {
    report_as(out, back::NOTICE_RESPONSE, report);
}

fn report_as(out: &mut Vec<u8>, tag: u8, report: &Report<'_>) {
    let fields = [
        (field::SEVERITY, report.severity),
        (field::SEVERITY_PLAIN, report.severity),
        (field::SQLSTATE, report.sqlstate),
        (field::MESSAGE, report.message),
        (field::HINT, report.hint),
    ];
    message(out, tag, |out| {
        for (code, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            out.push(*code);
            string(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// A column of rows that belong to no table.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The OID of its type.
    pub oid: u32,
    /// Bytes of a value; -1 for a varying number.
    pub size: i16,
    /// The code of its format: 0 for text, 1 for binary.
    pub format: u16,
}

/// Appends a RowDescription of columns that belong to no table.
pub fn columns<'a>(out: &mut Vec<u8>, columns: impl ExactSizeIterator<Item = Column<'a>>) {
    message(out, back::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&u16::try_from(columns.len()).unwrap_or(0).to_be_bytes());
        for Column { name, oid, size, format } in columns {
            string(out, name.as_bytes());
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0]); // no table, no column of it
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes()); // no modifier
            out.extend_from_slice(&format.to_be_bytes());
        }
    });
}

/// Appends a RowDescription of `text` columns (OID 25) that belong to no table.
pub fn text_columns(out: &mut Vec<u8>, names: &[&str]) {
    columns(out, names.iter().map(|name| Column { name, oid: 25, size: -1, format: 0 }));
}

/// Appends a DataRow of text values.
pub fn text_row<'a>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = Option<&'a str>>) {
    row(out, values.map(|value| value.map(str::as_bytes)));
}

/// Appends a DataRow of values in any format.
pub fn row<V: AsRef<[u8]>>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = Option<V>>) {
    message(out, back::DATA_ROW, |out| {
        out.extend_from_slice(&u16::try_from(values.len()).unwrap_or(0).to_be_bytes());
        for value in values {
            let bytes = value.as_ref().map(AsRef::as_ref);
            let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(0));
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(bytes.unwrap_or_default());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        fill(&mut out);
        out
    }

    #[test]
    fn messages_as_on_the_wire() {
        assert_eq!(written(sync), b"S\0\0\0\x04");
        assert_eq!(written(|out| query(out, b"x")), b"Q\0\0\0\x06x\0");
        assert_eq!(written(|out| ready(out, Status::Failed)), b"Z\0\0\0\x05E");
        assert_eq!(written(|out| close_statement(out, b"s")), b"C\0\0\0\x07Ss\0");
        assert_eq!(written(|out| parse(out, b"s", b"t\0\0\0")), b"P\0\0\0\x0as\0t\0\0\0");
        assert_eq!(
            written(|out| negotiate(out, 2, &[b"_pq_.x"])),
            b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0"
        );
    }

    #[test]
    fn an_error_reads_back() {
        let report = Report { severity: "FATAL", sqlstate: "28P01", message: "no", hint: "" };
        let out = written(|out| error(out, &report));
        let fields = crate::back::Fields(&out[5..]);
        assert!(fields.is_fatal());
        assert_eq!(fields.sqlstate(), b"28P01");
        assert_eq!(fields.get(field::HINT), None);
    }

    #[test]
    fn a_row_of_text() {
        let out = written(|out| text_row(out, [Some("a"), None].into_iter()));
        assert_eq!(out, b"D\0\0\0\x0f\0\x02\0\0\0\x01a\xff\xff\xff\xff");
    }
}

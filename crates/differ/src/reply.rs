//! Messages that a server sends: frames of a stream, and their readable form.
//!
//! A frame keeps its body unchanged. This module reads only the parts that the comparison, the
//! ledger or the printed report need.

use crate::msg::show;
use std::fmt;

/// One message from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type byte.
    pub tag: u8,
    /// The bytes after the length.
    pub body: Vec<u8>,
}

/// Returns the end of the first frame of `bytes`, or `None` if the frame is not whole yet.
///
/// # Errors
/// If the length field is impossible.
pub fn frame_end(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(header) = bytes.first_chunk::<5>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    if !(4..1 << 30).contains(&length) {
        return Err(format!("impossible length {length} of message {:?}", char::from(header[0])));
    }
    let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
    Ok((bytes.len() >= end).then_some(end))
}

impl Frame {
    /// Creates a frame of this type and body.
    #[must_use]
    pub fn new(tag: u8, body: &[u8]) -> Self {
        Self { tag, body: body.to_vec() }
    }

    /// True for ErrorResponse and NoticeResponse.
    #[must_use]
    pub fn has_fields(&self) -> bool {
        matches!(self.tag, b'E' | b'N')
    }

    /// Returns the fields of an ErrorResponse or NoticeResponse: code and value.
    #[must_use]
    pub fn fields(&self) -> Vec<(u8, &[u8])> {
        self.body
            .split(|byte| *byte == 0)
            .filter_map(|field| field.split_first().map(|(code, value)| (*code, value)))
            .collect()
    }

    /// Returns one field of an ErrorResponse or NoticeResponse; empty if absent.
    #[must_use]
    pub fn field(&self, code: u8) -> &[u8] {
        let mut fields = self.fields().into_iter();
        fields.find(|field| field.0 == code).map_or(&[], |field| field.1)
    }

    /// Replaces the fields of an ErrorResponse or NoticeResponse.
    pub fn set_fields(&mut self, fields: &[(u8, Vec<u8>)]) {
        self.body.clear();
        for (code, value) in fields {
            self.body.push(*code);
            self.body.extend_from_slice(value);
            self.body.push(0);
        }
        self.body.push(0);
    }

    /// True if this is an error after which the server ends the connection.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.tag == b'E' && matches!(self.field(b'V'), b"FATAL" | b"PANIC")
    }

    /// Returns the values of a DataRow, of which `None` is NULL, up to one that is cut short.
    #[must_use]
    pub fn values(&self) -> Vec<Option<&[u8]>> {
        let mut rest = self.body.get(2..).unwrap_or_default();
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            rest = after;
            let length = u32::from_be_bytes(*length);
            if length == u32::MAX {
                values.push(None);
                continue;
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((value, after)) = rest.split_at_checked(length) else { break };
            values.push(Some(value));
            rest = after;
        }
        values
    }

    /// Returns the values of a DataRow, to be read by people.
    fn columns(&self) -> String {
        let shown = |value: &Option<&[u8]>| value.map_or_else(|| "NULL".to_owned(), show);
        let shown: Vec<_> = self.values().iter().map(shown).collect();
        format!("[{}]", shown.join(", "))
    }

    /// Returns the columns of a RowDescription: name, table.column, type, format.
    fn descriptions(&self) -> Option<String> {
        let mut rest = self.body.get(2..)?;
        let mut shown = Vec::new();
        while !rest.is_empty() {
            let (name, after) = rest.split_at(rest.iter().position(|byte| *byte == 0)?);
            let fixed = after.get(1..19)?;
            let number = |at: usize, size: usize| {
                fixed[at..at + size].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
            };
            shown.push(format!(
                "{} of {}.{} type {} format {}",
                show(name),
                number(0, 4),
                number(4, 2),
                number(6, 4),
                number(16, 2)
            ));
            rest = &after[19..];
        }
        Some(format!("[{}]", shown.join(", ")))
    }

    /// Returns the two texts of a ParameterStatus.
    #[must_use]
    pub fn parameter(&self) -> Option<(String, String)> {
        let mut parts = self.body.split(|byte| *byte == 0);
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        Some((text(parts.next()?), text(parts.next()?)))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            b'E' | b'N' => {
                let kind = if self.tag == b'E' { "Error" } else { "Notice" };
                let fields: Vec<_> = self
                    .fields()
                    .iter()
                    .map(|(code, value)| format!("{}={}", char::from(*code), show(value)))
                    .collect();
                write!(f, "{kind} {}", fields.join(" "))
            }
            b'C' => write!(f, "CommandComplete {}", show(&self.body)),
            b'Z' => write!(f, "ReadyForQuery {}", show(&self.body)),
            b'1' => write!(f, "ParseComplete"),
            b'2' => write!(f, "BindComplete"),
            b'3' => write!(f, "CloseComplete"),
            b'n' => write!(f, "NoData"),
            b's' => write!(f, "PortalSuspended"),
            b'I' => write!(f, "EmptyQueryResponse"),
            b't' => write!(f, "ParameterDescription {}", self.body.escape_ascii()),
            b'D' => write!(f, "DataRow {}", self.columns()),
            b'T' => {
                let columns = self.descriptions().unwrap_or_else(|| show(&self.body));
                write!(f, "RowDescription {columns}")
            }
            tag => write!(f, "{:?} {}", char::from(tag), show(&self.body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, frame_end};

    #[test]
    fn frames_end_where_their_length_says() {
        assert_eq!(frame_end(b"Z\0\0\0"), Ok(None));
        assert_eq!(frame_end(b"Z\0\0\0\x05"), Ok(None));
        assert_eq!(frame_end(b"Z\0\0\0\x05IZ"), Ok(Some(6)));
        assert!(frame_end(b"Z\0\0\0\x03I").is_err());
    }

    #[test]
    fn fields_survive_a_round_trip() {
        let mut frame = Frame::new(b'E', b"SERROR\0VERROR\0C42601\0\0");
        assert_eq!(frame.field(b'C'), b"42601");
        assert_eq!(frame.field(b'P'), b"");
        assert!(!frame.is_fatal());
        let fields: Vec<_> = frame.fields().iter().map(|(c, v)| (*c, v.to_vec())).collect();
        let before = frame.clone();
        frame.set_fields(&fields);
        assert_eq!(frame, before);
    }
}

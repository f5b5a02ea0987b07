//! Messages as text: their name, and their body decoded, in one line.

use refrain_pg_wire::back::{self as read, Fields};
use refrain_pg_wire::tag::{PORTAL, back, front};
use refrain_pg_wire::{Header, frame};

use super::lines::Line;

/// Bytes of a string that are shown.
const QUOTED_MAX: usize = 160;

/// The side that sent a message. The two sides use some letters for different messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A client, or Refrain towards a server.
    Front,
    /// A server, or Refrain towards a client.
    Back,
}

/// Splits bytes into messages. Bytes that are no whole message are a line of their own.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let length = match Header::parse(bytes) {
            Ok(Some(header)) => header.message_bytes().min(bytes.len()),
            _ => bytes.len(),
        };
        let (message, rest) = bytes.split_at(length);
        lines.push(Line { bytes: message.to_vec(), is_pattern: false });
        bytes = rest;
    }
    lines
}

/// True if a message is the expected one, or fits the expected pattern.
pub(crate) fn fits(expected: &Line, line: &Line) -> bool {
    if !expected.is_pattern {
        return expected.bytes == line.bytes;
    }
    let (tag, words) = expected.bytes.split_at(1);
    let body = line.bytes.get(frame::HEADER_BYTES..).unwrap_or_default();
    line.bytes.starts_with(tag)
        && (words.is_empty() || body.windows(words.len()).any(|part| part == words))
}

/// Returns a message as one line of text.
pub(crate) fn tell(line: &Line, sender: Sender) -> String {
    let bytes = &line.bytes;
    if line.is_pattern {
        let words = String::from_utf8_lossy(&bytes[1..]);
        return format!("{} … {words:?} …", name(bytes[0], sender));
    }
    match Header::parse(bytes) {
        Ok(Some(header)) if header.message_bytes() == bytes.len() => {
            let body = &bytes[frame::HEADER_BYTES..];
            let told = body_of(header.tag, body, sender);
            format!("{}{told}", name(header.tag, sender))
        }
        _ => format!("part of a message, {} bytes: {}", bytes.len(), bytes.escape_ascii()),
    }
}

fn name(tag: u8, sender: Sender) -> String {
    let known = match (sender, tag) {
        (Sender::Front, front::BIND) => "Bind",
        (Sender::Front, front::CLOSE) => "Close",
        (Sender::Front, front::COPY_FAIL) => "CopyFail",
        (Sender::Front, front::DESCRIBE) => "Describe",
        (Sender::Front, front::EXECUTE) => "Execute",
        (Sender::Front, front::FLUSH) => "Flush",
        (Sender::Front, front::FUNCTION_CALL) => "FunctionCall",
        (Sender::Front, front::PARSE) => "Parse",
        (Sender::Front, front::PASSWORD) => "Password",
        (Sender::Front, front::QUERY) => "Query",
        (Sender::Front, front::SYNC) => "Sync",
        (Sender::Front, front::TERMINATE) => "Terminate",
        (Sender::Back, back::AUTHENTICATION) => "Authentication",
        (Sender::Back, back::BACKEND_KEY_DATA) => "BackendKeyData",
        (Sender::Back, back::BIND_COMPLETE) => "BindComplete",
        (Sender::Back, back::CLOSE_COMPLETE) => "CloseComplete",
        (Sender::Back, back::COMMAND_COMPLETE) => "CommandComplete",
        (Sender::Back, back::COPY_IN_RESPONSE) => "CopyInResponse",
        (Sender::Back, back::COPY_OUT_RESPONSE) => "CopyOutResponse",
        (Sender::Back, back::DATA_ROW) => "DataRow",
        (Sender::Back, back::EMPTY_QUERY_RESPONSE) => "EmptyQueryResponse",
        (Sender::Back, back::ERROR_RESPONSE) => "ErrorResponse",
        (Sender::Back, back::FUNCTION_CALL_RESPONSE) => "FunctionCallResponse",
        (Sender::Back, back::NEGOTIATE_PROTOCOL_VERSION) => "NegotiateProtocolVersion",
        (Sender::Back, back::NO_DATA) => "NoData",
        (Sender::Back, back::NOTICE_RESPONSE) => "NoticeResponse",
        (Sender::Back, back::NOTIFICATION_RESPONSE) => "NotificationResponse",
        (Sender::Back, back::PARAMETER_DESCRIPTION) => "ParameterDescription",
        (Sender::Back, back::PARAMETER_STATUS) => "ParameterStatus",
        (Sender::Back, back::PARSE_COMPLETE) => "ParseComplete",
        (Sender::Back, back::PORTAL_SUSPENDED) => "PortalSuspended",
        (Sender::Back, back::READY_FOR_QUERY) => "ReadyForQuery",
        (Sender::Back, back::ROW_DESCRIPTION) => "RowDescription",
        (_, front::COPY_DATA) => "CopyData",
        (_, front::COPY_DONE) => "CopyDone",
        _ => return format!("message {:?}", char::from(tag)),
    };
    known.to_owned()
}

fn body_of(tag: u8, body: &[u8], sender: Sender) -> String {
    let quoted = |bytes: &[u8]| match bytes.len() {
        ..=QUOTED_MAX => format!(" \"{}\"", bytes.escape_ascii()),
        all => format!(" \"{}…\" ({all} bytes)", bytes[..QUOTED_MAX].escape_ascii()),
    };
    let strings = |count: usize| {
        let parts = body.split(|byte| *byte == 0).take(count);
        parts.map(quoted).collect::<String>()
    };
    match (sender, tag) {
        (Sender::Front, front::BIND) => {
            let names = strings(2);
            let rest = body.splitn(3, |byte| *byte == 0).nth(2).unwrap_or_default();
            if rest == [0; 6] { names } else { format!("{names}{}", quoted(rest)) }
        }
        (Sender::Front, front::PARSE) => {
            let rest = body.splitn(3, |byte| *byte == 0).nth(2).unwrap_or_default();
            let types = if rest == [0; 2] { String::new() } else { quoted(rest) };
            format!("{}{types}", strings(2))
        }
        (Sender::Front, front::CLOSE | front::DESCRIBE) if !body.is_empty() => {
            let what = if body[0] == PORTAL { "portal" } else { "statement" };
            format!(" {what}{}", quoted(body[1..].strip_suffix(&[0]).unwrap_or(&body[1..])))
        }
        (Sender::Front, front::QUERY | front::EXECUTE) | (Sender::Back, back::COMMAND_COMPLETE) => {
            strings(1)
        }
        (Sender::Back, back::PARAMETER_STATUS) => strings(2),
        (Sender::Back, back::ERROR_RESPONSE | back::NOTICE_RESPONSE) => {
            let fields = Fields(body);
            let told = fields.iter().map(|(code, value)| {
                format!(" {}={:?}", char::from(code), String::from_utf8_lossy(value))
            });
            told.collect()
        }
        (Sender::Back, back::DATA_ROW) => {
            let values = read::columns(body);
            values.map(|value| value.map_or(" null".to_owned(), quoted)).collect()
        }
        (Sender::Back, back::READY_FOR_QUERY) => format!(" {}", body.escape_ascii()),
        _ if body.is_empty() => String::new(),
        _ => quoted(body),
    }
}

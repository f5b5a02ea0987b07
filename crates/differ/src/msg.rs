//! Messages that a client sends: their bytes and a readable form.
//!
//! The encoder follows PostgreSQL's chapter "Message Formats" and shares no code with the crate
//! `pg-wire`, so that a mistake there shows here.

use std::fmt;

/// A format code and value of one Bind parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// True for format code 1.
    pub binary: bool,
    /// `None` is NULL.
    pub value: Option<Vec<u8>>,
}

/// The variable part of a Bind message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bind {
    /// Portal to create; empty is the unnamed one.
    pub portal: Vec<u8>,
    /// Statement to bind; empty is the unnamed one.
    pub stmt: Vec<u8>,
    /// Parameter format codes as they go on the wire: none, one for all, or one each.
    pub formats: Vec<u16>,
    /// Parameter values.
    pub values: Vec<Option<Vec<u8>>>,
    /// Result format codes.
    pub results: Vec<u16>,
}

/// One message of a client after its start-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Msg {
    /// `P`: statement name, text, parameter type OIDs.
    Parse(Vec<u8>, Vec<u8>, Vec<u32>),
    /// `B`.
    Bind(Bind),
    /// `D` of a statement.
    DescribeStatement(Vec<u8>),
    /// `D` of a portal.
    DescribePortal(Vec<u8>),
    /// `E`: portal and row limit (0 is none).
    Execute(Vec<u8>, u32),
    /// `C` of a statement.
    CloseStatement(Vec<u8>),
    /// `C` of a portal.
    ClosePortal(Vec<u8>),
    /// `H`.
    Flush,
    /// `S`.
    Sync,
    /// `Q`.
    Query(Vec<u8>),
    /// `F`: function OID and text arguments.
    FunctionCall(u32, Vec<Option<Vec<u8>>>),
    /// `d`.
    CopyData(Vec<u8>),
    /// `c`.
    CopyDone,
    /// `f`: reason.
    CopyFail(Vec<u8>),
    /// Any type with any body, for malformed messages.
    Raw(u8, Vec<u8>),
    /// The end of the session, before its replies are read: `X`, or no message if not `polite`.
    Leave {
        /// Whether the client sends Terminate.
        polite: bool,
    },
}

impl Msg {
    /// Returns the message's type byte.
    #[must_use]
    pub fn tag(&self) -> u8 {
        match self {
            Self::Parse(..) => b'P',
            Self::Bind(_) => b'B',
            Self::DescribeStatement(_) | Self::DescribePortal(_) => b'D',
            Self::Execute(..) => b'E',
            Self::CloseStatement(_) | Self::ClosePortal(_) => b'C',
            Self::Flush => b'H',
            Self::Sync => b'S',
            Self::Query(_) => b'Q',
            Self::FunctionCall(..) => b'F',
            Self::CopyData(_) => b'd',
            Self::CopyDone => b'c',
            Self::CopyFail(_) => b'f',
            Self::Raw(tag, _) => *tag,
            Self::Leave { .. } => b'X',
        }
    }

    /// Appends the whole message, header included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if matches!(self, Self::Leave { polite: false }) {
            return;
        }
        out.push(self.tag());
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.encode_body(out);
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Parse(name, sql, oids) => {
                put_str(out, name);
                put_str(out, sql);
                put_count(out, oids.len());
                oids.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
            }
            Self::Bind(bind) => bind.encode_body(out),
            Self::DescribeStatement(name) | Self::CloseStatement(name) => put_kind(out, b'S', name),
            Self::DescribePortal(name) | Self::ClosePortal(name) => put_kind(out, b'P', name),
            Self::Execute(portal, limit) => {
                put_str(out, portal);
                out.extend_from_slice(&limit.to_be_bytes());
            }
            Self::Flush | Self::Sync | Self::CopyDone | Self::Leave { .. } => {}
            Self::Query(text) | Self::CopyFail(text) => put_str(out, text),
            Self::FunctionCall(oid, args) => {
                out.extend_from_slice(&oid.to_be_bytes());
                put_count(out, 0);
                put_values(out, args);
                put_count(out, 0);
            }
            Self::CopyData(bytes) | Self::Raw(_, bytes) => out.extend_from_slice(bytes),
        }
    }
}

impl Bind {
    /// Creates a Bind of `stmt` to `portal` with these parameters; all codes are left out if all
    /// are text.
    #[must_use]
    pub fn new(portal: &[u8], stmt: &[u8], params: Vec<Param>) -> Self {
        let formats = if params.iter().all(|param| !param.binary) {
            Vec::new()
        } else if params.iter().all(|param| param.binary) {
            vec![1]
        } else {
            params.iter().map(|param| u16::from(param.binary)).collect()
        };
        Self {
            portal: portal.to_vec(),
            stmt: stmt.to_vec(),
            formats,
            values: params.into_iter().map(|param| param.value).collect(),
            results: Vec::new(),
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        put_str(out, &self.portal);
        put_str(out, &self.stmt);
        put_codes(out, &self.formats);
        put_values(out, &self.values);
        put_codes(out, &self.results);
    }
}

/// Returns the start-up packet of protocol 3.0 with these parameters.
#[must_use]
pub fn startup(params: &[(String, String)]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 0, 0, 3, 0, 0];
    for (name, value) in params {
        put_str(&mut out, name.as_bytes());
        put_str(&mut out, value.as_bytes());
    }
    out.push(0);
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

fn put_str(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

fn put_kind(out: &mut Vec<u8>, kind: u8, name: &[u8]) {
    out.push(kind);
    put_str(out, name);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

fn put_codes(out: &mut Vec<u8>, codes: &[u16]) {
    put_count(out, codes.len());
    codes.iter().for_each(|code| out.extend_from_slice(&code.to_be_bytes()));
}

fn put_values(out: &mut Vec<u8>, values: &[Option<Vec<u8>>]) {
    put_count(out, values.len());
    for value in values {
        match value {
            None => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(bytes) => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Returns bytes as a quoted text with escapes, cut after 200 bytes.
#[must_use]
pub fn show(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(200)];
    let text = match std::str::from_utf8(cut) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\"", cut.escape_ascii()),
    };
    if cut.len() < bytes.len() { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

fn show_values(values: &[Option<Vec<u8>>]) -> String {
    let shown: Vec<_> =
        values.iter().map(|v| v.as_ref().map_or_else(|| "NULL".to_owned(), |v| show(v))).collect();
    shown.join(", ")
}

impl fmt::Display for Msg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(name, sql, oids) => {
                write!(f, "Parse {} {} oids {oids:?}", show(name), show(sql))
            }
            Self::Bind(bind) => write!(
                f,
                "Bind portal {} statement {} formats {:?} values [{}] results {:?}",
                show(&bind.portal),
                show(&bind.stmt),
                bind.formats,
                show_values(&bind.values),
                bind.results
            ),
            Self::DescribeStatement(name) => write!(f, "Describe statement {}", show(name)),
            Self::DescribePortal(name) => write!(f, "Describe portal {}", show(name)),
            Self::Execute(portal, limit) => write!(f, "Execute {} limit {limit}", show(portal)),
            Self::CloseStatement(name) => write!(f, "Close statement {}", show(name)),
            Self::ClosePortal(name) => write!(f, "Close portal {}", show(name)),
            Self::Flush => write!(f, "Flush"),
            Self::Sync => write!(f, "Sync"),
            Self::Query(sql) => write!(f, "Query {}", show(sql)),
            Self::FunctionCall(oid, args) => {
                write!(f, "FunctionCall {oid} [{}]", show_values(args))
            }
            Self::CopyData(bytes) => write!(f, "CopyData {}", show(bytes)),
            Self::CopyDone => write!(f, "CopyDone"),
            Self::CopyFail(reason) => write!(f, "CopyFail {}", show(reason)),
            Self::Raw(tag, body) => write!(f, "Raw {:?} {}", char::from(*tag), show(body)),
            Self::Leave { polite: true } => write!(f, "Terminate, and no reply is read"),
            Self::Leave { polite: false } => write!(f, "closes, and no reply is read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bind, Msg, Param, startup};

    fn bytes(msg: &Msg) -> Vec<u8> {
        let mut out = Vec::new();
        msg.encode(&mut out);
        out
    }

    #[test]
    fn messages_have_the_documented_bytes() {
        assert_eq!(bytes(&Msg::Sync), b"S\0\0\0\x04");
        assert_eq!(
            bytes(&Msg::Parse(b"s".to_vec(), b"x".to_vec(), vec![23])),
            b"P\0\0\0\x0es\0x\0\0\x01\0\0\0\x17"
        );
        assert_eq!(bytes(&Msg::Execute(b"p".to_vec(), 2)), b"E\0\0\0\x0ap\0\0\0\0\x02");
        assert_eq!(bytes(&Msg::CloseStatement(Vec::new())), b"C\0\0\0\x06S\0");
        assert_eq!(bytes(&Msg::Query(b"q".to_vec())), b"Q\0\0\0\x06q\0");
        assert_eq!(
            bytes(&Msg::FunctionCall(1, vec![Some(b"5".to_vec())])),
            b"F\0\0\0\x13\0\0\0\x01\0\0\0\x01\0\0\0\x015\0\0"
        );
    }

    #[test]
    fn bind_chooses_the_shortest_list_of_codes() {
        let param = |binary| Param { binary, value: None };
        let bind = |list: Vec<Param>| Bind::new(b"", b"s", list);
        assert_eq!(bind(vec![param(false), param(false)]).formats, Vec::<u16>::new());
        assert_eq!(bind(vec![param(true), param(true)]).formats, vec![1]);
        assert_eq!(bind(vec![param(true), param(false)]).formats, vec![1, 0]);
        assert_eq!(
            bytes(&Msg::Bind(bind(vec![param(true)]))),
            b"B\0\0\0\x13\0s\0\0\x01\0\x01\0\x01\xff\xff\xff\xff\0\0"
        );
    }

    #[test]
    fn the_length_of_a_startup_packet_includes_its_own_field() {
        let packet = startup(&[("user".to_owned(), "u".to_owned())]);
        assert_eq!(packet, b"\0\0\0\x10\0\x03\0\0user\0u\0\0");
    }
}

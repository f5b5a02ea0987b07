//! The first packet of a connection, which has a length but no tag.

use crate::Malformed;
use crate::frame::{patch_length, split_string};

/// The largest first packet that PostgreSQL reads, in bytes (`MAX_STARTUP_PACKET_LENGTH`).
pub const STARTUP_BYTES_MAX: u32 = 10_000;
/// The newest minor version of protocol 3 that Refrain supports. Version 3.1 was never used.
pub const MINOR_NEWEST: u16 = 2;
/// The longest cancel key that a server may send in protocol 3.2, in bytes.
pub const CANCEL_KEY_BYTES_MAX: usize = 256;

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The request in the first packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening<'a> {
    /// Asks for a session.
    Startup(Startup<'a>),
    /// Asks to cancel the statement of another connection.
    Cancel {
        /// The process ID of BackendKeyData.
        pid: u32,
        /// The secret of BackendKeyData: 4 bytes in protocol 3.0, up to 256 in 3.2.
        key: &'a [u8],
    },
    /// Asks for TLS; the reply is one byte.
    Ssl,
    /// Asks for GSSAPI encryption; the reply is one byte.
    Gss,
}

/// Protocol version and startup parameters of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    /// Major protocol version; Refrain supports version 3.
    pub major: u16,
    /// Minor protocol version.
    pub minor: u16,
    parameters: &'a [u8],
}

impl<'a> Startup<'a> {
    /// Iterates over name and value of each parameter, in order.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.parameters;
        std::iter::from_fn(move || {
            let (name, after) = split_string(rest)?;
            if name.is_empty() {
                return None;
            }
            let (value, after) = split_string(after)?;
            rest = after;
            Some((name, value))
        })
    }
}

/// Reads the first packet from the start of `bytes`. Returns it with its length in bytes; `None` if
/// it is incomplete.
///
/// # Errors
/// A length or content that no valid first packet has.
pub fn parse(bytes: &[u8]) -> Result<Option<(Opening<'_>, usize)>, Malformed> {
    let bad = Malformed::new("startup packet");
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(bad);
    }
    let Some(packet) = rest.get(..length as usize - 4) else { return Ok(None) };
    let (code, body) = packet.split_first_chunk::<4>().ok_or(bad)?;
    let code = u32::from_be_bytes(*code);
    let opening = match code {
        SSL => Opening::Ssl,
        GSS => Opening::Gss,
        CANCEL => {
            let (pid, key) = body.split_first_chunk::<4>().ok_or(bad)?;
            if key.is_empty() || key.len() > CANCEL_KEY_BYTES_MAX {
                return Err(bad);
            }
            Opening::Cancel { pid: u32::from_be_bytes(*pid), key }
        }
        _ => {
            let [a, b, c, d] = code.to_be_bytes();
            let startup = Startup {
                major: u16::from_be_bytes([a, b]),
                minor: u16::from_be_bytes([c, d]),
                parameters: body,
            };
            check(&startup).ok_or(bad)?;
            Opening::Startup(startup)
        }
    };
    Ok(Some((opening, length as usize)))
}

/// Checks that the parameters are pairs of strings up to an empty name, with nothing after it.
fn check(startup: &Startup<'_>) -> Option<()> {
    if startup.major != 3 {
        return Some(()); // the caller refuses the version and does not look at the rest
    }
    let mut rest = startup.parameters;
    loop {
        let (name, after) = split_string(rest)?;
        if name.is_empty() {
            return after.is_empty().then_some(());
        }
        rest = split_string(after)?.1;
    }
}

/// Appends a startup packet for protocol `3.minor`.
pub fn write<'a>(
    out: &mut Vec<u8>,
    minor: u16,
    parameters: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&3u16.to_be_bytes());
    out.extend_from_slice(&minor.to_be_bytes());
    for (name, value) in parameters {
        for part in [name, value] {
            out.extend_from_slice(part);
            out.push(0);
        }
    }
    out.push(0);
    patch_length(out, start);
}

/// Appends a request to cancel the statement of another connection.
pub fn write_cancel(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&CANCEL.to_be_bytes());
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(key);
    patch_length(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_startup_packet_survives_writing_and_reading() {
        let mut out = Vec::new();
        let given = [(&b"user"[..], &b"ann"[..]), (b"database", b"db")];
        write(&mut out, 2, given.into_iter());
        for cut in 0..out.len() {
            assert_eq!(parse(&out[..cut]), Ok(None));
        }
        let Ok(Some((Opening::Startup(startup), length))) = parse(&out) else { panic!("{out:?}") };
        assert_eq!((startup.major, startup.minor, length), (3, 2, out.len()));
        assert!(startup.parameters().eq(given));
    }

    #[test]
    fn special_requests_are_told_apart() {
        assert_eq!(parse(b"\0\0\0\x08\x04\xd2\x16\x2f"), Ok(Some((Opening::Ssl, 8))));
        assert_eq!(parse(b"\0\0\0\x08\x04\xd2\x16\x30"), Ok(Some((Opening::Gss, 8))));
        let mut out = Vec::new();
        write_cancel(&mut out, 7, b"abcd");
        let cancel = Opening::Cancel { pid: 7, key: b"abcd" };
        assert_eq!(parse(&out), Ok(Some((cancel, 16))));
    }

    #[test]
    fn what_no_first_packet_can_be_is_malformed() {
        assert!(parse(b"\0\0\0\x07").is_err());
        assert!(parse(b"\0\x01\0\0").is_err());
        assert!(parse(b"\0\0\0\x0c\0\x03\0\0user").is_err());
        assert!(parse(b"\0\0\0\x0b\0\x03\0\0a\0b").is_err());
    }
}

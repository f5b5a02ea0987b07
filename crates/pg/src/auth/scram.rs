//! The four messages of SCRAM, read strictly (RFC 5802, section 7).
//!
//! ```text
//! client-first   <gs2 header>n=,r=<client nonce>
//! server-first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//! client-final   c=<gs2 header and channel binding>,r=<both nonces>,p=<proof>
//! server-final   v=<signature>
//! ```
//!
//! Attributes come in a fixed order; unknown ones are allowed where the grammar has room for
//! extensions, and `m=`, a mandatory one, is refused. What both sides sign is built from the bytes
//! as they came, never from what was read out of them.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::malformed::Malformed;
use super::verifier::{parse_32, parse_iterations, parse_salt};

/// The mechanism for a channel that a login is not bound to.
pub(super) const MECHANISM: &str = "SCRAM-SHA-256";

/// The mechanism for a channel that a login is bound to.
pub(super) const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// A client's word on channel binding, at the beginning of its gs2 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    /// It cannot bind.
    Unable,
    /// It can, and believes that the server cannot.
    Able,
    /// It binds to the hash of the server's certificate (`tls-server-end-point`, RFC 5929).
    Bound,
}

impl Flag {
    /// Returns the gs2 header of a client that names no other user.
    pub(super) fn header(self) -> &'static str {
        match self {
            Self::Unable => "n,,",
            Self::Able => "y,,",
            Self::Bound => "p=tls-server-end-point,,",
        }
    }

    /// Reads the flag. Returns it and what follows its comma.
    fn parse(message: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        match message {
            [b'n', b',', rest @ ..] => Ok((Self::Unable, rest)),
            [b'y', b',', rest @ ..] => Ok((Self::Able, rest)),
            [b'p', b'=', rest @ ..] => match rest.strip_prefix(b"tls-server-end-point,") {
                Some(rest) => Ok((Self::Bound, rest)),
                None => Err(Malformed("unsupported SCRAM channel-binding type")),
            },
            _ => Err(Malformed("SCRAM message has no channel binding flag")),
        }
    }
}

/// Returns the value of the attribute `c`: the gs2 header, and the hash if the login is bound to
/// it.
pub(super) fn bound_to(gs2_header: &[u8], end_point: Option<&[u8]>) -> String {
    BASE64_STANDARD.encode([gs2_header, end_point.unwrap_or_default()].concat())
}

/// Random bytes that one exchange uses up; as many as PostgreSQL's.
pub const NONCE_BYTES: usize = 18;

/// Makes a nonce of random bytes. Base64 has no comma, which is all that the grammar forbids.
pub(super) fn nonce(random: &[u8; NONCE_BYTES]) -> String {
    BASE64_STANDARD.encode(random)
}

/// The client's opening. Its user name is not read: as in PostgreSQL, the startup message's counts.
pub(super) struct ClientFirst<'a> {
    pub(super) flag: Flag,
    /// Has the flag; signed by the client's last message.
    pub(super) gs2_header: &'a [u8],
    /// All after the header.
    pub(super) bare: &'a [u8],
    pub(super) nonce: &'a [u8],
}

impl<'a> ClientFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let (flag, rest) = Flag::parse(message)?;
        let bare = match rest {
            [b',', bare @ ..] => bare,
            [b'a', ..] => return Err(Malformed("SCRAM authorization identity is not supported")),
            _ => return Err(Malformed("SCRAM header is not closed by a comma")),
        };
        let mut attributes = Attributes(Some(bare));
        attributes.expect(b'n')?;
        let nonce = printable(attributes.expect(b'r')?)?;
        while attributes.next()?.is_some() {}
        let (gs2_header, _) = message.split_at(message.len() - bare.len());
        Ok(Self { flag, gs2_header, bare, nonce })
    }
}

/// The server's challenge.
pub(super) struct ServerFirst<'a> {
    pub(super) nonce: &'a [u8],
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
}

impl<'a> ServerFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut attributes = Attributes(Some(message));
        let nonce = printable(attributes.expect(b'r')?)?;
        let salt = parse_salt(attributes.expect(b's')?)?;
        let iterations = parse_iterations(attributes.expect(b'i')?)?;
        while attributes.next()?.is_some() {}
        Ok(Self { nonce, salt, iterations })
    }
}

/// The client's proof.
pub(super) struct ClientFinal<'a> {
    /// The header of the client's opening, repeated, and what the login is bound to, in base64.
    pub(super) bound_to: &'a [u8],
    pub(super) nonce: &'a [u8],
    pub(super) proof: [u8; 32],
    /// All before the proof: what is signed.
    pub(super) signed: &'a [u8],
}

impl<'a> ClientFinal<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut attributes = Attributes(Some(message));
        let bound_to = attributes.expect(b'c')?;
        let nonce = printable(attributes.expect(b'r')?)?;
        loop {
            let unread = attributes.0.map_or(0, <[u8]>::len);
            match attributes.next()? {
                Some((b'p', proof)) if attributes.0.is_none() => {
                    // Less one more: the comma in front of the proof is not signed.
                    let signed = &message[..message.len() - unread - 1];
                    return Ok(Self { bound_to, nonce, proof: parse_32(proof)?, signed });
                }
                Some((b'p', _)) => return Err(Malformed("SCRAM proof is not the last attribute")),
                Some(_) => {}
                None => return Err(Malformed("SCRAM message has no proof")),
            }
        }
    }
}

/// The server's last word.
pub(super) enum ServerFinal {
    Signature([u8; 32]),
    /// `e=`: the server refuses. PostgreSQL sends an `ErrorResponse` in its stead.
    Error,
}

impl ServerFinal {
    pub(super) fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let mut attributes = Attributes(Some(message));
        let parsed = match attributes.next()? {
            Some((b'v', signature)) => Self::Signature(parse_32(signature)?),
            Some((b'e', _)) => Self::Error,
            _ => return Err(Malformed("SCRAM message has no signature")),
        };
        while attributes.next()?.is_some() {}
        Ok(parsed)
    }
}

/// Attributes not yet read; `None` after the last. `Some` of nothing is an attribute that is
/// missing after a comma, and malformed.
struct Attributes<'a>(Option<&'a [u8]>);

impl<'a> Attributes<'a> {
    fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, Malformed> {
        let Some(rest) = self.0 else { return Ok(None) };
        let end = rest.iter().position(|byte| *byte == b',');
        let (attribute, rest) = match end {
            Some(comma) => (&rest[..comma], Some(&rest[comma + 1..])),
            None => (rest, None),
        };
        self.0 = rest;
        match attribute {
            [b'm', b'=', ..] => Err(Malformed("SCRAM extension is required that is not supported")),
            [_, b'=', value @ ..] if value.contains(&0) => {
                Err(Malformed("SCRAM attribute has a zero byte in it"))
            }
            [name, b'=', value @ ..] if name.is_ascii_alphabetic() => Ok(Some((*name, value))),
            _ => Err(Malformed("SCRAM attribute is not a letter, an equals sign and a value")),
        }
    }

    fn expect(&mut self, name: u8) -> Result<&'a [u8], Malformed> {
        match self.next()? {
            Some((found, value)) if found == name => Ok(value),
            _ => Err(Malformed("SCRAM attribute is missing or out of place")),
        }
    }
}

fn printable(nonce: &[u8]) -> Result<&[u8], Malformed> {
    let fits = !nonce.is_empty() && nonce.iter().all(u8::is_ascii_graphic);
    fits.then_some(nonce).ok_or(Malformed("SCRAM nonce is empty or not printable"))
}

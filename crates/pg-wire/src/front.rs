//! Readers for the messages of a client, as far as a proxy must understand them.
//!
//! Names stand at the front of every message that has any. The readers take the part of a body that
//! has arrived, and return `None` until the names are complete. Refrain forwards the rest of the
//! body unread.

use memchr::memchr;

use crate::Malformed;
use crate::frame::{split_string, split_text};

/// The longest name that Refrain accepts, in bytes. PostgreSQL keeps the first 63 bytes of a name.
pub const NAME_BYTES_MAX: usize = 8 * 1024;

/// A name and the bytes after it, if the name is complete.
type Split<'a> = Option<(&'a [u8], &'a [u8])>;

/// Reads a name, which may still be incomplete. A name longer than [`NAME_BYTES_MAX`] is an error.
fn name(bytes: &[u8], complete: bool) -> Result<Split<'_>, Malformed> {
    match split_string(bytes) {
        Some((name, _)) if name.len() > NAME_BYTES_MAX => Err(Malformed::new("name")),
        None if complete || bytes.len() > NAME_BYTES_MAX => Err(Malformed::new("name")),
        split => Ok(split),
    }
}

/// Prepares a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// The text with its zero byte, and the parameter types: these define the statement.
    pub tail: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Reads a whole body.
    ///
    /// # Errors
    /// A body that does not hold a name, a text and a list of types.
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let bad = Malformed::new("Parse");
        let (name, tail) = split_string(body).ok_or(bad)?;
        let (_, types) = split_text(tail).ok_or(bad)?;
        let (count, oids) = types.split_first_chunk::<2>().ok_or(bad)?;
        let sound = oids.len() == 4 * usize::from(u16::from_be_bytes(*count));
        if sound { Ok(Self { name, tail }) } else { Err(bad) }
    }

    /// Returns the text without its zero byte.
    pub fn text(&self) -> &'a [u8] {
        split_text(self.tail).map_or(&[], |(text, _)| text)
    }
}

/// Binds parameters to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal to create; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement from which the portal is created.
    pub statement: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Reads the names at the front of a body; `None` if they are incomplete.
    ///
    /// # Errors
    /// A body that ends before its names do, or a name that is too long.
    #[inline]
    pub fn read(body: &'a [u8], complete: bool) -> Result<Option<Self>, Malformed> {
        let Some((portal, rest)) = name(body, complete)? else { return Ok(None) };
        let Some((statement, _)) = name(rest, complete)? else { return Ok(None) };
        Ok(Some(Self { portal, statement }))
    }

    /// Returns the length of the two names with their zero bytes. The bytes after them are
    /// forwarded unread.
    #[inline]
    pub fn names_bytes(&self) -> usize {
        self.portal.len() + self.statement.len() + 2
    }
}

/// The object of a Describe or Close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement.
    Statement(&'a [u8]),
    /// A portal.
    Portal(&'a [u8]),
    /// A kind that PostgreSQL does not know; it replies with an error of its own.
    Unknown,
}

impl<'a> Target<'a> {
    /// Reads the whole body of a Describe or Close.
    ///
    /// # Errors
    /// A body that does not hold a kind and a name.
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let bad = Malformed::new("Describe or Close");
        let (&kind, rest) = body.split_first().ok_or(bad)?;
        let (name, rest) = split_string(rest).ok_or(bad)?;
        if !rest.is_empty() {
            return Err(bad);
        }
        Ok(match kind {
            crate::tag::STATEMENT => Self::Statement(name),
            crate::tag::PORTAL => Self::Portal(name),
            _ => Self::Unknown,
        })
    }
}

/// Returns the name of the portal that an Execute runs.
///
/// # Errors
/// A body that does not hold a name and a row limit.
#[inline]
pub fn execute_portal(body: &[u8]) -> Result<&[u8], Malformed> {
    match split_string(body) {
        Some((portal, limit)) if limit.len() == 4 => Ok(portal),
        _ => Err(Malformed::new("Execute")),
    }
}

/// Returns the text of a Query.
///
/// # Errors
/// A body that is not one string.
#[inline]
pub fn query_text(body: &[u8]) -> Result<&[u8], Malformed> {
    match body.split_last() {
        Some((0, text)) if memchr(0, text).is_none() => Ok(text),
        _ => Err(Malformed::new("Query")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_is_a_name_and_a_tail() {
        let parse = Parse::read(b"s1\0select $1\0\0\x01\0\0\0\x17").unwrap();
        assert_eq!(parse.name, b"s1");
        assert_eq!(parse.text(), b"select $1");
        assert_eq!(parse.tail, b"select $1\0\0\x01\0\0\0\x17");
        for bad in [&b"s1"[..], b"s1\0sel", b"s1\0sel\0", b"s1\0sel\0\0\x01", b"s\0t\0\0\0x"] {
            assert!(Parse::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bind_waits_for_its_names_only() {
        assert_eq!(Bind::read(b"p\0s", false), Ok(None));
        assert!(Bind::read(b"p\0s", true).is_err());
        let bind = Bind::read(b"p\0s1\0rest", false).unwrap().unwrap();
        assert_eq!((bind.portal, bind.statement, bind.names_bytes()), (&b"p"[..], &b"s1"[..], 5));
        assert!(Bind::read(&[b'x'; NAME_BYTES_MAX + 1], false).is_err());
    }

    #[test]
    fn targets_and_portals() {
        assert_eq!(Target::read(b"Sx\0"), Ok(Target::Statement(b"x")));
        assert_eq!(Target::read(b"P\0"), Ok(Target::Portal(b"")));
        assert_eq!(Target::read(b"Q\0"), Ok(Target::Unknown));
        assert!(Target::read(b"S").is_err());
        assert!(Target::read(b"Sx\0y").is_err());
        assert_eq!(execute_portal(b"p\0\0\0\0\0"), Ok(&b"p"[..]));
        assert!(execute_portal(b"p\0\0\0").is_err());
        assert_eq!(query_text(b"select 1\0"), Ok(&b"select 1"[..]));
        assert!(query_text(b"select 1").is_err());
    }
}

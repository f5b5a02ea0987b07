//! The parts of messages: header, length, and strings that end with a zero byte.

use memchr::memchr;

use crate::Malformed;

/// Bytes of a header: the tag and the length.
pub const HEADER_BYTES: usize = 5;

/// The largest message that PostgreSQL reads (`PQ_LARGE_MESSAGE_LIMIT`, 1 GiB less one byte). The
/// length counts its own four bytes, but not the tag.
pub const MESSAGE_BYTES_MAX: u32 = 0x3fff_ffff;

/// Tag and length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of message; see [`crate::tag`].
    pub tag: u8,
    /// Length of the body, in bytes.
    pub body: u32,
}

impl Header {
    /// Reads a header from the start of `bytes`; `None` if it is incomplete.
    ///
    /// # Errors
    /// A length below four or above [`MESSAGE_BYTES_MAX`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some((&[tag, a, b, c, d], _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        // The length counts itself but not the tag: five bytes on the wire say `4`.
        let length = u32::from_be_bytes([a, b, c, d]);
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Malformed::new("message length"));
        }
        Ok(Some(Self { tag, body: length - 4 }))
    }

    /// Returns the length of the whole message on the wire, in bytes.
    #[inline]
    pub fn message_bytes(self) -> usize {
        HEADER_BYTES + self.body as usize
    }
}

/// Splits a string that ends with a zero byte off the front of `bytes`; `None` if there is no zero
/// byte.
#[inline]
pub fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&b| b == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Does the same with an SQL text: it is longer than names and values are.
#[inline]
pub fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(0, bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Writes the length of everything appended since `start` into the four bytes reserved there.
pub(crate) fn patch_length(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_when_all_of_it_is_there() {
        assert_eq!(Header::parse(b"Z\0\0\0"), Ok(None));
        let header = Header::parse(b"Z\0\0\0\x05I").unwrap().unwrap();
        assert_eq!(header, Header { tag: b'Z', body: 1 });
        assert_eq!(header.message_bytes(), 6);
    }

    #[test]
    fn a_length_that_cannot_be_is_malformed() {
        assert!(Header::parse(b"Q\0\0\0\x03").is_err());
        assert!(Header::parse(b"Q\xff\xff\xff\xff").is_err());
        assert!(Header::parse(b"Q\x40\0\0\0").is_err());
        assert!(Header::parse(b"Q\x3f\xff\xff\xff").is_ok());
    }

    #[test]
    fn strings_end_with_a_zero_byte() {
        assert_eq!(split_string(b"ab\0c"), Some((&b"ab"[..], &b"c"[..])));
        assert_eq!(split_string(b"ab"), None);
        assert_eq!(split_string(b"\0"), Some((&b""[..], &b""[..])));
    }
}

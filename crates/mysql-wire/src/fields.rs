//! The fields that packets are made of: integers, strings, and both with encoded lengths.
//!
//! Integers have the lowest byte first. A length-encoded integer takes one byte up to 0xFA; 0xFC,
//! 0xFD and 0xFE say that two, three or eight bytes follow. 0xFB stands for NULL where a value is
//! due, and 0xFF for an error packet: neither begins an integer. (MySQL, "Integers" and "Strings";
//! MariaDB, "Protocol Data Types".)

/// Reads fields from the front of a slice. Each read returns `None` if the slice is too short, or
/// cannot hold such a field at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the bytes that have not been read.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// True if all has been read.
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Reads this many bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads an array.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Reads an integer of one byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads an integer of two bytes.
    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads an integer of four bytes.
    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a length-encoded integer.
    #[inline]
    pub(crate) fn integer(&mut self) -> Option<u64> {
        match self.u8()? {
            short @ ..=0xFA => Some(u64::from(short)),
            0xFC => self.u16().map(u64::from),
            0xFD => self.array().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xFE => self.array().map(u64::from_le_bytes),
            0xFB | 0xFF => None,
        }
    }

    /// Reads a string with a length-encoded length.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.integer()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Reads a string that ends with a zero byte, which is not returned.
    pub(crate) fn null_terminated(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let string = self.bytes(end)?;
        self.u8()?;
        Some(string)
    }

    /// Reads a string that ends with a zero byte or with the slice.
    pub(crate) fn until_null_or_end(&mut self) -> &'a [u8] {
        self.null_terminated().unwrap_or_else(|| std::mem::take(&mut self.0))
    }
}

/// Appends a length-encoded integer in its shortest form.
pub(crate) fn put_integer(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        ..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => out.extend_from_slice(&[0xFC, bytes[0], bytes[1]]),
        0x1_0000..=0xFF_FFFF => out.extend_from_slice(&[0xFD, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a string with a length-encoded length.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends a string and its zero byte.
pub(crate) fn put_null_terminated(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_as_many_bytes_as_the_manual_says() {
        let cases: [(u64, &[u8]); 8] = [
            (0, b"\x00"),
            (250, b"\xfa"),
            (251, b"\xfc\xfb\x00"),
            (0xFFFF, b"\xfc\xff\xff"),
            (0x1_0000, b"\xfd\x00\x00\x01"),
            (0xFF_FFFF, b"\xfd\xff\xff\xff"),
            (0x100_0000, b"\xfe\x00\x00\x00\x01\x00\x00\x00\x00"),
            (u64::MAX, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            put_integer(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Fields(&out).integer(), Some(value));
            for cut in 0..out.len() {
                assert_eq!(Fields(&out[..cut]).integer(), None, "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn null_and_error_are_no_integers() {
        assert_eq!(Fields(b"\xfb\0\0\0\0\0\0\0\0").integer(), None);
        assert_eq!(Fields(b"\xff\0\0\0\0\0\0\0\0").integer(), None);
    }

    #[test]
    fn a_length_beyond_the_end_is_no_string() {
        assert_eq!(Fields(b"\x03ab").string(), None);
        assert_eq!(Fields(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffab").string(), None);
        assert_eq!(Fields(b"\x02abc").string(), Some(&b"ab"[..]));
    }

    #[test]
    fn strings_with_a_zero_byte() {
        let mut fields = Fields(b"ab\0cd");
        assert_eq!(fields.null_terminated(), Some(&b"ab"[..]));
        assert_eq!(fields.null_terminated(), None);
        assert_eq!(fields.until_null_or_end(), b"cd");
        assert!(fields.is_empty());
    }
}

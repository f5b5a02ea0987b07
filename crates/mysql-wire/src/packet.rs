//! Packets: a header of four bytes and a payload.
//!
//! The header has the payload's length in three bytes and a sequence id in one. The sequence id is
//! 0 in the first packet of a command, and counts the packets of both directions up to the next
//! command, modulo 256. A payload of 0xFFFFFF bytes (16 MiB less one) is continued in the next
//! packet: a message of exactly that length is followed by an empty packet. So the first byte of a
//! packet says something only where the packet before it was shorter. (MySQL, "MySQL Packets";
//! MariaDB, "Protocol Data Types" and "0 - Packet".)

/// Bytes of a header.
pub const HEADER_BYTES: usize = 4;
/// The most bytes of a payload in one packet. A packet with as many is continued by the next one.
pub const PAYLOAD_BYTES_MAX: u32 = 0xFF_FFFF;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload, in bytes.
    pub payload: u32,
    /// The packet's place in its command, modulo 256.
    pub sequence: u8,
}

impl Header {
    /// Reads a header from the start of `bytes`; `None` if it is incomplete. Any four bytes are
    /// one.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[a, b, c, sequence], _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        Some(Self { payload: u32::from_le_bytes([a, b, c, 0]), sequence })
    }

    /// Returns the length of the whole packet on the wire, in bytes.
    #[inline]
    pub fn packet_bytes(self) -> usize {
        HEADER_BYTES + self.payload as usize
    }

    /// True if the next packet continues this one's message.
    #[inline]
    pub fn is_continued(self) -> bool {
        self.payload == PAYLOAD_BYTES_MAX
    }

    /// Returns the bytes on the wire.
    #[inline]
    pub fn bytes(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, _] = self.payload.to_le_bytes();
        [a, b, c, self.sequence]
    }
}

/// A whole packet and the bytes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The packet's header.
    pub header: Header,
    /// The packet's payload.
    pub payload: &'a [u8],
    /// The bytes after the packet.
    pub rest: &'a [u8],
}

/// Splits a packet off the front of `bytes`; `None` if it is incomplete.
#[inline]
pub fn split(bytes: &[u8]) -> Option<Packet<'_>> {
    let header = Header::parse(bytes)?;
    let (payload, rest) = bytes.get(HEADER_BYTES..)?.split_at_checked(header.payload as usize)?;
    Some(Packet { header, payload, rest })
}

/// Knows which packets of a stream begin a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    continues: bool,
}

impl Boundaries {
    /// Takes the next packet's header. Returns true if the packet begins a message.
    #[inline]
    pub fn begins(&mut self, header: Header) -> bool {
        let begins = !self.continues;
        self.continues = header.is_continued();
        begins
    }

    /// True if the next packet continues a message.
    pub fn is_within(self) -> bool {
        self.continues
    }
}

/// Appends a message, in as many packets as it needs; `fill` writes its payload. Returns the
/// sequence id of the next packet.
pub fn message(out: &mut Vec<u8>, sequence: u8, fill: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    fill(out);
    finish(out, start, sequence)
}

/// Writes the headers of a payload that stands behind four reserved bytes at `start`.
fn finish(out: &mut Vec<u8>, mut start: usize, mut sequence: u8) -> u8 {
    const MAX: usize = PAYLOAD_BYTES_MAX as usize;
    loop {
        let length = out.len() - start - HEADER_BYTES;
        let payload = length.min(MAX) as u32;
        out[start..start + HEADER_BYTES].copy_from_slice(&Header { payload, sequence }.bytes());
        sequence = sequence.wrapping_add(1);
        if length < MAX {
            return sequence;
        }
        // Room for the header of the next packet, which may be empty.
        start += HEADER_BYTES + MAX;
        out.splice(start..start, [0; HEADER_BYTES]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_when_all_of_it_is_there() {
        assert_eq!(Header::parse(b"\x07\0\0"), None);
        let header = Header::parse(b"\x07\0\0\x02").expect("a header");
        assert_eq!(header, Header { payload: 7, sequence: 2 });
        assert_eq!((header.packet_bytes(), header.bytes()), (11, *b"\x07\0\0\x02"));
    }

    #[test]
    fn a_packet_is_split_when_all_of_it_is_there() {
        let bytes = b"\x02\0\0\x01abc";
        for cut in 0..6 {
            assert_eq!(split(&bytes[..cut]), None);
        }
        let packet = split(bytes).expect("a packet");
        assert_eq!((packet.payload, packet.rest), (&b"ab"[..], &b"c"[..]));
    }

    #[test]
    fn messages_are_continued_from_sixteen_mebibytes_on() {
        const MAX: usize = PAYLOAD_BYTES_MAX as usize;
        for (length, payloads) in [
            (0, vec![0]),
            (MAX - 1, vec![MAX - 1]),
            (MAX, vec![MAX, 0]),
            (MAX + 1, vec![MAX, 1]),
            (2 * MAX, vec![MAX, MAX, 0]),
        ] {
            let mut out = b"before".to_vec();
            let written: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let next = message(&mut out, 255, |out| out.extend_from_slice(&written));
            assert_eq!(next, 255u8.wrapping_add(payloads.len() as u8));
            let (mut rest, mut read) = (&out[6..], Vec::new());
            let (mut boundaries, mut lengths) = (Boundaries::default(), Vec::new());
            while let Some(packet) = split(rest) {
                assert_eq!(packet.header.sequence, 255u8.wrapping_add(lengths.len() as u8));
                assert_eq!(boundaries.begins(packet.header), lengths.is_empty());
                lengths.push(packet.payload.len());
                read.extend_from_slice(packet.payload);
                rest = packet.rest;
            }
            assert!(lengths == payloads && read == written && rest.is_empty());
            assert!(!boundaries.is_within());
        }
    }
}

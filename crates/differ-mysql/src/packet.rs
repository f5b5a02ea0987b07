//! Packets, and the numbers in them.

/// The longest payload of a packet. The packet behind one of this length continues it.
pub const PAYLOAD_MAX: usize = 0xFF_FFFF;

/// A packet of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sequence id.
    pub sequence: u8,
    /// All bytes behind the header.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Whether it is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.payload.first() == Some(&0xFF)
    }

    /// Returns the number of the error that it is.
    #[must_use]
    pub fn error(&self) -> Option<u16> {
        let number = self.payload.get(1..3).filter(|_| self.is_error())?;
        Some(u16::from_le_bytes([number[0], number[1]]))
    }
}

/// Returns the first packet of some bytes with its length; `None` if it is not whole yet.
#[must_use]
pub fn first(bytes: &[u8]) -> Option<(Packet, usize)> {
    let header = bytes.first_chunk::<4>()?;
    let end = 4 + number(&header[..3])?;
    let payload = bytes.get(4..end)?.to_vec();
    Some((Packet { sequence: header[3], payload }, end))
}

/// Appends a message in as many packets as it takes. Returns the next sequence id.
pub fn put(out: &mut Vec<u8>, mut sequence: u8, payload: &[u8]) -> u8 {
    let mut rest = payload;
    loop {
        let (now, behind) = rest.split_at(rest.len().min(PAYLOAD_MAX));
        let length = u32::try_from(now.len()).unwrap_or(0).to_le_bytes();
        out.extend([length[0], length[1], length[2], sequence]);
        out.extend_from_slice(now);
        sequence = sequence.wrapping_add(1);
        rest = behind;
        if now.len() < PAYLOAD_MAX {
            return sequence;
        }
    }
}

/// Reads a number of up to eight bytes, the lowest first.
#[must_use]
pub fn number(bytes: &[u8]) -> Option<usize> {
    bytes
        .iter()
        .rev()
        .try_fold(0usize, |sum, byte| Some(sum.checked_mul(256)? + usize::from(*byte)))
}

/// Reads a number whose first byte says how long it is. Returns it with its length in bytes.
#[must_use]
pub fn long_number(bytes: &[u8]) -> Option<(usize, usize)> {
    let length = match bytes.first()? {
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        small if *small < 0xFB => return Some((usize::from(*small), 1)),
        _ => return None,
    };
    Some((number(bytes.get(1..=length)?)?, 1 + length))
}

/// Appends a number whose first byte says how long it is.
fn put_long_number(out: &mut Vec<u8>, value: usize) {
    let bytes = value.to_le_bytes();
    let (first, length) = match value {
        0..0xFB => return out.push(bytes[0]),
        0xFB..0x1_0000 => (0xFC, 2),
        0x1_0000..0x100_0000 => (0xFD, 3),
        _ => (0xFE, 8),
    };
    out.push(first);
    out.extend_from_slice(&bytes[..length]);
}

/// Returns a string with its length in front.
#[must_use]
pub fn string(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_long_number(&mut out, value.len());
    out.extend_from_slice(value);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_into_packets() {
        for (length, packets) in [(0, 1), (5, 1), (PAYLOAD_MAX, 2), (PAYLOAD_MAX + 1, 2)] {
            let mut out = Vec::new();
            assert_eq!(usize::from(put(&mut out, 0, &vec![7; length])), packets);
            let (packet, end) = first(&out).expect("a packet");
            assert_eq!((packet.sequence, packet.payload.len()), (0, length.min(PAYLOAD_MAX)));
            assert_eq!(first(&out[end..]).is_some(), packets == 2);
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 250, 251, 65_535, 65_536, 16_777_215, 16_777_216] {
            let mut out = Vec::new();
            put_long_number(&mut out, value);
            assert_eq!(long_number(&out), Some((value, out.len())));
        }
        assert_eq!(long_number(b"\xfb"), None);
        assert_eq!(long_number(b"\xfc\0"), None);
    }
}

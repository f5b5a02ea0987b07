//! Messages out of the bytes that arrive.

use anyhow::{Context, Result, ensure};

/// The longest message. Neither side of this benchmark sends one near it.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The bytes of an incomplete message.
#[derive(Debug, Default)]
pub(in crate::bench) struct Incoming {
    partial: Vec<u8>,
}

impl Incoming {
    /// Calls `each` with the letter and body of every message that `bytes` complete, and keeps the
    /// rest.
    pub(in crate::bench) fn messages(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(u8, &[u8]) -> Result<()>,
    ) -> Result<()> {
        // Nearly always the bytes are whole messages: then nothing is copied.
        let before = std::mem::take(&mut self.partial);
        let joined;
        let mut rest = bytes;
        if !before.is_empty() {
            joined = [before.as_slice(), bytes].concat();
            rest = &joined;
        }
        while let Some((head, after)) = rest.split_first_chunk::<5>() {
            let [letter, length @ ..] = *head;
            let length = u32::from_be_bytes(length) as usize;
            ensure!((4..MESSAGE_BYTES_MAX).contains(&length), "a message of {length} bytes");
            let Some((body, after)) = after.split_at_checked(length - 4) else { break };
            each(letter, body)?;
            rest = after;
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// Takes the packet without a letter with which a connection begins: its code and the rest.
    /// `None` if there is more to come.
    pub(in crate::bench) fn first_packet(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<(u32, Vec<u8>)>> {
        self.partial.extend_from_slice(bytes);
        let Some((length, _)) = self.partial.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        ensure!((8..MESSAGE_BYTES_MAX).contains(&length), "a first packet of {length} bytes");
        if self.partial.len() < length {
            return Ok(None);
        }
        let packet: Vec<u8> = self.partial.drain(..length).collect();
        let (code, body) =
            packet.get(4..).and_then(|rest| rest.split_first_chunk::<4>()).context("no code")?;
        Ok(Some((u32::from_be_bytes(*code), body.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_any_pieces() {
        let bytes = b"S\0\0\0\x04Q\0\0\0\x06x\0";
        for size in 1..=bytes.len() {
            let mut incoming = Incoming::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(size) {
                incoming
                    .messages(piece, |letter, body| {
                        got.push((letter, body.to_vec()));
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(got, [(b'S', vec![]), (b'Q', b"x\0".to_vec())], "pieces of {size}");
        }
        let short = Incoming::default().messages(b"S\0\0\0\x03", |_, _| Ok(()));
        assert!(short.is_err());
    }

    #[test]
    fn a_first_packet_in_pieces() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.first_packet(b"\0\0\0\x09\0\0").unwrap(), None);
        let packet = incoming.first_packet(b"\x01\x02xS").unwrap();
        assert_eq!(packet, Some((258, b"x".to_vec())));
        assert_eq!(incoming.partial, b"S");
    }
}

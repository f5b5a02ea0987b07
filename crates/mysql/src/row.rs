//! Rows of text that Refrain asks for itself.

/// Returns the values of a row; NULL as nothing. `None` if the payload is no row, or has a value of
/// 16 MiB.
pub(crate) fn strings(payload: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let (mut row, mut rest) = (Vec::new(), payload);
    while let Some((&first, behind)) = rest.split_first() {
        let (length, behind) = match first {
            ..=0xFA => (usize::from(first), behind),
            0xFB => (0, behind),
            0xFC => {
                let (length, behind) = behind.split_first_chunk::<2>()?;
                (usize::from(u16::from_le_bytes(*length)), behind)
            }
            0xFD => {
                let (&[a, b, c], behind) = behind.split_first_chunk::<3>()?;
                (u32::from_le_bytes([a, b, c, 0]) as usize, behind)
            }
            _ => return None,
        };
        let (value, behind) = behind.split_at_checked(length)?;
        row.push(value.into());
        rest = behind;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lengths_in_front() {
        let row = strings(b"\x01a\xfb\xfc\x02\x00bc").expect("a row");
        assert_eq!(row, [b"a"[..].into(), b""[..].into(), b"bc"[..].into()]);
        assert_eq!(strings(b"\x02a"), None);
        assert_eq!(strings(b"\xfd\x01\x00\x00a"), Some(vec![b"a"[..].into()]));
        assert_eq!(strings(b"\xfe\x01\x00\x00a"), None);
    }
}

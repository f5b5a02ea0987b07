//! Rows of a text result set. (MySQL, "Text Resultset Row"; MariaDB, "Result Set Packets".)

use crate::fields::Fields;

/// The byte that stands for NULL.
const NULL: u8 = 0xFB;

/// Returns the values of a row; NULL as nothing. `None` if the payload is no row.
pub fn strings(payload: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let (mut row, mut fields) = (Vec::new(), Fields(payload));
    while let Some(&first) = fields.rest().first() {
        let value = if first == NULL { fields.bytes(1).map(|_| &b""[..]) } else { fields.string() };
        row.push(value?.into());
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

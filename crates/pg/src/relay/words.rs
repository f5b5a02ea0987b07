//! The fields of an error from a server, as far as they have arrived.
//!
//! An error may be as long as a row: its message may quote a value, its context a statement.
//! Refrain passes it on as it passes on rows, and streams the part that has not arrived. PostgreSQL
//! writes severity and SQLSTATE before the fields that may be long.

use refrain_pg_wire::back::Fields;

/// Most characters of a server's error that go into the log.
const LOGGED_MAX: usize = 1000;

/// An error as far as it has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// The fields that have arrived in full.
    pub(crate) fields: Fields<'a>,
    /// The bytes behind those fields: nothing, or the beginning of a field.
    rest: &'a [u8],
    /// Number of bytes that have not arrived.
    pub(crate) missing: usize,
}

impl<'a> Words<'a> {
    /// Reads the body of an error of which `missing` bytes have not arrived.
    pub(crate) fn read(body: &'a [u8], missing: usize) -> Self {
        let (fields, rest) = Fields(body).split();
        let rest = if missing > 0 { rest } else { &[] };
        Self { fields, rest, missing }
    }

    /// Returns the same error, ended after its last whole field. For a client whose session ends
    /// with the error: it gets no more than what has arrived.
    pub(crate) fn cut(&self) -> Self {
        Self { rest: &[], missing: 0, ..*self }
    }

    /// Appends the bytes behind the fields: the beginning of the next field as it came, or the
    /// terminator if the error has arrived in full.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        match self.missing {
            0 => out.push(0),
            _ => out.extend_from_slice(self.rest),
        }
    }
}

/// Returns the words of a server for the log.
pub(crate) fn logged(words: &[u8]) -> String {
    String::from_utf8_lossy(words).chars().take(LOGGED_MAX).collect()
}

/// Appends `value` with the client's name in place of every internal name, and of the empty name.
pub(crate) fn rename(out: &mut Vec<u8>, value: &[u8], prefix: &[u8], name: &[u8]) {
    let mut rest = value;
    while let Some(at) = find(rest, prefix) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(name);
        let after = &rest[at + prefix.len()..];
        let end = after.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'.');
        rest = &after[end.unwrap_or(after.len())..];
    }
    let nothing = b"prepared statement \"\" ";
    if let Some(at) = find(rest, nothing) {
        let quote = at + nothing.len() - b"\" ".len();
        out.extend_from_slice(&rest[..quote]);
        out.extend_from_slice(name);
        rest = &rest[quote..];
    }
    out.extend_from_slice(rest);
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(value: &str) -> String {
        let mut out = Vec::new();
        rename(&mut out, value.as_bytes(), b"_rabc_", b"S_1");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_client_hears_the_name_it_gave() {
        let was = "prepared statement \"_rabc_1f.2\" already exists";
        assert_eq!(renamed(was), "prepared statement \"S_1\" already exists");
        let was = "bind message supplies 1 parameters, but prepared statement \"\" requires 2";
        let now = "bind message supplies 1 parameters, but prepared statement \"S_1\" requires 2";
        assert_eq!(renamed(was), now);
        for other in ["division by zero", "prepared statement \"\"q\"\" does not exist"] {
            assert_eq!(renamed(other), other);
        }
    }
}

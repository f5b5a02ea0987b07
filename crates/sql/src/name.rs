//! Names as they are written in a text, and as the server reads them.
//!
//! What: [`Name`] is the span of an identifier; [`Name::fold`] returns the name that the server
//! makes of it.
//!
//! Why: a client's map of statements is keyed by the name itself: `DEALLOCATE Plan_1` and
//! `DEALLOCATE "plan_1"` mean the same statement. To replace a name in a text, Refrain needs its
//! span.
//!
//! What always holds: just spans of [`crate::lex::TokenKind::Word`] and `Quoted` tokens become a
//! `Name` that is looked up. `U&"…"` never does: such statements go to the server unchanged.
//!
//! What it does not do: fold letters outside ASCII. The server folds them in single-byte encodings,
//! by its locale.

use std::borrow::Cow;

/// The length to which the server truncates a name, in bytes: `NAMEDATALEN` − 1.
pub const MAX_NAME: usize = 63;

/// The span of a name in a text, with its quotes if it has any. It is packed so that a
/// [`crate::Scan`] takes 24 bytes: a process has one for each statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed)]
pub struct Name {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
}

impl Name {
    /// Returns the bytes as written. `text` is the text in which the name was found; for another
    /// text, the result is the bytes at that place, or nothing.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// True if the server may truncate the name, and sends a notice (42622) of that.
    #[must_use]
    pub fn is_long(&self) -> bool {
        (self.end - self.start) as usize > MAX_NAME
    }

    /// Returns the name as the server reads it: without quotes, or else in lower case, truncated to
    /// [`MAX_NAME`] bytes between UTF-8 characters. Borrows unless letters or quotes have to
    /// change.
    pub fn fold<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        fold(self.of(text))
    }
}

/// Folds an identifier, like [`Name::fold`].
pub(crate) fn fold(written: &[u8]) -> Cow<'_, [u8]> {
    if let Some(inside) = unquoted(written) {
        if !inside.contains(&b'"') {
            return Cow::Borrowed(cut(inside));
        }
        let mut name = Vec::with_capacity(inside.len());
        let mut bytes = inside.iter();
        while let Some(&byte) = bytes.next() {
            name.push(byte);
            if byte == b'"' {
                bytes.next();
            }
        }
        name.truncate(cut(&name).len());
        return Cow::Owned(name);
    }
    let written = cut(written);
    if written.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(written.to_ascii_lowercase())
    } else {
        Cow::Borrowed(written)
    }
}

/// Returns the bytes between the quotes of `"…"`, with doubled quotes left as they are.
pub(crate) fn unquoted(written: &[u8]) -> Option<&[u8]> {
    written.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn cut(name: &[u8]) -> &[u8] {
    let mut end = name.len().min(MAX_NAME);
    if end < name.len() {
        // Bytes 10xxxxxx continue a character: a character that does not fit is cut as a whole.
        while end > 0 && name[end] & 0xc0 == 0x80 {
            end -= 1;
        }
    }
    &name[..end]
}

//! Names as they are written in a text, and as the server reads them.
//!
//! What: [`Name`] is the span of an identifier; [`Name::fold`] is the name the server makes of it.
//!
//! Why: a client's map of statements is keyed by the name itself, and `DEALLOCATE Plan_1` and
//! `DEALLOCATE "plan_1"` are the
//! same one; and to replace a name in a text, its span is what is needed.
//!
//! What always holds: only the span of a [`crate::lex::TokenKind::Word`] or `Quoted` token
//! becomes a `Name` that is to be
//! looked up. `U&"…"` never does: such statements go to the server untouched.
//!
//! What it does not do: fold letters outside ASCII. The server does so in single-byte encodings, by its locale.

use std::borrow::Cow;

/// The bytes the server keeps of a name: `NAMEDATALEN` − 1.
pub const MAX_NAME: usize = 63;

/// The span of a name in a text, with its quotes if it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
}

impl Name {
    /// The bytes as written. `text` is the text the name was found in; of another text, what lies there, or nothing.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The name the server reads: without quotes, or else in lower case; at most [`MAX_NAME`] bytes, cut between UTF-8
    /// characters. Borrows unless letters or quotes have to change.
    pub fn fold<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        fold(self.of(text))
    }
}

/// [`Name::fold`] of an identifier as written.
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

/// What stands between the quotes of `"…"`, its doubled quotes left as they are.
pub(crate) fn unquoted(written: &[u8]) -> Option<&[u8]> {
    written.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn cut(name: &[u8]) -> &[u8] {
    let mut end = name.len().min(MAX_NAME);
    if end < name.len() {
        // Bytes 10xxxxxx go on with a character: one that does not fit goes as a whole.
        while end > 0 && name[end] & 0xc0 == 0x80 {
            end -= 1;
        }
    }
    &name[..end]
}

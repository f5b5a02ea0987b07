//! The kinds that a token may have, by its first byte.

/// The kind that a token beginning with a byte may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Punctuation,
    Space,
    Word,
    /// A word, unless a quote follows: b, e, u, x.
    Prefix,
    Digit,
    Operator,
    Quote,
    DoubleQuote,
    Dollar,
}

pub(super) static CLASSES: [Class; 256] = classes();

pub(super) const fn classes() -> [Class; 256] {
    let mut table = [Class::Punctuation; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match at as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Class::Space,
            b'b' | b'B' | b'e' | b'E' | b'u' | b'U' | b'x' | b'X' => Class::Prefix,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' => Class::Operator,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' => Class::Operator,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            b'$' => Class::Dollar,
            _ => Class::Punctuation,
        };
        at += 1;
    }
    table
}

#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    CLASSES[byte as usize] == Class::Space
}

pub(super) fn is_newline(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// Whether an identifier may go on with the byte.
#[inline]
pub(crate) fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

static WORD: [bool; 256] = {
    let classes = classes();
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        table[at] =
            matches!(classes[at], Class::Word | Class::Prefix | Class::Digit | Class::Dollar);
        at += 1;
    }
    table
};

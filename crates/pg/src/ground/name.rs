//! Name: the name of a statement, a portal or a parameter, in 24 bytes.
//!
//! A client may have many thousands of names, and nearly all are short.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// Bytes that fit in place: the names of drivers (`S_12`, `__asyncpg_stmt_3__`) do.
const INLINE: usize = 22;

/// A name: bytes in the client's encoding.
#[derive(Clone)]
pub(crate) struct Name(Bytes);

#[derive(Clone)]
enum Bytes {
    /// The first so many of these bytes.
    Inline(u8, [u8; INLINE]),
    Boxed(Box<[u8]>),
}

impl Name {
    /// Makes a name of these bytes.
    #[inline]
    pub(crate) fn from_slice(name: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        let Some(place) = bytes.get_mut(..name.len()) else {
            return Self(Bytes::Boxed(name.into()));
        };
        place.copy_from_slice(name);
        Self(Bytes::Inline(name.len() as u8, bytes))
    }

    /// Returns its bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Boxed(bytes) => bytes,
        }
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for Name {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Bytes::Inline(length, bytes) => &mut bytes[..usize::from(*length)],
            Bytes::Boxed(bytes) => bytes,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", String::from_utf8_lossy(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_their_bytes() {
        assert_eq!(size_of::<Name>(), 24);
        let long: Vec<u8> = (0..64).collect();
        for length in 0..=long.len() {
            let mut name = Name::from_slice(&long[..length]);
            assert_eq!(*name, long[..length]);
            assert_eq!(name, name.clone());
            if let Some(last) = name.last_mut() {
                *last = 255;
                assert_ne!(name, Name::from_slice(&long[..length]));
                assert_eq!(name.len(), length);
            }
        }
    }
}

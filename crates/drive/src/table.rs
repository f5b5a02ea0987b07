//! Connections by token, and beyond the lifetime of their token.
//!
//! The caller may reuse a token as soon as it has closed the connection, but the kernel may still
//! work for the old connection: bytes are being sent, or a completion is pending. So a connection
//! has a token, which the caller chooses, and a place. A place is named by a [`Key`], which the
//! kernel hands back with each event. The generation of a key changes whenever its place is
//! emptied, so a key fits just one in 16 million (2^`GENERATION_BITS`) connections on the same
//! place.

use crate::face::Token;

/// The place of a connection, as the kernel gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The number of bits in a key; a driver uses the bits above for itself.
    pub(crate) const BITS: u32 = 32 + GENERATION_BITS;

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Key {
        Key { index: bits as u32, generation: (bits >> 32) as u32 & GENERATION_MASK }
    }
}

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;
const NOWHERE: u32 = u32::MAX;

/// All connections of a driver. `T` is the driver's state of a connection.
pub(crate) struct Table<T> {
    /// The place of each token.
    places: Vec<u32>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

struct Entry<T> {
    generation: u32,
    token: Token,
    state: Option<T>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Table<T> {
        Table { places: Vec::new(), entries: Vec::new(), free: Vec::new() }
    }

    /// # Panics
    ///
    /// If the token is in use: two connections would be mixed up.
    pub(crate) fn insert(&mut self, token: Token, state: T) -> Key {
        let at = token.0 as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, NOWHERE);
        }
        assert!(self.places[at] == NOWHERE, "token {} is in use", token.0);
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, token, state: None });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.token = token;
        entry.state = Some(state);
        self.places[at] = index;
        Key { index, generation: entry.generation }
    }

    /// Returns the key of the connection with this token.
    pub(crate) fn key(&self, token: Token) -> Option<Key> {
        let index = *self.places.get(token.0 as usize)?;
        let entry = self.entries.get(index as usize)?;
        Some(Key { index, generation: entry.generation })
    }

    /// Frees the token; the connection stays, reachable by key, until [`Table::remove`].
    pub(crate) fn unbind(&mut self, token: Token) -> Option<Key> {
        let key = self.key(token)?;
        self.places[token.0 as usize] = NOWHERE;
        Some(key)
    }

    /// Returns the connection and its token, if it still exists. The token is meaningless once
    /// unbound.
    pub(crate) fn get(&mut self, key: Key) -> Option<(Token, &mut T)> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let token = entry.token;
        entry.state.as_mut().map(|state| (token, state))
    }

    /// Removes a connection whose token was freed. From now on its key is invalid.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let state = entry.state.take()?;
        entry.generation = entry.generation.wrapping_add(1) & GENERATION_MASK;
        self.free.push(key.index);
        Some(state)
    }
}

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// The result of `connect` is yet to come.
    Connecting,
    /// In use.
    Open,
    /// The peer has ended its stream in order, and `Closed` was delivered; the caller may still
    /// send.
    HalfOpen,
    /// `Closed` or `Failed` was delivered; the caller still has to close it.
    Ended,
    /// The caller has called `detach`; the socket is handed over when its last bytes are out.
    Leaving,
    /// The caller has closed it and its token is free; it is removed when its last bytes are out.
    Lingering,
    /// Closed as well, and its time is up: it is removed when the kernel has no request of it.
    Expired,
}

impl Life {
    /// Whether the caller may send.
    pub(crate) fn may_send(self) -> bool {
        matches!(self, Life::Open | Life::HalfOpen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlives_its_token_but_not_its_connection() {
        let mut table = Table::new();
        let old = table.insert(Token(3), "old");
        assert_eq!(table.unbind(Token(3)), Some(old));
        let new = table.insert(Token(3), "new");
        assert_eq!(table.get(old).map(|(_, state)| *state), Some("old"));
        assert_eq!(table.remove(old), Some("old"));
        let third = table.insert(Token(0), "third");
        assert_ne!(third, old);
        assert!(table.get(old).is_none());
        assert_eq!(table.remove(old), None);
        assert_eq!(table.key(Token(3)), Some(new));
        assert_eq!(Key::from_bits(third.to_bits()), third);
    }

    #[test]
    #[should_panic(expected = "token 1 is in use")]
    fn a_token_names_one_connection() {
        let mut table = Table::new();
        table.insert(Token(1), ());
        table.insert(Token(1), ());
    }
}

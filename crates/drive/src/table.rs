//! Connections by token, and beyond their token.
//!
//! The caller may use a token anew as soon as it has closed it, but the kernel may still work for the
//! old connection: bytes are leaving, a completion is under way. So the caller's token and the place of
//! a connection are two things. A place is named by a [`Key`], which the kernel hands back with each
//! event; its generation changes whenever the place is emptied, so a key fits one connection ever, or
//! rather one in 16 million on the same place.

use crate::face::Token;

/// The place of a connection, as handed to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Bits of a key; those above are the driver's own.
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

/// All connections of a driver. `T` is what the driver keeps for each.
pub(crate) struct Table<T> {
    /// Token to place.
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
    /// If the token is in use: to go on would be to mix up two connections.
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

    /// The connection that the caller calls `token`.
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

    /// The connection and its token, if it is still there. The token is of no use once unbound.
    pub(crate) fn get(&mut self, key: Key) -> Option<(Token, &mut T)> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let token = entry.token;
        entry.state.as_mut().map(|state| (token, state))
    }

    /// Forgets a connection whose token was freed. From now on its key names nothing.
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

/// What a connection has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// The answer to `connect` is yet to come.
    Connecting,
    /// In use.
    Open,
    /// The peer has ended its stream in order, and `Closed` was delivered; it may still be sent to.
    HalfOpen,
    /// `Closed` or `Failed` was delivered; the caller still has to close it.
    Ended,
    /// To be given up by `detach` when its last bytes are out.
    Leaving,
    /// Closed by the caller, its token free; gone when its last bytes are out.
    Lingering,
    /// Closed as well, and its time is up: gone when the kernel holds nothing for it.
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

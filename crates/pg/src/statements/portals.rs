//! Portals of a client: the statement of each portal that may do something to the session.
//!
//! Execute names a portal, not a statement, and the statement may end a transaction, change a
//! setting or drop statements. Of the other portals nothing is kept: most clients have an empty
//! map. Portals end with their transaction. The number of a client's portals is limited, and so are
//! the bytes that count for the client.
//!
//! Not here: portals that SQL makes (DECLARE). SQL executes those as well.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ground::ids::Segment;
use crate::ground::name::Name;
use crate::statements::of_client::key;
use crate::statements::of_core::CachedStatement;

/// The statement of a portal, if running it may do something to the session.
pub(crate) type Portal = Option<Rc<CachedStatement>>;

/// The portals of a client.
#[derive(Debug, Default)]
pub(crate) struct Portals {
    unnamed: Portal,
    named: HashMap<Name, Named>,
    bytes: usize,
}

/// A portal with a name.
#[derive(Debug)]
struct Named {
    cached: Rc<CachedStatement>,
    /// The server's segment of its Bind.
    segment: Segment,
}

impl Portals {
    /// Returns the statement of a portal, if running it may do something to the session.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Rc<CachedStatement>> {
        if name.is_empty() {
            return self.unnamed.as_ref();
        }
        self.named.get(key(name)).map(|portal| &portal.cached)
    }

    /// Remembers a portal that is bound in this segment, or forgets the one of this name.
    #[inline]
    pub(crate) fn set(&mut self, name: &[u8], portal: Portal, segment: Segment) {
        if name.is_empty() {
            self.unnamed = portal;
            return;
        }
        let name = key(name);
        if let Some((name, old)) = self.named.remove_entry(name) {
            let bytes = Self::cost(&name, &old.cached);
            self.bytes = self.bytes.checked_sub(bytes).expect("its bytes were counted");
        }
        if let Some(cached) = portal {
            self.bytes += Self::cost(name, &cached);
            self.named.insert(Name::from_slice(name), Named { cached, segment });
        }
    }

    /// True if there is room for one more portal within these limits: a number, and bytes.
    pub(crate) fn has_room(
        &self,
        name: &[u8],
        cached: &CachedStatement,
        (count_max, bytes_max): (usize, usize),
    ) -> bool {
        let fits = || self.bytes + Self::cost(key(name), cached) <= bytes_max;
        name.is_empty() || self.named.len() < count_max && fits()
    }

    /// Forgets the portals of the segments of a transaction that is over. Later portals may have
    /// been bound already.
    #[inline]
    pub(crate) fn end(&mut self, is_over: impl Fn(Segment) -> bool) {
        if !self.named.is_empty() {
            let bytes = &mut self.bytes;
            self.named.retain(|name, portal| {
                let stays = !is_over(portal.segment);
                let gone = if stays { 0 } else { Self::cost(name, &portal.cached) };
                *bytes = bytes.checked_sub(gone).expect("its bytes were counted");
                stays
            });
            if self.named.is_empty() {
                self.named = HashMap::new(); // an idle client owns no map
            }
        }
    }

    /// True if the count of bytes is that of the portals in the map.
    pub(crate) fn adds_up(&self) -> bool {
        let there = self.named.iter().map(|(name, portal)| Self::cost(name, &portal.cached));
        self.bytes == there.sum::<usize>()
    }

    /// Returns the bytes that count for the client: the name, and the text that it keeps in memory.
    fn cost(name: &[u8], cached: &CachedStatement) -> usize {
        size_of::<(Name, Named)>() + name.len() + cached.statement.tail().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::of_core::CoreStatements;
    use crate::statements::registry::Registry;
    use crate::statements::statement::Identity;
    use refrain_pool::ids::PoolId;
    use refrain_pool::seed::Seed;

    fn cached() -> Rc<CachedStatement> {
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail: b"begin" };
        let registry = Registry::new(1, Seed::default());
        CoreStatements::default().intern(&registry, identity, &crate::settings::session::nothing())
    }

    #[test]
    fn room_is_by_number_and_by_bytes() {
        let (mut portals, cached) = (Portals::default(), cached());
        let one = Portals::cost(b"a", &cached);
        portals.set(b"a", Some(cached.clone()), 1);
        assert!(portals.has_room(b"b", &cached, (2, 2 * one)));
        assert!(!portals.has_room(b"b", &cached, (1, 2 * one)));
        assert!(!portals.has_room(b"b", &cached, (2, 2 * one - 1)));
        assert!(portals.has_room(b"", &cached, (1, 0)));
    }

    #[test]
    fn bytes_follow_the_map() {
        let (mut portals, cached) = (Portals::default(), cached());
        for (name, segment) in [(&b"a"[..], 1), (b"b", 1), (b"c", 1), (b"a", 2), (b"", 2)] {
            portals.set(name, Some(cached.clone()), segment);
        }
        assert_eq!(portals.bytes, 3 * Portals::cost(b"a", &cached));
        portals.set(b"b", None, 2);
        assert_eq!(portals.bytes, 2 * Portals::cost(b"a", &cached));
        portals.end(|segment| segment <= 1);
        assert_eq!(portals.bytes, Portals::cost(b"a", &cached));
        assert!(portals.get(b"a").is_some() && portals.get(b"c").is_none());
        portals.end(|_| true);
        assert!(portals.bytes == 0 && portals.get(b"a").is_none());
    }
}

//! Placeholders: the parameters of the user's own (`app.tenant`) that a session has had.
//!
//! PostgreSQL does not forget one, be it set for one transaction: from then on
//! `current_setting('app.tenant', true)` is `''` where it was null before. No command takes that
//! back, `DISCARD ALL` neither. So Refrain notes which ones a client has named and which a server
//! was given, and the pool lends a client a server that it may not be able to tell from a new one
//! ([`Placeholders::suits`]).

/// The beginning of the names of Refrain's own settings. To PostgreSQL they are custom settings
/// without a meaning.
pub(crate) const OWN: &[u8] = b"refrain.";

/// Names that are kept for a session, at most.
const NAMES_MAX: usize = 64;
/// Bytes of such a name, at most.
const NAME_BYTES_MAX: usize = 128;

/// True for the name of a parameter of the user's own, which PostgreSQL does not forget.
pub(crate) fn is_placeholder(name: &[u8]) -> bool {
    name.contains(&b'.') && !name.starts_with(OWN)
}

/// The names of the parameters of the user's own that a session has had.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placeholders(Option<Box<Names>>);

/// Names in lower case and in order.
#[derive(Clone, Debug, Default)]
struct Names {
    names: Vec<Box<[u8]>>,
    /// Whether there are more than are kept.
    more: bool,
}

impl Placeholders {
    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a name.
    pub(crate) fn add(&mut self, name: &[u8]) {
        let this = self.0.get_or_insert_default();
        let lower = || name.iter().map(u8::to_ascii_lowercase);
        let Err(place) = this.names.binary_search_by(|known| known.iter().copied().cmp(lower()))
        else {
            return;
        };
        if this.names.len() < NAMES_MAX && name.len() <= NAME_BYTES_MAX {
            this.names.insert(place, lower().collect());
        } else {
            this.more = true;
        }
    }

    /// Returns how many of a client's a server with these lacks; `None` if the client could tell
    /// that others had the server.
    pub(crate) fn suits(&self, client: &Self) -> Option<usize> {
        let none = Names::default();
        let (server, client) =
            (self.0.as_deref().unwrap_or(&none), client.0.as_deref().unwrap_or(&none));
        if client.more {
            return Some(0);
        }
        let mut names = server.names.iter();
        let suits = !server.more && names.all(|name| client.names.binary_search(name).is_ok());
        suits.then(|| client.names.len() - server.names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Placeholders {
        let mut placeholders = Placeholders::default();
        names.iter().for_each(|name| placeholders.add(name.as_bytes()));
        placeholders
    }

    #[test]
    fn a_server_suits_who_has_named_all_that_it_has_had() {
        let cases: [(&[&str], &[&str], Option<usize>); 6] = [
            (&[], &[], Some(0)),
            (&["a.b"], &[], None),
            (&[], &["a.b", "A.B"], Some(1)),
            (&["a.B", "c.d"], &["C.d", "A.b"], Some(0)),
            (&["a.b"], &["c.d"], None),
            (&["a.b"], &["c.d", "a.b"], Some(1)),
        ];
        for (server, client, suits) in cases {
            assert_eq!(of(server).suits(&of(client)), suits, "{server:?} for {client:?}");
        }
        assert!(of(&[]).is_empty() && !of(&["a.b"]).is_empty());
    }

    #[test]
    fn names_beyond_the_bound_are_any_name() {
        let names: Vec<_> = (0..=NAMES_MAX).map(|number| format!("a.b{number}")).collect();
        let many = of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(many.suits(&of(&["a.b0"])), None);
        assert_eq!(many.suits(&many), Some(0));
        assert_eq!(of(&[&"a.".repeat(NAME_BYTES_MAX)]).suits(&of(&[])), None);
    }
}

//! Variants of pools: what a server has to have agreed on at its login as its clients did.
//!
//! Some capabilities change what a server does or how its replies look, and a session cannot change
//! them after its login. A client gets a server that has agreed on the same of them, so nothing has
//! to be put into another form on its way. Nearly every application uses one library, so a pool has
//! one variant.

use refrain_mysql_wire::Capabilities;

/// The capabilities that a client and its server have in common, each a bit of a [`Variant`].
const SHARED: [Capabilities; 6] = [
    // Affected rows are those found, or those changed.
    Capabilities::FOUND_ROWS,
    // The server may ask for a file.
    Capabilities::LOCAL_FILES,
    // A procedure may return rows.
    Capabilities::MULTI_RESULTS,
    Capabilities::PS_MULTI_RESULTS,
    // Rows end with an OK packet, and no packet ends definitions.
    Capabilities::DEPRECATE_EOF,
    // Definitions of columns have names of types (MariaDB).
    Capabilities::EXTENDED_METADATA,
];

/// The bit of clients that named no schema: a session that has one cannot be without one again.
const WITHOUT_SCHEMA: u16 = 1 << SHARED.len();

/// A variant of a pool's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant(pub(crate) u16);

impl Variant {
    /// Returns the variant for a client that has agreed on these capabilities.
    pub(crate) fn of(agreed: Capabilities, has_schema: bool) -> Self {
        let bits = SHARED.iter().enumerate().filter(|(_, capability)| agreed.has(**capability));
        let bits = bits.fold(0, |bits, (at, _)| bits | 1 << at);
        Self(if has_schema { bits } else { bits | WITHOUT_SCHEMA })
    }

    /// Whether the clients named no schema at their login.
    pub(crate) fn is_without_schema(self) -> bool {
        self.0 & WITHOUT_SCHEMA != 0
    }

    /// Returns the capabilities that a server has to agree on.
    pub(crate) fn capabilities(self) -> Capabilities {
        SHARED.iter().enumerate().fold(Capabilities::NONE, |all, (at, &capability)| {
            if self.0 >> at & 1 == 1 { all | capability } else { all }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_agrees_on_what_its_clients_have() {
        let due = Capabilities::FOUND_ROWS | Capabilities::EXTENDED_METADATA;
        let agreed = due | Capabilities::ODBC;
        let variant = Variant::of(agreed, true);
        assert_eq!(variant.capabilities(), due);
        assert!(!variant.is_without_schema());
        assert!(Variant::of(agreed, false).is_without_schema());
    }
}

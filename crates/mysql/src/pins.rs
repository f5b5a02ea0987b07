//! The things that a client has left behind in its server's session, and that no other server has.

/// A set of reasons for which a client keeps its server between transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins(u16);

impl Pins {
    /// None.
    pub(crate) const NONE: Self = Self(0);
    /// Variables of the user, temporary tables, statements of SQL's PREPARE: the server says that
    /// something has changed that a new session would not have.
    pub(crate) const VARIABLES: Self = Self(1);
    /// Locks by name.
    pub(crate) const USER_LOCK: Self = Self(1 << 1);
    /// Locks of the whole server.
    pub(crate) const GLOBAL_LOCK: Self = Self(1 << 2);
    /// Locks of tables.
    pub(crate) const TABLE_LOCK: Self = Self(1 << 3);
    /// Tables opened by HANDLER.
    pub(crate) const HANDLER: Self = Self(1 << 4);
    /// A role that is not the default.
    pub(crate) const ROLE: Self = Self(1 << 5);
    /// Characteristics of the next transaction.
    pub(crate) const NEXT_TRANSACTION: Self = Self(1 << 6);
    /// A savepoint in a transaction of which nothing else shows.
    pub(crate) const SAVEPOINT: Self = Self(1 << 7);
    /// A transaction of XA.
    pub(crate) const XA: Self = Self(1 << 8);
    /// A schema where the session began without one.
    pub(crate) const SCHEMA: Self = Self(1 << 9);
    /// Variables whose values are no settings, such as `timestamp`.
    pub(crate) const SPECIAL: Self = Self(1 << 10);
    /// Changes that the server does not report, though it was asked.
    pub(crate) const UNTOLD: Self = Self(1 << 11);

    /// The names of reasons, for the console.
    const WORDS: [(Self, &str); 12] = [
        (Self::VARIABLES, "user variables, temporary tables or PREPARE"),
        (Self::USER_LOCK, "named locks"),
        (Self::GLOBAL_LOCK, "global locks"),
        (Self::TABLE_LOCK, "locked tables"),
        (Self::HANDLER, "handlers"),
        (Self::ROLE, "role"),
        (Self::NEXT_TRANSACTION, "next transaction"),
        (Self::SAVEPOINT, "savepoints"),
        (Self::XA, "xa"),
        (Self::SCHEMA, "schema"),
        (Self::SPECIAL, "variables that are no settings"),
        (Self::UNTOLD, "changes that the server does not report"),
    ];

    /// Returns the names of the reasons.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let words = Self::WORDS.iter().filter(|(pin, _)| self.0 & pin.0 != 0);
        words.map(|(_, word)| *word).collect()
    }

    /// Whether there is any.
    pub(crate) fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Adds others.
    pub(crate) fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Removes others.
    pub(crate) fn remove(&mut self, others: Self) {
        self.0 &= !others.0;
    }

    /// Adds others, or removes them.
    pub(crate) fn put(&mut self, others: Self, there: bool) {
        if there { self.add(others) } else { self.remove(others) }
    }
}

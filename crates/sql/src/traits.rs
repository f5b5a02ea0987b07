//! The possible effects of a text on its session, as a set of bits.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The possible effects of a text on the session in which it runs: a set of the constants below.
///
/// A bit says that some statement of the text *may* have this effect if it runs and succeeds. The
/// text of a call does not show the effects of user-defined functions, `DO` and `CALL`. The bits
/// that free something ([`Traits::FREES`]) are possibilities as well: the tag of the completed
/// command says whether it happened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Traits(u32);

macro_rules! traits {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Traits {
            $($(#[$doc])* pub const $name: Traits = Traits(1 << $bit);)*

            /// All traits with their names.
            pub const ALL: &'static [(&'static str, Traits)] =
                &[$((stringify!($name), Traits::$name)),*];
        }
    };
}

traits! {
    /// Sets or resets, beyond the transaction, a parameter that the server does not report or that
    /// is not known.
    SET = 0;
    /// Sets or resets, beyond the transaction, a parameter that the server reports by
    /// ParameterStatus.
    SET_REPORTED = 1;
    /// Changes the current role or the session's user beyond the transaction.
    ROLE = 2;
    /// Creates a temporary object that outlives the transaction (`ON COMMIT DROP` does not).
    TEMP = 3;
    /// Takes an advisory lock that outlives the transaction.
    ADVISORY = 4;
    /// Frees all advisory locks of the session.
    ADVISORY_FREE = 5;
    /// Subscribes the session to a channel.
    LISTEN = 6;
    /// Ends all subscriptions of the session.
    UNLISTEN_ALL = 7;
    /// Opens a cursor that outlives the transaction.
    HOLD = 8;
    /// Prepares a statement by SQL.
    PREPARE = 9;
    /// Loads a library into the server process.
    LOAD = 10;
    /// Runs code that the text does not show, with any effect.
    PROCEDURAL = 11;
    /// May change the columns that a prepared statement returns.
    DDL = 12;
    /// Begins a transaction block.
    BEGINS = 13;
    /// `DISCARD ALL`.
    DISCARD_ALL = 14;
    /// Drops all temporary tables of the session.
    DISCARD_TEMP = 15;
    /// Deallocates every prepared statement of the session.
    DEALLOCATE_ALL = 16;
    /// Closes every cursor of the session.
    CLOSE_ALL = 17;
    /// Reads or sets the session's state of sequences and random numbers.
    SEQUENCE_STATE = 18;
    /// Uses the COPY sub-protocol.
    COPY = 19;
    /// Resets a parameter to its value at the start of the session.
    RESET = 20;
    /// Deallocates one prepared statement by its name.
    DEALLOCATE = 21;
    /// Is refused within a transaction block, and after other statements of a pipeline.
    ALONE = 22;
    /// Changes, even if for the transaction only, a reported parameter that decides how constants
    /// are read.
    READING = 24;
    /// Sets a parameter for the transaction only.
    LOCAL = 25;
    /// Changes the parameters with which sessions of a role or database begin.
    DEFAULTS = 26;
    /// Waits until no session is connected to a database; see [`crate::databases_to_drain`].
    DRAINS = 23;
    /// Runs or plans a prepared statement by its name.
    EXECUTE = 27;
    /// Does more than the part of the text shows that was read. [`crate::scan()`] never finds this.
    UNREAD = 28;
}

impl Traits {
    /// No traits.
    pub const NONE: Traits = Traits(0);

    /// The traits that free something rather than leave something behind.
    pub const FREES: Traits = Traits(
        Traits::ADVISORY_FREE.0
            | Traits::UNLISTEN_ALL.0
            | Traits::DISCARD_ALL.0
            | Traits::DISCARD_TEMP.0
            | Traits::DEALLOCATE_ALL.0
            | Traits::CLOSE_ALL.0,
    );

    /// Returns the bits, in the order of [`Traits::ALL`].
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the union of both sets, like `|`, but usable in constants.
    pub const fn union(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// True if all traits of `other` are in this set.
    pub const fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any trait of `other` is in this set.
    pub const fn intersects(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the traits that are not in `other`.
    pub const fn without(self, other: Traits) -> Traits {
        Traits(self.0 & !other.0)
    }

    /// True if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Traits {
    type Output = Traits;

    fn bitor(self, other: Traits) -> Traits {
        self.union(other)
    }
}

impl BitOrAssign for Traits {
    fn bitor_assign(&mut self, other: Traits) {
        *self = self.union(other);
    }
}

/// Writes the names, such as `SET | TEMP`; `NONE` for the empty set.
impl fmt::Display for Traits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return out.write_str("NONE");
        }
        let mut between = "";
        for (name, _) in Traits::ALL.iter().filter(|(_, bit)| self.contains(*bit)) {
            write!(out, "{between}{name}")?;
            between = " | ";
        }
        Ok(())
    }
}

impl fmt::Debug for Traits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

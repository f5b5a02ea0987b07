//! What a text may do to its session, as a set of bits.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// What a text may do to the session it runs in: a set of the constants below.
///
/// A bit says that some statement of the text *may* do so if it runs and succeeds. Functions of
/// the user's, `DO` and `CALL`
/// hide what they do; the text of those says nothing. The bits that free something
/// ([`Traits::FREES`]) are as much a "may": the tag of the command's completion says whether it has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Traits(u32);

macro_rules! traits {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Traits {
            $($(#[$doc])* pub const $name: Traits = Traits(1 << $bit);)*

            /// Every trait there is, with its name.
            pub const ALL: &'static [(&'static str, Traits)] = &[$((stringify!($name), Traits::$name)),*];
        }
    };
}

traits! {
    /// Sets or resets, beyond the transaction, a parameter that the server does not report or that is not known.
    SET = 0;
    /// Sets or resets, beyond the transaction, a parameter that the server reports by ParameterStatus.
    SET_REPORTED = 1;
    /// Changes the current role or the session's user beyond the transaction.
    ROLE = 2;
    /// Makes a temporary object that outlives the transaction (`ON COMMIT DROP` does not).
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
    /// Runs code that the text does not show: may do anything.
    PROCEDURAL = 11;
    /// May change the shape of what a prepared statement returns.
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
    /// Reads or sets what sequences and random numbers keep in the session.
    SEQUENCE_STATE = 18;
    /// Speaks the COPY sub-protocol.
    COPY = 19;
    /// Sets a parameter back to what the session began with.
    RESET = 20;
    /// Deallocates one prepared statement by its name.
    DEALLOCATE = 21;
    /// Is refused within a transaction block, and behind other statements of a pipeline.
    ALONE = 22;
    /// Changes, be it for the transaction only, a reported parameter that decides how constants are read.
    READING = 24;
    /// Sets a parameter for the transaction only.
    LOCAL = 25;
    /// Changes what sessions of a role or database begin with.
    DEFAULTS = 26;
    /// Waits until nobody is connected to a database; see [`crate::vacated`].
    VACATES = 23;
    /// Runs, or has planned, a prepared statement by its name.
    EXECUTE = 27;
}

impl Traits {
    /// None.
    pub const NONE: Traits = Traits(0);

    /// Those that give something back rather than leave something behind.
    pub const FREES: Traits = Traits(
        Traits::ADVISORY_FREE.0
            | Traits::UNLISTEN_ALL.0
            | Traits::DISCARD_ALL.0
            | Traits::DISCARD_TEMP.0
            | Traits::DEALLOCATE_ALL.0
            | Traits::CLOSE_ALL.0,
    );

    /// The bits, in the order of [`Traits::ALL`].
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Both sets together; `|` where it need not be constant.
    pub const fn union(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Whether every one of `other` is among these.
    pub const fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any one of `other` is among these.
    pub const fn intersects(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are not among `other`.
    pub const fn without(self, other: Traits) -> Traits {
        Traits(self.0 & !other.0)
    }

    /// Whether there is none.
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

/// The names, as `SET | TEMP`; `NONE` if there is none.
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

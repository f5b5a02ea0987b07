//! Capabilities, which the server offers in its greeting and the client chooses from.
//!
//! A capability is in force for a session if both sides have it. The low 32 bits are MySQL's
//! (MySQL, "Capabilities Flags"), the high 32 bits MariaDB's own (MariaDB, "Connection",
//! "Capabilities"). MySQL does not send the high bits; see [`Capabilities::CLIENT_MYSQL`].

use std::fmt;
use std::ops::{BitAnd, BitOr, Sub};

/// A set of capabilities.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u64);

/// Declares the capabilities by their bits, and the table of their names.
macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Capabilities {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }

        /// Every capability and its name, without the prefix `CLIENT_` or `MARIADB_CLIENT_`.
        pub const NAMES: &[(Capabilities, &str)] =
            &[$((Capabilities::$name, stringify!($name)),)*];
    };
}

capabilities! {
    /// In MySQL `CLIENT_LONG_PASSWORD`, which has no meaning any more and is always set. MariaDB's
    /// servers and connectors leave it clear to say that they send the high 32 bits.
    CLIENT_MYSQL = 0;
    /// A statement's affected rows are the rows that it found, not those that it changed. This
    /// changes what the server does, not only how it says so.
    FOUND_ROWS = 1;
    /// Flags of a column have two bytes. Always set.
    LONG_FLAG = 2;
    /// The client names a database at login.
    CONNECT_WITH_DB = 3;
    /// `database.table.column` is no name.
    NO_SCHEMA = 4;
    /// Packets are compressed with zlib after login.
    COMPRESS = 5;
    /// Without effect since MySQL 3.22.
    ODBC = 6;
    /// The server may ask for a file of the client (LOAD DATA LOCAL).
    LOCAL_FILES = 7;
    /// Space is allowed before the parenthesis of a function: the server sets IGNORE_SPACE in
    /// `sql_mode`.
    IGNORE_SPACE = 8;
    /// The protocol of version 4.1, without which nothing in this crate is as it says.
    PROTOCOL_41 = 9;
    /// The session's `wait_timeout` begins as `interactive_timeout`.
    INTERACTIVE = 10;
    /// The client goes over to TLS.
    SSL = 11;
    /// A matter of the client alone.
    IGNORE_SIGPIPE = 12;
    /// Replies have status flags. Always set.
    TRANSACTIONS = 13;
    /// Without meaning; MySQL's servers have it set.
    RESERVED = 14;
    /// Proofs of passwords are longer than eight bytes (`CLIENT_RESERVED2`, formerly
    /// `CLIENT_SECURE_CONNECTION`).
    SECURE_CONNECTION = 15;
    /// A query may have several statements. COM_SET_OPTION changes it later.
    MULTI_STATEMENTS = 16;
    /// The client takes several results behind a COM_QUERY.
    MULTI_RESULTS = 17;
    /// The client takes several results behind a COM_STMT_EXECUTE.
    PS_MULTI_RESULTS = 18;
    /// The client names its authentication plugin, and can be asked for another one.
    PLUGIN_AUTH = 19;
    /// The client sends attributes of the connection at login.
    CONNECT_ATTRS = 20;
    /// The proof at login has a length-encoded length, not one of one byte.
    PLUGIN_AUTH_LENENC_CLIENT_DATA = 21;
    /// The client may log in with an expired password, to change it.
    CAN_HANDLE_EXPIRED_PASSWORDS = 22;
    /// OK packets say what changed in the session's state; see [`crate::track`].
    SESSION_TRACK = 23;
    /// No EOF packet behind column definitions, and an OK packet in place of it behind rows.
    DEPRECATE_EOF = 24;
    /// The client may do without column definitions (MySQL).
    OPTIONAL_RESULTSET_METADATA = 25;
    /// Packets are compressed with Zstandard after login.
    ZSTD_COMPRESSION_ALGORITHM = 26;
    /// COM_QUERY and COM_STMT_EXECUTE have a block of named values (MySQL).
    QUERY_ATTRIBUTES = 27;
    /// The client may be asked for more than one proof (MySQL).
    MULTI_FACTOR_AUTHENTICATION = 28;
    /// Reserved for more than 32 capabilities of MySQL.
    CAPABILITY_EXTENSION = 29;
    /// A matter of the client alone.
    SSL_VERIFY_SERVER_CERT = 30;
    /// A matter of the client alone.
    REMEMBER_OPTIONS = 31;
    /// ERR packets with the code 0xFFFF report progress (MariaDB).
    PROGRESS = 32;
    /// Reserved (MariaDB); formerly several commands in one packet.
    COM_MULTI = 33;
    /// The command COM_STMT_BULK_EXECUTE (MariaDB).
    STMT_BULK_OPERATIONS = 34;
    /// Column definitions have one more string (MariaDB).
    EXTENDED_METADATA = 35;
    /// A prepared statement's reply leaves out column definitions that did not change (MariaDB).
    CACHE_METADATA = 36;
    /// COM_STMT_BULK_EXECUTE returns a result for each set of parameters (MariaDB).
    BULK_UNIT_RESULTS = 37;
}

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self(0);
    /// The 32 that every peer can send.
    pub const LOW: Self = Self(0xFFFF_FFFF);

    /// Makes a set from its bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Makes a set from the low 32 bits.
    pub(crate) const fn from_low(low: u32) -> Self {
        Self(low as u64)
    }

    /// Returns the set with these high 32 bits, if the low bits say that there are any.
    pub(crate) fn with_high(self, high: u32) -> Self {
        let extended = !self.has(Self::CLIENT_MYSQL);
        if extended { self | Self(u64::from(high) << 32) } else { self }
    }

    /// Returns the low 32 bits and the high 32 bits as they are sent.
    pub(crate) fn halves(self) -> (u32, u32) {
        let high = if self.has(Self::CLIENT_MYSQL) { 0 } else { self.0 >> 32 };
        ((self.0 & Self::LOW.0) as u32, high as u32)
    }

    /// True if every capability of `others` is in the set.
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for Capabilities {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Capabilities {
    /// Writes the names, and bits without a name as a number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = *self;
        let mut set = f.debug_set();
        for &(capability, name) in NAMES.iter().filter(|(capability, _)| self.has(*capability)) {
            set.entry(&format_args!("{name}"));
            rest = rest - capability;
        }
        if rest != Self::NONE {
            set.entry(&format_args!("{:#x}", rest.0));
        }
        set.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_has_its_own_bit() {
        let all = NAMES.iter().fold(0, |all, (capability, _)| all | capability.bits());
        assert_eq!(all.count_ones() as usize, NAMES.len());
        assert_eq!(Capabilities::DEPRECATE_EOF.bits(), 0x0100_0000);
        assert_eq!(Capabilities::CACHE_METADATA.bits(), 0x10_0000_0000);
    }

    #[test]
    fn high_bits_are_there_for_mariadb_only() {
        let mariadb = Capabilities::PROTOCOL_41.with_high(4);
        assert!(mariadb.has(Capabilities::STMT_BULK_OPERATIONS));
        let mysql = Capabilities::CLIENT_MYSQL | Capabilities::PROTOCOL_41;
        assert_eq!(mysql.with_high(4), mysql);
        assert_eq!((mysql | Capabilities::PROGRESS).halves(), (0x201, 0));
    }

    #[test]
    fn a_set_prints_its_names() {
        let set = Capabilities::SSL | Capabilities::PROGRESS | Capabilities::from_bits(1 << 40);
        assert_eq!(format!("{set:?}"), "{SSL, PROGRESS, 0x10000000000}");
    }
}

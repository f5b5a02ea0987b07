//! Capabilities on which a client and its server agree at the login.

/// A set of capabilities, each a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u32);

/// Affected rows are those found, and not those changed.
pub const FOUND_ROWS: u32 = 1 << 1;
/// The login names a schema.
pub const WITH_SCHEMA: u32 = 1 << 3;
/// The server may ask for a file.
pub const LOCAL_FILES: u32 = 1 << 7;
/// Spaces may stand in front of the parenthesis of a call.
pub const IGNORE_SPACE: u32 = 1 << 8;
/// The session counts as one of a person.
pub const INTERACTIVE: u32 = 1 << 10;
/// A text may have several statements.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// A text may have several results.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// A prepared statement may have several results.
pub const PS_MULTI_RESULTS: u32 = 1 << 18;
/// The login has attributes.
pub const ATTRIBUTES: u32 = 1 << 20;
/// OK packets say what has changed in the session.
pub const SESSION_TRACK: u32 = 1 << 23;
/// No EOF packet stands behind definitions, and rows end with an OK packet.
pub const DEPRECATE_EOF: u32 = 1 << 24;

/// All that a client of today has: long passwords and flags, protocol 4.1, transactions,
/// passwords in the form of 4.1, plugins.
pub const LEAST: u32 = 1 | 1 << 2 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;

/// The capabilities that clients have or have not, with their names.
pub const CHOICES: [(u32, &str); 11] = [
    (FOUND_ROWS, "FOUND_ROWS"),
    (WITH_SCHEMA, "WITH_SCHEMA"),
    (LOCAL_FILES, "LOCAL_FILES"),
    (IGNORE_SPACE, "IGNORE_SPACE"),
    (INTERACTIVE, "INTERACTIVE"),
    (MULTI_STATEMENTS, "MULTI_STATEMENTS"),
    (MULTI_RESULTS, "MULTI_RESULTS"),
    (PS_MULTI_RESULTS, "PS_MULTI_RESULTS"),
    (ATTRIBUTES, "ATTRIBUTES"),
    (SESSION_TRACK, "SESSION_TRACK"),
    (DEPRECATE_EOF, "DEPRECATE_EOF"),
];

impl Capabilities {
    /// Whether the set has this one.
    #[must_use]
    pub fn has(self, capability: u32) -> bool {
        self.0 & capability != 0
    }

    /// Returns the names of those that not every client has.
    #[must_use]
    pub fn names(self) -> String {
        let names = CHOICES.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(" ")
    }
}

//! Numbers that name settings and segments.

/// The number of a parse environment: of the settings that decide what a text means. See
/// `crate::settings::session`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvId(pub u64);

/// The number of a segment among those that one server gets, from one; zero is none. A segment ends
/// with a Sync, Query or FunctionCall.
pub(crate) type Segment = u64;

/// The database that a server has said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The system identifier of its cluster.
    pub cluster: u64,
    /// Its OID there.
    pub database: u32,
}

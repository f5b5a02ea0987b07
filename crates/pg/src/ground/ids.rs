//! Numbers that name settings and segments.

/// Interned settings that decide what a text means; see [`crate::settings::session`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvId(pub u64);

/// Numbers the segments that one server is sent, from one; zero is none. A segment ends with a
/// Sync, Query or FunctionCall.
pub(crate) type Segment = u64;

//! Sessions, as the console shows them.

/// A client's session, to look at.
#[derive(Clone, Debug, Default)]
pub struct ClientView {
    /// The reasons for which the client keeps its server, in words; empty if there are none.
    pub pinned: String,
    /// Number of the client's prepared statements.
    pub statements: u32,
}

/// A server's session, to look at.
#[derive(Clone, Debug, Default)]
pub struct ServerView {
    /// Number of the statements that the server has prepared.
    pub statements: u32,
    /// Bytes of their texts.
    pub statement_bytes: u64,
}

//! Counts of the orders by which servers are connected anew.

/// Counts of the orders by which servers are connected anew. Each server keeps those of the time
/// when it was connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconnects {
    /// Orders after which no server is to be used any more, nor by the client that has it: servers
    /// are elsewhere, or the operator wants new ones.
    pub(crate) obsolete: u32,
    /// Orders after which servers are for the clients that have them alone: new sessions differ.
    pub(crate) renewed: u32,
}

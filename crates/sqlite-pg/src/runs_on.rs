//! Where a session's work is done.

/// Where a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsOn {
    /// On the loop of many clients.
    Loop,
    /// On a thread where it may take its time.
    Thread,
}

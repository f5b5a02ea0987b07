//! Where a session runs: on the loop, or on a thread.

/// Where a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsOn {
    /// On the loop that serves many clients; nothing there may take long.
    Loop,
    /// On a thread of its own; it may take long there.
    Thread,
}

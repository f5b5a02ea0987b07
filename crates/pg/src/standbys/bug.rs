//! Bugs that the simulator plants in what is known of standbys. Its checkers have to find each.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyBug {
    /// A standby has whatever a read needs.
    NoComparison,
    /// A position of the primary counts that was asked for before the client's write.
    EarlyPosition,
    /// Positions of two timelines are compared.
    AnyTimeline,
    /// The primary's position counts however old it is.
    EndlessLag,
    /// A client needs what the first one needs.
    OtherClient,
}

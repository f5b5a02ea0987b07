//! Bugs that the simulator plants in what is known of standbys. Its checkers have to find each.
#![cfg_attr(
    not(feature = "plant"),
    expect(unreachable_pub, reason = "only the simulator's build reaches it")
)]

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

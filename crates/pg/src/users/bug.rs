//! Bugs that the simulator plants in what is known of users. Its checkers have to find each.
#![cfg_attr(
    not(feature = "plant"),
    expect(unreachable_pub, reason = "only the simulator's build reaches it")
)]

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The answer of one database counts in all.
    AnyDatabase,
    /// Each login that finds no answer asks.
    ManyLookups,
    /// Answers are given however old they are.
    EndlessAnswers,
    /// The same, while the database gives none.
    EndlessStaleAnswers,
    /// Logins that wait for an answer are not told.
    LostWaiters,
}

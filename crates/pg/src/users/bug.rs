//! Bugs that the simulator plants in what is known of users. Its checkers have to find each.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// The answer of one database counts in all.
    AnyDatabase = 1,
    /// Each login that finds no answer asks.
    ManyLookups,
    /// Answers are given however old they are.
    EndlessAnswers,
    /// The same, while the database gives none.
    EndlessStaleAnswers,
    /// Logins that wait for an answer are not told.
    LostWaiters,
}

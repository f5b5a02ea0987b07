//! Bugs that the simulator plants in a cache. Its checkers have to find each.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A reply has the generations of the moment when it comes, in place of those when it was asked
    /// for.
    LateStamp = 1,
    /// An asker waits for a reply that was asked for before something changed, and gets it.
    OldFlight,
    /// Replies are given however old they are.
    EndlessTime,
    /// The settings of a session are not in the key.
    ShortKey,
    /// A reply with an error is kept.
    KeptError,
    /// A write voids replies when the server answers it, and not when it is sent.
    LateVoid,
    /// A commit of the replication stream is not in doubt: it voids replies when it comes, though
    /// others may not see it yet.
    EarlyEndOfDoubt,
    /// A commit is taken for heard of that was acknowledged before the answer to a question, and
    /// not one alone that was acknowledged before the question.
    ProofFromItsAnswer,
    /// A table counts as covered when it is seen published, whatever transactions run.
    CoveredAtOnce,
}

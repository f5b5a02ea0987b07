//! Bugs that the simulator plants. Its checkers have to find each.
//!
//! Without the feature `plant`, for which only tests ask, no bug can be planted, and each place
//! that looks for one compiles to nothing.

#[cfg(not(feature = "plant"))]
use std::marker::PhantomData;
#[cfg(feature = "plant")]
use std::sync::OnceLock;

/// The bug of type `B` that is planted, if there is one.
#[derive(Clone, Debug)]
pub struct Planted<B> {
    #[cfg(feature = "plant")]
    bug: OnceLock<B>,
    #[cfg(not(feature = "plant"))]
    none: PhantomData<B>,
}

impl<B> Default for Planted<B> {
    fn default() -> Self {
        Self {
            #[cfg(feature = "plant")]
            bug: OnceLock::new(),
            #[cfg(not(feature = "plant"))]
            none: PhantomData,
        }
    }
}

impl<B: Copy + PartialEq> Planted<B> {
    /// Plants a bug, unless one is planted.
    #[cfg(feature = "plant")]
    pub fn plant(&self, bug: B) {
        self.bug.get_or_init(|| bug);
    }

    /// Whether this bug is planted.
    #[inline]
    #[cfg(feature = "plant")]
    pub fn is(&self, bug: B) -> bool {
        self.bug.get() == Some(&bug)
    }

    /// Whether this bug is planted: no.
    #[inline]
    #[cfg(not(feature = "plant"))]
    pub fn is(&self, _: B) -> bool {
        false
    }
}

/// A bug of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A reply has the generations of the moment when it comes, in place of those when it was asked
    /// for.
    LateStamp,
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
    /// A commit is in doubt until the next snapshot comes, whatever transactions run by it.
    AnySnapshot,
    /// Neither a loss of the replication stream nor a look at its tables voids anything.
    KeptThroughLoss,
    /// A change of a partition in a replication stream does not touch what is above it.
    LeafWithoutParent,
    /// A relation of a replication stream of which nothing is known touches nothing.
    UnknownRelation,
    /// A part of a transaction that is rolled back takes back all that came of the transaction.
    AbortedPart,
    /// The tables of a replication stream are not looked at again though the catalog has changed.
    UnseenCatalog,
}

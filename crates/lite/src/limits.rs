//! How long a statement may run: a number of steps, a moment, or both.
//!
//! SQLite's virtual machine calls back every [`PACE`] instructions, and stops when it is told to. A
//! statement that runs where many clients are served gets few steps: what needs more is stopped
//! before anything was sent, and run again where it may take its time.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use crate::error::Interruption;

/// Instructions between two looks.
pub(crate) const PACE: i32 = 1000;
/// No limit.
const NEVER: u64 = u64::MAX;

/// What moments are counted from: an atomic holds a number, and an `Instant` is none.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How long statements of a connection may run from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Instructions of SQLite's virtual machine, to a thousand exactly. A point lookup takes 20.
    pub steps: Option<u32>,
    /// The moment at which a statement is stopped.
    pub deadline: Option<Instant>,
}

/// The limits as the callback sees them. Only the thread with the connection uses them.
pub(crate) struct Meter {
    /// Steps left.
    steps: AtomicI64,
    /// Nanoseconds since [`START`].
    deadline: AtomicU64,
    /// Why the callback stopped a statement: see [`REASONS`].
    reason: AtomicU8,
}

/// What [`Meter::reason`] says.
const REASONS: [Option<Interruption>; 3] =
    [None, Some(Interruption::Steps), Some(Interruption::Deadline)];

impl Meter {
    pub(crate) fn new() -> Arc<Meter> {
        let steps = AtomicI64::new(i64::MAX);
        let (deadline, reason) = (AtomicU64::new(NEVER), AtomicU8::new(0));
        Arc::new(Meter { steps, deadline, reason })
    }

    pub(crate) fn set(&self, limits: Limits) {
        let steps = limits.steps.map_or(i64::MAX, |steps| i64::from(steps) + i64::from(PACE));
        let deadline = limits.deadline.map_or(NEVER, nanoseconds);
        self.steps.store(steps, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
    }

    /// Called every [`PACE`] instructions: whether to stop.
    pub(crate) fn look(&self) -> bool {
        let left = self.steps.load(Ordering::Relaxed);
        if left != i64::MAX {
            self.steps.store(left - i64::from(PACE), Ordering::Relaxed);
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        let late = deadline != NEVER && nanoseconds(Instant::now()) >= deadline;
        let reason = if late { 2 } else { u8::from(left <= i64::from(PACE)) };
        if reason != 0 {
            self.reason.store(reason, Ordering::Relaxed);
        }
        reason != 0
    }

    /// Why a statement that was interrupted was: by this callback, or by somebody else.
    pub(crate) fn take_reason(&self) -> Interruption {
        let reason = self.reason.swap(0, Ordering::Relaxed);
        REASONS.get(usize::from(reason)).copied().flatten().unwrap_or(Interruption::Cancel)
    }
}

fn nanoseconds(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(*START);
    u64::try_from(since.as_nanos()).unwrap_or(NEVER)
}

//! Limits how long a statement may run: by a number of steps, by a deadline, or by both.
//!
//! SQLite's virtual machine calls back every [`PACE`] instructions, and stops if the callback says
//! so. A statement on the loop of many clients gets few steps: one that needs more is stopped
//! before anything was sent, and runs again on a thread.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::error::Interruption;

/// Instructions between two callbacks.
pub(crate) const PACE: i32 = 1000;
/// Pages that a statement with limited steps may read: half a millisecond, if they are in the
/// kernel's page cache.
const READS: u32 = 500;
/// Page reads between two looks at the clock.
const READS_A_LOOK: u32 = 16;
/// No limit.
const NEVER: u64 = u64::MAX;

/// The moment that deadlines are counted from: an atomic holds a number, and an `Instant` is none.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How long the statements of a connection may run from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Instructions of SQLite's virtual machine, counted in thousands. A point lookup takes 20.
    pub steps: Option<u32>,
    /// The moment at which a statement is stopped.
    pub deadline: Option<Instant>,
    /// The longest text, blob or row, in bytes, if it is less than
    /// [`crate::OpenOptions::max_length`].
    pub length: Option<usize>,
    /// How long a statement waits for another process's lock, if not as long as
    /// [`crate::OpenOptions::busy_timeout`].
    pub lock: Option<Duration>,
    /// True if a commit never copies the WAL into the file, however long the WAL is.
    pub keeps_wal: bool,
}

/// How long a statement sleeps before it asks for a lock again; the last value repeats. Between two
/// sleeps it notices a cancel.
const NAPS: &[Duration] =
    &[Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(5)];

/// The limits as the callback sees them. One thread uses them: the one that has the connection.
pub(crate) struct Meter {
    /// Steps left.
    steps: AtomicI64,
    /// Pages that may still be read, where steps are limited.
    reads: AtomicU32,
    /// Nanoseconds since [`START`].
    deadline: AtomicU64,
    /// Why the callback stopped a statement: see [`REASONS`].
    reason: AtomicU8,
    /// How long to wait for another process's lock, in nanoseconds, and since when the statement
    /// waits.
    lock: AtomicU64,
    lock_default: u64,
    waiting: AtomicU64,
    /// True if another thread has asked for the end of the job.
    cancelled: AtomicBool,
}

/// The meanings of [`Meter::reason`].
const REASONS: [Option<Interruption>; 4] =
    [None, Some(Interruption::Steps), Some(Interruption::Deadline), Some(Interruption::Cancel)];
const STEPS: u8 = 1;
const DEADLINE: u8 = 2;
const CANCEL: u8 = 3;

impl Meter {
    /// Makes a meter without limits; a statement waits for another process's lock as long as
    /// `lock`.
    pub(crate) fn new(lock: Duration) -> Arc<Meter> {
        let lock = u64::try_from(lock.as_nanos()).unwrap_or(NEVER);
        Arc::new(Meter {
            steps: AtomicI64::new(i64::MAX),
            reads: AtomicU32::new(READS),
            deadline: AtomicU64::new(NEVER),
            reason: AtomicU8::new(0),
            lock: AtomicU64::new(lock),
            lock_default: lock,
            waiting: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
        })
    }

    /// Notes that a job begins, or that another thread asks for its end.
    pub(crate) fn set_cancelled(&self, cancelled: bool) {
        self.cancelled.store(cancelled, Ordering::Relaxed);
    }

    /// Handles a lock of another process, each time that SQLite meets it: sleeps, or returns false
    /// if the statement waits no longer.
    ///
    /// A statement with limited steps never waits: it is stopped, and its caller may run it again
    /// without the limit.
    pub(crate) fn wait_for_lock(&self, asked: usize) -> bool {
        let now = nanoseconds(Instant::now());
        if asked == 0 {
            self.waiting.store(now, Ordering::Relaxed);
        }
        let late = self.deadline.load(Ordering::Relaxed) <= now;
        let reason = match () {
            () if self.steps.load(Ordering::Relaxed) != i64::MAX => STEPS,
            () if self.cancelled.load(Ordering::Relaxed) => CANCEL,
            () if late => DEADLINE,
            () => 0,
        };
        self.reason.store(reason, Ordering::Relaxed);
        let since = now.saturating_sub(self.waiting.load(Ordering::Relaxed));
        let left = self.lock.load(Ordering::Relaxed).saturating_sub(since);
        if reason != 0 || left == 0 {
            return false;
        }
        let nap = NAPS.get(asked).or(NAPS.last()).copied().unwrap_or_default();
        std::thread::sleep(nap.min(Duration::from_nanos(left)));
        true
    }

    pub(crate) fn set(&self, limits: Limits) {
        let steps = limits.steps.map_or(i64::MAX, |steps| i64::from(steps) + i64::from(PACE));
        let deadline = limits.deadline.map_or(NEVER, nanoseconds);
        self.steps.store(steps, Ordering::Relaxed);
        self.reads.store(READS, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
        let lock = limits.lock.map(|lock| u64::try_from(lock.as_nanos()).unwrap_or(NEVER));
        self.lock.store(lock.unwrap_or(self.lock_default), Ordering::Relaxed);
    }

    /// Checks the limits, every [`PACE`] instructions. Returns true to stop.
    pub(crate) fn look(&self) -> bool {
        let left = self.steps.load(Ordering::Relaxed);
        if left != i64::MAX {
            self.steps.store(left - i64::from(PACE), Ordering::Relaxed);
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        let late = deadline != NEVER && nanoseconds(Instant::now()) >= deadline;
        let reason = match left <= i64::from(PACE) {
            _ if late => DEADLINE,
            true => STEPS,
            false => 0,
        };
        if reason != 0 {
            self.reason.store(reason, Ordering::Relaxed);
        }
        reason != 0
    }

    /// Checks the limits before a read-only statement reads a page. Returns true to stop.
    pub(crate) fn stops_reading(&self) -> bool {
        let left = self.reads.load(Ordering::Relaxed);
        self.reads.store(left.wrapping_sub(1), Ordering::Relaxed);
        let deadline = self.deadline.load(Ordering::Relaxed);
        let looks = deadline != NEVER && left.is_multiple_of(READS_A_LOOK);
        let reason = match () {
            () if self.steps.load(Ordering::Relaxed) != i64::MAX => {
                if left == 0 {
                    STEPS
                } else {
                    0
                }
            }
            () if self.cancelled.load(Ordering::Relaxed) => CANCEL,
            () if looks && nanoseconds(Instant::now()) >= deadline => DEADLINE,
            () => 0,
        };
        if reason != 0 {
            self.reason.store(reason, Ordering::Relaxed);
        }
        reason != 0
    }

    /// Returns why the meter stopped a statement, if it did.
    pub(crate) fn take_reason(&self) -> Option<Interruption> {
        let reason = self.reason.swap(0, Ordering::Relaxed);
        REASONS.get(usize::from(reason)).copied().flatten()
    }
}

fn nanoseconds(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(*START);
    u64::try_from(since.as_nanos()).unwrap_or(NEVER)
}

//! How long a statement may run: a number of steps, a moment, or both.
//!
//! SQLite's virtual machine calls back every [`PACE`] instructions, and stops when it is told to. A
//! statement that runs where many clients are served gets few steps: what needs more is stopped
//! before anything was sent, and run again where it may take its time.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::error::Interruption;

/// Instructions between two looks.
pub(crate) const PACE: i32 = 1000;
/// Pages that a statement with few steps may read: half a millisecond, from the kernel's memory.
const READS: u32 = 500;
/// Reads between two looks at the clock.
const READS_A_LOOK: u32 = 16;
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
    /// The longest text, blob or row, in bytes, where it is less than the connection was opened with.
    pub length: Option<usize>,
    /// How long it waits for a lock of another process, where it is not as long as the connection was opened with.
    pub lock: Option<Duration>,
    /// Whether a commit leaves the WAL as it is, however long that is.
    pub keeps_wal: bool,
}

/// How long a statement sleeps before it asks for a lock again, the last for ever: a cancel is heard in between.
const NAPS: &[Duration] =
    &[Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(5)];

/// The limits as the callback sees them. Only the thread with the connection uses them.
pub(crate) struct Meter {
    /// Steps left.
    steps: AtomicI64,
    /// Pages that may be read, where steps are limited.
    reads: AtomicU32,
    /// Nanoseconds since [`START`].
    deadline: AtomicU64,
    /// Why the callback stopped a statement: see [`REASONS`].
    reason: AtomicU8,
    /// How long to wait for a lock of another process, in nanoseconds, and since when it is waited for.
    lock: AtomicU64,
    lock_default: u64,
    waiting: AtomicU64,
    /// Whether somebody asked for the end of the job. Set by other threads.
    cancelled: AtomicBool,
}

/// What [`Meter::reason`] says.
const REASONS: [Option<Interruption>; 4] =
    [None, Some(Interruption::Steps), Some(Interruption::Deadline), Some(Interruption::Cancel)];
const STEPS: u8 = 1;
const DEADLINE: u8 = 2;
const CANCEL: u8 = 3;

impl Meter {
    /// Limits nothing; a statement waits for `lock` while another process has what it needs.
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

    /// A job begins, or somebody asks for its end.
    pub(crate) fn set_cancelled(&self, cancelled: bool) {
        self.cancelled.store(cancelled, Ordering::Relaxed);
    }

    /// Called each time that another process has a lock: waits a moment, or says that it is enough.
    ///
    /// Where many clients are served nobody waits: what is stopped there is run again where it may.
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

    /// Called every [`PACE`] instructions: whether to stop.
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

    /// Called before a statement that only reads reads a page: whether to stop.
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

    /// Why a statement was stopped here, if it was.
    pub(crate) fn take_reason(&self) -> Option<Interruption> {
        let reason = self.reason.swap(0, Ordering::Relaxed);
        REASONS.get(usize::from(reason)).copied().flatten()
    }
}

fn nanoseconds(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(*START);
    u64::try_from(since.as_nanos()).unwrap_or(NEVER)
}

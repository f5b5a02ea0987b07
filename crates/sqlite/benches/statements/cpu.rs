//! CPU time, as the kernel counts it.

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of the calling thread, in nanoseconds.
pub(crate) fn of_thread() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the CPU nanoseconds of one of the `count` operations that `work` runs on this thread.
pub(crate) fn each(count: usize, work: impl FnOnce()) -> f64 {
    let before = of_thread();
    work();
    (of_thread() - before) as f64 / count as f64
}

//! Loads: how many clients each core has and how busy it is, as the other cores see it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use refrain_pool::Now;
use refrain_pool::ids::Core;
use rustix::time::{ClockId, clock_gettime};

use crate::balance::{Order, Policy, Thousandths};

/// Microseconds between two measurements of a core's load, and between two decisions.
const PERIOD_US: u64 = 100_000;
/// Microseconds after which a load counts as none: the core has slept since.
const STALE_US: u64 = 1_000_000;

/// The load of one core.
#[derive(Debug, Default)]
struct Load {
    /// The clients, including those on their way to the core.
    clients: AtomicU32,
    /// The clients that have left since the policy was asked last.
    left: AtomicU32,
    busy: AtomicU32,
    measured: AtomicU64,
}

/// The load of all cores, and what was decided about it.
#[derive(Clone, Debug)]
pub(crate) struct Loads(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cores: Box<[Load]>,
    /// The time at which clients may move again.
    due: AtomicU64,
    policy: Mutex<Policy>,
}

impl Loads {
    /// Makes the loads of so many cores, which get no more new clients when they are busy for
    /// `full` percent of the time.
    pub(crate) fn new(cores: usize, full: u32) -> Self {
        let loads = (0..cores).map(|_| Load::default()).collect();
        let policy = Mutex::new(Policy::new(cores, 10 * full));
        Self(Arc::new(Shared { cores: loads, due: AtomicU64::new(0), policy }))
    }

    /// Chooses the core of a new client, and counts the client there.
    pub(crate) fn choose(&self, now: Now) -> Core {
        let chosen = self.with_policy(now, |policy, busy| policy.place(busy));
        self.add(chosen);
        chosen
    }

    /// Counts one more client at a core, which is about to get the client.
    pub(crate) fn add(&self, core: Core) {
        self.0.cores[usize::from(core.0)].clients.fetch_add(1, Relaxed);
    }

    /// Corrects a core's count of clients from `counted` to `actual`.
    pub(crate) fn correct(&self, core: Core, counted: u32, actual: u32) {
        if counted != actual {
            let load = &self.0.cores[usize::from(core.0)];
            load.clients.fetch_add(actual.wrapping_sub(counted), Relaxed);
            load.left.fetch_add(counted.saturating_sub(actual), Relaxed);
        }
    }

    /// Returns the number of clients of all cores.
    pub(crate) fn total(&self) -> u32 {
        self.0.cores.iter().map(|load| load.clients.load(Relaxed)).fold(0, u32::wrapping_add)
    }

    /// Notes how busy a core is, and decides whether clients move, if it is time. The core that
    /// measures itself first in a period decides for all.
    pub(crate) fn measured(&self, core: Core, now: Now, busy: Thousandths) -> Option<Order> {
        let load = &self.0.cores[usize::from(core.0)];
        // The mean of the last periods, of which the last one counts half.
        let before = self.busy(load, now);
        load.busy.store(u32::midpoint(before, busy), Relaxed);
        load.measured.store(now.0, Relaxed);
        let due = self.0.due.load(Relaxed);
        let next = now.0 + PERIOD_US - PERIOD_US / 10;
        let ours = due <= now.0 && self.0.due.compare_exchange(due, next, Relaxed, Relaxed).is_ok();
        if !ours {
            return None;
        }
        self.with_policy(now, |policy, busy| policy.decide(busy))
    }

    /// Whether there is but one core.
    pub(crate) fn is_single(&self) -> bool {
        self.0.cores.len() == 1
    }

    fn busy(&self, load: &Load, now: Now) -> Thousandths {
        let stale = load.measured.load(Relaxed) + STALE_US < now.0;
        if stale { 0 } else { load.busy.load(Relaxed) }
    }

    fn with_policy<T>(&self, now: Now, act: impl FnOnce(&mut Policy, &[Thousandths]) -> T) -> T {
        let busy: Vec<_> = self.0.cores.iter().map(|load| self.busy(load, now)).collect();
        let mut policy = self.0.policy.lock().unwrap_or_else(PoisonError::into_inner);
        for (core, load) in (0..).map(Core).zip(&self.0.cores) {
            // Most of the time there is nothing to take, and reading is cheaper.
            if load.left.load(Relaxed) > 0 {
                policy.left(core, load.left.swap(0, Relaxed));
            }
        }
        act(&mut policy, &busy)
    }
}

/// Measures how busy the calling thread is: the part of the time in which it runs, in the kernel or
/// outside. The thread asks for it between turns, which are much shorter than a period.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    since: Now,
    ran_us: u64,
}

impl Gauge {
    /// Returns the load since the last measurement, if that was a period ago or more.
    pub(crate) fn measure(&mut self, now: Now) -> Option<Thousandths> {
        let passed = now.since(self.since);
        if passed < PERIOD_US {
            return None;
        }
        let ran_us = thread_time_us();
        let ran = ran_us.saturating_sub(self.ran_us);
        *self = Self { since: now, ran_us };
        u32::try_from(ran * 1000 / passed).ok().map(|busy| busy.min(1000))
    }
}

fn thread_time_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64, unit: u64| u64::try_from(part).unwrap_or(0).saturating_mul(unit);
    part(time.tv_sec, 1_000_000) + part(time.tv_nsec, 1) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_where_they_go() {
        let loads = Loads::new(2, 70);
        assert_eq!((loads.choose(Now(0)), loads.choose(Now(0))), (Core(0), Core(0)));
        loads.add(Core(1));
        assert_eq!(loads.total(), 3);
        loads.correct(Core(0), 2, 1);
        assert_eq!(loads.total(), 2);
    }

    #[test]
    fn clients_that_come_and_go_stay_on_one_core() {
        let loads = Loads::new(2, 70);
        for _ in 0..5_000 {
            assert_eq!(loads.choose(Now(0)), Core(0));
            loads.correct(Core(0), 1, 0);
        }
        assert_eq!(loads.total(), 0);
    }

    #[test]
    fn one_core_decides_for_all_once_in_a_period() {
        let loads = Loads::new(2, 70);
        let mut now = Now(10_000_000);
        let mut orders = Vec::new();
        for _ in 0..15 {
            now = Now(now.0 + PERIOD_US);
            orders.extend(loads.measured(Core(0), now, 1000));
            orders.extend(loads.measured(Core(1), now, 0));
        }
        assert_eq!(orders.len(), 1);
        assert_eq!((orders[0].from, orders[0].to), (Core(0), Core(1)));
    }

    #[test]
    fn a_core_that_sleeps_has_nothing_to_do() {
        let loads = Loads::new(2, 70);
        loads.measured(Core(0), Now(5_000_000), 1000);
        loads.measured(Core(0), Now(5_000_000), 1000);
        assert_eq!(loads.choose(Now(5_000_001)), Core(1));
        assert_eq!(loads.choose(Now(7_000_000)), Core(0));
    }

    #[test]
    fn a_gauge_measures_once_in_a_period() {
        let mut gauge = Gauge::default();
        assert!(gauge.measure(Now(PERIOD_US)).is_some());
        assert_eq!(gauge.measure(Now(PERIOD_US + 1)), None);
        assert!(gauge.measure(Now(2 * PERIOD_US)).is_some());
    }
}

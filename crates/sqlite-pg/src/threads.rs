//! The threads for statements that would take too long on the loop.
//!
//! Writes have one thread: SQLite has one writer at a time, and it must not wait behind reads.
//! Reads have a few threads, and more while all of these are busy, so that slow reads do not hold
//! up others; the extra threads end when they find no work. A thread gets a session's machine as a
//! whole, runs it as far as there is input, and wakes the session. One more thread, the clock,
//! wakes sessions whose time limit ends while they wait.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::control::Waker;

/// Work for a thread.
type Task = Box<dyn FnOnce() + Send>;

/// The threads that run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Read,
    Write,
}

/// Reads that run at the same time, each on a thread of its own, however many wait. Those that
/// wait for another session do not count ([`waiting`]).
const READERS_MAX: usize = 64;
/// The most threads whose task waits for another session.
const WAITING_MAX: usize = 256;
/// How long a read waits before one more thread is started.
const RELIEF_AFTER: Duration = Duration::from_millis(2);
/// How long an extra thread stays without work before it ends.
const REST: Duration = Duration::from_secs(5);

/// The threads of one database file.
pub(crate) struct Threads {
    readers: Arc<Readers>,
    writer: Sender<Task>,
    clock: Arc<Clock>,
}

impl Threads {
    /// Starts the threads. They end once this is dropped and their work is done.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start(readers: usize) -> std::io::Result<Self> {
        let (write, tasks) = channel();
        spawn("sqlite-write".to_owned(), move || work(&tasks))?;
        let clock = Arc::new(Clock::default());
        let ticking = clock.clone();
        spawn("sqlite-clock".to_owned(), move || ticking.run())?;
        let threads = Self { readers: Arc::default(), writer: write, clock };
        threads.want_readers(readers.max(1))?;
        Ok(threads)
    }

    /// Keeps at least `wanted` threads for reads.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn want_readers(&self, wanted: usize) -> std::io::Result<()> {
        {
            let mut queue = self.readers.queue();
            queue.kept = queue.kept.max(wanted);
        }
        while self.readers.queue().threads < wanted {
            self.readers.start()?;
        }
        Ok(())
    }

    /// Sends a task to a thread.
    pub(crate) fn send(&self, lane: Lane, task: Task) {
        match lane {
            Lane::Read => {
                if self.readers.put(task) {
                    let readers = Arc::downgrade(&self.readers);
                    let relieve = move || {
                        if let Some(readers) = readers.upgrade() {
                            readers.relieve();
                        }
                    };
                    self.wake_at(Instant::now() + RELIEF_AFTER, Arc::new(relieve));
                }
            }
            // Sending cannot fail: the thread listens as long as this sender exists.
            Lane::Write => drop(self.writer.send(task)),
        }
    }

    /// Calls `waker` from the clock's thread at `moment`.
    pub(crate) fn wake_at(&self, moment: Instant, waker: Waker) {
        self.clock.add(moment, waker);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.readers.queue().stopped = true;
        self.readers.changed.notify_all();
        self.clock.stop();
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name).spawn(run).map(drop)
}

fn work(tasks: &Receiver<Task>) {
    while let Ok(task) = tasks.recv() {
        task();
    }
}

/// The threads for reads, and the tasks that wait for them.
#[derive(Default)]
struct Readers {
    queue: Mutex<ReadQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadQueue {
    tasks: VecDeque<Task>,
    threads: usize,
    /// Threads that wait for a task.
    idle: usize,
    /// Threads whose task waits for another session.
    waiting: usize,
    /// Threads that stay although they have no work.
    kept: usize,
    stopped: bool,
}

thread_local! {
    /// The threads to which this one belongs.
    static READERS: RefCell<Option<Arc<Readers>>> = const { RefCell::new(None) };
}

/// Runs `wait`, which waits for another session: meanwhile another thread may do the work of this
/// one. So the sessions that wait cannot keep the session from running for which they wait. Returns
/// `None`, and does not run it, if as many wait as may.
pub(crate) fn waiting<T>(wait: impl FnOnce() -> T) -> Option<T> {
    let Some(readers) = READERS.with_borrow(Clone::clone) else { return Some(wait()) };
    {
        let mut queue = readers.queue();
        if queue.waiting >= WAITING_MAX {
            return None;
        }
        queue.waiting += 1;
    }
    let waiter = Waiter(readers);
    waiter.0.relieve();
    Some(wait())
}

/// A thread whose task waits; it counts until this is dropped.
struct Waiter(Arc<Readers>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.queue().waiting -= 1;
    }
}

impl Readers {
    fn queue(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a task. Returns true if more tasks wait than threads are idle.
    fn put(&self, task: Task) -> bool {
        let mut queue = self.queue();
        queue.tasks.push_back(task);
        self.changed.notify_one();
        queue.tasks.len() > queue.idle
    }

    /// Starts a thread if tasks wait and all threads are busy.
    fn relieve(self: &Arc<Self>) {
        let queue = self.queue();
        let at_work = queue.threads.saturating_sub(queue.waiting);
        let wanted = queue.tasks.len() > queue.idle && at_work < READERS_MAX.max(queue.kept);
        drop(queue);
        if wanted {
            // If the system cannot start a thread, tasks wait longer and nothing else happens.
            let _ = self.start();
        }
    }

    fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let number = {
            let mut queue = self.queue();
            queue.threads += 1;
            queue.threads
        };
        let readers = self.clone();
        let run = move || {
            READERS.set(Some(readers.clone()));
            readers.run();
        };
        let started = spawn(format!("sqlite-read-{number}"), run);
        if started.is_err() {
            self.queue().threads -= 1;
        }
        started
    }

    fn run(&self) {
        let mut queue = self.queue();
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                task();
                queue = self.queue();
                continue;
            }
            if queue.stopped {
                break;
            }
            queue.idle += 1;
            let waited = self.changed.wait_timeout(queue, REST);
            let (woken, rested) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if rested.timed_out() && queue.tasks.is_empty() && queue.threads > queue.kept {
                break;
            }
        }
        queue.threads -= 1;
    }
}

/// A thread that calls wakers at their moments.
#[derive(Default)]
struct Clock {
    moments: Mutex<Moments>,
    changed: Condvar,
}

#[derive(Default)]
struct Moments {
    heap: BinaryHeap<Reverse<Moment>>,
    stopped: bool,
}

struct Moment(Instant, Waker);

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Clock {
    fn add(&self, moment: Instant, waker: Waker) {
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        moments.heap.push(Reverse(Moment(moment, waker)));
        self.changed.notify_one();
    }

    fn stop(&self) {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        while !moments.stopped {
            let now = Instant::now();
            let next = moments.heap.peek().map(|Reverse(Moment(moment, _))| *moment);
            moments = match next {
                Some(moment) if moment <= now => {
                    let due = moments.heap.pop();
                    drop(moments);
                    if let Some(Reverse(Moment(_, waker))) = due {
                        waker();
                    }
                    self.moments.lock().unwrap_or_else(PoisonError::into_inner)
                }
                Some(moment) => {
                    let waited = self.changed.wait_timeout(moments, moment - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(moments).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_wait_for_a_session_leave_room_for_it() {
        let threads = Threads::start(1).unwrap();
        let (begin, begun) = channel();
        let (release, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        for _ in 0..READERS_MAX + 2 {
            let (begin, held) = (begin.clone(), held.clone());
            let task = move || {
                waiting(|| {
                    begin.send(()).unwrap();
                    // Ends when the sender is gone.
                    let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
                });
            };
            threads.send(Lane::Read, Box::new(task));
        }
        for _ in 0..READERS_MAX + 2 {
            begun.recv_timeout(Duration::from_secs(60)).expect("all wait at once");
        }
        threads.send(Lane::Read, Box::new(move || begin.send(()).unwrap()));
        begun.recv_timeout(Duration::from_secs(60)).expect("the session for which they wait");
        drop(release);
    }

    #[test]
    fn those_that_wait_are_bounded_and_counted() {
        let threads = Threads::start(1).unwrap();
        let (tell, told) = channel();
        let run = |wait: fn()| {
            let tell = tell.clone();
            let caught = move || std::panic::catch_unwind(|| waiting(wait));
            threads.send(Lane::Read, Box::new(move || tell.send(caught()).unwrap()));
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        };
        assert_eq!(run(|| ()).unwrap(), Some(()));
        assert!(run(|| panic!("a wait that fails")).is_err());
        assert_eq!(threads.readers.queue().waiting, 0);
        threads.readers.queue().waiting = WAITING_MAX;
        assert_eq!(run(|| panic!("one too many")).unwrap(), None);
        threads.readers.queue().waiting = 0;
    }

    #[test]
    fn work_waits_for_no_work_that_lasts() {
        let threads = Threads::start(1).unwrap();
        let (begin, begun) = channel();
        let (release, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        for _ in 0..4 {
            let (begin, held) = (begin.clone(), held.clone());
            let task = move || {
                begin.send(()).unwrap();
                // Ends when the sender is gone.
                let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
            };
            threads.send(Lane::Read, Box::new(task));
        }
        for _ in 0..4 {
            begun.recv_timeout(Duration::from_secs(60)).expect("all four run at once");
        }
        assert!(threads.readers.queue().threads >= 4);
        drop(release);
    }
}

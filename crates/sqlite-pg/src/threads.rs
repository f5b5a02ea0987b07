//! The threads on which statements run that are not for the loop of many clients.
//!
//! Writes have one thread: there is one writer at a time anyway, and it must not stand behind reads. Reads have a few, and
//! more while all of these are busy, so that slow reads do not hold up others; those go again when there is nothing for
//! them. A thread gets a session's work whole, runs it as far as there is input, and has the session woken. A last thread
//! wakes sessions whose patience ends while they wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::control::Waker;

/// Work for a thread.
type Task = Box<dyn FnOnce() + Send>;

/// Which threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Read,
    Write,
}

/// Reads that run at once, however many wait. Each has a thread.
const READERS_MAX: usize = 64;
/// How long a read waits before there is one thread more.
const RELIEF_AFTER: Duration = Duration::from_millis(2);
/// How long a thread stays without work that is there because others were busy.
const REST: Duration = Duration::from_secs(5);

/// The threads of one database.
pub(crate) struct Threads {
    readers: Arc<Readers>,
    writer: Sender<Task>,
    clock: Arc<Clock>,
}

impl Threads {
    /// Starts them. They end when this is dropped and their work is done.
    ///
    /// # Errors
    /// The system gives no thread.
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

    /// Keeps at least so many threads for reads.
    ///
    /// # Errors
    /// The system gives no more.
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

    /// Has work done.
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
            // The thread listens as long as there is somebody who could send.
            Lane::Write => drop(self.writer.send(task)),
        }
    }

    /// Has `waker` called at a moment.
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

/// The threads for reads, and what waits for them.
#[derive(Default)]
struct Readers {
    queue: Mutex<ReadQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadQueue {
    tasks: VecDeque<Task>,
    threads: usize,
    /// Threads without work.
    idle: usize,
    /// Threads that stay without work.
    kept: usize,
    stopped: bool,
}

impl Readers {
    fn queue(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes work; whether it waits behind other work.
    fn put(&self, task: Task) -> bool {
        let mut queue = self.queue();
        queue.tasks.push_back(task);
        self.changed.notify_one();
        queue.tasks.len() > queue.idle
    }

    /// Starts a thread if work waits and all are busy.
    fn relieve(self: &Arc<Self>) {
        let queue = self.queue();
        let wanted = queue.tasks.len() > queue.idle && queue.threads < READERS_MAX.max(queue.kept);
        drop(queue);
        if wanted {
            // Without one more, work waits longer.
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
        let started = spawn(format!("sqlite-read-{number}"), move || readers.run());
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

/// Moments to come.
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

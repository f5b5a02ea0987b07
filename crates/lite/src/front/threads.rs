//! The threads on which statements run that are not for the loop of many clients.
//!
//! Reads that take long have a few threads, writes have one: there is one writer at a time anyway,
//! and it must not stand behind reads. A thread gets a session's work whole, runs it as far as there is
//! input, and has the session woken. A last thread wakes sessions whose patience ends while they
//! stand in line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::front::control::Waker;

/// Work for a thread.
type Task = Box<dyn FnOnce() + Send>;

/// Which threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Read,
    Write,
}

/// The threads of one database.
pub(crate) struct Threads {
    readers: Sender<Task>,
    /// Where those who read find their work, and how many there are.
    reading: Mutex<(Tasks, usize)>,
    writer: Sender<Task>,
    clock: Arc<Clock>,
}

/// Where threads of one kind find their work.
type Tasks = Arc<Mutex<Receiver<Task>>>;

impl Threads {
    /// Starts them. They end when this is dropped and their work is done.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(readers: usize) -> std::io::Result<Self> {
        let (read, tasks) = channel();
        let reading = Mutex::new((Arc::new(Mutex::new(tasks)), 0));
        let (write, tasks) = channel();
        let tasks = Mutex::new(tasks);
        spawn("lite-write".to_owned(), move || work(&tasks))?;
        let clock = Arc::new(Clock::default());
        let ticking = clock.clone();
        spawn("lite-clock".to_owned(), move || ticking.run())?;
        let threads = Self { readers: read, reading, writer: write, clock };
        threads.want_readers(readers.max(1))?;
        Ok(threads)
    }

    /// Starts threads for reads until there are so many.
    ///
    /// # Errors
    /// The system gives no more.
    pub(crate) fn want_readers(&self, wanted: usize) -> std::io::Result<()> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (tasks, count) = &mut *reading;
        while *count < wanted {
            let tasks = Arc::clone(tasks);
            spawn(format!("lite-read-{count}"), move || work(&tasks))?;
            *count += 1;
        }
        Ok(())
    }

    /// Has work done.
    pub(crate) fn send(&self, lane: Lane, task: Task) {
        let lane = match lane {
            Lane::Read => &self.readers,
            Lane::Write => &self.writer,
        };
        // The threads listen as long as there is somebody who could send.
        let _ = lane.send(task);
    }

    /// Has `waker` called at a moment.
    pub(crate) fn wake_at(&self, moment: Instant, waker: Waker) {
        self.clock.add(moment, waker);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.clock.stop();
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name).spawn(run).map(drop)
}

fn work(tasks: &Mutex<Receiver<Task>>) {
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match task {
            Ok(task) => task(),
            Err(_) => return,
        }
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

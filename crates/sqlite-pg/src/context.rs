//! The session whose statement this thread runs; functions such as `current_user` ask it.
//!
//! SQLite calls a function on the thread that steps the statement, and a connection serves many
//! sessions. So a session registers itself on the thread while it works, and functions look there.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::advisory::AdvisoryLocks;
use crate::calendar;
use crate::control::Control;
use crate::enums::NewLabels;
use crate::sequences::{Numbers, SessionSequences};
use crate::settings::Settings;

/// The state that the sessions of one file share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) advisory: AdvisoryLocks,
    pub(crate) numbers: Numbers,
}

/// The facts about a session that functions need.
pub(crate) struct Context {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) version: String,
    /// The process ID that BackendKeyData sent.
    pub(crate) pid: u32,
    pub(crate) control: Arc<Control>,
    pub(crate) shared: Arc<Shared>,
    settings: Mutex<Settings>,
    sequences: Mutex<SessionSequences>,
    /// Labels that the transaction has added.
    new_labels: Mutex<NewLabels>,
    /// When the transaction began, in microseconds; 0 if no function has asked yet.
    began: AtomicI64,
    /// How long a wait for another session may last while this one has the right to write; none if
    /// it does not have it.
    writer_waits: Mutex<Option<Duration>>,
    /// True while the session runs on the loop.
    on_loop: AtomicBool,
    /// True if a function asked to run on a thread instead.
    wants_thread: AtomicBool,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

impl Context {
    pub(crate) fn new(
        user: String,
        database: String,
        version: String,
        pid: u32,
        control: Arc<Control>,
        shared: Arc<Shared>,
        settings: Settings,
    ) -> Arc<Self> {
        Arc::new(Self {
            user,
            database,
            version,
            pid,
            control,
            shared,
            settings: Mutex::new(settings),
            sequences: Mutex::default(),
            new_labels: Mutex::default(),
            began: AtomicI64::new(0),
            writer_waits: Mutex::default(),
            on_loop: AtomicBool::new(false),
            wants_thread: AtomicBool::new(false),
        })
    }

    /// Returns the session's run-time parameters, locked.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of sequences that the session knows, locked.
    pub(crate) fn sequences(&self) -> MutexGuard<'_, SessionSequences> {
        self.sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the labels that the transaction has added, locked.
    pub(crate) fn new_labels(&self) -> MutexGuard<'_, NewLabels> {
        self.new_labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of a transaction: settings go back, and its locks are free.
    pub(crate) fn transaction_ended(&self, committed: bool) {
        self.new_labels().clear();
        self.settings().transaction_ended(committed);
        self.shared.advisory.transaction_ended(self.pid);
    }

    /// Returns how long a wait for another session may last, if this one has the right to write.
    pub(crate) fn writer_waits(&self) -> Option<Duration> {
        *self.writer_waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` with this session as the current one of the thread. `writer_waits` is how long a
    /// wait for another session may last, if this one has the right to write.
    pub(crate) fn enter<R>(
        self: &Arc<Self>,
        on_loop: bool,
        writer_waits: Option<Duration>,
        work: impl FnOnce() -> R,
    ) -> R {
        *self.writer_waits.lock().unwrap_or_else(PoisonError::into_inner) = writer_waits;
        self.on_loop.store(on_loop, Ordering::Relaxed);
        calendar::note_zone(self.settings().get("timezone").unwrap_or_default());
        self.new_labels().note();
        CURRENT.with_borrow_mut(|current| *current = Some(self.clone()));
        let done = work();
        CURRENT.with_borrow_mut(|current| *current = None);
        done
    }

    /// Returns the session whose statement runs on this thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns when the transaction began: the moment of the first call in it.
    pub(crate) fn now(&self) -> i64 {
        let now = calendar::now();
        let began = self.began.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        began.err().unwrap_or(now)
    }

    /// Forgets that moment, as the transaction is over.
    pub(crate) fn forget_now(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// True if a function that takes long may run here. On the loop it may not: the statement then
    /// moves to a thread.
    pub(crate) fn may_take_long(&self) -> bool {
        let on_loop = self.on_loop.load(Ordering::Relaxed);
        if on_loop {
            self.wants_thread.store(true, Ordering::Relaxed);
        }
        !on_loop
    }

    /// True if a function has asked for a thread since the last call.
    pub(crate) fn take_wants_thread(&self) -> bool {
        self.wants_thread.swap(false, Ordering::Relaxed)
    }
}

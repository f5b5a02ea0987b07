//! Whose statement this thread runs: what functions such as `current_user` answer from.
//!
//! SQLite calls a function on the thread that steps the statement, and a connection serves many
//! sessions. So a session says that it is at work on this thread, and functions look there.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::calendar;
use crate::control::Control;
use crate::settings::Settings;

/// What functions may know of a session.
pub(crate) struct Context {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) version: String,
    /// What BackendKeyData said.
    pub(crate) pid: u32,
    pub(crate) control: Arc<Control>,
    settings: Mutex<Settings>,
    /// When the transaction began; 0 for not asked yet.
    began: AtomicI64,
    /// Whether the session runs on the loop of many clients.
    on_loop: AtomicBool,
    /// Whether a function asked to be called on a thread of its own instead.
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
        settings: Settings,
    ) -> Arc<Self> {
        Arc::new(Self {
            user,
            database,
            version,
            pid,
            control,
            settings: Mutex::new(settings),
            began: AtomicI64::new(0),
            on_loop: AtomicBool::new(false),
            wants_thread: AtomicBool::new(false),
        })
    }

    /// The session's settings.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` as this session's.
    pub(crate) fn enter<R>(self: &Arc<Self>, on_loop: bool, work: impl FnOnce() -> R) -> R {
        self.on_loop.store(on_loop, Ordering::Relaxed);
        CURRENT.with_borrow_mut(|current| *current = Some(self.clone()));
        let done = work();
        CURRENT.with_borrow_mut(|current| *current = None);
        done
    }

    /// The session whose statement runs on this thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// The moment at which the transaction began, which is when somebody first asks.
    pub(crate) fn now(&self) -> i64 {
        let now = calendar::now();
        let began = self.began.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        began.err().unwrap_or(now)
    }

    /// A transaction is over: the next has another moment.
    pub(crate) fn forget_now(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// A function that takes long must not hold up the loop: whether it may go on here.
    pub(crate) fn may_take_long(&self) -> bool {
        let on_loop = self.on_loop.load(Ordering::Relaxed);
        if on_loop {
            self.wants_thread.store(true, Ordering::Relaxed);
        }
        !on_loop
    }

    /// Whether a function asked for a thread since this was last asked.
    pub(crate) fn take_wants_thread(&self) -> bool {
        self.wants_thread.swap(false, Ordering::Relaxed)
    }
}

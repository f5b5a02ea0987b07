//! Panics of an engine, which are its assertions, as violations.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    /// The running seed, if there is one.
    static CURRENT: RefCell<Option<u64>> = const { RefCell::new(None) };
}

/// Turns panics of the engine, which are its assertions, into violations, and does not print them.
pub fn quiet_panics(say: fn(u64, &str)) {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let Some(seed) = CURRENT.with_borrow(|seed| *seed) else { return others(info) };
        let text = info.to_string();
        say(seed, &text);
        LAST_PANIC.with_borrow_mut(|last| *last = text);
    }));
}

/// Runs a seed's world. Returns its violation, which may be a panic.
pub fn guarded(seed: u64, run: impl FnOnce() -> Option<String>) -> Option<String> {
    CURRENT.with_borrow_mut(|current| *current = Some(seed));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    CURRENT.with_borrow_mut(|current| *current = None);
    outcome.unwrap_or_else(|_| {
        Some(LAST_PANIC.with_borrow(|last| format!("assertion: {}", last.replace('\n', " "))))
    })
}

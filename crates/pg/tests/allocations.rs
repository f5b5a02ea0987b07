//! The hot path allocates nothing.
//!
//! Once clients, statements and servers are warm, a transaction that is simple, extended or
//! prepared takes no memory from the allocator and gives none back, in the engine and in its ports.
//! Nor does one that has to prepare its statement on its server first, unless the columns of that
//! have to be waited for.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::{Script, World, scripts};

/// Transactions before counting: tables and buffers have their sizes then.
const WARM_UP: u64 = 1_000;
/// Transactions that are counted.
const COUNTED: u64 = 10_000;

/// The system's allocator, with a count of requests of each thread.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator as it is; counting touches a
// thread-local cell that needs neither initialisation nor a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests to the allocator in each transaction.
fn requests(script: &Script) -> f64 {
    let mut world = World::new(script);
    let bytes = world.run(script);
    for _ in 0..WARM_UP.div_ceil(script.transactions) {
        assert_eq!(world.run(script), bytes, "{}: every run is alike", script.name);
    }
    let runs = COUNTED.div_ceil(script.transactions);
    let before = REQUESTS.get();
    for _ in 0..runs {
        world.run(script);
    }
    (REQUESTS.get() - before) as f64 / (runs * script.transactions) as f64
}

#[test]
fn the_hot_path_allocates_nothing() {
    let scripts = scripts();
    let found: Vec<_> = scripts.iter().map(|script| (script, requests(script))).collect();
    for (script, requests) in &found {
        println!("{}: {requests} a transaction", script.name);
    }
    for (script, requests) in found {
        assert!(!script.lean || requests == 0.0, "{}: {requests} requests", script.name);
    }
}

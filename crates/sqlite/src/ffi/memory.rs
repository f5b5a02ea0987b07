//! Counts and limits the memory that SQLite takes for each connection.
//!
//! SQLite limits a single value, but not a statement with many values. So SQLite gets allocation
//! functions that count: a thread notes the connection that it works for, and each piece of memory
//! has in its head the account that gets it back. If a connection would have too much, the
//! allocation fails, which ends its statement.
//!
//! Always true: an account counts the memory that was taken in its name and is not given back yet,
//! by any thread; counting takes no lock.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::ffi as sqlite;

/// The memory that a connection has and may have, in bytes. Accounts are never freed, because
/// memory may outlive its connection; they are used again.
struct Account {
    taken: AtomicUsize,
    most: AtomicUsize,
    leased: AtomicBool,
}

/// The account of a connection. It is free again when this is dropped.
pub(crate) struct Lease(&'static Account);

/// Counts this thread's allocations, until it is dropped.
pub(crate) struct Counting {
    before: *const Account,
}

/// Stands before each piece of memory, and keeps the piece aligned.
#[repr(C, align(16))]
struct Head {
    account: *const Account,
    size: usize,
}

const HEAD: usize = size_of::<Head>();

static ALL: Mutex<Vec<&'static Account>> = Mutex::new(Vec::new());

thread_local! {
    /// The account of the connection that this thread works for.
    static CURRENT: Cell<*const Account> = const { Cell::new(ptr::null()) };
}

impl Account {
    fn take(&self, size: usize) -> bool {
        let taken = self.taken.fetch_add(size, Ordering::Relaxed);
        let may = taken.saturating_add(size) <= self.most.load(Ordering::Relaxed);
        if !may {
            self.give_back(size);
        }
        may
    }

    fn give_back(&self, size: usize) {
        self.taken.fetch_sub(size, Ordering::Relaxed);
    }
}

impl Lease {
    /// Takes an account for a connection that may have `most` bytes.
    pub(crate) fn new(most: usize) -> Lease {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().find(|account| !account.leased.swap(true, Ordering::Relaxed));
        let account = free.copied().unwrap_or_else(|| {
            let (taken, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let account = Account { taken, most, leased: AtomicBool::new(true) };
            let account: &'static Account = Box::leak(Box::new(account));
            all.push(account);
            account
        });
        account.most.store(most, Ordering::Relaxed);
        Lease(account)
    }

    /// Counts this thread's allocations in this account, until the result is dropped.
    pub(crate) fn count(&self) -> Counting {
        Counting { before: CURRENT.replace(self.0) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.leased.store(false, Ordering::Relaxed);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Makes SQLite use the allocation functions here. This must be the first call of SQLite's
/// functions.
pub(super) fn install() {
    let methods = sqlite::sqlite3_mem_methods {
        xMalloc: Some(allocate),
        xFree: Some(free),
        xRealloc: Some(reallocate),
        xSize: Some(size_of_piece),
        xRoundup: Some(round_up),
        xInit: Some(begin),
        xShutdown: Some(end),
        pAppData: ptr::null_mut(),
    };
    // SAFETY: the option takes a pointer to functions, which SQLite copies. If other code of the
    // process uses SQLite already, the call does nothing, and memory is not limited.
    unsafe { sqlite::sqlite3_config(sqlite::SQLITE_CONFIG_MALLOC, &raw const methods) };
}

/// Returns the account of a piece, if it has one.
fn account_of(account: *const Account) -> Option<&'static Account> {
    // SAFETY: accounts are never freed.
    unsafe { account.as_ref() }
}

/// # Safety
///
/// `piece` comes from [`allocate`] or [`reallocate`].
unsafe fn head(piece: *mut c_void) -> *mut Head {
    // SAFETY: promised by the caller: a head stands before it.
    unsafe { piece.cast::<Head>().sub(1) }
}

unsafe extern "C" fn allocate(size: c_int) -> *mut c_void {
    let (account, size) = (CURRENT.get(), usize::try_from(size).unwrap_or(0));
    if account_of(account).is_some_and(|account| !account.take(size)) {
        return ptr::null_mut();
    }
    // SAFETY: memory of the C library, which is aligned for a head and has room for one.
    unsafe {
        let start = libc::malloc(HEAD + size).cast::<Head>();
        if start.is_null() {
            if let Some(account) = account_of(account) {
                account.give_back(size);
            }
            return ptr::null_mut();
        }
        start.write(Head { account, size });
        start.add(1).cast()
    }
}

unsafe extern "C" fn free(piece: *mut c_void) {
    // SAFETY: SQLite frees what `allocate` returned, once.
    unsafe {
        let head = head(piece);
        if let Some(account) = account_of((*head).account) {
            account.give_back((*head).size);
        }
        libc::free(head.cast());
    }
}

unsafe extern "C" fn reallocate(piece: *mut c_void, size: c_int) -> *mut c_void {
    let size = usize::try_from(size).unwrap_or(0);
    // SAFETY: as in `free`; a piece that cannot grow stays as it is.
    unsafe {
        let head = head(piece);
        let (account, before) = (account_of((*head).account), (*head).size);
        let more = size.saturating_sub(before);
        if account.is_some_and(|account| !account.take(more)) {
            return ptr::null_mut();
        }
        let start = libc::realloc(head.cast(), HEAD + size).cast::<Head>();
        let over = if start.is_null() { more } else { before.saturating_sub(size) };
        if let Some(account) = account {
            account.give_back(over);
        }
        if start.is_null() {
            return ptr::null_mut();
        }
        (*start).size = size;
        start.add(1).cast()
    }
}

unsafe extern "C" fn size_of_piece(piece: *mut c_void) -> c_int {
    if piece.is_null() {
        return 0;
    }
    // SAFETY: as in `free`.
    unsafe { c_int::try_from((*head(piece)).size).unwrap_or(c_int::MAX) }
}

unsafe extern "C" fn round_up(size: c_int) -> c_int {
    size.saturating_add(7) & !7
}

unsafe extern "C" fn begin(_: *mut c_void) -> c_int {
    sqlite::SQLITE_OK
}

unsafe extern "C" fn end(_: *mut c_void) {}

const _: () = assert!(align_of::<Head>() <= 16, "malloc aligns for it");

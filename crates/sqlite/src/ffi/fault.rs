//! Guards mapped memory whose file another program may make shorter.
//!
//! A thread that touches a mapped page beyond the end of its file gets SIGBUS, which ends the
//! process, with all its databases and PostgreSQL's clients. The handler here puts empty memory in
//! the place of such a page if the page belongs to a guarded file, and marks the file as broken.
//! Then the thread goes on. Its result must not be used: the owner of the mark sees to that
//! (`index`).
//!
//! Always true: the handler takes no lock and allocates nothing; a fault in other memory ends the
//! process as before.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// A mapped region. Regions are never freed, but used again.
struct Region {
    /// The address at which it begins; 0 for a region that is not in use.
    start: AtomicUsize,
    length: AtomicUsize,
    /// The mark to set after a fault.
    broken: AtomicPtr<AtomicBool>,
    next: AtomicPtr<Region>,
}

/// The list of all regions. Each 16 MiB of a WAL have one.
static FIRST: AtomicPtr<Region> = AtomicPtr::new(ptr::null_mut());
/// Taken to change regions. The handler does not take it.
static CHANGES: Mutex<()> = Mutex::new(());
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// The action for SIGBUS before the handler was installed.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once.
pub(super) fn install() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        // SAFETY: the calls read and write what they are given, which is theirs. The handler is one
        // for three arguments, as the flag says, and runs on the stack for signals that Rust gives
        // each thread.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
            PAGE.store(page, Ordering::Relaxed);
            let mut before: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before);
            BEFORE.get_or_init(|| before);
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = on_fault as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

/// Guards a region: a fault in it marks `broken`. Does nothing if the region is guarded already.
pub(super) fn protect(start: *const c_void, length: usize, broken: &'static AtomicBool) {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let start = start.addr();
    let mut free = None;
    for region in regions() {
        match region.start.load(Ordering::Acquire) {
            known if known == start => return,
            0 => free = Some(region),
            _ => {}
        }
    }
    let region = free.unwrap_or_else(|| {
        let next = AtomicPtr::new(FIRST.load(Ordering::Acquire));
        let (start, length) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let broken = AtomicPtr::new(ptr::null_mut());
        let region = Box::leak(Box::new(Region { start, length, broken, next }));
        FIRST.store(region, Ordering::Release);
        region
    });
    region.length.store(length, Ordering::Relaxed);
    region.broken.store(ptr::from_ref(broken).cast_mut(), Ordering::Relaxed);
    region.start.store(start, Ordering::Release);
}

/// Stops guarding the regions that mark `broken`. The caller unmaps them afterwards.
pub(super) fn forget(broken: &'static AtomicBool) {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    for region in regions() {
        if ptr::eq(region.broken.load(Ordering::Relaxed), broken) {
            region.start.store(0, Ordering::Release);
        }
    }
}

fn regions() -> impl Iterator<Item = &'static Region> {
    // SAFETY: a region in the list is complete and stays there.
    let at = |place: &AtomicPtr<Region>| unsafe { place.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&FIRST), move |region| at(&region.next))
}

/// Handles SIGBUS. The kernel calls this in the middle of any code.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a valid record. Only a fault has an address.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr()) };
    if is_fault && mend(address) {
        return;
    }
    // Not a guarded page: the earlier action is restored. A fault then happens again, and a signal
    // that was sent is sent again.
    let before = BEFORE.get().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: a handler may call both functions; `sigaction` returned the action that it gets.
    unsafe {
        libc::sigaction(signal, before, ptr::null_mut());
        if !is_fault {
            libc::raise(signal);
        }
    }
}

/// Puts empty memory in the place of a page. Returns false if the page was not guarded.
fn mend(address: usize) -> bool {
    let holds = |region: &&Region| {
        let start = region.start.load(Ordering::Acquire);
        start != 0 && (start..start + region.length.load(Ordering::Relaxed)).contains(&address)
    };
    let Some(region) = regions().find(holds) else { return false };
    // SAFETY: the marks of regions live for ever.
    let Some(broken) = (unsafe { region.broken.load(Ordering::Relaxed).as_ref() }) else {
        return false;
    };
    // Set before the page is mapped: a thread that reads the empty page sees the mark.
    broken.store(true, Ordering::SeqCst);
    let page = PAGE.load(Ordering::Relaxed);
    let start = ptr::with_exposed_provenance_mut(address & !(page - 1));
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the page lies in a mapping of SQLite's, which SQLite still unmaps as a whole. There
    // is no Rust object in it.
    unsafe { libc::mmap(start, page, access, kind, -1, 0) != libc::MAP_FAILED }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    const PAGES: usize = 2;

    /// Maps a file, empties it, and reads the mapped memory.
    fn touch(broken: Option<&'static AtomicBool>) -> u8 {
        install();
        let name = format!("refrain-fault-{}-{}", std::process::id(), broken.is_some());
        let path = std::env::temp_dir().join(name);
        let file = File::create_new(&path).unwrap();
        drop(file);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let length = PAGES * PAGE.load(Ordering::Relaxed);
        file.set_len(length as u64).unwrap();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, in which bytes are read and written.
        unsafe {
            let shared = libc::MAP_SHARED;
            let start = libc::mmap(ptr::null_mut(), length, access, shared, file.as_raw_fd(), 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.expose_provenance();
            if let Some(broken) = broken {
                protect(start, length, broken);
            }
            file.set_len(0).unwrap();
            let last = start.cast::<u8>().add(length - 1);
            let found = last.read_volatile();
            last.write_volatile(7);
            found + last.read_volatile()
        }
    }

    #[test]
    #[ignore = "the child of another test"]
    fn child() {
        touch(None);
    }

    #[test]
    fn a_guarded_page_is_empty_once_its_file_is_shorter_and_is_marked() {
        static BROKEN: AtomicBool = AtomicBool::new(false);
        assert_eq!(touch(Some(&BROKEN)), 7);
        assert!(BROKEN.load(Ordering::SeqCst));
        forget(&BROKEN);
    }

    #[test]
    fn a_fault_elsewhere_ends_the_process() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["ffi::fault::tests::child", "--exact", "--ignored"]);
        assert_eq!(child.output().unwrap().status.signal(), Some(libc::SIGBUS));
    }
}

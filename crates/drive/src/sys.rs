//! The system calls that the standard library and `socket2` lack, each wrapped in a safe function.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns the result of a call, or its `errno`.
fn check(answer: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call as long as a signal interrupts it.
fn patiently(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match check(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// Receives available bytes, without waiting. 0 is the end of the stream.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a slice lent to us for writing.
    patiently(|| unsafe {
        libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT)
    })
}

/// Sends as many bytes as the kernel takes, without waiting. A broken pipe is an error, not a
/// signal.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and the length are those of a slice lent to us for reading.
    patiently(|| unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Returns the time since the peer of a TCP socket has last acknowledged anything, if it owes an
/// acknowledgement of bytes that were sent more than once, or of several probes for room. The
/// kernel ends a connection without bytes to send by itself (`tcp_keepcnt`), and a single probe may
/// get lost.
pub(crate) fn unacknowledged(fd: BorrowedFd<'_>) -> Option<Duration> {
    // SAFETY: the structure has integers alone, of which zeroes are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    // SAFETY: TCP_INFO fills such a structure, and any integers are valid.
    unsafe { read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info) }.ok()?;
    let has_bytes = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0;
    let owes = info.tcpi_retransmits > 0 || info.tcpi_probes > 1 && has_bytes;
    owes.then(|| Duration::from_millis(info.tcpi_last_ack_recv.into()))
}

/// Discards received bytes that were not read.
///
/// When a socket is closed with unread bytes, TCP sends a reset, which may overtake the last bytes
/// sent (an error message, for example). On a Unix socket this function does nothing, and nothing
/// is needed.
pub(crate) fn discard(fd: BorrowedFd<'_>) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC, TCP writes nothing to the buffer; other sockets refuse the null
    // pointer.
    unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), 1 << 30, flags) };
}

/// Ends the receiving half, so that a receive finds the bytes that have arrived, and then the end.
pub(crate) fn stop_receiving(fd: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RD) };
}

/// Ends both halves, so that every present and future wait on the socket ends.
pub(crate) fn stop(fd: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Returns the user and process ID at the other end of a Unix socket.
pub(crate) fn credentials(fd: BorrowedFd<'_>) -> io::Result<(u32, i32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    // SAFETY: SO_PEERCRED fills such a structure, and any integers are valid.
    unsafe { read_option(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut found) }?;
    Ok((found.uid, found.pid))
}

/// Reads an option of a socket.
///
/// # Safety
/// The option's value has the type of `found`, or fills a part of it, whatever its bytes.
unsafe fn read_option<T>(
    fd: BorrowedFd<'_>,
    level: i32,
    option: i32,
    found: &mut T,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let value = (&raw mut *found).cast();
    // SAFETY: both pointers are to values that live until the end of this call, and the kernel
    // writes no more than `length`.
    let answer = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, value, &raw mut length) };
    check(answer as isize).map(drop)
}

/// Has a listening TCP socket keep connections to itself until their first bytes have arrived, or
/// until this time is over.
pub(crate) fn defer_accept(fd: BorrowedFd<'_>, seconds: i32) -> io::Result<()> {
    // SAFETY: the pointer is to a local of the type and length that the option takes.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    check(answer as isize).map(drop)
}

/// Takes ownership of a descriptor that the kernel has just created.
///
/// # Safety
///
/// The descriptor has no other owner.
pub(crate) unsafe fn own(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd as isize)?;
    // SAFETY: it is open, and the caller says that it is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes ownership of descriptors that the program was started with, from the number 3 on. They do
/// not go on to programs that this one starts.
///
/// Only the first call in a process returns any: the descriptors have one owner.
///
/// # Errors
///
/// If a number is not open.
pub fn passed_descriptors(count: u32) -> io::Result<Vec<OwnedFd>> {
    const FIRST: RawFd = 3;
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let numbers = (FIRST..).take(usize::try_from(count).unwrap_or(usize::MAX));
    let take = |fd| {
        // SAFETY: no memory is involved.
        check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } as isize)?;
        // SAFETY: the descriptor is open, the program was started with it, and this is the one call
        // that takes it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    numbers.map(take).collect()
}

/// Creates a counter with which another thread can wake the driver. It is blocking, as io_uring
/// needs it.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved, and a new descriptor has no other owner.
    unsafe { own(libc::eventfd(0, libc::EFD_CLOEXEC)) }
}

/// An epoll instance.
pub(crate) struct Poll(OwnedFd);

impl Poll {
    pub(crate) fn open() -> io::Result<Poll> {
        // SAFETY: no memory is involved, and a new descriptor has no other owner.
        unsafe { own(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }.map(Poll)
    }

    /// Adds, changes or ends watching a descriptor. `data` comes back with each event.
    pub(crate) fn watch(
        &self,
        operation: i32,
        fd: BorrowedFd<'_>,
        events: i32,
        data: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event is a local, read during the call only.
        let answer = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event)
        };
        check(answer as isize).map(drop)
    }

    /// Waits for events, writes them to the front of `into` and returns their number. `None` waits
    /// without limit; a signal counts as no event.
    pub(crate) fn wait(
        &self,
        into: &mut [libc::epoll_event],
        wait: Option<Duration>,
    ) -> io::Result<usize> {
        // Milliseconds, rounded up: waking too early would make the caller spin.
        let milliseconds = match wait {
            None => -1,
            Some(wait) => i32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX),
        };
        let room = i32::try_from(into.len()).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length are those of a slice lent to us for writing.
        let answer =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), into.as_mut_ptr(), room, milliseconds) };
        match check(answer as isize) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            answer => answer,
        }
    }
}

//! The system calls that the standard library and `socket2` lack, each made safe on its own.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// A call's answer, or the error it left behind.
fn check(answer: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Makes a call again if a signal cut it short.
fn patiently(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match check(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// Receives what is there, without waiting. 0 is the end of the stream.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a slice lent to us for writing.
    patiently(|| unsafe {
        libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT)
    })
}

/// Sends as much as the kernel takes, without waiting. A broken pipe is an error, not a signal.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and the length are those of a slice lent to us for reading.
    patiently(|| unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Throws away what was received and not read.
///
/// TCP answers a close with unread bytes by a reset, and a reset may overtake the last thing we said
/// (an error message, say). On a Unix socket this does nothing, and nothing needs to be done.
pub(crate) fn discard(fd: BorrowedFd<'_>) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC, TCP writes nothing to the buffer; other sockets refuse the null pointer.
    unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), 1 << 30, flags) };
}

/// Ends the receiving half, so that a receive finds the bytes already here, and then the end.
pub(crate) fn stop_receiving(fd: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RD) };
}

/// Ends both halves, so that whatever waits for the socket, or ever will, is answered.
pub(crate) fn stop(fd: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// The user and process at the other end of a Unix socket.
pub(crate) fn credentials(fd: BorrowedFd<'_>) -> io::Result<(u32, i32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both pointers are to locals of the type and length that SO_PEERCRED fills.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    check(answer as isize).map(|_| (found.uid, found.pid))
}

/// Takes over a descriptor that the kernel has just made for us.
///
/// # Safety
///
/// Nobody else may own it.
pub(crate) unsafe fn own(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd as isize)?;
    // SAFETY: it is open, and the caller says that it is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A counter that another thread can make us wake up with. Blocking, as io_uring needs it.
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

    /// Adds, changes or ends the watching of a descriptor. `data` comes back with each event.
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

    /// Waits for events and says how many were written to the front of `into`. `None` waits for ever;
    /// a signal counts as no event.
    pub(crate) fn wait(
        &self,
        into: &mut [libc::epoll_event],
        wait: Option<Duration>,
    ) -> io::Result<usize> {
        // Milliseconds, rounded up: to wake too early would make the caller turn in a circle.
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

//! Checks whether this kernel supports all that the driver needs, and behaves as the driver
//! expects.
//!
//! Asking which requests the kernel supports is not enough: multishot receive came without a
//! request number of its own, and container run-times refuse some calls. So the driver tries them.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use io_uring::{opcode, squeue, types};

use super::buffers::{Buffers, GROUP};
use super::ring::{Completion, Operation, Ring};

const LIMIT: Duration = Duration::from_secs(1);

/// Returns `Ok` if the driver works here, otherwise the reason why not.
pub(crate) fn probe() -> io::Result<()> {
    let mut ring = Ring::new(8)?;
    if !ring.supported()? {
        return Err(missing("requests it lacks"));
    }
    let mut buffers = Buffers::new(2, 64)?;
    let (here, there) = UnixStream::pair()?;
    // SAFETY: `ring` is dropped before `buffers`, as below.
    unsafe { buffers.register(&ring.submitter())? };
    let receives = receives_many(&mut ring, &here, &there);
    let sends = receives.and_then(|()| decides_sends(&mut ring, &here));
    drop(ring);
    drop(buffers);
    sends
}

/// Checks that one request to receive has two completions.
fn receives_many(ring: &mut Ring, here: &UnixStream, there: &UnixStream) -> io::Result<()> {
    let request = opcode::RecvMulti::new(types::Fd(there.as_raw_fd()), GROUP)
        .build()
        .user_data(Operation::Receive.with(0));
    // SAFETY: the buffers and the sockets outlive the ring.
    unsafe { ring.push(request) };
    for _ in 0..2 {
        send(ring, here, b"?");
        ring.enter(Some(LIMIT))?;
        let Some(Completion { operation: Operation::Receive, result: 1, more: true, .. }) =
            ring.next()
        else {
            return Err(missing("multishot receive"));
        };
    }
    Ok(())
}

/// Checks that a send that must not wait is decided at once, and reports failures only.
fn decides_sends(ring: &mut Ring, here: &UnixStream) -> io::Result<()> {
    static MUCH: [u8; 16 << 10] = [0; 16 << 10];
    // No receive takes the bytes, because both buffers are used up. In the end the socket is full.
    for _ in 0..1024 {
        send(ring, here, &MUCH);
        ring.enter(Some(Duration::ZERO))?;
        while let Some(answer) = ring.next() {
            if answer.operation == Operation::Send {
                let short = (0..MUCH.len() as i32).contains(&answer.result);
                let decided = short || answer.result == -libc::EAGAIN;
                return if decided { Ok(()) } else { Err(missing("sends that do not wait")) };
            }
        }
    }
    Err(missing("failures to send"))
}

fn send(ring: &mut Ring, here: &UnixStream, bytes: &'static [u8]) {
    let request =
        opcode::Send::new(types::Fd(here.as_raw_fd()), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(Operation::Send.with(0));
    // SAFETY: the bytes are static, and the socket outlives the ring.
    unsafe { ring.push(request) };
}

fn missing(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this kernel's io_uring does not do {what}"))
}

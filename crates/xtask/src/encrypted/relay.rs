//! Two ways of a man in the middle to pass bytes on: as they are, and out of one TLS session into
//! another.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::Connection;

/// Passes bytes both ways until both streams have ended.
pub(super) fn pass(near: &TcpStream, far: &TcpStream) -> Result<()> {
    let (mut to_far, mut from_near) = (far.try_clone()?, near.try_clone()?);
    let upwards = thread::spawn(move || {
        let _ = io::copy(&mut from_near, &mut to_far);
        let _ = to_far.shutdown(Shutdown::Write);
    });
    let (mut from_far, mut to_near) = (far.try_clone()?, near.try_clone()?);
    let _ = io::copy(&mut from_far, &mut to_near);
    let _ = to_near.shutdown(Shutdown::Write);
    let _ = upwards.join();
    Ok(())
}

/// One end of a connection that is encrypted.
pub(super) struct Sealed {
    pub(super) stream: TcpStream,
    pub(super) tls: Connection,
}

impl Sealed {
    /// Does the handshake.
    pub(super) fn shake(&mut self) -> Result<()> {
        while self.tls.is_handshaking() {
            self.tls.complete_io(&mut self.stream)?;
        }
        Ok(())
    }

    /// Reads what the stream has, which may be nothing yet. Returns it in the clear, and whether
    /// the peer has ended.
    fn receive(&mut self) -> Result<(Vec<u8>, bool)> {
        let mut is_over = match self.tls.read_tls(&mut self.stream) {
            Ok(got) => got == 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error.into()),
        };
        let state = self.tls.process_new_packets();
        self.flush()?;
        let state = state?;
        is_over |= state.peer_has_closed();
        let mut clear = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut clear)?;
        Ok((clear, is_over))
    }

    fn send(&mut self, clear: &[u8]) -> Result<()> {
        self.tls.writer().write_all(clear)?;
        self.flush()
    }

    /// Sends all that is encrypted. What a login has fits into the kernel's buffer.
    fn flush(&mut self) -> Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.stream)?;
        }
        Ok(())
    }
}

/// Passes on what a driver and Refrain say to each other within TLS. `change` may change what
/// Refrain says.
pub(super) fn pass_sealed(
    mut near: Sealed,
    mut far: Sealed,
    change: fn(Vec<u8>) -> Vec<u8>,
) -> Result<()> {
    near.stream.set_nonblocking(true)?;
    far.stream.set_nonblocking(true)?;
    loop {
        let (from_near, near_is_over) = near.receive()?;
        let (from_far, far_is_over) = far.receive()?;
        far.send(&from_near)?;
        near.send(&change(from_far))?;
        if near_is_over || far_is_over {
            near.tls.send_close_notify();
            far.tls.send_close_notify();
            near.flush()?;
            return far.flush();
        }
        let mut ends = [near.stream.as_fd(), far.stream.as_fd()]
            .map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN));
        if poll(&mut ends, None)? == 0 {
            bail!("nothing has come, and there is no limit");
        }
    }
}

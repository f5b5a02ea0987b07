//! The messages of a take-over, and the Unix socket by which they are sent.
//!
//! A message is one packet (`SOCK_SEQPACKET`) of ASCII: words, the first of which is the message's
//! name, and at most one descriptor. `docs/restart.md` has all messages.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recvmsg, sendmsg, socket_with,
};
use rustix::process::geteuid;

/// The version of the messages. Programs of different versions do not take each other over.
pub(crate) const VERSION: u32 = 1;
/// The longest message, in bytes. A reason in words is the longest part of one.
const MESSAGE_MAX: usize = 4096;
/// Programs that may wait to be heard.
const BACKLOG: i32 = 4;

/// A connection to the other program of a take-over.
#[derive(Debug)]
pub(crate) struct Line(OwnedFd);

/// Opens the socket at which a program can be asked to hand over. Only its own user may connect.
///
/// # Errors
/// `AddrInUse` if another program can be asked there; all errors of the system.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match connect(&unconnected()?, &address) {
        // A dead process has left the file behind.
        Err(Errno::CONNREFUSED) if is_socket => fs::remove_file(path)?,
        Ok(()) => return Err(io::ErrorKind::AddrInUse.into()),
        // With a file that must stay, `bind` fails.
        Err(_) => {}
    }
    let socket = unconnected()?;
    bind(&socket, &address)?;
    // Before the socket listens: nobody has been able to connect.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    hear(&socket)?;
    Ok(socket)
}

/// Listens at the socket, or goes on to. Programs that connect see this process as their peer,
/// rather than the one that has listened before.
///
/// # Errors
/// If the system refuses.
pub(crate) fn hear(socket: &OwnedFd) -> io::Result<()> {
    Ok(listen(socket, BACKLOG)?)
}

fn unconnected() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

impl Line {
    /// Waits for the next program that asks.
    ///
    /// # Errors
    /// If the system cannot accept a connection.
    pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Self> {
        Ok(Self(accept_with(listener, SocketFlags::CLOEXEC)?))
    }

    /// Connects to the program that can be asked at a path.
    ///
    /// # Errors
    /// If no program listens there, or the system refuses.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let socket = unconnected()?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self(socket))
    }

    /// Makes a line of a descriptor that another program has used as one.
    pub(crate) fn inherited(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Returns the process at the other end.
    ///
    /// # Errors
    /// If that process is neither root's nor of this process's own user.
    pub(crate) fn peer(&self) -> io::Result<i32> {
        let other = getsockopt(&self.0, PeerCredentials)?;
        let (uid, own) = (other.uid(), geteuid().as_raw());
        if uid != own && uid != 0 {
            let why = format!("the other program is of user {uid}, and not of {own} or root");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        // It is 0 for a process of another container.
        Ok(other.pid())
    }

    /// Sets how long a message is waited for. `None`: without limit.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn set_patience(&self, most: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(&self.0, Timeout::Recv, most)?)
    }

    /// Sends a message, with a descriptor if there is one.
    ///
    /// # Errors
    /// If the other program has gone, or takes no messages.
    pub(crate) fn send(&self, text: &str, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let text = &text.as_bytes()[..text.len().min(MESSAGE_MAX)];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let Some(fds) = &fds {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(text)], &mut control, flags)?;
        Ok(())
    }

    /// Receives a message and its descriptor. Returns `None` if the other program has gone.
    ///
    /// # Errors
    /// `WouldBlock` if no message comes in time; `InvalidData` if it is no text.
    pub(crate) fn receive(&self) -> io::Result<Option<(String, Option<OwnedFd>)>> {
        let mut bytes = [0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let count = loop {
            let mut into = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                received => break received?.bytes,
            }
        };
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fd = fds.flatten().next();
        if count == 0 {
            return Ok(None);
        }
        let text = str::from_utf8(&bytes[..count]);
        let text = text.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Some((text.to_owned(), fd)))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the bytes of a cancel key as text.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of a cancel key that is written as text.
pub(crate) fn from_hex(text: &str) -> Option<Box<[u8]>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_descriptors_arrive_one_by_one() {
        let path = std::env::temp_dir().join(format!("refrain-line-{}", std::process::id()));
        let listener = open(&path).unwrap();
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // The attempt above has asked as well.
        drop(Line::accept(&listener).unwrap());
        let here = Line::connect(&path).unwrap();
        let there = Line::accept(&listener).unwrap();
        assert_eq!(there.peer().unwrap(), i32::try_from(std::process::id()).unwrap());
        here.send("socket listen", Some(listener.as_fd())).unwrap();
        here.send("offered", None).unwrap();
        let (text, fd) = there.receive().unwrap().unwrap();
        assert!(text == "socket listen" && fd.is_some());
        assert_eq!(there.receive().unwrap().unwrap().0, "offered");
        there.set_patience(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(there.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(here);
        assert!(there.receive().unwrap().is_none() && there.send("ready", None).is_err());
        drop((listener, fd));
        fs::write(path.with_extension("txt"), "mine").unwrap();
        assert!(open(&path.with_extension("txt")).is_err(), "a file that is no socket stays");
        fs::remove_file(path.with_extension("txt")).unwrap();
        drop(open(&path).unwrap());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn keys_are_written_in_hexadecimal_digits() {
        let key = [0, 7, 255];
        assert_eq!(from_hex(&to_hex(&key)).as_deref(), Some(&key[..]));
        assert!(from_hex("0").is_none() && from_hex("0g").is_none());
        assert_eq!(from_hex("").as_deref(), Some(&[][..]));
    }
}

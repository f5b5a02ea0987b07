//! Sockets that no driver holds, and sockets that listen.
//!
//! A [`Socket`] is in blocking mode, whichever driver it comes from. io_uring needs blocking mode:
//! with `O_NONBLOCK` it fails rather than waits. epoll asks for non-blocking calls one by one.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use socket2::{Domain, SockAddr, SockRef, TcpKeepalive, Type};

use crate::address::{Address, Peer};
use crate::sys;
use crate::tuning::Tuning;

/// Seconds for which the kernel waits for the first bytes of a connection. It counts in attempts to
/// complete the connection: a second makes one more of them.
const FIRST_BYTES_MAX_S: i32 = 1;

/// An open, connected socket that no driver holds: just accepted, or given up by `detach`.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Wraps a descriptor that is a stream socket in blocking mode.
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        Socket(fd)
    }

    /// Asks the kernel for the peer.
    ///
    /// # Errors
    ///
    /// If the peer has gone already.
    pub fn peer(&self) -> io::Result<Peer> {
        match SockRef::from(self).peer_addr()?.as_socket() {
            Some(address) => Ok(Peer::Tcp(address)),
            None => {
                let found = sys::credentials(self.as_fd()).ok();
                Ok(Peer::Unix { uid: found.map(|(uid, _)| uid), pid: found.map(|(_, pid)| pid) })
            }
        }
    }
}

impl Socket {
    /// Returns the socket under the lowest free descriptor number, if there is a lower one.
    pub(crate) fn renumbered(self) -> Socket {
        match self.0.try_clone() {
            Ok(lowest) => Socket(lowest),
            Err(_) => self,
        }
    }
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Socket {
        // Neither call fails on an open socket, and without the second the socket would just be
        // slower.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_nodelay(true);
        Socket(stream.into())
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Socket {
        let _ = stream.set_nonblocking(false);
        Socket(stream.into())
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl IntoRawFd for Socket {
    fn into_raw_fd(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

/// How a socket listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Connections that the kernel queues until they are accepted.
    pub backlog: i32,
    /// Whether other sockets may listen at the same TCP address.
    pub is_shared: bool,
    /// Options of the connections that are accepted by TCP.
    pub tuning: Tuning,
}

/// A socket that is bound and listens, ready for [`crate::Driver::listen`].
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Binds and listens.
    ///
    /// Removes a Unix socket that a dead process has left behind, if no process answers on it. The
    /// umask decides which users may connect to the new one; the caller changes the mode of the
    /// file, and removes the file at the end.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if another socket listens there. This is also the case for some milliseconds
    /// after a process was killed that listened there with io_uring: its requests keep the socket
    /// open until the kernel has cleaned up, so a program that may be restarted tries again. Also
    /// all other errors of `bind(2)` and `listen(2)`.
    pub fn bind(address: &Address, backlog: i32) -> io::Result<Listener> {
        Listener::bind_as(address, &Listening { backlog, ..Listening::default() })
    }

    /// Binds and listens as [`Self::bind`] does, with these options.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn bind_as(address: &Address, how: &Listening) -> io::Result<Listener> {
        let kernel = address.to_kernel()?;
        let socket = socket2::Socket::new(kernel.domain(), Type::STREAM, None)?;
        match address {
            Address::Tcp(tcp) => {
                socket.set_reuse_address(true)?;
                socket.set_reuse_port(how.is_shared)?;
                if tcp.is_ipv6() {
                    socket.set_only_v6(true)?;
                }
            }
            Address::Unix(path) => remove_stale(path, &kernel)?,
        }
        socket.bind(&kernel)?;
        socket.listen(how.backlog)?;
        Listener::new(socket.into(), &how.tuning)
    }

    /// Returns a second handle on the same queue of connections, for another driver.
    ///
    /// # Errors
    ///
    /// If the process is out of descriptors.
    pub fn try_clone(&self) -> io::Result<Listener> {
        Ok(Listener(self.0.try_clone()?))
    }

    /// Keeps connections from being accepted before the peer has sent something, or a second or two
    /// have passed: the driver then reports a connection and its first bytes in one turn. For
    /// protocols in which the peer speaks first. On a Unix socket this does nothing.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the option.
    pub fn await_first_bytes(&self) -> io::Result<()> {
        match SockRef::from(self).domain()? {
            Domain::UNIX => Ok(()),
            _ => sys::defer_accept(self.as_fd(), FIRST_BYTES_MAX_S),
        }
    }

    /// Returns the address on which the socket listens, for callers that asked for port 0.
    ///
    /// # Errors
    ///
    /// If the kernel cannot say.
    pub fn local(&self) -> io::Result<Address> {
        let address = SockRef::from(self).local_addr()?;
        Address::from_kernel(&address).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Takes a socket that another process has made to listen, and that may listen there as well.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the descriptor is no stream socket that listens; all errors of the system.
    pub fn inherited(fd: OwnedFd) -> io::Result<Listener> {
        let socket = SockRef::from(&fd);
        if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        socket.set_nonblocking(true)?;
        Ok(Listener(fd))
    }

    /// Listens in another way, with the options of `how` but for `is_shared`.
    ///
    /// # Errors
    ///
    /// If the kernel refuses an option.
    pub fn adjust(&self, how: &Listening) -> io::Result<()> {
        let socket = SockRef::from(self);
        socket.listen(how.backlog)?;
        if socket.domain()? == Domain::UNIX {
            return Ok(());
        }
        tune(&socket, &how.tuning)
    }

    /// Accepted connections inherit the options of a listening TCP socket, without a system call
    /// for each. The socket never blocks: processes may share it, whatever their drivers, and one
    /// that found another to be faster must not wait.
    fn new(fd: OwnedFd, tuning: &Tuning) -> io::Result<Listener> {
        let socket = SockRef::from(&fd);
        socket.set_nonblocking(true)?;
        if socket.domain()? != Domain::UNIX {
            tune(&socket, tuning)?;
        }
        Ok(Listener(fd))
    }

    /// Accepts the next connection, without waiting for one.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let (socket, _) = SockRef::from(self).accept()?;
        Ok(Socket(socket.into()))
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        listener.0
    }
}

impl TryFrom<TcpListener> for Listener {
    type Error = io::Error;
    fn try_from(listener: TcpListener) -> io::Result<Listener> {
        Listener::new(listener.into(), &Tuning::default())
    }
}

impl TryFrom<UnixListener> for Listener {
    type Error = io::Error;
    fn try_from(listener: UnixListener) -> io::Result<Listener> {
        Listener::new(listener.into(), &Tuning::default())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Creates a socket in blocking mode, to be connected to an address of this kind.
pub(crate) fn unconnected(address: &SockAddr, tuning: &Tuning) -> io::Result<OwnedFd> {
    let socket = socket2::Socket::new(address.domain(), Type::STREAM, None)?;
    if address.domain() != Domain::UNIX {
        tune(&socket, tuning)?;
    }
    Ok(socket.into())
}

/// Starts to connect. Returns `Ok(false)` if the result is yet to come.
pub(crate) fn start_connect(fd: BorrowedFd<'_>, address: &SockAddr) -> io::Result<bool> {
    let socket = SockRef::from(&fd);
    socket.set_nonblocking(true)?;
    let answer = match socket.connect(address) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(false),
        Err(error) => Err(error),
    };
    socket.set_nonblocking(false)?;
    answer
}

/// Returns the result of [`start_connect`], once the socket is writable.
pub(crate) fn finish_connect(fd: BorrowedFd<'_>) -> io::Result<()> {
    match SockRef::from(&fd).take_error()? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Returns the local address of a connection.
pub(crate) fn local(fd: BorrowedFd<'_>) -> Option<Address> {
    Address::from_kernel(&SockRef::from(&fd).local_addr().ok()?)
}

/// Sets the options of a TCP socket. The driver writes whole batches, so Nagle's delay could only
/// hurt; keepalive notices a peer that vanished.
fn tune(socket: &socket2::Socket, tuning: &Tuning) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_keepalive(tuning.keepalive)?;
    let Tuning { idle, interval, retries, user_timeout, buffer, .. } = *tuning;
    if let Some(bytes) = buffer {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    let mut keepalive = TcpKeepalive::new();
    keepalive = idle.map_or(keepalive.clone(), |time| keepalive.with_time(time));
    keepalive = interval.map_or(keepalive.clone(), |time| keepalive.with_interval(time));
    keepalive = retries.map_or(keepalive.clone(), |count| keepalive.with_retries(count));
    if tuning.keepalive && (idle, interval, retries) != (None, None, None) {
        socket.set_tcp_keepalive(&keepalive)?;
    }
    user_timeout.map_or(Ok(()), |time| socket.set_tcp_user_timeout(Some(time)))
}

fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        // There is nothing at the path, or a file that Refrain must not remove; in that case `bind`
        // fails.
        _ => return Ok(()),
    }
    let probe = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A listener whose queue is full is alive too: do not wait for room in it.
    probe.set_nonblocking(true)?;
    match probe.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

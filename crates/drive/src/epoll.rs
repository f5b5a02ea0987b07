//! The driver for kernels without io_uring: readiness, edge triggered.
//!
//! The kernel reports once that a socket has become readable. The driver remembers this
//! (`readable`) until a receive finds less than it had room for. So neither a pause nor finding out
//! that nothing is left costs a system call. To find out whether a socket takes bytes, the driver
//! sends; it watches for room only the connections of slow peers, and only as long as bytes are
//! left.
//!
//! What always holds: a connection that is readable, open and not paused is in `ready`. Each
//! connection in `ready` gets one receive per turn, however many bytes it has.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::address::Address;
use crate::delay::Delay;
use crate::face::{self, Driver, Event, Token};
use crate::resting::{Resting, is_scarcity};
use crate::sizing::Sizing;
use crate::socket::{self, Listener, Socket};
use crate::sys::{self, Poll};
use crate::table::{Key, Life, Table};
use crate::tuning::Tuning;
use crate::waker::Waker;

type Sink<'a> = &'a mut dyn FnMut(Event<'_>);

const RECEIVE_BYTES: usize = 64 << 10;
const EVENTS_A_TURN: usize = 512;
const ACCEPTS_A_TURN: usize = 64;

const READ: i32 = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;
const READ_AND_WRITE: i32 = READ | libc::EPOLLOUT;
const OVER: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
const WRITABLE: i32 = libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR;

/// The data of an event: the bits of a connection's key, or one of these.
const WAKE: u64 = u64::MAX;
const LISTENER: u64 = 1 << 63;

/// The driver; see the module.
pub(crate) struct Epoll {
    epoll: Poll,
    waker: Waker,
    table: Table<Connection>,
    listeners: Vec<Listening>,
    next_serial: u32,
    events: Box<[libc::epoll_event]>,
    received: Box<[u8]>,
    /// Connections to visit in the next turn.
    ready: Vec<Key>,
    /// Calls of `connect` that failed at once.
    failed: Vec<(Token, io::Error)>,
    resting: Resting,
    tuning: Tuning,
    lingering: Delay<Key>,
}

struct Connection {
    fd: OwnedFd,
    /// The error number with which a send failed; 0 if none failed.
    error: i32,
    life: Life,
    paused: bool,
    /// True if the next receive may find bytes.
    readable: bool,
    /// True if the peer has ended the stream: a short receive then does not mean that nothing is
    /// left.
    over: bool,
    /// True if the connection is in `ready`.
    queued: bool,
    /// Bytes of `sending` that the kernel has taken.
    sent: usize,
    sending: Vec<u8>,
}

struct Listening {
    id: u32,
    serial: u32,
    socket: Listener,
}

impl Epoll {
    pub(crate) fn open(sizing: Sizing) -> io::Result<Epoll> {
        let epoll = Poll::open()?;
        let waker = Waker::new()?;
        epoll.watch(libc::EPOLL_CTL_ADD, waker.as_fd(), libc::EPOLLIN, WAKE)?;
        Ok(Epoll {
            epoll,
            waker,
            table: Table::new(),
            listeners: Vec::new(),
            next_serial: 0,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_A_TURN].into(),
            received: vec![0; RECEIVE_BYTES].into(),
            ready: Vec::new(),
            failed: Vec::new(),
            resting: Resting::new(sizing.gate),
            tuning: sizing.tuning,
            lingering: Delay::new(sizing.linger),
        })
    }

    fn insert(&mut self, token: Token, fd: OwnedFd, life: Life, events: i32) {
        let key = self.table.insert(
            token,
            Connection {
                fd,
                error: 0,
                life,
                paused: false,
                readable: false,
                over: false,
                queued: false,
                sent: 0,
                sending: Vec::new(),
            },
        );
        let Some((_, connection)) = self.table.get(key) else { return };
        if let Err(error) = connection.watch(&self.epoll, libc::EPOLL_CTL_ADD, key, events) {
            connection.life = Life::Open;
            connection.break_off(&error);
            self.queue(key);
        }
    }

    /// Queues a connection to be visited in the next turn, or in this one if its visits are yet to
    /// come.
    fn queue(&mut self, key: Key) {
        if let Some((_, connection)) = self.table.get(key)
            && !mem::replace(&mut connection.queued, true)
        {
            self.ready.push(key);
        }
    }

    fn happened(&mut self, key: Key, events: i32, sink: Sink<'_>) {
        let Some((_, connection)) = self.table.get(key) else { return };
        if connection.life == Life::Connecting {
            return if events & WRITABLE != 0 {
                self.connected(key, sink)
            };
        }
        connection.over |= events & OVER != 0;
        connection.readable |= events & (libc::EPOLLIN | OVER) != 0;
        let readable = connection.readable && !connection.paused;
        if events & WRITABLE != 0 && !connection.sending.is_empty() {
            self.send_on(key, sink);
        }
        if readable {
            self.queue(key);
        }
    }

    fn connected(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        let watched = socket::finish_connect(connection.fd.as_fd())
            .and_then(|()| connection.watch(&self.epoll, libc::EPOLL_CTL_MOD, key, READ));
        match watched {
            Ok(()) => {
                connection.life = Life::Open;
                sink(Event::Connected { token, local: socket::local(connection.fd.as_fd()) });
            }
            Err(error) => {
                connection.life = Life::Ended;
                sink(Event::Failed { token, error });
            }
        }
    }

    /// Sends the rest of a buffer to a slow peer.
    fn send_on(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        match sys::send(connection.fd.as_fd(), &connection.sending[connection.sent..]) {
            Ok(count) => {
                connection.sent += count;
                if connection.sent < connection.sending.len() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => return self.send_failed(key, &error),
        }
        let mut buffer = mem::take(&mut connection.sending);
        buffer.clear();
        match connection.life {
            Life::Lingering => return self.release(key),
            Life::Leaving => self.queue(key),
            _ => {
                // This fails only if memory is short; then a few needless events come.
                let _ = connection.watch(&self.epoll, libc::EPOLL_CTL_MOD, key, READ);
            }
        }
        sink(Event::Sent { token, buffer });
    }

    /// Handles a failed send. Bytes that the peer sent before it went away are still to be
    /// delivered, so the driver receives to the end first.
    fn send_failed(&mut self, key: Key, error: &io::Error) {
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.sending = Vec::new();
        match connection.life {
            Life::Lingering => self.release(key),
            Life::Leaving => self.queue(key),
            _ => {
                connection.break_off(error);
                self.queue(key);
            }
        }
    }

    fn visit(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        connection.queued = false;
        match connection.life {
            Life::Open if connection.paused && connection.error != 0 => {
                connection.end(token, None, sink);
            }
            Life::HalfOpen if connection.error != 0 => connection.end(token, None, sink),
            Life::Open if connection.paused || !connection.readable => {}
            Life::Open => self.receive(key, sink),
            Life::Leaving if connection.sending.is_empty() => self.give_up(key, sink),
            _ => {}
        }
    }

    fn receive(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        match sys::receive(connection.fd.as_fd(), &mut self.received) {
            Ok(0) if connection.error == 0 => {
                connection.life = Life::HalfOpen;
                sink(Event::Closed { token, error: None });
            }
            Ok(0) => connection.end(token, None, sink),
            Ok(count) => {
                connection.readable = connection.over || count == self.received.len();
                let more = connection.readable;
                sink(Event::Received { token, bytes: &self.received[..count] });
                if more {
                    self.queue(key);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.readable = false,
            Err(error) => connection.end(token, Some(error), sink),
        }
    }

    fn give_up(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, _)) = self.table.get(key) else { return };
        self.table.unbind(token);
        if let Some(connection) = self.table.remove(key) {
            let _ = connection.watch(&self.epoll, libc::EPOLL_CTL_DEL, key, 0);
            sink(Event::Detached { token, socket: Socket::new(connection.fd) });
        }
    }

    fn release(&mut self, key: Key) {
        if let Some(connection) = self.table.remove(key) {
            sys::discard(connection.fd.as_fd());
        }
    }

    fn accept(&mut self, serial: u32, sink: Sink<'_>) {
        let Some(listening) = self.listeners.iter().find(|found| found.serial == serial) else {
            return;
        };
        for _ in 0..ACCEPTS_A_TURN {
            match listening.socket.accept() {
                Ok(socket) => match self.resting.admit(serial, socket) {
                    Some(socket) => face::report(listening.id, socket, sink),
                    None => {
                        let _ = listening.watch(&self.epoll, libc::EPOLL_CTL_DEL);
                        return;
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_scarcity(&error) => {
                    let _ = listening.watch(&self.epoll, libc::EPOLL_CTL_DEL);
                    return self.resting.put(serial);
                }
                // The peer gave up while it waited, or its network did.
                Err(_) => {}
            }
        }
    }

    fn wait(&mut self, wait: Option<Duration>) -> io::Result<usize> {
        let wait = if self.ready.is_empty() && self.failed.is_empty() {
            self.lingering.limit(self.resting.limit(wait))
        } else {
            Some(Duration::ZERO)
        };
        self.epoll.wait(&mut self.events, wait)
    }

    fn keep_time(&mut self, sink: Sink<'_>) {
        while let Some((serial, held)) = self.resting.take() {
            let Some(found) = self.listeners.iter().find(|found| found.serial == serial) else {
                continue;
            };
            if let Some(socket) = held {
                face::report(found.id, socket, sink);
            }
            if found.watch(&self.epoll, libc::EPOLL_CTL_ADD).is_err() {
                self.resting.put(serial);
                break;
            }
        }
        while let Some(key) = self.lingering.take() {
            self.release(key);
        }
    }
}

impl Driver for Epoll {
    fn listen(&mut self, listener: u32, socket: Listener) -> io::Result<()> {
        let listening = Listening { id: listener, serial: self.next_serial, socket };
        listening.watch(&self.epoll, libc::EPOLL_CTL_ADD)?;
        self.next_serial += 1;
        self.listeners.push(listening);
        Ok(())
    }

    fn unlisten(&mut self, listener: u32) {
        // Another handle on the socket may be open, so closing this one would not be enough.
        for gone in self.listeners.extract_if(.., |found| found.id == listener) {
            let _ = gone.watch(&self.epoll, libc::EPOLL_CTL_DEL);
        }
    }

    fn adopt(&mut self, token: Token, socket: Socket) {
        self.insert(token, socket.into(), Life::Open, READ);
    }

    fn connect(&mut self, token: Token, address: &Address) {
        let tuning = &self.tuning;
        let started = address.to_kernel().and_then(|address| {
            let fd = socket::unconnected(&address, tuning)?;
            socket::start_connect(fd.as_fd(), &address)?;
            Ok(fd)
        });
        match started {
            Ok(fd) => self.insert(token, fd, Life::Connecting, READ_AND_WRITE),
            Err(error) => self.failed.push((token, error)),
        }
    }

    fn send(&mut self, token: Token, mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        let Some(key) = self.table.key(token) else { return Some(emptied(buffer)) };
        let Some((_, connection)) = self.table.get(key) else { return Some(emptied(buffer)) };
        debug_assert!(connection.sending.is_empty(), "one send at a time");
        if !connection.life.may_send() || connection.error != 0 {
            return Some(emptied(buffer));
        }
        if !connection.sending.is_empty() {
            connection.sending.append(&mut buffer);
            return Some(buffer);
        }
        match sys::send(connection.fd.as_fd(), &buffer) {
            Ok(count) if count == buffer.len() => return Some(emptied(buffer)),
            Ok(count) => connection.sent = count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.sent = 0,
            Err(error) => {
                self.send_failed(key, &error);
                return Some(emptied(buffer));
            }
        }
        connection.sending = buffer;
        let watched = connection.watch(&self.epoll, libc::EPOLL_CTL_MOD, key, READ_AND_WRITE);
        if let Err(error) = watched {
            self.send_failed(key, &error);
        }
        None
    }

    fn pause(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
        {
            connection.paused = true;
        }
    }

    fn resume(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
        {
            connection.paused = false;
            if connection.readable {
                self.queue(key);
            }
        }
    }

    fn close(&mut self, token: Token) {
        self.failed.retain(|(failed, _)| *failed != token);
        let Some(key) = self.table.unbind(token) else { return };
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.life = Life::Lingering;
        if connection.sending.is_empty() {
            self.release(key);
        } else {
            self.lingering.put(key);
        }
    }

    fn detach(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
            && matches!(connection.life, Life::Open | Life::HalfOpen | Life::Ended)
        {
            connection.life = Life::Leaving;
            self.queue(key);
        }
    }

    fn unacknowledged(&mut self, token: Token) -> Option<Duration> {
        let key = self.table.key(token)?;
        let (_, connection) = self.table.get(key)?;
        sys::unacknowledged(connection.fd.as_fd())
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn turn(&mut self, wait: Option<Duration>, sink: &mut dyn FnMut(Event<'_>)) -> io::Result<()> {
        let count = self.wait(wait)?;
        for at in 0..count {
            let libc::epoll_event { events, u64: data } = self.events[at];
            if data == WAKE {
                self.waker.consume();
                self.waker.acknowledge();
                sink(Event::Woken);
            } else if data & LISTENER != 0 {
                self.accept(data as u32, sink);
            } else {
                self.happened(Key::from_bits(data), events as i32, sink);
            }
        }
        // Connections queued by a visit wait for the next turn.
        let visits = self.ready.len();
        for at in 0..visits {
            self.visit(self.ready[at], sink);
        }
        self.ready.drain(..visits);
        for (token, error) in self.failed.drain(..) {
            sink(Event::Failed { token, error });
        }
        self.keep_time(sink);
        Ok(())
    }

    fn name(&self) -> &'static str {
        "epoll"
    }
}

impl Connection {
    fn watch(&self, poll: &Poll, operation: i32, key: Key, events: i32) -> io::Result<()> {
        poll.watch(operation, self.fd.as_fd(), events, key.to_bits())
    }

    /// Ends sending, and lets receives find the remaining bytes and then the end.
    fn break_off(&mut self, error: &io::Error) {
        sys::stop_receiving(self.fd.as_fd());
        self.error = error.raw_os_error().unwrap_or(libc::EPIPE);
        self.readable = true;
        self.over = true;
    }

    /// Ends the connection. An error in sending came first, so the driver reports that one.
    fn end(&mut self, token: Token, error: Option<io::Error>, sink: Sink<'_>) {
        self.life = Life::Ended;
        self.sending = Vec::new();
        let sent = (self.error != 0).then(|| io::Error::from_raw_os_error(self.error));
        sink(Event::Closed { token, error: sent.or(error) });
    }
}

impl Listening {
    /// Watches the listener. Several drivers may watch clones of one socket; a new connection wakes
    /// one of them.
    fn watch(&self, poll: &Poll, operation: i32) -> io::Result<()> {
        // Every process that listens here is told of each connection: one that has been told alone
        // may stop to listen before it accepts.
        let events = libc::EPOLLIN;
        poll.watch(operation, self.socket.as_fd(), events, LISTENER | u64::from(self.serial))
    }
}

fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer
}

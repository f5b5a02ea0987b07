//! The driver for io_uring: requests and completions.
//!
//! One `io_uring_enter` per turn hands over all requests and waits. One request to receive has many
//! completions. To be told of a connection is one request for each: see `accept`. Sends are the
//! exception; see `sending`.
//!
//! What always holds:
//!
//! - `receive` and `send` of a connection say exactly which requests the kernel has, and the
//!   descriptor and the buffers of the connection stay until it has none;
//! - a filled buffer is back in the ring before the next completion is handled.

mod buffers;
mod connection;
mod ring;
mod probe;
mod leaving;
mod sending;

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{opcode, types};

use crate::address::Address;
use crate::delay::Delay;
use crate::face::{self, Driver, Event, Token};
use crate::resting::{Resting, is_scarcity};
use crate::sizing::Sizing;
use crate::socket::{self, Listener, Socket};
use crate::sys;
use crate::table::{Key, Life, Table};
use crate::tuning::Tuning;
use crate::waker::Waker;

use buffers::{Buffers, GROUP};
use connection::{Aside, Connection, Receive, Send, Spare};
use ring::{Completion, Operation, Ring};

pub(crate) use probe::probe;

type Sink<'a> = &'a mut dyn FnMut(Event<'_>);

/// The driver; see the module.
pub(crate) struct Uring {
    // First, so that it is dropped before the memory that its requests point to.
    ring: Ring,
    buffers: Buffers,
    waker: Waker,
    /// The memory into which the kernel reads the waker's counter.
    wakes: Box<u64>,
    table: Table<Connection>,
    listeners: Vec<Listening>,
    next_serial: u32,
    /// Connections with bytes to send that the kernel has not seen.
    outbox: Vec<Key>,
    /// Connections whose fast send the kernel has.
    fast: Vec<Key>,
    /// Detached connections without pending requests in the kernel.
    left: Vec<Key>,
    /// Calls of `connect` that failed at once.
    failed: Vec<(Token, io::Error)>,
    spare: Spare,
    starved: u64,
    /// Connections that found no buffer in this turn, and are to ask again.
    without_buffer: Vec<Key>,
    resting: Resting,
    tuning: Tuning,
    lingering: Delay<Key>,
}

struct Listening {
    id: u32,
    serial: u32,
    socket: Listener,
    accepting: bool,
    stopped: bool,
}

impl Uring {
    pub(crate) fn open(sizing: Sizing) -> io::Result<Uring> {
        let ring = Ring::new(sizing.entries)?;
        let mut buffers = Buffers::new(sizing.buffers, sizing.buffer_bytes)?;
        // SAFETY: they are dropped after the ring, by the order of the fields.
        unsafe { buffers.register(&ring.submitter())? };
        let mut uring = Uring {
            ring,
            buffers,
            waker: Waker::new()?,
            wakes: Box::new(0),
            table: Table::new(),
            listeners: Vec::new(),
            next_serial: 0,
            outbox: Vec::new(),
            fast: Vec::new(),
            left: Vec::new(),
            failed: Vec::new(),
            spare: Spare::default(),
            starved: 0,
            without_buffer: Vec::new(),
            resting: Resting::new(sizing.gate),
            tuning: sizing.tuning,
            lingering: Delay::new(sizing.linger),
        };
        uring.await_wake();
        Ok(uring)
    }

    pub(crate) fn starved(&self) -> u64 {
        self.starved
    }

    fn await_wake(&mut self) {
        let fd = types::Fd(self.waker.as_fd().as_raw_fd());
        let request = opcode::Read::new(fd, (&raw mut *self.wakes).cast(), 8)
            .build()
            .user_data(Operation::Wake.with(0));
        // SAFETY: eight bytes that, like the descriptor, live as long as the driver.
        unsafe { self.ring.push(request) };
    }

    /// Asks to be told of the next connection. It is then accepted by a call of its own: another
    /// process may take it first, which a request to accept would not survive, because the socket
    /// does not block.
    fn accept(&mut self, at: usize) {
        let listening = &mut self.listeners[at];
        listening.accepting = true;
        let fd = types::Fd(listening.socket.as_fd().as_raw_fd());
        let request = opcode::PollAdd::new(fd, libc::POLLIN as u32)
            .build()
            .user_data(Operation::Accept.with(u64::from(listening.serial)));
        // SAFETY: no memory; the socket is kept until the last completion.
        unsafe { self.ring.push(request) };
    }

    /// Accepts one connection. If the driver accepted a whole burst at once, the caller could not
    /// close connections to make room.
    fn acceptable(&mut self, answer: &Completion, sink: Sink<'_>) {
        let serial = answer.bits as u32;
        let found = self.listeners.iter().position(|found| found.serial == serial);
        let Some(at) = found else { return };
        let listening = &mut self.listeners[at];
        listening.accepting = false;
        if listening.stopped {
            self.listeners.swap_remove(at);
            return;
        }
        let rests = match listening.socket.accept() {
            Ok(socket) => match self.resting.admit(serial, socket) {
                Some(socket) => {
                    face::report(listening.id, socket, sink);
                    false
                }
                None => true,
            },
            Err(error) if is_scarcity(&error) => {
                self.resting.put(serial);
                true
            }
            // The peer gave up while it waited, or its network did, or another process was faster.
            Err(_) => false,
        };
        if !rests {
            self.accept(at);
        }
    }

    /// Requests bytes if the connection wants to receive and has no request yet.
    fn receive(&mut self, key: Key) {
        let Some((_, connection)) = self.table.get(key) else { return };
        if connection.life == Life::Open
            && connection.wanted
            && connection.receive == Receive::Nothing
        {
            connection.receive = Receive::Asked;
            connection.fed = false;
            let request = opcode::RecvMulti::new(connection.raw(), GROUP)
                .build()
                .user_data(Operation::Receive.of(key));
            // SAFETY: the buffers live as long as the driver, the descriptor until `is_quiet`.
            unsafe { self.ring.push(request) };
        }
    }

    fn stop_receiving(&mut self, key: Key) {
        if let Some((_, connection)) = self.table.get(key)
            && connection.receive == Receive::Asked
        {
            connection.receive = Receive::Cancelled;
            self.ring.cancel(Operation::Receive.of(key));
        }
    }

    fn received(&mut self, answer: &Completion, sink: Sink<'_>) {
        let key = Key::from_bits(answer.bits);
        if let Some((token, connection)) = self.table.get(key) {
            if !answer.more {
                connection.receive = Receive::Nothing;
            }
            match (usize::try_from(answer.result), answer.buffer) {
                (Ok(0), _) => connection.end_of_stream(token, sink),
                (Ok(count), Some(buffer)) => {
                    connection.fed = true;
                    if matches!(connection.life, Life::Open | Life::Leaving) {
                        sink(Event::Received { token, bytes: self.buffers.filled(buffer, count) });
                    }
                }
                _ => match -answer.result {
                    libc::ENOBUFS => {
                        self.starved += 1;
                        self.without_buffer.push(key);
                    }
                    // The driver cancelled the request, or has to repeat it.
                    libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                    error => {
                        connection.end(token, Some(io::Error::from_raw_os_error(error)), sink);
                    }
                },
            }
        }
        if let Some(buffer) = answer.buffer {
            self.buffers.give(buffer);
        }
        if !answer.more {
            if answer.result != -libc::ENOBUFS {
                self.receive(key);
            }
            self.look_after(key);
        }
    }

    /// Repeats the requests of connections that found no buffer. A connection with many bytes takes
    /// all buffers as soon as it asks, so connections that were given none come first.
    fn feed(&mut self) {
        let mut without_buffer = mem::take(&mut self.without_buffer);
        for fed in [false, true] {
            without_buffer.retain(|key| {
                let found = self.table.get(*key).is_some_and(|(_, found)| found.fed == fed);
                if found {
                    self.receive(*key);
                }
                !found
            });
        }
        without_buffer.clear();
        self.without_buffer = without_buffer;
    }

    fn connected(&mut self, answer: &Completion, sink: Sink<'_>) {
        let key = Key::from_bits(answer.bits);
        let Some((token, connection)) = self.table.get(key) else { return };
        connection.send = Send::Nothing;
        connection.aside = None;
        if connection.life != Life::Connecting {
            return self.look_after(key);
        }
        if answer.result == 0 {
            connection.life = Life::Open;
            sink(Event::Connected { token, local: socket::local(connection.fd.as_fd()) });
            self.receive(key);
        } else {
            connection.life = Life::Ended;
            sink(Event::Failed { token, error: io::Error::from_raw_os_error(-answer.result) });
        }
    }

    fn completed(&mut self, answer: &Completion, sink: Sink<'_>) {
        match answer.operation {
            Operation::Receive => self.received(answer, sink),
            Operation::Send => self.sent(answer, sink),
            Operation::Connect => self.connected(answer, sink),
            Operation::Accept => self.acceptable(answer, sink),
            Operation::Wake => {
                self.waker.acknowledge();
                self.await_wake();
                sink(Event::Woken);
            }
            // The cancelled request has a completion of its own.
            Operation::Cancel => {}
        }
    }

    fn keep_time(&mut self, sink: Sink<'_>) {
        while let Some((serial, held)) = self.resting.take() {
            if let Some(at) = self.listeners.iter().position(|found| found.serial == serial) {
                if let Some(socket) = held {
                    face::report(self.listeners[at].id, socket, sink);
                }
                self.accept(at);
            }
        }
        while let Some(key) = self.lingering.take() {
            self.expire(key);
        }
    }
}

impl Driver for Uring {
    fn listen(&mut self, listener: u32, socket: Listener) -> io::Result<()> {
        let serial = self.next_serial;
        self.next_serial += 1;
        let listening =
            Listening { id: listener, serial, socket, accepting: false, stopped: false };
        self.listeners.push(listening);
        self.accept(self.listeners.len() - 1);
        Ok(())
    }

    fn unlisten(&mut self, listener: u32) {
        self.listeners.retain(|found| found.id != listener || found.accepting);
        for listening in self.listeners.iter_mut().filter(|found| found.id == listener) {
            listening.stopped = true;
            self.ring.cancel(Operation::Accept.with(u64::from(listening.serial)));
        }
    }

    fn adopt(&mut self, token: Token, socket: Socket) {
        let key = self.table.insert(token, Connection::new(socket.into(), Life::Open));
        self.receive(key);
    }

    fn connect(&mut self, token: Token, address: &Address) {
        let tuning = &self.tuning;
        let begun = address.to_kernel().and_then(|address| {
            let fd: OwnedFd = socket::unconnected(&address, tuning)?;
            Ok((fd, address))
        });
        let (fd, address) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.failed.push((token, error)),
        };
        let key = self.table.insert(token, Connection::new(fd, Life::Connecting));
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.send = Send::Connecting;
        let aside = connection.aside.insert(Box::new(Aside::Address(address)));
        let Aside::Address(address) = &**aside else { return };
        let request = opcode::Connect::new(
            types::Fd(connection.fd.as_raw_fd()),
            address.as_ptr().cast(),
            address.len(),
        )
        .build()
        .user_data(Operation::Connect.of(key));
        // SAFETY: the address is boxed and kept until the completion, and so is the descriptor.
        unsafe { self.ring.push(request) };
    }

    fn send(&mut self, token: Token, mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        let key = self.table.key(token);
        let found = key.and_then(|key| self.table.get(key).map(|(_, found)| (key, found)));
        let Some((key, connection)) = found else { return Some(connection::emptied(buffer)) };
        if !connection.life.may_send() || connection.error != 0 || buffer.is_empty() {
            return Some(connection::emptied(buffer));
        }
        match connection.send {
            Send::Nothing => {
                connection.out = buffer;
                connection.send = Send::Waiting;
                self.outbox.push(key);
                Some(self.spare.take())
            }
            Send::Waiting => {
                connection.out.append(&mut buffer);
                Some(buffer)
            }
            Send::Fast | Send::Slow | Send::Connecting => {
                connection.put_next(buffer);
                None
            }
        }
    }

    fn pause(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
        {
            connection.wanted = false;
            self.stop_receiving(key);
        }
    }

    fn resume(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
        {
            connection.wanted = true;
            self.receive(key);
        }
    }

    fn close(&mut self, token: Token) {
        self.failed.retain(|(failed, _)| *failed != token);
        let Some(key) = self.table.unbind(token) else { return };
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.life = Life::Lingering;
        if connection.send == Send::Connecting {
            self.ring.cancel(Operation::Connect.of(key));
        }
        if connection.send != Send::Nothing {
            self.lingering.put(key);
        }
        self.stop_receiving(key);
        self.look_after(key);
    }

    fn detach(&mut self, token: Token) {
        if let Some(key) = self.table.key(token)
            && let Some((_, connection)) = self.table.get(key)
            && matches!(connection.life, Life::Open | Life::HalfOpen | Life::Ended)
        {
            connection.life = Life::Leaving;
            self.stop_receiving(key);
            self.look_after(key);
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
        // Fast sends that the last turn could not confirm: this turn can.
        let pending = !(self.left.is_empty() && self.failed.is_empty() && self.fast.is_empty());
        self.empty_outbox();
        let wait = match pending {
            true => Some(Duration::ZERO),
            false => self.lingering.limit(self.resting.limit(wait)),
        };
        self.ring.enter(wait)?;
        // Checked now, because the requests that the completions below lead to say nothing about
        // these sends.
        let decided = self.ring.has_handed_over();
        let starved = self.starved;
        for _ in 0..self.ring.completions() {
            let Some(answer) = self.ring.next() else { break };
            self.completed(&answer, sink);
        }
        self.feed();
        self.buffers.starved(self.starved - starved);
        if decided && self.ring.has_told_all() {
            self.settle(sink);
        }
        for key in mem::take(&mut self.left) {
            self.give_up(key, sink);
        }
        for (token, error) in self.failed.drain(..) {
            sink(Event::Failed { token, error });
        }
        self.keep_time(sink);
        Ok(())
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }
}

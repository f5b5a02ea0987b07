//! Sending, without a completion for each send.
//!
//! A send normally fits into the socket's buffer and is done while it is handed over. Its
//! completion would be there at once, and would end the wait before anything has happened that is
//! worth a turn: two calls where one would do. So the driver first makes a send *fast*: it must not
//! wait, and the kernel leaves out its completion if all went well. The kernel decides such a
//! request before the call returns. Hence a fast send is done if the call took it and there is no
//! completion for it (`turn` in the parent; `probe` makes sure that the kernel behaves like this).
//! Otherwise the rest goes out as a *slow* send, which waits for room and has its completion.
//!
//! For the caller, a fast send is done when it is given. If it has to become slow, the driver takes
//! the next one too, but replies with [`Event::Sent`]. (The caller cannot be made to wait for the
//! end of the turn: a turn may wait without limit while the caller waits for room to send.) So a
//! slow peer costs at most one buffer more than with epoll.

use std::mem;
use std::os::fd::AsFd;

use io_uring::squeue;

use crate::face::Event;
use crate::sys;
use crate::table::{Key, Life};

use super::connection::Send;
use super::ring::{Completion, Operation};
use super::{Sink, Uring};

impl Uring {
    /// Hands over the buffers given to `send` since the last turn.
    pub(super) fn empty_outbox(&mut self) {
        for at in 0..self.outbox.len() {
            let key = self.outbox[at];
            let Some((_, connection)) = self.table.get(key) else { continue };
            if connection.send == Send::Waiting {
                connection.send = Send::Fast;
                let request = connection
                    .rest(libc::MSG_DONTWAIT)
                    .flags(squeue::Flags::SKIP_SUCCESS)
                    .user_data(Operation::Send.of(key));
                // SAFETY: the buffer is neither moved nor freed before the send is decided, and the
                // descriptor is open until `is_quiet`.
                unsafe { self.ring.push(request) };
                self.fast.push(key);
            }
        }
        self.outbox.clear();
    }

    fn send_slowly(&mut self, key: Key) {
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.send = Send::Slow;
        let request = connection.rest(0).user_data(Operation::Send.of(key));
        // SAFETY: the buffer is neither moved nor freed before the completion, and the descriptor
        // is open until `is_quiet`.
        unsafe { self.ring.push(request) };
    }

    /// Handles the completion of a send: a slow one that is done, or a fast one that is not.
    pub(super) fn sent(&mut self, answer: &Completion, sink: Sink<'_>) {
        let key = Key::from_bits(answer.bits);
        let Some((_, connection)) = self.table.get(key) else { return };
        if connection.life == Life::Expired {
            connection.forget_sends();
            return self.look_after(key);
        }
        match usize::try_from(answer.result) {
            Ok(count) => connection.sent += count,
            Err(_) => match -answer.result {
                libc::EAGAIN | libc::EINTR => {}
                error => return self.send_failed(key, error, sink),
            },
        }
        if connection.sent < connection.out.len() {
            self.send_slowly(key);
        } else {
            self.send_done(key, sink);
        }
    }

    fn send_done(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        connection.send = Send::Nothing;
        connection.sent = 0;
        let mut buffer = mem::take(&mut connection.out);
        buffer.clear();
        if let Some(next) = connection.take_next() {
            connection.out = next;
            connection.owed = true;
            self.spare.put(buffer);
            return self.send_slowly(key);
        }
        let owed = mem::take(&mut connection.owed);
        if owed && (connection.life.may_send() || connection.life == Life::Leaving) {
            sink(Event::Sent { token, buffer });
        } else {
            self.spare.put(buffer);
        }
        self.look_after(key);
    }

    /// Handles a failed send. Bytes that the peer sent before it went away are still to be
    /// delivered, so the receive stays and finds the end; unless the connection is paused, because
    /// then it might never find it.
    fn send_failed(&mut self, key: Key, error: i32, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        connection.forget_sends();
        if connection.life.may_send() {
            connection.error = error;
            if connection.wanted && connection.life == Life::Open {
                sys::stop_receiving(connection.fd.as_fd());
            } else {
                connection.end(token, None, sink);
            }
        }
        self.look_after(key);
    }

    /// Marks the fast sends without a completion as done: the kernel took all requests, and the
    /// driver has handled all completions.
    pub(super) fn settle(&mut self, sink: Sink<'_>) {
        for at in 0..self.fast.len() {
            let key = self.fast[at];
            if self.table.get(key).is_some_and(|(_, found)| found.send == Send::Fast) {
                self.send_done(key, sink);
            }
        }
        self.fast.clear();
    }
}

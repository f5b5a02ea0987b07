//! Sending, without a completion for each send.
//!
//! A send normally fits into the socket's buffer and is done while it is handed over. Its completion
//! would be there at once, and end the wait before anything has happened that is worth a turn: two
//! calls where one would do. So a send is first made *fast*: it must not wait, and its completion is
//! left out if all went well. The kernel decides such a request before the call returns, hence it is
//! known to be done when the call took it and no completion speaks of it (`turn` in the parent; `probe`
//! makes sure that the kernel does as described). Otherwise the rest goes out as a *slow* send, which
//! waits for room and has its completion.
//!
//! To the caller a fast send is gone when it is given; if it has to become slow, the next one is taken
//! too but answered by [`Event::Sent`]. (To make it wait for the end of the turn would not do: a turn
//! may wait for ever, and the caller for room to send.) So a slow peer costs at most one buffer more than with epoll.

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
    /// Hands over what was given to `send` since the last turn.
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
        // SAFETY: the buffer is neither moved nor freed before the completion, and the descriptor is
        // open until `is_quiet`.
        unsafe { self.ring.push(request) };
    }

    /// A slow send is done, or a fast one was not.
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

    /// What the peer said before it went is still to be delivered, so the receive is left to find the
    /// end; unless the connection is paused, when that could be never.
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

    /// The fast sends that no completion has spoken of are done: all were handed over, and all completions taken.
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

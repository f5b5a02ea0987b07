//! Sockets of which one thread waits for all.
//!
//! The sockets block, and the thread reads each once when it is readable: a read never waits. A
//! write waits only if the other side has stopped reading, and neither the proxy nor this
//! benchmark does so with a few kilobytes under way.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// The longest wait, after which a thread looks whether it shall end.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Number of sockets that one wait reports.
const EVENTS_MAX: usize = 256;

/// The kernel's list of the sockets of a thread.
pub(in crate::bench) struct Sockets {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Sockets {
    pub(in crate::bench) fn new() -> Result<Sockets> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Sockets { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Adds a socket. [`Sockets::readable`] calls it by this number, until it is closed.
    pub(in crate::bench) fn add(&self, socket: impl AsFd, number: usize) -> Result<()> {
        let number = EventData::new_u64(number as u64);
        Ok(epoll::add(&self.epoll, socket, number, EventFlags::IN)?)
    }

    /// Waits for sockets that are readable, and returns their numbers; none after [`WAIT_MAX`].
    pub(in crate::bench) fn readable(&mut self) -> Result<impl Iterator<Item = usize>> {
        self.events.clear();
        let limit = Timespec::try_from(WAIT_MAX)?;
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}

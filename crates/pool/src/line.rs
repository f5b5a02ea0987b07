//! The line of a server that several clients share: whose requests the server has got behind that
//! of its holder.
//!
//! A server answers in the order in which it was asked. So the client at the head of the line holds
//! the server once the request of the holder is answered.

use std::collections::VecDeque;

use crate::ids::Conn;
use crate::time::Now;

/// A request in line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The client. `None` stands for a request whose replies nobody gets: its client has left, or
    /// has sent the request to another server.
    pub(crate) client: Option<Conn>,
    /// When the request was sent.
    pub(crate) since: Now,
    /// The microseconds that the request is known to take.
    takes_us: u32,
}

/// The clients whose requests a server has got behind that of its holder.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The requests, in their order.
    behind: VecDeque<Place>,
    /// The microseconds that all requests are known to take, and of these the holder's.
    takes_us: u64,
    holder_takes_us: u32,
    /// Whether further clients may join.
    open: bool,
}

impl Line {
    /// Whether further clients may join.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the server is shared, or clients may join so that it will be.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.open || !self.behind.is_empty()
    }

    /// Lets clients join from now on, behind a holder whose request takes this long.
    pub(crate) fn open(&mut self, takes_us: u32) {
        (self.takes_us, self.holder_takes_us) = (takes_us.into(), takes_us);
        self.open = true;
    }

    /// Lets no further client join.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Returns the number of requests behind that of the holder.
    pub(crate) fn len(&self) -> usize {
        self.behind.len()
    }

    /// Returns the microseconds that the server takes for all requests, the holder's among them, as
    /// far as that is known.
    pub(crate) fn takes_us(&self) -> u64 {
        self.takes_us
    }

    /// Whether the holder's request is the last.
    pub(crate) fn is_empty(&self) -> bool {
        self.behind.is_empty()
    }

    /// Iterates over the clients that wait for their replies.
    pub(crate) fn clients(&self) -> impl Iterator<Item = Conn> {
        self.behind.iter().filter_map(|place| place.client)
    }

    /// Whether a client waits for its replies.
    pub(crate) fn has(&self, client: Conn) -> bool {
        self.behind.iter().any(|place| place.client == Some(client))
    }

    /// Adds a client, whose request the server gets next, and which takes this long.
    pub(crate) fn join(&mut self, client: Conn, since: Now, takes_us: u32) {
        self.takes_us += u64::from(takes_us);
        self.behind.push_back(Place { client: Some(client), since, takes_us });
    }

    /// Lets nobody get the replies to a client's request.
    pub(crate) fn forsake(&mut self, client: Conn) {
        let places = self.behind.iter_mut().filter(|place| place.client == Some(client));
        places.for_each(|place| place.client = None);
    }

    /// Takes out the request that the server answers next.
    pub(crate) fn next(&mut self) -> Option<Place> {
        let next = self.behind.pop_front()?;
        let answered = std::mem::replace(&mut self.holder_takes_us, next.takes_us);
        self.takes_us = self.takes_us.saturating_sub(answered.into());
        Some(next)
    }
}

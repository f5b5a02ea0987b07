//! The line of a server that several clients share: whose requests the server has got behind that
//! of its holder.
//!
//! A server answers in the order in which it was asked. So the client at the head of the line holds
//! the server once the request of the holder is answered.

use std::collections::VecDeque;

use crate::ids::Conn;

/// The clients whose requests a server has got behind that of its holder.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The clients, in the order of their requests. `None` stands for a request whose replies
    /// nobody gets: its client has left, or has sent the request to another server.
    behind: VecDeque<Option<Conn>>,
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

    /// Lets clients join from now on.
    pub(crate) fn open(&mut self) {
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

    /// Whether the holder's request is the last.
    pub(crate) fn is_empty(&self) -> bool {
        self.behind.is_empty()
    }

    /// Iterates over the clients that wait for their replies.
    pub(crate) fn clients(&self) -> impl Iterator<Item = Conn> {
        self.behind.iter().flatten().copied()
    }

    /// Whether a client waits for its replies.
    pub(crate) fn has(&self, client: Conn) -> bool {
        self.behind.contains(&Some(client))
    }

    /// Adds a client, whose request the server gets next.
    pub(crate) fn join(&mut self, client: Conn) {
        self.behind.push_back(Some(client));
    }

    /// Lets nobody get the replies to a client's request.
    pub(crate) fn forsake(&mut self, client: Conn) {
        self.behind.iter_mut().filter(|place| **place == Some(client)).for_each(|it| *it = None);
    }

    /// Takes out the request that the server answers next: `Some(None)` if nobody gets its replies,
    /// `None` if there is none.
    pub(crate) fn next(&mut self) -> Option<Option<Conn>> {
        self.behind.pop_front()
    }
}

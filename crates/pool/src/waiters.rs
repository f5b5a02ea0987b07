//! The line of those that wait for a server of a pool, on one core: clients, and jobs of Refrain's
//! own. They are served first in, first out: otherwise, under load, one could wait for ever.
//!
//! A client stands in line exactly while it waits for a server. A job stands in line from
//! [`crate::Step::queue_job`] until a server begins it or it is lost. Neither stands there while a
//! server is idle that it could have ([`crate::Engine::check`]).

use std::collections::VecDeque;

use crate::ids::Conn;
use crate::parts::Parts;

/// One that waits for a server.
#[derive(Debug)]
pub(crate) enum Waiter<P: Parts> {
    /// A client.
    Client(Conn),
    /// A job, as the protocol handed it over.
    Job(Box<P::Job>),
}

/// The clients and jobs in line.
#[derive(Debug)]
pub(crate) struct Waiters<P: Parts> {
    waiters: VecDeque<Waiter<P>>,
    /// Number of jobs among the waiters.
    jobs: usize,
}

impl<P: Parts> Default for Waiters<P> {
    fn default() -> Self {
        Self { waiters: VecDeque::new(), jobs: 0 }
    }
}

impl<P: Parts> Waiters<P> {
    /// Whether neither a client nor a job stands in line.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns the number of clients in line.
    #[inline]
    pub(crate) fn clients(&self) -> usize {
        self.waiters.len() - self.jobs
    }

    /// Returns the number of jobs in line.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs
    }

    /// Puts a client or a job behind all others.
    pub(crate) fn push(&mut self, waiter: Waiter<P>) {
        self.jobs += usize::from(matches!(waiter, Waiter::Job(_)));
        self.waiters.push_back(waiter);
    }

    /// Takes out the client or the job that has waited longest.
    pub(crate) fn next(&mut self) -> Option<Waiter<P>> {
        self.take(0)
    }

    /// Takes out the client that has waited longest, past the jobs in front of it.
    pub(crate) fn next_client(&mut self) -> Option<Waiter<P>> {
        let index = self.waiters.iter().position(|waiter| matches!(waiter, Waiter::Client(_)))?;
        self.take(index)
    }

    /// Returns the client that has waited longest. It stays in line.
    pub(crate) fn first_client(&self) -> Option<Conn> {
        self.all_clients().next()
    }

    /// Iterates over the clients, in their order.
    pub(crate) fn all_clients(&self) -> impl Iterator<Item = Conn> {
        self.waiters.iter().filter_map(|waiter| match waiter {
            Waiter::Client(client) => Some(*client),
            Waiter::Job(_) => None,
        })
    }

    /// Takes out a client, if it stands in line.
    pub(crate) fn remove_client(&mut self, client: Conn) {
        let place = |waiter: &Waiter<P>| matches!(waiter, Waiter::Client(it) if *it == client);
        if let Some(index) = self.waiters.iter().position(place) {
            self.waiters.remove(index);
        }
    }

    /// Puts the one that stands behind all others in front of them: a planted bug of the simulator.
    pub(crate) fn prefer_last(&mut self) {
        self.waiters.rotate_right(self.waiters.len().min(1));
    }

    /// Takes out all jobs.
    pub(crate) fn take_jobs(&mut self) -> Vec<Box<P::Job>> {
        let mut jobs = Vec::new();
        for waiter in std::mem::take(self).waiters {
            match waiter {
                Waiter::Client(_) => self.waiters.push_back(waiter),
                Waiter::Job(job) => jobs.push(job),
            }
        }
        jobs
    }

    fn take(&mut self, index: usize) -> Option<Waiter<P>> {
        let waiter = self.waiters.remove(index)?;
        self.jobs -= usize::from(matches!(waiter, Waiter::Job(_)));
        Some(waiter)
    }
}

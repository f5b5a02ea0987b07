//! The load: many clients of which a few, at random, have a request under way, and beside them
//! busy ones, which always have one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::bench::capacity::{Incoming, Sockets};
use crate::bench::session::{Session, dial, parse, run, sync};

use super::PATIENCE;

/// The statement of all clients.
const LOOKUP: &str = "SELECT b FROM t WHERE a = $1";
/// Bytes of one read.
const READ_BYTES: usize = 4 * 1024;
/// Multiplier and increment of the pseudo-random numbers (Knuth's MMIX).
const RANDOM: (u64, u64) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);

/// The user and the database of a client.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) user: String,
    pub(super) database: String,
}

/// The clients.
pub(super) struct Load {
    clients: Vec<Client>,
    sockets: Sockets,
    /// Numbers of the clients without a request under way that are not busy.
    idle: Vec<usize>,
    /// Numbers of the busy clients without a request under way.
    resting: Vec<usize>,
    random: u64,
    name: String,
    request: Vec<u8>,
    answered: Answered,
    errors: u64,
}

/// How many requests were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    /// Requests of the many clients.
    pub(super) many: u64,
    /// Requests of the busy clients.
    pub(super) busy: u64,
}

struct Client {
    stream: TcpStream,
    incoming: Incoming,
    /// Whether the client sends its next request as soon as it has a reply.
    busy: bool,
}

impl Load {
    /// Begins without a client. Under an empty `name` a request prepares the unnamed statement;
    /// under another, each client prepares the statement once.
    pub(super) fn new(name: &str) -> Result<Load> {
        let parses = if name.is_empty() { parse(name, LOOKUP) } else { Vec::new() };
        Ok(Load {
            clients: Vec::new(),
            sockets: Sockets::new()?,
            idle: Vec::new(),
            resting: Vec::new(),
            random: 1,
            name: name.to_owned(),
            request: [parses, run(name, &["4711"])].concat(),
            answered: Answered::default(),
            errors: 0,
        })
    }

    /// Logs in this many clients of a target.
    pub(super) fn log_in(
        &mut self,
        port: u16,
        target: &Target,
        count: usize,
        busy: bool,
    ) -> Result<()> {
        for _ in 0..count {
            let channel = dial(port, PATIENCE, None)?;
            let mut session = Session::log_in_as(channel, &target.user, &target.database)?;
            if !self.name.is_empty() {
                session.send(&[parse(&self.name, LOOKUP), sync()].concat())?;
                let answer = session.answer()?;
                ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
            }
            let (stream, number) = (session.into_stream(), self.clients.len());
            self.sockets.add(&stream, number)?;
            self.clients.push(Client { stream, incoming: Incoming::default(), busy });
            if busy { self.resting.push(number) } else { self.idle.push(number) }
        }
        Ok(())
    }

    /// Keeps as many requests of the many clients, and one of each busy client, under way for this
    /// time. Counts from zero.
    pub(super) fn run(&mut self, under_way: usize, time: Duration) -> Result<()> {
        (self.answered, self.errors) = (Answered::default(), 0);
        let end = Instant::now() + time;
        let mut now_under_way = 0;
        loop {
            let goes_on = Instant::now() < end;
            while goes_on && now_under_way < under_way {
                self.send_one()?;
                now_under_way += 1;
            }
            while let Some(number) = if goes_on { self.resting.pop() } else { None } {
                self.send(number)?;
            }
            if self.idle.len() + self.resting.len() == self.clients.len() {
                return Ok(());
            }
            ensure!(Instant::now() < end + PATIENCE, "{now_under_way} requests without a reply");
            now_under_way -= self.receive()?;
        }
    }

    /// Returns how many requests were answered.
    pub(super) fn answered(&self) -> Answered {
        self.answered
    }

    /// Returns how many errors came.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    /// Sends a request of an idle client.
    fn send_one(&mut self) -> Result<()> {
        self.random = self.random.wrapping_mul(RANDOM.0).wrapping_add(RANDOM.1);
        let place = (self.random >> 33) as usize % self.idle.len();
        let number = self.idle.swap_remove(place);
        self.send(number)
    }

    /// Sends a request of this client.
    fn send(&mut self, number: usize) -> Result<()> {
        let client = self.clients.get_mut(number).context("no client")?;
        Ok(client.stream.write_all(&self.request)?)
    }

    /// Waits for replies, and returns how many clients that are not busy have got theirs.
    fn receive(&mut self) -> Result<usize> {
        let before = self.answered.many;
        for number in self.sockets.readable()? {
            let client = self.clients.get_mut(number).context("no such client")?;
            let mut buffer = [0; READ_BYTES];
            let count = client.stream.read(&mut buffer)?;
            ensure!(count > 0, "the proxy has closed a connection");
            let (list, answered) = match client.busy {
                true => (&mut self.resting, &mut self.answered.busy),
                false => (&mut self.idle, &mut self.answered.many),
            };
            let errors = &mut self.errors;
            client.incoming.messages(&buffer[..count], |letter, body| {
                if letter == b'E' {
                    *errors += 1;
                    println!("{}", String::from_utf8_lossy(body));
                }
                if letter == b'Z' {
                    list.push(number);
                    *answered += 1;
                }
                Ok(())
            })?;
        }
        Ok((self.answered.many - before) as usize)
    }
}

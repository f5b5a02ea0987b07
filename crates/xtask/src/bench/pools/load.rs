//! The load: many clients of which a few, at random, have a request under way.

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
    /// Numbers of the clients without a request under way.
    idle: Vec<usize>,
    random: u64,
    request: Vec<u8>,
    answered: u64,
    errors: u64,
}

struct Client {
    stream: TcpStream,
    incoming: Incoming,
}

impl Load {
    /// Logs in this many clients for each target. Under an empty `name` a request prepares the
    /// unnamed statement; under another, each client prepares the statement once.
    pub(super) fn new(port: u16, targets: &[Target], each: usize, name: &str) -> Result<Load> {
        let (mut clients, sockets) = (Vec::new(), Sockets::new()?);
        for target in targets {
            for _ in 0..each {
                let channel = dial(port, PATIENCE, None)?;
                let mut session = Session::log_in_as(channel, &target.user, &target.database)?;
                if !name.is_empty() {
                    session.send(&[parse(name, LOOKUP), sync()].concat())?;
                    let answer = session.answer()?;
                    ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
                }
                let stream = session.into_stream();
                sockets.add(&stream, clients.len())?;
                clients.push(Client { stream, incoming: Incoming::default() });
            }
        }
        let parses = if name.is_empty() { parse(name, LOOKUP) } else { Vec::new() };
        Ok(Load {
            idle: (0..clients.len()).collect(),
            clients,
            sockets,
            random: 1,
            request: [parses, run(name, &["4711"])].concat(),
            answered: 0,
            errors: 0,
        })
    }

    /// Keeps as many requests under way for this time, and counts from zero.
    pub(super) fn run(&mut self, under_way: usize, time: Duration) -> Result<()> {
        (self.answered, self.errors) = (0, 0);
        let end = Instant::now() + time;
        let mut now_under_way = 0;
        loop {
            let goes_on = Instant::now() < end;
            while goes_on && now_under_way < under_way {
                self.send_one()?;
                now_under_way += 1;
            }
            if now_under_way == 0 {
                return Ok(());
            }
            ensure!(Instant::now() < end + PATIENCE, "{now_under_way} requests without a reply");
            now_under_way -= self.receive()?;
        }
    }

    /// Returns how many requests were answered.
    pub(super) fn answered(&self) -> u64 {
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
        let client = self.clients.get_mut(self.idle.swap_remove(place)).context("no client")?;
        Ok(client.stream.write_all(&self.request)?)
    }

    /// Waits for replies, and returns how many clients have got theirs.
    fn receive(&mut self) -> Result<usize> {
        let mut over = 0;
        for number in self.sockets.readable()? {
            let client = self.clients.get_mut(number).context("no such client")?;
            let mut buffer = [0; READ_BYTES];
            let count = client.stream.read(&mut buffer)?;
            ensure!(count > 0, "the proxy has closed a connection");
            let (idle, errors) = (&mut self.idle, &mut self.errors);
            client.incoming.messages(&buffer[..count], |letter, body| {
                if letter == b'E' {
                    *errors += 1;
                    println!("{}", String::from_utf8_lossy(body));
                }
                if letter == b'Z' {
                    idle.push(number);
                    over += 1;
                }
                Ok(())
            })?;
        }
        self.answered += over as u64;
        Ok(over)
    }
}

//! The load: clients that send lookups by a prepared statement, without a pause.
//!
//! A thread has many clients. Each sends its next segments in one write, as soon as a read has
//! brought the replies to earlier ones.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::bench::session::{Session, parse, run, sync};

use super::frames::Incoming;
use super::sockets::Sockets;

/// The statement of all clients.
const LOOKUP: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
/// The database's name, which the stub does not look at.
const DATABASE: &str = "bench";
/// The longest that a login may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// The size of a load.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of threads.
    pub threads: usize,
    /// Number of clients of all threads.
    pub clients: usize,
    /// Number of segments that each client has under way.
    pub depth: usize,
}

/// A running load. Dropping this ends its threads.
#[derive(Debug)]
pub struct Load {
    over: Arc<AtomicBool>,
    /// The count of answered segments of each thread.
    counts: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Load {
    /// Logs all clients in to the server at `port`, and starts.
    pub fn start(port: u16, size: Size) -> Result<Load> {
        let clients = (0..size.clients).map(|_| Client::new(port));
        let mut clients = clients.collect::<Result<Vec<_>>>()?;
        let mut load = Load { over: Arc::default(), counts: Vec::new(), threads: Vec::new() };
        for left in (1..=size.threads).rev() {
            let own = clients.split_off(clients.len() - clients.len() / left);
            let (over, count) = (Arc::clone(&load.over), Arc::<AtomicU64>::default());
            load.counts.push(Arc::clone(&count));
            load.threads.push(thread::spawn(move || drive(own, size.depth, &count, &over)));
        }
        Ok(load)
    }

    /// Returns the number of segments that have been answered.
    pub fn answered(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Ends the threads.
    ///
    /// # Errors
    /// If one of them met an error or lost a connection.
    pub fn end(mut self) -> Result<()> {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| anyhow!("a thread of the load has panicked"))??;
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Keeps `depth` segments of each client under way until the run is over.
fn drive(
    mut clients: Vec<Client>,
    depth: usize,
    count: &AtomicU64,
    over: &AtomicBool,
) -> Result<()> {
    let segment = run("s", &["4711"]);
    let segments = segment.repeat(depth);
    let mut sockets = Sockets::new()?;
    for (number, client) in clients.iter_mut().enumerate() {
        sockets.add(&client.stream, number)?;
        client.stream.write_all(&segments)?;
    }
    while !over.load(Relaxed) {
        for number in sockets.readable()? {
            let client = clients.get_mut(number).context("no such client")?;
            let answered = client.answered()?;
            count.fetch_add(answered as u64, Relaxed);
            let next = segments.get(..answered * segment.len()).context("too many replies")?;
            client.stream.write_all(next)?;
        }
    }
    Ok(())
}

struct Client {
    stream: TcpStream,
    incoming: Incoming,
}

impl Client {
    /// Logs in and prepares the statement.
    fn new(port: u16) -> Result<Client> {
        let mut session = Session::open(port, DATABASE, PATIENCE)?;
        session.send(&[parse("s", LOOKUP), sync()].concat())?;
        let answer = session.answer()?;
        ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
        Ok(Client { stream: session.into_stream(), incoming: Incoming::default() })
    }

    /// Reads once, and returns how many segments are answered by it.
    fn answered(&mut self) -> Result<usize> {
        let mut buffer = [0; READ_BYTES];
        let count = self.stream.read(&mut buffer)?;
        ensure!(count > 0, "the proxy has closed a connection");
        let mut answered = 0;
        self.incoming.messages(&buffer[..count], |letter, body| {
            ensure!(letter != b'E', "an error: {}", String::from_utf8_lossy(body));
            answered += usize::from(letter == b'Z');
            Ok(())
        })?;
        Ok(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::capacity::Stub;

    #[test]
    fn each_segment_is_answered_and_another_sent() {
        let stub = Stub::start(2).unwrap();
        for depth in [1, 3] {
            let load = Load::start(stub.port(), Size { threads: 2, clients: 5, depth }).unwrap();
            while load.answered() < 1000 {
                thread::yield_now();
            }
            load.end().unwrap();
        }
    }

    #[test]
    fn a_connection_that_ends_is_an_error() {
        let stub = Stub::start(1).unwrap();
        let size = Size { threads: 1, clients: 2, depth: 1 };
        let load = Load::start(stub.port(), size).unwrap();
        drop(stub);
        while !load.threads.iter().all(JoinHandle::is_finished) {
            thread::yield_now();
        }
        assert!(load.end().is_err());
    }
}

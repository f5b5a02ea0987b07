//! TCP ports for servers that tests and benches start.
//!
//! The system chooses a port for each connection and for each listener that names none, so it may
//! give away a port that was free a moment ago before the server that shall have the port listens.
//! The ports here lie below those that the system chooses, and a process shares none with another:
//! a process holds blocks of ports, each by a lock on a file, until it ends.

use std::fs::{self, File, TryLockError};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::scratch;

/// The first port of the first block. Linux chooses ports from 32768 on by itself.
const FIRST: u16 = 20_000;
/// Ports of a block.
const BLOCK: u16 = 100;
/// Number of blocks.
const BLOCKS: u16 = 120;

/// A block of ports that this process holds.
struct Block {
    /// The ports that nobody has been given yet.
    left: Range<u16>,
    /// The file whose lock says that the block is taken.
    _lock: File,
}

impl Block {
    /// Takes a block that no process holds.
    ///
    /// # Errors
    ///
    /// Processes hold all blocks, or the folder of the locks cannot be written.
    fn take() -> Result<Block> {
        let folder = scratch::base()?.join("ports");
        fs::create_dir_all(&folder)?;
        for block in 0..BLOCKS {
            let path = folder.join(block.to_string());
            let lock = File::options().create(true).append(true).open(&path);
            let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
            match lock.try_lock() {
                Ok(()) => {
                    let first = FIRST + block * BLOCK;
                    return Ok(Block { left: first..first + BLOCK, _lock: lock });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        bail!("other processes hold all blocks of ports")
    }

    /// Returns the block's next port on which nothing listens. There may be no more.
    fn next_free(&mut self) -> Option<u16> {
        self.left.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
    }
}

/// Returns a TCP port on which nothing listens at 127.0.0.1. No other process and no later call
/// gets the port while this process runs.
///
/// # Errors
///
/// Processes hold all blocks of ports, or the folder of their locks cannot be written.
pub fn free_port() -> Result<u16> {
    static HELD: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(port) = held.last_mut().and_then(Block::next_free) {
            return Ok(port);
        }
        held.push(Block::take()?);
    }
}

/// Waits until something listens at a port of 127.0.0.1.
///
/// # Errors
///
/// The program that should listen does not run any more, or the time is over.
pub fn wait_for(port: u16, limit: Duration, mut is_running: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        ensure!(is_running(), "what should listen at port {port} has ended");
        ensure!(began.elapsed() < limit, "nothing listens at port {port} after {limit:?}");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let taken = Block::take().unwrap();
        let ports: HashSet<u16> = (0..2 * BLOCK).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), usize::from(2 * BLOCK));
        assert!(taken.left.clone().all(|port| !ports.contains(&port)));
    }

    #[test]
    fn a_port_at_which_something_listens_is_passed() {
        let mut block = Block::take().unwrap();
        let first = block.left.start;
        // If it fails, a program outside the tests listens there.
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first));
        let next = block.next_free();
        assert!(next.is_none_or(|port| port > first), "{next:?}");
    }

    #[test]
    fn a_port_at_which_nothing_listens_is_an_error() {
        let port = free_port().unwrap();
        let why = wait_for(port, Duration::MAX, || false).unwrap_err();
        assert!(why.to_string().contains("has ended"), "{why}");
        let why = wait_for(port, Duration::ZERO, || true).unwrap_err();
        assert!(why.to_string().contains("nothing listens"), "{why}");
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        wait_for(port, Duration::ZERO, || false).unwrap();
    }
}

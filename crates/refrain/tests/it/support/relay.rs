//! A relay between two peers of TCP: it passes each byte on by a write of its own, passes the
//! answers on late, or ends a connection after some bytes.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;
use xtask::channel::read_some;

use crate::transport::LIMIT;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// From the peer that has connected.
    Forth,
    /// Back to it.
    Back,
}

/// The way in which a relay ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It closes both connections in order.
    Close,
    /// It resets both connections.
    Reset,
    /// It closes the direction alone. What the other peer says still passes.
    Half,
}

/// A cut: after `at` bytes of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) stream: Stream,
    pub(crate) at: usize,
    pub(crate) ending: Ending,
}

/// The treatment of bytes by a relay.
#[derive(Debug)]
struct Rule {
    /// Most bytes of a write.
    most: usize,
    /// The time for which it holds back what goes to the peer that has connected.
    late: Duration,
    cut: Mutex<Option<Cut>>,
    /// Bytes that have passed on all connections, in each direction.
    passed: [AtomicUsize; 2],
    is_over: AtomicBool,
    /// The ends of all connections that lead to the other peer.
    ends: Mutex<Vec<TcpStream>>,
    /// The number of directions that still pass bytes on.
    live: AtomicUsize,
}

/// A relay. It takes no more connections when this is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    addr: SocketAddr,
    rule: Arc<Rule>,
}

impl Relay {
    /// Begins a relay to `to` that passes each byte on by a write of its own.
    pub(crate) fn byte_by_byte(to: SocketAddr) -> Self {
        Self::with(to, 1, Duration::ZERO)
    }

    /// Begins a relay to `to` that passes on what comes, until [`Relay::set`] says otherwise.
    pub(crate) fn cutting(to: SocketAddr) -> Self {
        Self::with(to, usize::MAX, Duration::ZERO)
    }

    /// Begins a relay to `to` that holds back the answers for this time.
    pub(crate) fn late(to: SocketAddr, late: Duration) -> Self {
        Self::with(to, usize::MAX, late)
    }

    fn with(to: SocketAddr, most: usize, late: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (cut, passed, is_over, ends, live) = Default::default();
        let rule = Arc::new(Rule { most, late, cut, passed, is_over, ends, live });
        let relay = Self { addr: listener.local_addr().unwrap(), rule: Arc::clone(&rule) };
        thread::spawn(move || {
            for one in listener.incoming() {
                if rule.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(one) = one else { continue };
                match TcpStream::connect(to) {
                    Ok(other) => rule.join(one, other),
                    Err(_) => drop(one),
                }
            }
        });
        relay
    }

    /// Returns the address at which it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends all connections, waits until the peer that has connected has closed them too, and cuts
    /// those that begin from now on.
    pub(crate) fn set(&self, cut: Option<Cut>) {
        *self.rule.cut.lock().unwrap() = cut;
        for end in self.rule.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
        let started = Instant::now();
        while self.rule.live.load(Ordering::Acquire) > 0 {
            assert!(started.elapsed() < LIMIT, "a connection whose peer has gone is not closed");
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns the number of bytes that have passed in a direction since the last call.
    pub(crate) fn passed(&self, stream: Stream) -> usize {
        self.rule.passed[stream as usize].swap(0, Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.rule.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.addr);
    }
}

impl Rule {
    fn join(self: &Arc<Self>, one: TcpStream, other: TcpStream) {
        let cut = *self.cut.lock().unwrap();
        let is_reset = Arc::new(AtomicBool::new(false));
        for stream in [&one, &other] {
            stream.set_nodelay(true).unwrap();
        }
        for stream in [Stream::Forth, Stream::Back] {
            let both = (one.try_clone().unwrap(), other.try_clone().unwrap());
            let (from, to) = if stream == Stream::Forth { both } else { (both.1, both.0) };
            let cut = cut.filter(|cut| cut.stream == stream);
            self.live.fetch_add(1, Ordering::Relaxed);
            let way = Direction { from, to, stream, is_reset: Arc::clone(&is_reset) };
            let rule = Arc::clone(self);
            thread::spawn(move || {
                way.pass(&rule, cut);
                rule.live.fetch_sub(1, Ordering::Release);
            });
        }
        self.ends.lock().unwrap().push(other);
    }
}

/// A direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    stream: Stream,
    /// Whether both connections are reset when both directions are over.
    is_reset: Arc<AtomicBool>,
}

impl Direction {
    /// Passes on what comes, up to the cut.
    fn pass(mut self, rule: &Rule, cut: Option<Cut>) {
        let mut left = cut.map_or(usize::MAX, |cut| cut.at);
        let mut chunk = vec![0; 64 * 1024];
        while left > 0 {
            let most = chunk.len().min(left);
            let count = match read_some(&mut self.from, &mut chunk[..most]) {
                Ok(0) => return self.end(Ending::Half),
                Ok(count) => count,
                Err(_) => return self.end(Ending::Reset),
            };
            rule.passed[self.stream as usize].fetch_add(count, Ordering::Relaxed);
            left -= count;
            if self.stream == Stream::Back && !rule.late.is_zero() {
                thread::sleep(rule.late);
            }
            if chunk[..count].chunks(rule.most).any(|piece| self.to.write_all(piece).is_err()) {
                return self.end(Ending::Reset);
            }
        }
        self.end(cut.map_or(Ending::Close, |cut| cut.ending));
    }

    fn end(&self, ending: Ending) {
        let streams = [&self.from, &self.to];
        match ending {
            // A reset must not be announced by the end of a stream.
            Ending::Half if self.is_reset.load(Ordering::Relaxed) => {}
            Ending::Half => drop(self.to.shutdown(Shutdown::Write)),
            Ending::Close => {
                streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)))
            }
            Ending::Reset => {
                self.is_reset.store(true, Ordering::Relaxed);
                for stream in streams {
                    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
                    // The other direction's thread wakes up.
                    let _ = stream.shutdown(Shutdown::Read);
                }
            }
        }
    }
}

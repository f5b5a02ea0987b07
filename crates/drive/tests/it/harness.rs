//! A driver with its events kept, and peers to talk to it.

use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use refrain_drive::{
    Address, Driver, Event, Kernel, Kind, Listener, Peer, Sizing, Socket, Token, open,
};

/// Longer than anything here takes on the slowest machine.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// Makes of each function one test per kernel.
macro_rules! on_both {
    ($($(#[$doc:meta])* fn $name:ident($driven:ident) $body:block)*) => {
        $($(#[$doc])* mod $name {
            use super::*;

            fn run(mut driven: crate::harness::Driven) {
                let $driven = &mut driven;
                $body
            }

            #[test]
            fn epoll() {
                run(crate::harness::Driven::epoll());
            }

            #[test]
            fn uring() {
                crate::harness::Driven::uring().map(run);
            }
        })*
    };
}
pub(crate) use on_both;

/// An event that outlives its turn.
#[derive(Debug)]
pub(crate) enum Seen {
    Accepted(u32, Socket, Peer),
    Connected(Token, Option<Address>),
    Failed(Token, io::Error),
    Received(Token, Vec<u8>),
    Sent(Token),
    Closed(Token, Option<io::Error>),
    Detached(Token, Socket),
    Woken,
}

impl Seen {
    fn keep(event: Event<'_>) -> Seen {
        match event {
            Event::Accepted { listener, socket, peer } => Seen::Accepted(listener, socket, peer),
            Event::Connected { token, local } => Seen::Connected(token, local),
            Event::Failed { token, error } => Seen::Failed(token, error),
            Event::Received { token, bytes } => {
                assert!(!bytes.is_empty());
                Seen::Received(token, bytes.to_vec())
            }
            Event::Sent { token, buffer } => {
                assert!(buffer.is_empty());
                Seen::Sent(token)
            }
            Event::Closed { token, error } => Seen::Closed(token, error),
            Event::Detached { token, socket } => Seen::Detached(token, socket),
            Event::Woken => Seen::Woken,
        }
    }

    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Seen::Accepted(..) | Seen::Woken => None,
            Seen::Connected(token, _)
            | Seen::Failed(token, _)
            | Seen::Received(token, _)
            | Seen::Sent(token)
            | Seen::Closed(token, _)
            | Seen::Detached(token, _) => Some(*token),
        }
    }
}

/// A driver under test.
pub(crate) struct Driven {
    pub(crate) kernel: Kernel,
    /// Events not yet asked for, oldest first.
    pub(crate) seen: VecDeque<Seen>,
}

impl Driven {
    pub(crate) fn epoll() -> Driven {
        Driven::sized(Kind::Epoll, Sizing::default()).unwrap()
    }

    /// `None` where io_uring is not allowed. A machine that is to test it says so by
    /// `REFRAIN_NEEDS_URING`, lest it be skipped for ever unnoticed.
    pub(crate) fn uring() -> Option<Driven> {
        Driven::uring_sized(Sizing::default())
    }

    pub(crate) fn uring_sized(sizing: Sizing) -> Option<Driven> {
        match Driven::sized(Kind::Uring, sizing) {
            Ok(driven) => Some(driven),
            Err(error) => {
                assert!(std::env::var_os("REFRAIN_NEEDS_URING").is_none(), "{error}");
                None
            }
        }
    }

    fn sized(kind: Kind, sizing: Sizing) -> io::Result<Driven> {
        Ok(Driven { kernel: open(kind, sizing)?, seen: VecDeque::new() })
    }

    /// A second driver of the same kind.
    pub(crate) fn another(&self) -> Driven {
        match self.kernel.name() {
            "epoll" => Driven::epoll(),
            _ => Driven::uring().unwrap(),
        }
    }

    /// Another of the same kind, which gives a closed connection little time.
    pub(crate) fn impatient(&self) -> Driven {
        self.like(Sizing { linger: Duration::from_millis(20), ..Sizing::default() })
    }

    /// Another of the same kind, whose clients get descriptors below `gate` only.
    pub(crate) fn gated(&self, gate: u32) -> Driven {
        self.like(Sizing { gate, ..Sizing::default() })
    }

    fn like(&self, sizing: Sizing) -> Driven {
        let kind = if self.kernel.name() == "epoll" { Kind::Epoll } else { Kind::Uring };
        Driven::sized(kind, sizing).unwrap()
    }

    pub(crate) fn turn(&mut self, wait: Duration) {
        let seen = &mut self.seen;
        self.kernel.turn(Some(wait), &mut |event| seen.push_back(Seen::keep(event))).unwrap();
    }

    /// Turns until several in a row bring nothing.
    pub(crate) fn calm_down(&mut self) {
        let mut quiet = 0;
        while quiet < 5 {
            let before = self.seen.len();
            self.turn(Duration::from_millis(5));
            quiet = if self.seen.len() == before { quiet + 1 } else { 0 };
        }
    }

    /// Turns until a peer in a thread of its own has done what it has to.
    pub(crate) fn turn_beside(&mut self, peer: impl FnOnce() + Send + 'static) {
        let peer = thread::spawn(peer);
        while !peer.is_finished() {
            self.turn(Duration::from_millis(5));
        }
        peer.join().unwrap();
    }

    /// The oldest event of which `pick` makes something, waiting for it if need be. The others
    /// stay.
    pub(crate) fn find<T>(&mut self, mut pick: impl FnMut(Seen) -> Result<T, Seen>) -> T {
        let start = Instant::now();
        let mut at = 0;
        loop {
            while at < self.seen.len() {
                let seen = self.seen.remove(at).unwrap();
                match pick(seen) {
                    Ok(found) => return found,
                    Err(seen) => self.seen.insert(at, seen),
                }
                at += 1;
            }
            assert!(start.elapsed() < GUARD, "waited in vain; there is {:?}", self.seen);
            self.turn(Duration::from_secs(1));
        }
    }

    pub(crate) fn accepted(&mut self) -> (u32, Socket, Peer) {
        self.find(|seen| match seen {
            Seen::Accepted(listener, socket, peer) => Ok((listener, socket, peer)),
            other => Err(other),
        })
    }

    pub(crate) fn connected(&mut self, token: Token) -> Option<Address> {
        self.find(|seen| match seen {
            Seen::Connected(found, local) if found == token => Ok(local),
            other => Err(other),
        })
    }

    pub(crate) fn failed(&mut self, token: Token) -> io::Error {
        self.find(|seen| match seen {
            Seen::Failed(found, error) if found == token => Ok(error),
            other => Err(other),
        })
    }

    pub(crate) fn closed(&mut self, token: Token) -> Option<io::Error> {
        self.find(|seen| match seen {
            Seen::Closed(found, error) if found == token => Ok(error),
            other => Err(other),
        })
    }

    pub(crate) fn detached(&mut self, token: Token) -> Socket {
        self.find(|seen| match seen {
            Seen::Detached(found, socket) if found == token => Ok(socket),
            other => Err(other),
        })
    }

    pub(crate) fn sent(&mut self, token: Token) {
        self.find(|seen| match seen {
            Seen::Sent(found) if found == token => Ok(()),
            other => Err(other),
        });
    }

    pub(crate) fn woken(&mut self) {
        self.find(|seen| if matches!(seen, Seen::Woken) { Ok(()) } else { Err(seen) });
    }

    /// So many bytes, received in as many pieces as it pleases.
    pub(crate) fn received(&mut self, token: Token, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            let bytes = self.find(|seen| match seen {
                Seen::Received(found, bytes) if found == token => Ok(bytes),
                other => Err(other),
            });
            all.extend(bytes);
        }
        assert_eq!(all.len(), count);
        all
    }

    /// Sends and waits until the kernel has it all.
    pub(crate) fn send(&mut self, token: Token, bytes: &[u8]) {
        if self.kernel.send(token, bytes.to_vec()).is_none() {
            self.sent(token);
        }
    }

    /// Gives so many bytes to `send` as are more than the kernel will take from a peer that does
    /// not read, and returns how many.
    pub(crate) fn overfill(&mut self, token: Token) -> usize {
        let mut given = 0;
        loop {
            let bytes = pattern(given, 1 << 20);
            given += bytes.len();
            if self.kernel.send(token, bytes).is_none() {
                return given;
            }
            self.turn(Duration::ZERO);
            assert!(given < 1 << 30);
        }
    }

    /// Listens on a port of the kernel's choice.
    pub(crate) fn listen(&mut self, listener: u32) -> Address {
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let socket = Listener::bind(&any, 4096).unwrap();
        let address = socket.local().unwrap();
        self.kernel.listen(listener, socket).unwrap();
        address
    }

    /// A connection under `token`, and its peer.
    pub(crate) fn pair(&mut self, token: Token) -> TcpStream {
        let (here, there) = tcp_pair();
        self.kernel.adopt(token, here.into());
        there
    }

    /// No event for this token is there, nor comes.
    pub(crate) fn assert_silent(&mut self, token: Token) {
        self.calm_down();
        assert!(self.seen.iter().all(|seen| seen.token() != Some(token)), "{:?}", self.seen);
    }
}

/// Two ends of a connection over the loopback. A read that would hang the test fails it instead.
pub(crate) fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (there, _) = listener.accept().unwrap();
    there.set_read_timeout(Some(GUARD)).unwrap();
    there.set_write_timeout(Some(GUARD)).unwrap();
    (here, there)
}

pub(crate) fn tcp(address: &Address) -> TcpStream {
    let Address::Tcp(address) = address else { panic!("{address} is not TCP") };
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream
}

/// The bytes of a stream from some place on. They repeat, but not at a distance that a mistake
/// would be likely to have.
pub(crate) fn pattern(from: usize, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let rest = &period()[(from + bytes.len()) % PERIOD..];
        bytes.extend(&rest[..rest.len().min(length - bytes.len())]);
    }
    bytes
}

const PERIOD: usize = 1_000_003;

fn period() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let place = |place: usize| (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    BYTES.get_or_init(|| (0..PERIOD).map(|at| place(at) as u8).collect())
}

/// A seeded generator, for sizes.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

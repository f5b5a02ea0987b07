//! The driver in use, chosen once at the start.

use std::io;
use std::time::Duration;

use crate::address::Address;
use crate::epoll::Epoll;
use crate::face::{Driver, Event, Token};
use crate::sizing::Sizing;
use crate::socket::{Listener, Socket};
use crate::uring::{self, Uring};
use crate::waker::Waker;

/// The driver that the caller asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// io_uring if this kernel supports all that the driver needs and lets the process use it,
    /// otherwise epoll.
    #[default]
    Auto,
    /// io_uring; without it, an error.
    Uring,
    /// epoll.
    Epoll,
}

/// The driver in use. An enum rather than a trait object, so that calls can be inlined.
///
/// It may be opened in one thread and used in another, but stays in one thread from its first turn
/// on.
pub struct Kernel {
    chosen: Chosen,
    why: Option<String>,
}

enum Chosen {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
}

/// Opens a driver.
///
/// # Errors
///
/// If the kernel lacks something that the chosen driver needs; for [`Kind::Auto`], if epoll fails
/// as well.
pub fn open(kind: Kind, sizing: Sizing) -> io::Result<Kernel> {
    let refusal = match kind {
        Kind::Epoll => None,
        Kind::Auto | Kind::Uring => match uring::probe().and_then(|()| Uring::open(sizing)) {
            Ok(uring) => {
                return Ok(Kernel { chosen: Chosen::Uring(Box::new(uring)), why: None });
            }
            Err(error) if kind == Kind::Uring => return Err(error),
            Err(error) => Some(format!("io_uring is not usable: {error}")),
        },
    };
    Ok(Kernel { chosen: Chosen::Epoll(Box::new(Epoll::open(sizing)?)), why: refusal })
}

impl Kernel {
    /// Returns the reason why [`Kind::Auto`] did not choose io_uring, for the log.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Returns how many receives found no buffer and had to be requested again. Each costs a little
    /// time; if the number grows steadily, [`Sizing::buffers`] is too small.
    pub fn starved(&self) -> u64 {
        match &self.chosen {
            Chosen::Uring(uring) => uring.starved(),
            Chosen::Epoll(_) => 0,
        }
    }
}

macro_rules! either {
    ($kernel:expr, $driver:ident => $call:expr) => {
        match $kernel {
            Chosen::Uring($driver) => $call,
            Chosen::Epoll($driver) => $call,
        }
    };
}

impl Driver for Kernel {
    fn listen(&mut self, listener: u32, socket: Listener) -> io::Result<()> {
        either!(&mut self.chosen, driver => driver.listen(listener, socket))
    }

    fn unlisten(&mut self, listener: u32) {
        either!(&mut self.chosen, driver => driver.unlisten(listener));
    }

    fn adopt(&mut self, token: Token, socket: Socket) {
        either!(&mut self.chosen, driver => driver.adopt(token, socket));
    }

    fn connect(&mut self, token: Token, address: &Address) {
        either!(&mut self.chosen, driver => driver.connect(token, address));
    }

    fn send(&mut self, token: Token, buffer: Vec<u8>) -> Option<Vec<u8>> {
        either!(&mut self.chosen, driver => driver.send(token, buffer))
    }

    fn pause(&mut self, token: Token) {
        either!(&mut self.chosen, driver => driver.pause(token));
    }

    fn resume(&mut self, token: Token) {
        either!(&mut self.chosen, driver => driver.resume(token));
    }

    fn close(&mut self, token: Token) {
        either!(&mut self.chosen, driver => driver.close(token));
    }

    fn detach(&mut self, token: Token) {
        either!(&mut self.chosen, driver => driver.detach(token));
    }

    fn unacknowledged(&mut self, token: Token) -> Option<Duration> {
        either!(&mut self.chosen, driver => driver.unacknowledged(token))
    }

    fn waker(&self) -> Waker {
        either!(&self.chosen, driver => driver.waker())
    }

    fn turn(&mut self, wait: Option<Duration>, sink: &mut dyn FnMut(Event<'_>)) -> io::Result<()> {
        either!(&mut self.chosen, driver => driver.turn(wait, sink))
    }

    fn name(&self) -> &'static str {
        either!(&self.chosen, driver => driver.name())
    }
}

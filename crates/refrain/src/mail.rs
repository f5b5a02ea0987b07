//! Mail between threads: messages to a core, from other cores and from helper threads.
//!
//! A mailbox is a list under a lock. A thread holds the lock only while it appends to the list or
//! swaps it for an empty one. The sender wakes the core, and the core reads its mailbox only after
//! it was woken. Mail from one thread arrives in the order in which it was sent.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use refrain_drive::{Peer, Socket, Waker};
use refrain_pool::event::Command;
use refrain_pool::ids::Core;
use refrain_pool::message::CoreMessage;
use refrain_pool::{Conn, Engine, Now, Transfer};

use crate::balance::Order;
use crate::resolve::Addresses;
use crate::served::{LocalSession, Served};
use crate::tls::Session;

/// A message to a core, which reads it after it has handled the events of its turn.
#[derive(Debug)]
pub(crate) enum Mail<P: Served> {
    /// A client for this core.
    Accepted { socket: Socket, peer: Peer },
    /// An order to give clients to another core.
    Give(Order),
    /// A server or client that another core's engine hands over, with bytes that came while it was
    /// detached, and its TLS.
    Arrived {
        socket: Socket,
        transfer: Box<Transfer<P>>,
        early: Vec<u8>,
        session: Option<Box<Session>>,
    },
    /// A server in this process, handed over by another core's engine.
    Moved { session: Box<LocalSession<P>>, transfer: Box<Transfer<P>> },
    /// The session of a server in this process may go on.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "SQLite alone has it"))]
    Continue(Conn),
    /// A message of another core, for the engine.
    Message(CoreMessage),
    /// A command of the operator, for the engine.
    Command(Command),
    /// The result of work that the engine asked for.
    Answered(P::Answer),
    /// The addresses of the name that this attempt to connect waits for.
    Resolved { conn: Conn, ticket: u64, addresses: Addresses },
    /// A look at this core.
    Look(Look<P>),
    /// Stop accepting clients. Comes before a drain, or with it.
    Unlisten,
}

/// A look of another thread at a core, which passes on what it has seen.
pub(crate) struct Look<P: Served>(Box<See<P>>);

type See<P> = dyn FnOnce(&Engine<P>, Now) + Send;

impl<P: Served> Look<P> {
    pub(crate) fn new(look: impl FnOnce(&Engine<P>, Now) + Send + 'static) -> Self {
        Self(Box::new(look))
    }

    /// Looks at a core, which is between two steps.
    pub(crate) fn at(self, engine: &Engine<P>, now: Now) {
        (self.0)(engine, now);
    }
}

impl<P: Served> fmt::Debug for Look<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look")
    }
}

/// The mailboxes of all cores that serve a protocol.
#[derive(Debug)]
pub(crate) struct Post<P: Served> {
    boxes: Vec<Mailbox<P>>,
}

#[derive(Debug)]
struct Mailbox<P: Served> {
    mail: Mutex<Vec<Mail<P>>>,
    waker: Waker,
}

impl<P: Served> Post<P> {
    /// Makes a mailbox for each core, in the order of the cores.
    pub(crate) fn new(wakers: impl IntoIterator<Item = Waker>) -> Self {
        let mailbox = |waker| Mailbox { mail: Mutex::new(Vec::new()), waker };
        Self { boxes: wakers.into_iter().map(mailbox).collect() }
    }

    /// Returns all cores.
    pub(crate) fn cores(&self) -> impl ExactSizeIterator<Item = Core> + use<P> {
        (0..self.boxes.len()).map(|index| Core(u16::try_from(index).unwrap_or(u16::MAX)))
    }

    /// Gives `mail` to a core, and wakes it.
    pub(crate) fn send(&self, to: Core, mail: Mail<P>) {
        self.send_all(to, &mut vec![mail]);
    }

    /// Gives all of `mail` to a core, and wakes it once; leaves `mail` empty.
    pub(crate) fn send_all(&self, to: Core, mail: &mut Vec<Mail<P>>) {
        if !mail.is_empty() {
            let mailbox = self.mailbox(to);
            mailbox.mail.lock().unwrap_or_else(PoisonError::into_inner).append(mail);
            mailbox.waker.wake();
        }
    }

    /// Gives `command` to every core.
    pub(crate) fn command(&self, command: &Command) {
        self.cores().for_each(|core| self.send(core, Mail::Command(command.clone())));
    }

    /// Moves a core's mail to the end of `into`.
    pub(crate) fn take(&self, core: Core, into: &mut Vec<Mail<P>>) {
        let mut mail = self.mailbox(core).mail.lock().unwrap_or_else(PoisonError::into_inner);
        into.append(&mut mail);
    }

    fn mailbox(&self, core: Core) -> &Mailbox<P> {
        &self.boxes[usize::from(core.0)]
    }
}

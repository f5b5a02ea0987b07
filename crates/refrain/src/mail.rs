//! Mail between threads: what a core is told by other cores and by the helpers.
//!
//! A mailbox is a list under a lock that is held for as long as it takes to append to the list or to swap it
//! for an empty one. Whoever puts mail in wakes the core; the core looks only when it was woken. Mail
//! from one thread arrives in the order it was sent.

use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use refrain_drive::{Peer, Socket, Waker};
use refrain_pg::event::{Case, ClientSerial, Command, Core};
use refrain_pg::shared::CoreMessage;
use refrain_pg::snapshot::Snapshot;
use refrain_pg::{Conn, Transfer};
use refrain_sql::normalize::Analysis;

use crate::sqlite_session::SqliteSession;

/// The IP addresses of a host name in the resolver's order, or why there are none.
pub(crate) type Addresses = Result<Vec<IpAddr>, String>;

/// A message to a core, which reads it after it has handled the events of its turn.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A client for this core.
    Accepted { socket: Socket, peer: Peer },
    /// A server that another core's engine hands over, with bytes that came while it was detached.
    Arrived { socket: Socket, transfer: Box<Transfer>, early: Vec<u8> },
    /// The same for a session with SQLite.
    Moved { session: Box<SqliteSession>, transfer: Box<Transfer> },
    /// A session with SQLite may go on.
    Continue(Conn),
    /// For the engine, from another.
    Message(CoreMessage),
    /// For the engine, from the operator.
    Command(Command),
    /// For the engine: the answer to a question on the console.
    Console { client: ClientSerial, reply: Vec<u8> },
    /// For the engine: what becomes of the literals of a text.
    Analysed { case: Box<Case>, analysis: Analysis },
    /// The addresses of the name that this attempt to connect waits for.
    Resolved { conn: Conn, ticket: u64, addresses: Addresses },
    /// Somebody wants to know what this core looks like.
    Snapshot(Sender<Snapshot>),
    /// Somebody wants to know how many clients hold each statement.
    StatementClients(Sender<Vec<(u64, u32)>>),
    /// Accept no more clients, with the next drain or before it.
    Unlisten,
}

/// The mailboxes of all cores.
#[derive(Debug)]
pub(crate) struct Post {
    boxes: Vec<Mailbox>,
}

#[derive(Debug)]
struct Mailbox {
    mail: Mutex<Vec<Mail>>,
    waker: Waker,
}

impl Post {
    /// A mailbox for each core, in their order.
    pub(crate) fn new(wakers: impl IntoIterator<Item = Waker>) -> Self {
        let mailbox = |waker| Mailbox { mail: Mutex::default(), waker };
        Self { boxes: wakers.into_iter().map(mailbox).collect() }
    }

    /// All cores.
    pub(crate) fn cores(&self) -> impl ExactSizeIterator<Item = Core> + use<> {
        (0..self.boxes.len()).map(|index| Core(u16::try_from(index).unwrap_or(u16::MAX)))
    }

    /// Gives `mail` to a core, and wakes it.
    pub(crate) fn send(&self, to: Core, mail: Mail) {
        self.send_all(to, &mut vec![mail]);
    }

    /// Gives all of `mail` to a core, and wakes it once; leaves `mail` empty.
    pub(crate) fn send_all(&self, to: Core, mail: &mut Vec<Mail>) {
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

    /// Takes a core's mail out, behind what is in `into` already.
    pub(crate) fn take(&self, core: Core, into: &mut Vec<Mail>) {
        let mut mail = self.mailbox(core).mail.lock().unwrap_or_else(PoisonError::into_inner);
        into.append(&mut mail);
    }

    fn mailbox(&self, core: Core) -> &Mailbox {
        &self.boxes[usize::from(core.0)]
    }
}

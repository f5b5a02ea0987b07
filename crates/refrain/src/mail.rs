//! Mail between threads: messages to a core, from other cores and from helper threads.
//!
//! A mailbox is a list under a lock. A thread holds the lock only while it appends to the list or
//! swaps it for an empty one. The sender wakes the core, and the core reads its mailbox only after
//! it was woken. Mail from one thread arrives in the order in which it was sent.

use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use refrain_drive::{Peer, Socket, Waker};
use refrain_pg::requests::{Case, ReadCase, TextFindings};
use refrain_pg::{Snapshot, Transfer};
use refrain_pool::Conn;
use refrain_pool::event::Command;
use refrain_pool::ids::{ClientSerial, Core};
use refrain_pool::message::CoreMessage;
use refrain_sql::normalize::Analysis;

use crate::balance::Order;
use crate::sqlite_session::SqliteSession;
use crate::tls::Session;

/// The IP addresses of a host name in the resolver's order, or why there are none.
pub(crate) type Addresses = Result<Vec<IpAddr>, String>;

/// A message to a core, which reads it after it has handled the events of its turn.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A client for this core.
    Accepted { socket: Socket, peer: Peer },
    /// An order to give clients to another core.
    Give(Order),
    /// A server or client that another core's engine hands over, with bytes that came while it was
    /// detached, and its TLS.
    Arrived {
        socket: Socket,
        transfer: Box<Transfer>,
        early: Vec<u8>,
        session: Option<Box<Session>>,
    },
    /// A server that is an SQLite session, handed over by another core's engine.
    Moved { session: Box<SqliteSession>, transfer: Box<Transfer> },
    /// An SQLite session may go on.
    Continue(Conn),
    /// A message of another core, for the engine.
    Message(CoreMessage),
    /// A command of the operator, for the engine.
    Command(Command),
    /// The reply to a query on the console, for the engine.
    Console { client: ClientSerial, reply: Vec<u8> },
    /// The analysis of a query's literals, for the engine.
    Analysed { case: Box<Case>, analysis: Analysis },
    /// Findings in the text of a statement, for the engine.
    Read { case: Box<ReadCase>, found: Box<TextFindings> },
    /// The addresses of the name that this attempt to connect waits for.
    Resolved { conn: Conn, ticket: u64, addresses: Addresses },
    /// A request for a snapshot of this core.
    Snapshot(Sender<Snapshot>),
    /// A request for the number of clients that hold each statement.
    StatementClients(Sender<Vec<(u64, u32)>>),
    /// Stop accepting clients. Comes before a drain, or with it.
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
    /// Makes a mailbox for each core, in the order of the cores.
    pub(crate) fn new(wakers: impl IntoIterator<Item = Waker>) -> Self {
        let mailbox = |waker| Mailbox { mail: Mutex::default(), waker };
        Self { boxes: wakers.into_iter().map(mailbox).collect() }
    }

    /// Returns all cores.
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

    /// Moves a core's mail to the end of `into`.
    pub(crate) fn take(&self, core: Core, into: &mut Vec<Mail>) {
        let mut mail = self.mailbox(core).mail.lock().unwrap_or_else(PoisonError::into_inner);
        into.append(&mut mail);
    }

    fn mailbox(&self, core: Core) -> &Mailbox {
        &self.boxes[usize::from(core.0)]
    }
}

//! The events that an engine handles, and the actions that it asks for. Both sets are closed: the
//! engine works for no other reason, and does nothing else but write to its ports.

use std::sync::Arc;

use refrain_config::{Host, Options};

use crate::ids::{ClientSerial, Conn, Core, Peer};
use crate::message::CoreMessage;
use crate::parts::Parts;
use crate::server::Transfer;

/// Something happened outside.
#[derive(Debug)]
pub enum Event<'a, P: Parts> {
    /// A client connected; the loop got `conn` from [`crate::Ports::open`].
    Accepted {
        /// Its number.
        conn: Conn,
        /// Who it is.
        peer: Peer,
    },
    /// An [`Action::Connect`] succeeded.
    Connected {
        /// Its number.
        conn: Conn,
    },
    /// An [`Action::Connect`] failed. The engine closes `conn` in answer.
    Failed {
        /// Its number.
        conn: Conn,
        /// What the system said.
        why: &'a str,
    },
    /// Bytes arrived, in order.
    Bytes {
        /// Where from.
        conn: Conn,
        /// What; never empty.
        bytes: &'a [u8],
    },
    /// What the kernel was handed for `conn` has gone; more may be queued by now.
    Drained {
        /// Its number.
        conn: Conn,
    },
    /// The peer has gone, or has ended its stream and may go on reading. The engine closes `conn`
    /// in answer, at the latest when the peer has what it asked for.
    Closed {
        /// Its number.
        conn: Conn,
        /// What the system said, where the peer did not end the stream in order.
        why: Option<&'a str>,
    },
    /// A server handed over by another core; the loop got `conn` from [`crate::Ports::open`].
    Arrived {
        /// Its number here.
        conn: Conn,
        /// What the other core's engine knew of it.
        transfer: Box<Transfer<P>>,
    },
    /// Time passed; see [`crate::Engine::next_tick`].
    Tick,
    /// Another core has something to say.
    Message(CoreMessage),
    /// The operator wants something.
    Command(Command),
    /// The answer to an [`Action::Ask`].
    Answered(P::Answer),
}

/// What an operator wants; the same for every core.
#[derive(Clone, Debug)]
pub enum Command {
    /// Lend no more servers of this database (all: `None`) until [`Command::Resume`], and close
    /// each when its client is done with it.
    Pause(Option<Arc<str>>),
    /// Undo a pause or kill.
    Resume(Option<Arc<str>>),
    /// Close each server of the database once its client is done with it.
    Reconnect(Option<Arc<str>>),
    /// Close all clients and servers of the database at once, and pause it.
    Kill(Option<Arc<str>>),
    /// Close this client.
    KillClient(ClientSerial),
    /// Forget what was learned of queries.
    Flush,
    /// Use these options from now on.
    Reload(Arc<Options>),
    /// Take no new clients; close each client when its transaction is over.
    Drain,
    /// Close every client and server at once.
    Stop,
}

/// Something the loop is to do for the engine, other than sending and closing.
#[derive(Debug)]
pub enum Action<P: Parts> {
    /// Open a connection. `conn` comes from the engine; the answer is [`Event::Connected`] or
    /// [`Event::Failed`]. The loop resolves names.
    Connect {
        /// Its number.
        conn: Conn,
        /// Where to.
        host: Arc<Host>,
    },
    /// Receive nothing more on `conn` for now. What has been received already may still come.
    Pause {
        /// Its number.
        conn: Conn,
    },
    /// Receive again.
    Resume {
        /// Its number.
        conn: Conn,
    },
    /// Move a server to another core: take its socket off this core's driver, call
    /// [`crate::Ports::release`], and give socket and transfer to `to`, which steps
    /// [`Event::Arrived`].
    HandOver {
        /// Its number here.
        conn: Conn,
        /// Where to.
        to: Core,
        /// What is known of it.
        transfer: Box<Transfer<P>>,
    },
    /// Have another core step [`Event::Message`].
    Tell {
        /// Which; never this one.
        core: Core,
        /// What.
        message: CoreMessage,
    },
    /// Do this for the protocol. The answer is [`Event::Answered`].
    Ask(P::Request),
    /// Something worth a line in the log.
    Note(Box<Note>),
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is wrong on our side or the server's.
    Error,
    /// Something is wrong on a client's side, or a limit was reached.
    Warn,
    /// What an operator wants to see in normal times.
    Info,
    /// Each coming and going.
    Debug,
}

/// Something worth a line in the log.
#[derive(Clone, Debug)]
pub struct Note {
    /// How much it matters.
    pub level: Level,
    /// What ended or happened, as a short key (see
    /// [`crate::disconnect::DisconnectReason`]).
    pub cause: &'static str,
    /// The client concerned, and where it connects from.
    pub client: Option<ClientSerial>,
    /// Its peer.
    pub peer: Option<String>,
    /// The database.
    pub database: Option<Arc<str>>,
    /// The user.
    pub user: Option<Arc<str>>,
    /// More, in words.
    pub detail: String,
}

//! The events that an engine handles, and the actions that it asks for. Both sets are complete: no
//! other thing makes the engine work, and the engine does nothing else than write to its ports.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use refrain_config::{Host, Options};

use crate::ids::{ClientSerial, Conn, Core, Peer};
use crate::message::CoreMessage;
use crate::parts::Parts;
use crate::secured::Secured;
use crate::transfer::Transfer;

/// Something that happened outside of the engine.
#[derive(Debug)]
pub enum Event<'a, P: Parts> {
    /// A client connected; the loop got `conn` from [`crate::Ports::open`].
    Accepted {
        /// The connection's number.
        conn: Conn,
        /// The peer of the connection.
        peer: Peer,
    },
    /// A connection is encrypted from now on: an [`Action::StartTls`] succeeded, or the loop has
    /// encrypted the connection to a server by itself, before [`Event::Connected`].
    Secured {
        /// The connection's number.
        conn: Conn,
        /// The encryption.
        secured: Arc<Secured>,
    },
    /// An [`Action::Connect`] succeeded.
    Connected {
        /// The connection's number.
        conn: Conn,
    },
    /// An [`Action::Connect`] or an [`Action::StartTls`] failed. The engine closes `conn` in
    /// answer.
    Failed {
        /// The connection's number.
        conn: Conn,
        /// The system's error, or that of the handshake.
        why: &'a str,
    },
    /// Bytes arrived, in order.
    Bytes {
        /// The connection that the bytes came from.
        conn: Conn,
        /// The bytes; never empty.
        bytes: &'a [u8],
    },
    /// The kernel has sent all bytes that it got for `conn`. More may be queued by now.
    Drained {
        /// The connection's number.
        conn: Conn,
    },
    /// The peer has gone, or has ended its stream and may go on reading. The engine closes `conn`
    /// in answer, at the latest when the peer has the replies to its requests.
    Closed {
        /// The connection's number.
        conn: Conn,
        /// The system's error, unless the peer ended the stream in order.
        why: Option<&'a str>,
    },
    /// Another core handed over a server or a client; the loop got `conn` from
    /// [`crate::Ports::open`].
    Arrived {
        /// The connection's number at this core.
        conn: Conn,
        /// The server or client, as the other core's engine had it.
        transfer: Box<Transfer<P>>,
    },
    /// Give clients that do nothing at this moment, and did something lately, to another core, at
    /// most so many. Each leads to an [`Action::HandOver`].
    GiveClients {
        /// The core that gets them.
        to: Core,
        /// The number of clients, at most.
        most: usize,
    },
    /// Time passed; see [`crate::Engine::next_tick`].
    Tick,
    /// Another core sent a message.
    Message(CoreMessage),
    /// The operator gave a command.
    Command(Command),
    /// The answer to an [`Action::Ask`].
    Answered(P::Answer),
}

/// A command of the operator. Every core gets the same command.
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
    /// Close each server at these addresses once its client is done with it: the name has others
    /// now.
    LeaveAddresses(Arc<str>, Arc<[IpAddr]>),
    /// Forget everything that the protocol has learned of queries.
    Flush,
    /// Use these options from now on.
    Reload(Arc<Options>),
    /// Take no new clients; close each client when its transaction is over.
    Drain,
    /// Close every client and server at once.
    Stop,
}

/// A task of the loop for the engine, other than to send or to close.
#[derive(Debug)]
pub enum Action<P: Parts> {
    /// Open a connection. `conn` comes from the engine; the answer is [`Event::Connected`] or
    /// [`Event::Failed`]. The loop resolves names.
    Connect {
        /// The connection's number.
        conn: Conn,
        /// The server's host.
        host: Arc<Host>,
    },
    /// Encrypt a connection: shake hands with the peer. The answer is [`Event::Secured`] or
    /// [`Event::Failed`]. From here on [`Event::Bytes`] has the bytes that were decrypted, and all
    /// bytes to send are encrypted, except for the first `clear` of them.
    StartTls {
        /// The connection's number.
        conn: Conn,
        /// The peer to shake hands with.
        with: TlsPeer,
        /// Number of bytes queued before, which are sent as they are.
        clear: usize,
        /// The beginning of the client's handshake, as far as it has come.
        early: Vec<u8>,
    },
    /// Receive nothing more on `conn` for now. The loop may still step bytes received already.
    Pause {
        /// The connection's number.
        conn: Conn,
    },
    /// Receive again.
    Resume {
        /// The connection's number.
        conn: Conn,
    },
    /// Move a server or a client to another core: take its socket off this core's driver, call
    /// [`crate::Ports::release`], and give socket and transfer to `to`, which steps
    /// [`Event::Arrived`].
    HandOver {
        /// The connection's number at this core.
        conn: Conn,
        /// The core that gets the connection.
        to: Core,
        /// The server or client, as this engine has it.
        transfer: Box<Transfer<P>>,
    },
    /// Send a message to another core, which steps [`Event::Message`].
    Tell {
        /// The other core.
        core: Core,
        /// The message.
        message: CoreMessage,
    },
    /// Do this work for the protocol. The answer is [`Event::Answered`].
    Ask(P::Request),
    /// Write this line to the log.
    Note(Box<Note>),
}

/// The peer of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsPeer {
    /// A client that has asked for encryption.
    Client,
    /// A client that has begun the handshake without a request.
    DirectClient,
    /// A server of this host that has been asked for encryption.
    Server(Arc<Host>),
}

/// The importance of a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something is wrong with Refrain or with a server.
    Error,
    /// Something is wrong with a client, or a limit was reached.
    Warn,
    /// The operator wants to see this in normal times.
    Info,
    /// A session began or ended.
    Debug,
}

/// Which parts of sessions the operator wants to see in normal times, each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionNotes {
    /// Logins of clients, and to servers.
    pub logins: bool,
    /// Ends of clients' sessions.
    pub ends: bool,
}

impl SessionNotes {
    /// Returns the importance of a login.
    pub(crate) fn login_level(self) -> Level {
        if self.logins { Level::Info } else { Level::Debug }
    }

    /// Returns the importance of the end of a session that ends without an error.
    pub(crate) fn end_level(self) -> Level {
        if self.ends { Level::Info } else { Level::Debug }
    }
}

/// A line for the log.
#[derive(Clone, Debug)]
pub struct Note {
    /// The importance of the line.
    pub level: Level,
    /// Whether the line is written however many say the same.
    pub is_each: bool,
    /// The reason as a short key (see [`crate::disconnect::DisconnectReason`] and [`News`]).
    pub cause: &'static str,
    /// The protocol's code of the error that the client gets, or that the server has sent.
    pub code: Option<Cow<'static, str>>,
    /// The client concerned.
    pub client: Option<ClientSerial>,
    /// The client's address, or `unix`.
    pub peer: Option<String>,
    /// The database.
    pub database: Option<Arc<str>>,
    /// The user.
    pub user: Option<Arc<str>>,
    /// The address of the server concerned.
    pub server: Option<String>,
    /// The details, in words.
    pub detail: String,
}

/// Something that the log tells and that ends no client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A client has logged in.
    ClientLogin,
    /// Refrain has logged in to a server.
    ServerLogin,
    /// Servers can be connected to again.
    ServerFound,
    /// A host is not in the state that a pool wants.
    HostUnsuited,
    /// A server was closed to make room for another pool.
    ServerEvicted,
    /// Clients wait for seconds, since a pool has as many servers as it may have.
    PoolFull,
    /// The clients of such a pool wait no longer.
    PoolFullOver,
    /// A command took as long as the log is to tell.
    Duration,
    /// A cancel request for a client of another process did not get there.
    CancelLost,
    /// A login at the dashboard was wrong.
    DashboardLogin,
    /// A server cannot say how far it is, so reads stay on the primary.
    StandbyReads,
}

impl News {
    const ALL: [Self; 11] = [
        Self::ClientLogin,
        Self::ServerLogin,
        Self::ServerFound,
        Self::HostUnsuited,
        Self::ServerEvicted,
        Self::PoolFull,
        Self::PoolFullOver,
        Self::Duration,
        Self::CancelLost,
        Self::DashboardLogin,
        Self::StandbyReads,
    ];

    /// Returns the key that stands in the log.
    pub fn key(self) -> &'static str {
        match self {
            Self::ClientLogin => "client_login",
            Self::ServerLogin => "server_connected",
            Self::ServerFound => "server_found",
            Self::HostUnsuited => "host_unsuited",
            Self::ServerEvicted => "server_evicted",
            Self::PoolFull => "pool_full",
            Self::PoolFullOver => "pool_full_over",
            Self::Duration => "duration",
            Self::CancelLost => "cancel",
            Self::DashboardLogin => "dashboard_login",
            Self::StandbyReads => "standby_reads",
        }
    }

    /// Returns the words for the log of the news with this key.
    pub fn words(key: &str) -> Option<&'static str> {
        let news = Self::ALL.into_iter().find(|news| news.key() == key)?;
        Some(match news {
            Self::ClientLogin => "client logged in",
            Self::ServerLogin => "logged in to a server",
            Self::ServerFound => "the server can be connected to again",
            Self::HostUnsuited => "the server is not in the state that the pool wants",
            Self::ServerEvicted => "a server was closed to make room for another pool",
            Self::PoolFull => "clients wait, because a limit of servers is reached",
            Self::PoolFullOver => "clients no longer wait because of a limit of servers",
            Self::Duration => "duration",
            Self::CancelLost => "a cancel request is not passed on",
            Self::DashboardLogin => "a login at the dashboard was wrong",
            Self::StandbyReads => "reads stay on the primary",
        })
    }
}

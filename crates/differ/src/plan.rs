//! The plan of a run, and the steps of its episodes.

use crate::client::Peers;
use crate::features::Features;
use crate::msg::Msg;
use crate::setup::Servers;
use crate::shrink::Parts;
use std::fmt;

/// A step: everything that clients send before the test reads the replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Messages of one client, or of several at once.
    Send(Vec<(usize, Vec<Msg>)>),
    /// DDL by a third connection straight to the server, in both databases.
    Outside(Vec<u8>),
    /// Time for the proxy to ask the server which statements are reads.
    Pause,
    /// A client disconnects, if it is connected, and connects again.
    Connect {
        /// Number of the client.
        client: usize,
        /// Whether the client sends Terminate first.
        polite: bool,
        /// Start-up parameters besides user and database.
        params: Vec<(String, String)>,
    },
}

impl Parts for Step {
    fn counts(&self) -> Vec<usize> {
        match self {
            Self::Send(sends) => sends.iter().map(|(_, msgs)| msgs.len()).collect(),
            Self::Outside(_) | Self::Pause | Self::Connect { .. } => Vec::new(),
        }
    }

    fn drop_client(&mut self, at: usize) {
        if let Self::Send(sends) = self {
            sends.remove(at);
        }
    }

    fn drop_message(&mut self, client: usize, at: usize) {
        if let Self::Send(sends) = self {
            sends[client].1.remove(at);
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { client, polite, params } => {
                let how = if *polite { "after Terminate" } else { "after closing" };
                writeln!(f, "  client {client}: connects {how}, {params:?}")
            }
            Self::Pause => writeln!(f, "  a pause"),
            Self::Outside(sql) => writeln!(f, "  outside: {}", sql.escape_ascii()),
            Self::Send(sends) => sends.iter().try_for_each(|(client, msgs)| {
                msgs.iter().try_for_each(|msg| writeln!(f, "  client {client}: {msg}"))
            }),
        }
    }
}

/// The options that all episodes of a run share.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The proxy and the server.
    pub peers: Peers,
    /// Parts of the generator in use.
    pub features: Features,
    /// The most clients in an episode.
    pub clients: usize,
    /// Number of servers that the proxy may use at once for the database.
    pub pool_size: usize,
    /// Whether the proxy keeps its servers between episodes.
    pub servers: Servers,
    /// Number of segments in an episode.
    pub length: u64,
    /// Whether the steps are random queries rather than random messages.
    pub queries: bool,
}

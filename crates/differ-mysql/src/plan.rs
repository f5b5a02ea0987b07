//! The plan of a run, and the steps of its episodes.

use crate::client::{Login, Peers};
use crate::command::Command;
use refrain_differ::features::Features;
use refrain_differ::setup::Servers;
use refrain_differ::shrink::Parts;
use std::fmt;

/// A step: everything that clients send before the test reads the replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Commands of one client, or of several at once.
    Send(Vec<(usize, Vec<Command>)>),
    /// A client disconnects, if it is connected, and connects again.
    Connect {
        /// Number of the client.
        client: usize,
        /// Whether the client sends COM_QUIT first.
        polite: bool,
        /// What it logs in with.
        login: Login,
    },
}

impl Parts for Step {
    fn counts(&self) -> Vec<usize> {
        match self {
            Self::Send(sends) => sends.iter().map(|(_, commands)| commands.len()).collect(),
            Self::Connect { .. } => Vec::new(),
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
            Self::Connect { client, polite, login } => {
                let how = if *polite { "after QUIT" } else { "after closing" };
                let Login { agreed, schema, collation } = login;
                let agreed = agreed.names();
                writeln!(f, "  client {client}: connects {how}, {schema} {collation} {agreed}")
            }
            Self::Send(sends) => sends.iter().try_for_each(|(client, commands)| {
                commands.iter().try_for_each(|command| writeln!(f, "  client {client}: {command}"))
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
    /// Number of servers that the proxy may use at once.
    pub pool_size: usize,
    /// Whether the proxy keeps its servers between episodes.
    pub servers: Servers,
    /// Number of commands in an episode.
    pub length: u64,
}

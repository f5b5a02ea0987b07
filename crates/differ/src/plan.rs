//! What a run is to do, and what the steps of its episodes are.

use crate::client::Peers;
use crate::features::Features;
use crate::msg::Msg;
use crate::setup::Servers;
use std::fmt;

/// One step: what is sent before replies are awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Messages of one client, or of several at once.
    Send(Vec<(usize, Vec<Msg>)>),
    /// DDL by a third connection straight to the server, in both databases.
    Outside(Vec<u8>),
    /// A client leaves, if it is there, and comes back.
    Connect {
        /// Which client.
        client: usize,
        /// Whether it says goodbye.
        polite: bool,
        /// Its start-up parameters besides user and database.
        params: Vec<(String, String)>,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { client, polite, params } => {
                let how = if *polite { "after Terminate" } else { "after closing" };
                writeln!(f, "  client {client}: connects {how}, {params:?}")
            }
            Self::Outside(sql) => writeln!(f, "  outside: {}", sql.escape_ascii()),
            Self::Send(sends) => sends.iter().try_for_each(|(client, msgs)| {
                msgs.iter().try_for_each(|msg| writeln!(f, "  client {client}: {msg}"))
            }),
        }
    }
}

/// What all episodes of a run have in common.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom to talk to.
    pub peers: Peers,
    /// What may be generated.
    pub features: Features,
    /// At most this many clients in an episode.
    pub clients: usize,
    /// How many servers the proxy may use at once for the database.
    pub pool_size: usize,
    /// What servers the proxy has at the start of an episode.
    pub servers: Servers,
    /// Segments in an episode.
    pub length: u64,
    /// Whether steps are random queries, in the place of random messages.
    pub queries: bool,
}

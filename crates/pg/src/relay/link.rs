//! A client and the server lent to it, with everything that a message between them may touch.
//!
//! Both directions borrow a [`Link`]: [`crate::relay::to_server`] from the client to the server,
//! and [`crate::relay::to_client`] back.

use refrain_pool::Linked;
use refrain_pool::disconnect::DisconnectReason;

use crate::pipeline::outstanding::Seq;
use crate::relay::pipe::{Pipeline, write_fake};
use crate::state::client::statements::ClientStatements;
use crate::state::parts::{Client, Pg};
use crate::statements::of_client::ClientStatement;

/// A client and its server.
pub(crate) struct Link<'a> {
    pub(crate) pipe: Pipeline<'a>,
    pub(crate) client: &'a mut Client,
}

/// Why Refrain stops reading a client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The rest of the input is the beginning of a message.
    More,
    /// The next message depends on replies that are still to come.
    Replies,
    /// The next message waits for a job that the client's server does for Refrain.
    Job,
    /// The session ends.
    End(DisconnectReason),
}

impl<'a> From<Linked<'a, Pg>> for Link<'a> {
    #[inline]
    fn from(linked: Linked<'a, Pg>) -> Self {
        let Linked { now, client, server, core_state, ports } = linked;
        Self { pipe: Pipeline { now, server, core_state, ports }, client }
    }
}

impl Link<'_> {
    /// Begins the client's turn at a shared server: sends the fake replies that stood behind the
    /// replies to others.
    pub(crate) fn begin_turn(&mut self) {
        self.pipe.server.session.go_on();
        while let Some((seq, reply)) = self.pipe.server.session.outstanding.take_fake_reply() {
            write_fake(self.pipe.ports.out(self.client.conn()), reply);
            self.settle(seq);
        }
    }

    /// Returns the end of what is queued to the client, if what comes behind it is to be kept, or
    /// may have to be taken back.
    #[inline]
    pub(crate) fn kept_from(&mut self) -> Option<usize> {
        let keeps = self.client.session.results.is_awaited();
        keeps.then(|| {
            let queued = self.pipe.ports.out(self.client.conn()).len();
            self.client.session.results.begin_bytes(queued);
            queued
        })
    }

    /// Notes which server gives the reply that is to be kept.
    #[cold]
    pub(crate) fn note_origin(&mut self) {
        let origin = self.pipe.server.session.origin;
        let place = self.pipe.pool().shared.protocol.place();
        self.client.session.results.comes_from(&place.changes, origin);
    }

    /// Makes the changes by requests up to and including `seq` final.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.client.session.statements.settle(seq);
        self.pipe.server.session.statements.settle(seq);
    }
}

/// Calls `change` for a statement of the client, named or unnamed, found by its ID.
pub(crate) fn for_client_statement(
    statements: &mut ClientStatements,
    id: u64,
    change: impl FnOnce(&mut ClientStatement),
) {
    if let Some(statement) = statements.by_id(id) {
        change(statement);
    }
}

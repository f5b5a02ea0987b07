//! A client and the server lent to it, with everything that a message between them may touch.
//!
//! Both directions borrow a [`Link`]: [`crate::relay::to_server`] from the client to the server,
//! and [`crate::relay::to_client`] back.

use refrain_pool::Linked;
use refrain_pool::disconnect::DisconnectReason;
use refrain_wire::tag::back;
use refrain_wire::write;

use crate::pipeline::outstanding::{FakeReply, OutstandingRequest, ReplyAction, RequestKind, Seq};
use crate::relay::pipe::Pipeline;
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
    /// Sends the client a fake reply when its turn comes: at once if nothing is outstanding, else
    /// behind the replies before it (E20).
    pub(crate) fn fake(&mut self, kind: RequestKind, reply: FakeReply) -> Seq {
        let (seq, now) = self
            .pipe
            .server
            .session
            .outstanding
            .push(OutstandingRequest::new(kind, ReplyAction::Fake(reply)));
        if let Some(reply) = now {
            write_fake(self.pipe.ports.out(self.client.conn()), reply);
        }
        seq
    }

    /// Returns the end of what is queued to the client, if what comes behind it is to be kept.
    #[inline]
    pub(crate) fn kept_from(&mut self) -> Option<usize> {
        let keeps = self.client.session.results.is_awaited();
        keeps.then(|| self.pipe.ports.out(self.client.conn()).len())
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

/// Appends a fake reply.
pub(crate) fn write_fake(out: &mut Vec<u8>, reply: FakeReply) {
    match reply {
        FakeReply::Parse => write::bare(out, back::PARSE_COMPLETE),
        FakeReply::Close => write::bare(out, back::CLOSE_COMPLETE),
        FakeReply::Deallocate => write::command_complete(out, b"DEALLOCATE"),
        FakeReply::DeallocateAll => write::command_complete(out, b"DEALLOCATE ALL"),
        FakeReply::NoRows => write::bare(out, back::NO_DATA),
    }
}

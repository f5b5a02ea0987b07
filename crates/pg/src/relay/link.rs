//! A client and the server lent to it, with all that a message between them may touch.
//!
//! Both directions borrow this: [`crate::relay::to_server`] from the client to the server, [`crate::relay::to_client`] back.

use crate::ground::disconnect::DisconnectReason;
use crate::ground::time::Now;
use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq,
};
use crate::pipeline::schema::DEFINES;
use crate::pipeline::undo::{ClientUndo, ServerUndo};
use crate::state::client::Client;
use crate::state::core_state::CoreState;
use crate::state::pool::Pool;
use crate::state::ports::Ports;
use crate::state::server::Server;
use crate::statements::of_client::{ClientStatement, Name};
use refrain_wire::tag::back;
use refrain_wire::write;

/// A client and its server.
pub(crate) struct Link<'a> {
    pub(crate) now: Now,
    pub(crate) client: &'a mut Client,
    pub(crate) server: &'a mut Server,
    pub(crate) core_state: &'a mut CoreState,
    pub(crate) ports: &'a mut Ports,
}

/// Why the reading of a client's messages stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The rest is the beginning of a message.
    More,
    /// The next message depends on replies that are still to come.
    Replies,
    /// It waits for a job, which the client's server does.
    Job,
    /// The session ends.
    End(DisconnectReason),
}

/// What a statement is called on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// By its internal name, in this generation.
    Named(crate::statements::statement::Generation),
    /// It is the unnamed one.
    Unnamed,
}

impl Link<'_> {
    /// The buffer of what goes to the server.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.ports.out(self.server.conn)
    }

    /// The pool of both.
    #[inline]
    pub(crate) fn pool(&mut self) -> &mut Pool {
        self.core_state.pool(self.server.pool)
    }

    /// Records what a message just sent makes the server owe. Does not touch what is made up: see
    /// [`Link::make_up`].
    #[inline]
    pub(crate) fn owe(&mut self, entry: OutstandingRequest) -> Seq {
        if self.server.outstanding.is_empty() {
            self.server.asked = self.now;
        }
        if entry.traits.intersects(DEFINES) {
            self.begins_to_define();
        }
        self.server.outstanding.push(entry).0
    }

    /// What is sent may change the schema: from now on, and until its transaction is over.
    #[cold]
    fn begins_to_define(&mut self) {
        if self.server.defining.is_none() {
            let defining = self.pool().shared.begin_defining();
            self.server.defining = Some(defining);
        }
    }

    /// Records a message of our own whose reply nobody is to see.
    pub(crate) fn owe_us(&mut self, kind: RequestKind, purpose: Purpose, statement: u64) -> Seq {
        self.owe(OutstandingRequest::new(kind, ReplyAction::Skip(purpose)).about(statement))
    }

    /// Gives the client a reply of our making when its turn comes, which may be now.
    pub(crate) fn fake(&mut self, kind: RequestKind, made: FakeReply) -> Seq {
        let (seq, now) =
            self.server.outstanding.push(OutstandingRequest::new(kind, ReplyAction::Fake(made)));
        if let Some(made) = now {
            write_fake(self.ports.out(self.client.conn), made);
        }
        seq
    }

    /// Records a change to the client's map that the server may make undone.
    pub(crate) fn undoable(&mut self, seq: Seq, undo: ClientUndo) {
        if self.may_fail(seq) {
            self.client.undos.push(seq, undo);
        }
    }

    /// Records a change to the server's set that the server may make undone.
    pub(crate) fn undoable_there(&mut self, seq: Seq, undo: ServerUndo) {
        self.server.undos.push(seq, undo);
    }

    /// A reply that was made up at once is final: since nothing was owed, no error can come before it.
    fn may_fail(&self, seq: Seq) -> bool {
        let outstanding = &self.server.outstanding;
        !(outstanding.is_empty() && seq + 1 == outstanding.next_seq())
    }

    /// Makes the changes of list of outstanding requests entries up to and with `seq` final.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.client.undos.settle(seq);
        self.server.undos.settle(seq);
    }

    /// Changes a statement of the client's, under whatever name.
    pub(crate) fn for_client_statement(
        &mut self,
        id: u64,
        change: impl FnOnce(&mut ClientStatement),
    ) {
        if let Some(unnamed) = &mut self.client.unnamed
            && unnamed.held.cached().statement.id == id
        {
            change(unnamed);
        } else if let Some((_, statement)) = self.client.names.by_id(id) {
            change(statement);
        }
    }

    /// The name the client gave to an entry's statement, for words that PostgreSQL says about it.
    pub(crate) fn client_name(&self, entry: &OutstandingRequest) -> Option<Name> {
        let (id, mark) = (entry.statement, entry.name);
        if id == 0 {
            return None;
        }
        let closed = || {
            self.client.undos.iter().find_map(|undo| match undo {
                ClientUndo::Closed(name, statement) => {
                    statement.is(id, name, mark).then_some(&**name)
                }
                ClientUndo::Named(_) | ClientUndo::Unnamed(_) | ClientUndo::Lent(..) => None,
            })
        };
        let name = self.client.names.marked(id, mark).or_else(closed);
        Some(name.map_or_else(Name::new, Name::from_slice))
    }
}

/// Appends a reply of our making.
pub(crate) fn write_fake(out: &mut Vec<u8>, made: FakeReply) {
    match made {
        FakeReply::Parse => write::bare(out, back::PARSE_COMPLETE),
        FakeReply::Close => write::bare(out, back::CLOSE_COMPLETE),
        FakeReply::Deallocate => write::command_complete(out, b"DEALLOCATE"),
        FakeReply::DeallocateAll => write::command_complete(out, b"DEALLOCATE ALL"),
        FakeReply::NoRows => write::bare(out, back::NO_DATA),
    }
}

//! A server with the replies that it owes, and everything that a request to it may touch. No
//! client is within reach: what only talks to the server borrows a [`Pipeline`], whether a client
//! holds the server, a job, or nobody.

use refrain_pg_wire::back::{Fields, Status, field};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::event::Level;
use refrain_pool::server::HostFinding;
use refrain_pool::{Conn, Now, note_server_error, note_standby_reads};
use refrain_sql::Traits;

use crate::ground::schema::DEFINES;
use crate::ground::server_state::{self, IN_RECOVERY};
use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq,
};
use crate::relay::words::logged;
use crate::state::parts::{CoreState, Pool, Ports, Server};

/// A server and what it owes.
pub(crate) struct Pipeline<'a> {
    pub(crate) now: Now,
    pub(crate) server: &'a mut Server,
    pub(crate) core_state: &'a mut CoreState,
    pub(crate) ports: &'a mut Ports,
}

impl Pipeline<'_> {
    /// Returns the buffer of bytes for the server.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.ports.out(self.server.conn())
    }

    /// Returns the pool of the server. No tick visits the pool for that.
    #[inline]
    pub(crate) fn pool(&mut self) -> &mut Pool {
        self.core_state.pool_in_use(self.server.pool())
    }

    /// Returns the pool of the client that the server is lent to, whose statements are that pool's:
    /// the pool of the server, or that beside which it has standbys.
    #[inline]
    pub(crate) fn home(&mut self) -> &mut Pool {
        let home = self.server.session.replayed.home();
        self.core_state.pool_in_use(home.unwrap_or(self.server.pool()))
    }

    /// Records the reply that the server owes for a message just sent, and returns the number of
    /// the request. For replies that the server does not send, see [`Pipeline::fake`].
    #[inline]
    pub(crate) fn owe(&mut self, request: OutstandingRequest) -> Seq {
        if self.server.session.outstanding.is_empty() {
            self.server.request_begins(self.now);
        }
        if request.traits.intersects(DEFINES) {
            self.begins_to_define();
        }
        self.server.session.outstanding.push(request).0
    }

    /// Sends a client a fake reply when its turn comes: at once if nothing is outstanding, else
    /// behind the replies before it (E20).
    pub(crate) fn fake(&mut self, client: Conn, kind: RequestKind, reply: FakeReply) -> Seq {
        let request = OutstandingRequest::new(kind, ReplyAction::Fake(reply));
        let (seq, now) = self.server.session.outstanding.push(request);
        if let Some(reply) = now {
            write_fake(self.ports.out(client), reply);
        }
        seq
    }

    /// Notes that a request that was sent in pieces may do more than its beginning shows.
    pub(crate) fn owes_more(&mut self, seq: Seq, traits: Traits) {
        self.server.session.outstanding.add_traits(seq, traits);
        if traits.intersects(DEFINES) {
            self.begins_to_define();
        }
    }

    /// Notes that the request just sent may change the schema, from now on until its transaction is
    /// over.
    #[cold]
    fn begins_to_define(&mut self) {
        if !self.server.session.transaction.is_defining() {
            let defining = self.pool().shared.protocol.begin_defining();
            self.server.session.transaction.begin_defining(defining);
        }
    }

    /// Records a request of Refrain's own, whose reply no client may see.
    pub(crate) fn owe_us(&mut self, kind: RequestKind, purpose: Purpose, statement: u64) -> Seq {
        self.owe(OutstandingRequest::new(kind, ReplyAction::Skip(purpose)).about(statement))
    }

    /// Logs the FATAL error by which the server ends its session.
    #[cold]
    pub(crate) fn note_last_words(&mut self, fields: &Fields<'_>) {
        let (id, pid) = (self.server.pool(), self.server.pid());
        let Some(pool) = self.core_state.peek_pool(id) else { return };
        let words = logged(fields.get(field::MESSAGE).unwrap_or_default());
        let sqlstate = logged(fields.sqlstate());
        note_server_error(
            self.ports,
            (pool, self.server.host(), pid),
            Level::Info,
            sqlstate,
            &words,
        );
    }

    /// Tells the log, once for each pool, that a server cannot say how far it is, with its error.
    #[cold]
    pub(crate) fn note_unsaid(&mut self, fields: &Fields<'_>) {
        if std::mem::replace(&mut self.pool().protocol.unsaid_told, true) {
            return;
        }
        let Some(pool) = self.core_state.peek_pool(self.server.pool()) else { return };
        let host = self.server.host();
        let words = logged(fields.get(field::MESSAGE).unwrap_or_default());
        let detail = format!("{host} cannot say how far it is: {words}");
        note_standby_reads(self.ports, (pool, host), logged(fields.sqlstate()), detail);
    }

    /// Notes a parameter that the server reports and that no client can set, if it shows that the
    /// server's state has changed.
    #[inline]
    pub(crate) fn note_state(&mut self, name: &[u8], value: Option<&[u8]>) {
        if name == IN_RECOVERY {
            self.note_recovery(value);
        }
    }

    #[cold]
    fn note_recovery(&mut self, value: Option<&[u8]>) {
        let (wants, is_standby) =
            (self.pool().settings.server.target_session_attrs, value == Some(b"on"));
        self.server.note_role(is_standby);
        if let Some(finding) = server_state::of_report(wants, is_standby) {
            self.find_host(finding);
        }
    }

    /// Takes in what the server has shown about its host's state.
    #[cold]
    pub(crate) fn find_host(&mut self, finding: HostFinding) {
        self.core_state.find_host(self.server, finding, self.now, self.ports);
    }

    /// Notes that sessions may, or may not, write unless they say otherwise: the server's
    /// configuration has changed.
    #[cold]
    pub(crate) fn note_read_only(&mut self, is_read_only: bool) {
        let wants = self.pool().settings.server.target_session_attrs;
        if let Some(finding) = server_state::of_default(wants, is_read_only) {
            self.find_host(finding);
        }
    }

    /// Notes the status that a ReadyForQuery reports. At the end of a transaction its changes to
    /// the schema and to defaults are final.
    #[inline]
    pub(crate) fn becomes_ready(&mut self, status: Status) {
        let session = &mut self.server.session;
        session.outstanding.ready(status);
        if status != Status::Idle {
            if session.transaction.is_writing() {
                session.transaction.stay_writes(&session.outstanding);
            }
            return;
        }
        if session.transaction.take_schema() {
            // Other sessions see the new schema from this commit on. A statement that they have
            // planned since the command ran was planned for the old one.
            self.pool().shared.protocol.schema_change();
        }
        if self.server.session.transaction.is_writing() {
            self.writes_take_effect();
        }
        let session = &mut self.server.session;
        drop(session.transaction.end_defining(&session.outstanding));
        if session.transaction.take_defaults() {
            self.renew();
        }
    }

    /// Voids what a transaction has made wrong that is over.
    #[cold]
    pub(crate) fn writes_take_effect(&mut self) {
        let session = &mut self.server.session;
        session.transaction.end_writes(&session.outstanding);
        self.pool().counters.protocol.cache_voids += 1;
    }

    /// Notes that the defaults of new sessions have changed: servers of the same host are connected
    /// anew as they come free. A standby may begin sessions with the old ones for a while.
    #[cold]
    fn renew(&mut self) {
        self.pool().shared.protocol.place().clone().defaults_change();
        self.core_state.shared.renew(&self.server.host().to_string());
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

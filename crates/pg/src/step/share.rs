//! Reads that share a server with those of other clients: they join a server that works for others,
//! or let others join.
//!
//! The pool has the servers' lines (`share.rs` of `refrain-pool`). Which segments may share a
//! server: [`crate::step::shared_read`].

use refrain_pool::ids::Conn;

use crate::engine::Step;
use crate::pipeline::outstanding::{Purpose, RequestKind};
use crate::relay::turn::drop_answered_parse;
use crate::state::client::ClientSession;
use crate::state::options::shares_reads;
use crate::state::parts::Engine;
use crate::state::server::ServerSession;
use crate::step::shared_read::{Alone, SharedRead, shared_read};

impl Step<'_, '_> {
    /// Sends a client's input to a server that works for other clients, if the input may share one
    /// and had better do so. True if all of it was sent.
    #[inline]
    pub(crate) fn share(&mut self, conn: Conn, input: &[u8]) -> bool {
        self.step.has_open_lines() && self.is_sharing(conn, input) && self.send_shared(conn, input)
    }

    /// Whether the servers of a client's pool are shared, and enough of them are at work.
    #[inline]
    fn is_sharing(&mut self, conn: Conn, input: &[u8]) -> bool {
        let Some(client) = self.step.engine.connections.client(conn) else { return false };
        let pool = client.pool();
        shares_reads(self.step.engine.core_state.pool_in_use(pool))
            && self.step.sharing().had_better_share(conn, input)
    }

    /// Sends a client's input to a server that works for other clients, if the input may share one.
    /// True if all of it was sent.
    pub(crate) fn send_shared(&mut self, conn: Conn, input: &[u8]) -> bool {
        let read = match self.read_of(conn, input) {
            Ok(SharedRead { alone: Some(why), .. }) | Err(why) => {
                return self.count_alone(conn, why);
            }
            Ok(read) => read,
        };
        let fits = |client: &ClientSession, server: &ServerSession| read.fits(client, server);
        let Some(server) = self.step.sharing().join(conn, read.takes_us(), fits) else {
            return false;
        };
        let mut link = self.linked(conn, server);
        let (used, _) = link.requests(input);
        if used < input.len() {
            // Another core has begun a new generation of the statement just now, so the server has
            // got something else than the read. That is a request of its own from here on.
            link.pipe.end_segment(Purpose::Prepare);
            self.step.sharing().leave_line(conn, server);
            return false;
        }
        read.cached.count_shared();
        link.client.session.begin_read(read.cached);
        self.step.sharing().await_turn(conn, input);
        true
    }

    /// Returns a client's input as a read, if it is one segment that may share a server.
    fn read_of(&mut self, conn: Conn, input: &[u8]) -> Result<SharedRead, Alone> {
        let Engine { connections, core_state, .. } = &mut *self.step.engine;
        let client = connections.client(conn).ok_or(Alone::Kind)?;
        shared_read(self.step.now, core_state, client, input)
    }

    /// Counts a request that shares no server. Returns false.
    fn count_alone(&mut self, conn: Conn, why: Alone) -> bool {
        if let Some(client) = self.step.engine.connections.client(conn) {
            let pool = self.step.engine.core_state.pool_in_use(client.pool());
            let counters = &mut pool.counters.protocol;
            match why {
                Alone::Kind => counters.requests_alone_kind += 1,
                Alone::Unknown => counters.requests_alone_unknown += 1,
                Alone::Slow => counters.requests_alone_slow += 1,
                Alone::Result => counters.requests_alone_result += 1,
            }
        }
        false
    }

    /// Lets other clients join at the server of a client, if all that the server owes is the
    /// replies to `input`, and that is a cheap read. What it costs is learned here.
    #[inline]
    pub(crate) fn open_line(&mut self, conn: Conn, server: Conn, input: &[u8]) {
        if !self.step.sharing().may_open_line(conn, input) {
            return;
        }
        let Ok(read) = self.read_of(conn, input) else { return };
        let (takes_us, alone) = (read.takes_us(), read.alone);
        self.linked(conn, server).client.session.begin_read(read.cached);
        if alone.is_none() {
            self.step.open_line(conn, server, input, takes_us);
            let link = self.linked(conn, server);
            drop_answered_parse(link.client, &link.pipe.server.session.outstanding);
        }
    }
}

/// Whether the server has not begun to answer the read that a client has sent. Its Bind is answered
/// first, or the Parse of a server that lacked the statement, or of a client that parses it anew.
pub(crate) fn is_unanswered(client: &ClientSession, server: &ServerSession) -> bool {
    let oldest = server.outstanding.front().map(|entry| entry.kind);
    client.read.is_some()
        && match oldest {
            Some(RequestKind::Parse | RequestKind::Bind) => true,
            // One request has all replies.
            Some(RequestKind::Query) => client.read_bytes == 0,
            _ => false,
        }
}

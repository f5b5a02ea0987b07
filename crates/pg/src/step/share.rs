//! Reads that may share a server with those of other clients: which segments they are, and which
//! servers fit them.
//!
//! The pool has the servers' lines (`share.rs` of `refrain-pool`). Here stands what PostgreSQL's
//! protocol knows: a request that may share a server is one whole segment that runs one prepared
//! statement, and the statement is a read.

use std::rc::Rc;

use refrain_pool::ids::Conn;
use refrain_wire::front::Bind;
use refrain_wire::tag::front;

use crate::engine::Step;
use crate::pipeline::outstanding::Purpose;
use crate::relay::message::Message;
use crate::state::client::ClientSession;
use crate::state::options::shares_reads;
use crate::state::server::ServerSession;
use crate::statements::columns::Columns;
use crate::statements::of_core::CachedStatement;

/// A segment that may share a server.
struct SharedRead {
    cached: Rc<CachedStatement>,
    /// The columns that the client's Parse found.
    columns: Columns,
    /// The hash of the parameter types that the client was told; zero for none.
    parameters: u64,
    /// Whether the statement is known to take no longer than `share_statement_time`.
    is_short: bool,
}

impl Step<'_, '_> {
    /// Sends a client's input to a server that works for other clients, if the input may share one
    /// and had better do so. True if all of it was sent.
    #[inline]
    pub(crate) fn share(&mut self, conn: Conn, input: &[u8]) -> bool {
        self.step.has_open_lines() && self.is_sharing(conn) && self.send_shared(conn, input)
    }

    /// Whether the servers of a client's pool are shared, and enough of them are at work.
    #[inline]
    fn is_sharing(&mut self, conn: Conn) -> bool {
        let Some(client) = self.step.engine.connections.client(conn) else { return false };
        let pool = client.pool();
        shares_reads(self.step.engine.core_state.pool(pool)) && self.step.had_better_share(conn)
    }

    fn send_shared(&mut self, conn: Conn, input: &[u8]) -> bool {
        let Some(read) = self.shared_read(conn, input).filter(|read| read.is_short) else {
            return false;
        };
        let fits = |client: &ClientSession, server: &ServerSession| read.fits(client, server);
        let Some(server) = self.step.join(conn, fits) else { return false };
        let mut link = self.linked(conn, server);
        let (used, _) = link.requests(input);
        if used < input.len() {
            // Another core has begun a new generation of the statement just now, so the server has
            // got something else than the read. That is a request of its own from here on.
            link.pipe.end_segment(Purpose::Prepare);
            self.step.leave_line(conn, server);
            return false;
        }
        link.client.session.read = Some(read.cached);
        self.step.await_turn(conn, input);
        true
    }

    /// Lets other clients join at the server of a client, if all that the server owes is the
    /// replies to `input`, and that is a short read. How long it takes is learned here.
    #[inline]
    pub(crate) fn open_line(&mut self, conn: Conn, server: Conn, input: &[u8]) {
        if !self.step.had_better_share(conn) {
            return;
        }
        let Some(read) = self.shared_read(conn, input) else { return };
        self.linked(conn, server).client.session.read = Some(read.cached);
        if read.is_short {
            self.step.open_line(conn, server, input);
        }
    }

    /// Returns a client's input as a read, if it is one segment that may share a server.
    fn shared_read(&mut self, conn: Conn, input: &[u8]) -> Option<SharedRead> {
        let name = bound_statement(input).filter(|name| !name.is_empty())?;
        let client = self.step.engine.connections.client(conn)?;
        if client.inbox.rest > 0 || !client.session.may_share() {
            return None;
        }
        let own = client.session.statements.get(name)?;
        let (columns, parameters) = (own.columns, own.parameters);
        let cached = own.held.cached().clone();
        let env = client.session.settings.env();
        let pool = self.step.engine.core_state.pool(client.pool());
        let statement = &cached.statement;
        // The label of a function may be wrong: it may change the session all the same.
        let is_read = statement.is_read(pool.shared.protocol.schema_changes())
            && statement.scan.calls == 0
            && statement.env == env;
        let is_short = cached.is_short(pool.settings.options.share_statement_time);
        is_read.then_some(SharedRead { cached, columns, parameters, is_short })
    }
}

impl SharedRead {
    /// Whether a server has the statement for certain, returns the columns that the client knows,
    /// and has the client's settings.
    fn fits(&self, client: &ClientSession, server: &ServerSession) -> bool {
        let statement = &self.cached.statement;
        server.settings.are(client.settings.expected(), client.settings.defaults())
            && server.statements.peek(statement.id).is_some_and(|slot| {
                slot.generation == statement.generation()
                    && server.outstanding.is_sure(slot)
                    && slot.found.columns == self.columns
                    && (self.parameters == 0 || slot.found.parameters == self.parameters)
            })
    }
}

/// Returns the name of the statement that a segment runs, if the segment is a Bind of the unnamed
/// portal, perhaps a Describe of it, an Execute without limit, and a Sync.
fn bound_statement(input: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    let mut next = || {
        let message = Message::read(&input[at..]).ok()?.filter(|message| message.complete)?;
        at += message.bytes.len();
        Some(message)
    };
    let bind = next().filter(|message| message.header.tag == front::BIND)?;
    let bind = Bind::read(bind.body(), true).ok()??;
    let mut message = next()?;
    if message.header.tag == front::DESCRIBE && message.body() == b"P\0" {
        message = next()?;
    }
    let runs = message.header.tag == front::EXECUTE && message.body() == [0; 5];
    let sync = next()?;
    let whole = sync.header.tag == front::SYNC && sync.header.body == 0 && at == input.len();
    (runs && whole && bind.portal.is_empty()).then_some(bind.statement)
}

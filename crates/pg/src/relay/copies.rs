//! Copies of statements on a server: prepared, closed to make room, and described.

use std::rc::Rc;

use refrain_pg_wire::write;

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq};
use crate::relay::pipe::Pipeline;
use crate::statements::columns::{Columns, Found};
use crate::statements::of_client::{ClientRef, ClientStatement};
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::{ServerRef, ServerStatement, Unnamed};
use crate::statements::statement::{Generation, Statement};

/// The name under which the server knows a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// The internal name of this generation of the statement.
    Named(Generation),
    /// None: it is the server's unnamed statement.
    Unnamed,
}

impl Called {
    /// Returns the generation of the name, `None` for the unnamed statement.
    #[inline]
    pub(crate) fn generation(self) -> Option<Generation> {
        match self {
            Self::Named(generation) => Some(generation),
            Self::Unnamed => None,
        }
    }
}

impl Pipeline<'_> {
    /// Sends a Parse under the internal name, behind the Closes that make room for it.
    pub(crate) fn send_parse_named(&mut self, statement: &Statement, action: ReplyAction) -> Seq {
        self.make_room(statement.id, statement.tail().len(), Purpose::Prepare);
        self.send_parse_there(statement, action, false)
    }

    /// Sends a Parse of the server's unnamed statement.
    pub(crate) fn send_parse_unnamed(&mut self, statement: &Statement, action: ReplyAction) -> Seq {
        write::parse(self.out(), b"", statement.tail());
        self.pool().counters.protocol.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(OutstandingRequest::new(RequestKind::Parse, action).about(statement.id));
        let unnamed = Unnamed {
            id: statement.id,
            generation: statement.generation(),
            segment: self.server.session.outstanding.segment(),
            found,
        };
        self.server.session.statements.replace_unnamed(seq, unnamed);
        seq
    }

    /// Returns a new client statement, which returns the columns that the server's copy does.
    pub(crate) fn client_statement(
        &self,
        cached: Rc<CachedStatement>,
        called: Called,
    ) -> ClientStatement {
        let (statements, generation) =
            (&self.server.session.statements, cached.statement.generation());
        let found = match called {
            Called::Unnamed => statements.unnamed().found,
            Called::Named(_) => {
                statements.peek(cached.statement.id).map(|slot| slot.found).unwrap_or_default()
            }
        };
        let columns = found.columns;
        ClientStatement::new(ClientRef::new(cached), generation, columns)
    }

    /// Writes the Parse under the internal name, and records that the server has the statement
    /// unless the Parse fails.
    pub(crate) fn send_parse_there(
        &mut self,
        statement: &Statement,
        action: ReplyAction,
        auto: bool,
    ) -> Seq {
        let (id, generation) = (statement.id, statement.generation());
        let mut name = std::mem::take(&mut self.core_state.protocol.scratch);
        name.clear();
        statement.write_name(&mut name, generation);
        write::parse(self.ports.out(self.server.conn()), &name, statement.tail());
        self.core_state.protocol.scratch = name;
        self.pool().counters.protocol.server_parses += 1;
        let found = self.found(statement);
        let seq = self.owe(OutstandingRequest::new(RequestKind::Parse, action).about(id));
        let segment = self.server.session.outstanding.segment();
        let served = ServerRef::new(statement.clone());
        let slot = ServerStatement { served, generation, segment, doubtful: false, auto, found };
        self.server.session.statements.prepare(seq, slot);
        seq
    }

    /// Returns the record of the columns that the next Parse will find: merely the Parse's number
    /// if the statement returns rows.
    pub(crate) fn found(&self, statement: &Statement) -> Found {
        let (server, parse) = (self.server.serial(), self.server.session.outstanding.next_seq());
        let settled = !statement.returns;
        let columns = if settled { Columns::Fixed } else { Columns::of(server, parse) };
        Found { columns, ..Found::default() }
    }

    /// Closes an older copy of a statement that is about to be prepared, and the least recently
    /// used statements beyond the server's limits. The Close stands right before the Parse, so
    /// messages sent earlier still find their statements, and portals made from them live on (E25).
    pub(crate) fn make_room(&mut self, id: u64, bytes: usize, purpose: Purpose) {
        if let Some(old) = self.server.session.statements.remove(id) {
            self.send_close(old, purpose);
        }
        let options = &self.core_state.pool_in_use(self.server.pool()).settings.options;
        let (count, most) = (options.max_server_statements, options.max_server_statement_bytes);
        while let Some(old) = self.server.session.statements.evict(bytes, count, most) {
            self.pool().counters.protocol.evictions += 1;
            self.send_close(old, purpose);
        }
    }

    /// Sends a Close of a server's statement, and records how to undo that.
    pub(crate) fn send_close(&mut self, old: ServerStatement, purpose: Purpose) {
        let mut name = std::mem::take(&mut self.core_state.protocol.scratch);
        name.clear();
        old.served.statement().write_name(&mut name, old.generation);
        write::close_statement(self.ports.out(self.server.conn()), &name);
        self.core_state.protocol.scratch = name;
        let id = old.served.statement().id;
        let seq = self.owe_us(RequestKind::Close, purpose, id);
        let session = &mut self.server.session;
        session.statements.close(seq, old, &session.outstanding);
    }

    /// Sends a Describe of a copy, whose reply the client does not get.
    pub(crate) fn ask_columns(&mut self, called: Called, statement: &Statement) {
        self.describe_copy(called, statement);
        let entry = OutstandingRequest::new(
            RequestKind::DescribeStatement,
            ReplyAction::Skip(Purpose::Shape),
        );
        self.asks(called, entry.about(statement.id));
    }

    /// Writes a Describe of a copy.
    pub(crate) fn describe_copy(&mut self, called: Called, statement: &Statement) {
        let mut known = std::mem::take(&mut self.core_state.protocol.scratch);
        known.clear();
        if let Called::Named(generation) = called {
            statement.write_name(&mut known, generation);
        }
        write::describe_statement(self.ports.out(self.server.conn()), &known);
        self.core_state.protocol.scratch = known;
    }

    /// Adds the outstanding request of a Describe that will say what a copy returns.
    pub(crate) fn asks(&mut self, called: Called, entry: OutstandingRequest) {
        let seq = self.server.session.outstanding.next_seq();
        let named = matches!(called, Called::Named(_)).then_some(entry.statement);
        let parse = self.server.session.statements.ask(named, seq);
        let behind = parse.and_then(|parse| u32::try_from(seq - parse).ok());
        self.owe(OutstandingRequest { behind: behind.unwrap_or(0), ..entry });
    }

    /// Counts a use of a statement that the server had.
    pub(crate) fn count_hit(&mut self) {
        self.server.session.statements.count_hit();
        self.pool().counters.protocol.prepare_hits += 1;
    }

    /// Counts a use of a statement that the server lacked.
    pub(crate) fn count_miss(&mut self) {
        self.server.session.statements.count_miss();
        self.pool().counters.protocol.prepare_misses += 1;
    }
}

//! Answers to Describe: which columns and parameters the copies of statements have, and what
//! follows where they are others than a client was told.

use refrain_pool::Conn;
use std::rc::Rc;

use refrain_pg_wire::back::{RowShape, field, row_shape};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;

use crate::pipeline::outstanding::{OutstandingRequest, ReplyAction, RequestKind, Seq};
use crate::pipeline::purposes::Done;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::statements::ClientStatements;
use crate::state::server::ServerSession;
use crate::statements::columns::{Columns, Shape, of_parameters};
use crate::statements::of_client::mark;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::{STALE_FILE, STALE_MESSAGE, STALE_ROUTINE};

/// Keeps a ParameterDescription, the first half of the answer to a Describe.
pub(crate) fn parameters_described(pipe: &mut Pipeline<'_>, body: &[u8]) {
    let hash = pipe.core_state.shared.protocol.registry.hash_bytes(body);
    pipe.server.session.front.describe_parameters(body, hash);
}

/// Handles the answer to a Describe: it tells the columns of the copy, and of every client
/// statement whose columns are those of the same Parse.
pub(crate) fn described(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
    seq: Seq,
    body: &[u8],
) {
    if entry.statement == 0 {
        return;
    }
    let id = entry.statement;
    let whole = entry.kind == RequestKind::DescribeStatement;
    if let Some(own) = session.statements.by_id(id).filter(|_| whole) {
        own.held
            .cached()
            .learn_description(&pipe.server.session.front.parameters().types, !body.is_empty());
    }
    let types = hash_columns(pipe, body, RowShape::Types);
    let columns = Columns::Known(match whole {
        true => Shape::of_statement(types, hash_columns(pipe, body, RowShape::Modifiers)),
        false => Shape::of_portal(types),
    });
    let parameters =
        if whole { of_parameters(pipe.server.session.front.parameters().hash) } else { 0 };
    if entry.action.own().is_some_and(|own| own.done == Done::Compared) {
        pipe.server.session.expected.compare(columns, parameters);
    }
    if entry.behind > 0 {
        let (server, parse) = (pipe.server.serial(), seq - u64::from(entry.behind));
        found_columns(
            &mut pipe.server.session,
            &mut session.statements,
            id,
            Columns::of(server, parse),
            columns,
            whole,
        );
    }
    if !whole {
        return;
    }
    let statements = &mut pipe.server.session.statements;
    let described = statements.describe(id, seq, columns, parameters);
    let Some((generation, columns)) = described else { return };
    let mut cached = None::<Rc<CachedStatement>>;
    session.statements.for_all_of(id, |name, own| {
        cached.get_or_insert_with(|| own.held.cached().clone());
        if entry.action == ReplyAction::Forward && mark(name) == entry.name {
            own.columns = columns;
            (own.parameters, own.generation) = (parameters, generation);
        }
    });
    // A transaction that changes the schema may be rolled back, and a standby may be behind:
    // nothing is learned from either.
    let server = &pipe.server.session;
    let tells = !server.transaction.changes_schema() && server.replayed.home().is_none();
    if let Some(cached) = cached.filter(|_| tells)
        && cached.learn_columns(generation, columns)
    {
        differs(pipe, &cached, generation);
    }
}

/// Handles the answer to a Describe of Refrain's own whose client has gone to another server: it
/// tells the columns of the copy all the same.
pub(crate) fn described_there(
    pipe: &mut Pipeline<'_>,
    entry: &OutstandingRequest,
    seq: Seq,
    body: &[u8],
) {
    let types = hash_columns(pipe, body, RowShape::Types);
    let modifiers = hash_columns(pipe, body, RowShape::Modifiers);
    let columns = Columns::Known(Shape::of_statement(types, modifiers));
    let parameters = of_parameters(pipe.server.session.front.parameters().hash);
    pipe.server.session.statements.describe(entry.statement, seq, columns, parameters);
}

/// Records the columns that a Parse found: for all client statements with the same ID, for the copy
/// that it made, and for copies that an undo would bring back; for a copy with a name only a
/// `whole` description.
fn found_columns(
    server: &mut ServerSession,
    statements: &mut ClientStatements,
    id: u64,
    before: Columns,
    columns: Columns,
    whole: bool,
) {
    let copies = &mut server.statements;
    if whole || copies.peek(id).is_none_or(|slot| slot.found.columns != before) {
        copies.find_columns(id, before, columns);
    }
    let known = |now: &mut Columns| {
        if *now == before {
            *now = columns;
        }
    };
    statements.found_columns(id, known);
}

fn hash_columns(pipe: &mut Pipeline<'_>, body: &[u8], what: RowShape) -> u64 {
    let mut rows = std::mem::take(&mut pipe.core_state.protocol.scratch);
    rows.clear();
    row_shape(&mut rows, body, what);
    let hash = pipe.core_state.shared.protocol.registry.hash_bytes(&rows);
    pipe.core_state.protocol.scratch = rows;
    hash
}

/// Begins a new generation if two copies of one generation differ: the schema has changed unseen,
/// and other servers may have the older copy.
pub(crate) fn differs(pipe: &mut Pipeline<'_>, cached: &CachedStatement, generation: u32) {
    let schema_version = pipe.home().shared.protocol.schema_version();
    if cached.statement.generation() == generation
        && cached.statement.begin_generation(generation, schema_version)
    {
        pipe.pool().counters.protocol.statements_renewed += 1;
    }
}

/// Gives the client the error of a stale plan in place of the replies to the rest of its segment.
#[cold]
pub(crate) fn refuse_behind(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
) {
    let seen = pipe.server.session.expected.generation;
    let own = session.statements.by_id(entry.statement);
    if let Some(cached) = own.map(|own| own.held.cached().clone()) {
        differs(pipe, &cached, seen);
    }
    if !pipe.server.session.outstanding.discard_segment() {
        session.reading.skip_to_sync();
    }
    let fields: [(u8, &[u8]); 6] = [
        (field::SEVERITY, b"ERROR"),
        (field::SEVERITY_PLAIN, b"ERROR"),
        (field::SQLSTATE, b"0A000"),
        (field::MESSAGE, STALE_MESSAGE),
        (field::FILE, STALE_FILE),
        (field::ROUTINE, STALE_ROUTINE),
    ];
    let out = pipe.ports.out(conn);
    write::message(out, back::ERROR_RESPONSE, |out| {
        for (code, value) in fields {
            out.push(code);
            write::string(out, value);
        }
        out.push(0);
    });
}

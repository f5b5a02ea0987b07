//! Answers without a server, for a client that has none (E86).
//!
//! A driver that just closes or prepares statements must not wait for a server, or take one from
//! another client. This is the only place that decides whether a message can be answered here.

use refrain_cache::Waiter;
use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::{Parse, Target};
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::Report;
use refrain_pg_wire::{Header, write};
use refrain_pool::disconnect::DisconnectReason;

use crate::engine::Asking;
use crate::ground::name::Name;
use crate::state::parts::{Client, CoreState, Ports};
use crate::statements::of_client::{ClientRef, ClientStatement};
use crate::statements::statement::Identity;

/// The error of a request that is cancelled while it waits for a server.
const CANCELLED: Report<'static> = Report {
    severity: "ERROR",
    sqlstate: "57014",
    message: "canceling statement due to user request",
    hint: "",
};

/// Most bytes of a message whose rest is awaited without a server. Refrain holds them, so the least
/// `buffer_high` is no smaller.
const AWAITED_MAX: usize = 8 * 1024;

/// The need of the next message of a client without a server.
pub(crate) enum Need {
    /// Nothing more: this number of bytes has been handled.
    Used(usize),
    /// A server.
    Server,
    /// The rest of a message.
    More,
    /// The end of the session: Terminate, or a malformed message.
    End(DisconnectReason),
}

/// Whether a message of this type is a request with a body. A server is not taken from others for a
/// part of one: the rest may be long in coming, and may show that no server is needed.
fn is_request(tag: u8) -> bool {
    matches!(
        tag,
        front::QUERY
            | front::PARSE
            | front::BIND
            | front::DESCRIBE
            | front::EXECUTE
            | front::CLOSE
            | front::FUNCTION_CALL
    )
}

/// Handles a message that needs no server (E86). A driver that just closes statements must not wait
/// for a server, or take one from another client.
#[inline]
pub(crate) fn serve_alone(
    client: &mut Client,
    core_state: &mut CoreState,
    ports: &mut Ports,
    input: &[u8],
) -> Need {
    if client.inbox.rest > 0 && !input.is_empty() {
        return Need::Used(client.inbox.take_rest(input));
    }
    let header = match Header::parse(input) {
        Ok(Some(header)) => header,
        Ok(None) => return Need::More,
        Err(_) => return Need::End(DisconnectReason::ClientProtocol),
    };
    let length = header.message_bytes();
    if input.len() < length && length <= AWAITED_MAX && is_request(header.tag) {
        return Need::More;
    }
    match header.tag {
        front::TERMINATE => Need::End(DisconnectReason::Terminated),
        front::QUERY if client.session.login.refuses_queries() => {
            Need::End(DisconnectReason::QueryDisallowed)
        }
        // A server has to refuse a Sync with a body.
        front::SYNC if input.len() >= length && header.body == 0 => {
            client.session.reading.synced();
            let counters = &mut core_state.pool_in_use(client.pool()).counters;
            counters.protocol.syncs_answered += 1;
            write::ready(ports.out(client.conn()), Status::Idle);
            Need::Used(length)
        }
        // A request of the segment was cancelled before the client had a server.
        tag if client.session.reading.is_skipping() && tag != front::SYNC => {
            Need::Used(client.inbox.drop_message(length, input.len()))
        }
        front::FLUSH if input.len() >= length => Need::Used(length),
        // Outside COPY, PostgreSQL ignores these.
        front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => {
            Need::Used(client.inbox.drop_message(length, input.len()))
        }
        front::CLOSE if input.len() >= length && client.session.statements.are_managed() => {
            match Target::read(&input[refrain_pg_wire::frame::HEADER_BYTES..length]) {
                Ok(Target::Statement(b"")) => client.session.statements.drop_unnamed(),
                Ok(Target::Statement(name)) => drop(client.session.statements.remove(name)),
                Ok(Target::Portal(_)) => {}
                // A server has to refuse these.
                Ok(Target::Unknown) | Err(_) => return Need::Server,
            }
            let counters = &mut core_state.pool_in_use(client.pool()).counters;
            counters.protocol.closes_answered += 1;
            write::bare(ports.out(client.conn()), back::CLOSE_COMPLETE);
            Need::Used(length)
        }
        front::PARSE if input.len() >= length && client.session.statements.are_managed() => {
            let body = &input[refrain_pg_wire::frame::HEADER_BYTES..length];
            match parse_alone(client, core_state, ports, body) {
                true => Need::Used(length),
                false => Need::Server,
            }
        }
        _ => Need::Server,
    }
}

/// Answers a Parse without a server, if a server has accepted the statement under the schema of now
/// (E85). True if it did. So a driver that prepares all its statements on all its connections at
/// start does not wait for servers that its other connections hold.
fn parse_alone(
    client: &mut Client,
    core_state: &mut CoreState,
    ports: &mut Ports,
    body: &[u8],
) -> bool {
    let Ok(parse) = Parse::read(body) else { return false };
    if parse.name.is_empty() || client.session.statements.contains(parse.name) {
        return false;
    }
    let identity =
        Identity { pool: client.pool(), env: client.session.settings.env(), tail: parse.tail };
    let Some(cached) =
        core_state.protocol.statements.find(&core_state.shared.protocol.registry, identity)
    else {
        return false;
    };
    let pool = core_state.pool_in_use(client.pool());
    let options = &pool.settings.options;
    let bounds = (options.max_client_statements as usize, options.max_client_statement_bytes);
    let room = client.session.statements.have_room(parse.tail.len(), bounds);
    if !room || !cached.is_accepted(pool.shared.protocol.schema_version()) {
        return false;
    }
    let Some(columns) = cached.columns() else { return false };
    pool.counters.protocol.client_parses += 1;
    pool.counters.protocol.parses_answered += 1;
    let generation = cached.statement.generation();
    let held = ClientRef::new(cached);
    let statement = ClientStatement::new(held, generation, columns);
    client.session.statements.insert(Name::from_slice(parse.name), statement);
    write::bare(ports.out(client.conn()), back::PARSE_COMPLETE);
    true
}

impl Asking<'_> {
    /// Answers the first request of a client that waits for a server as PostgreSQL answers one that
    /// is cancelled. Returns the number of bytes that were handled, and the clients that waited for
    /// the reply; `None` if the rest of a message may still come: PostgreSQL ignores a cancel
    /// request while it reads a message.
    pub(crate) fn cancel_waiting(&mut self, input: &[u8]) -> Option<(usize, Vec<Waiter>)> {
        let header = Header::parse(input).ok()??;
        if input.len() < header.message_bytes() && !self.client.is_paused() {
            return None;
        }
        let out = self.ports.out(self.client.conn());
        let from = out.len();
        write::error(out, &CANCELLED);
        Some(self.end_request(header, input, from))
    }

    /// Ends the first request of a client without a server. The client has got an error in its
    /// place, at `from` of its output. Returns the number of bytes that were handled, and the
    /// clients that waited for the reply.
    pub(crate) fn end_request(
        &mut self,
        header: Header,
        input: &[u8],
        from: usize,
    ) -> (usize, Vec<Waiter>) {
        let client = &mut *self.client;
        let session = &mut client.session;
        // PostgreSQL drops the unnamed statement before it looks for cancel requests.
        let unnamed = input.get(refrain_pg_wire::frame::HEADER_BYTES) == Some(&0);
        if header.tag == front::QUERY || header.tag == front::PARSE && unnamed {
            session.statements.drop_unnamed();
        }
        let mut used = 0;
        if matches!(header.tag, front::QUERY | front::FUNCTION_CALL) {
            used = client.inbox.drop_message(header.message_bytes(), input.len());
            write::ready(self.ports.out(client.conn()), Status::Idle);
        } else {
            session.reading.skip_to_sync();
        }
        client.note_reply(self.now);
        let results = &mut client.session.results;
        results.waits_no_more();
        // Others may wait for the reply that the client was to fetch.
        drop(results.take_watched());
        let waiters = match results.is_awaited() {
            true => self.keep_reply(from, true),
            false => Vec::new(),
        };
        (used, waiters)
    }
}

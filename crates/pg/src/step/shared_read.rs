//! Which segments may share a server: those that run one read.
//!
//! Such a segment binds a named statement of the client, or it is a text: a query string, or an
//! unnamed statement from its Parse to its Sync. A text runs as it is, or as the named statement
//! that autoprepare runs in its place. Nothing is sent or noted here, since the client has no
//! server yet.

use std::rc::Rc;
use std::time::Duration;

use refrain_pg_wire::front::{self as read, Bind, Parse};
use refrain_pg_wire::tag::front;
use refrain_pool::Now;
use refrain_sql::normalize::{self, Key};
use refrain_sql::reads::{may_be_read, text_may_be_read};

use crate::autoprepare::send::is_plain;
use crate::autoprepare::unnamed::{Behind, behind};
use crate::normalized::queries::Sight;
use crate::relay::message::Message;
use crate::relay::texts::statement_of_text;
use crate::state::client::ClientSession;
use crate::state::options::{autoprepares, bounds};
use crate::state::parts::{Client, CoreState};
use crate::state::server::ServerSession;
use crate::statements::columns::{Agreement, Columns};
use crate::statements::of_core::{CachedStatement, Cost};
use crate::statements::of_server::ServerStatement;
use crate::statements::statement::Identity;

/// Bytes of the replies to a statement that shares servers, at most: PostgreSQL sends them in
/// pieces of 8 KiB, and sleeps where they do not fit, which is what those behind wait for. To send
/// that much costs about what sharing saves.
const RESULT_BYTES_MAX: u32 = 16 * 1024;

/// A segment that may share a server.
pub(crate) struct SharedRead {
    pub(crate) cached: Rc<CachedStatement>,
    known: KnownToClient,
    /// Why it has a server to itself all the same, if it has.
    pub(crate) alone: Option<Alone>,
}

/// The reason why a segment does not share a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It is no single read.
    Kind,
    /// Whether it is a read, or what it costs, is not known yet.
    Unknown,
    /// The statement takes longer than `share_statement_time`.
    Slow,
    /// The statement's replies are longer than [`RESULT_BYTES_MAX`].
    Result,
}

/// The knowledge of a client about the statement that it runs.
enum KnownToClient {
    /// The client has prepared it.
    Statement {
        /// The columns that its Parse found.
        columns: Columns,
        /// The hash of the parameter types that the client was told; zero for none.
        parameters: u32,
    },
    /// The client has sent a text, and knows nothing.
    Text(Runs),
}

/// The way a text runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// As a query string, which any server parses.
    Query,
    /// As an unnamed statement that its own segment parses: no server need have it.
    Unnamed,
    /// As a statement that a server has under a name.
    Named,
}

/// A segment, by the messages that it is made of.
enum ReadForm<'a> {
    /// A Bind of a named statement, perhaps a Describe of the portal, an Execute, and a Sync.
    Named(&'a [u8]),
    /// A Parse of the unnamed statement, whose body behind the name is `tail`, and the messages
    /// behind it, which run it.
    Unnamed { tail: &'a [u8], next: &'a [u8] },
    /// A query string.
    Query(&'a [u8]),
}

/// Returns a client's input as a read, if it is one segment that may share a server.
pub(crate) fn shared_read(
    now: Now,
    core_state: &mut CoreState,
    client: &mut Client,
    input: &[u8],
) -> Result<SharedRead, Alone> {
    let form = ReadForm::read(input).ok_or(Alone::Kind)?;
    if client.inbox.rest > 0 || !client.session.may_share() {
        return Err(Alone::Kind);
    }
    let (cached, known) = match form {
        ReadForm::Named(name) => {
            let own = client.session.statements.get(name).ok_or(Alone::Kind)?;
            let (columns, parameters) = (own.columns, own.parameters);
            (own.held.cached().clone(), KnownToClient::Statement { columns, parameters })
        }
        ReadForm::Unnamed { tail, next } => {
            let (cached, runs) = unnamed_statement(core_state, client, tail, next, now)?;
            (cached, KnownToClient::Text(runs))
        }
        ReadForm::Query(text) => {
            let (cached, runs) = query_string(core_state, client, text, now)?;
            (cached, KnownToClient::Text(runs))
        }
    };
    let pool = core_state.pool_in_use(client.pool());
    let statement = &cached.statement;
    // The label of a function may be wrong: it may change the session all the same.
    if statement.scan.calls > 0 || statement.env != client.session.settings.env() {
        return Err(Alone::Kind);
    }
    let schema_changes = pool.shared.protocol.schema_changes();
    if !statement.is_read(schema_changes) {
        let undecided =
            may_be_read(&statement.scan) && statement.verdict.known(schema_changes).is_none();
        return Err(if undecided { Alone::Unknown } else { Alone::Kind });
    }
    let alone = why_alone(cached.cost(), pool.settings.options.share_statement_time);
    Ok(SharedRead { cached, known, alone })
}

/// Returns why a statement of this cost has a server to itself, if it has.
fn why_alone(cost: Option<Cost>, most: Duration) -> Option<Alone> {
    let Some(Cost { us, bytes }) = cost else { return Some(Alone::Unknown) };
    if u128::from(us) > most.as_micros() {
        Some(Alone::Slow)
    } else {
        (bytes > RESULT_BYTES_MAX).then_some(Alone::Result)
    }
}

impl SharedRead {
    /// Returns the microseconds that the statement takes, zero if that is not known.
    pub(crate) fn takes_us(&self) -> u32 {
        self.cached.cost().map_or(0, |cost| cost.us)
    }

    /// Whether a server has the client's settings and, unless the client's own text runs, has the
    /// statement for certain and returns the columns that the client knows.
    pub(crate) fn fits(&self, client: &ClientSession, server: &ServerSession) -> bool {
        server.settings.are(client.settings.expected(), client.settings.defaults())
            && match self.known {
                KnownToClient::Statement { columns, parameters } => {
                    self.has(server).is_some_and(|slot| {
                        slot.found.columns.compare(columns) == Agreement::Same
                            && (parameters == 0 || slot.found.parameters == parameters)
                    })
                }
                // The server reads the text as the client has sent it, whatever its encoding.
                KnownToClient::Text(Runs::Unnamed) => true,
                KnownToClient::Text(runs) => {
                    (runs == Runs::Query || self.has(server).is_some())
                        && client.settings.current().reads.is_plain(server.settings.encoding())
                }
            }
    }

    /// Returns a server's copy of the statement, if the server has it for certain.
    fn has<'a>(&self, server: &'a ServerSession) -> Option<&'a ServerStatement> {
        let statement = &self.cached.statement;
        server.statements.peek(statement.id).filter(|slot| {
            slot.generation == statement.generation() && server.outstanding.is_sure(slot)
        })
    }
}

/// Returns the statement that runs for a query string, or stands for it, and how it runs.
fn query_string(
    core_state: &mut CoreState,
    client: &mut Client,
    text: &[u8],
    now: Now,
) -> Result<(Rc<CachedStatement>, Runs), Alone> {
    if !reads_are_certain(client) {
        return Err(Alone::Kind);
    }
    let backslash = client.session.settings.reads_backslash();
    if !autoprepares(core_state.pool_in_use(client.pool())) {
        // A segment whose reply is to be kept is this very text: nothing else of the client's is
        // under way.
        let found = match client.session.results.text() {
            Some(cached) => Some(cached.clone()),
            None if !text_may_be_read(text, backslash) => None,
            None => statement_of_text(core_state, client.pool(), &client.session.settings, text),
        };
        return found.map(|cached| (cached, Runs::Query)).ok_or(Alone::Kind);
    }
    let scan = refrain_sql::scan_with(text, backslash);
    if !is_plain(&scan) {
        return Err(Alone::Kind);
    }
    let mut spans = std::mem::take(&mut core_state.protocol.spans);
    let options = &core_state.pool_in_use(client.pool()).settings.options;
    let most = options.autoprepare_max_literals as usize;
    let seed = core_state.shared.protocol.registry.seed();
    let key = normalize::normalize(text, seed, most, &mut spans).ok();
    let found = key.and_then(|key| {
        ready(core_state, client, Text { text, spans: &spans, key, tail: None, values: text }, now)
    });
    core_state.protocol.spans = spans;
    found.map(|found| (found, Runs::Named)).ok_or(Alone::Unknown)
}

/// Returns the statement that runs for a client's unnamed one, and how: the named one that
/// autoprepare runs in its place, or without autoprepare the unnamed one itself.
fn unnamed_statement(
    core_state: &mut CoreState,
    client: &Client,
    tail: &[u8],
    next: &[u8],
    now: Now,
) -> Result<(Rc<CachedStatement>, Runs), Alone> {
    if !reads_are_certain(client) {
        return Err(Alone::Kind);
    }
    let identity = Identity { pool: client.pool(), env: client.session.settings.env(), tail };
    let registry = &core_state.shared.protocol.registry;
    let cached = core_state.protocol.statements.find(registry, identity).ok_or(Alone::Unknown)?;
    if !autoprepares(core_state.pool_in_use(client.pool())) {
        return Ok((cached, Runs::Unnamed));
    }
    let statement = &cached.statement;
    let key = Key(statement.id);
    let text = Text { text: statement.text(), spans: &[], key, tail: Some(tail), values: next };
    let found = ready(core_state, client, text, now).ok_or(Alone::Unknown)?;
    let same = is_plain(&statement.scan) && found.statement.id == statement.id;
    if same { Ok((found, Runs::Named)) } else { Err(Alone::Kind) }
}

/// Whether it is certain under which settings a server would read a client's text.
fn reads_are_certain(client: &Client) -> bool {
    let settings = &client.session.settings;
    settings.unknown_since().is_none() && !settings.have_changed_locally()
}

/// A text about which autoprepare is asked: see [`Sight`].
struct Text<'a> {
    text: &'a [u8],
    spans: &'a [normalize::Span],
    key: Key,
    tail: Option<&'a [u8]>,
    values: &'a [u8],
}

/// Returns the statement that runs in place of a text, if that is sure.
fn ready(
    core_state: &mut CoreState,
    client: &Client,
    text: Text<'_>,
    now: Now,
) -> Option<Rc<CachedStatement>> {
    let Text { text, spans, key, tail, values } = text;
    let pool = core_state.pool_in_use(client.pool());
    let schema_version = pool.shared.protocol.schema_changes();
    let settings = client.session.settings.current();
    let (free, own) = (true, true);
    let sight = Sight { text, spans, key, tail, values, settings, schema_version, now, free, own };
    let bounds = bounds(pool);
    pool.protocol.normalized_queries.ready(&sight, &bounds)
}

impl<'a> ReadForm<'a> {
    /// Reads a client's input as one segment that runs one statement.
    fn read(input: &'a [u8]) -> Option<Self> {
        let first = Message::read(input).ok()?.filter(|message| message.complete)?;
        let next = &input[first.bytes.len()..];
        match first.header.tag {
            front::BIND => bound_statement(input).filter(|name| !name.is_empty()).map(Self::Named),
            front::QUERY if next.is_empty() => read::query_text(first.body()).ok().map(Self::Query),
            front::PARSE => {
                let parse = Parse::read(first.body()).ok()?;
                let runs = parse.name.is_empty() && behind(next) == Some(Behind::Runs);
                runs.then_some(Self::Unnamed { tail: parse.tail, next })
            }
            _ => None,
        }
    }
}

/// Returns the name of the statement that a segment runs, if the segment is a Bind of the unnamed
/// portal, perhaps a Describe of it, an Execute, and a Sync. If the Execute has a limit of rows,
/// the rest of the portal is gone behind the Sync.
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
    let runs =
        message.header.tag == front::EXECUTE && read::execute_portal(message.body()) == Ok(b"");
    let sync = next()?;
    let whole = sync.header.tag == front::SYNC && sync.header.body == 0 && at == input.len();
    (runs && whole && bind.portal.is_empty()).then_some(bind.statement)
}

//! Figures of statements: what is counted when the reply to a client's command is over.
//!
//! A statement is one that a client has prepared. Texts that come as such count together for their
//! pool, as in PostgreSQL's protocol, unless `stat_texts` has each counted by itself (`texts`):
//! that takes more than all else that is done for figures. Together count also statements whose
//! text is not all there, and those that the client has closed before the reply came.
//!
//! A statement's number is made of its pool and its text, so it is the same on all cores.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use refrain_mysql_wire::command;
use refrain_mysql_wire::reply::OkPacket;
use refrain_pool::core_state::CoreState;
use refrain_pool::event::Level;
use refrain_pool::figures::StatementFigures;
use refrain_pool::ids::PoolId;
use refrain_pool::server::Server;
use refrain_pool::{Engine, Linked, note_duration};

use crate::commands::{ReadPacket, Sent};
use crate::parts::My;
use crate::shown::without_literals;
use crate::statement::Statement;
use crate::texts::KnownText;

/// Counts a client's command that runs the statement of this number and took so many microseconds.
/// Its reply ends with this packet.
#[inline]
pub(crate) fn count(
    (server, id): (&Server<My>, u64),
    (core_state, us): (&mut CoreState<My>, u64),
    (packet, sent): (&ReadPacket<'_>, &Sent),
) {
    if !runs(sent) {
        return;
    }
    let (pool, figures) = (server.pool(), &mut core_state.protocol.figures);
    if packet.is_error() {
        return figures.count_error(id, pool);
    }
    let rows = server.session.commands.rows + OkPacket::rows_changed(packet.payload);
    figures.count(id, pool, us, rows);
}

/// Whether a command runs a statement, or a part of it.
#[inline]
fn runs(sent: &Sent) -> bool {
    matches!(sent.command, command::QUERY | command::STMT_EXECUTE | command::STMT_FETCH)
}

/// Has the log tell of a client's command that is complete and took so many microseconds, if it is
/// one of those that the options name.
#[cold]
pub(crate) fn tell(
    Linked { client, server, core_state, ports, .. }: Linked<'_, My>,
    (id, us): (u64, u64),
    (packet, sent): (&ReadPacket<'_>, &Sent),
) {
    let random = u32::from_le_bytes(core_state.random());
    let core = &core_state.protocol;
    let is_told = runs(sent) && !packet.is_error() && core.durations.tells(us, random);
    if !is_told || !ports.notes(Level::Info) {
        return;
    }
    let held = client.session.statements.get(sent.statement).map(|held| &held.statement);
    let text = match held {
        Some(held) => {
            Some(without_literals(&held.text, held.environment.has_multibyte_quotes()).into())
        }
        None => core.texts.shown(id).map(Cow::Borrowed),
    };
    let text = text.map_or_else(String::new, |text| format!(", statement {id}: {text}"));
    let detail = format!("{}.{:03} ms{text}", us / 1_000, us % 1_000);
    if let Some(pool) = core_state.peek_pool(server.pool()) {
        note_duration(ports, pool, detail);
    }
}

/// A core's part in the views of statements.
#[derive(Debug)]
pub struct CoreStatementsView {
    /// The figures of the statements.
    pub figures: StatementFigures,
    /// The statements that clients or servers of the core have.
    statements: Vec<Arc<Statement>>,
    /// How many servers have each, by its number.
    servers: HashMap<u64, u32>,
    /// The texts that the core counts by themselves.
    pub texts: Vec<KnownText>,
}

/// A statement that is known on a core.
#[derive(Debug)]
pub struct KnownStatement<'a> {
    /// Its number.
    pub id: u64,
    /// Its pool.
    pub pool: PoolId,
    /// Its text, as it was sent.
    pub sent: &'a [u8],
    /// How often clients of the core have it.
    pub clients: u32,
    /// How many servers of the core have it.
    pub servers: u32,
    /// Whether a byte of a character in the text may be a quote.
    is_multibyte: bool,
}

impl KnownStatement<'_> {
    /// Returns the text as people may see it.
    pub fn shown(&self) -> String {
        without_literals(self.sent, self.is_multibyte)
    }
}

/// Returns a core's part in the views of statements. No client is looked at.
pub fn core_statements(engine: &Engine<My>) -> CoreStatementsView {
    let core = &engine.core_state.protocol;
    let mut servers = HashMap::new();
    for server in engine.connections.servers() {
        for statement in server.session.slots.statements() {
            *servers.entry(statement.id).or_default() += 1;
        }
    }
    let statements = core.statements.all().cloned().collect();
    let (figures, texts) = (core.figures.copy(), core.texts.all());
    CoreStatementsView { figures, statements, servers, texts }
}

impl CoreStatementsView {
    /// Returns the statements that are known.
    pub fn known(&self) -> impl Iterator<Item = KnownStatement<'_>> {
        self.statements.iter().map(|statement| {
            let servers = self.servers.get(&statement.id).copied().unwrap_or(0);
            // This one and that of the registry are nobody's.
            let holders = Arc::strong_count(statement).saturating_sub(2);
            let holders = u32::try_from(holders).unwrap_or(u32::MAX);
            KnownStatement {
                id: statement.id,
                pool: statement.pool,
                sent: &statement.text,
                clients: holders.saturating_sub(servers),
                servers,
                is_multibyte: statement.environment.has_multibyte_quotes(),
            }
        })
    }
}

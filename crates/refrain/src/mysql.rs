//! The protocol of MySQL and MariaDB, as the program serves it.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use refrain_config::{Backend, General, Host};
use refrain_mysql::CoreStatementsView;
use refrain_mysql::console::{Answer, Request};
use refrain_mysql::parts::My;
use refrain_mysql::views;
use refrain_pg::snapshot::{ClientSessionView, ServerSessionView, StatementView};
use refrain_pool::Engine;
use refrain_pool::figures::SumOfFigures;
use refrain_pool::ids::{Core, PoolId};
use refrain_pool::shared::Shared;

use crate::inherit::Kind;
use crate::listen::{Places, UnixSocket};
use crate::mysql_console::{self, MyHelpers};
use crate::served::{LocalServers, Served};
use crate::tls::{Session, Store};

/// The statements of a pool with one text, over all cores.
#[derive(Default)]
struct Merged {
    id: u64,
    text: String,
    bytes: u64,
    clients: u32,
    servers: u32,
    figures: SumOfFigures,
}

/// A pool's names, and what was run there.
type Key = (Arc<str>, Arc<str>, Ran);

/// Something that clients have run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Ran {
    /// All that is not known.
    Others,
    /// A prepared statement with this text, as it was sent.
    Prepared(Box<[u8]>),
    /// A text that is shown so.
    Text(Arc<str>),
}

/// Returns the statements of these cores. Clients that agree on other capabilities have another
/// pool, with statements of its own, and count together here.
fn statements(shared: &Shared<My>, cores: &[CoreStatementsView]) -> Vec<StatementView> {
    let pools: HashMap<PoolId, _> =
        shared.pools().into_iter().map(|pool| (pool.id, pool)).collect();
    let key = |pool: PoolId, ran: Ran| {
        let pool = pools.get(&pool)?;
        Some((Arc::clone(&pool.database), Arc::clone(&pool.user), ran))
    };
    let mut figures = HashMap::new();
    cores.iter().for_each(|core| SumOfFigures::add_core(&mut figures, &core.figures));
    let mut merged: BTreeMap<Key, Merged> = BTreeMap::new();
    for known in cores.iter().flat_map(CoreStatementsView::known) {
        let Some(key) = key(known.pool, Ran::Prepared(known.sent.into())) else { continue };
        let entry = merged.entry(key).or_insert_with(|| Merged {
            id: known.id,
            text: known.shown(),
            bytes: known.sent.len() as u64,
            ..Merged::default()
        });
        entry.id = entry.id.min(known.id);
        entry.clients += known.clients;
        entry.servers += known.servers;
        if let Some(sum) = figures.remove(&known.id) {
            entry.figures.add(&sum);
        }
    }
    for text in cores.iter().flat_map(|core| &core.texts) {
        let Some(key) = key(text.pool, Ran::Text(text.shown.clone())) else { continue };
        // What has no figures any more is not listed.
        let Some(sum) = figures.remove(&text.id) else { continue };
        let entry = merged.entry(key).or_insert_with(|| Merged {
            id: text.id,
            text: text.shown.to_string(),
            bytes: text.shown.len() as u64,
            ..Merged::default()
        });
        entry.id = entry.id.min(text.id);
        entry.figures.add(&sum);
    }
    // What is left is of texts that count together, and of statements that are not known any more.
    for sum in figures.into_values() {
        let Some(key) = key(sum.pool, Ran::Others) else { continue };
        let others = || Merged { text: refrain_pg::OTHERS.to_owned(), ..Merged::default() };
        merged.entry(key).or_insert_with(others).figures.add(&sum);
    }
    merged.into_iter().map(view).collect()
}

fn view(((database, user, _), merged): (Key, Merged)) -> StatementView {
    let Merged { id, text, bytes, clients, servers, figures } = merged;
    StatementView {
        id,
        bytes,
        clients,
        servers,
        ..StatementView::of_others(&database, &user, &text, figures)
    }
}

/// No servers in this process: all are behind sockets.
pub(crate) struct NoServers;

impl LocalServers for NoServers {
    type Session = Infallible;
}

impl Served for My {
    const THREADS: &'static str = "mysql-core";

    fn serves(backend: Backend) -> bool {
        backend == Backend::Mysql
    }

    // A client waits for the greeting of the server.
    fn places(general: &General) -> Places<'_> {
        Places {
            kind: Kind::Mysql,
            addresses: &general.mysql_listen,
            socket: general.mysql_socket.as_deref().map(UnixSocket::At),
            client_speaks_first: false,
        }
    }

    type Helpers = MyHelpers;
    type Local = NoServers;

    fn client_view_of(view: views::ClientView) -> ClientSessionView {
        let views::ClientView { pinned, statements } = view;
        ClientSessionView { pinned, statements, ..ClientSessionView::default() }
    }
    fn server_view_of(view: views::ServerView) -> ServerSessionView {
        let views::ServerView { statements, statement_bytes } = view;
        ServerSessionView { statements, statement_bytes, ..ServerSessionView::default() }
    }

    type Statements = CoreStatementsView;

    fn statements_of(engine: &Engine<Self>) -> CoreStatementsView {
        refrain_mysql::core_statements(engine)
    }
    fn statements(shared: &Shared<Self>, cores: &[CoreStatementsView]) -> Vec<StatementView> {
        statements(shared, cores)
    }

    fn local(_helpers: &MyHelpers, _core: Core) -> NoServers {
        NoServers
    }
    fn ask(helpers: &MyHelpers, core: Core, request: Request) {
        mysql_console::ask(helpers, core, request);
    }
    fn name(_answer: &Answer) -> &'static str {
        "a reply of the console"
    }

    // The protocol asks for TLS once it has read the greeting.
    fn server_tls(_store: &Store, _host: &Host) -> Result<Option<Session>, String> {
        Ok(None)
    }
}

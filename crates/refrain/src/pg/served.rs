//! PostgreSQL's protocol, as the program serves it.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use refrain_config::{Backend, General, Host};
use refrain_pg::console::reply::ReplyForm;
use refrain_pg::parts::Pg;
use refrain_pg::requests::{Answer, Request};
use refrain_pg::snapshot::{ClientSessionView, ServerSessionView, StatementView};
use refrain_pg::{CoreStatementsView, Snapshot};
use refrain_pool::Engine;
use refrain_pool::ids::Core;
use refrain_pool::shared::Shared;
use refrain_pool::snapshot::Extent;

use super::console::in_form;
use super::parser::{ParserQueue, Text};
use super::peers::Peers;
use super::sqlite::{Files, SqliteHost};
use crate::console::{Call, Question, Reply};
use crate::cores::{AnyCores, Cores};
use crate::inherit::Kind;
use crate::listen::{Places, UnixSocket};
use crate::mail::{Mail, Post};
use crate::served::Served;
use crate::takeover::Elders;
use crate::tls::{Session, Store};

/// The state of PostgreSQL's cores that the helper threads share.
#[derive(Clone)]
pub(crate) struct PgState {
    pub(crate) cores: Arc<Cores<Pg>>,
    /// The cores of the other protocols that the program serves.
    pub(crate) others: Vec<Arc<dyn AnyCores>>,
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "SQLite alone has it"))]
    pub(crate) files: Arc<Files>,
}

impl PgState {
    /// Returns a snapshot of each core of all protocols. What is PostgreSQL's alone is empty in
    /// those of others.
    pub(crate) fn snapshots(&self, timeout: Duration, extent: Extent) -> Vec<Snapshot> {
        let mut snapshots = self.cores.snapshots(timeout, extent);
        let others = self.others.iter();
        others.for_each(|cores| snapshots.extend(cores.any_snapshots(timeout, extent)));
        snapshots
    }

    /// Returns every statement of all protocols with its clients and figures at all cores.
    pub(crate) fn statements(&self, timeout: Duration) -> Vec<StatementView> {
        let mut statements = self.cores.statements(timeout);
        self.others.iter().for_each(|cores| statements.extend(cores.statements(timeout)));
        statements
    }
}

/// The way from a core to the threads that work for PostgreSQL's protocol.
#[derive(Clone)]
pub(crate) struct Helpers {
    pub(crate) post: Arc<Post<Pg>>,
    pub(crate) files: Arc<Files>,
    pub(crate) questions: Sender<Call>,
    pub(crate) parser_queue: ParserQueue,
    /// The programs that this one has taken over.
    pub(crate) elders: Arc<Elders>,
    /// The other programs that serve the same clients.
    pub(crate) peers: Arc<Peers>,
}

impl Served for Pg {
    const THREADS: &'static str = "core";

    fn client_view_of(view: ClientSessionView) -> ClientSessionView {
        view
    }
    fn server_view_of(view: ServerSessionView) -> ServerSessionView {
        view
    }

    type Statements = CoreStatementsView;

    fn statements_of(engine: &Engine<Self>) -> CoreStatementsView {
        refrain_pg::core_statements(engine)
    }
    fn statements(shared: &Shared<Self>, cores: &[CoreStatementsView]) -> Vec<StatementView> {
        refrain_pg::statements_at(shared, cores)
    }

    fn serves(backend: Backend) -> bool {
        matches!(backend, Backend::Postgres | Backend::Sqlite)
    }

    fn places(general: &General) -> Places<'_> {
        Places {
            kind: Kind::Postgres,
            addresses: &general.listen,
            socket: (general.unix_socket_dir.as_deref())
                .map(|dir| UnixSocket::Postgres(dir, general.unix_socket_port.map(|port| port.0))),
            client_speaks_first: true,
        }
    }

    type Helpers = Helpers;
    type Local = SqliteHost;

    fn local(helpers: &Helpers, core: Core) -> SqliteHost {
        SqliteHost::new(core, Arc::clone(&helpers.post), Arc::clone(&helpers.files))
    }

    fn ask(helpers: &Helpers, core: Core, request: Request) {
        match request {
            Request::Console { client, user, admin, query, form } => {
                let post = Arc::clone(&helpers.post);
                let describes = form == ReplyForm::Columns;
                let answer = Box::new(move |reply: Reply| {
                    let reply = in_form(&reply, &form);
                    post.send(core, Mail::Answered(Answer::Console { client, reply }));
                });
                let question = Question { client, user, admin, query, describes, answer };
                // The desk ends before the cores only if the program ends.
                let _ = helpers.questions.send(Call::Client(question));
            }
            Request::Cancel { pid, key } => helpers.elders.cancel(pid, &key),
            Request::PassOn { peer, pid, key } => helpers.peers.pass_on(peer, pid, &key),
            Request::Analyse(case) => helpers.parser_queue.put(core, Text::Query(case)),
            Request::Read(case) => helpers.parser_queue.put(core, Text::Statement(case)),
        }
    }

    fn name(answer: &Answer) -> &'static str {
        match answer {
            Answer::Console { .. } => "a reply of the console",
            Answer::Analysed { .. } => "an analysis of a text",
            Answer::Read { .. } => "the names in a text",
        }
    }

    // PostgreSQL's servers are asked for TLS before anything else.
    fn server_tls(store: &Store, host: &Host) -> Result<Option<Session>, String> {
        Session::of_server(store, host)
    }
}

//! PostgreSQL's parts of what the pool keeps, and the pool's types with these parts.

use std::sync::Arc;

use refrain_cache::Waiter;
use refrain_config::Options;
use refrain_pool::Parts;
use refrain_pool::ids::{Conn, Core};
use refrain_pool::settings::PoolSettings;
use refrain_pool::time::Now;

use crate::ground::stats::StatementCounters;
use crate::pipeline::job::Job;
use crate::pipeline::outstanding::Quiescent;
use crate::settings::session::{Settings, SettingsMut};
use crate::state::cancel::CancelRequest;
use crate::state::client::ClientSession;
use crate::state::client::travel::TravellingSession;
use crate::state::core::CorePart;
use crate::state::pool::PoolPart;
use crate::state::pool_shared::PoolSharedPart;
use crate::state::requests::{Answer, Request};
use crate::state::server::{LoggingIn, ServerSession};
use crate::state::shared::SharedPart;
use crate::state::snapshot::{ClientSessionView, CoreView, ServerSessionView};
use crate::state::standbys::{self, STANDBYS};

/// PostgreSQL's protocol, with clients and with servers.
#[derive(Clone, Copy, Debug)]
pub enum Pg {}

/// The engine of one core.
pub type Engine = refrain_pool::Engine<Pg>;
/// Something happened outside.
pub type Event<'a> = refrain_pool::Event<'a, Pg>;
/// Something the loop is to do for the engine, other than sending and closing.
pub type Action = refrain_pool::Action<Pg>;
/// All connections of a core.
pub type Ports = refrain_pool::Ports<Pg>;
/// The next thing for the loop to do.
pub type Output = refrain_pool::Output<Pg>;
/// A server on its way from one core to another.
pub type Transfer = refrain_pool::Transfer<Pg>;
/// Everything that cores share.
pub type Shared = refrain_pool::shared::Shared<Pg>;
/// One user of one database, over all cores.
pub type PoolShared = refrain_pool::pool_shared::PoolShared<Pg>;
/// One core at one moment.
pub type Snapshot = refrain_pool::snapshot::Snapshot<Pg>;
/// A pool, as one core has it.
pub type PoolView = refrain_pool::snapshot::PoolView<Pg>;
/// A client that is logged in.
pub type ClientView = refrain_pool::snapshot::ClientView<Pg>;
/// A connection to a server.
pub type ServerView = refrain_pool::snapshot::ServerView<Pg>;
/// Counts of one pool on one core.
pub type Counters = refrain_pool::stats::Counters<StatementCounters>;
/// A client.
pub(crate) type Client = refrain_pool::client::Client<Pg>;
/// A connection to a server.
pub(crate) type Server = refrain_pool::server::Server<Pg>;
/// The state of a server.
pub(crate) type ServerState = refrain_pool::server::ServerState<Pg>;
/// The holder of a server: a client or a job.
pub(crate) type Holder = refrain_pool::server::Holder<Pg>;
/// One core's part of a pool.
pub(crate) type Pool = refrain_pool::pool::Pool<Pg>;
/// The state of one core's engine beside its connections.
pub(crate) type CoreState = refrain_pool::core_state::CoreState<Pg>;

impl Parts for Pg {
    type Client = ClientSession;
    type Server = ServerSession;
    type Traveller = TravellingSession;
    type Login = LoggingIn;
    type Job = Job;
    type Side = CancelRequest;
    type Idle = Quiescent;
    type Pool = PoolPart;
    type Core = CorePart;
    type PoolShared = PoolSharedPart;
    type Shared = SharedPart;
    type Counters = StatementCounters;
    type ClientView = ClientSessionView;
    type ServerView = ServerSessionView;
    type View = CoreView;
    type Request = Request;
    type Answer = Answer;

    fn client(core: &CorePart, now: Now) -> ClientSession {
        ClientSession::new(&core.nothing, now)
    }

    fn server(core: &CorePart, now: Now) -> ServerSession {
        ServerSession::new(&core.nothing, now)
    }

    fn core(shared: &SharedPart) -> CorePart {
        CorePart::new(shared)
    }

    fn shared(options: &Options, entropy: &mut dyn FnMut(&mut [u8])) -> SharedPart {
        SharedPart::new(options, entropy)
    }

    fn pool_shared(
        shared: &SharedPart,
        settings: &PoolSettings,
        database: &str,
        variant: u16,
    ) -> PoolSharedPart {
        shared.pool_shared(settings, database, variant)
    }

    fn of_variant(shared: &SharedPart, settings: &mut PoolSettings, variant: u16) {
        match variant {
            STANDBYS => standbys::adapt(settings),
            _ => shared.replications.adapt(settings, variant),
        }
    }

    fn is_dedicated(variant: u16) -> bool {
        // Servers for replication, and those that a client has for one read.
        variant > 0
    }

    fn configure(pool: &PoolSharedPart, settings: &PoolSettings) {
        pool.configure(settings);
    }

    fn moved(pool: &PoolSharedPart) {
        pool.begin_schema_version();
    }

    fn is_known(pool: &PoolSharedPart) -> bool {
        pool.server_parameters().is_some()
    }

    fn is_due(pool: &PoolPart) -> bool {
        pool.has_waiting()
    }

    fn needs_server(pool: &PoolPart) -> bool {
        !pool.refreshes.are_done() || !pool.lookups.are_done()
    }

    fn options_changed(shared: &SharedPart, options: &Options) {
        shared.options_changed(options);
    }

    fn sweep(shared: &SharedPart) {
        shared.sweep();
    }
}

/// Interns settings on a core.
pub(crate) fn intern_settings(core_state: &mut CoreState, edit: SettingsMut) -> Arc<Settings> {
    core_state.protocol.settings(&core_state.shared.protocol, edit)
}

/// Returns a client as one that waits for something that is fetched for several.
pub(crate) fn waiter(core: Core, client: &Client) -> Waiter {
    Waiter { core: core.0, client: u64::from(client.conn().0), request: client.serial().0 }
}

/// Returns the connection of a client that waits for a reply.
pub(crate) fn conn_of(waiter: &Waiter) -> Conn {
    Conn(u32::try_from(waiter.client).unwrap_or(u32::MAX))
}

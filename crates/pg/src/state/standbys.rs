//! The pool of standbys that a pool has beside it, where reads run on standbys.
//!
//! It is a variant of the pool: the same database, user and options, and servers at those of the
//! hosts that are standbys.

use refrain_config::{
    Autoprepare, LoadBalanceHosts, PoolCache, PoolMode, Reads, ShareServers, TargetSessionAttrs,
};
use refrain_pool::settings::PoolSettings;

/// The variant. Those of replication are below.
pub(crate) const STANDBYS: u16 = u16::MAX;

/// Changes the settings of a pool to those of the pool of standbys beside it.
pub(crate) fn adapt(settings: &mut PoolSettings) {
    // The primary's pool keeps replies and finds out about statements.
    settings.cache = PoolCache::default();
    let options = &mut settings.options;
    options.pool_mode = PoolMode::Transaction;
    options.share_servers = ShareServers::Off;
    options.autoprepare = Autoprepare::Off;
    options.min_pool_size = 0;
    let server = &mut settings.server;
    server.reads = Reads::Primary;
    server.target_session_attrs = TargetSessionAttrs::Standby;
    if server.load_balance_hosts == LoadBalanceHosts::Disable {
        server.load_balance_hosts = LoadBalanceHosts::RoundRobin;
    }
}

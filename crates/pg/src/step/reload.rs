//! Reload: the first rule of the cache that comes into force while transactions write.
//!
//! Without any rule nobody notes what is written. A transaction that has written by then, and ends
//! later, would leave a reply in the cache that was read before its end. The same holds where reads
//! begin to run on standbys; there, what was known of clients' writes before counts no more.

use refrain_pool::ids::{Conn, PoolId};
use refrain_pool::settings::PoolSettings;
use refrain_pool::{Protocol, Supply};

use crate::relay::pipe::Pipeline;
use crate::state::options::{finds_changes, reads_on_standbys};
use crate::state::parts::{Pg, Server};

/// Handles the new options of a pool: if replies begin to be kept, notes that the transactions of
/// its servers may have written anything.
pub(crate) fn reloaded(supply: &mut Supply<'_, Pg>, id: PoolId, before: &PoolSettings) {
    let Supply { now, core_state, connections, ports } = supply;
    let pool = core_state.pool_in_use(id);
    if before.cache.is_on || !finds_changes(pool) {
        return;
    }
    if reads_on_standbys(pool) {
        pool.shared.protocol.schema_change();
    }
    // Another core may send writes that it does not note, until it has the options as well.
    let database = pool.shared.protocol.database().schema.clone();
    core_state.shared.protocol.results.doubt(&database);
    let of_pool = |server: &&Server| server.pool() == id && works(server);
    let working: Vec<Conn> =
        connections.servers().filter(of_pool).map(|server| server.conn()).collect();
    for conn in working {
        let Some(server) = connections.server(conn) else { continue };
        Pipeline { now: *now, server, core_state, ports }.may_have_written();
    }
}

/// Whether a server owes replies or is in a transaction.
fn works(server: &Server) -> bool {
    let activity = Pg::activity(&server.session);
    activity.owes || activity.in_transaction
}

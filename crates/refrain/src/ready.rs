//! Readiness: whether each configured database has a host that may serve.
//!
//! The pools know which hosts cannot be connected to. Such a host is tried again where clients
//! wait. A load balancer that is told of it sends none, so whoever asks has the host tried: a
//! connection that is accepted is enough.

use std::time::Duration;

use refrain_config::{Database, General};

use crate::check::try_host;
use crate::state::State;

/// Time for each attempt to connect.
const TRY: Duration = Duration::from_millis(500);
/// Number of databases at most whose hosts are tried for one answer.
const TRIES_MAX: usize = 8;

/// Returns a line for each database that no host may serve. It may take `TRY` for each address of
/// `TRIES_MAX` databases, and before that what it takes to look up the names of their hosts. With
/// `resolv_conf` that is, for each name that may be meant, twice the file's `timeout` times its
/// `attempts` for each of its name servers; otherwise the system's resolver decides.
pub(crate) fn obstacles(state: &State) -> String {
    let options = state.options();
    let lines = state.unreachable().into_iter().enumerate().filter_map(|(number, database)| {
        let is_found = number < TRIES_MAX && is_reached(&options.general, &database);
        (!is_found).then(|| {
            let hosts: Vec<_> = database.server.hosts().map(ToString::to_string).collect();
            format!("database {}: no host may serve ({})\n", database.name, hosts.join(", "))
        })
    });
    lines.collect()
}

fn is_reached(general: &General, database: &Database) -> bool {
    database.server.hosts().any(|host| try_host(general, host, TRY).is_ok())
}

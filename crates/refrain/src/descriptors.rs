//! File descriptors: how many this process may have, and how many are kept for whom.
//!
//! Clients connect at any time, and each takes a descriptor. The descriptors for clients are
//! limited, so that servers, the console and metrics never lack one.

use refrain_config::{Database, General, Options};
use refrain_pool::lobby::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but clients and servers: listeners, drivers, the log, name lookups,
/// and connections that read the metrics.
const OTHERS: u32 = 128;

/// The shares of clients and of others in the file descriptors of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The number of descriptors that the process may have.
    limit: u32,
    /// The part of them that is kept for servers and [`OTHERS`].
    kept: u32,
}

impl Shares {
    /// Computes the shares for these options and this limit. At most a quarter is kept.
    pub(crate) fn of(options: &Options, limit: u32) -> Self {
        Self { limit, kept: servers(options).saturating_add(OTHERS).min(limit / 4) }
    }

    /// Returns the first descriptor number that no client may have: with it all lower numbers are
    /// in use, and the numbers from here on are kept.
    pub(crate) fn gate(self) -> u32 {
        self.limit - self.kept
    }

    /// Returns how many client connections there is room for. The kept descriptors are subtracted
    /// twice: they may have numbers below the gate, and still need the room above it.
    pub(crate) fn room(self) -> u32 {
        self.gate() - self.kept
    }

    /// Returns the limits for clients and logins: those of the options, within the room.
    pub(crate) fn limits(self, general: &General) -> Limits {
        Limits::within(self.room(), general)
    }

    /// Returns a warning if the options allow more clients or logins than there are descriptors
    /// for.
    pub(crate) fn warning(self, general: &General) -> Option<String> {
        let Limits { clients, logins } = self.limits(general);
        let (limit, most) = (self.limit, general.max_client_conn);
        (clients < most || logins < general.max_login_conn).then(|| {
            format!(
                "{limit} file descriptors leave room for {clients} clients (max_client_conn is {most}) and {logins} \
                 logins at a time (max_login_conn is {}): raise the limit (ulimit -n, LimitNOFILE)",
                general.max_login_conn
            )
        })
    }
}

/// Returns how many servers there may be for the configured databases and users.
fn servers(options: &Options) -> u32 {
    let of_database = |database: &Database| {
        let size = |user: &str| {
            let pool = options.pool(&database.name, user).map(|pool| pool.options);
            pool.map_or(0, |pool| pool.pool_size.saturating_add(pool.reserve_pool_size))
        };
        let all = options.users.iter().map(|user| size(&user.name)).fold(0, u32::saturating_add);
        all.max(size("")).min(database.max_connections.unwrap_or(u32::MAX))
    };
    options.databases.iter().map(of_database).fold(0, u32::saturating_add)
}

/// Returns how many descriptors this process may have now.
pub(crate) fn limit() -> u32 {
    number(getrlimit(Resource::Nofile).current)
}

/// Returns how many descriptors this process may have after [`raise`].
pub(crate) fn limit_after_raise() -> u32 {
    number(getrlimit(Resource::Nofile).maximum)
}

fn number(limit: Option<u64>) -> u32 {
    limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

/// Raises the limit to the maximum of this process: the usual limit of 1024 is for programs that
/// use `select`.
pub(crate) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if let Err(error) = raised {
        tracing::warn!(
            cause = "start",
            limit = current,
            "could not raise the limit of file descriptors: {error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_for_clients() {
        let options = Options::from_url("postgres://localhost/app?pool_size=30").unwrap();
        let shares = Shares::of(&options, 1024);
        let kept = 30 * u32::try_from(options.databases.len()).unwrap() + OTHERS;
        assert_eq!((shares.gate(), shares.room()), (1024 - kept, 1024 - 2 * kept));
        let Limits { clients, logins } = shares.limits(&options.general);
        assert!(clients + logins < shares.room() && logins == shares.room() / 4);
        let warning = shares.warning(&options.general).unwrap();
        assert!(warning.contains("max_client_conn is 10000"), "{warning}");
        assert_eq!(Shares::of(&options, 1 << 20).warning(&options.general), None);
    }

    #[test]
    fn few_descriptors_are_shared_out_all_the_same() {
        let options = Options::from_url("postgres://localhost/app?pool_size=1000").unwrap();
        for limit in [0, 1, 64, 100, 1000] {
            let shares = Shares::of(&options, limit);
            let Limits { clients, logins } = shares.limits(&options.general);
            assert!(shares.room() >= limit / 2 && clients >= 1 && logins >= 1);
        }
    }
}

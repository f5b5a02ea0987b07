//! A pool's options for features that only PostgreSQL's protocol has.

use refrain_config::{Autoprepare, PoolMode, Reads, ShareServers, TrackFunctions};

use crate::normalized::query::Bounds;
use crate::state::parts::Pool;

/// Whether simple queries are prepared.
#[inline]
pub(crate) fn autoprepares(pool: &Pool) -> bool {
    pool.settings.options.autoprepare == Autoprepare::On && pool.settings.is_remote
}

/// Whether reads share servers.
pub(crate) fn shares_reads(pool: &Pool) -> bool {
    let options = &pool.settings.options;
    options.share_servers == ShareServers::Reads
        && options.pool_mode != PoolMode::Session
        && pool.settings.is_remote
}

/// Whether reads of a pool's clients run on standbys as well.
#[inline]
pub(crate) fn reads_on_standbys(pool: &Pool) -> bool {
    pool.settings.server.reads == Reads::Standby
        && pool.settings.options.pool_mode != PoolMode::Session
        && pool.settings.is_remote
}

/// Whether there are rules of the cache for a pool.
pub(crate) fn caches(pool: &Pool) -> bool {
    pool.settings.cache.keeps() && pool.settings.options.pool_mode != PoolMode::Session
}

/// Whether Refrain finds out which statements are reads, or what they may change.
pub(crate) fn finds_reads(pool: &Pool) -> bool {
    shares_reads(pool) || caches(pool) || finds_changes(pool)
}

/// Whether Refrain finds out what statements may change: replies are kept somewhere.
pub(crate) fn finds_changes(pool: &Pool) -> bool {
    pool.settings.cache.is_on && pool.settings.is_remote
}

/// Whether servers do jobs.
pub(crate) fn has_jobs(pool: &Pool) -> bool {
    autoprepares(pool) || finds_reads(pool)
}

/// Returns whether Refrain looks for state that functions have left in servers' sessions.
#[inline]
pub(crate) fn tracks(pool: &Pool) -> TrackFunctions {
    if looks_back(pool) { pool.settings.options.track_functions } else { TrackFunctions::Off }
}

/// Whether Refrain ever looks at the sessions of servers: clients share them, or statements of
/// Refrain's own run in them.
#[inline]
pub(crate) fn looks_back(pool: &Pool) -> bool {
    let keeps = pool.settings.options.pool_mode == PoolMode::Session && !autoprepares(pool);
    !keeps && pool.settings.is_remote
}

/// Returns the limits for normalized queries.
pub(crate) fn bounds(pool: &Pool) -> Bounds {
    let options = &pool.settings.options;
    Bounds {
        threshold: options.autoprepare_threshold,
        statements: options.autoprepare_limit as usize,
        bytes: options.autoprepare_memory_limit,
        age_us: u64::try_from(options.autoprepare_max_age.as_micros()).unwrap_or(u64::MAX),
    }
}

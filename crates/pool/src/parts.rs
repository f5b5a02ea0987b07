//! The parts that a protocol keeps of each client, server and pool, and the functions that make
//! them.
//!
//! The pool stores the parts, moves them and drops them, but never looks into one.

use std::fmt::Debug;

use refrain_config::Options;

use crate::settings::PoolSettings;
use crate::stats::CounterSet;
use crate::time::Now;

/// The protocol's part of each thing that the pool keeps.
pub trait Parts: Sized + Debug + 'static {
    /// A client's session.
    type Client: Debug;
    /// A server's session. It may move to another core.
    type Server: Debug + Send;
    /// A client's session on its way to another core.
    type Traveller: Debug + Send;
    /// A login to a server that is under way.
    type Login: Debug + Send;
    /// A job that a server does for Refrain.
    type Job: Debug + Send;
    /// The purpose of a side connection, and how far it has come.
    type Side: Debug;
    /// The proof that a server owes nothing and is outside of any transaction. To put a server back
    /// consumes one, so a protocol keeps its constructor private.
    type Idle;
    /// One core's part of a pool.
    type Pool: Debug + Default;
    /// A core's state beside its pools.
    type Core;
    /// The part of one pool that the cores share.
    type PoolShared: Debug + Send + Sync;
    /// The part that the cores share.
    type Shared: Debug + Send + Sync;
    /// Counters beside the pool's own.
    type Counters: CounterSet;
    /// A client's session, to look at.
    type ClientView: Clone + Debug + Default + Send;
    /// A server's session, to look at.
    type ServerView: Clone + Debug + Default + Send;
    /// A core's part, to look at.
    type View: Clone + Debug + Default + Send;
    /// Work that the program does for the protocol, outside of the engine.
    type Request: Debug;
    /// The result of such work.
    type Answer: Debug;

    /// Makes the session of a client that has just connected.
    fn client(core: &Self::Core, now: Now) -> Self::Client;
    /// Makes the session of a server that is being connected.
    fn server(core: &Self::Core, now: Now) -> Self::Server;
    /// Makes the part of a core that has seen nothing yet.
    fn core(shared: &Self::Shared) -> Self::Core;
    /// Makes the part that the cores share, with random bytes from `entropy`.
    fn shared(options: &Options, entropy: &mut dyn FnMut(&mut [u8])) -> Self::Shared;
    /// Makes the shared part of a pool of this database, whose servers are of a variant
    /// ([`crate::shared::Shared::pool_of_variant`]).
    fn pool_shared(
        shared: &Self::Shared,
        settings: &PoolSettings,
        database: &str,
        variant: u16,
    ) -> Self::PoolShared;

    /// Changes the settings of a pool to those of a pool of a variant.
    fn of_variant(shared: &Self::Shared, settings: &mut PoolSettings, variant: u16) {
        let _ = (shared, settings, variant);
    }

    /// Whether each server of a variant has one client alone, until it closes. Such servers are
    /// none of those that the clients of a pool share.
    fn is_dedicated(variant: u16) -> bool {
        let _ = variant;
        false
    }

    /// Puts new options of a pool into force.
    fn configure(pool: &Self::PoolShared, settings: &PoolSettings) {
        let _ = (pool, settings);
    }
    /// Handles that a pool's servers are reached elsewhere or in another way from now on.
    fn moved(pool: &Self::PoolShared) {
        let _ = pool;
    }
    /// Whether a server of the pool has been logged in to, so that the protocol knows what to tell
    /// clients at their login.
    fn is_known(pool: &Self::PoolShared) -> bool {
        let _ = pool;
        true
    }
    /// Whether the protocol has work in a pool at the next tick, even if nobody uses the pool until
    /// then.
    fn is_due(pool: &Self::Pool) -> bool {
        let _ = pool;
        false
    }
    /// Whether the jobs in line are worth a connection of their own, or a server of another core:
    /// clients depend on them.
    fn needs_server(pool: &Self::Pool) -> bool {
        let _ = pool;
        false
    }
    /// Puts new options into force, and forgets what depends on the old ones.
    fn options_changed(shared: &Self::Shared, options: &Options) {
        let _ = (shared, options);
    }
    /// Forgets what no core uses any more.
    fn sweep(shared: &Self::Shared) {
        let _ = shared;
    }
}

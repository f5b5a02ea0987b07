//! Streams: which databases have a thread that follows their replication, by the options in force.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use refrain_config::{Changes, Host, Options, Server};
use refrain_drive::{Driver, Kind, Sizing, Waker};
use refrain_pg::changes::Subscription;
use refrain_pg::parts::Pg;
use refrain_pool::shared::Shared;

use super::follow::Follow;
use super::session::Account;
use crate::clock::Clock;
use crate::random;
use crate::resolve::Resolver;
use crate::state::State;
use crate::tls::Store;

/// Proofs within the time that a rule allows between them.
const PROOFS: u32 = 4;
/// Shortest time between two proofs.
const PROOF_EVERY_MIN: Duration = Duration::from_millis(2);

/// The threads that follow streams.
pub(crate) struct Streams {
    shared: Arc<Shared<Pg>>,
    clock: Clock,
    store: Arc<Store>,
    resolver: Arc<Resolver>,
    /// The threads that run, by the place of the database.
    running: Mutex<BTreeMap<String, RunningStream>>,
}

/// A stream that is to be followed.
#[derive(Clone, Debug, PartialEq)]
struct WantedStream {
    database: String,
    server: Server,
    proof_every: Duration,
}

struct RunningStream {
    wanted: WantedStream,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.waker.wake();
        // What it has told is taken back at its end: another one of the place begins behind that.
        // A panic was logged.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl Streams {
    /// Follows the streams that the options ask for from now on, those of each reload included.
    pub(crate) fn start(state: &State, shared: &Arc<Shared<Pg>>) {
        let streams = Self {
            shared: Arc::clone(shared),
            clock: state.clock,
            store: Arc::clone(&state.tls),
            resolver: Arc::clone(&state.resolver),
            running: Mutex::default(),
        };
        state.on_options(move |options| streams.apply(options));
    }

    /// Begins and ends threads as the options say.
    fn apply(&self, options: &Options) {
        let mut wanted = wanted(options);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|place, it| wanted.get(place) == Some(&it.wanted));
        wanted.retain(|place, _| !running.contains_key(place));
        for (place, wanted) in wanted {
            let database = wanted.database.clone();
            match self.follow(wanted) {
                Ok(begun) => drop(running.insert(place, begun)),
                Err(error) => {
                    tracing::error!(
                        cause = "changes",
                        "changes of database {database} cannot be followed: {error}"
                    );
                }
            }
        }
    }

    fn follow(&self, wanted: WantedStream) -> io::Result<RunningStream> {
        let WantedStream { database, server, proof_every } = &wanted;
        // One that is live as often as others, and costs nothing while it waits.
        let kernel = refrain_drive::open(Kind::Epoll, Sizing::default())?;
        let (stop, waker) = (Arc::<AtomicBool>::default(), kernel.waker());
        let mut nonce = [0; 8];
        random::fill(&mut nonce);
        let subscription = Subscription {
            database: database.clone(),
            publications: server.changes.publications.clone(),
            slot: format!("refrain_{:016x}", u64::from_le_bytes(nonce)),
            proof_every: *proof_every,
        };
        let follow = Follow {
            database: database.clone(),
            host: host(server),
            account: account(server),
            follower: self.shared.protocol.follower(server, subscription),
            kernel,
            clock: self.clock,
            store: Arc::clone(&self.store),
            resolver: Arc::clone(&self.resolver),
            stop: Arc::clone(&stop),
        };
        let thread = thread::Builder::new().name("changes".to_owned());
        let thread = Some(thread.spawn(move || follow.run())?);
        Ok(RunningStream { wanted, stop, waker, thread })
    }
}

/// Returns the streams that options ask for, by place: those of databases of which a rule depends
/// on all commits.
fn wanted(options: &Options) -> BTreeMap<String, WantedStream> {
    let mut all = BTreeMap::new();
    for entry in &options.databases {
        let staleness = options.cache.max_staleness(&entry.name);
        let Some(staleness) = staleness.filter(|_| entry.server.changes.by == Changes::Replication)
        else {
            continue;
        };
        let Some(resolved) = options.pool(&entry.name, "") else { continue };
        let proof_every = (staleness / PROOFS).max(PROOF_EVERY_MIN);
        let wanted =
            WantedStream { database: entry.name.clone(), server: resolved.server, proof_every };
        let place = wanted.server.place(&entry.name);
        let of_place = all.entry(place).or_insert(wanted);
        of_place.proof_every = of_place.proof_every.min(proof_every);
    }
    all
}

fn host(server: &Server) -> Host {
    server.host.clone()
}

/// Returns who follows a stream.
fn account(server: &Server) -> Account {
    let own = &server.changes;
    let password = own.password.as_ref().or(server.password.as_ref());
    Account {
        user: own.user.clone().or(server.user.clone()).unwrap_or_default(),
        database: server.dbname.clone().unwrap_or_default(),
        password: password.map(|password| password.expose().to_owned()),
        binding: server.channel_binding,
        parameters: server.parameters.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(rules: &str) -> Vec<(String, String, u64)> {
        let text = format!(
            "auth = \"trust\"\n\
             [databases.shop]\nhost = \"a\"\nuser = \"app\"\npassword = \"pw\"\n\
             changes = \"replication\"\nchanges_user = \"reader\"\n\
             [databases.again]\nhost = \"a\"\ndbname = \"shop\"\nuser = \"app\"\n\
             changes = \"replication\"\n\
             [databases.other]\nhost = \"a\"\n{rules}"
        );
        let options = Options::from_toml(&text).unwrap();
        let row = |(place, it): (String, WantedStream)| {
            (place, account(&it.server).user, it.proof_every.as_millis() as u64)
        };
        wanted(&options).into_iter().map(row).collect()
    }

    #[test]
    fn a_database_is_followed_if_a_rule_depends_on_it() {
        let rule = |more: &str| format!("[[cache.rules]]\nconsistency = \"commits\"\n{more}\n");
        assert!(places("").is_empty());
        let shop = rule("database = \"shop\"");
        assert_eq!(places(&shop), [("a:5432/shop".to_owned(), "reader".to_owned(), 250)]);
        let again = rule("database = \"again\"\nmax_staleness = \"40ms\"");
        let both = places(&(again + &shop));
        assert_eq!(both.len(), 1, "they are one database");
        assert_eq!(both[0].2, 10);
    }
}

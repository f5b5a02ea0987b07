//! Streams: which databases have a thread that follows their replication, by the options in force.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use refrain_config::{Changes, Host, Options, Server};
use refrain_drive::{Driver, Kind, Sizing, Tuning, Waker};
use refrain_pg::changes::Subscription;
use refrain_pg::parts::Pg;
use refrain_pool::shared::Shared;

use super::follow::Follow;
use super::session::Account;
use crate::clock::Clock;
use crate::listen;
use crate::random;
use crate::resolve::Resolver;
use crate::state::State;
use crate::tls::Store;

/// Proofs within the time that a rule allows between them.
const PROOFS: u32 = 4;
/// Shortest time between two proofs.
const PROOF_EVERY_MIN: Duration = Duration::from_millis(2);
/// Time between two looks while a thread ends, or cannot begin.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Follows the streams that the options ask for from now on, those of each reload included.
///
/// # Errors
/// If the system refuses the thread that begins and ends those of the streams.
pub(crate) fn start(state: &State, shared: &Arc<Shared<Pg>>) -> io::Result<()> {
    let means = Means {
        shared: Arc::clone(shared),
        clock: state.clock,
        store: Arc::clone(&state.tls),
        resolver: Arc::clone(&state.resolver),
    };
    let (orders, ordered) = mpsc::channel();
    let thread = thread::Builder::new().name("streams".to_owned());
    thread.spawn(move || {
        StreamThreads::default().run(&ordered, |wanted, tuning| means.follow(wanted, tuning));
    })?;
    state.on_options(move |options| {
        // The thread ends with the program.
        let _ = orders.send((wanted(options), listen::tuning(&options.general)));
    });
    Ok(())
}

/// A stream that is to be followed.
#[derive(Clone, Debug)]
struct WantedStream {
    database: String,
    server: Server,
    proof_every: Duration,
}

impl WantedStream {
    /// True if a stream that was begun as `self` may go on as the other one. Both have one place.
    fn goes_on_as(&self, other: &Self) -> bool {
        let terms = |it: &Self| (it.database.clone(), it.server.host.clone(), it.proof_every);
        terms(self) == terms(other)
            && account(&self.server) == account(&other.server)
            && self.server.changes.publications == other.server.changes.publications
    }
}

/// The streams that are wanted, by the places of their databases, and the options of sockets.
type Orders = (BTreeMap<String, WantedStream>, Tuning);

/// A thread that follows a stream.
struct RunningStream {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl RunningStream {
    fn end(&self) {
        if !self.stop.swap(true, Relaxed) {
            self.waker.wake();
        }
    }
}

/// The threads that follow streams.
///
/// A thread may look a name up for as long as the system's resolver takes, so nobody waits for its
/// end. Another one of its place begins behind it: what it has told is taken back at its end.
#[derive(Default)]
struct StreamThreads {
    wanted: BTreeMap<String, WantedStream>,
    tuning: Tuning,
    running: BTreeMap<String, (WantedStream, RunningStream)>,
    /// The last error for which a thread could not begin, by place.
    failed: BTreeMap<String, String>,
}

impl StreamThreads {
    /// Begins and ends threads as the orders say, until these end.
    fn run(
        mut self,
        orders: &Receiver<Orders>,
        begin: impl Fn(&WantedStream, Tuning) -> io::Result<RunningStream>,
    ) {
        let mut is_done = true;
        loop {
            let order = match is_done {
                true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => orders.recv_timeout(LOOK_EVERY),
            };
            match order {
                Ok(order) => (self.wanted, self.tuning) = order,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            is_done = self.look(&begin);
        }
    }

    /// Ends the threads that are not wanted, and begins those that are. True if all is as wanted.
    fn look(&mut self, begin: impl Fn(&WantedStream, Tuning) -> io::Result<RunningStream>) -> bool {
        let Self { wanted, running, failed, .. } = self;
        running.retain(|place, (begun, it)| {
            if !wanted.get(place).is_some_and(|wanted| begun.goes_on_as(wanted)) {
                it.end();
            }
            !it.thread.is_finished()
        });
        failed.retain(|place, _| wanted.contains_key(place));
        for (place, wanted) in wanted {
            if running.contains_key(place) {
                continue;
            }
            match begin(wanted, self.tuning) {
                Ok(begun) => {
                    failed.remove(place);
                    running.insert(place.clone(), (wanted.clone(), begun));
                }
                Err(error) => note_failure(failed, place, &wanted.database, &error.to_string()),
            }
        }
        failed.is_empty() && running.values().all(|(_, it)| !it.stop.load(Relaxed))
    }
}

/// Logs why a thread could not begin, unless the last attempt had the same reason.
fn note_failure(failed: &mut BTreeMap<String, String>, place: &str, database: &str, why: &str) {
    if failed.insert(place.to_owned(), why.to_owned()).as_deref() != Some(why) {
        tracing::error!(
            cause = "changes",
            "changes of database {database} cannot be followed, Refrain tries again: {why}"
        );
    }
}

/// The parts of the program that a stream needs.
struct Means {
    shared: Arc<Shared<Pg>>,
    clock: Clock,
    store: Arc<Store>,
    resolver: Arc<Resolver>,
}

impl Means {
    /// Begins to follow a stream.
    fn follow(&self, wanted: &WantedStream, tuning: Tuning) -> io::Result<RunningStream> {
        let WantedStream { database, server, proof_every } = wanted;
        // It waits for most of the time, and epoll needs no buffers for that.
        let kernel = refrain_drive::open(Kind::Epoll, Sizing { tuning, ..Sizing::default() })?;
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
        let thread = thread.spawn(move || follow.run())?;
        Ok(RunningStream { stop, waker, thread })
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

    fn wanted_by(more: &str) -> BTreeMap<String, WantedStream> {
        let text = format!(
            "auth = \"trust\"\n[databases.shop]\nhost = \"a\"\nuser = \"app\"\n\
             changes = \"replication\"\n{more}\n\
             [[cache.rules]]\ndatabase = \"shop\"\nconsistency = \"commits\"\n"
        );
        wanted(&Options::from_toml(&text).unwrap())
    }

    #[test]
    fn a_stream_goes_on_over_options_that_are_none_of_its_own() {
        let of = |more: &str| wanted_by(more).into_values().next().unwrap();
        let before = of("");
        for same in ["", "connect_query = \"select 1\"", "pool_size = 3"] {
            assert!(before.goes_on_as(&of(same)), "{same}");
        }
        for other in [
            "publications = [\"p\"]",
            "changes_user = \"u\"",
            "changes_password = \"p\"",
            "sslmode = \"require\"",
            "parameters = { options = \"endpoint=e\" }",
        ] {
            assert!(!before.goes_on_as(&of(other)), "{other}");
        }
    }

    /// A thread that ends when it is let go, however often it is told to end: the system's resolver
    /// keeps it.
    fn held(ends: &Arc<AtomicBool>) -> RunningStream {
        let kernel = refrain_drive::open(Kind::Epoll, Sizing::default()).unwrap();
        let (waker, ends) = (kernel.waker(), Arc::clone(ends));
        let thread = thread::spawn(move || {
            while !ends.load(Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        RunningStream { stop: Arc::default(), waker, thread }
    }

    /// Looks until all is as wanted.
    fn settle(threads: &mut StreamThreads, begin: impl Fn() -> RunningStream) {
        while !threads.look(|_, _| Ok(begin())) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_and_its_successor_begins_behind_it() {
        let lets_go = Arc::<AtomicBool>::default();
        let mut threads = StreamThreads { wanted: wanted_by(""), ..StreamThreads::default() };
        settle(&mut threads, || held(&lets_go));
        threads.wanted = wanted_by("changes_user = \"u\"");
        for _ in 0..3 {
            let is_done = threads.look(|_, _| panic!("it begins beside the other"));
            assert!(!is_done);
        }
        let (_, it) = threads.running.values().next().unwrap();
        assert!(it.stop.load(Relaxed), "the thread is told to end");
        lets_go.store(true, Relaxed);
        let next = Arc::<AtomicBool>::default();
        settle(&mut threads, || held(&next));
        let (begun, it) = threads.running.values().next().unwrap();
        assert!(!it.stop.load(Relaxed));
        assert_eq!(account(&begun.server).user, "u");
        threads.wanted.clear();
        assert!(!threads.look(|_, _| panic!("none is wanted")));
        next.store(true, Relaxed);
        settle(&mut threads, || panic!("none is wanted"));
        assert!(threads.running.is_empty());
    }

    #[test]
    fn a_thread_that_cannot_begin_is_tried_again() {
        let mut threads = StreamThreads { wanted: wanted_by(""), ..StreamThreads::default() };
        for _ in 0..3 {
            assert!(!threads.look(|_, _| Err(io::ErrorKind::WouldBlock.into())));
        }
        let ends = Arc::new(AtomicBool::new(true));
        assert!(threads.look(|_, _| Ok(held(&ends))));
        assert_eq!((threads.running.len(), threads.failed.len()), (1, 0));
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

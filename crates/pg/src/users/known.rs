//! The users that databases were asked about: answers, who waits for one, and how old they may be.
//!
//! A login looks here first ([`KnownUsers::look`]). The first login of a user begins the query, and
//! all others wait for its answer. Nobody waits for an answer while a login has one that is young
//! enough, and a database that does not answer leaves the logins with the answers from before, for
//! `auth_cache_stale`.
//!
//! A wrong password may be a new one that the answer does not know yet. It makes an answer doubtful
//! ([`KnownUsers::doubt`]): the next login asks. An answer of the last [`CERTAIN_US`] cannot be
//! doubted, so whoever guesses passwords causes at most one query for each user in that time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashlink::LinkedHashMap;
use refrain_cache::{Planted, Waiter};
use refrain_config::{AuthQuery, General, Unavailable};
use refrain_pool::Now;

use crate::auth::{Credential, Seed, StoredSecret};
use crate::users::bug::Bug;

/// Microseconds for which no wrong password makes an answer doubtful.
const CERTAIN_US: u64 = 1_000_000;
/// Microseconds after a query that failed in which no login asks again.
const RETRY_US: u64 = 1_000_000;
/// Microseconds that a login waits for a query if there is an answer from before.
const PATIENCE_US: u64 = 1_000_000;

/// A user that a database may know, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UserKey {
    pub(crate) source: Arc<AuthQuery>,
    pub(crate) user: Box<str>,
}

/// The limits of answers: their age and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    /// The same for the answer that there is no such user.
    pub(crate) negative_ttl: Duration,
    /// For how long an answer is given if the database gives none.
    pub(crate) stale: Duration,
    pub(crate) size: usize,
    /// Whether logins wait while the database cannot be asked.
    pub(crate) waits: bool,
}

impl Terms {
    /// Returns the terms of the options.
    pub(crate) fn of(general: &General) -> Self {
        Self {
            ttl: general.auth_cache_ttl,
            negative_ttl: general.auth_cache_negative_ttl,
            stale: general.auth_cache_stale,
            size: general.auth_cache_size as usize,
            waits: general.auth_unavailable == Unavailable::Wait,
        }
    }
}

/// The finding of a login.
#[derive(Debug)]
pub(crate) enum FoundUser {
    /// The answer: `None` if the user does not exist or may not log in.
    Answer(Option<Credential>),
    /// None yet: the login waits until it is told.
    Wait,
    /// None: the database cannot be asked.
    Nothing,
}

/// The finding of a login, and whether the caller has to begin the query.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) found: FoundUser,
    pub(crate) asks: bool,
}

impl Look {
    fn only(found: FoundUser) -> Self {
        Self { found, asks: false }
    }
}

/// The answer of the database about a user.
#[derive(Debug)]
struct UserAnswer {
    /// `None` if the user does not exist or may not log in.
    credential: Option<Credential>,
    at: Now,
    /// When answers were forgotten while the database was asked: this one counts for logins alone
    /// that waited by then.
    overtaken: Option<Now>,
}

impl UserAnswer {
    /// Whether the answer counts for a login that has waited since then, if it did.
    fn counts(&self, since: Option<Now>) -> bool {
        self.overtaken.is_none_or(|overtaken| since.is_some_and(|since| since <= overtaken))
    }

    fn is_within(&self, age: Duration, now: Now) -> bool {
        self.at.after(age) > now
    }

    fn get(&self) -> FoundUser {
        FoundUser::Answer(self.credential.clone())
    }
}

/// A user, with the answer and those who wait for one.
#[derive(Debug, Default)]
struct Entry {
    answer: Option<UserAnswer>,
    /// Whether the answer may be out of date, so that the next login asks.
    doubted: bool,
    /// When the query began that is under way.
    asked: Option<Now>,
    /// When answers were forgotten while the query was under way.
    overtaken: Option<Now>,
    /// When the last query failed, unless one has succeeded since.
    failed: Option<Now>,
    waiters: Vec<Waiter>,
}

impl Entry {
    /// Returns what a login finds that has waited since then, if it did.
    fn look(&self, terms: &Terms, now: Now, since: Option<Now>) -> Option<FoundUser> {
        let answer = self.answer.as_ref().filter(|answer| answer.counts(since));
        if let Some(answer) = answer {
            let ttl = if answer.credential.is_some() { terms.ttl } else { terms.negative_ttl };
            let is_fresh = !self.doubted && answer.is_within(ttl, now);
            // The answer came while the login waited, so it is as good as one of its own.
            if is_fresh || since.is_some_and(|since| answer.at >= since) {
                return Some(answer.get());
            }
        }
        let stale = answer.filter(|answer| answer.is_within(terms.stale, now));
        let failed_now = self.failed.is_some_and(|failed| {
            now.since(failed) < RETRY_US || since.is_some_and(|since| failed >= since)
        });
        let is_impatient = since.is_some_and(|since| now.since(since) >= PATIENCE_US);
        match stale {
            Some(stale) if self.failed.is_some() || is_impatient => Some(stale.get()),
            None if failed_now && !terms.waits => Some(FoundUser::Nothing),
            _ => None,
        }
    }

    /// Whether a login that looks now has to begin a query.
    fn is_to_be_asked(&self, now: Now) -> bool {
        let rests = self.failed.is_some_and(|failed| now.since(failed) < RETRY_US);
        self.asked.is_none() && !rests
    }
}

/// Counts of logins and queries since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupStats {
    /// Users that are known now, or known not to exist.
    pub users: u64,
    /// Logins that found an answer.
    pub hits: u64,
    /// Logins that found an answer past its time, because the database gave none.
    pub stale: u64,
    /// Queries that were answered.
    pub queries: u64,
    /// Queries that failed.
    pub failures: u64,
}

/// A user that was looked up, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownUser {
    /// The database that was asked.
    pub database: String,
    /// The user.
    pub user: String,
    /// The kind of the user's secret, or `none`.
    pub secret: &'static str,
    /// When the database answered.
    pub at: Now,
    /// Whether the next login asks the database.
    pub doubted: bool,
}

#[derive(Debug, Default)]
struct Entries {
    /// By user. In front stand the names that do not exist, then the oldest answers.
    map: LinkedHashMap<UserKey, Entry>,
    /// Users whose queries are under way, in the order in which they began.
    under_way: Vec<UserKey>,
    /// Users whose queries were lost.
    lost: Vec<UserKey>,
    /// Users for whom logins wait while no query is under way: the last one has just failed.
    resting: Vec<UserKey>,
    bug: Planted<Bug>,
}

/// The users of all databases, for all cores.
#[derive(Debug)]
pub(crate) struct KnownUsers {
    entries: Mutex<Entries>,
    seed: Seed,
    hits: AtomicU64,
    stale: AtomicU64,
    queries: AtomicU64,
    failures: AtomicU64,
}

impl KnownUsers {
    /// Knows nobody yet.
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            entries: Mutex::default(),
            seed,
            hits: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            queries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Looks a user up for a login, which has waited since then if it did. A login that has to wait
    /// is told with the others.
    pub(crate) fn look(
        &self,
        key: &UserKey,
        terms: &Terms,
        now: Now,
        since: Option<Now>,
        waiter: Waiter,
    ) -> Look {
        let mut entries = self.lock();
        let other = entries.mistaken_for(key);
        let (key, terms) = (other.as_ref().unwrap_or(key), &entries.terms(terms));
        if !entries.map.contains_key(key) {
            entries.make_room(terms.size);
            entries.map.insert(key.clone(), Entry::default());
        }
        // `entry` would change the order.
        let asks_again = entries.bug.is(Bug::ManyLookups);
        let Some(entry) = entries.map.get_mut(key) else { return Look::only(FoundUser::Nothing) };
        let found = entry.look(terms, now, since);
        match &found {
            Some(FoundUser::Answer(_)) if entry.failed.is_some() => {
                self.stale.fetch_add(1, Relaxed);
            }
            Some(FoundUser::Answer(_)) => {
                self.hits.fetch_add(1, Relaxed);
                return Look::only(found.unwrap_or(FoundUser::Nothing));
            }
            _ => {}
        }
        let is_due = entry.is_to_be_asked(now) || asks_again;
        let asks = is_due && !matches!(found, Some(FoundUser::Nothing));
        if asks {
            entry.asked = Some(now);
        }
        let rests = entry.asked.is_none();
        if found.is_none() {
            entry.waiters.push(waiter);
        }
        if asks {
            entries.under_way.push(key.clone());
        } else if found.is_none() && rests && !entries.resting.contains(key) {
            entries.resting.push(key.clone());
        }
        Look { found: found.unwrap_or(FoundUser::Wait), asks }
    }

    /// Takes the answer of the database: the secret of a user, `None` for one who does not exist or
    /// may not log in. Returns the logins that wait for it.
    pub(crate) fn answered(
        &self,
        key: &UserKey,
        secret: Option<StoredSecret>,
        now: Now,
    ) -> Vec<Waiter> {
        self.queries.fetch_add(1, Relaxed);
        let before = self.lock().map.get_mut(key).and_then(|entry| entry.answer.take());
        let credential = secret.map(|secret| {
            // Most answers are as before, and a plain password takes long to prepare.
            let same = before.and_then(|before| before.credential);
            same.filter(|credential| credential.is_of(&secret, &self.seed))
                .unwrap_or_else(|| Credential::prepare(&key.user, secret, &self.seed))
        });
        let mut entries = self.lock();
        entries.under_way.retain(|other| other != key);
        // Whoever tries many names must not drive out the users that exist.
        let is_user = credential.is_some();
        let map = &mut entries.map;
        let entry = if is_user { map.to_back(key) } else { map.to_front(key) };
        let Some(entry) = entry else { return Vec::new() };
        entry.answer = Some(UserAnswer { credential, at: now, overtaken: entry.overtaken.take() });
        entry.doubted = false;
        (entry.asked, entry.failed) = (None, None);
        let waiters = std::mem::take(&mut entry.waiters);
        if entries.bug.is(Bug::LostWaiters) { Vec::new() } else { waiters }
    }

    /// Plants a bug, for the simulator.
    #[cfg(feature = "plant")]
    pub(crate) fn plant(&self, bug: Bug) {
        self.lock().bug.plant(bug);
    }

    /// Notes that the database could not be asked, or that its answer cannot be read. Returns the
    /// logins that wait for it.
    pub(crate) fn failed(&self, key: &UserKey, now: Now) -> Vec<Waiter> {
        self.lock().fail(key, now, &self.failures)
    }

    /// Notes that a query was lost; those who wait are told at the next tick.
    pub(crate) fn lose(&self, key: &UserKey) {
        self.lock().lost.push(key.clone());
    }

    /// Returns the logins that have waited long enough: their queries were lost, there are answers
    /// from before, or it is time to ask again.
    pub(crate) fn tick(&self, terms: &Terms, now: Now) -> Vec<Waiter> {
        let mut entries = self.lock();
        let mut woken = Vec::new();
        for key in std::mem::take(&mut entries.lost) {
            woken.append(&mut entries.fail(&key, now, &self.failures));
        }
        let Entries { map, under_way, resting, .. } = &mut *entries;
        resting.retain(|key| {
            let Some(entry) = map.get_mut(key) else { return false };
            let rests = entry.failed.is_some_and(|failed| now.since(failed) < RETRY_US);
            if !rests {
                woken.append(&mut entry.waiters);
            }
            rests
        });
        for key in under_way {
            let Some(entry) = map.get_mut(key).filter(|entry| !entry.waiters.is_empty()) else {
                continue;
            };
            let is_late = entry.asked.is_some_and(|asked| now.since(asked) >= PATIENCE_US);
            let stale = |answer: &UserAnswer| answer.is_within(terms.stale, now);
            if is_late && entry.answer.as_ref().is_some_and(stale) {
                woken.append(&mut entry.waiters);
            }
        }
        woken
    }

    /// Notes that the answer about a user does not fit what happens: the next login asks, unless
    /// the answer has just come.
    pub(crate) fn doubt(&self, key: &UserKey, now: Now) {
        let mut entries = self.lock();
        let Some(entry) = entries.map.get_mut(key) else { return };
        let is_old = |answer: &UserAnswer| now.since(answer.at) >= CERTAIN_US;
        entry.doubted |= entry.answer.as_ref().is_some_and(is_old);
    }

    /// Forgets all answers. An answer that is under way counts for no login from now on: the
    /// database may have given it before what the operator wants to be seen.
    pub(crate) fn flush(&self, now: Now) {
        let mut entries = self.lock();
        entries.map.retain(|_, entry| {
            entry.answer = None;
            entry.failed = None;
            if entry.asked.is_some() {
                entry.overtaken.get_or_insert(now);
            }
            entry.asked.is_some() || !entry.waiters.is_empty()
        });
    }

    /// Returns the counts.
    pub(crate) fn stats(&self) -> LookupStats {
        let users = self.lock().map.values().filter(|entry| entry.answer.is_some()).count();
        LookupStats {
            users: users as u64,
            hits: self.hits.load(Relaxed),
            stale: self.stale.load(Relaxed),
            queries: self.queries.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }

    /// Returns the users that are known, the one with the oldest answer first.
    pub(crate) fn list(&self) -> Vec<KnownUser> {
        let entries = self.lock();
        let shown = |(key, entry): (&UserKey, &Entry)| {
            let answer = entry.answer.as_ref()?;
            Some(KnownUser {
                database: key.source.database.clone(),
                user: key.user.to_string(),
                secret: answer.credential.as_ref().map_or("none", Credential::kind),
                at: answer.at,
                doubted: entry.doubted || answer.overtaken.is_some(),
            })
        };
        entries.map.iter().filter_map(shown).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Returns the user for whom a user is mistaken, if that bug is planted.
    fn mistaken_for(&self, key: &UserKey) -> Option<UserKey> {
        let same = |other: &&UserKey| other.user == key.user;
        let is_planted = self.bug.is(Bug::AnyDatabase);
        if is_planted { self.map.keys().find(same).cloned() } else { None }
    }

    /// Returns the limits of answers: the same, unless a bug is planted.
    fn terms(&self, terms: &Terms) -> Terms {
        let endless = Duration::from_secs(1 << 32);
        if self.bug.is(Bug::EndlessAnswers) {
            Terms { ttl: endless, negative_ttl: endless, ..*terms }
        } else if self.bug.is(Bug::EndlessStaleAnswers) {
            Terms { stale: endless, ..*terms }
        } else {
            *terms
        }
    }

    /// Forgets the oldest answers, until there is room for one more. Those who are being looked up
    /// stay; the limit of logins bounds their number.
    fn make_room(&mut self, size: usize) {
        let mut tries = self.map.len();
        while self.map.len() >= size && tries > 0 {
            tries -= 1;
            let Some((key, entry)) = self.map.pop_front() else { return };
            if entry.asked.is_some() || !entry.waiters.is_empty() {
                self.map.insert(key, entry);
            }
        }
    }

    fn fail(&mut self, key: &UserKey, now: Now, failures: &AtomicU64) -> Vec<Waiter> {
        failures.fetch_add(1, Relaxed);
        self.under_way.retain(|other| other != key);
        let Some(entry) = self.map.get_mut(key) else { return Vec::new() };
        (entry.asked, entry.failed) = (None, Some(now));
        entry.overtaken = None;
        std::mem::take(&mut entry.waiters)
    }
}

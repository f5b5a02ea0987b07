//! ClientResults: what a client's replies have to do with the cache.

use std::rc::Rc;
use std::sync::Arc;

use refrain_cache::{Bug, Fill};
use refrain_pool::Now;
use refrain_sql::Scan;

use crate::ground::ids::ServerOrigin;
use crate::results::changes::DatabaseChanges;
use crate::results::filling::{Filling, Outcome};
use crate::results::repeats::Watched;
use crate::results::rule::Rule;
use crate::results::store::ResultStore;
use crate::settings::session::{AGES_WISH, CACHE_WISH, Settings, is_harmless};
use crate::statements::columns::Columns;
use crate::statements::of_core::CachedStatement;

/// Time for which a request waits for a reply that another client fetches, in microseconds. Behind
/// that it goes to a server: the other may wait for a lock.
const WAIT_US: u64 = 5_000_000;

/// A request whose reply is to be kept.
#[derive(Debug)]
pub(crate) struct KeptRequest {
    pub(crate) rule: Rc<Rule>,
    /// Whether it has a Parse of its own.
    pub(crate) parses: bool,
    /// How many statements it runs.
    pub(crate) statements: usize,
    /// The statement that stands for a query string.
    pub(crate) text: Option<Rc<CachedStatement>>,
    /// The query string's scan, until it is taken.
    pub(crate) scan: Option<Scan>,
}

/// The part of the cache that a session wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheWish {
    /// Replies by the rules.
    #[default]
    Replies,
    /// Replies that are fetched anew, and kept.
    NewReplies,
    /// Nothing.
    Nothing,
    /// Not known yet: no server has confirmed the session's login.
    Unconfirmed,
}

impl CacheWish {
    /// Reads a wish from the settings of a session. A value that says nothing counts as none.
    fn of(settings: &Settings) -> Self {
        let wish = settings.get(CACHE_WISH.as_bytes()).unwrap_or_default();
        match wish.to_ascii_lowercase().as_slice() {
            b"off" => Self::Nothing,
            b"refresh" => Self::NewReplies,
            _ => Self::Replies,
        }
    }
}

/// The part of a key that a client's settings decide, and what they say of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    /// The number of the database and of the settings under which the client's texts run.
    pub(crate) number: u64,
    /// The number of the application's name.
    pub(crate) application: u64,
    pub(crate) wish: CacheWish,
    /// Whether the client is told how old replies are.
    pub(crate) tells_age: bool,
}

/// The scope of settings, and the defaults to which they belong.
#[derive(Debug)]
struct KnownScope {
    settings: Arc<Settings>,
    defaults: Arc<Settings>,
    place: u64,
    scope: Scope,
}

/// Whether a session wants to be told how old replies are.
pub(crate) fn tells_age(settings: &Settings) -> bool {
    settings.get(AGES_WISH.as_bytes()).is_some_and(|wish| wish.eq_ignore_ascii_case(b"on"))
}

/// A reply that a server gives the client, and that Refrain looks at.
#[derive(Debug)]
enum Awaited {
    /// It is to be kept.
    Kept(Filling, KeptRequest),
    /// It is not, but the time that it takes counts.
    Watched(Watched),
    /// A standby gives it. What has not been sent of it can be taken back.
    Away {
        /// The end of what was queued to the client before the server's last bytes.
        from: usize,
        /// Whether the client may have been sent some of it.
        is_sent: bool,
    },
}

/// A client's part in the cache.
#[derive(Debug, Default)]
pub(crate) struct ClientResults {
    scope: Option<Box<KnownScope>>,
    awaited: Option<Box<Awaited>>,
    /// When its last write ended, in microseconds.
    wrote: u64,
    /// Number of its writes that have ended.
    writes: u64,
    /// The time until which its request may wait for a reply that another fetches.
    waits_until: Option<Now>,
}

impl ClientResults {
    /// Returns the scope of the client's settings. A session whose login is not confirmed has none
    /// but `CacheWish::Unconfirmed`.
    #[inline]
    pub(crate) fn scope(
        &mut self,
        store: &ResultStore,
        is_confirmed: impl FnOnce() -> bool,
        place: u64,
        settings: &Arc<Settings>,
        defaults: &Arc<Settings>,
    ) -> Scope {
        match &self.scope {
            Some(known)
                if Arc::ptr_eq(&known.settings, settings)
                    && Arc::ptr_eq(&known.defaults, defaults)
                    && known.place == place =>
            {
                known.scope
            }
            _ => self.find_scope(store, is_confirmed, place, settings, defaults),
        }
    }

    #[cold]
    fn find_scope(
        &mut self,
        store: &ResultStore,
        is_confirmed: impl FnOnce() -> bool,
        place: u64,
        settings: &Arc<Settings>,
        defaults: &Arc<Settings>,
    ) -> Scope {
        if !is_confirmed() {
            return Scope { wish: CacheWish::Unconfirmed, ..Scope::default() };
        }
        let mut bytes = b"settings ".to_vec();
        bytes.extend_from_slice(&place.to_le_bytes());
        let planted = store.cache.has(Bug::ShortKey);
        for some in [settings, defaults].into_iter().filter(|_| !planted) {
            for (name, value) in some.iter().filter(|(name, _)| !is_harmless(name)) {
                bytes.extend_from_slice(name);
                bytes.push(0);
                bytes.extend_from_slice(value);
                bytes.push(0);
            }
            bytes.push(0);
        }
        let application = settings.get(b"application_name").unwrap_or_default();
        let scope = Scope {
            number: store.numbers.number(&bytes),
            application: store.numbers.number(&[b"application ", application].concat()),
            wish: CacheWish::of(settings),
            tells_age: tells_age(settings),
        };
        let (settings, defaults) = (settings.clone(), defaults.clone());
        self.scope = Some(Box::new(KnownScope { settings, defaults, place, scope }));
        scope
    }

    /// Returns the time until which the client's request may wait for a reply that another fetches,
    /// `None` if that is over.
    pub(crate) fn may_wait(&mut self, now: Now) -> Option<Now> {
        let until = *self.waits_until.get_or_insert(Now(now.0 + WAIT_US));
        (now < until).then_some(until)
    }

    /// Returns the time for which the request has waited for such a reply, in microseconds.
    #[inline]
    pub(crate) fn waited(&self, now: Now) -> u64 {
        self.waits_until.map_or(0, |until| (now.0 + WAIT_US).saturating_sub(until.0))
    }

    /// Notes that the request waits for nothing any more.
    #[inline]
    pub(crate) fn waits_no_more(&mut self) {
        self.waits_until = None;
    }

    /// Returns when its last write ended, in microseconds; zero if it has written nothing.
    pub(crate) fn wrote(&self) -> u64 {
        self.wrote
    }

    /// Returns how many of its writes have ended on this core.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// Notes that a write of its has ended.
    pub(crate) fn note_write(&mut self, now: Now) {
        self.writes += 1;
        // A read that was asked for at the same moment may have come before the write.
        self.has_written(now.0 + 1);
    }

    /// Notes that its last write ended before this time.
    pub(crate) fn has_written(&mut self, wrote: u64) {
        self.wrote = wrote;
    }

    /// Whether the reply to its request is looked at.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Notes that the reply which the client gets was this old when a server gave it.
    pub(crate) fn note_age(&mut self, age: u64) {
        if let Some(Awaited::Kept(filling, _)) = self.awaited.as_deref_mut() {
            filling.note_age(age);
        }
    }

    /// Notes which server gives the reply to the client's request.
    pub(crate) fn comes_from(&mut self, changes: &DatabaseChanges, server: Option<ServerOrigin>) {
        if let Some(Awaited::Kept(filling, _)) = self.awaited.as_deref_mut() {
            filling.comes_from(changes, server);
        }
    }

    /// Has the reply to the client's next segment kept.
    pub(crate) fn begin(
        &mut self,
        store: &Arc<ResultStore>,
        fill: Box<Fill>,
        request: KeptRequest,
    ) {
        let filling =
            Filling::new(store, fill, &request.rule, (request.statements, request.parses));
        self.awaited = Some(Box::new(Awaited::Kept(filling, request)));
    }

    /// Has the time of the client's next request counted.
    pub(crate) fn watch(&mut self, watched: Watched) {
        self.awaited = Some(Box::new(Awaited::Watched(watched)));
    }

    /// Notes that a standby gives the reply to the client's request.
    pub(crate) fn go_away(&mut self) {
        self.awaited = Some(Box::new(Awaited::Away { from: 0, is_sent: false }));
    }

    /// Notes that bytes of a server are handled, and that so much is queued to the client before.
    pub(crate) fn begin_bytes(&mut self, queued: usize) {
        if let Some(Awaited::Away { from, .. }) = self.awaited.as_deref_mut() {
            *from = queued;
        }
    }

    /// Notes that bytes of a server have been handled, and that so much is queued to the client
    /// now. True if they were of a standby's reply.
    pub(crate) fn end_bytes(&mut self, queued: usize, is_over: bool) -> bool {
        let Some(Awaited::Away { from, is_sent }) = self.awaited.as_deref_mut() else {
            return false;
        };
        *is_sent |= queued > *from;
        if is_over {
            self.awaited = None;
        }
        true
    }

    /// Whether a standby gives the reply to its request.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.awaited.as_deref(), Some(Awaited::Away { .. }))
    }

    /// Notes that no standby gives the reply any more.
    pub(crate) fn come_back(&mut self) {
        self.awaited.take_if(|awaited| matches!(**awaited, Awaited::Away { .. }));
    }

    /// Returns the place in what is queued to the client where a standby's reply begins of which
    /// nothing has been sent.
    pub(crate) fn unsent(&self) -> Option<usize> {
        match self.awaited.as_deref()? {
            Awaited::Away { from, is_sent: false } => Some(*from),
            _ => None,
        }
    }

    /// Returns the request whose time counts, once its reply is there.
    pub(crate) fn take_watched(&mut self) -> Option<Watched> {
        let watched = |awaited: &mut Box<Awaited>| matches!(**awaited, Awaited::Watched(_));
        match *self.awaited.take_if(watched)? {
            Awaited::Watched(watched) => Some(watched),
            Awaited::Kept(..) | Awaited::Away { .. } => None,
        }
    }

    /// Returns the statement that stands for the query string whose reply is to be kept.
    #[inline]
    pub(crate) fn text(&self) -> Option<&Rc<CachedStatement>> {
        match self.awaited.as_deref()? {
            Awaited::Kept(_, request) => request.text.as_ref(),
            Awaited::Watched(_) | Awaited::Away { .. } => None,
        }
    }

    /// Takes the scan of the query string whose reply is to be kept, so that it is scanned but
    /// once. It is there for the first query string that is read after [`Self::begin`].
    #[inline]
    pub(crate) fn take_scan(&mut self) -> Option<Scan> {
        match self.awaited.as_deref_mut()? {
            Awaited::Kept(_, request) => request.scan.take(),
            Awaited::Watched(_) | Awaited::Away { .. } => None,
        }
    }

    /// Takes the bytes that the client gets next. `ready` says whether a server has just become
    /// ready, and `unnamed` which columns the client's unnamed statement has.
    pub(crate) fn sent(
        &mut self,
        bytes: &[u8],
        ready: bool,
        unnamed: Option<Columns>,
        now: Now,
    ) -> Outcome {
        let Some(Awaited::Kept(filling, request)) = self.awaited.as_deref_mut() else {
            return Outcome::Pending;
        };
        let outcome = filling.take(bytes, ready, unnamed, now);
        request.rule.count(|counters| outcome.count(counters));
        if !matches!(outcome, Outcome::Pending) {
            self.awaited = None;
        }
        outcome
    }
}

//! ClientResults: what a client's replies have to do with the cache.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use refrain_cache::{Fill, Kept, Waiter};
use refrain_pool::Now;
use refrain_sql::Scan;

use crate::results::reply::{Body, Progress, progress};
use crate::results::rule::Rule;
use crate::results::store::ResultStore;
use crate::settings::session::{CACHE_WISH, Settings, is_harmless};
use crate::statements::columns::Columns;

/// Time for which a request waits for a reply that another client fetches, in microseconds. Behind
/// that it goes to a server: the other may wait for a lock.
const WAIT_US: u64 = 5_000_000;

/// A request whose reply is to be kept.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) rule: Rc<Rule>,
    /// Whether it has a Parse of its own: then its columns are kept with the reply.
    pub(crate) parses: bool,
    /// The scan of a query string.
    pub(crate) scan: Option<Scan>,
}

/// A reply that a client's server gives, and that is to be kept.
#[derive(Debug)]
struct Filling {
    store: Arc<ResultStore>,
    /// `None` once the fill has ended.
    fill: Option<Box<Fill>>,
    request: Request,
    /// The part of the reply that the client has got.
    sent: Vec<u8>,
    /// How many bytes of it count for the store.
    held: usize,
}

impl Filling {
    /// Counts what the client has got so far. False if the replies under way have too many bytes.
    fn hold(&mut self) -> bool {
        let more = self.sent.len() - self.held;
        self.held += more;
        self.store.hold(more)
    }

    /// Does not keep the reply, which says nothing of the next one.
    fn give_up(&mut self) -> Outcome {
        self.request.rule.count(|counters| counters.fills_refused += 1);
        let waiters = self.fill.take().map(|fill| self.store.cache.abandon(&fill));
        Outcome::Refused(waiters.unwrap_or_default())
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.store.release(self.held);
        if let Some(fill) = &self.fill {
            self.store.abandon(fill);
        }
    }
}

/// The fate of a reply that was to be kept.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// More of it is to come.
    Pending,
    /// It is kept, or was out of date when it came.
    Ended(Kept, Vec<Waiter>),
    /// It cannot be kept.
    Refused(Vec<Waiter>),
}

/// The part of the cache that a session wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Replies by the rules.
    #[default]
    Replies,
    /// Replies that are fetched anew, and kept.
    NewReplies,
    /// Nothing.
    Nothing,
}

impl Wish {
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

/// Settings with a number, and the defaults to which they belong.
#[derive(Debug)]
struct Scope {
    settings: Arc<Settings>,
    defaults: Arc<Settings>,
    place: u64,
    number: u64,
    wish: Wish,
}

/// A client's part in the cache.
#[derive(Debug, Default)]
pub(crate) struct ClientResults {
    scope: Option<Box<Scope>>,
    filling: Option<Box<Filling>>,
    /// When its last write ended, in microseconds.
    wrote: u64,
    /// The time until which its request may wait for a reply that another fetches.
    waits_until: Option<Now>,
}

impl ClientResults {
    /// Returns the number of the database and of the settings under which the client's texts run,
    /// and what the settings say of the cache.
    #[inline]
    pub(crate) fn scope(
        &mut self,
        store: &ResultStore,
        place: u64,
        settings: &Arc<Settings>,
        defaults: &Arc<Settings>,
    ) -> (u64, Wish) {
        match &self.scope {
            Some(known)
                if Arc::ptr_eq(&known.settings, settings)
                    && Arc::ptr_eq(&known.defaults, defaults)
                    && known.place == place =>
            {
                (known.number, known.wish)
            }
            _ => self.find_scope(store, place, settings, defaults),
        }
    }

    #[cold]
    fn find_scope(
        &mut self,
        store: &ResultStore,
        place: u64,
        settings: &Arc<Settings>,
        defaults: &Arc<Settings>,
    ) -> (u64, Wish) {
        let mut bytes = b"settings ".to_vec();
        bytes.extend_from_slice(&place.to_le_bytes());
        for some in [settings, defaults] {
            for (name, value) in some.iter().filter(|(name, _)| !is_harmless(name)) {
                bytes.extend_from_slice(name);
                bytes.push(0);
                bytes.extend_from_slice(value);
                bytes.push(0);
            }
            bytes.push(0);
        }
        let number = store.numbers.number(&bytes);
        let (wish, settings, defaults) = (Wish::of(settings), settings.clone(), defaults.clone());
        self.scope = Some(Box::new(Scope { settings, defaults, place, number, wish }));
        (number, wish)
    }

    /// Returns the time until which the client's request may wait for a reply that another fetches,
    /// `None` if that is over.
    pub(crate) fn may_wait(&mut self, now: Now) -> Option<Now> {
        let until = *self.waits_until.get_or_insert(Now(now.0 + WAIT_US));
        (now < until).then_some(until)
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

    /// Notes that a write of its has ended.
    pub(crate) fn note_write(&mut self, now: Now) {
        // A read that was asked for at the same moment may have come before the write.
        self.has_written(now.0 + 1);
    }

    /// Notes that its last write ended before this time.
    pub(crate) fn has_written(&mut self, wrote: u64) {
        self.wrote = wrote;
    }

    /// Whether the reply to its request is to be kept.
    #[inline]
    pub(crate) fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    /// Has the reply to the client's next segment kept.
    pub(crate) fn begin(&mut self, store: &Arc<ResultStore>, fill: Box<Fill>, request: Request) {
        let (store, fill, sent, held) = (store.clone(), Some(fill), Vec::new(), 0);
        self.filling = Some(Box::new(Filling { store, fill, request, sent, held }));
    }

    /// Takes the scan of the query string whose reply is to be kept, so that it is scanned but
    /// once. It is there for the first query string that is read after [`Self::begin`].
    #[inline]
    pub(crate) fn take_scan(&mut self) -> Option<Scan> {
        self.filling.as_mut()?.request.scan.take()
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
        let Some(filling) = &mut self.filling else { return Outcome::Pending };
        // RowDescription and the like come on top of what counts.
        if filling.sent.len() + bytes.len() > filling.request.rule.most {
            return self.refuse();
        }
        // Most replies come in one piece, which need not be copied to be looked at.
        let sent = match std::mem::take(&mut filling.sent) {
            none if none.is_empty() => Cow::Borrowed(bytes),
            mut before => {
                before.extend_from_slice(bytes);
                Cow::Owned(before)
            }
        };
        match if ready { progress(&sent) } else { Progress::More } {
            Progress::More => {
                filling.sent = sent.into_owned();
                if filling.hold() { Outcome::Pending } else { self.give_up() }
            }
            Progress::Other => self.give_up(),
            Progress::Whole(body) => self.keep(&sent, body, unnamed, now),
        }
    }

    /// Keeps a part of what the client has got.
    fn keep(&mut self, sent: &[u8], body: Body, unnamed: Option<Columns>, now: Now) -> Outcome {
        let Some(mut filling) = self.filling.take() else { return Outcome::Pending };
        let mut kept = Cow::Borrowed(sent.get(body.bytes).unwrap_or_default());
        match unnamed {
            _ if !filling.request.parses => {}
            Some(Columns::Known(columns)) => columns.write(kept.to_mut()),
            _ => return filling.give_up(),
        }
        let Some(fill) = filling.fill.take() else { return filling.give_up() };
        let took = now.0.saturating_sub(fill.asked());
        let (cache, terms) = (&filling.store.cache, &filling.request.rule.terms);
        let (kept, waiters) = cache.store(&fill, &kept, terms, took, body.empty);
        filling.request.rule.count(|counters| match kept {
            Kept::Yes => counters.fills += 1,
            Kept::Changed => counters.fills_outdated += 1,
            Kept::Large => counters.fills_refused += 1,
        });
        Outcome::Ended(kept, waiters)
    }

    /// Does not keep the reply: it is too long.
    fn refuse(&mut self) -> Outcome {
        let Some(mut filling) = self.filling.take() else { return Outcome::Pending };
        let (cache, rule) = (&filling.store.cache, &filling.request.rule);
        rule.count(|counters| counters.fills_refused += 1);
        let waiters = filling.fill.take().map(|fill| cache.refuse(&fill, &rule.terms));
        Outcome::Refused(waiters.unwrap_or_default())
    }

    /// Does not keep the reply, which says nothing of the next one.
    pub(crate) fn give_up(&mut self) -> Outcome {
        self.filling.take().map_or(Outcome::Pending, |mut filling| filling.give_up())
    }
}

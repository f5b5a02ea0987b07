//! Calls that a text does not show: those of views and triggers.
//!
//! A view may call a function, and a trigger may do what a routine does. What they leave in a
//! session without a report must not reach the next client, and no text tells that it uses them. So
//! the catalog of the server is asked whether there are any that may leave something. The question
//! comes with the first login of a pool, and again while clients take turns at servers, once the
//! answer is half as old as it may become.

use std::collections::HashSet;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use refrain_config::{PoolMode, PoolOptions, UntoldChanges};
use refrain_pool::Now;
use refrain_pool::ids::ClientSerial;

use crate::text::{self, Calls, Facts, Reads, Verb};

/// Most rows of each kind that are looked at.
const ROWS_MAX: usize = 1000;
/// Most characters of a trigger's body that are looked at.
const BODY_MAX: usize = 3000;
/// The longest name of a view, in bytes, if all of them are those of [`is_name`].
const NAME_BYTES_MAX: usize = 64;

/// Makes the expression for the session's user, as the catalog names those who have rights.
macro_rules! user {
    () => {
        "CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - \
        CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''', \
        SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
    };
}

/// The statement that asks the catalog. No setting of a session changes its meaning.
///
/// Its rows have three columns: `trigger`, a body, the body's `sql_mode`; `view`, a view's name,
/// and `1` if the view calls a function of the user's, takes a lock or sets a number that the
/// session remembers, or if its text is not told; the name of a right of the user that has to do
/// with triggers, a schema and a table, which are empty where the right is wider; `role`, if the
/// user has one, so that the rights are not known; `user`, if the catalog knows rights of the user
/// at all: it has a row for each user, who may have no right.
pub(crate) const QUESTION: &str = concat!(
    "\
    (SELECT _binary'trigger', CAST(COALESCE(LEFT(ACTION_STATEMENT, 3001), '@') AS \
    BINARY), CAST(COALESCE(SQL_MODE, '') AS BINARY) FROM information_schema.TRIGGERS \
    WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys') LIMIT 1001) \
    UNION ALL (SELECT _binary'view', CAST(TABLE_NAME AS BINARY), CASE \
    WHEN COALESCE(VIEW_DEFINITION, '') = '' OR LOCATE('`(', VIEW_DEFINITION) > 0 \
    OR LOCATE('\"(', VIEW_DEFINITION) > 0 OR LOCATE('get_lock', LOWER(VIEW_DEFINITION)) > 0 \
    OR LOCATE('last_insert_id(', LOWER(VIEW_DEFINITION)) > 0 \
    OR LOCATE('nextval(', LOWER(VIEW_DEFINITION)) > 0 \
    OR LOCATE('setval(', LOWER(VIEW_DEFINITION)) > 0 \
    THEN _binary'1' ELSE _binary'' END AS calls FROM information_schema.VIEWS \
    WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') \
    ORDER BY calls DESC LIMIT 1001) \
    UNION ALL (SELECT CAST(kind AS BINARY), CAST(place AS BINARY), CAST(name AS BINARY) FROM (\
    SELECT GRANTEE AS grantee, PRIVILEGE_TYPE AS kind, _binary'' AS place, _binary'' AS name \
    FROM information_schema.USER_PRIVILEGES \
    UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, _binary'' \
    FROM information_schema.SCHEMA_PRIVILEGES \
    UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, TABLE_NAME \
    FROM information_schema.TABLE_PRIVILEGES \
    UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, TABLE_NAME \
    FROM information_schema.COLUMN_PRIVILEGES) AS granted \
    WHERE kind IN ('INSERT', 'UPDATE', 'DELETE', 'TRIGGER') AND grantee = ",
    user!(),
    " LIMIT 1001) \
    UNION ALL (SELECT _binary'role', _binary'', _binary'' \
    FROM (SELECT 1 AS one) AS one WHERE COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE') \
    UNION ALL (SELECT _binary'user', _binary'', _binary'' \
    FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ",
    user!(),
    " LIMIT 1) LIMIT 5000"
);

/// The ways in which a client's statements may have left something in a server's session without a
/// report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct May(u8);

impl May {
    /// By a view.
    const READ: u8 = 1;
    /// By a trigger.
    const WRITE: u8 = 1 << 1;
    /// By a routine that a text calls.
    const CALL: u8 = 1 << 2;

    /// Returns the ways of a statement, as far as its text shows them.
    pub(crate) fn of(facts: &Facts) -> Self {
        match (facts.calls, facts.verb) {
            (Calls::Any, _) => Self(Self::CALL),
            (Calls::Fires, _) => Self(Self::READ | Self::WRITE),
            // The statements behind the first one may read views.
            (Calls::Harmless, _) if facts.has_several => Self(Self::READ),
            (
                Calls::Harmless,
                Verb::End | Verb::Kill | Verb::Savepoint | Verb::Unlock | Verb::Use,
            ) => Self(0),
            // SHOW has conditions with queries.
            (
                Calls::Harmless,
                Verb::Get | Verb::Other | Verb::Select | Verb::Set | Verb::Show | Verb::Write,
            ) => Self(Self::READ),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all ways of another statement are among these.
    pub(crate) fn has(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Adds the ways of another statement.
    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the ways without views.
    pub(crate) fn without_views(self) -> Self {
        Self(self.0 & !Self::READ)
    }
}

/// A client whose statements may have left what no server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) client: ClientSerial,
    /// How many sessions the client had ended before.
    pub(crate) ended_before: u64,
    /// The ways in which the statements may have.
    pub(crate) may: May,
}

impl Caller {
    /// Whether it is this session of a client.
    pub(crate) fn is(&self, client: ClientSerial, ended_before: u64) -> bool {
        self.client == client && self.ended_before == ended_before
    }
}

/// The things of a catalog that may leave something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    triggers: bool,
    views: Views,
    /// Whether there may be more, which the user cannot see.
    pub(crate) is_partial: bool,
}

/// Views that may leave something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Views {
    /// None.
    #[default]
    None,
    /// The ones with these names, in lower case, if they use one that does.
    Named(HashSet<Box<[u8]>>),
    /// Any.
    Any,
}

impl Catalog {
    /// That of a server that has not answered.
    pub(crate) fn unknown() -> Self {
        Self { triggers: true, views: Views::Any, is_partial: true }
    }

    /// Reads the answer to [`QUESTION`].
    pub(crate) fn read(rows: &[Vec<Box<[u8]>>]) -> Self {
        let (mut catalog, mut rights) = (Self::default(), Rights::default());
        let (mut counts, mut calls, mut bodies) = ([0; 3], false, Vec::new());
        for row in rows {
            let [kind, a, b] = row.as_slice() else { return Self::unknown() };
            let count = match &**kind {
                b"trigger" => {
                    catalog.triggers |= may_leave(a, b);
                    bodies.push(a);
                    0
                }
                b"view" => {
                    catalog.views.add(a);
                    calls |= !b.is_empty();
                    1
                }
                b"INSERT" | b"UPDATE" | b"DELETE" | b"TRIGGER" | b"role" | b"user" => {
                    rights.add(kind, a, b);
                    2
                }
                _ => return Self::unknown(),
            };
            counts[count] += 1;
        }
        let [triggers, views, of_rights] = counts.map(|count| count > ROWS_MAX);
        catalog.triggers |= triggers;
        // A view may use another one, so all names count if one view matters.
        match (calls, views) {
            (false, _) => catalog.views = Views::None,
            (true, true) => catalog.views = Views::Any,
            (true, false) => {}
        }
        catalog.triggers |= bodies.iter().any(|body| catalog.views.are_in(body));
        catalog.is_partial = of_rights || rights.hide_triggers();
        catalog.triggers |= catalog.is_partial;
        catalog
    }
}

impl Views {
    fn add(&mut self, name: &[u8]) {
        let is_long = name.len() > NAME_BYTES_MAX;
        if name.is_empty() || is_long || !name.iter().all(|&byte| is_name(byte)) {
            *self = Self::Any;
        }
        match self {
            Self::None => *self = Self::Named([name.to_ascii_lowercase().into()].into()),
            Self::Named(names) => {
                names.insert(name.to_ascii_lowercase().into());
            }
            Self::Any => {}
        }
    }

    /// Whether a text may name one.
    fn are_in(&self, text: &[u8]) -> bool {
        let names = match self {
            Self::None => return false,
            Self::Any => return true,
            Self::Named(names) => names,
        };
        let mut buffer = [0; NAME_BYTES_MAX];
        let mut is_named = |word: &[u8]| {
            let Some(lower) = buffer.get_mut(..word.len()) else { return false };
            lower.copy_from_slice(word);
            lower.make_ascii_lowercase();
            names.contains(&*lower)
        };
        let mut words = text.split(|&byte| !is_name(byte));
        words.any(|word| {
            // The number of a version may stand in front, in a comment that servers run.
            let digits = word.iter().position(|byte| !byte.is_ascii_digit());
            let behind = &word[digits.unwrap_or(word.len())..];
            is_named(word) || behind.len() < word.len() && is_named(behind)
        })
    }
}

/// Whether a byte may be of a name whose letters have one form in all character sets.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Whether a trigger may leave something, by its body and the `sql_mode` of that.
fn may_leave(body: &[u8], mode: &[u8]) -> bool {
    let mode = String::from_utf8_lossy(mode);
    let plain_backslash = mode.contains("NO_BACKSLASH_ESCAPES");
    let ansi_quotes = mode.contains("ANSI_QUOTES");
    let reads = Reads { plain_backslash, ansi_quotes, is_multibyte: false };
    let facts = text::facts(body, reads);
    let is_long = String::from_utf8_lossy(body).chars().count() > BODY_MAX;
    // A statement of the body is none of the text's own.
    let words = body.split(|&byte| !is_name(byte)).filter(|word| !word.is_empty());
    let is_role = |word: &[u8]| word.eq_ignore_ascii_case(b"role");
    facts.calls == Calls::Any
        || facts.pins.is_any()
        || is_long
        || body.contains(&b'@')
        || words.into_iter().any(is_role)
}

/// The rights of a user that have to do with triggers.
#[derive(Debug, Default)]
struct Rights<'a> {
    writes: Vec<(&'a [u8], &'a [u8])>,
    /// The places whose triggers the user sees.
    sees: HashSet<(&'a [u8], &'a [u8])>,
    has_role: bool,
    /// Whether the catalog knows the user.
    are_known: bool,
}

impl<'a> Rights<'a> {
    fn add(&mut self, kind: &[u8], schema: &'a [u8], table: &'a [u8]) {
        match kind {
            b"TRIGGER" => {
                self.sees.insert((schema, table));
            }
            b"role" => self.has_role = true,
            b"user" => self.are_known = true,
            _ => self.writes.push((schema, table)),
        }
    }

    /// Whether there may be triggers that the user fires and does not see.
    fn hide_triggers(&self) -> bool {
        let sees = |place: &(&[u8], &[u8])| self.sees.contains(place);
        let mut writes = self.writes.iter();
        let hides = |&(schema, table)| !sees(&(schema, b"")) && !sees(&(schema, table));
        let may_hide = self.has_role || !self.are_known || writes.any(hides);
        may_hide && !sees(&(b"", b""))
    }
}

/// The question about the catalog of a pool's servers, which one server at a time is asked.
#[derive(Debug, Default)]
struct Question(Arc<AtomicU8>);

impl Question {
    /// No answer is needed.
    const IDLE: u8 = 0;
    /// A server is to be asked by the way.
    const WANTED: u8 = 1;
    /// A server is asked.
    const UNDER_WAY: u8 = 2;

    /// Has a server be asked by the way, unless one is asked.
    fn want(&self) {
        if self.0.load(Relaxed) == Self::IDLE {
            self.replace(Self::IDLE, Self::WANTED);
        }
    }

    fn replace(&self, state: u8, next: u8) -> bool {
        self.0.compare_exchange(state, next, Relaxed, Relaxed).is_ok()
    }

    /// Notes that a server is asked, if none is and this is the state.
    fn begin(&self, state: u8, at: Now) -> Option<Asked> {
        let begins = self.0.load(Relaxed) == state && self.replace(state, Self::UNDER_WAY);
        begins.then(|| Asked { state: self.0.clone(), at })
    }
}

/// The question to one server. It is over when the answer is there, or the server is gone: then
/// another server may be asked.
#[derive(Debug)]
pub(crate) struct Asked {
    state: Arc<AtomicU8>,
    /// When the server was asked.
    at: Now,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.state.store(Question::IDLE, Relaxed);
    }
}

/// The catalog of a pool's servers, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// The time of the question, and [`Hidden::TRIGGERS`] and [`Hidden::VIEWS`]; 0 for no answer.
    known: AtomicU64,
    question: Question,
    catalog: Mutex<Arc<Catalog>>,
}

/// An answer that may be used.
struct Found {
    bits: u64,
    /// Whether it may be used for more than half of its time.
    is_fresh: bool,
}

impl Hidden {
    /// Whether triggers may leave something.
    const TRIGGERS: u64 = 1;
    /// Whether views may leave something.
    const VIEWS: u64 = 1 << 1;
    /// The bits in front of these have the time.
    const BITS: u32 = 2;

    /// Whether a catalog is asked at all under these options.
    fn is_of_use(options: &PoolOptions) -> bool {
        options.untold_changes == UntoldChanges::Auto
            && options.pool_mode != PoolMode::Session
            && !options.definition_max_age.is_zero()
    }

    /// Begins to ask a server that logs in, if the answer is needed. `times` are the last change of
    /// views and triggers, and the present.
    pub(crate) fn ask_at_login(&self, options: &PoolOptions, times: (Now, Now)) -> Option<Asked> {
        let is_fresh = self.find(options, times).is_some_and(|found| found.is_fresh);
        if is_fresh || !Self::is_of_use(options) {
            return None;
        }
        let (_, now) = times;
        let states = [Question::IDLE, Question::WANTED];
        states.iter().find_map(|state| self.question.begin(*state, now))
    }

    /// Whether the catalog is to be asked by the way, once the first server of the pool has been.
    pub(crate) fn is_wanted(&self) -> bool {
        self.question.0.load(Relaxed) == Question::WANTED
    }

    /// Begins to ask a server by the way, if one is to be asked.
    pub(crate) fn ask(&self, now: Now) -> Option<Asked> {
        self.question.begin(Question::WANTED, now)
    }

    /// Notes the answer to a question. Returns whether it is news that the user does not see
    /// everything.
    pub(crate) fn learn(&self, catalog: Catalog, asked: &Asked) -> bool {
        let time = asked.at.0 + 1;
        let triggers = if catalog.triggers { Self::TRIGGERS } else { 0 };
        let views = if catalog.views == Views::None { 0 } else { Self::VIEWS };
        let mut known = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        // An answer that comes late does not take the place of a newer one.
        if self.known.load(Relaxed) >> Self::BITS > time {
            return false;
        }
        let is_news = catalog.is_partial && !known.is_partial;
        *known = Arc::new(catalog);
        self.known.store(time << Self::BITS | triggers | views, Release);
        is_news
    }

    /// Returns what is known; `None` if the answer is too old or views and triggers have `changed`
    /// since.
    fn find(&self, options: &PoolOptions, (changed, now): (Now, Now)) -> Option<Found> {
        let bits = self.known.load(Acquire);
        let since = Now((bits >> Self::BITS).checked_sub(1)?);
        let end = since.after(options.definition_max_age);
        let is_fresh = now.since(since) < end.since(now);
        (since > changed && now < end).then_some(Found { bits, is_fresh })
    }

    /// Whether the answer is there and may be used.
    pub(crate) fn is_current(&self, options: &PoolOptions, times: (Now, Now)) -> bool {
        self.find(options, times).is_some()
    }

    /// Whether what a client may have left has to be cleared away before another client. `times`
    /// are the last change of views and triggers, and the present.
    pub(crate) fn matters(&self, may: May, options: &PoolOptions, times: (Now, Now)) -> bool {
        if may.0 & May::CALL != 0 {
            return true;
        }
        match options.untold_changes {
            UntoldChanges::Reset => return !may.is_none(),
            UntoldChanges::Ignore => return false,
            UntoldChanges::Auto => {}
        }
        if may.is_none() {
            return false;
        }
        let found = self.find(options, times);
        if !found.as_ref().is_some_and(|found| found.is_fresh) && Self::is_of_use(options) {
            self.question.want();
        }
        let Some(Found { bits, .. }) = found else { return true };
        may.0 & May::READ != 0 && bits & Self::VIEWS != 0
            || may.0 & May::WRITE != 0 && bits & Self::TRIGGERS != 0
    }

    /// Whether views may leave something: then it matters which of them a text names.
    pub(crate) fn has_views(&self) -> bool {
        self.known.load(Relaxed) & Self::VIEWS != 0
    }

    /// Whether a text may name such a view.
    pub(crate) fn names_view(&self, text: &[u8]) -> bool {
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone();
        catalog.views.are_in(text)
    }
}

#[cfg(test)]
mod tests;

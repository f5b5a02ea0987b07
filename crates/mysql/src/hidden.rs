//! Calls that a text does not show: those of views and triggers.
//!
//! A view may call a function, and a trigger may do what a routine does. What they leave in a
//! session without a report must not reach the next client, and no text tells that it uses them. So
//! the catalog of the server is asked whether there are any that may leave something. The question
//! comes with the first login of a pool, and again while clients take turns at servers, once the
//! answer is half as old as it may become.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, PoisonError};

use refrain_config::{PoolMode, PoolOptions, UntoldChanges};
use refrain_pool::Now;
use refrain_pool::ids::ClientSerial;

use crate::text::{self, Calls, Facts, Reads, Verb};

/// Most rows of each kind that are looked at.
const ROWS_MAX: usize = 1000;
/// Most characters of a trigger's body that are looked at.
const BODY_MAX: usize = 3000;

/// The statement that asks the catalog. No setting of a session changes its meaning.
///
/// Its rows have three columns: `trigger`, a body, the body's `sql_mode`; `view`, a view's name,
/// and `1` if the view calls a function of the user's, takes a lock or sets a number that the
/// session remembers, or if its text is not told; the name of a right of the user that has to do
/// with triggers, a schema and a table, which are empty where the right is wider; `role`, if the
/// user has one, so that the rights are not known.
pub(crate) const QUESTION: &str = "\
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
    WHERE kind IN ('INSERT', 'UPDATE', 'DELETE', 'TRIGGER') AND grantee = \
    CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - \
    CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''', \
    SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') LIMIT 1001) \
    UNION ALL (SELECT _binary'role', _binary'', _binary'' \
    FROM (SELECT 1 AS one) AS one WHERE COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE') \
    LIMIT 5000";

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
            (Calls::Harmless, Verb::Get | Verb::Other | Verb::Select | Verb::Set | Verb::Show) => {
                Self(Self::READ)
            }
        }
    }

    /// Whether there is none.
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
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
                b"INSERT" | b"UPDATE" | b"DELETE" | b"TRIGGER" | b"role" => {
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
        if name.is_empty() || !name.iter().all(|&byte| is_name(byte)) {
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
        let mut words = text.split(|&byte| !is_name(byte));
        words.any(|word| {
            let lower = word.to_ascii_lowercase();
            // The number of a version may stand in front, in a comment that servers run.
            let digits = lower.iter().position(|byte| !byte.is_ascii_digit());
            let behind = &lower[digits.unwrap_or(lower.len())..];
            names.contains(&*lower) || names.contains(behind)
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
}

impl<'a> Rights<'a> {
    fn add(&mut self, kind: &[u8], schema: &'a [u8], table: &'a [u8]) {
        match kind {
            b"TRIGGER" => {
                self.sees.insert((schema, table));
            }
            b"role" => self.has_role = true,
            _ => self.writes.push((schema, table)),
        }
    }

    /// Whether there may be triggers that the user fires and does not see.
    fn hide_triggers(&self) -> bool {
        let sees = |place: &(&[u8], &[u8])| self.sees.contains(place);
        let mut writes = self.writes.iter();
        let hides = |&(schema, table)| !sees(&(schema, b"")) && !sees(&(schema, table));
        !sees(&(b"", b"")) && (self.has_role || writes.any(hides))
    }
}

/// The catalog of a pool's servers, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// The time of the question, and [`Hidden::TRIGGERS`] and [`Hidden::VIEWS`]; 0 for no answer.
    known: AtomicU64,
    /// Whether the catalog is to be asked.
    is_wanted: AtomicBool,
    catalog: Mutex<Arc<Catalog>>,
}

impl Hidden {
    /// Whether triggers may leave something.
    const TRIGGERS: u64 = 1;
    /// Whether views may leave something.
    const VIEWS: u64 = 1 << 1;
    /// The bits in front of these have the time.
    const BITS: u32 = 2;

    /// Whether a catalog is asked at all under these options.
    pub(crate) fn is_of_use(options: &PoolOptions) -> bool {
        options.untold_changes == UntoldChanges::Auto
            && options.pool_mode != PoolMode::Session
            && !options.definition_max_age.is_zero()
    }

    /// Whether the catalog is to be asked by the way, once the first server of the pool has been.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// Whether the catalog is to be asked, and nobody else does.
    pub(crate) fn takes_wish(&self) -> bool {
        self.is_wanted() && self.is_wanted.swap(false, Relaxed)
    }

    /// Notes what a server has told that was asked at a moment. Returns whether it is news that the
    /// user does not see everything.
    pub(crate) fn learn(&self, catalog: Catalog, asked: Now) -> bool {
        let triggers = if catalog.triggers { Self::TRIGGERS } else { 0 };
        let views = if catalog.views == Views::None { 0 } else { Self::VIEWS };
        let mut known = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = catalog.is_partial && !known.is_partial;
        *known = Arc::new(catalog);
        self.known.store((asked.0 + 1) << Self::BITS | triggers | views, Release);
        is_news
    }

    /// Returns what is known at a moment: the bits, and since when; `None` if the answer is too old
    /// or views and triggers have `changed` since.
    fn find(&self, options: &PoolOptions, changed: Now, now: Now) -> Option<(u64, Now)> {
        let known = self.known.load(Acquire);
        let since = Now((known >> Self::BITS).checked_sub(1)?);
        let age_max = u64::try_from(options.definition_max_age.as_micros()).unwrap_or(u64::MAX);
        (since > changed && now.since(since) < age_max).then_some((known, since))
    }

    /// Whether the answer is there and may be used.
    pub(crate) fn is_current(&self, options: &PoolOptions, (changed, now): (Now, Now)) -> bool {
        self.find(options, changed, now).is_some()
    }

    /// Whether the answer is there and may be used for more than half of its time.
    pub(crate) fn is_fresh(&self, options: &PoolOptions, (changed, now): (Now, Now)) -> bool {
        let age = self.find(options, changed, now).map(|(_, since)| now.since(since));
        age.is_some_and(|age| u128::from(age) < options.definition_max_age.as_micros() / 2)
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
        if Self::is_of_use(options) && !self.is_fresh(options, times) {
            self.is_wanted.store(true, Relaxed);
        }
        let Some((found, _)) = self.find(options, times.0, times.1) else { return true };
        may.0 & May::READ != 0 && found & Self::VIEWS != 0
            || may.0 & May::WRITE != 0 && found & Self::TRIGGERS != 0
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

//! NormalizedQueries: the normalized queries of a pool's simple queries and unnamed statements, as
//! far as this core has seen them.
//!
//! A text without its literals leads to a [`NormalizedQuery`]; the literals that are kept, and the
//! settings under which the text is read, lead to one of the [`Variant`]s of that, which is a
//! prepared statement like any other. Both must be seen often enough before Refrain asks the
//! grammar or a server about them, and both remember why they were refused. The text of a client's
//! unnamed statement keeps its literals: it is a normalized query with one variant.
//!
//! Not here: the messages to servers and their replies (`autoprepare`, `step/jobs.rs`). Nothing
//! here is shared with other cores; the statements are.

use std::collections::VecDeque;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use hashlink::LruCache;
use refrain_pool::Now;
use refrain_sql::normalize::{self, Analysis, Key, Plan, Sample, Span};

use crate::ground::ids::EnvId;
use crate::normalized::compare_times::{Draw, TimeComparison, Turn};
use crate::normalized::due::Due;
use crate::normalized::query::{
    Bounds, NormalizedQuery, QueryPlace, Refused, Stage, State, Variant, is_kept,
};
use crate::settings::session::Settings;
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::IdHasher;

/// Number of remembered keys that were seen once. If an application never writes the same text
/// twice, most keys are never seen again, and are not worth a copy.
const ONCE: usize = 4096;
/// Most variants of a normalized query; texts with other kept literals run by the simple protocol.
const VARIANTS_MAX: usize = 32;
/// Most bytes of the kept literals of a variant; texts that keep more run by the simple protocol.
const KEPT_MAX: usize = 1024;
/// Most normalized queries that are counted or refused, per statement that may be prepared.
const PER_STATEMENT: usize = 4;
/// Most texts that wait for a server.
const DUE_MAX: usize = 64;
/// Time after which an unanswered question is asked again, in microseconds.
const PATIENCE_US: u64 = 5_000_000;
/// The first and the longest time without jobs after a job that found something locked, in
/// microseconds. It doubles each time.
const REST_MIN_US: u64 = 50_000;
const REST_MAX_US: u64 = 5_000_000;

/// A text of a simple query or of an unnamed statement, and the circumstances in which it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) text: &'a [u8],
    /// Its literals; none if it keeps them all.
    pub(crate) spans: &'a [Span],
    pub(crate) key: Key,
    /// The body of the Parse behind the name, if it is the text of an unnamed statement.
    pub(crate) tail: Option<&'a [u8]>,
    /// The text, or the messages behind a Parse: the values of this run are in it. Empty if they
    /// are not known yet.
    pub(crate) values: &'a [u8],
    /// The settings under which it is read.
    pub(crate) settings: &'a Arc<Settings>,
    /// The pool's schema version.
    pub(crate) schema_version: u64,
    pub(crate) now: Now,
    /// Whether it came outside any transaction.
    pub(crate) free: bool,
    /// Whether the text means the same to all clients.
    pub(crate) own: bool,
}

/// The advice of autoprepare about a text.
#[derive(Debug)]
pub(crate) enum Advice {
    /// Run it by the simple protocol.
    Pass,
    /// Run it by the simple protocol, and report its time.
    Watch(QueryPlace),
    /// Have the server plan an unnamed statement for its values: prepared it is slower.
    Sent,
    /// Have the parser thread analyse it.
    Analyse,
    /// Wait: the parser thread is analysing it, or a server is being asked.
    Wait,
    /// Run it by the simple protocol: a server is to verify its variant.
    Due,
    /// Run the prepared statement.
    Run(QueryPlace, Rc<Plan>, Rc<CachedStatement>),
}

/// All normalized queries of a pool.
#[derive(Debug)]
pub(crate) struct NormalizedQueries {
    once: Box<[u64]>,
    table: LruCache<Key, NormalizedQuery, BuildHasherDefault<IdHasher>>,
    bytes: usize,
    variants: u64,
    due: VecDeque<Due>,
    /// Whether a server is being asked.
    pub(crate) asking: bool,
    /// The time until which no server is asked, because something was locked, and its length.
    rests: Now,
    rest_us: u64,
}

impl Default for NormalizedQueries {
    fn default() -> Self {
        Self {
            once: Box::default(),
            table: LruCache::with_hasher(usize::MAX, BuildHasherDefault::default()),
            bytes: 0,
            variants: 0,
            due: VecDeque::new(),
            asking: false,
            rests: Now(0),
            rest_us: 0,
        }
    }
}

impl NormalizedQueries {
    /// Returns what to do with a text.
    pub(crate) fn look(&mut self, sight: &Sight<'_>, bounds: &Bounds) -> Advice {
        let Some(normalized) = self.table.get_mut(&sight.key) else {
            return self.first(sight, bounds);
        };
        if !normalized.sample.matches(sight.text, sight.spans) {
            return Advice::Pass; // another normalized query has its place
        }
        let place = QueryPlace { key: sight.key, variant: 0, draw: Draw::None };
        let (now, eager) = (sight.now, bounds.is_eager());
        match &normalized.state {
            State::Never(_) => Advice::Pass,
            State::Counted if normalized.seen + 1 < u64::from(bounds.threshold) => {
                Advice::Watch(place)
            }
            State::Analysed(since) if now.since(*since) < PATIENCE_US => {
                if eager {
                    Advice::Wait
                } else {
                    Advice::Watch(place)
                }
            }
            State::Counted | State::Analysed(_) => {
                if sight.tail.is_some()
                    && let Err(reason) = normalize::may_keep_all(sight.text)
                {
                    normalized.state = State::Never(reason);
                    return Advice::Pass;
                }
                normalized.state = State::Analysed(now);
                Advice::Analyse
            }
            State::Planned(plan) => {
                let plan = plan.clone();
                self.look_further(sight, bounds, plan)
            }
        }
    }

    /// Returns what to do with a text whose normalized query is not known.
    #[cold]
    fn first(&mut self, sight: &Sight<'_>, bounds: &Bounds) -> Advice {
        let again = self.was_seen_once(sight.key);
        if !again && !bounds.is_eager() {
            return Advice::Pass;
        }
        let sample = Sample::new(sight.text, sight.spans);
        self.bytes += sample.bytes();
        let seen = u64::from(again);
        let normalized = NormalizedQuery {
            sample,
            state: State::Counted,
            unnamed: sight.tail.is_some(),
            seen,
            comparison: TimeComparison::default(),
            variants: Vec::new(),
        };
        self.table.insert(sight.key, normalized);
        self.shrink(bounds);
        match self.table.contains_key(&sight.key) {
            true => self.look(sight, bounds),
            false => Advice::Pass,
        }
    }

    /// Drops the normalized queries that were used longest ago, as long as there are too many.
    fn shrink(&mut self, bounds: &Bounds) {
        while self.table.len() > PER_STATEMENT * bounds.statements || self.bytes > bounds.bytes {
            let Some((_, old)) = self.table.remove_lru() else { break };
            self.bytes -= old.bytes();
        }
    }

    /// Notes a key. True if it was the last one noted in its place.
    fn was_seen_once(&mut self, key: Key) -> bool {
        if self.once.is_empty() {
            self.once = vec![0; ONCE].into();
        }
        let place = &mut self.once[key.0 as usize % ONCE];
        std::mem::replace(place, key.0) == key.0
    }

    /// Returns what to do with a text whose literals have been analysed.
    fn look_further(&mut self, sight: &Sight<'_>, bounds: &Bounds, plan: Rc<Plan>) -> Advice {
        let Some(variant) = self.variant(sight, bounds, &plan) else { return Advice::Pass };
        let place = QueryPlace { key: sight.key, variant: variant.id, draw: Draw::None };
        match &variant.stage {
            Stage::Ready { cached, stored, schema_version, since }
                if *schema_version == sight.schema_version
                    && sight.now.since(*since) <= bounds.age_us =>
            {
                // `*` may list other columns once the schema changes: a prepared statement then
                // fails. In a transaction that failure would be the client's; outside, Refrain runs
                // the text again.
                if plan.mentions.starred && !sight.free {
                    return Advice::Pass;
                }
                // A sequence gives its value for good, even if the row then fails. PostgreSQL
                // refuses a literal that does not fit its column before that, and a parameter
                // after: see `stored`.
                if !stored.iter().all(|it| it.fits(sight.text, sight.spans)) {
                    return Advice::Watch(place);
                }
                let (turn, draw) = variant.comparison.turn(sight.values);
                let place = QueryPlace { draw, ..place };
                return match turn {
                    Turn::Prepared => Advice::Run(place, plan, cached.clone()),
                    Turn::Simple => Advice::Watch(place),
                };
            }
            // A rule of the grammar does not change with the schema or with time.
            Stage::Never { why: Refused::Rule(_), .. } => return Advice::Pass,
            Stage::Never { why, schema_version, since }
                if *schema_version == sight.schema_version
                    && sight.now.since(*since) <= bounds.age_us =>
            {
                let slower = matches!(why, Refused::Slower { .. }) && sight.tail.is_some();
                return if slower { Advice::Sent } else { Advice::Pass };
            }
            Stage::Counted if variant.seen < variant.worth => return Advice::Watch(place),
            Stage::Asked { since, .. } if sight.now.since(*since) < PATIENCE_US => {
                return if bounds.is_eager() { Advice::Wait } else { Advice::Pass };
            }
            Stage::Due => return Advice::Due,
            _ => {}
        }
        if !sight.own {
            return Advice::Pass;
        }
        // Servers may have a statement older than what the verification will find.
        let aged = match variant.stage {
            Stage::Ready { schema_version, .. } => schema_version == sight.schema_version,
            _ => false,
        };
        let anew = aged || variant.reruns > 0 || variant.changes > 0;
        variant.stage = Stage::Due;
        self.fall_due(sight, place, plan, anew);
        Advice::Due
    }

    /// Returns the statement that runs in place of a text, if that is sure whatever server the text
    /// gets: no execution is drawn, and the text goes the usual way.
    pub(crate) fn ready(&self, sight: &Sight<'_>, bounds: &Bounds) -> Option<Rc<CachedStatement>> {
        let normalized = self.table.peek(&sight.key)?;
        let State::Planned(plan) = &normalized.state else { return None };
        if !normalized.sample.matches(sight.text, sight.spans) {
            return None;
        }
        let variant = normalized.variants.iter().find(|variant| is_of(variant, sight, plan))?;
        let Stage::Ready { cached, stored, schema_version, since } = &variant.stage else {
            return None;
        };
        let counts = *schema_version == sight.schema_version
            && sight.now.since(*since) <= bounds.age_us
            && stored.iter().all(|it| it.fits(sight.text, sight.spans));
        (counts && variant.comparison.goes_the_usual_way(sight.values)).then(|| cached.clone())
    }

    /// Returns the variant of a text, and makes it if there is none.
    fn variant(&mut self, sight: &Sight<'_>, bounds: &Bounds, plan: &Plan) -> Option<&mut Variant> {
        let normalized = self.table.get_mut(&sight.key)?;
        match normalized.variants.iter().position(|variant| is_of(variant, sight, plan)) {
            Some(index) => self.table.get_mut(&sight.key)?.variants.get_mut(index),
            None => self.new_variant(sight, bounds, plan),
        }
    }

    /// Makes the variant of a text; `None` if there are too many, or it is too large.
    #[cold]
    fn new_variant(
        &mut self,
        sight: &Sight<'_>,
        bounds: &Bounds,
        plan: &Plan,
    ) -> Option<&mut Variant> {
        let kept = || plan.kept(sight.text, sight.spans);
        if kept().map(|literal| literal.len() + 1).sum::<usize>() > KEPT_MAX {
            return None;
        }
        let normalized = self.table.get_mut(&sight.key)?;
        if normalized.variants.len() >= VARIANTS_MAX {
            let old = |v: &Variant| {
                matches!(v.stage, Stage::Counted)
                    || v.schema_version().is_some_and(|e| e < sight.schema_version)
            };
            let index = normalized.variants.iter().position(old)?;
            self.bytes -= normalized.variants.swap_remove(index).bytes();
        }
        self.variants += 1;
        let stage = match plan.refuses(sight.text, sight.spans) {
            None => Stage::Counted,
            Some(rule) => {
                let why = Refused::Rule(rule);
                Stage::Never { why, schema_version: sight.schema_version, since: sight.now }
            }
        };
        let variant = Variant {
            id: self.variants,
            env: sight.settings.env,
            kept: kept().flat_map(|literal| [literal, &b"\0"[..]].concat()).collect(),
            seen: 0,
            // A variant without kept literals was counted as its normalized query already.
            worth: if plan.keeps() { u64::from(bounds.threshold - 1) } else { 0 },
            reruns: 0,
            changes: 0,
            stage,
            comparison: normalized.comparison.clone(),
        };
        self.bytes += variant.bytes();
        normalized.variants.push(variant);
        self.shrink(bounds);
        self.table.get_mut(&sight.key)?.variants.last_mut()
    }

    fn fall_due(&mut self, sight: &Sight<'_>, place: QueryPlace, plan: Rc<Plan>, anew: bool) {
        if self.due.len() >= DUE_MAX
            && let Some(oldest) = self.due.pop_front()
            && let Some(variant) = self.at(oldest.place)
        {
            variant.stage = Stage::Counted;
        }
        let (text, spans) = (sight.text.into(), sight.spans.into());
        let (settings, sent) = (sight.settings.clone(), sight.tail.map(Box::from));
        self.due.push_back(Due { place, plan, text, spans, settings, anew, sent });
    }

    /// True if a server is to be asked about a text.
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty() && !self.asking
    }

    /// True if no server is to do a job now: what the job needs may still be locked.
    pub(crate) fn rests(&self, now: Now) -> bool {
        now < self.rests
    }

    /// Notes that a server has done a job, or has found something `locked`.
    pub(crate) fn rest(&mut self, locked: bool, now: Now) {
        self.rest_us = if locked { (2 * self.rest_us).clamp(REST_MIN_US, REST_MAX_US) } else { 0 };
        if locked {
            self.rests = Now(now.0 + self.rest_us);
        }
    }

    /// Takes out the text that has waited longest for a server, of those under these settings if
    /// any are given.
    pub(crate) fn take_due(&mut self, env: Option<EnvId>) -> Option<Due> {
        if self.asking {
            return None;
        }
        let fits = |due: &Due| env.is_none_or(|env| due.settings.env == env);
        while let Some(index) = self.due.iter().position(fits) {
            let due = self.due.remove(index)?;
            // A server may have been asked about another text of the variant meanwhile.
            if self.at(due.place).is_some_and(|variant| matches!(variant.stage, Stage::Due)) {
                return Some(due);
            }
        }
        None
    }

    /// Notes the result of the analysis of a text: what becomes of the literals of its normalized
    /// query.
    pub(crate) fn analysed(&mut self, key: Key, text: &[u8], analysis: Analysis) {
        let Some(normalized) = self.table.peek_mut(&key) else { return };
        if normalized.sample.text() != text && !matches!(normalized.state, State::Analysed(_)) {
            return;
        }
        normalized.state = match analysis {
            Analysis::Never(reason) => State::Never(reason),
            Analysis::Normalized(plan) => State::Planned(Rc::new(plan)),
        };
    }

    /// Returns the variant at this place, if it still exists.
    pub(crate) fn at(&mut self, place: QueryPlace) -> Option<&mut Variant> {
        let normalized = self.table.peek_mut(&place.key)?;
        normalized.variants.iter_mut().find(|variant| variant.id == place.variant)
    }

    /// Returns the plan of a normalized query.
    pub(crate) fn plan(&self, key: Key) -> Option<Rc<Plan>> {
        match &self.table.peek(&key)?.state {
            State::Planned(plan) => Some(plan.clone()),
            State::Counted | State::Analysed(_) | State::Never(_) => None,
        }
    }

    /// Records the time of a text that has run without an error, in microseconds. Returns the
    /// reason for a refusal if its prepared executions have turned out slower.
    pub(crate) fn ran(
        &mut self,
        place: QueryPlace,
        turn: Turn,
        text: &[u8],
        us: u64,
    ) -> Option<Refused> {
        let normalized = self.table.peek_mut(&place.key)?;
        normalized.seen += 1;
        let own = |variant: &&mut Variant| variant.id == place.variant;
        match normalized.variants.iter_mut().find(own) {
            None => {
                normalized.comparison.took(turn, Draw::None, text, us);
                None
            }
            Some(variant) => {
                variant.seen += 1;
                let slower = variant.comparison.took(turn, place.draw, text, us);
                let (prepared, simple) = variant.comparison.means();
                slower.then_some(Refused::Slower { prepared, simple })
            }
        }
    }

    /// Forgets all normalized queries.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.due.clear();
        self.bytes = 0;
    }

    /// Notes that a variant is not to be prepared any more.
    pub(crate) fn refuse(
        &mut self,
        place: QueryPlace,
        why: Refused,
        schema_version: u64,
        now: Now,
    ) {
        if let Some(variant) = self.at(place) {
            variant.stage = Stage::Never { why, schema_version, since: now };
            variant.comparison.begin_anew();
        }
    }

    /// True if one more server is to have a statement.
    pub(crate) fn is_worth_a_server(
        &mut self,
        place: QueryPlace,
        servers: u32,
        bounds: &Bounds,
    ) -> bool {
        let Some(variant) = self.at(place) else { return false };
        variant.seen >= bounds.uses_per_server() * u64::from(servers)
    }

    /// Returns all normalized queries, those used last first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NormalizedQuery> {
        self.table.iter().rev().map(|(_, normalized)| normalized)
    }
}

/// Whether a variant is that of a text.
fn is_of(variant: &Variant, sight: &Sight<'_>, plan: &Plan) -> bool {
    variant.env == sight.settings.env && is_kept(&variant.kept, plan.kept(sight.text, sight.spans))
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use refrain_sql::normalize::{Edit, Mentions, Reason, Slot, normalize};

    use super::*;

    const BOUNDS: Bounds =
        Bounds { threshold: 2, statements: 100, bytes: 1 << 20, age_us: 1 << 40 };
    static WHY: Reason = Reason { name: "test", text: "a test keeps it" };

    struct Fixture {
        seed: RandomState,
        normalized_queries: NormalizedQueries,
        bounds: Bounds,
        settings: Arc<Settings>,
    }

    impl Fixture {
        fn new(bounds: Bounds) -> Self {
            let (seed, normalized_queries) = (RandomState::new(), NormalizedQueries::default());
            Self { seed, normalized_queries, bounds, settings: crate::settings::session::nothing() }
        }

        /// Returns the advice about a text. If its literals are to be analysed, each becomes
        /// `slot`.
        fn look(&mut self, text: &str, free: bool, slot: Slot) -> Advice {
            let (text, mut spans) = (text.as_bytes(), Vec::new());
            let key = normalize(text, &self.seed, 100, &mut spans).unwrap();
            let settings = &self.settings;
            let (schema_version, now, own) = (1, Now(1), true);
            let (tail, values, spans) = (None, text, &*spans);
            let sight =
                Sight { text, spans, key, tail, values, settings, schema_version, now, free, own };
            let advice = self.normalized_queries.look(&sight, &self.bounds);
            if matches!(advice, Advice::Analyse) {
                let slots = vec![slot; spans.len()].into();
                let plan = Plan { slots, frozen: false, mentions: Mentions::default() };
                self.normalized_queries.analysed(key, text, Analysis::Normalized(plan));
            }
            advice
        }

        /// Runs a text until a server is to be asked about it.
        fn learn(&mut self, text: &str, free: bool, slot: Slot) -> Advice {
            for _ in 0..4 {
                match self.look(text, free, slot) {
                    Advice::Watch(place) => {
                        assert_eq!(self.normalized_queries.ran(place, Turn::Simple, b"", 10), None);
                    }
                    Advice::Pass | Advice::Analyse => {}
                    advice => return advice,
                }
            }
            Advice::Pass
        }

        fn counted_bytes(&self) -> usize {
            self.normalized_queries.iter().map(NormalizedQuery::bytes).sum()
        }
    }

    const BOUND: Slot = Slot::Parameter { oid: 23, edit: Edit::None };
    const KEPT: Slot = Slot::Keep(&WHY);

    fn literal(bytes: usize, number: usize) -> String {
        format!("SELECT a FROM t ORDER BY '{number:0bytes$}'")
    }

    #[test]
    fn variants_stay_within_the_limit_of_memory() {
        let mut it = Fixture::new(Bounds { bytes: 8192, ..BOUNDS });
        for number in 0..20 {
            it.learn(&literal(900, number), true, KEPT);
            assert!(it.normalized_queries.bytes <= 8192);
            assert_eq!(it.normalized_queries.bytes, it.counted_bytes());
        }
        assert!(it.normalized_queries.variants >= 20, "it made variants");
    }

    #[test]
    fn a_text_that_keeps_much_has_no_variant() {
        let mut it = Fixture::new(BOUNDS);
        let advice = it.learn(&literal(KEPT_MAX, 1), true, KEPT);
        assert!(matches!(advice, Advice::Pass));
        let advice = it.learn(&literal(KEPT_MAX / 2, 1), true, KEPT);
        assert!(matches!(advice, Advice::Due));
    }

    #[test]
    fn what_no_longer_waits_for_a_server_may_wait_again() {
        let mut it = Fixture::new(BOUNDS);
        let text = |number| format!("SELECT {number} AS c{number}");
        (0..=DUE_MAX).for_each(|number| {
            it.learn(&text(number), false, BOUND);
        });
        let due: Vec<_> = std::iter::from_fn(|| it.normalized_queries.take_due(None)).collect();
        assert_eq!(due.len(), DUE_MAX);
        assert!(!due.iter().any(|due| *due.text == *text(0).as_bytes()), "the oldest made room");
        it.learn(&text(0), false, BOUND);
        let again = it.normalized_queries.take_due(None).unwrap();
        assert_eq!(*again.text, *text(0).as_bytes());
    }

    #[test]
    fn a_server_that_was_asked_meanwhile_is_not_asked_again() {
        let mut it = Fixture::new(BOUNDS);
        it.learn("SELECT 1", false, BOUND);
        let place = it.normalized_queries.due[0].place;
        let why = Refused::Shape;
        it.normalized_queries.refuse(place, why, 1, Now(1));
        assert!(it.normalized_queries.take_due(None).is_none());
    }

    #[test]
    fn changes_of_the_schema_count_apart_from_other_failures() {
        let mut it = Fixture::new(BOUNDS);
        it.learn("SELECT 1", false, BOUND);
        let place = it.normalized_queries.due[0].place;
        let variant = it.normalized_queries.at(place).unwrap();
        let mut is_refused = |changed| {
            variant.distrust(Refused::Server(*b"0A000"), changed, 1, Now(1));
            matches!(variant.stage, Stage::Never { .. })
        };
        assert!(!(0..10).any(|_| is_refused(true)));
        assert!(!is_refused(false) && !is_refused(false) && is_refused(false));
        assert!(!(11..20).any(|_| is_refused(true)) && is_refused(true));
    }
}

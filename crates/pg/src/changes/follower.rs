//! Follower: the state machine of one database's stream.
//!
//! ```text
//! Checking ─► Creating ─► Locating ─► Starting ─► Waiting ─► Live
//! ```
//!
//! The server is checked, the walsender makes a temporary slot, the slot is looked for on the
//! server that is asked, and the stream begins. A commit in front of the stream's begin may not be
//! visible yet: so the stream is live once all transactions are over that ran at its begin, and
//! then all replies of before are void. After an error all begins anew, on new connections.

use std::sync::Arc;

use refrain_cache::{Bug, Topic};
use refrain_pg_wire::replication::{Change, Streamed};
use refrain_pool::Now;

use crate::changes::questions::{self, Looked, RowBody, StreamQuestion};
use crate::changes::relations::{NamedRelations, OWN_TOPICS};
use crate::changes::snapshot::XidSnapshot;
use crate::changes::stream::{Phase, SNAPSHOT_PAUSES, STATUS_EVERY, Stream, Subscription};
use crate::changes::transactions::Touched;
use crate::results::changes::ChangesView;
use crate::results::places::{Place, table_topic};
use crate::results::store::ResultStore;

/// The state machine of one database's stream.
#[derive(Debug)]
pub struct Follower {
    place: Arc<Place>,
    store: Arc<ResultStore>,
    subscription: Subscription,
    counts: ChangesView,
    /// The moment of the last proof since replies are asked for.
    proven: Option<Now>,
    pub(super) stream: Option<Stream>,
}

impl Follower {
    /// Makes the state machine of a database, without a stream.
    pub(crate) fn new(
        place: &Arc<Place>,
        store: &Arc<ResultStore>,
        subscription: Subscription,
    ) -> Self {
        let (place, store) = (place.clone(), store.clone());
        let counts = ChangesView {
            database: subscription.database.clone(),
            state: "starting",
            publications: subscription.publications.clone(),
            slot: subscription.slot.clone(),
            ..ChangesView::default()
        };
        let follower = Self { place, store, subscription, counts, proven: None, stream: None };
        follower.show();
        follower
    }

    /// Begins with a server: both connections are logged in to.
    pub fn begin(&mut self, now: Now, walsender: u32) {
        self.stream = Some(Stream::new(now, walsender));
    }

    /// Whether the stream is live.
    pub fn is_live(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| matches!(stream.phase, Phase::Live))
    }

    /// Returns the next command for the walsender, if there is one.
    pub fn command(&mut self) -> Option<String> {
        let stream = self.stream.as_mut().filter(|stream| !stream.is_commanded)?;
        let Subscription { slot, publications, .. } = &self.subscription;
        let command = match stream.phase {
            Phase::Creating => questions::create_slot(slot),
            Phase::Starting => questions::start(slot, publications),
            Phase::Checking | Phase::Locating | Phase::Waiting(_) | Phase::Live => return None,
        };
        stream.is_commanded = true;
        Some(command)
    }

    /// Notes that the walsender has done a command.
    ///
    /// # Errors
    /// If it was none after which it is ready.
    pub fn commanded(&mut self) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        match (&stream.phase, stream.is_commanded) {
            (Phase::Creating, true) => {
                (stream.phase, stream.is_commanded) = (Phase::Locating, false)
            }
            (Phase::Checking, false) => {}
            _ => return Err("the walsender has ended the stream".to_owned()),
        }
        Ok(())
    }

    /// Notes that the stream has begun.
    pub fn streams(&mut self, now: Now) {
        if let Some(stream) = &mut self.stream {
            stream.streams(now);
        }
    }

    /// Takes in a CopyData message of the walsender, or the beginning of a long one.
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn hear(&mut self, now: Now, body: &[u8]) -> Result<(), String> {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_streaming()) else {
            return Err("the stream has not begun".to_owned());
        };
        stream.heard = now;
        match Streamed::read(body).map_err(|error| error.to_string())? {
            Streamed::Keepalive { end, wants_reply } => {
                if wants_reply {
                    stream.told = Now(0);
                }
                self.reach(now, end);
                Ok(())
            }
            Streamed::Data(message) => {
                let in_part = stream.transactions.are_in_part();
                let change = Change::read(message, in_part).map_err(|error| error.to_string())?;
                self.change(now, change)
            }
        }
    }

    fn change(&mut self, now: Now, change: Change<'_>) -> Result<(), String> {
        let outside = || "a change comes outside of a transaction".to_owned();
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let transactions = &mut stream.transactions;
        match change {
            Change::Begin { xid } => transactions.begin(xid),
            Change::Commit { end } => {
                let (xid, touched) = transactions.commit().ok_or_else(outside)?;
                return self.commit(now, xid, &touched, end);
            }
            Change::StreamStart { xid } => transactions.begin_part(xid),
            Change::StreamStop => transactions.end_part(),
            Change::StreamCommit { xid, end } => {
                let touched = transactions.end(xid);
                return self.commit(now, xid, &touched, end);
            }
            Change::StreamAbort { xid, subxid }
                if xid == subxid || self.store.cache.has(Bug::AbortedPart) =>
            {
                let touched = transactions.end(xid);
                if let Some(relations) = &mut stream.relations {
                    relations.named_by(&touched.named, xid);
                }
            }
            Change::StreamAbort { .. } | Change::Other => {}
            Change::Message { is_transactional, prefix } => {
                if is_transactional {
                    transactions.current().ok_or_else(outside)?.emit(prefix);
                }
            }
            Change::Row(oid) => transactions.current().ok_or_else(outside)?.change(oid),
            Change::Truncate(oids) => {
                let touched = transactions.current().ok_or_else(outside)?;
                oids.iter().for_each(|oid| touched.change(oid));
            }
            Change::Relation { oid, schema, name } => {
                let in_part = transactions.are_in_part();
                let touched = transactions.current().ok_or_else(outside)?;
                let schema = if schema.is_empty() { b"pg_catalog" } else { schema };
                let full = [schema, b".", name].concat();
                let full = String::from_utf8_lossy(&full).into_owned();
                let relations = stream.relations.as_mut().ok_or_else(outside)?;
                if relations.name(&self.store.topics, oid, full, in_part) {
                    touched.named.push(oid);
                }
            }
        }
        Ok(())
    }

    /// Takes in the commit of a transaction: what it has changed is in doubt from now on.
    fn commit(&mut self, now: Now, xid: u32, touched: &Touched, end: u64) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut relations = stream.relations.as_mut();
        // First: what it has named it may have moved below others, which no look has shown.
        if let Some(relations) = &mut relations {
            relations.named_by(&touched.named, xid);
        }
        let mut topics = Vec::new();
        let mut anything = touched.anything;
        for oid in &touched.changed {
            let is_alone = self.store.cache.has(Bug::LeafWithoutParent);
            let others = if is_alone { &[] } else { stream.tables.touched(*oid) };
            topics.extend_from_slice(others);
            match relations.as_ref().and_then(|relations| relations.topics(*oid)) {
                Some(own) if is_alone => topics.extend_from_slice(&own[..OWN_TOPICS]),
                Some(own) => topics.extend_from_slice(&own),
                None => anything = !self.store.cache.has(Bug::UnknownRelation),
            }
        }
        if !touched.is_nothing() {
            let reach = self.place.reach();
            topics.extend_from_slice(&reach.every_write);
            let schema = touched.schema;
            topics.extend(reach.writes.iter().filter(|_| anything || schema).cloned());
            topics.extend(reach.schema.iter().filter(|_| schema).cloned());
            if schema {
                self.place.databases_change();
                stream.define.push(xid);
            }
            if self.store.cache.has(Bug::EarlyEndOfDoubt) {
                topics.iter().for_each(Topic::void);
            } else {
                self.counts.voids += stream.doubts.begin(xid, topics) as u64;
            }
            self.counts.commits += 1;
            (stream.snapshot_due, stream.snapshot_pause) = (now, SNAPSHOT_PAUSES[0]);
            if stream.doubts.are_too_many() {
                return Err("too many commits are in doubt".to_owned());
            }
        }
        // Behind the topics: what is proven from here on has been voided.
        self.reach(now, end);
        Ok(())
    }

    /// Notes that the stream is at a position.
    fn reach(&mut self, now: Now, position: u64) {
        let Some(stream) = &mut self.stream else { return };
        let proven = stream.proofs.reach(position);
        self.prove(now, proven);
    }

    fn prove(&mut self, now: Now, upto: Option<Now>) {
        let Some(upto) = upto.filter(|_| self.is_live()) else { return };
        self.place.changes.prove(upto);
        self.counts.proofs += 1;
        self.counts.lag.count(now.since(upto));
        if let Some(before) = self.proven.replace(upto) {
            self.counts.age.count(now.since(before));
        }
    }

    /// Returns the next question, which is sent now.
    pub fn question(&mut self, now: Now) -> Option<(StreamQuestion, String)> {
        let is_used = self.place.changes.are_used(now);
        if !is_used {
            // Nobody asks for proofs: the age of the last one says nothing.
            self.proven = None;
        }
        let stream = self.stream.as_mut()?;
        let Subscription { slot, publications, proof_every, .. } = &self.subscription;
        let (streaming, live) = (stream.is_streaming(), matches!(stream.phase, Phase::Live));
        let may = |question| !stream.is_asking(question);
        let (question, text) = match stream.phase {
            Phase::Checking if may(StreamQuestion::Check) => {
                (StreamQuestion::Check, questions::check(publications))
            }
            Phase::Locating if may(StreamQuestion::Slot) => {
                (StreamQuestion::Slot, questions::slot(slot))
            }
            _ if live && is_used && stream.proof_due <= now && may(StreamQuestion::Flushed) => {
                stream.proof_due = now.after(*proof_every);
                (StreamQuestion::Flushed, questions::FLUSHED.to_owned())
            }
            _ if stream.wants_snapshot()
                && stream.snapshot_due <= now
                && may(StreamQuestion::Snapshot) =>
            {
                stream.asks_snapshot(now);
                (StreamQuestion::Snapshot, questions::SNAPSHOT.to_owned())
            }
            _ if streaming && stream.names_are_due() && may(StreamQuestion::Above) => {
                stream.ask_above()
            }
            _ if streaming
                && stream.look_due <= now
                && may(StreamQuestion::Look)
                && may(StreamQuestion::Digest) =>
            {
                stream.ask_about_tables(now, self.place.changes.tables(), publications)
            }
            _ => return None,
        };
        stream.asked.push((question, now));
        Some((question, text))
    }

    /// Takes in the answer to a question.
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn answer(
        &mut self,
        now: Now,
        question: StreamQuestion,
        rows: &[RowBody],
    ) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let place = stream.asked.iter().position(|(asked, _)| *asked == question);
        let asked = place.map(|place| stream.asked.remove(place).1);
        let garbled = || format!("the server's answer about {question:?} cannot be read");
        match question {
            StreamQuestion::Check => {
                let checked = questions::checked(rows)?;
                stream.checked = Some(checked);
                stream.relations = Some(NamedRelations::new(checked.identity));
                stream.phase = Phase::Creating;
                self.check_identity()?;
            }
            StreamQuestion::Slot => {
                if questions::pid(rows) != Some(stream.walsender) {
                    return Err("the stream and the questions lead to different servers, or a \
                                pooler is between"
                        .to_owned());
                }
                stream.phase = Phase::Starting;
            }
            StreamQuestion::Flushed => {
                let flushed = questions::flushed(rows).ok_or_else(garbled)?;
                let late = self.store.cache.has(Bug::ProofFromItsAnswer).then_some(now);
                let began = late.or(asked).unwrap_or_default();
                let proven = stream.proofs.answered(began, flushed);
                self.prove(now, proven);
            }
            StreamQuestion::Snapshot => {
                let snapshot = questions::snapshot(rows).ok_or_else(garbled)?;
                self.see(now, &snapshot);
            }
            StreamQuestion::Look => {
                let looked = Looked::read(rows).ok_or_else(garbled)?;
                let tables = std::mem::take(&mut stream.looked_at[0]);
                stream.looked(now, &tables, &looked);
                let at_once = self.store.cache.has(Bug::CoveredAtOnce);
                let next = if at_once { None } else { Some(stream.snapshots + 1) };
                let Some(checked) = stream.checked else { return Ok(()) };
                stream.tables.learn(&tables, looked, next, |oid| {
                    table_topic(&self.store.topics, checked.identity, oid)
                });
                self.check_identity()?;
                self.tell_coverage();
                self.show();
            }
            StreamQuestion::Above => {
                let looked = Looked::rows(rows).ok_or_else(garbled)?;
                let named = std::mem::take(&mut stream.looked_at[1]);
                if let Some(relations) = &mut stream.relations {
                    relations.learn(&self.store.topics, stream.looks, &named, &looked.above);
                }
            }
            StreamQuestion::Digest => {
                let digest = Looked::read(rows).ok_or_else(garbled)?;
                if !self.store.cache.has(Bug::UnseenCatalog) {
                    stream.digested(now, &digest);
                }
                self.check_identity()?;
                self.show();
            }
        }
        Ok(())
    }

    /// Takes in a snapshot: what is over by it is in doubt no more.
    fn see(&mut self, now: Now, snapshot: &XidSnapshot) {
        let Some(stream) = &mut self.stream else { return };
        self.counts.snapshots += 1;
        let number = stream.snapshots;
        // First: what servers have said of texts since the event may be of the schema before.
        if stream.is_defined(snapshot) {
            self.place.databases_change();
        }
        let any = self.store.cache.has(Bug::AnySnapshot);
        let ended = stream.doubts.hear(snapshot, any);
        stream.tables.hear(number, snapshot);
        if let Some(relations) = &mut stream.relations {
            relations.hear(snapshot);
        }
        let [least, most] = SNAPSHOT_PAUSES;
        let pause = if ended > 0 { least } else { stream.snapshot_pause };
        stream.snapshot_pause = most.min(2 * pause);
        if ended == 0 {
            stream.snapshot_due = stream.snapshot_due.max(now.after(pause));
        }
        let over = match &mut stream.phase {
            Phase::Waiting(waits) => waits.hears(number, snapshot),
            _ => false,
        };
        if over {
            self.go_live(now);
        }
        self.tell_coverage();
    }

    /// Checks that the pool's servers are of the database of the stream, as far as they have said.
    fn check_identity(&self) -> Result<(), String> {
        let own = self.stream.as_ref().and_then(|stream| stream.checked);
        let theirs = self.place.identity();
        match own.zip(theirs) {
            Some((own, theirs)) if own.identity != theirs => {
                Err("the servers of the pools are of another database than the stream".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn go_live(&mut self, now: Now) {
        let Some(stream) = &mut self.stream else { return };
        let Some(checked) = stream.checked else { return };
        stream.phase = Phase::Live;
        stream.proof_due = now;
        // First the server: what it does not give is kept by nobody from then on.
        self.place.changes.goes_live(checked.origin);
        // Nobody has told of changes of the schema meanwhile.
        self.place.databases_change();
        if !self.store.cache.has(Bug::KeptThroughLoss) {
            self.place.topics.changes.void();
        }
        self.show();
    }

    /// Tells which tables are covered. All that is kept of them is from before, and void.
    fn tell_coverage(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let Some(checked) = stream.checked else { return };
        let news = stream.tables.news();
        if news.is_empty() {
            return;
        }
        let keeps = self.store.cache.has(Bug::KeptThroughLoss);
        for oid in news.keys().filter(|_| !keeps) {
            table_topic(&self.store.topics, checked.identity, *oid).void();
        }
        self.place.changes.learn(news);
    }

    /// Appends a status update for the walsender if one is due.
    pub fn status(&mut self, now: Now, out: &mut Vec<u8>) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_streaming()) {
            stream.status(now, out);
        }
    }

    /// Looks whether the stream may go on: the server has not been silent for too long, and the
    /// pools have met no other.
    ///
    /// # Errors
    /// If it may not.
    pub fn check(&self, now: Now) -> Result<(), String> {
        let Some(stream) = &self.stream else { return Ok(()) };
        if self.place.changes.are_elsewhere() {
            return Err("the pools have logged in to another server than the stream".to_owned());
        }
        stream.check(now)
    }

    /// Returns the time at which something is due, if nothing comes before.
    pub fn wakes(&self, now: Now) -> Now {
        let latest = now.after(self.subscription.proof_every.min(STATUS_EVERY));
        self.stream.as_ref().map_or(latest, |stream| stream.wakes(latest))
    }

    /// Notes that the stream is lost.
    pub fn lose(&mut self, why: &str) {
        // The gate closes first: when the doubts end, nothing is given by it any more.
        self.place.changes.lose();
        (self.stream, self.proven) = (None, None);
        why.clone_into(&mut self.counts.why);
        self.counts.losses += 1;
        self.show();
    }

    fn show(&self) {
        let stream = self.stream.as_ref();
        let live = self.is_live();
        self.place.changes.show(ChangesView {
            state: if live { "live" } else { "starting" },
            why: if live { String::new() } else { self.counts.why.clone() },
            mark: stream.map_or(0, |stream| stream.proofs.mark()),
            doubts: stream.map_or(0, |stream| stream.doubts.len() as u64),
            ..self.counts.clone()
        });
    }
}

impl Drop for Follower {
    /// Shows that the stream is followed no more.
    fn drop(&mut self) {
        self.place.changes.lose();
        self.place.changes.show(ChangesView::default());
    }
}

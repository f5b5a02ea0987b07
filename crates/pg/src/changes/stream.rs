//! Stream: how far a stream is, from the login on, and what is known of it.

use std::time::Duration;

use refrain_pg_wire::replication::status_update;
use refrain_pool::Now;

use crate::changes::coverage::PublishedTables;
use crate::changes::doubts::Doubts;
use crate::changes::proofs::Proofs;
use crate::changes::questions::{self, Checked, Looked, StreamQuestion};
use crate::changes::relations::NamedRelations;
use crate::changes::snapshot::XidSnapshot;
use crate::changes::transactions::Transactions;
use crate::changes::waits::Waits;

/// Shortest and longest time between two snapshots that show nothing new.
pub(super) const SNAPSHOT_PAUSES: [Duration; 2] =
    [Duration::from_millis(1), Duration::from_millis(50)];

/// Time between two snapshots while the walsender does a command, which may take hours: they show
/// whether the server still answers.
const ALIVE_EVERY: Duration = Duration::from_secs(3);
/// Time after which a server that says nothing is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same while it looks at the tables: a catalog may have a million of them.
const LOOK_PATIENCE: Duration = Duration::from_secs(60);
/// Time between two status updates.
pub(super) const STATUS_EVERY: Duration = Duration::from_secs(1);
/// Time between two status updates while the stream has to come to a position.
const PING_EVERY: Duration = Duration::from_micros(300);
/// Time between two looks at what is published.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time after which the tables are looked at though nothing seems to have changed.
const WHOLE_LOOK_EVERY: Duration = Duration::from_secs(60);

/// A stream that is to be followed, and how.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The database, as clients name it.
    pub database: String,
    /// The publications.
    pub publications: Vec<String>,
    /// The name of the slot, which no other stream has.
    pub slot: String,
    /// Time between two proofs while replies are asked for.
    pub proof_every: Duration,
}

/// How far a stream is.
#[derive(Debug)]
pub(super) enum Phase {
    Checking,
    Creating,
    Locating,
    Starting,
    Waiting(Waits),
    Live,
}

/// The last look at the tables.
#[derive(Debug)]
struct LastLook {
    at: Now,
    tables: Vec<u32>,
    /// The catalog as a whole, in two numbers ([`Looked::as_of`] and [`Looked::rest`]).
    digest: [String; 2],
    /// Whether the look before had found the same. Parts of the catalog come from caches of the
    /// server's process, which hear of a change a moment after snapshots show it.
    is_settled: bool,
}

/// A stream, from the login on.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    /// The walsender's process.
    pub(super) walsender: u32,
    pub(super) checked: Option<Checked>,
    /// Whether the walsender has got the command of this phase.
    pub(super) is_commanded: bool,
    pub(super) transactions: Transactions,
    pub(super) relations: Option<NamedRelations>,
    pub(super) tables: PublishedTables,
    pub(super) doubts: Doubts,
    /// The transactions that may have changed the schema, and that no snapshot has shown yet.
    pub(super) define: Vec<u32>,
    pub(super) proofs: Proofs,
    /// The questions that are under way, and since when.
    pub(super) asked: Vec<(StreamQuestion, Now)>,
    /// The numbers of the last snapshot and the last look.
    pub(super) snapshots: u64,
    pub(super) looks: u64,
    /// The tables that the look under way is about, and the relations of which is asked what is
    /// above them.
    pub(super) looked_at: [Vec<u32>; 2],
    last_look: Option<LastLook>,
    /// When the next question of each kind is due.
    pub(super) snapshot_due: Now,
    pub(super) snapshot_pause: Duration,
    pub(super) look_due: Now,
    pub(super) proof_due: Now,
    /// When the last status update went out.
    pub(super) told: Now,
    /// When the walsender has said something last.
    pub(super) heard: Now,
}

impl Stream {
    /// Begins with a walsender of this process.
    pub(super) fn new(now: Now, walsender: u32) -> Self {
        Self {
            phase: Phase::Checking,
            walsender,
            checked: None,
            is_commanded: false,
            transactions: Transactions::default(),
            relations: None,
            tables: PublishedTables::default(),
            doubts: Doubts::default(),
            define: Vec::new(),
            proofs: Proofs::default(),
            asked: Vec::new(),
            snapshots: 0,
            looks: 0,
            looked_at: Default::default(),
            last_look: None,
            snapshot_due: now.after(ALIVE_EVERY),
            snapshot_pause: SNAPSHOT_PAUSES[0],
            look_due: now,
            proof_due: now,
            told: now,
            heard: now,
        }
    }

    /// Whether the stream has begun.
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Live)
    }

    /// Whether a question is under way.
    pub(super) fn is_asking(&self, question: StreamQuestion) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == question)
    }

    /// Whether a snapshot may show something new, or whether the server still answers.
    pub(super) fn wants_snapshot(&self) -> bool {
        let names = self.relations.as_ref().is_some_and(|relations| relations.are_due().1);
        names
            || matches!(self.phase, Phase::Creating | Phase::Starting | Phase::Waiting(_))
            || self.doubts.len() > 0
            || self.tables.wait()
    }

    /// Notes that a snapshot is asked for.
    pub(super) fn asks_snapshot(&mut self, now: Now) {
        self.snapshots += 1;
        if !self.is_streaming() {
            self.snapshot_due = now.after(ALIVE_EVERY);
        }
    }

    /// Notes that the walsender streams from now on.
    pub(super) fn streams(&mut self, now: Now) {
        self.phase = Phase::Waiting(Waits::new(self.snapshots + 1));
        (self.heard, self.look_due) = (now, now);
        (self.snapshot_due, self.snapshot_pause) = (now, SNAPSHOT_PAUSES[0]);
    }

    /// Appends a status update for the walsender if one is due.
    pub(super) fn status(&mut self, now: Now, out: &mut Vec<u8>) {
        let pause = if self.proofs.wait() { PING_EVERY } else { STATUS_EVERY };
        if self.told.after(pause) <= now {
            self.told = now;
            // The server looks at the time only to show it.
            status_update(out, self.proofs.mark(), 0, true);
        }
    }

    /// Returns the time at which something is due, `latest` if nothing is before.
    pub(super) fn wakes(&self, latest: Now) -> Now {
        let mut next = latest;
        if self.proofs.wait() {
            next = next.min(self.told.after(PING_EVERY));
        }
        if self.wants_snapshot() && !self.is_asking(StreamQuestion::Snapshot) {
            next = next.min(self.snapshot_due);
        }
        next
    }

    /// Whether a snapshot is the first to show a transaction that may have changed the schema.
    pub(super) fn is_defined(&mut self, snapshot: &XidSnapshot) -> bool {
        let before = self.define.len();
        self.define.retain(|xid| !snapshot.is_over_in_stream(*xid));
        self.define.len() < before
    }

    /// Checks that the server has not been silent for too long.
    pub(super) fn check(&self, now: Now) -> Result<(), String> {
        let patience = if self.is_asking(StreamQuestion::Look) { LOOK_PATIENCE } else { PATIENCE };
        if self.asked.iter().any(|(_, since)| since.after(patience) <= now) {
            return Err("the server does not answer".to_owned());
        }
        if self.is_streaming() && self.heard.after(PATIENCE) <= now {
            return Err("the walsender is silent".to_owned());
        }
        Ok(())
    }

    /// Whether it is to be asked what is above relations that the stream has named.
    pub(super) fn names_are_due(&self) -> bool {
        self.relations.as_ref().is_some_and(|relations| relations.are_due().0)
    }

    /// Returns the question what is above these relations.
    pub(super) fn ask_above(&mut self) -> (StreamQuestion, String) {
        self.looks += 1;
        let named = self.relations.as_mut().map(|it| it.ask(self.looks));
        self.looked_at[1] = named.unwrap_or_default();
        (StreamQuestion::Above, questions::above(&self.looked_at[1]))
    }

    /// Returns the question about the tables that replies read: a look at them, or, if two looks at
    /// the same have found the same, whether the next one would find something else.
    pub(super) fn ask_about_tables(
        &mut self,
        now: Now,
        tables: Vec<u32>,
        publications: &[String],
    ) -> (StreamQuestion, String) {
        self.look_due = now.after(LOOK_EVERY);
        let version = self.checked.map_or(0, |checked| checked.version);
        if self.has_looked_at(now, &tables) {
            return (StreamQuestion::Digest, questions::digest(&tables, version));
        }
        let text = questions::look(&tables, publications, version);
        self.looked_at[0] = tables;
        (StreamQuestion::Look, text)
    }

    /// Whether these tables have been looked at and nothing was changed since.
    fn has_looked_at(&self, now: Now, tables: &[u32]) -> bool {
        self.last_look.as_ref().is_some_and(|last| {
            last.is_settled && last.tables == tables && now < last.at.after(WHOLE_LOOK_EVERY)
        })
    }

    /// Notes what a look at tables has found. The questions behind it were not answered meanwhile.
    pub(super) fn looked(&mut self, now: Now, tables: &[u32], looked: &Looked) {
        self.asked.iter_mut().for_each(|(_, since)| *since = now);
        let digest = [looked.as_of.clone(), looked.rest.clone()];
        let same = |last: &LastLook| last.tables == tables && last.digest == digest;
        let is_settled = self.last_look.as_ref().is_some_and(same);
        self.last_look = Some(LastLook { at: now, tables: tables.to_vec(), digest, is_settled });
    }

    /// Takes in a digest of the catalog. If it is another one, the tables are looked at.
    pub(super) fn digested(&mut self, now: Now, digest: &Looked) {
        let same = |last: &LastLook| last.digest == [&*digest.as_of, &*digest.rest];
        if !self.last_look.as_ref().is_some_and(same) {
            (self.last_look, self.look_due) = (None, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of thousands of tables is asked about all of them if something has changed.
    #[test]
    fn tables_are_looked_at_until_two_looks_find_the_same() {
        let mut stream = Stream::new(Now(1), 7);
        let looked = |as_of: &str, rest: &str| Looked {
            as_of: as_of.to_owned(),
            rest: rest.to_owned(),
            ..Looked::default()
        };
        stream.looked(Now(2), &[1, 2], &looked("a", "b"));
        assert!(!stream.has_looked_at(Now(3), &[1, 2]));
        stream.looked(Now(3), &[1, 2], &looked("a", "b"));
        assert!(stream.has_looked_at(Now(4), &[1, 2]) && !stream.has_looked_at(Now(4), &[1]));
        stream.digested(Now(4), &looked("a", "b"));
        assert!(stream.has_looked_at(Now(5), &[1, 2]));
        assert!(!stream.has_looked_at(Now(3).after(WHOLE_LOOK_EVERY), &[1, 2]));
        for (as_of, rest) in [("x", "b"), ("a", "x")] {
            stream.looked(Now(5), &[1, 2], &looked("a", "b"));
            stream.looked(Now(5), &[1, 2], &looked("a", "b"));
            stream.digested(Now(6), &looked(as_of, rest));
            assert!(!stream.has_looked_at(Now(6), &[1, 2]) && stream.look_due == Now(6));
        }
    }

    /// A walsender may wait for an open transaction for hours. Questions show meanwhile whether the
    /// server is there.
    #[test]
    fn a_server_is_asked_while_its_walsender_does_a_command() {
        for phase in [Phase::Creating, Phase::Starting] {
            let start = Now(1_000_000);
            let mut stream = Stream { phase, ..Stream::new(start, 7) };
            let mut now = stream.snapshot_due;
            for _ in 0..100 {
                assert!(stream.wants_snapshot() && stream.snapshot_due <= now);
                stream.asks_snapshot(now);
                stream.asked.push((StreamQuestion::Snapshot, now));
                assert!(stream.snapshot_due > now, "it is not asked without a pause");
                assert_eq!(stream.check(now), Ok(()));
                stream.asked.clear();
                now = stream.snapshot_due;
                assert!(now < start.after(PATIENCE * 100));
            }
            stream.asks_snapshot(now);
            stream.asked.push((StreamQuestion::Snapshot, now));
            assert!(stream.check(now.after(PATIENCE)).is_err());
            stream.asked.insert(0, (StreamQuestion::Look, now));
            assert_eq!(stream.check(now.after(PATIENCE)), Ok(()), "it looks at all tables");
            assert!(stream.check(now.after(LOOK_PATIENCE)).is_err());
            stream.asked.remove(0);
            stream.looked(now.after(PATIENCE), &[], &Looked::default());
            assert_eq!(stream.check(now.after(PATIENCE)), Ok(()), "the others waited for it");
            stream.streams(now);
            assert_eq!(stream.snapshot_due, now);
        }
    }
}

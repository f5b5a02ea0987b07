//! A connection to a PostgreSQL server: all that is known of it.
//!
//! Who has it is its [`Custody`]. It goes from one to another only through `lending`, which asks the
//! ledger for a proof before anybody else gets it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::auth::Login;
use crate::columns::Found;
use crate::defaults::{Defaults, Resets};
use crate::encoding::Encoding;
use crate::ids::{Conn, PoolId, Segment};
use crate::inbox::Inbox;
use crate::job::{Job, Wish};
use crate::ledger::{Failed, Ledger, Seq};
use crate::run::Run;
use crate::schema::Defining;
use crate::settings::{self, Edit, Profile, SETTINGS_BYTES_MAX, Welcome};
use crate::slots::{Slot, Slots, Unnamed};
use crate::statement::{Generation, Statement};
use crate::time::Now;
use crate::told::Told;
use crate::undo::{Reverted, ServerUndo, Undos};

/// Who has a server.
#[derive(Debug)]
pub(crate) enum Custody {
    /// Nobody yet: it is being connected.
    Connecting,
    /// Nobody yet: it is being logged in to.
    Login(Box<LoggingIn>),
    /// The pool.
    Idle,
    /// A client.
    Lent(Conn),
    /// A job of ours.
    Job(Box<Job>),
    /// Nobody: it is being made fit for the next client.
    Resetting,
    /// Nobody: a cancel request is under way that must not hit the next client.
    Cancelling,
}

/// A login under way.
#[derive(Debug)]
pub(crate) struct LoggingIn {
    /// The exchange of passwords; `None` once the server has let us in.
    pub(crate) login: Option<Login>,
    /// What the server has said of itself.
    pub(crate) welcome: Welcome,
}

impl LoggingIn {
    /// Whether one more setting may be reported.
    pub(crate) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        settings::bytes(&self.welcome) + settings::cost(name, value) <= SETTINGS_BYTES_MAX
    }
}

/// A connection to a server.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state")]
pub(crate) struct Server {
    /// Names it for as long as the process runs.
    pub(crate) serial: u64,
    /// Its connection here.
    pub(crate) conn: Conn,
    /// Its pool.
    pub(crate) pool: PoolId,
    /// Who has it.
    pub(crate) custody: Custody,
    /// What it owes.
    pub(crate) ledger: Ledger,
    /// What to take back of its set if it refuses.
    pub(crate) undos: Undos<ServerUndo>,
    /// The statements it has.
    pub(crate) slots: Slots,
    /// What arrived and is not dealt with yet.
    pub(crate) inbox: Inbox,
    /// Its settings, as they will be when it has read all that was sent.
    pub(crate) profile: Arc<Profile>,
    /// What it gives its session, of the settings that it reports.
    pub(crate) defaults: Defaults,
    /// Whether one of these may have been set to the very value that it is by default: a change of that would pass it by.
    pub(crate) stuck: bool,
    /// What it was asked to reset.
    pub(crate) resets: Resets,
    /// The number of the first ledger entry that no Flush has asked for.
    pub(crate) flushed: Seq,
    /// Its process ID there.
    pub(crate) pid: u32,
    /// What a cancel request must show.
    pub(crate) key: Box<[u8]>,
    /// Cancel requests under way to it.
    pub(crate) cancels: u32,
    /// Whether a client left something behind that a reset has to remove.
    pub(crate) dirty: bool,
    /// Whether it is to be closed once its client is done.
    pub(crate) close_needed: bool,
    /// Whether reading it is paused, because its client reads slowly.
    pub(crate) paused: bool,
    /// The hash of the parameter types that a Describe has said; its columns are to come.
    pub(crate) described: u64,
    /// The same as they came.
    pub(crate) parameters: Vec<u8>,
    /// A mark of the portal that was bound last; zero where not from its unnamed statement.
    pub(crate) bound: u32,
    /// The segment whose error is not told: that of the segment before it was.
    pub(crate) hush: Segment,
    /// A text that is being run, where it was looked at.
    pub(crate) run: Option<Run>,
    /// For the next text that is.
    pub(crate) text: Vec<u8>,
    /// Statements that texts of its clients could have used.
    pub(crate) wishes: Vec<Wish>,
    /// Whether it has done a job since a client had it.
    pub(crate) worked: bool,
    /// The encoding of its database.
    pub(crate) encoding: Encoding,
    /// Whether its transaction may have changed the schema.
    pub(crate) defines: bool,
    /// Held while what was sent to it may change the schema.
    pub(crate) defining: Option<Defining>,
    /// What a probe has found so far, or the settings of a client's login that the server is to look at.
    pub(crate) probed: Option<Edit>,
    /// What of it has its default.
    pub(crate) unset: Edit,
    /// Whether it has found more than is kept.
    pub(crate) overfull: bool,
    /// Settings it has reported that its profile does not have yet.
    pub(crate) told: Option<Box<Told>>,
    /// Whether its transaction may have changed what sessions begin with.
    pub(crate) renews: bool,
    /// Its pool's [`crate::shared::PoolShared::era`] when it was connected.
    pub(crate) era: u32,
    /// When it was connected.
    pub(crate) connected: Now,
    /// When it was lent or given back.
    pub(crate) since: Now,
    /// When the request under way began.
    pub(crate) asked: Now,
    /// When it is too old.
    pub(crate) expires: Now,
    /// Uses of a statement that it had.
    pub(crate) hits: u64,
    /// Uses of a statement that it was sent first.
    pub(crate) misses: u64,
}

/// A server on its way from one core to another: idle, quiescent, nothing queued.
#[derive(Debug)]
pub struct Parcel(pub(crate) Server);

impl Server {
    /// A server that is being connected.
    pub(crate) fn new(
        serial: u64,
        conn: Conn,
        pool: PoolId,
        nothing: &Arc<Profile>,
        now: Now,
    ) -> Self {
        Self {
            serial,
            conn,
            pool,
            custody: Custody::Connecting,
            ledger: Ledger::default(),
            undos: Undos::default(),
            slots: Slots::default(),
            inbox: Inbox::default(),
            profile: nothing.clone(),
            defaults: Defaults { profile: nothing.clone(), since: now },
            stuck: false,
            resets: Resets::new(),
            flushed: 0,
            pid: 0,
            key: Box::default(),
            cancels: 0,
            dirty: false,
            close_needed: false,
            paused: false,
            described: 0,
            parameters: Vec::new(),
            bound: 0,
            hush: 0,
            run: None,
            text: Vec::new(),
            wishes: Vec::new(),
            worked: false,
            encoding: Encoding::default(),
            defines: false,
            defining: None,
            probed: None,
            unset: Edit::default(),
            overfull: false,
            told: None,
            renews: false,
            era: 0,
            connected: now,
            since: now,
            asked: now,
            expires: Now(u64::MAX),
            hits: 0,
            misses: 0,
        }
    }

    /// Takes back what the messages changed in its set that failed or were skipped.
    pub(crate) fn undo(&mut self, failed: &Failed) {
        let (mut never, mut before) = (SmallVec::<[u64; 4]>::new(), None);
        for Reverted { undo, failed: own } in self.undos.fail(failed) {
            match undo {
                ServerUndo::Prepared(id) => {
                    never.push(id);
                    if self.slots.peek(id).is_some_and(|slot| failed.covers(slot.segment)) {
                        self.slots.remove(id);
                    }
                }
                ServerUndo::Evicted(slot) => {
                    if self.slots.peek(slot.served.statement().id).is_none() {
                        self.slots.insert(slot);
                    }
                }
                ServerUndo::Unnamed(old) => {
                    let old = if own { Unnamed::NONE } else { old };
                    before = Some(old);
                    // What a later segment has changed since stays.
                    if failed.covers(self.slots.unnamed.segment) {
                        self.slots.unnamed = old;
                    }
                }
            }
        }
        if never.is_empty() && before.is_none() {
            return;
        }
        // What later segments would bring back was not there when they changed it.
        self.undos.retain(|undo| match undo {
            ServerUndo::Evicted(slot) => {
                let id = slot.served.statement().id;
                !(never.contains(&id) && failed.covers(slot.segment))
            }
            ServerUndo::Unnamed(old) => {
                if failed.covers(old.segment)
                    && let Some(before) = before
                {
                    *old = before;
                }
                true
            }
            ServerUndo::Prepared(_) => true,
        });
    }

    /// Whether it is logged in and nobody has it.
    pub(crate) fn is_ownerless(&self) -> bool {
        match &self.custody {
            Custody::Idle | Custody::Resetting | Custody::Cancelling => true,
            Custody::Job(job) => job.back.is_none(),
            Custody::Connecting | Custody::Login(_) | Custody::Lent(_) => false,
        }
    }

    /// The generation of a statement that it has for certain, if that is the current one. Counts as a use of it.
    #[inline]
    pub(crate) fn has(&mut self, statement: &Statement) -> Option<Generation> {
        self.slot(statement).map(|slot| slot.generation)
    }

    /// The same: all of it.
    #[inline]
    pub(crate) fn slot(&mut self, statement: &Statement) -> Option<&Slot> {
        let slot = self.slots.touch(statement.id)?;
        let current = slot.generation == statement.generation() && self.ledger.is_sure(slot);
        current.then_some(&*slot)
    }

    /// What the copy of a statement has that was asked about by ledger entry `seq`, and its generation.
    pub(crate) fn asked_by(&mut self, id: u64, seq: Seq) -> Option<(Generation, &mut Found)> {
        let unnamed = &mut self.slots.unnamed;
        if unnamed.id == id && unnamed.found.asked == seq {
            return Some((unnamed.generation, &mut self.slots.unnamed.found));
        }
        let slot = self.slots.peek_mut(id).filter(|slot| slot.found.asked == seq)?;
        Some((slot.generation, &mut slot.found))
    }

    /// The client it is lent to, or will be again when its job is done.
    pub(crate) fn client(&self) -> Option<Conn> {
        match &self.custody {
            Custody::Lent(client) => Some(*client),
            Custody::Job(job) => job.back,
            _ => None,
        }
    }
}

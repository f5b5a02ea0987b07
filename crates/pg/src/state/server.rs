//! A connection to a PostgreSQL server: all that is known of it.
//!
//! Who has it is its [`ServerState`]. It goes from one to another only through `lending`, which asks the
//! list of outstanding requests for a proof before anybody else gets it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::auth::Login;
use crate::ground::ids::{Conn, PoolId, Segment};
use crate::ground::inbox::Inbox;
use crate::ground::time::Now;
use crate::normalized::run::Run;
use crate::pipeline::job::{Job, Wish};
use crate::pipeline::outstanding::{Failed, Outstanding, Seq};
use crate::pipeline::schema::Defining;
use crate::pipeline::undo::{Reverted, ServerUndo, Undos};
use crate::settings::defaults::{Defaults, Resets};
use crate::settings::encoding::Encoding;
use crate::settings::reported::Told;
use crate::settings::session::{self, SETTINGS_BYTES_MAX, ServerParameters, Settings, SettingsMut};
use crate::statements::columns::Found;
use crate::statements::of_server::{ServerStatement, ServerStatements, Unnamed};
use crate::statements::statement::{Generation, Statement};

/// Who has a server.
#[derive(Debug)]
pub(crate) enum ServerState {
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
    pub(crate) server_parameters: ServerParameters,
}

impl LoggingIn {
    /// Whether one more setting may be reported.
    pub(crate) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        session::bytes(&self.server_parameters) + session::cost(name, value) <= SETTINGS_BYTES_MAX
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
    pub(crate) state: ServerState,
    /// What it owes.
    pub(crate) outstanding: Outstanding,
    /// What to take back of its set if it refuses.
    pub(crate) undos: Undos<ServerUndo>,
    /// The statements it has.
    pub(crate) statements: ServerStatements,
    /// What arrived and is not dealt with yet.
    pub(crate) inbox: Inbox,
    /// Its settings, as they will be when it has read all that was sent.
    pub(crate) settings: Arc<Settings>,
    /// What it gives its session, of the settings that it reports.
    pub(crate) defaults: Defaults,
    /// Whether one of these may have been set to the very value that it is by default: a change of that would pass it by.
    pub(crate) stuck: bool,
    /// What it was asked to reset.
    pub(crate) resets: Resets,
    /// The number of the first list of outstanding requests entry that no Flush has asked for.
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
    pub(crate) skip_error_in: Segment,
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
    pub(crate) settings_read: Option<SettingsMut>,
    /// What of it has its default.
    pub(crate) unset: SettingsMut,
    /// Whether it has found more than is kept.
    pub(crate) overfull: bool,
    /// Settings it has reported that its profile does not have yet.
    pub(crate) told: Option<Box<Told>>,
    /// Whether its transaction may have changed what sessions begin with.
    pub(crate) renews: bool,
    /// Its pool's [`crate::state::shared::PoolShared::era`] when it was connected.
    pub(crate) reconnects: u32,
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
pub struct Transfer(pub(crate) Server);

impl Server {
    /// A server that is being connected.
    pub(crate) fn new(
        serial: u64,
        conn: Conn,
        pool: PoolId,
        nothing: &Arc<Settings>,
        now: Now,
    ) -> Self {
        Self {
            serial,
            conn,
            pool,
            state: ServerState::Connecting,
            outstanding: Outstanding::default(),
            undos: Undos::default(),
            statements: ServerStatements::default(),
            inbox: Inbox::default(),
            settings: nothing.clone(),
            defaults: Defaults { settings: nothing.clone(), since: now },
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
            skip_error_in: 0,
            run: None,
            text: Vec::new(),
            wishes: Vec::new(),
            worked: false,
            encoding: Encoding::default(),
            defines: false,
            defining: None,
            settings_read: None,
            unset: SettingsMut::default(),
            overfull: false,
            told: None,
            renews: false,
            reconnects: 0,
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
                    if self.statements.peek(id).is_some_and(|slot| failed.covers(slot.segment)) {
                        self.statements.remove(id);
                    }
                }
                ServerUndo::Evicted(slot) => {
                    if self.statements.peek(slot.served.statement().id).is_none() {
                        self.statements.insert(slot);
                    }
                }
                ServerUndo::Unnamed(old) => {
                    let old = if own { Unnamed::NONE } else { old };
                    before = Some(old);
                    // What a later segment has changed since stays.
                    if failed.covers(self.statements.unnamed.segment) {
                        self.statements.unnamed = old;
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
        match &self.state {
            ServerState::Idle | ServerState::Resetting | ServerState::Cancelling => true,
            ServerState::Job(job) => job.back.is_none(),
            ServerState::Connecting | ServerState::Login(_) | ServerState::Lent(_) => false,
        }
    }

    /// The generation of a statement that it has for certain, if that is the current one. Counts as a use of it.
    #[inline]
    pub(crate) fn has(&mut self, statement: &Statement) -> Option<Generation> {
        self.slot(statement).map(|slot| slot.generation)
    }

    /// The same: all of it.
    #[inline]
    pub(crate) fn slot(&mut self, statement: &Statement) -> Option<&ServerStatement> {
        let slot = self.statements.touch(statement.id)?;
        let current = slot.generation == statement.generation() && self.outstanding.is_sure(slot);
        current.then_some(&*slot)
    }

    /// What the copy of a statement has that was asked about by list of outstanding requests entry `seq`, and its generation.
    pub(crate) fn asked_by(&mut self, id: u64, seq: Seq) -> Option<(Generation, &mut Found)> {
        let unnamed = &mut self.statements.unnamed;
        if unnamed.id == id && unnamed.found.asked == seq {
            return Some((unnamed.generation, &mut self.statements.unnamed.found));
        }
        let slot = self.statements.peek_mut(id).filter(|slot| slot.found.asked == seq)?;
        Some((slot.generation, &mut slot.found))
    }

    /// The client it is lent to, or will be again when its job is done.
    pub(crate) fn client(&self) -> Option<Conn> {
        match &self.state {
            ServerState::Lent(client) => Some(*client),
            ServerState::Job(job) => job.back,
            _ => None,
        }
    }
}

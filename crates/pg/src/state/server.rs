//! A server's session: everything that PostgreSQL's protocol knows of a server.
//!
//! Before another client gets the server, the pool asks the protocol for a proof from
//! [`Outstanding`] that the server owes nothing.
//!
//! The session is made of parts, and a part's fields are its own: anybody may read what a part
//! shows, and its own file alone writes it. Whoever sends or reads a message says by a method what
//! has happened.

mod front;
mod statements;
mod transaction;

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pg_wire::back as read;
use refrain_pool::Now;

use crate::auth::Login;
use crate::ground::ids::ServerOrigin;
use crate::ground::server_state::{IN_RECOVERY, READ_ONLY, ServerState};
use crate::pipeline::job::Wishes;
use crate::pipeline::outstanding::Outstanding;
use crate::results::confirmed::Began;
use crate::settings::of_server::ServerSettings;
use crate::settings::session::{self, SETTINGS_BYTES_MAX, ServerParameters, Settings};
use crate::standbys::replayed::Replayed;
use crate::state::replication::Relay;
use crate::state::server::front::FrontSegment;
use crate::state::server::statements::ServerStatements;
use crate::state::server::transaction::TransactionChanges;
use crate::statements::columns::Expected;
use crate::statements::of_server::ServerStatement;
use crate::statements::statement::{Generation, Statement};

/// A query that a new server runs before its login is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginQuery {
    /// None so far.
    None,
    /// That of `connect_query`.
    Connect,
    /// That for the server's state.
    State,
    /// That for the server's origin.
    Origin,
}

/// A login under way.
#[derive(Debug)]
pub struct LoggingIn {
    /// The exchange of passwords; `None` once the server has let us in.
    pub(crate) login: Option<Login>,
    /// The version of the secret that it uses.
    pub(crate) secret: u32,
    /// When it began, and as of which change of roles.
    pub(crate) began: Began,
    /// The ParameterStatus messages that the server has sent.
    pub(crate) server_parameters: ServerParameters,
    /// The query of Refrain's own that the server runs.
    pub(crate) runs: LoginQuery,
    /// The server's answer to the query for its state.
    pub(crate) state: Option<ServerState>,
    /// The server's answer to the query for its origin.
    pub(crate) origin: Option<ServerOrigin>,
}

impl LoggingIn {
    /// Notes a setting that the server reports. `connect_query` may change one.
    pub(crate) fn report(&mut self, name: &[u8], value: &[u8]) {
        if self.runs == LoginQuery::Connect {
            self.server_parameters.retain(|(known, _)| **known != *name);
        }
        self.server_parameters.push((name.into(), value.into()));
    }

    /// Notes the row that answers the query for the server's state.
    pub(crate) fn note_state(&mut self, row: &[u8]) {
        let mut columns = read::columns(row).map(Option::unwrap_or_default);
        if let (Some(recovery), Some(read_only)) = (columns.next(), columns.next()) {
            self.state = Some(ServerState::of(recovery, read_only));
        }
    }

    /// Returns the server's state, if the server has reported it or was asked.
    pub(crate) fn state(&self) -> Option<ServerState> {
        let reported = |name: &[u8]| {
            let found = self.server_parameters.iter().find(|(known, _)| **known == *name);
            found.map(|(_, value)| &**value)
        };
        let both = reported(IN_RECOVERY).zip(reported(READ_ONLY));
        both.map(|(recovery, read_only)| ServerState::of(recovery, read_only)).or(self.state)
    }

    /// Whether one more setting may be reported.
    pub(crate) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        session::bytes(&self.server_parameters) + session::cost(name, value) <= SETTINGS_BYTES_MAX
    }
}

/// A server's session, as PostgreSQL's protocol knows it.
#[derive(Debug)]
pub struct ServerSession {
    /// The replies that it owes.
    pub(crate) outstanding: Outstanding,
    /// Its prepared statements.
    pub(crate) statements: ServerStatements,
    /// The columns that a client expects of a statement which it runs before they are known.
    pub(crate) expected: Expected,
    /// Its run-time parameters.
    pub(crate) settings: ServerSettings,
    /// Changes that its transaction may have made beyond its session.
    pub(crate) transaction: TransactionChanges,
    /// The segment that it is answering.
    pub(crate) front: FrontSegment,
    /// The segments that it has got from other clients behind that one.
    behind: VecDeque<FrontSegment>,
    /// The statements that it is to prepare once no client holds it.
    pub(crate) wishes: Wishes,
    /// Its position, if it is a standby on which reads run.
    pub(crate) replayed: Replayed,
    /// Its origin, if it was asked for it.
    pub(crate) origin: Option<ServerOrigin>,
    /// Its replication connection, if it is one.
    pub(crate) relay: Option<Relay>,
    /// Whether a client left something behind that a reset has to remove.
    dirty: bool,
}

impl ServerSession {
    /// Makes the session of a server that is being connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            outstanding: Outstanding::default(),
            statements: ServerStatements::default(),
            expected: Expected::ANYTHING,
            settings: ServerSettings::new(nothing, now),
            transaction: TransactionChanges::default(),
            front: FrontSegment::default(),
            behind: VecDeque::new(),
            wishes: Wishes::default(),
            replayed: Replayed::default(),
            origin: None,
            relay: None,
            dirty: false,
        }
    }

    /// Begins the segment of a client that joins others.
    pub(crate) fn begin_behind(&mut self) {
        self.behind.push_back(FrontSegment::default());
    }

    /// Goes on with the segment of the next client.
    pub(crate) fn go_on(&mut self) {
        self.front = self.behind.pop_front().unwrap_or_default();
    }

    /// Goes on with a segment whose replies nobody gets.
    pub(crate) fn turn_of_nobody_begins(&mut self) {
        self.go_on();
        // A read need not be run again for nobody.
        self.front.end();
        while let Some((seq, _)) = self.outstanding.take_fake_reply() {
            self.statements.settle(seq);
        }
    }

    /// Returns the segment that it gets now.
    #[inline]
    pub(crate) fn last(&self) -> &FrontSegment {
        match self.behind.is_empty() {
            true => &self.front,
            false => self.behind.back().unwrap_or(&self.front),
        }
    }

    /// Returns the segment that it gets now.
    #[inline]
    pub(crate) fn last_mut(&mut self) -> &mut FrontSegment {
        self.behind.back_mut().unwrap_or(&mut self.front)
    }

    /// Notes that a client leaves, or may leave, something behind that a reset has to remove.
    pub(crate) fn soil(&mut self) {
        self.dirty = true;
    }

    /// True if a reset has to remove what a client left behind.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Notes that the server has run its client's DISCARD ALL: nothing is left to be removed.
    pub(crate) fn discarded(&mut self) {
        self.dirty = false;
    }

    /// Notes that the server has run Refrain's reset query: it has its default settings and no
    /// statements.
    pub(crate) fn reset(&mut self) {
        self.statements.clear();
        self.settings.reset();
        self.dirty = false;
    }

    /// Returns the generation of a statement that it has for certain, if that is the current one.
    /// Counts as a use of it (E26).
    #[inline]
    pub(crate) fn has(&mut self, statement: &Statement) -> Option<Generation> {
        self.slot(statement).map(|slot| slot.generation)
    }

    /// Returns a statement that it has for certain in its current generation. Counts as a use of
    /// it.
    #[inline]
    pub(crate) fn slot(&mut self, statement: &Statement) -> Option<&ServerStatement> {
        let slot = self.statements.touch(statement.id)?;
        let current = slot.generation == statement.generation() && self.outstanding.is_sure(slot);
        current.then_some(slot)
    }
}

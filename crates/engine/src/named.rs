//! Statements of the extended protocol that name what the session has: EXECUTE, and FETCH (E51).
//!
//! What they return is settled at their Parse, by what has the name then. So no two Parses of them are one: each has a
//! statement of its own (`docs/decisions/0018-execute-lends-names.md`).
//!
//! PostgreSQL looks for the statement that EXECUTE names when that is parsed, bound and run. The server knows the client's
//! by another name: before each of these it is lent one of the client's name as well, and the client keeps the server from then on.

use std::rc::Rc;
use std::sync::Arc;

use refrain_sql::{Kind, Traits};
use refrain_wire::write;

use crate::client::Pins;
use crate::ledger::{Owed, Purpose};
use crate::names::Name;
use crate::settings;
use crate::statement::{Identity, Statement};
use crate::talk::{Stop, Talk};
use crate::texts::Local;
use crate::undo::ClientUndo;

/// The name of a statement that a text runs.
fn executed(kind: Kind) -> Option<refrain_sql::Name> {
    match kind {
        Kind::Execute(name) | Kind::ExplainExecute(name) | Kind::CreateAsExecute(name) => {
            Some(name)
        }
        _ => None,
    }
}

impl Talk<'_> {
    /// The statement of a Parse: one of its own where what it is hangs on what the session has.
    pub(crate) fn intern_parse(&mut self, tail: &[u8]) -> Result<Rc<Local>, Stop> {
        let local = self.intern(tail);
        if !local.statement.names {
            return Ok(local);
        }
        self.lend_name(&local.statement)?;
        let identity = Identity { pool: self.server.pool, env: self.client.env(), tail };
        let statement = Arc::new(self.hub.shared.registry.make(identity));
        statement.start_epoch(local.statement.epoch());
        let own = Rc::new(Local::new(statement, self.client.current()));
        // It is kept where it was parsed: elsewhere it may be another.
        own.used();
        Ok(own)
    }

    /// A statement is about to be parsed, bound or run: the server is lent the one that it names, if it is the client's. Says
    /// what running that may do.
    pub(crate) fn lend_name(&mut self, statement: &Statement) -> Result<Traits, Stop> {
        let Some(name) = executed(statement.scan.kind) else { return Ok(Traits::NONE) };
        let name = Name::from_slice(&name.fold(statement.text()));
        self.gate_until_settled()?;
        let Some(own) = self.client.names.get(&name) else { return Ok(Traits::NONE) };
        let (local, lent) = (own.held.local().clone(), own.lent);
        let traits = local.statement.scan.traits;
        self.suspect(&local.statement.scan);
        self.note_settings(local.statement.text(), &local.statement.scan);
        let there = lent != 0 && !self.server.ledger.is_unsettled(lent);
        // A failed transaction refuses whatever it is.
        if !there && !self.server.ledger.has_failed() {
            self.lend(&name, &local);
        }
        Ok(traits)
    }

    /// Gives the server a statement of the client's by the client's name, in the place of whatever had that.
    fn lend(&mut self, name: &Name, local: &Rc<Local>) {
        let (own, other) = (self.client.current().clone(), local.profile.clone());
        let foreign = self.is_foreign(local);
        if foreign {
            self.run_aside(&settings::reading(&own, &other), Purpose::Environment);
        }
        let safe = self.not_ours(name);
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, &safe);
        write::parse(out, &safe, &local.statement.tail);
        self.pool().counters.server_parses += 1;
        self.owe_us(Owed::Close, Purpose::Prepare, 0);
        let seq = self.owe_us(Owed::Parse, Purpose::Prepare, local.statement.id);
        self.undoable(seq, ClientUndo::Lent(name.clone()));
        let segment = self.server.ledger.segment();
        if let Some(own) = self.client.names.get(name) {
            own.lent = segment;
        }
        if foreign {
            self.run_aside(&settings::reading(&other, &own), Purpose::Return);
        }
        self.pin(Pins::PREPARED);
    }
}

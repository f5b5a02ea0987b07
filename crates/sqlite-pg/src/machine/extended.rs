//! Handles Parse, Bind, Describe, Execute and Close.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use refrain_pg_wire::frame::{Header, split_string};
use refrain_pg_wire::front::{Bind, Parse, Target};
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Error, Run, Statement};

use crate::command::Command;
use crate::failure::{Failure, state};
use crate::prepared::{BindValues, Portal, PortalState, Prepared, StatementAction, bind_literals};
use crate::shape::{Described, Formats, Shape, description};
use crate::text::Source;
use crate::translation_cache::{TranslatedStatement, given};

use super::commands::no_statement;
use super::compiling::{Whole, check_names, compile, only_one, significant, utf8};
use super::parameter_types::{inferred_parameters, translated_parameters};
use super::rows::{RowsFor, RowsPlan, has_more};
use super::{Machine, Need, Outcome, RunsOn, Stop};

/// The most statements that a session may have prepared.
const STATEMENTS_MAX: usize = 10_000;

impl Machine {
    pub(super) fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let parse = Parse::read(body).map_err(malformed)?;
        let named = !parse.name.is_empty();
        if named && self.statements.contains_key(parse.name) {
            let name = String::from_utf8_lossy(parse.name);
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(state::DUPLICATE_STATEMENT, message).into());
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return Err(Failure::new("53400", "too many prepared statements").into());
        }
        self.let_go();
        let client = utf8(parse.text())?;
        let oids = parse.tail.get(client.len() + 3..).unwrap_or_default();
        let oids =
            oids.chunks_exact(4).map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]));
        let prepared = self.prepare(client, &oids.collect::<Vec<_>>())?;
        self.statements.insert(parse.name.to_vec(), prepared);
        write::bare(out, back::PARSE_COMPLETE);
        Ok(())
    }

    fn prepare(&mut self, client: &str, oids: &[u32]) -> Result<Arc<Prepared>, Stop> {
        let Some(start) = significant(client) else {
            return Ok(Prepared::answered(client, StatementAction::Nothing));
        };
        let text = client.get(start..).unwrap_or_default();
        if let Some((command, length)) = Command::read(text.as_bytes())? {
            if !command.ends_failure() {
                self.access.transaction.check()?;
            }
            only_one(text.get(length..).unwrap_or_default())?;
            let text = text.get(..length).unwrap_or_default();
            return Ok(Prepared::answered(text, StatementAction::Command(command)));
        }
        self.access.transaction.check()?;
        let source = Source::read(client.as_bytes());
        self.with(|machine, connection| {
            let given = given(oids);
            let whole = Whole { source: &source, client, given: &given };
            let compiled = compile(connection, &machine.access, &whole, start)?;
            let end = start + compiled.length;
            only_one(client.get(end..).unwrap_or_default())?;
            let Some(statement) = compiled.statement else {
                return Ok(Prepared::answered(client, StatementAction::Nothing));
            };
            check_names(&statement)?;
            let translated = compiled.translated;
            let parameters = match &translated {
                Some(translated) => translated_parameters(&translated.parameters, oids),
                None => inferred_parameters(connection, client, statement.parameter_count(), oids)
                    .map_err(|error| machine.access.stop(&error, b""))?,
            };
            let sql = match compiled.rewritten {
                Some(rewritten) => rewritten,
                None => utf8(source.bytes.get(start..end).unwrap_or_default())?.to_owned(),
            };
            let prepared =
                Prepared::run(sql, client, parameters, compiled.values, translated, oids);
            machine.hold(&prepared, statement);
            Ok(prepared)
        })
    }

    pub(super) fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let Ok(Some(names)) = Bind::read(body, true) else {
            return Err(Failure::protocol("invalid message format").into());
        };
        let prepared = self.find(names.statement)?;
        let ends_failure =
            matches!(&prepared.action, StatementAction::Command(command) if command.ends_failure());
        if !ends_failure {
            self.access.transaction.check()?;
        }
        if !names.portal.is_empty() && self.portals.contains_key(names.portal) {
            let name = String::from_utf8_lossy(names.portal);
            let message = format!("cursor \"{name}\" already exists");
            return Err(Failure::new(state::DUPLICATE_CURSOR, message).into());
        }
        let values = BindValues::read(body)?;
        values.check(&prepared, names.statement)?;
        self.drop_portal(names.portal);
        let mut prepared = prepared;
        let parked = match prepared.action {
            StatementAction::Sql => {
                let run = |machine: &mut Self, prepared: &Arc<Prepared>| {
                    machine.with(|machine, connection| {
                        Ok(machine.bound(connection, prepared, &values)?.park())
                    })
                };
                let bound = match run(self, &prepared) {
                    Err(Stop::Stale) => {
                        prepared = self.anew(&prepared)?.known_as(&prepared);
                        run(self, &prepared)
                    }
                    bound => bound,
                };
                Some(bound?)
            }
            _ => None,
        };
        let formats = values.results;
        let (bind, state) = (body.to_vec(), PortalState::Bound(parked));
        let portal = Portal { prepared, formats, bind, state, owes_description: false };
        self.portals.insert(names.portal.to_vec(), portal);
        write::bare(out, back::BIND_COMPLETE);
        Ok(())
    }

    fn find(&self, name: &[u8]) -> Result<Arc<Prepared>, Failure> {
        let found = self.statements.get(name).cloned();
        found.ok_or_else(|| match name {
            b"" => Failure::new(state::NO_STATEMENT, "unnamed prepared statement does not exist"),
            name => no_statement(&String::from_utf8_lossy(name)),
        })
    }

    pub(super) fn describe(&mut self, body: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        match Target::read(body).map_err(malformed)? {
            Target::Statement(name) => {
                let prepared = self.find(name)?;
                prepared.write_parameters(out);
                self.describe_statement(&prepared, out)
            }
            Target::Portal(name) => self.describe_portal(name, behind, out),
            Target::Unknown => Err(Failure::protocol("invalid DESCRIBE message subtype").into()),
        }
    }

    fn describe_statement(&mut self, prepared: &Arc<Prepared>, out: &mut Vec<u8>) -> Outcome {
        let formats = Formats::default();
        match &prepared.action {
            StatementAction::Nothing => description(out, &[], &formats),
            StatementAction::Command(command) => description(out, &command.columns(), &formats),
            StatementAction::Sql => {
                self.access.transaction.check()?;
                let mut prepared = prepared.clone();
                let shape = loop {
                    let shape = self.with(|machine, connection| {
                        let mut statement = machine.fresh(connection, &prepared)?;
                        let shape = machine.shape(connection, &prepared, &mut statement)?;
                        machine.hold(&prepared, statement);
                        Ok(shape)
                    })?;
                    if !shape.stale {
                        break shape;
                    }
                    prepared = self.anew(&prepared)?;
                };
                description(out, &shape.columns, &formats);
                prepared.describe(shape);
            }
        }
        Ok(())
    }

    /// Describes a portal. If the next message runs the portal, its first step describes it: that
    /// needs no look at the schema. Others are described by the statement they hold.
    fn describe_portal(&mut self, name: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        let Some(portal) = self.portals.get_mut(name) else {
            return Err(no_portal(name).into());
        };
        let (mut prepared, formats) = (portal.prepared.clone(), portal.formats.clone());
        match &prepared.clone().action {
            StatementAction::Nothing => description(out, &[], &formats),
            StatementAction::Command(command) => description(out, &command.columns(), &formats),
            StatementAction::Sql => {
                self.access.transaction.check()?;
                if matches!(portal.state, PortalState::Bound(_)) && runs_next(behind, name) {
                    portal.owes_description = true;
                    return Ok(());
                }
                let mut state = std::mem::replace(&mut portal.state, PortalState::Done);
                let (shape, state) = loop {
                    let (shape, after) = self.with(|machine, connection| {
                        machine.look_at(connection, &prepared, state)
                    })?;
                    if !shape.stale {
                        break (shape, after);
                    }
                    (prepared, state) = (self.anew(&prepared)?, PortalState::Bound(None));
                };
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.state = state;
                }
                description(out, &shape.columns, &formats);
                prepared.describe(shape);
            }
        }
        Ok(())
    }

    /// Returns the shape of a portal's rows. The portal keeps its statement, unless the schema has
    /// changed before the portal ran.
    fn look_at(
        &mut self,
        connection: &Connection,
        prepared: &Arc<Prepared>,
        state: PortalState,
    ) -> Result<(Arc<Shape>, PortalState), Stop> {
        let (parked, sent, otherwise) = match state {
            PortalState::Bound(parked) => (parked, 0, PortalState::Bound(None)),
            PortalState::Suspended(parked, sent) => (Some(parked), sent, PortalState::Done),
            PortalState::Done => (None, 0, PortalState::Done),
        };
        let run = parked.and_then(|parked| connection.resume(parked));
        if let Some(mut run) = run
            && (sent > 0 || run.is_current().map_err(|error| failure_of(&error, prepared))?)
        {
            let shape = self.shape(connection, prepared, &mut run)?;
            return Ok((shape, PortalState::paused(run.park(), sent)));
        }
        let mut statement = self.fresh(connection, prepared)?;
        Ok((self.shape(connection, prepared, &mut statement)?, otherwise))
    }

    /// Translates a statement again for the current schema, and replaces the old translation
    /// everywhere.
    fn anew(&mut self, prepared: &Arc<Prepared>) -> Result<Arc<Prepared>, Stop> {
        if let Some(translated) = &prepared.translated {
            self.access.pool.translations.forget(translated);
        }
        let made = self.prepare(&prepared.client, &prepared.oids)?;
        let is_old = |known: &Arc<Prepared>| Arc::ptr_eq(known, prepared);
        let statements = self.statements.values_mut().filter(|known| is_old(known));
        statements.for_each(|known| *known = made.clone());
        let portals = self.portals.values_mut().filter(|portal| is_old(&portal.prepared));
        portals.for_each(|portal| portal.prepared = made.clone());
        Ok(made)
    }

    pub(super) fn execute(&mut self, body: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        let bad = || Failure::protocol("invalid message format");
        let (name, limit) = split_string(body).ok_or_else(bad)?;
        let limit = limit.try_into().map(i32::from_be_bytes).map_err(|_| bad())?;
        let limit = u64::try_from(limit).unwrap_or(0);
        let Some(portal) = self.portals.get(name) else { return Err(no_portal(name).into()) };
        let prepared = portal.prepared.clone();
        match &prepared.action {
            StatementAction::Nothing => write::bare(out, back::EMPTY_QUERY_RESPONSE),
            StatementAction::Command(Command::Copy) => {
                return self.copy(&prepared.client, false, out);
            }
            StatementAction::Command(command) => return self.command(command, false, out),
            StatementAction::Sql => {
                self.access.transaction.check()?;
                let last = Header::parse(behind)
                    .ok()
                    .flatten()
                    .is_some_and(|next| next.tag == front::SYNC);
                let (name, owed) = (name.to_vec(), portal.owes_description);
                let run = |machine: &mut Self, out: &mut Vec<u8>| {
                    let name = name.clone();
                    machine.with(|machine, connection| {
                        machine.run_portal(connection, name, limit, last, out)
                    })
                };
                return match run(self, out) {
                    // The client has not seen the columns yet, so they may be other ones by now.
                    Err(Stop::Stale) if owed || !prepared.is_described() => {
                        self.anew(&prepared)?;
                        if let Some(portal) = self.portals.get_mut(&name) {
                            portal.state = PortalState::Bound(None);
                        }
                        run(self, out)
                    }
                    done => done,
                };
            }
        }
        Ok(())
    }

    fn run_portal(
        &mut self,
        connection: &Connection,
        name: Vec<u8>,
        limit: u64,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let Some(portal) = self.portals.get_mut(&name) else { return Ok(()) };
        if matches!(portal.state, PortalState::Suspended(..)) && self.access.runs_on == RunsOn::Loop
        {
            // The client has its first rows already, so it cannot begin again on a thread.
            return Err(Stop::Needs(Need::Thread));
        }
        let (prepared, formats) = (portal.prepared.clone(), portal.formats.clone());
        let owed = portal.owes_description;
        let state = std::mem::replace(&mut portal.state, PortalState::Done);
        let is_done = matches!(state, PortalState::Done);
        let (mut run, before) = self.take_up(connection, &prepared, &name, state)?;
        if is_done {
            self.shape(connection, &prepared, &mut run)?.tag.write(out, 0, 0);
            return Ok(());
        }
        let translated = prepared.translated.clone();
        let writes = !run.readonly() || translated.as_ref().is_some_and(|it| it.writes());
        let last = last && !has_more(translated.as_deref());
        if let Err(stop) = self.access.open(connection, writes, last) {
            if let Some(portal) = self.portals.get_mut(&name) {
                portal.state = PortalState::paused(run.park(), before);
            }
            return Err(stop);
        }
        self.access.lock(connection, translated.as_deref())?;
        let client = prepared.client.clone();
        let rows_for = RowsFor::Portal(name.clone());
        let plan = RowsPlan { rows_for, client, translated, formats, limit, before, writes };
        let started = self.start_rows(connection, run, plan, out);
        if matches!(started, Err(Stop::Needs(Need::Thread)))
            && let Some(portal) = self.portals.get_mut(&name)
        {
            portal.state = PortalState::Bound(None);
            portal.owes_description = owed;
        }
        started
    }

    /// Returns the run of a portal and how many of its rows were sent.
    fn take_up<'c>(
        &mut self,
        connection: &'c Connection,
        prepared: &Arc<Prepared>,
        name: &[u8],
        state: PortalState,
    ) -> Result<(Run<'c, 'static>, u64), Stop> {
        let (parked, sent) = match state {
            PortalState::Bound(parked) => (parked, 0),
            PortalState::Suspended(parked, sent) => (Some(parked), sent),
            PortalState::Done => (None, 0),
        };
        match parked.and_then(|parked| connection.resume(parked)) {
            Some(run) => Ok((run, sent)),
            None if sent > 0 => Err(no_portal(name).into()),
            None => {
                let body = self.portals.get(name).map(|portal| portal.bind.clone());
                let values = BindValues::read(body.as_deref().unwrap_or_default())?;
                Ok((self.bound(connection, prepared, &values)?, 0))
            }
        }
    }

    pub(super) fn close(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        match Target::read(body).map_err(malformed)? {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => self.drop_portal(name),
            Target::Unknown => {
                return Err(Failure::protocol("invalid CLOSE message subtype").into());
            }
        }
        write::bare(out, back::CLOSE_COMPLETE);
        Ok(())
    }

    /// Keeps a compiled statement at hand, as Bind mostly follows at once.
    fn hold(&mut self, prepared: &Arc<Prepared>, statement: Statement<'_>) {
        self.held = Some((prepared.clone(), statement.start().park()));
    }

    /// Gives the compiled statement at hand back to the cache.
    pub(super) fn let_go(&mut self) {
        if let (Some((_, held)), Some(connection)) = (self.held.take(), &self.access.connection) {
            drop(connection.resume(held));
        }
    }

    /// Returns a compiled form of a statement: the one at hand, or one from the cache.
    fn compiled<'c>(
        &mut self,
        connection: &'c Connection,
        prepared: &Arc<Prepared>,
    ) -> Result<Statement<'c>, Failure> {
        let held = self.held.take().and_then(|(of, parked)| Some((of, connection.resume(parked)?)));
        if let Some((of, run)) = held
            && Arc::ptr_eq(&of, prepared)
        {
            return Ok(run.finish());
        }
        let compiled = connection.prepare(prepared.text());
        let compiled = compiled.map_err(|error| failure_of(&error, prepared))?;
        compiled.statement.ok_or_else(|| no_statement(""))
    }

    /// Returns the shape of a statement, compiled or running.
    fn shape(
        &self,
        connection: &Connection,
        prepared: &Prepared,
        statement: &mut impl Described,
    ) -> Result<Arc<Shape>, Stop> {
        prepared.shape(statement, connection).map_err(|error| self.access.stop(&error, b""))
    }

    /// Returns a compiled form that matches the file's present schema.
    fn fresh<'c>(
        &mut self,
        connection: &'c Connection,
        prepared: &Arc<Prepared>,
    ) -> Result<Statement<'c>, Failure> {
        let mut statement = self.compiled(connection, prepared)?;
        statement.refresh().map_err(|error| failure_of(&error, prepared))?;
        Ok(statement)
    }

    /// Returns a statement with its parameters bound, before its first step. If it writes, its
    /// columns are checked here against those that the client knows: after a write that would be
    /// too late. A session with objects of its own may see another table than before.
    fn bound<'c>(
        &mut self,
        connection: &'c Connection,
        prepared: &Arc<Prepared>,
        values: &BindValues<'_>,
    ) -> Result<Run<'c, 'static>, Stop> {
        let mut statement = self.compiled(connection, prepared)?;
        let has_columns = statement.column_count() > 0;
        let translated = prepared.translated.as_deref();
        let alone =
            self.access.has_temporary || translated.is_some_and(TranslatedStatement::is_alone);
        if (alone || !statement.readonly()) && (has_columns || translated.is_some()) {
            statement.refresh().map_err(|error| failure_of(&error, prepared))?;
            let shape = self.shape(connection, prepared, &mut statement)?;
            if shape.stale {
                return Err(Stop::Stale);
            }
            prepared.check_known(&shape)?;
        }
        prepared.translated.as_deref().map_or(Ok(()), TranslatedStatement::compute)?;
        let mut run = statement.start();
        let bound = run.parameter_count();
        for (index, parameter) in prepared.parameters.iter().enumerate().take(bound) {
            let value = values.get(index, parameter)?;
            let bound = run.bind_copied(index + 1, value.value());
            bound.map_err(|error| failure_of(&error, prepared))?;
        }
        let bound = bind_literals(&mut run, &prepared.literals);
        bound.map_err(|error| failure_of(&error, prepared))?;
        Ok(run)
    }

    /// Drops a portal; its statement goes back to the cache.
    fn drop_portal(&mut self, name: &[u8]) {
        let Entry::Occupied(portal) = self.portals.entry(name.to_vec()) else { return };
        let parked = match portal.remove().state {
            PortalState::Bound(parked) => parked,
            PortalState::Suspended(parked, _) => Some(parked),
            PortalState::Done => None,
        };
        if let (Some(parked), Some(connection)) = (parked, &self.access.connection) {
            drop(connection.resume(parked));
        }
    }
}

/// True if the next message runs this portal.
fn runs_next(behind: &[u8], name: &[u8]) -> bool {
    let Ok(Some((next, body))) = super::message(behind, usize::MAX) else { return false };
    next.tag == front::EXECUTE && split_string(body).is_some_and(|(portal, _)| portal == name)
}

fn failure_of(error: &Error, prepared: &Prepared) -> Failure {
    Failure::of_sqlite(error, prepared.client.as_bytes())
}

fn malformed(bad: refrain_pg_wire::Malformed) -> Stop {
    Stop::Failed(Failure::protocol(bad.to_string()))
}

fn no_portal(name: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(name);
    Failure::new(state::NO_PORTAL, format!("portal \"{name}\" does not exist"))
}

//! Parse, Bind, Describe, Execute and Close.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use refrain_wire::frame::Header;
use refrain_wire::frame::split_string;
use refrain_wire::front::{Bind, Parse, Target};
use refrain_wire::tag::{back, front};
use refrain_wire::write;

use crate::connection::Connection;
use crate::front::command::Command;
use crate::front::failure::{Failure, state};
use crate::front::prepared::{Does, Parameter, Portal, Prepared, Stage, Values};
use crate::front::shape::{Described, Formats, Shape, row_description};
use crate::front::text::Source;
use crate::front::types::Type;
use crate::statement::{Run, Statement};

use super::own::no_statement;
use super::rows::{Plan, Whose};
use super::simple::{compile, significant, utf8};
use super::{Machine, Need, Outcome, Place, Stop};

/// Statements that a session may have prepared.
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
        let client = utf8(parse.text())?;
        let oids = parse.tail.get(client.len() + 3..).unwrap_or_default();
        let oids =
            oids.chunks_exact(4).map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]));
        let prepared = self.prepare(client, &oids.collect::<Vec<_>>())?;
        self.statements.insert(parse.name.to_vec(), Arc::new(prepared));
        write::bare(out, back::PARSE_COMPLETE);
        Ok(())
    }

    fn prepare(&mut self, client: &str, oids: &[u32]) -> Result<Prepared, Stop> {
        let Some(start) = significant(client) else {
            return Ok(Prepared::new(String::new(), client.to_owned(), Vec::new(), Does::Nothing));
        };
        let text = client.get(start..).unwrap_or_default();
        if let Some((command, length)) = Command::read(text.as_bytes())? {
            if !command.ends_failure() {
                self.transaction.check()?;
            }
            only_one(text.get(length..).unwrap_or_default())?;
            let text = text.get(..length).unwrap_or_default().to_owned();
            return Ok(Prepared::new(String::new(), text, Vec::new(), Does::Command(command)));
        }
        self.transaction.check()?;
        let source = Source::read(client.as_bytes());
        self.with(|_, connection| {
            let compiled = compile(connection, &source, client, 0)?;
            only_one(client.get(compiled.length..).unwrap_or_default())?;
            let length = compiled.length;
            let Some(mut statement) = compiled.statement else {
                return Ok(Prepared::new(
                    String::new(),
                    client.to_owned(),
                    Vec::new(),
                    Does::Nothing,
                ));
            };
            check_names(&statement)?;
            let shape = statement.shape(connection, client.as_bytes());
            let parameters = parameters(&shape, oids);
            let sql = match compiled.rewritten {
                Some(rewritten) => rewritten,
                None => utf8(source.bytes.get(..length).unwrap_or_default())?.to_owned(),
            };
            Ok(Prepared::new(sql, client.to_owned(), parameters, Does::Sql))
        })
    }

    pub(super) fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let Ok(Some(names)) = Bind::read(body, true) else {
            return Err(Failure::protocol("invalid message format").into());
        };
        let prepared = self.find(names.statement)?;
        let ends_failure =
            matches!(&prepared.does, Does::Command(command) if command.ends_failure());
        if !ends_failure {
            self.transaction.check()?;
        }
        if !names.portal.is_empty() && self.portals.contains_key(names.portal) {
            let name = String::from_utf8_lossy(names.portal);
            let message = format!("cursor \"{name}\" already exists");
            return Err(Failure::new(state::DUPLICATE_CURSOR, message).into());
        }
        let values = Values::read(body)?;
        values.check(&prepared, names.statement)?;
        self.drop_portal(names.portal);
        let parked = match prepared.does {
            Does::Sql => {
                let run = |_: &mut Self, connection: &Connection| {
                    Ok(bound(connection, &prepared, &values)?.park())
                };
                Some(self.with(run)?)
            }
            _ => None,
        };
        let formats = values.results;
        let portal = Portal { prepared, formats, bind: body.to_vec(), stage: Stage::Bound(parked) };
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

    pub(super) fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        match Target::read(body).map_err(malformed)? {
            Target::Statement(name) => {
                let prepared = self.find(name)?;
                prepared.write_parameters(out);
                self.describe_as(&prepared, &Formats::default(), out)
            }
            Target::Portal(name) => {
                let Some(portal) = self.portals.get(name) else {
                    return Err(no_portal(name).into());
                };
                let (prepared, formats) = (portal.prepared.clone(), portal.formats.clone());
                self.describe_as(&prepared, &formats, out)
            }
            Target::Unknown => Err(Failure::protocol("invalid DESCRIBE message subtype").into()),
        }
    }

    /// Appends RowDescription or NoData, and notes what the client was told.
    fn describe_as(
        &mut self,
        prepared: &Prepared,
        formats: &Formats,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let columns = match &prepared.does {
            Does::Nothing => Vec::new(),
            Does::Command(command) => command.columns(),
            Does::Sql => {
                self.transaction.check()?;
                let shape = self.with(|_, connection| {
                    let mut statement = fresh(connection, prepared)?;
                    Ok(statement.shape(connection, prepared.client.as_bytes()))
                })?;
                prepared.describe(&shape);
                shape.columns.clone()
            }
        };
        if columns.is_empty() {
            write::bare(out, back::NO_DATA);
        } else {
            row_description(out, &columns, formats);
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, body: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        let bad = || Failure::protocol("invalid message format");
        let (name, limit) = split_string(body).ok_or_else(bad)?;
        let limit = limit.try_into().map(i32::from_be_bytes).map_err(|_| bad())?;
        let limit = u64::try_from(limit).unwrap_or(0);
        let Some(portal) = self.portals.get(name) else { return Err(no_portal(name).into()) };
        let prepared = portal.prepared.clone();
        match &prepared.does {
            Does::Nothing => write::bare(out, back::EMPTY_QUERY_RESPONSE),
            Does::Command(Command::Copy) => return self.copy(&prepared.client, false, out),
            Does::Command(command) => return self.own(command, false, out),
            Does::Sql => {
                self.transaction.check()?;
                let last = Header::parse(behind)
                    .ok()
                    .flatten()
                    .is_some_and(|next| next.tag == front::SYNC);
                let name = name.to_vec();
                return self.with(|machine, connection| {
                    machine.run_portal(connection, name, limit, last, out)
                });
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
        let on_loop = self.place == Place::Loop;
        let Some(portal) = self.portals.get_mut(&name) else { return Ok(()) };
        let prepared = portal.prepared.clone();
        let formats = portal.formats.clone();
        if matches!(portal.stage, Stage::Suspended(..)) && on_loop {
            // Its first rows are with the client already, so it could not begin again elsewhere.
            return Err(Stop::Needs(Need::Thread));
        }
        let (run, before) = match std::mem::replace(&mut portal.stage, Stage::Done) {
            Stage::Bound(parked) => {
                let parked = parked.and_then(|parked| connection.resume(parked));
                let run = match parked {
                    Some(run) => run,
                    None => bound(connection, &prepared, &Values::read(&portal.bind)?)?,
                };
                (run, 0)
            }
            Stage::Suspended(parked, sent) => match connection.resume(parked) {
                Some(run) => (run, sent),
                None => return Err(no_portal(&name).into()),
            },
            Stage::Done => {
                let mut run = bound(connection, &prepared, &Values::read(&portal.bind)?)?;
                let shape = run.shape(connection, prepared.client.as_bytes());
                shape.tag.write(out, 0, 0);
                return Ok(());
            }
        };
        let writes = !run.readonly();
        let opened = self.open(connection, writes, last);
        if let Err(stop) = opened {
            self.rewind(&name, run, before);
            return Err(stop);
        }
        let client = prepared.client.as_str().into();
        let whose = Whose::Portal(name.clone());
        let plan = Plan { whose, client, formats, limit, before, writes };
        let started = self.start_rows(connection, run, plan, out);
        if matches!(started, Err(Stop::Needs(Need::Thread)))
            && let Some(portal) = self.portals.get_mut(&name)
        {
            portal.stage = Stage::Bound(None);
        }
        started
    }

    /// Puts a portal back to where it was before it was to run.
    fn rewind(&mut self, name: &[u8], run: Run<'_, 'static>, before: u64) {
        if let Some(portal) = self.portals.get_mut(name) {
            let parked = run.park();
            portal.stage = match before {
                0 => Stage::Bound(Some(parked)),
                sent => Stage::Suspended(parked, sent),
            };
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

    /// Drops a portal, and has its statement go back to the cache.
    fn drop_portal(&mut self, name: &[u8]) {
        let Entry::Occupied(portal) = self.portals.entry(name.to_vec()) else { return };
        let parked = match portal.remove().stage {
            Stage::Bound(parked) => parked,
            Stage::Suspended(parked, _) => Some(parked),
            Stage::Done => None,
        };
        if let (Some(parked), Some(connection)) = (parked, &self.connection) {
            drop(connection.resume(parked));
        }
    }
}

/// A statement with its parameters, not run yet. What the client was told of a statement that writes is checked now,
/// as it cannot be once it has written.
fn bound<'c>(
    connection: &'c Connection,
    prepared: &Prepared,
    values: &Values<'_>,
) -> Result<Run<'c, 'static>, Failure> {
    let trouble = |error| Failure::of_sqlite(&error, prepared.client.as_bytes());
    let compiled = connection.prepare(prepared.text()).map_err(trouble)?;
    let mut statement = compiled.statement.ok_or_else(|| no_statement(""))?;
    if !statement.readonly() && statement.column_count() > 0 && prepared.is_described() {
        statement.refresh().map_err(trouble)?;
        prepared.check(&statement.shape(connection, prepared.client.as_bytes()))?;
    }
    let mut run = statement.start();
    let bound = run.parameter_count();
    for (index, parameter) in prepared.parameters.iter().enumerate().take(bound) {
        let value = values.get(index, parameter)?;
        run.bind_copied(index + 1, value.value()).map_err(trouble)?;
    }
    Ok(run)
}

/// A statement that describes itself as the file is now.
fn fresh<'c>(connection: &'c Connection, prepared: &Prepared) -> Result<Statement<'c>, Failure> {
    let trouble = |error| Failure::of_sqlite(&error, prepared.client.as_bytes());
    let compiled = connection.prepare(prepared.text()).map_err(trouble)?;
    let mut statement = compiled.statement.ok_or_else(|| no_statement(""))?;
    statement.refresh().map_err(trouble)?;
    Ok(statement)
}

/// The parameters: what the client says, else what the text says, else text.
fn parameters(shape: &Shape, oids: &[u32]) -> Vec<Parameter> {
    let count = shape.parameters.len().max(oids.len());
    let parameter = |index: usize| {
        let said = oids.get(index).copied().filter(|oid| *oid != 0 && *oid != Type::Unknown.oid());
        let inferred = shape.parameters.get(index).copied().flatten();
        let sent = said.map(|oid| Type::of_oid(oid).unwrap_or(Type::Text));
        let oid = said.unwrap_or_else(|| inferred.unwrap_or(Type::Text).oid());
        // A text is read as what the text casts or compares it to.
        let is = match (sent, inferred) {
            (Some(sent), Some(inferred)) if sent.is_text() => inferred,
            (Some(sent), _) => sent,
            (None, inferred) => inferred.unwrap_or(Type::Text),
        };
        Parameter { oid, is }
    };
    (0..count).map(parameter).collect()
}

/// SQLite must have read all parameters as numbers.
fn check_names(statement: &Statement<'_>) -> Result<(), Failure> {
    let named = (1..=statement.parameter_count())
        .filter_map(|index| statement.parameter_name(index))
        .any(|name| !name.starts_with('?'));
    if named {
        return Err(Failure::new(state::SYNTAX, "parameters are written $1, $2, …"));
    }
    Ok(())
}

fn only_one(rest: &str) -> Result<(), Failure> {
    if significant(rest).is_none() {
        return Ok(());
    }
    let message = "cannot insert multiple commands into a prepared statement";
    Err(Failure::new(state::SYNTAX, message))
}

fn malformed(bad: refrain_wire::Malformed) -> Stop {
    Stop::Failed(Failure::protocol(bad.to_string()))
}

fn no_portal(name: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(name);
    Failure::new(state::NO_PORTAL, format!("portal \"{name}\" does not exist"))
}

//! Runs a statement and sends its rows.

use std::sync::Arc;

use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Error, Parked, Run, Step};

use crate::attributes::Attributes;
use crate::copy;
use crate::dialect::{Catalog, FollowUp, NotTranslated, SchemaChange, SchemaEdit};
use crate::failure::{About, Failure};
use crate::prepared::PortalState;
use crate::shape::{Described, Formats, Shape, Tag, data_row, description, row_description};
use crate::translation_cache::TranslatedStatement;
use crate::violations;

use super::access::Access;
use super::bounds::OUTPUT_ON_THREAD;
use super::{Machine, Need, Outcome, RunsOn, Stop};

/// A statement parked in the middle of its rows.
pub(super) struct Rows {
    parked: Parked,
    plan: RowsPlan,
    shape: Arc<Shape>,
    sent: u64,
}

/// The receiver of the rows, and their form.
#[derive(Clone, Debug)]
pub(super) struct RowsPlan {
    pub(super) rows_for: RowsFor,
    /// The client's text of the statement.
    pub(super) client: Arc<str>,
    /// Its translation, if it is PostgreSQL's dialect.
    pub(super) translated: Option<Arc<TranslatedStatement>>,
    pub(super) formats: Formats,
    /// The maximum number of rows of this Execute; 0 for all.
    pub(super) limit: u64,
    /// Rows that earlier Executes of the portal sent.
    pub(super) before: u64,
    /// True if the statement writes.
    pub(super) writes: bool,
}

/// The receiver of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowsFor {
    /// A simple query; a RowDescription comes before the rows.
    Query,
    /// A portal of this name.
    Portal(Vec<u8>),
    /// COPY TO.
    Copy(copy::Style),
}

/// The reason why a run stopped sending rows.
enum SendEnd {
    Done,
    /// The limit of Execute is reached.
    Limit,
    /// The output is full.
    Full,
}

impl Machine {
    /// Runs a statement from its beginning. If it cannot run on the loop, the output stays as it
    /// was.
    pub(super) fn start_rows(
        &mut self,
        connection: &Connection,
        run: Run<'_, 'static>,
        plan: RowsPlan,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mark = out.len();
        let started = self.first_step(connection, run, plan, out);
        if matches!(started, Err(Stop::Needs(Need::Thread))) && self.rows.is_none() {
            out.truncate(mark);
        }
        started
    }

    fn first_step(
        &mut self,
        connection: &Connection,
        mut run: Run<'_, 'static>,
        plan: RowsPlan,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if run.is_costly() && self.access.runs_on == RunsOn::Loop {
            return Err(Stop::Needs(Need::Thread));
        }
        let fresh = plan.before == 0;
        let job = connection.job(self.access.context.control.token);
        let first = if fresh {
            let first =
                run.step().map_err(|error| self.access.violated(connection, &run, &plan, &error));
            let sql = plan.translated.as_ref().map_or("", |translated| translated.sql.as_str());
            first.map_err(|stop| of_rows(stop, sql))?
        } else {
            Step::Row
        };
        drop(job);
        let shape = run.shape(connection, plan.client.as_bytes(), plan.translated.as_deref());
        let shape = shape.map_err(|error| self.access.stop(&error, plan.client.as_bytes()))?;
        if shape.stale {
            if let Some(translated) = &plan.translated {
                self.access.pool.translations.forget(translated);
            }
            return Err(Stop::Stale);
        }
        match &plan.rows_for {
            RowsFor::Query if !shape.columns.is_empty() => {
                row_description(out, &shape.columns, &plan.formats);
            }
            RowsFor::Query => {}
            RowsFor::Copy(style) => style.begin(out, &shape),
            RowsFor::Portal(name) => {
                if let Some(portal) = self.portals.get_mut(name).filter(|_| fresh) {
                    if std::mem::take(&mut portal.owes_description) {
                        description(out, &shape.columns, &plan.formats);
                        portal.prepared.describe(shape.clone());
                    } else {
                        portal.prepared.check(&shape)?;
                    }
                }
            }
        }
        let has_row = fresh && first == Step::Row;
        let done = fresh && first == Step::Done;
        self.pump(connection, run, RowsProgress { plan, shape, sent: 0, has_row, done }, out)
    }

    /// Goes on with a parked statement.
    pub(super) fn more_rows(&mut self, out: &mut Vec<u8>) -> Outcome {
        if self.access.runs_on == RunsOn::Loop {
            return Err(Stop::Needs(Need::Thread));
        }
        if out.len() > OUTPUT_ON_THREAD {
            return Err(Stop::Needs(Need::OutputRoom));
        }
        self.with(|machine, connection| {
            let Some(rows) = machine.rows.take() else { return Ok(()) };
            let Some(run) = connection.resume(rows.parked) else { return Ok(()) };
            let Rows { plan, shape, sent, .. } = rows;
            let progress = RowsProgress { plan, shape, sent, has_row: false, done: false };
            machine.pump(connection, run, progress, out)
        })
    }

    fn pump(
        &mut self,
        connection: &Connection,
        mut run: Run<'_, 'static>,
        mut progress: RowsProgress,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let job = connection.job(self.access.context.control.token);
        let came = self.access.send_rows(connection, &mut run, &mut progress, out);
        drop(job);
        match came? {
            SendEnd::Done => {
                run.finish();
                if let Some(translated) = &progress.plan.translated {
                    self.access.follow_ups(connection, translated)?;
                }
                self.finish_rows(connection, &progress, out)
            }
            SendEnd::Limit => {
                if let RowsFor::Portal(name) = &progress.plan.rows_for
                    && let Some(portal) = self.portals.get_mut(name)
                {
                    let sent = progress.plan.before + progress.sent;
                    portal.state = PortalState::Suspended(run.park(), sent);
                }
                write::bare(out, back::PORTAL_SUSPENDED);
                Ok(())
            }
            SendEnd::Full => {
                let RowsProgress { plan, shape, sent, .. } = progress;
                self.rows = Some(Rows { parked: run.park(), plan, shape, sent });
                // Not `Stop::Needs`: the message that began this must not be handled a second time.
                Ok(())
            }
        }
    }

    /// Appends what follows the last row.
    fn finish_rows(
        &mut self,
        connection: &Connection,
        progress: &RowsProgress,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let RowsProgress { plan, shape, sent, .. } = progress;
        if plan.writes {
            self.access.note_key(connection, plan);
            self.access.wrote(connection, shape)?;
        }
        if matches!(&shape.tag, Tag::Plain(word) if word == "VACUUM") {
            self.access.context.shared.numbers.forget();
        }
        let changes = if shape.columns.is_empty() { connection.changes() } else { *sent };
        match &plan.rows_for {
            RowsFor::Copy(style) => {
                style.end(out, *sent);
                write::command_complete(out, format!("COPY {sent}").as_bytes());
            }
            RowsFor::Portal(name) => {
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.state = PortalState::Done;
                }
                shape.tag.write(out, *sent, changes);
            }
            RowsFor::Query => shape.tag.write(out, *sent, changes),
        }
        if let RowsFor::Query | RowsFor::Copy(_) = plan.rows_for
            && let Some(simple) = &mut self.simple
        {
            simple.advance();
        }
        self.access.began = None;
        Ok(())
    }
}

impl Access {
    /// Runs the parts of a statement behind its first one.
    fn follow_ups(&mut self, connection: &Connection, translated: &TranslatedStatement) -> Outcome {
        for part in &translated.follow_ups {
            match part {
                FollowUp::Edit(edit) => self.redefine(connection, edit)?,
                FollowUp::Sqlite(sql) => {
                    let _job = connection.job(self.context.control.token);
                    let made = connection.trusted(|connection| connection.execute(sql, &[]));
                    made.map_err(|error| of_rows(self.stop(&error, b""), sql))?;
                }
                FollowUp::Statement(text) => self.follow(connection, text)?,
            }
        }
        Ok(())
    }

    /// Runs a statement behind another one.
    fn follow(&mut self, connection: &Connection, text: &str) -> Outcome {
        let found = self.pool.translations.get(connection, text, &[], true);
        let translated = match found {
            Ok(found) => found.translated,
            Err(NotTranslated::Refused(failure)) => {
                return Err(Failure { position: 0, ..failure }.into());
            }
            Err(NotTranslated::Sqlite) => {
                return Err(Failure::unsupported("this part of the statement").into());
            }
        };
        translated.compute()?;
        let run = || {
            let mut run = connection.statement(translated.sql.as_str())?.start();
            let _job = connection.job(self.context.control.token);
            while run.step()? == Step::Row {}
            Ok(())
        };
        run().map_err(|error| of_rows(self.stop(&error, b""), &translated.sql))?;
        self.follow_ups(connection, &translated)
    }

    /// Gives a table its new definition, and checks its rows against a new foreign key.
    fn redefine(&mut self, connection: &Connection, edit: &SchemaEdit) -> Outcome {
        let definition = |old: &str| edit.change.apply(old).ok_or_else(|| edit.refusal.clone());
        let _job = connection.job(self.context.control.token);
        connection.execute(&edit.begin, &[]).map_err(|error| self.stop(&error, b""))?;
        let old = Attributes::of(connection).definition(&edit.table).unwrap_or_default();
        let others = self.relabelled(connection, edit)?;
        let made = connection.redefine(&edit.table, &definition(&old)?, &others, &edit.end);
        let is_sound = made.and_then(|()| match &edit.foreign_key {
            Some(_) => connection.has_sound_keys(&edit.table),
            None => Ok(true),
        });
        let is_sound = is_sound.map_err(|error| not_unique(self.stop(&error, b""), edit))?;
        match (is_sound, &edit.foreign_key) {
            (false, Some(key)) => {
                let message = format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{key}\"",
                    edit.table
                );
                Err(Stop::Failed(Failure::new("23503", message)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the new definitions of what has the labels of an enum that an edit changes: names
    /// and CREATE statements.
    fn relabelled(
        &self,
        connection: &Connection,
        edit: &SchemaEdit,
    ) -> Result<Vec<(String, String)>, Stop> {
        let Some(relabel) = &edit.relabel else { return Ok(Vec::new()) };
        let mut labels = self.context.new_labels();
        match (relabel.renamed(), relabel.added()) {
            (Some((old, new)), _) => labels.rename(relabel.from, old, new),
            (None, Some(label)) => labels.add(relabel.from, label),
            (None, None) => {}
        }
        drop(labels);
        let attributes = Attributes::of(connection);
        let mut all = Vec::new();
        for mark in [relabel.from.listed_mark(), relabel.from.single_mark()] {
            for object in attributes.with_text(&mark).into_iter().filter(|it| !it.temporary) {
                let made = relabel.apply(&object.sql).ok_or_else(|| edit.refusal.clone())?;
                all.push((object.name, made));
            }
        }
        Ok(all)
    }

    /// Turns an error of a statement's step into a [`Stop`]: a violated constraint is told as the
    /// server tells it.
    fn violated(
        &self,
        connection: &Connection,
        run: &Run<'_, 'static>,
        plan: &RowsPlan,
        error: &Error,
    ) -> Stop {
        let target = plan.translated.as_ref().and_then(|translated| translated.target.as_ref());
        match (self.stop(error, plan.client.as_bytes()), target) {
            (Stop::Failed(failure), Some(target)) if failure.sqlstate.starts_with("23") => {
                let expanded = run.expanded();
                Stop::Failed(violations::told(connection, failure, target, expanded.as_deref()))
            }
            (stop, _) => stop,
        }
    }

    fn send_rows(
        &mut self,
        connection: &Connection,
        run: &mut Run<'_, 'static>,
        progress: &mut RowsProgress,
        out: &mut Vec<u8>,
    ) -> Result<SendEnd, Stop> {
        let full = out.len() + self.output_max();
        let RowsProgress { plan, shape, sent, has_row, done } = progress;
        if *done {
            return Ok(SendEnd::Done);
        }
        loop {
            if plan.limit > 0 && *sent == plan.limit {
                return Ok(SendEnd::Limit);
            }
            if out.len() > full {
                return Ok(SendEnd::Full);
            }
            if !std::mem::take(has_row) {
                let stepped =
                    run.step().map_err(|error| self.violated(connection, run, plan, &error))?;
                if stepped == Step::Done {
                    return Ok(SendEnd::Done);
                }
            }
            *sent += 1;
            let number = plan.before + *sent;
            match &plan.rows_for {
                RowsFor::Copy(style) => style.row(out, run, shape, number)?,
                _ => data_row(out, run, shape, &plan.formats, number)?,
            }
        }
    }

    /// Notes the key that SQLite has generated: the session may ask for the sequence's number.
    fn note_key(&self, connection: &Connection, plan: &RowsPlan) {
        let target = plan.translated.as_ref().and_then(|translated| translated.target.as_ref());
        if let Some((sequence, known)) = target.and_then(|target| target.key.as_ref()) {
            let number = (*known && connection.changes() > 0).then(|| connection.last_insert());
            self.context.sequences().gave((sequence.clone(), 0), number);
        }
        if matches!(plan.rows_for, RowsFor::Copy(_)) {
            self.context.sequences().copied();
        }
    }

    /// Notes that a statement has written. Outside of a transaction the right to write goes to the
    /// next session.
    fn wrote(&mut self, connection: &Connection, shape: &Shape) -> Outcome {
        if !self.transaction.is_open() {
            let written = self.pool.check_commit(connection);
            self.stop_writing();
            written?;
        }
        if matches!(shape.tag, Tag::Plain(_)) {
            self.has_temporary = Attributes::of(connection).has_temporary();
            self.changed_schema |= self.transaction.is_open();
        }
        Ok(())
    }
}

/// How far a statement has sent its rows.
struct RowsProgress {
    plan: RowsPlan,
    shape: Arc<Shape>,
    sent: u64,
    /// True if the statement stands at a row that was not sent.
    has_row: bool,
    /// True if there are no more rows.
    done: bool,
}

/// True if a statement is not over when SQLite has run its text: what follows belongs to its
/// transaction.
pub(super) fn has_more(translated: Option<&TranslatedStatement>) -> bool {
    translated.is_some_and(|translated| !translated.follow_ups.is_empty())
}

/// Returns the server's error where rows are not unique by a new key.
fn not_unique(stop: Stop, edit: &SchemaEdit) -> Stop {
    match (stop, &edit.change) {
        (Stop::Failed(failure), SchemaChange::AddKey { called, .. })
            if failure.sqlstate == "23505" =>
        {
            let message = format!("could not create unique index \"{called}\"");
            Stop::Failed(Failure::new("23505", message))
        }
        (stop, _) => stop,
    }
}

/// Returns the server's error where SET NOT NULL meets a NULL.
fn null_in_column(sql: &str) -> Failure {
    let names: Vec<String> = sql.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let (Some(table), Some(column)) = (names.first(), names.last()) else {
        return Failure::new("23502", "the column contains null values");
    };
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    let (table, column, constraint) = (table.clone(), column.clone(), String::new());
    let about = Some(Box::new(About { table, column, constraint }));
    Failure { about, ..Failure::new("23502", message) }
}

/// Returns the server's error where rows violate what ALTER TABLE adds: SQLite does not say what.
fn of_rows(stop: Stop, sql: &str) -> Stop {
    match stop {
        Stop::Failed(failure) if failure.sqlstate == "23000" && sql.starts_with("ALTER TABLE") => {
            Stop::Failed(match sql.ends_with("SET NOT NULL") {
                true => null_in_column(sql),
                false => Failure::new("23514", "the check constraint is violated by some row"),
            })
        }
        stop => stop,
    }
}

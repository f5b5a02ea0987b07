//! The Query message: one text with any number of statements.

use std::sync::Arc;

use refrain_pg_wire::front::query_text;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sqlite::Connection;

use crate::command::Command;
use crate::failure::Failure;
use crate::prepared::bind_literals;
use crate::shape::{Described, Formats};
use crate::text::Source;
use crate::translation_cache::TranslatedStatement;

use super::access::Access;
use super::compiling::{Whole, compile, significant, utf8};
use super::query_text::Simple;
use super::rows::{RowsFor, RowsPlan, has_more};
use super::{Machine, Outcome, RunsOn, Stop};

impl Machine {
    pub(super) fn query(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let text = query_text(body).map_err(|bad| Failure::protocol(bad.to_string()));
        let text = text.and_then(|text| utf8(text).map(Arc::<str>::from));
        let client = match text {
            Ok(client) => client,
            Err(failure) => {
                failure.write(out, "ERROR");
                self.end_failed();
                self.ready(out);
                return Ok(());
            }
        };
        // A Query message drops the unnamed portal, as in PostgreSQL.
        self.portals.remove(&b""[..]);
        let source = Source::read(client.as_bytes());
        self.simple = Some(Simple { client, source, at: 0, end: 0, any: false });
        Ok(())
    }

    /// Runs statements up to the end of the text.
    pub(super) fn more_simple(&mut self, out: &mut Vec<u8>) -> Outcome {
        while let Some(simple) = &mut self.simple {
            let Some(start) = significant(simple.rest()) else { break };
            simple.at += start;
            let (client, at) = (simple.client.clone(), simple.at);
            if let Some((command, length)) =
                Command::read(client.as_bytes().get(at..).unwrap_or_default())?
            {
                simple.end = at + length;
                if let Command::Copy = command {
                    let text = client.get(at..at + length).unwrap_or_default();
                    self.copy(text, true, out)?;
                } else {
                    // BEGIN, as any other command here, does not commit what the statements before
                    // it did.
                    self.command(&command, true, out)?;
                    self.simple.iter_mut().for_each(Simple::advance);
                }
            } else {
                self.access.transaction.check()?;
                match self.with(|machine, connection| machine.statement(connection, out)) {
                    // The next round translates it again, for the schema that is there now.
                    Err(Stop::Stale) => continue,
                    done => done?,
                }
            }
            if self.rows.is_some() || self.copy.is_some() {
                return Ok(());
            }
        }
        let Some(simple) = self.simple.take() else { return Ok(()) };
        if !simple.any {
            write::bare(out, back::EMPTY_QUERY_RESPONSE);
        }
        if self.access.transaction.is_implicit()
            && self.access.permit.is_some()
            && self.access.runs_on == RunsOn::Loop
        {
            self.simple = Some(simple);
            return Err(Stop::Needs(super::Need::Writer));
        }
        self.end_segment(out);
        Ok(())
    }

    /// Compiles and runs the next statement.
    fn statement(&mut self, connection: &Connection, out: &mut Vec<u8>) -> Outcome {
        let Some(simple) = &mut self.simple else { return Ok(()) };
        let whole = Whole { source: &simple.source, client: &simple.client, given: &[] };
        let compiled = compile(connection, &self.access, &whole, simple.at)?;
        simple.end = simple.at + compiled.length;
        let Some(mut statement) = compiled.statement else {
            simple.at = simple.end;
            return Ok(());
        };
        let translated = compiled.translated;
        if statement.parameter_count() > compiled.values.len() {
            let failure = Failure::new("42P02", "there is no parameter $1");
            return Err(failure.hint("parameters need the extended protocol").into());
        }
        if let Some(translated) = &translated
            && let Err(failure) = translated.compute()
        {
            return Err(self.access.not_computed(connection, translated, failure));
        }
        let client: Arc<str> = simple.client.get(simple.at..simple.end).unwrap_or_default().into();
        let behind = simple.client.get(simple.end..).unwrap_or_default();
        let last = significant(behind).is_none();
        let writes = !statement.readonly() || translated.as_ref().is_some_and(|it| it.writes());
        self.access.open(connection, writes, last && !has_more(translated.as_deref()))?;
        self.access.lock(connection, translated.as_deref())?;
        // After the first step of a write it is too late for an error of its description.
        if writes && (translated.is_some() || statement.column_count() > 0) {
            statement.refresh().map_err(|error| self.access.stop(&error, b""))?;
            let shape = statement.shape(connection, client.as_bytes(), translated.as_deref());
            if shape.map_err(|error| self.access.stop(&error, b""))?.stale {
                translated
                    .iter()
                    .for_each(|translated| self.access.pool.translations.forget(translated));
                return Err(Stop::Stale);
            }
        }
        let formats = Formats::default();
        let (rows_for, limit, before) = (RowsFor::Query, 0, 0);
        let plan = RowsPlan { rows_for, client, translated, formats, limit, before, writes };
        let mut run = statement.start();
        let bound = bind_literals(&mut run, &compiled.values);
        bound.map_err(|error| self.access.stop(&error, plan.client.as_bytes()))?;
        self.start_rows(connection, run, plan, out)
    }
}

impl Access {
    /// Returns the error of a constant, unless the constant may have a value in the schema that is
    /// there now: the statement is then translated again.
    fn not_computed(
        &self,
        connection: &Connection,
        translated: &TranslatedStatement,
        failure: Failure,
    ) -> Stop {
        match translated.is_stale(connection) {
            Ok(true) => {}
            Ok(false) => return failure.into(),
            Err(error) => return self.stop(&error, b""),
        }
        self.pool.translations.forget(translated);
        Stop::Stale
    }
}

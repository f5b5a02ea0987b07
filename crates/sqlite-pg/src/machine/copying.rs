//! COPY in a session.

use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Step, Value};

use crate::attributes::Attributes;
use crate::copy::{CopiedTable, Copy, CopyIn, CopyTarget, Fields, Style};
use crate::decode;
use crate::dialect::{Attribute, Catalog, missing};
use crate::encode::Format;
use crate::failure::{Failure, state};
use crate::key_mark::GivenBy;
use crate::shape::Formats;
use crate::sql_text::quoted;
use crate::text::Source;
use crate::translation_cache::TranslatedStatement;
use crate::types::Type;

use super::compiling::{Whole, compile, significant};
use super::query_text::Simple;
use super::rows::{RowsFor, RowsPlan};
use super::{Machine, Outcome};

impl Machine {
    /// Begins a COPY.
    pub(super) fn copy(&mut self, text: &str, simple: bool, out: &mut Vec<u8>) -> Outcome {
        self.access.transaction.check()?;
        match Copy::read(text)? {
            Copy::Out { query, style } => {
                self.with(|machine, connection| machine.copy_out(connection, &query, style, out))
            }
            Copy::OutOf { table, columns, style } => self.with(|machine, connection| {
                let columns = is_table(connection, &table)
                    .and_then(|()| copied(connection, &table, &columns))
                    .map_err(|failure| machine.access.not_compiled(connection, failure))?;
                let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
                let query = format!("SELECT {} FROM {}", names.join(", "), table.sql());
                machine.copy_out(connection, &query, style, out)
            }),
            Copy::In { table, columns, style } => self.with(|machine, connection| {
                machine.access.open(connection, true, false)?;
                let into = insert(connection, &table, &columns)
                    .map_err(|failure| machine.access.not_compiled(connection, failure))?;
                machine.copy = Some(CopyIn::begin(style, into, simple, out));
                Ok(())
            }),
        }
    }

    fn copy_out(
        &mut self,
        connection: &Connection,
        query: &str,
        style: Style,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let source = Source::read(query.as_bytes());
        let whole = Whole { source: &source, client: query, given: &[] };
        let compiled = compile(connection, &self.access, &whole, 0)?;
        let syntax = || Failure::new(state::SYNTAX, "syntax error in COPY");
        let (statement, translated) = (compiled.statement.ok_or_else(syntax)?, compiled.translated);
        if significant(query.get(compiled.length..).unwrap_or_default()).is_some() {
            return Err(syntax().into());
        }
        if !statement.readonly() {
            return Err(Failure::unsupported("COPY of a statement that writes is not supported")
                .hint("write the statement alone, with RETURNING")
                .into());
        }
        translated.as_deref().map_or(Ok(()), TranslatedStatement::compute)?;
        self.access.open(connection, false, false)?;
        let (rows_for, formats) = (RowsFor::Copy(style), Formats::default());
        let (client, limit, before) = (query.into(), 0, 0);
        let plan = RowsPlan { rows_for, client, translated, formats, limit, before, writes: false };
        self.start_rows(connection, statement.start(), plan, out)
    }

    /// Handles a message during COPY FROM STDIN.
    pub(super) fn copy_message(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        match tag {
            front::COPY_DATA => self.insert_rows(body, false),
            front::COPY_DONE => {
                self.insert_rows(b"", true)?;
                let Some(copy) = self.copy.take() else { return Ok(()) };
                write::command_complete(out, format!("COPY {}", copy.rows).as_bytes());
                if copy.simple {
                    self.simple.iter_mut().for_each(Simple::advance);
                }
                Ok(())
            }
            front::COPY_FAIL => {
                let words =
                    String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(body)).into_owned();
                let message = format!("COPY from stdin failed: {words}");
                Err(Failure::new(state::CANCELLED, message).into())
            }
            // The client sent these before it knew that COPY begins.
            front::FLUSH | front::SYNC => Ok(()),
            _ => {
                let message = "unexpected message type during COPY from stdin";
                Err(Failure::protocol(message).into())
            }
        }
    }

    fn insert_rows(&mut self, data: &[u8], last: bool) -> Outcome {
        let Some(copy) = &mut self.copy else { return Ok(()) };
        let rows = copy.take(data, last)?;
        let (insert, types, format) = (copy.insert.clone(), copy.types.clone(), copy.format());
        self.with(|machine, connection| {
            let text = refrain_sqlite::Text::new(&insert);
            for row in &rows {
                insert_row(connection, text, &types, format, row).map_err(|error| match error {
                    Trouble::Value(failure) => failure.into(),
                    Trouble::Sqlite(error) => machine.access.stop(&error, b""),
                })?;
            }
            Ok(())
        })
    }
}

/// The reason why a row was not inserted.
enum Trouble {
    Value(Failure),
    Sqlite(refrain_sqlite::Error),
}

fn insert_row(
    connection: &Connection,
    insert: refrain_sqlite::Text<'_>,
    types: &[Type],
    format: Format,
    row: &Fields,
) -> Result<(), Trouble> {
    let mut run = connection.statement(insert).map_err(Trouble::Sqlite)?.start();
    for (index, (field, is)) in row.iter().zip(types).enumerate() {
        let bound = match field {
            None => run.bind_copied(index + 1, Value::Null),
            Some(field) => {
                let value = match format {
                    Format::Text => decode::text(field, *is),
                    Format::Binary => decode::binary(field, *is),
                };
                let value = value.map_err(Trouble::Value)?;
                run.bind_copied(index + 1, value.value())
            }
        };
        bound.map_err(Trouble::Sqlite)?;
    }
    while run.step().map_err(Trouble::Sqlite)? == Step::Row {}
    Ok(())
}

/// Refuses to copy from a view.
fn is_table(connection: &Connection, table: &CopiedTable) -> Result<(), Failure> {
    let attributes = Attributes::of(connection);
    let there = |schema: &str| attributes.table(Some(schema), &table.name).is_some();
    let temporary = table.schema != Some("main") && there("temp");
    if temporary || attributes.definition(&table.name).is_some() || !there("main") {
        return Ok(());
    }
    let message = format!("cannot copy from view \"{}\"", table.name);
    Err(Failure::new("42809", message).hint("Try the COPY (SELECT ...) TO variant."))
}

/// Returns the columns of a table.
fn columns_of(connection: &Connection, table: &CopiedTable) -> Result<Vec<Attribute>, Failure> {
    let attributes = Attributes::of(connection);
    let known = attributes.table(table.schema, &table.name);
    attributes.check()?;
    known.ok_or_else(|| match table.name.split_once('.') {
        Some((schema, _)) if !attributes.schemas().iter().any(|known| known == schema) => {
            Failure::new("3F000", format!("schema \"{schema}\" does not exist"))
                .hint("CREATE SCHEMA makes a schema")
        }
        _ => Failure::new("42P01", format!("relation \"{}\" does not exist", table.name)),
    })
}

/// Returns the columns to copy: the named ones, else all that are not generated.
fn copied(
    connection: &Connection,
    table: &CopiedTable,
    columns: &[String],
) -> Result<Vec<Attribute>, Failure> {
    let known = columns_of(connection, table)?;
    if columns.is_empty() {
        return Ok(known.into_iter().filter(|attribute| !attribute.computed).collect());
    }
    let find = |name: &String| {
        let found = known.iter().find(|known| known.name.eq_ignore_ascii_case(name));
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
        let found = found.ok_or_else(|| Failure::new("42703", message))?;
        if found.computed {
            let message = format!("column \"{name}\" is a generated column");
            return Err(Failure::new("42P10", message)
                .hint("Generated columns cannot be used in COPY. Write COPY (SELECT …) TO."));
        }
        Ok(found.clone())
    };
    let found: Vec<Attribute> = columns.iter().map(find).collect::<Result<_, _>>()?;
    let twice = |(index, column): (usize, &Attribute)| {
        found.iter().take(index).any(|other| other.name == column.name)
    };
    match found.iter().enumerate().find(|each| twice(*each)) {
        None => Ok(found),
        Some((_, column)) => {
            let message = format!("column \"{}\" specified more than once", column.name);
            Err(Failure::new("42701", message))
        }
    }
}

/// Returns the INSERT for a table.
fn insert(
    connection: &Connection,
    table: &CopiedTable,
    columns: &[String],
) -> Result<CopyTarget, Failure> {
    let into = copied(connection, table, columns)?;
    let known = columns_of(connection, table)?;
    let is_given = |key: &&Attribute| into.iter().any(|given| given.name == key.name);
    let mut keys = known.iter().filter(|attribute| attribute.given == GivenBy::Key);
    if let Some(key) = keys.find(|key| !is_given(key)) {
        return Err(missing(&table.name, &key.name));
    }
    let types = into.iter().map(|attribute| attribute.is).collect();
    let names: Vec<_> = into.iter().map(|attribute| quoted(&attribute.name)).collect();
    let places =
        into.iter().enumerate().map(|(index, attribute)| attribute.place(index + 1, &table.name));
    let places: Vec<_> = places.collect();
    let (table, list, places) = (table.sql(), names.join(", "), places.join(", "));
    let insert = format!("INSERT INTO {table} ({list}) VALUES ({places})");
    Ok(CopyTarget { insert, types, names: into.into_iter().map(|column| column.name).collect() })
}

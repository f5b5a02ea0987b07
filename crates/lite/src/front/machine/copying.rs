//! COPY, as a part of a session.

use refrain_wire::tag::front;
use refrain_wire::write;

use crate::Value;
use crate::connection::Connection;
use crate::front::copy::{Copy, CopyIn, Fields, Style, quoted};
use crate::front::decode;
use crate::front::failure::{Failure, state};
use crate::front::infer::Schema;
use crate::front::shape::{Formats, Tables};
use crate::front::types::Type;
use crate::statement::Step;

use super::rows::{Plan, Whose};
use super::{Machine, Outcome};

impl Machine {
    /// Begins a COPY.
    pub(super) fn copy(&mut self, text: &str, simple: bool, out: &mut Vec<u8>) -> Outcome {
        self.transaction.check()?;
        match Copy::read(text)? {
            Copy::Out { query, style } => {
                self.with(|machine, connection| machine.copy_out(connection, &query, style, out))
            }
            Copy::In { table, columns, style } => self.with(|machine, connection| {
                machine.open(connection, true, false)?;
                let (insert, types) = insert(connection, &table, &columns)?;
                machine.copy = Some(CopyIn::begin(style, insert, types, simple, out));
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
        let trouble = |error| Failure::of_sqlite(&error, b"");
        let statement = connection.statement(query).map_err(trouble)?;
        if !statement.readonly() {
            return Err(
                Failure::unsupported("COPY of a statement that writes is not supported").into()
            );
        }
        self.open(connection, false, false)?;
        let (whose, formats) = (Whose::Copy(style), Formats::default());
        let plan =
            Plan { whose, client: query.into(), formats, limit: 0, before: 0, writes: false };
        self.start_rows(connection, statement.start(), plan, out)
    }

    /// A message while rows come in.
    pub(super) fn copy_message(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        match tag {
            front::COPY_DATA => self.insert_rows(body, false),
            front::COPY_DONE => {
                self.insert_rows(b"", true)?;
                let Some(copy) = self.copy.take() else { return Ok(()) };
                write::command_complete(out, format!("COPY {}", copy.rows).as_bytes());
                if copy.simple {
                    self.simple.iter_mut().for_each(super::Simple::advance);
                }
                Ok(())
            }
            front::COPY_FAIL => {
                let words =
                    String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(body)).into_owned();
                let message = format!("COPY from stdin failed: {words}");
                Err(Failure::new(state::CANCELLED, message).into())
            }
            // Extended messages that a client sent before it knew that COPY begins.
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
        let (insert, types) = (copy.insert.clone(), copy.types.clone());
        self.with(|machine, connection| {
            let text = crate::Text::new(&insert);
            for row in &rows {
                insert_row(connection, text, &types, row).map_err(|error| match error {
                    Trouble::Value(failure) => failure.into(),
                    Trouble::Sqlite(error) => machine.stop(&error, b""),
                })?;
            }
            Ok(())
        })
    }
}

/// Why a row was not inserted.
enum Trouble {
    Value(Failure),
    Sqlite(crate::Error),
}

fn insert_row(
    connection: &Connection,
    insert: crate::Text<'_>,
    types: &[Type],
    row: &Fields,
) -> Result<(), Trouble> {
    let mut run = connection.statement(insert).map_err(Trouble::Sqlite)?.start();
    for (index, (field, is)) in row.iter().zip(types).enumerate() {
        let bound = match field {
            None => run.bind_copied(index + 1, Value::Null),
            Some(field) => {
                let value = decode::text(field, *is).map_err(Trouble::Value)?;
                run.bind_copied(index + 1, value.value())
            }
        };
        bound.map_err(Trouble::Sqlite)?;
    }
    while run.step().map_err(Trouble::Sqlite)? == Step::Row {}
    Ok(())
}

/// The INSERT for a table, and the types of what it takes.
fn insert(
    connection: &Connection,
    table: &str,
    columns: &[String],
) -> Result<(String, Vec<Type>), Failure> {
    let known = Tables(connection).columns(table);
    if known.is_empty() {
        return Err(Failure::new("42P01", format!("no such table: {table}")));
    }
    let type_of = |name: &String| {
        let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let missing = || Failure::new("42703", format!("no such column: {name}"));
        found.map(|(_, is)| is.unwrap_or(Type::Text)).ok_or_else(missing)
    };
    let all: Vec<String> = known.iter().map(|(name, _)| name.clone()).collect();
    let columns = if columns.is_empty() { &all[..] } else { columns };
    let types = columns.iter().map(type_of).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
    let places: Vec<_> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let (table, names, places) = (quoted(table), names.join(", "), places.join(", "));
    Ok((format!("INSERT INTO {table} ({names}) VALUES ({places})"), types))
}

//! The functions of sequences: `nextval`, `setval`, `currval` and `lastval`.

use refrain_sqlite::nested;
use rusqlite::OptionalExtension;
use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::context::Context;
use crate::failure::Failure;
use crate::sequences::{Given, Sequence};
use crate::sql_text::quoted;

type Called = rusqlite::Result<Any>;

/// A sequence as a function finds it.
struct Found {
    row: i64,
    given: Given,
    options: Sequence,
}

fn found(call: &Call<'_>, name: &str) -> rusqlite::Result<Found> {
    let definition = nested(call, |connection| {
        let text = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        connection.query_row(text, [name], |row| row.get::<_, String>(0)).optional()
    })?;
    let missing = || refused(Failure::new("42P01", format!("relation \"{name}\" does not exist")));
    let options = Sequence::read(&definition.ok_or_else(missing)?).ok_or_else(missing)?;
    nested(call, |connection| {
        let name = quoted(name);
        let text = format!("SELECT rowid, last_value, is_called, log_cnt FROM {name}");
        connection.query_row(&text, [], |row| {
            let given = Given { last: row.get(1)?, is_called: row.get(2)?, count: row.get(3)? };
            Ok(Found { row: row.get(0)?, given, options })
        })
    })
}

fn write(
    context: &Context,
    call: &Call<'_>,
    name: &str,
    row: i64,
    given: Given,
) -> rusqlite::Result<()> {
    nested(call, |connection| {
        let name = quoted(name);
        let text = format!("UPDATE {name} SET last_value = ?1, is_called = ?2, log_cnt = ?3");
        connection.execute(&text, (given.last, given.is_called, given.count)).map(drop)
    })?;
    context.shared.numbers.set((name.to_owned(), row), given);
    Ok(())
}

fn refused(failure: Failure) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(failure.carried().into())
}

/// `nextval`.
pub(crate) fn next(context: &Context, call: &Call<'_>) -> Called {
    let Some(name) = call.get::<Option<String>>(0)? else { return Ok(Any::Null) };
    let Found { row, given, options } = found(call, &name)?;
    let given = context.shared.numbers.newer(&(name.clone(), row), given);
    let next = options.next(&name, given.last, given.is_called).map_err(refused)?;
    write(
        context,
        call,
        &name,
        row,
        Given { last: next, is_called: true, count: given.count + 1 },
    )?;
    context.sequences().gave((name, row), Some(next));
    Ok(Any::Integer(next))
}

/// Returns the table in which SQLite keeps the numbers of a table's key: there is one for permanent
/// tables, and one for temporary ones.
fn numbers_of(connection: &rusqlite::Connection, table: &str) -> rusqlite::Result<&'static str> {
    let text = "SELECT 1 FROM sqlite_temp_schema WHERE type = 'table' AND name = ?1";
    let found = connection.query_row(text, [table], |_| Ok(())).optional()?;
    Ok(found.map_or("main.sqlite_sequence", |()| "temp.sqlite_sequence"))
}

/// `nextval` of a table's own sequence: its name, that of the table, and the largest number.
pub(crate) fn next_key(context: &Context, call: &Call<'_>) -> Called {
    let (name, table, most) = (call.get::<String>(0)?, call.get::<String>(1)?, call.get(2)?);
    let next = nested(call, |connection| {
        let (on, numbers) = (quoted(&table), numbers_of(connection, &table)?);
        let text = format!(
            "SELECT max(coalesce((SELECT seq FROM {numbers} WHERE name = ?1), 0), \
             coalesce((SELECT max(rowid) FROM {on}), 0))"
        );
        connection.query_row(&text, [&table], |row| row.get::<_, i64>(0))
    })?;
    if next >= most {
        let words = format!("nextval: reached maximum value of sequence \"{name}\" ({most})");
        return Err(refused(Failure::new("2200H", words)));
    }
    write_key(call, &table, next + 1)?;
    context.sequences().gave((name, 0), Some(next + 1));
    Ok(Any::Integer(next + 1))
}

/// `setval` of a table's own sequence: its name, that of the table, the largest number, the new one
/// and whether it counts as given.
pub(crate) fn set_key(context: &Context, call: &Call<'_>) -> Called {
    let (name, table, most) = (call.get::<String>(0)?, call.get::<String>(1)?, call.get(2)?);
    let (Some(number), Some(is_called)) =
        (call.get::<Option<i64>>(3)?, call.get::<Option<bool>>(4)?)
    else {
        return Ok(Any::Null);
    };
    in_bounds(&name, number, (1, most))?;
    write_key(call, &table, if is_called { number } else { number - 1 })?;
    if is_called {
        context.sequences().was_set((name, 0), number);
    }
    Ok(Any::Integer(number))
}

fn write_key(call: &Call<'_>, table: &str, number: i64) -> rusqlite::Result<()> {
    nested(call, |connection| {
        let numbers = numbers_of(connection, table)?;
        let text = format!("UPDATE {numbers} SET seq = ?2 WHERE name = ?1");
        if connection.execute(&text, (table, number))? == 0 {
            let text = format!("INSERT INTO {numbers} (name, seq) VALUES (?1, ?2)");
            connection.execute(&text, (table, number))?;
        }
        Ok(())
    })
}

fn in_bounds(name: &str, number: i64, (least, most): (i64, i64)) -> rusqlite::Result<()> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let message = format!(
        "setval: value {number} is out of bounds for sequence \"{name}\" ({least}..{most})"
    );
    Err(refused(Failure::new("22003", message)))
}

/// `setval`, with whether the number counts as given.
pub(crate) fn set(context: &Context, call: &Call<'_>) -> Called {
    let (name, number) = (call.get::<Option<String>>(0)?, call.get::<Option<i64>>(1)?);
    let (Some(name), Some(last), Some(is_called)) = (name, number, call.get(2)?) else {
        return Ok(Any::Null);
    };
    let Found { row, given, options } = found(call, &name)?;
    in_bounds(&name, last, (options.minimum, options.maximum))?;
    let count = context.shared.numbers.newer(&(name.clone(), row), given).count + 1;
    write(context, call, &name, row, Given { last, is_called, count })?;
    if is_called {
        context.sequences().was_set((name, row), last);
    }
    Ok(Any::Integer(last))
}

/// `currval`. The second argument says whether the sequence is a table's own.
pub(crate) fn current(context: &Context, call: &Call<'_>) -> Called {
    let Some(name) = call.get::<Option<String>>(0)? else { return Ok(Any::Null) };
    let row = if call.get(1)? { 0 } else { found(call, &name)?.row };
    let known = context.sequences().number(&(name.clone(), row));
    known_number(known, &format!("currval of sequence \"{name}\""))
}

fn known_number(known: Option<Option<i64>>, what: &str) -> Called {
    match known {
        Some(Some(number)) => Ok(Any::Integer(number)),
        Some(None) => {
            let message = format!("{what} is not known behind this statement");
            Err(refused(Failure::unsupported(message).hint("write INSERT … RETURNING")))
        }
        None => {
            let message = format!("{what} is not yet defined in this session");
            Err(refused(Failure::new("55000", message)))
        }
    }
}

/// `lastval`.
pub(crate) fn last(context: &Context, call: &Call<'_>) -> Called {
    let last = context.sequences().last();
    // As in the server, that of a sequence which is gone is none.
    let last = last
        .filter(|(name, row)| *row == 0 || found(call, name).is_ok_and(|found| found.row == *row));
    let known = last.and_then(|last| context.sequences().number(&last));
    known_number(known, "lastval")
}

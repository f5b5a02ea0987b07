//! PostgreSQL's functions that drivers and psql call on their own.

use std::time::{Duration, Instant};

use refrain_sqlite::{Connection, Error, nested};
use rusqlite::ffi;
use rusqlite::functions::{Context as Call, FunctionFlags};
use rusqlite::types::{Value as Any, ValueRef};

use crate::advisory::{Hold, Key, Taken, Wait};
use crate::arrays::json_string;
use crate::attributes::{TABLES, limit};
use crate::byte_texts::uuid_text;
use crate::calendar;
use crate::command::Assignment;
use crate::comments;
use crate::context::Context;
use crate::default_text::default_of;
use crate::dialect::ViewColumn;
use crate::enum_functions;
use crate::enums;
use crate::failure::{Failure, TIMEOUT, state};
use crate::key_mark::{GivenBy, KeyMark};
use crate::key_sequences::key_sequence_name;
use crate::keywords;
use crate::sequence_calls;
use crate::sequences::{NEXT, NEXT_KEY, SET, SET_KEY, Sequence};
use crate::sql_text;
use crate::standard;
use crate::threads;
use crate::types::Type;

type SessionResult = rusqlite::Result<Any>;

/// The code of a function, with the session of the call and its arguments.
type SessionFunction = fn(&Context, &Call<'_>) -> SessionResult;

/// A function: its name, its number of arguments (-1: any number), and its code.
const FUNCTIONS: &[(&str, i32, SessionFunction)] = &[
    ("version", 0, |context, _| Ok(Any::Text(context.version.clone()))),
    ("current_schema", 0, |_, _| text("public")),
    ("current_database", 0, |context, _| text(&context.database)),
    ("current_catalog", 0, |context, _| text(&context.database)),
    ("current_user", 0, |context, _| text(&context.user)),
    ("session_user", 0, |context, _| text(&context.user)),
    ("current_role", 0, |context, _| text(&context.user)),
    ("user", 0, |context, _| text(&context.user)),
    ("now", 0, |context, _| moment(context.now())),
    ("transaction_timestamp", 0, |context, _| moment(context.now())),
    ("statement_timestamp", 0, |_, _| moment(calendar::now())),
    ("clock_timestamp", 0, |_, _| moment(calendar::now())),
    ("pg_backend_pid", 0, |context, _| Ok(Any::Integer(i64::from(context.pid)))),
    ("pg_sleep", 1, sleep),
    ("gen_random_uuid", 0, |_, _| random_uuid()),
    ("current_setting", 1, current_setting),
    ("current_setting", 2, current_setting),
    ("set_config", 3, set_config),
    ("pg_advisory_unlock_all", 0, |context, _| {
        context.shared.advisory.release_all(context.pid);
        text("")
    }),
    ("refrain_lock", -1, lock),
    ("refrain_unlock", -1, |context, call| {
        let Some(key) = lock_key(call)? else { return Ok(Any::Null) };
        let released = context.shared.advisory.release(context.pid, key, call.get(0)?);
        Ok(Any::Integer(i64::from(released)))
    }),
    ("pg_is_in_recovery", 0, |_, _| Ok(Any::Integer(0))),
    ("getdatabaseencoding", 0, |_, _| text("UTF8")),
    ("convert_to", 2, |_, call| call.get(0)),
    ("encode", 2, encode),
    ("pg_encoding_to_char", 1, |_, _| text("UTF8")),
    ("format_type", 2, format_type),
    ("refrain_settings", 0, |context, _| settings(context)),
    ("refrain_types", 0, |_, call| types(call)),
    ("refrain_key_type", 1, |_, call| {
        let is = key_mark(call)?.map(|mark| i64::from(mark.is.oid()));
        Ok(is.map_or(Any::Null, Any::Integer))
    }),
    ("refrain_key_given", 1, |_, call| match key_mark(call)?.map(|mark| mark.given) {
        Some(GivenBy::Next) => text("n"),
        Some(GivenBy::ByDefault) => text("d"),
        Some(GivenBy::Always) => text("a"),
        _ => Ok(Any::Null),
    }),
    ("refrain_identifier", 1, |_, call| {
        let name = call.get::<Option<String>>(0)?;
        Ok(name.map_or(Any::Null, |name| Any::Text(sql_text::identifier(&name))))
    }),
    ("refrain_sequence_name", 3, |_, call| {
        let (table, column) = (call.get::<String>(1)?, call.get::<String>(2)?);
        let tables = || {
            nested(call, |connection| {
                let mut run = connection.prepare(TABLES)?;
                run.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
            })
        };
        key_sequence_name(&call.get::<String>(0)?, &table, &column, tables).map(Any::Text)
    }),
    ("refrain_index_parts", 1, |_, call| {
        let parts = standard::index_parts(&call.get::<String>(0)?);
        Ok(parts.map_or(Any::Null, Any::Text))
    }),
    ("refrain_limit", 1, |_, call| {
        let limit = limit(&call.get::<Option<String>>(0)?.unwrap_or_default());
        Ok(limit.map_or(Any::Null, |limit| Any::Integer(i64::from(limit))))
    }),
    ("refrain_default", 2, |_, call| {
        let (sql, oid) = (call.get::<Option<String>>(0)?, call.get(1)?);
        let is = enum_functions::type_of(call, oid)?.unwrap_or(Type::Text);
        Ok(sql.map_or(Any::Null, |sql| Any::Text(default_of(&sql, is))))
    }),
    ("refrain_generated", 2, |_, call| {
        let (sql, column) = (call.get::<String>(0)?, call.get::<String>(1)?);
        let made = standard::generated(&sql, &column).map(Any::Text);
        made.ok_or_else(|| refused(standard::no_expression(&column)))
    }),
    ("refrain_view", 3, view_column),
    ("refrain_constraints", 2, |_, call| {
        let (sql, table) = (call.get::<Option<String>>(0)?, call.get::<String>(1)?);
        Ok(Any::Text(standard::constraints(&sql.unwrap_or_default(), &table)))
    }),
    ("refrain_comments", 1, |_, call| {
        let sql = call.get::<Option<String>>(0)?.unwrap_or_default();
        Ok(Any::Text(comments::comments(&sql)))
    }),
    ("refrain_keywords", 0, |_, _| Ok(Any::Text(keywords::json()))),
    (NEXT, 1, sequence_calls::next),
    ("refrain_currval", 2, sequence_calls::current),
    (SET, 3, sequence_calls::set),
    (NEXT_KEY, 3, sequence_calls::next_key),
    (SET_KEY, 5, sequence_calls::set_key),
    ("refrain_lastval", 0, sequence_calls::last),
    ("refrain_sequence", 1, |_, call| {
        let read = Sequence::read(&call.get::<Option<String>>(0)?.unwrap_or_default());
        Ok(read.map_or(Any::Null, |read| Any::Text(read.json())))
    }),
    ("refrain_declared", 1, |_, call| {
        let declared = call.get::<Option<String>>(0)?.unwrap_or_default();
        let of_enum = enums::declared_oid(&declared);
        let oid = of_enum.map(|(oid, array)| oid + u32::from(array));
        Ok(Any::Integer(i64::from(oid.unwrap_or_else(|| Type::declared(&declared).oid()))))
    }),
    (enums::LABEL, 3, |_, call| enum_functions::label(call)),
    ("refrain_enum_definition", 2, |_, call| enum_functions::definition(call)),
    ("refrain_type_oid", 1, |_, call| enum_functions::type_oid(call)),
    ("refrain_type_name", 1, |_, call| enum_functions::type_name(call)),
];

/// Defines these functions on a connection.
///
/// # Errors
/// If SQLite refuses one.
pub(crate) fn define(connection: &Connection) -> Result<(), Error> {
    for (name, arguments, function) in FUNCTIONS {
        // The functions have no side effects in the file, so views may call them.
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
        connection.define_function(name, *arguments, flags, move |call| {
            let context = Context::current().ok_or_else(|| raised_error("no session"))?;
            function(&context, call)
        })?;
    }
    Ok(())
}

/// Returns a fact about a column of a view, or whether any column is writable.
fn view_column(_: &Context, call: &Call<'_>) -> SessionResult {
    let sql = call.get::<Option<String>>(0)?.unwrap_or_default();
    let known = |oid| enum_functions::enum_of(call, oid).ok().flatten();
    let columns = ViewColumn::read(&sql, known);
    let number = call.get::<Option<i64>>(1)?;
    let column = number.and_then(|number| columns.get(usize::try_from(number).ok()?));
    Ok(match (call.get::<String>(2)?.as_str(), column) {
        ("type", Some(column)) => Any::Integer(i64::from(column.is.oid())),
        ("limit", Some(ViewColumn { limit: Some(limit), .. })) => Any::Text(format!("({limit})")),
        ("writable", Some(column)) => Any::Integer(i64::from(column.writable)),
        ("writable", None) if number.is_none() => {
            Any::Integer(i64::from(columns.iter().any(|column| column.writable)))
        }
        _ => Any::Null,
    })
}

fn key_mark(call: &Call<'_>) -> rusqlite::Result<Option<KeyMark>> {
    Ok(call.get::<Option<String>>(0)?.as_deref().and_then(KeyMark::read))
}

fn raised_error(message: impl Into<String>) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(message.into().into())
}

/// Returns the error that SQLite raises for an interrupt: SQLite itself may notice the interrupt a
/// moment later.
fn interrupted() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)
}

fn refused(failure: Failure) -> rusqlite::Error {
    raised_error(failure.carried())
}

fn text(text: &str) -> SessionResult {
    Ok(Any::Text(text.to_owned()))
}

fn moment(micros: i64) -> SessionResult {
    Ok(calendar::timestamp_text(micros, true).map_or(Any::Null, Any::Text))
}

/// Waits until `is_over` says so, on a thread.
///
/// # Errors
/// The session is cancelled, or `statement_timeout` is over.
fn wait(
    context: &Context,
    mut is_over: impl FnMut() -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let deadline =
        context.settings().duration("statement_timeout").map(|limit| Instant::now() + limit);
    while !is_over()? {
        if context.control.is_cancelled() {
            return Err(interrupted());
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(raised_error(TIMEOUT));
        }
    }
    Ok(())
}

/// How long a wait sleeps at once.
const PIECE: Duration = Duration::from_millis(5);

fn sleep(context: &Context, call: &Call<'_>) -> SessionResult {
    let seconds: f64 = call.get(0)?;
    if !context.may_take_long() {
        return Err(raised_error("to be called on a thread"));
    }
    let mut left = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    wait(context, || {
        let piece = left.min(PIECE);
        std::thread::sleep(piece);
        left -= piece;
        Ok(left.is_zero())
    })?;
    text("")
}

/// Reads the key of an advisory lock behind the first argument; none if a part of it is NULL.
fn lock_key(call: &Call<'_>) -> rusqlite::Result<Option<Key>> {
    let first = call.get::<Option<i64>>(1)?;
    if call.len() < 3 {
        return Ok(first.map(|number| (0, number)));
    }
    let second = call.get::<Option<i64>>(2)?;
    Ok(first.zip(second).map(|(first, second)| (1, first << 32 | second & 0xffff_ffff)))
}

/// Takes an advisory lock. The letters of the first argument say how: `w` waits, `s` shares, `t`
/// holds it until the transaction ends.
fn lock(context: &Context, call: &Call<'_>) -> SessionResult {
    let how = call.get::<String>(0)?;
    let Some(key) = lock_key(call)? else { return Ok(Any::Null) };
    let hold = Hold { shared: how.contains('s'), transaction: how.contains('t') };
    let pid = context.pid;
    if !how.contains('w') {
        return match context.shared.advisory.take(pid, key, hold, Wait::No) {
            Taken::Full => Err(no_room()),
            taken => Ok(Any::Integer(i64::from(taken == Taken::Yes))),
        };
    }
    if !context.may_take_long() {
        return Err(raised_error("to be called on a thread"));
    }
    // A wait of the session that may write holds up all others that want to.
    let writer_waits = context.writer_waits();
    let limit = context.settings().duration("lock_timeout").or(writer_waits);
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    let how = if writer_waits.is_some() { Wait::Writing } else { Wait::Yes };
    let ask = || match context.shared.advisory.take(pid, key, hold, how) {
        Taken::Yes => Ok(true),
        Taken::No => Ok(false),
        Taken::Full => Err(no_room()),
        Taken::Deadlock => Err(refused(Failure::new("40P01", "deadlock detected"))),
    };
    let until_free = || {
        if ask()? {
            return Ok(true);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let message = "canceling statement due to lock timeout";
            return Err(refused(Failure::new(state::LOCK_NOT_AVAILABLE, message)));
        }
        std::thread::sleep(PIECE);
        Ok(false)
    };
    let waited = ask().and_then(|taken| match taken {
        true => Ok(()),
        false => threads::waiting(|| wait(context, until_free)).unwrap_or_else(|| Err(too_many())),
    });
    context.shared.advisory.give_up(pid);
    waited?;
    text("")
}

/// Makes the error of a wait beyond the most.
fn too_many() -> rusqlite::Error {
    let failure = Failure::new("53200", "too many sessions wait for advisory locks");
    refused(failure.hint("call pg_try_advisory_lock, and ask again later"))
}

/// Makes the error of a lock beyond the most.
fn no_room() -> rusqlite::Error {
    refused(Failure::new("53200", "out of shared memory").hint("release advisory locks"))
}

fn random_uuid() -> SessionResult {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| raised_error(error.to_string()))?;
    // Version 4, variant 1 (RFC 9562).
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Any::Text(uuid_text(&bytes)))
}

/// `encode` of bytes, which are a text's here, as `escape`.
fn encode(_: &Context, call: &Call<'_>) -> SessionResult {
    let (bytes, format) = (call.get::<Option<String>>(0)?, call.get::<String>(1)?);
    if format != "escape" {
        return Err(raised_error(format!("encode() knows no format \"{format}\" here")));
    }
    let escaped = |byte: u8| match byte {
        b'\\' => "\\\\".to_owned(),
        byte if byte.is_ascii() => char::from(byte).to_string(),
        byte => format!("\\{byte:03o}"),
    };
    bytes.map_or(Ok(Any::Null), |bytes| text(&bytes.bytes().map(escaped).collect::<String>()))
}

fn current_setting(context: &Context, call: &Call<'_>) -> SessionResult {
    let name: String = call.get(0)?;
    let missing_ok = call.len() > 1 && call.get::<bool>(1)?;
    let settings = context.settings();
    match settings.show(&name) {
        Ok(value) => text(value),
        Err(_) if missing_ok => Ok(Any::Null),
        Err(failure) => Err(refused(failure)),
    }
}

fn set_config(context: &Context, call: &Call<'_>) -> SessionResult {
    let (name, value) = (call.get::<String>(0)?, call.get::<Option<String>>(1)?);
    let change = Assignment { name, value, local: call.get(2)? };
    let mut settings = context.settings();
    settings.set(&change, true).map_err(refused)?;
    text(settings.get(&change.name).unwrap_or_default())
}

fn settings(context: &Context) -> SessionResult {
    let quoted = |text: &str| {
        let letters = text.chars().map(|letter| match letter {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            control if control.is_control() => format!("\\u{:04x}", u32::from(control)),
            other => other.to_string(),
        });
        format!("\"{}\"", letters.collect::<String>())
    };
    let settings = context.settings();
    let rows = settings.all().into_iter().map(|(name, value, set)| {
        let source = if set { "session" } else { "default" };
        format!("[{},{},\"{source}\"]", quoted(name), quoted(value))
    });
    Ok(Any::Text(format!("[{}]", rows.collect::<Vec<_>>().join(","))))
}

/// Returns the types for `refrain_type`: PostgreSQL's, and those of the file.
fn types(call: &Call<'_>) -> SessionResult {
    let mut rows = Vec::new();
    for is in Type::all() {
        let of = |is: Option<Type>| is.map_or(0, Type::oid);
        let (size, name) = (is.size(), is.catalog_name());
        let (element, array) = (of(is.element()), of(is.array()));
        let kind = if is == Type::Void { 'p' } else { 'b' };
        rows.push(format!(
            "[{},{size},\"{name}\",{element},{array},\"pg_catalog\",\"{kind}\"]",
            is.oid()
        ));
    }
    for of in enum_functions::all(call)? {
        let (oid, array) = (of.oid(), of.array_oid());
        let (name, schema) = (of.own_name(), json_string(of.schema()));
        let (own, many) = (json_string(name), json_string(&format!("_{name}")));
        rows.push(format!("[{oid},4,{own},0,{array},{schema},\"e\"]"));
        rows.push(format!("[{array},-1,{many},{oid},0,{schema},\"b\"]"));
    }
    Ok(Any::Text(format!("[{}]", rows.join(","))))
}

fn format_type(_: &Context, call: &Call<'_>) -> SessionResult {
    let oid = match call.get_raw(0) {
        ValueRef::Integer(oid) => oid,
        _ => return Ok(Any::Null),
    };
    let is = u32::try_from(oid).ok().map(|oid| enum_functions::type_of(call, oid));
    let is = is.transpose()?.flatten();
    let name = is.map_or("text", Type::name);
    match call.get_raw(1) {
        // As in the server, a length includes its own four bytes.
        ValueRef::Integer(digits @ 0..=6)
            if matches!(is, Some(Type::Timestamp | Type::Timestamptz)) =>
        {
            text(&name.replacen("timestamp", &format!("timestamp({digits})"), 1))
        }
        ValueRef::Integer(modifier) if modifier > 4 && is.is_some_and(Type::is_text) => {
            text(&format!("{name}({})", modifier - 4))
        }
        // Without a length it is not SQL's CHARACTER, which has one of 1.
        ValueRef::Integer(..0) if is == Some(Type::Bpchar) => text("bpchar"),
        _ => text(name),
    }
}

//! Functions about types that CREATE TYPE … AS ENUM has made.

use refrain_sqlite::nested;
use rusqlite::OptionalExtension;
use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::arrays::json_string;
use crate::decode;
use crate::enums::{EnumType, MARK, element_name, is_label};
use crate::failure::Failure;
use crate::sql_text::name_parts;
use crate::types::Type;

type Called = rusqlite::Result<Any>;

fn refused(failure: Failure) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(failure.carried().into())
}

/// Returns the enum with this OID.
pub(crate) fn enum_of(call: &Call<'_>, oid: u32) -> rusqlite::Result<Option<EnumType>> {
    let found = nested(call, |connection| {
        let text = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?1)";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        connection.query_row(text, [format!("{MARK}{oid} ")], read).optional()
    })?;
    Ok(found.and_then(|(name, sql): (String, String)| EnumType::read(&name, &sql)))
}

/// Returns the enums of the file.
pub(crate) fn all(call: &Call<'_>) -> rusqlite::Result<Vec<EnumType>> {
    let found = nested(call, |connection| {
        let text = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?1)";
        let mut run = connection.prepare(text)?;
        let rows = run.query_map([MARK], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<(String, String)>>>()
    })?;
    Ok(found.iter().filter_map(|(name, sql)| EnumType::read(name, sql)).collect())
}

/// Returns the type with this OID: one of PostgreSQL's, an enum, or that of its arrays.
pub(crate) fn type_of(call: &Call<'_>, oid: u32) -> rusqlite::Result<Option<Type>> {
    if let Some(is) = Type::of_oid(oid) {
        return Ok(Some(is));
    }
    if let Some(of) = enum_of(call, oid)? {
        return Ok(Some(Type::Enum(of)));
    }
    Ok(enum_of(call, oid.wrapping_sub(1))?.map(Type::EnumArray))
}

/// Returns the OID of a type by its name, or NULL.
pub(crate) fn type_oid(call: &Call<'_>) -> Called {
    let Some(written) = call.get::<Option<String>>(0)? else { return Ok(Any::Null) };
    if let Ok(oid) = decode::type_oid(&written) {
        return Ok(Any::Integer(i64::from(oid)));
    }
    let plain = written.trim().strip_suffix("[]");
    let called = match &name_parts(plain.unwrap_or(&written)).unwrap_or_default()[..] {
        [only] => only.clone(),
        [schema, only] if schema == "public" => only.clone(),
        [schema, only] => format!("{schema}.{only}"),
        _ => return Ok(Any::Null),
    };
    let found = |called: &str| {
        let sql = nested(call, |connection| {
            let text = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
            connection.query_row(text, [called], |row| row.get::<_, String>(0)).optional()
        });
        Ok::<_, rusqlite::Error>(sql?.and_then(|sql| EnumType::read(called, &sql)))
    };
    let oid = match (found(&called)?, plain, element_name(&called)) {
        (Some(of), Some(_), _) => Some(of.array_oid()),
        (Some(of), None, _) => Some(of.oid()),
        (None, None, Some(called)) => found(&called)?.map(EnumType::array_oid),
        _ => None,
    };
    Ok(oid.map_or(Any::Null, |oid| Any::Integer(i64::from(oid))))
}

/// Returns the name of an enum or of the type of its arrays by its OID, or NULL.
pub(crate) fn type_name(call: &Call<'_>) -> Called {
    let oid = call.get::<Option<i64>>(0)?.and_then(|oid| u32::try_from(oid).ok());
    let Some(oid) = oid.filter(|oid| Type::of_oid(*oid).is_none()) else { return Ok(Any::Null) };
    Ok(type_of(call, oid)?.map_or(Any::Null, |is| Any::Text(is.name().to_owned())))
}

/// Converts a text to a label of an enum, whose OID, labels and name are the first arguments.
pub(crate) fn label(call: &Call<'_>) -> Called {
    let Some(text) = call.get::<Option<String>>(2)? else { return Ok(Any::Null) };
    let (words, called) = (call.get_raw(0).as_str()?, call.get_raw(1).as_str()?);
    is_label(words, called, &text).map_err(refused)?;
    Ok(Any::Text(text))
}

/// Returns the OID and the labels of an enum, by its name and the CREATE statement of its table, as
/// JSON.
pub(crate) fn definition(call: &Call<'_>) -> Called {
    let of = EnumType::read(&call.get::<String>(0)?, &call.get::<String>(1)?);
    Ok(of.map_or(Any::Null, |of| {
        let labels: Vec<String> = of.labels().iter().map(|label| json_string(label)).collect();
        Any::Text(format!("[{},[{}]]", of.oid(), labels.join(",")))
    }))
}

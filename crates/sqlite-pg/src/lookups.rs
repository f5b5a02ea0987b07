//! Functions that a query of the catalog needs: names of relations and types, matches, and arrays.

use refrain_sqlite::Value;
use rusqlite::functions::Context as Call;
use rusqlite::types::Value as Any;

use crate::arguments::{text, value};
use crate::arrays;
use crate::context::Context;
use crate::decode;
use crate::failure::Failure;
use crate::regexps;
use crate::sql_text;

type Looked = Result<Any, Failure>;

/// The most numbers of a series that is made for each row of another item of FROM.
const SERIES_MAX: usize = 1_000_000;

/// Returns an array of the numbers of a series.
pub(crate) fn series(call: &Call<'_>) -> Looked {
    let (Value::Integer(start), Value::Integer(stop), Value::Integer(step)) =
        (value(call, 0), value(call, 1), value(call, 2))
    else {
        return Ok(Any::Null);
    };
    if step == 0 {
        return Err(Failure::new("22023", "step size cannot equal zero"));
    }
    let inside = |at: &i64| if step > 0 { *at <= stop } else { *at >= stop };
    let numbers = std::iter::successors(Some(start), |at| at.checked_add(step)).take_while(inside);
    let numbers: Vec<String> = numbers.take(SERIES_MAX + 1).map(|at| at.to_string()).collect();
    if numbers.len() > SERIES_MAX {
        let message =
            format!("a series of more than {SERIES_MAX} numbers for each row is not supported");
        return Err(Failure::unsupported(message).hint("make the series in a query of its own"));
    }
    Ok(Any::Text(format!("[{}]", numbers.join(","))))
}

/// Matches a text with a regular expression.
pub(crate) fn matches(call: &Call<'_>) -> Looked {
    let (subject, pattern) = (text(call, 0)?, text(call, 1)?);
    let fold = matches!(value(call, 2), Value::Integer(1));
    regexps::is_match(subject, pattern, fold).map(|is| Any::Integer(i64::from(is)))
}

/// Matches a text with a regular expression, which is the first argument. No other value matches.
pub(crate) fn regexp(call: &Call<'_>) -> Looked {
    let Value::Text(_) = value(call, 1) else { return Ok(Any::Integer(0)) };
    let is = regexps::is_match(text(call, 1)?, text(call, 0)?, false)?;
    Ok(Any::Integer(i64::from(is)))
}

/// Returns the name of a relation without its schema; NULL if it is in none that is searched.
pub(crate) fn relation_name(call: &Call<'_>) -> Looked {
    let written = text(call, 0)?;
    let Some(words) = sql_text::name_parts(written) else { return Ok(Any::Null) };
    Ok(match &words[..] {
        [name] => Any::Text(name.clone()),
        [database, schema, name]
            if Context::current().is_some_and(|it| it.database == *database)
                && schema == "public" =>
        {
            Any::Text(name.clone())
        }
        [schema, name] if ["public", "pg_catalog", "main"].contains(&schema.as_str()) => {
            Any::Text(name.clone())
        }
        [schema, name] => Any::Text(format!("{schema}.{name}")),
        _ => Any::Null,
    })
}

/// Returns the schema of a name of the file.
pub(crate) fn schema(call: &Call<'_>) -> Looked {
    let schema = text(call, 0)?.split_once('.').map_or("public", |(schema, _)| schema);
    Ok(Any::Text(schema.to_owned()))
}

/// Returns a name of the file without its schema.
pub(crate) fn own_name(call: &Call<'_>) -> Looked {
    let name = text(call, 0)?;
    Ok(Any::Text(name.split_once('.').map_or(name, |(_, own)| own).to_owned()))
}

/// Returns the OID of a schema, which is made of its name: a query that looked it up in the file
/// would read the file once more for each relation that it names.
pub(crate) fn namespace(call: &Call<'_>) -> Looked {
    let schema = text(call, 0)?;
    if let Some((oid, _)) = decode::NAMESPACES.iter().find(|(_, name)| *name == schema) {
        return Ok(Any::Integer(*oid));
    }
    // FNV-1a: the same in each process.
    let hashed = schema
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Ok(Any::Integer(3_000_000_000 + i64::from(hashed % 1_000_000_000)))
}

/// Returns the OID of a relation; none for a name is an error.
pub(crate) fn found(call: &Call<'_>) -> Looked {
    match (value(call, 0), value(call, 1)) {
        (Value::Integer(oid), _) => Ok(Any::Integer(oid)),
        (_, Value::Null) => Ok(Any::Null),
        _ => {
            let message = format!("relation \"{}\" does not exist", text(call, 1)?);
            Err(Failure::new("42P01", message).hint("the catalog lists no temporary relations"))
        }
    }
}

/// Returns an array of as many elements as the longest of some has.
pub(crate) fn longest(call: &Call<'_>) -> Looked {
    let mut most = 0;
    for index in 0..call.len() {
        if !matches!(value(call, index), Value::Null) {
            most = most.max(arrays::read(text(call, index)?).unwrap_or_default().len());
        }
    }
    Ok(Any::Text(format!("[{}]", vec!["0"; most].join(","))))
}

/// Units of sizes: the name, the size from which the next one is taken, whether it is rounded, and
/// the power of two.
const UNITS: &[(&str, i64, bool, u32)] = &[
    ("bytes", 10 * 1024, false, 0),
    ("kB", 20 * 1024 - 1, true, 10),
    ("MB", 20 * 1024 - 1, true, 20),
    ("GB", 20 * 1024 - 1, true, 30),
    ("TB", 20 * 1024 - 1, true, 40),
    ("PB", 20 * 1024 - 1, true, 50),
];

/// Writes a number of bytes as people read it (`pg_size_pretty` of the server).
pub(crate) fn size(bytes: i64) -> String {
    let mut left = bytes;
    let mut units = UNITS.iter().peekable();
    while let Some((name, most, rounds, bits)) = units.next() {
        match units.peek() {
            Some((.., next_rounds, next_bits)) if left.unsigned_abs() >= most.unsigned_abs() => {
                let bits = next_bits - bits - u32::from(*next_rounds) + u32::from(*rounds);
                left /= 1 << bits;
            }
            _ => {
                let half = |size: i64| (size + if size < 0 { -1 } else { 1 }) / 2;
                let number = if *rounds { half(left) } else { left };
                return format!("{number} {name}");
            }
        }
    }
    String::new()
}

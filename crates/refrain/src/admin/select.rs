//! SELECT over the listings: each is a table of an SQLite database in memory, which exists for one
//! query.
//!
//! The query is SQLite's. It is a read of one statement; it reaches no file, and has a limited
//! number of steps and bytes.

use refrain_config::nearest;
use rusqlite::functions::FunctionFlags;
use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use super::show::LISTINGS;
use super::view::View;
use crate::console::{Heading, Kind, Part, Refusal, Reply, Table};

/// The most steps of SQLite's machine that a query takes: some seconds.
const STEPS_MAX: u32 = 100_000_000;
/// Steps between two looks at their number.
const STEPS_BETWEEN: u16 = 10_000;
/// The most bytes of a value.
const VALUE_BYTES_MAX: i32 = 1 << 20;
/// The most rows of a reply.
const ROWS_MAX: usize = 100_000;

/// Answers a query by the listings that it names.
pub(super) fn run(view: &View<'_>, query: &str) -> Result<Reply, Refusal> {
    let connection = open().map_err(|error| refusal(&error))?;
    for (name, listing) in LISTINGS {
        // A table's name has no blanks.
        let table = name.replace(' ', "_");
        if names(query, &table) {
            fill(&connection, &table, &listing.show(view)).map_err(|error| refusal(&error))?;
        }
    }
    let mut statement = connection.prepare(query).map_err(|error| refusal(&error))?;
    if !statement.readonly() {
        return Err(Refusal::new("0A000", "a SELECT of the console changes nothing"));
    }
    if statement.parameter_count() > 0 {
        return Err(Refusal::new("0A000", "a SELECT of the console has no parameters"));
    }
    let table = rows(&mut statement)?;
    let tag = format!("SELECT {}", table.rows.len());
    Ok(vec![Part::Rows(table), Part::Done(tag.into())])
}

/// Opens a database without tables.
fn open() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    let mut rounds = 0;
    let most = STEPS_MAX / u32::from(STEPS_BETWEEN);
    connection.progress_handler(
        STEPS_BETWEEN.into(),
        Some(move || {
            rounds += 1;
            rounds > most
        }),
    )?;
    // Drivers and tools ask these by themselves.
    let version = format!("PostgreSQL 1.24.1/bouncer (Refrain {})", env!("CARGO_PKG_VERSION"));
    let texts = [
        ("version", Some(version)),
        ("current_database", Some("pgbouncer".to_owned())),
        ("current_schema", Some("main".to_owned())),
        ("pg_is_in_recovery", Some("f".to_owned())),
        ("pg_advisory_unlock_all", None),
    ];
    for (name, value) in texts {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        connection.create_scalar_function(name, 0, flags, move |_| Ok(value.clone()))?;
    }
    Ok(connection)
}

/// True if a query has this word.
fn names(query: &str, table: &str) -> bool {
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    query.split(part).any(|word| word.eq_ignore_ascii_case(table))
}

/// Makes a table of a listing.
fn fill(connection: &Connection, name: &str, listing: &Table) -> rusqlite::Result<()> {
    let column = |Heading { name, kind }: &Heading| match kind {
        Kind::Text => format!("\"{name}\" TEXT"),
        Kind::Int4 => format!("\"{name}\" INT4"),
        Kind::Int8 => format!("\"{name}\" INT8"),
        // SQLite's numbers are whole ones as long as they fit.
        Kind::Numeric => format!("\"{name}\" NUMERIC"),
        Kind::Float8 => format!("\"{name}\" REAL"),
    };
    let columns: Vec<_> = listing.columns.iter().map(column).collect();
    connection.execute(&format!("CREATE TABLE \"{name}\" ({})", columns.join(", ")), [])?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert = connection.prepare(&format!("INSERT INTO \"{name}\" VALUES ({places})"))?;
    for row in &listing.rows {
        insert.execute(params_from_iter(row))?;
    }
    Ok(())
}

/// Returns the rows of a query.
fn rows(statement: &mut Statement<'_>) -> Result<Table, Refusal> {
    let columns = statement.columns();
    let declared: Vec<_> = columns
        .map(|column| (column.name().to_owned(), column.decl_type().map(str::to_owned)))
        .collect();
    let mut found = statement.query([]).map_err(|error| refusal(&error))?;
    let mut values: Vec<Vec<Value>> = Vec::new();
    while let Some(row) = found.next().map_err(|error| refusal(&error))? {
        if values.len() == ROWS_MAX {
            let most = format!("a SELECT of the console has at most {ROWS_MAX} rows");
            return Err(Refusal::new("54000", most));
        }
        let row = (0..declared.len()).map(|place| row.get(place));
        values.push(row.collect::<Result<_, _>>().map_err(|error| refusal(&error))?);
    }
    let heading = |(place, (name, declared)): (usize, (String, Option<String>))| {
        let kind = kind(declared.as_deref(), values.iter().filter_map(|row| row.get(place)));
        Heading { name: name.into(), kind }
    };
    Ok(Table {
        columns: declared.into_iter().enumerate().map(heading).collect(),
        rows: values.iter().map(|row| row.iter().map(words).collect()).collect(),
    })
}

/// Returns the kind of a column: that of the listing that it comes from, or one that all its values
/// have.
fn kind<'v>(declared: Option<&str>, values: impl Iterator<Item = &'v Value> + Clone) -> Kind {
    let mut some = values.filter(|value| !matches!(value, Value::Null)).peekable();
    let nothing = some.peek().is_none();
    let whole = some.clone().all(|value| matches!(value, Value::Integer(_)));
    let number = some.all(|value| matches!(value, Value::Integer(_) | Value::Real(_)));
    match declared {
        Some("INT4") if whole => Kind::Int4,
        Some("INT8") if whole => Kind::Int8,
        Some("NUMERIC") if whole => Kind::Numeric,
        _ if nothing => Kind::Text,
        _ if whole => Kind::Int8,
        _ if number => Kind::Float8,
        _ => Kind::Text,
    }
}

/// Returns a value in words, as PostgreSQL writes it.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) if number.is_infinite() => {
            Some(if *number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        Value::Real(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Returns the error for what SQLite says of a query.
fn refusal(error: &rusqlite::Error) -> Refusal {
    let message = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        error => error.to_string(),
    };
    if let Some(table) = message.strip_prefix("no such table: ") {
        let listings: Vec<_> = LISTINGS.iter().map(|(name, _)| name.replace(' ', "_")).collect();
        let meant = nearest(table, listings.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        return Refusal::new("42P01", format!("no such listing: {table}{meant}"));
    }
    let codes = [
        ("no such column", "42703"),
        ("no such function", "42883"),
        ("interrupted", "57014"),
        ("string or blob too big", "54000"),
    ];
    let code = codes.iter().find(|(beginning, _)| message.starts_with(beginning));
    Refusal::new(code.map_or("42601", |(_, code)| code), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kinds of the columns, and the first row in words, of a query over a table.
    fn asked(query: &str) -> Result<(Vec<Kind>, Vec<Option<String>>), Refusal> {
        let connection = open().unwrap();
        let heading = |name: &'static str, kind| Heading { name: name.into(), kind };
        let value = |text: &str| Some(text.to_owned());
        let listing = Table {
            columns: vec![
                heading("name", Kind::Text),
                heading("few", Kind::Int4),
                heading("many", Kind::Int8),
                heading("all", Kind::Numeric),
            ],
            rows: vec![
                vec![value("a"), value("1"), value("2"), value("3")],
                vec![None, value("10"), value("20"), value("30")],
            ],
        };
        fill(&connection, "t", &listing).unwrap();
        let mut statement = connection.prepare(query).map_err(|error| refusal(&error))?;
        let Table { columns, rows } = rows(&mut statement)?;
        let kinds = columns.iter().map(|heading| heading.kind).collect();
        Ok((kinds, rows.into_iter().next().unwrap_or_default()))
    }

    #[test]
    fn columns_have_the_types_of_the_listing_or_of_their_values() {
        let (kinds, row) = asked("SELECT * FROM t WHERE few > 5").unwrap();
        assert_eq!(kinds, [Kind::Text, Kind::Int4, Kind::Int8, Kind::Numeric]);
        assert_eq!(row.iter().flatten().collect::<Vec<_>>(), ["10", "20", "30"]);
        let query = "SELECT count(*), sum(few) / 2.0, 'x', NULL, 1e999 FROM t";
        let (kinds, row) = asked(query).unwrap();
        assert_eq!(kinds, [Kind::Int8, Kind::Float8, Kind::Text, Kind::Text, Kind::Float8]);
        assert_eq!(row.iter().flatten().collect::<Vec<_>>(), ["2", "5.5", "x", "Infinity"]);
        // The column of a listing may hold other values behind a UNION.
        let (kinds, _) = asked("SELECT few FROM t UNION ALL SELECT name FROM t").unwrap();
        assert_eq!(kinds, [Kind::Text]);
    }

    #[test]
    fn errors_have_codes() {
        let code = |query| asked(query).unwrap_err().sqlstate;
        assert_eq!(code("SELECT absent FROM t"), "42703");
        assert_eq!(code("SELECT absent() FROM t"), "42883");
        assert_eq!(code("SELECT FROM WHERE"), "42601");
        assert_eq!(code("SELECT zeroblob(100000000)"), "54000");
        let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                       SELECT count(*) FROM c";
        assert_eq!(code(endless), "57014");
        let refused = asked("SELECT * FROM pooles").unwrap_err();
        assert_eq!(refused.sqlstate, "42P01");
        assert_eq!(refused.message, "no such listing: pooles; did you mean pools?");
    }
}

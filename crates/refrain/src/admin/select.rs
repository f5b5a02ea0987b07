//! SELECT over the listings: each is a table of an SQLite database in memory, which exists for one
//! query.
//!
//! The query is SQLite's. It is a read of one statement and reaches no file of the user's; a large
//! sort may use a temporary one. It has a limited time, and limited bytes.

use std::time::{Duration, Instant};

use refrain_config::nearest;
use refrain_sqlite::functions::FunctionFlags;
use refrain_sqlite::{Connection, Database, Error, Limits, OpenOptions, Statement, Step, Value};

use super::show::LISTINGS;
use super::view::View;
use crate::console::{Heading, Kind, Part, Refusal, Reply, Table};

/// The longest time of a query. Other clients of the console wait for it.
const TIME_MAX: Duration = Duration::from_secs(1);
/// The most bytes of a value; the text of a listing is cut there.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// The most memory of the database and of a query.
const MEMORY_MAX: usize = 64 << 20;
/// The most bytes of a reply.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// Bytes that a value of a reply counts for, besides those that it has.
const BYTES_EACH: usize = 16;

/// Answers a query by the listings that it names.
pub(super) fn run(view: &View<'_>, query: &str) -> Result<Reply, Refusal> {
    let connection = open()?;
    for (name, listing) in LISTINGS {
        // A table's name has no blanks.
        let table = name.replace(' ', "_");
        if names(query, &table) {
            fill(&connection, &table, &listing.show(view))?;
        }
    }
    let table = ask(&connection, query)?;
    let tag = format!("SELECT {}", table.rows.len());
    Ok(vec![Part::Rows(table), Part::Done(tag.into())])
}

/// Opens a database without tables.
fn open() -> Result<Connection, Refusal> {
    let options = OpenOptions {
        max_length: VALUE_BYTES_MAX,
        max_memory: MEMORY_MAX,
        ..OpenOptions::default()
    };
    let connection = Database::new(":memory:", options).connect().map_err(refusal)?;
    // Drivers and tools ask these by themselves.
    let version = format!("PostgreSQL 1.24.1/bouncer (Refrain {})", env!("CARGO_PKG_VERSION"));
    let texts = [
        ("version", Some(version)),
        ("current_database", Some("pgbouncer".to_owned())),
        ("current_schema", Some("main".to_owned())),
        ("pg_is_in_recovery", Some("f".to_owned())),
        ("pg_advisory_unlock_all", None),
    ];
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, value) in texts {
        connection.define_function(name, 0, flags, move |_| Ok(value.clone())).map_err(refusal)?;
    }
    Ok(connection)
}

/// Returns the rows of a query that reads.
fn ask(connection: &Connection, query: &str) -> Result<Table, Refusal> {
    let deadline = Some(Instant::now() + TIME_MAX);
    connection.set_limits(Limits { deadline, ..Limits::default() });
    let statement = connection.statement(query).map_err(refusal)?;
    if !statement.readonly() {
        return Err(Refusal::new("0A000", "a SELECT of the console changes nothing"));
    }
    if statement.parameter_count() > 0 {
        return Err(Refusal::new("0A000", "a SELECT of the console has no parameters"));
    }
    rows(statement)
}

/// True if a query has this word.
fn names(query: &str, table: &str) -> bool {
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    query.split(part).any(|word| word.eq_ignore_ascii_case(table))
}

/// Makes a table of a listing.
fn fill(connection: &Connection, name: &str, listing: &Table) -> Result<(), Refusal> {
    let column = |Heading { name, kind }: &Heading| match kind {
        Kind::Text => format!("\"{name}\" TEXT"),
        Kind::Int4 => format!("\"{name}\" INT4"),
        Kind::Int8 => format!("\"{name}\" INT8"),
        // SQLite's numbers are whole ones as long as they fit.
        Kind::Numeric => format!("\"{name}\" NUMERIC"),
        Kind::Float8 => format!("\"{name}\" REAL"),
    };
    let columns: Vec<_> = listing.columns.iter().map(column).collect();
    let create = format!("CREATE TABLE \"{name}\" ({})", columns.join(", "));
    connection.execute(&create, &[]).map_err(refusal)?;
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO \"{name}\" VALUES ({places})");
    for row in &listing.rows {
        let values: Vec<_> = row.iter().map(|value| stored(value.as_deref())).collect();
        connection.execute(&insert, &values).map_err(refusal)?;
    }
    Ok(())
}

/// Returns the value of a listing as SQLite stores it. A column of numbers makes a number of it.
fn stored(value: Option<&str>) -> Value<'_> {
    let Some(value) = value else { return Value::Null };
    // A row has to fit into the same limit.
    let most = VALUE_BYTES_MAX / 4;
    Value::Text(&value.as_bytes()[..value.floor_char_boundary(most)])
}

/// Runs a statement and returns its rows.
fn rows(statement: Statement<'_>) -> Result<Table, Refusal> {
    let heading = |column| {
        let name = statement.column_name(column).unwrap_or_default().to_owned();
        (name, statement.column_decltype(column).map(str::to_owned))
    };
    let declared: Vec<_> = (0..statement.column_count()).map(heading).collect();
    let mut columns = vec![Seen::default(); declared.len()];
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut run = statement.start();
    while run.step().map_err(refusal)? == Step::Row {
        let mut row = Vec::with_capacity(columns.len());
        for (column, seen) in columns.iter_mut().enumerate() {
            let value = run.column(column);
            seen.note(value);
            let words = words(value);
            bytes += words.as_ref().map_or(0, String::len) + BYTES_EACH;
            row.push(words);
        }
        if bytes > REPLY_BYTES_MAX {
            let most = format!("a SELECT of the console has at most {REPLY_BYTES_MAX} bytes");
            return Err(Refusal::new("54000", most));
        }
        rows.push(row);
    }
    let columns = declared.into_iter().zip(columns).map(|((name, declared), seen)| Heading {
        name: name.into(),
        kind: seen.kind(declared.as_deref()),
    });
    Ok(Table { columns: columns.collect(), rows })
}

/// The values of a column.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// True if there is none but NULL.
    nothing: bool,
    /// True if all are numbers.
    numbers: bool,
    /// The smallest and the largest, if all are whole numbers.
    whole: Option<(i64, i64)>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { nothing: true, numbers: true, whole: Some((0, 0)) }
    }
}

impl Seen {
    fn note(&mut self, value: Value<'_>) {
        self.whole = match (value, self.whole) {
            (Value::Null, whole) => return self.whole = whole,
            (Value::Integer(value), Some((least, most))) => {
                Some((least.min(value), most.max(value)))
            }
            _ => None,
        };
        self.nothing = false;
        self.numbers &= matches!(value, Value::Integer(_) | Value::Real(_));
    }

    /// Returns the kind of the column: that of the listing that it comes from, or one that all
    /// values have.
    fn kind(self, declared: Option<&str>) -> Kind {
        match (declared, self.whole) {
            (Some("INT4"), Some((least, most)))
                if i32::try_from(least).is_ok() && i32::try_from(most).is_ok() =>
            {
                Kind::Int4
            }
            (Some("INT8"), Some(_)) => Kind::Int8,
            (Some("NUMERIC"), Some((0.., _))) => Kind::Numeric,
            _ if self.nothing => Kind::Text,
            (_, Some(_)) => Kind::Int8,
            _ if self.numbers => Kind::Float8,
            _ => Kind::Text,
        }
    }
}

/// Returns a value in words, as PostgreSQL writes it.
fn words(value: Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) if number.is_infinite() => {
            Some(if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        Value::Real(number) => Some(number.to_string()),
        Value::Text(bytes) | Value::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// Returns the error for what SQLite says of a query.
fn refusal(error: Error) -> Refusal {
    if let Some(table) = error.message.strip_prefix("no such table: ") {
        let listings: Vec<_> = LISTINGS.iter().map(|(name, _)| name.replace(' ', "_")).collect();
        let meant = nearest(table, listings.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        return Refusal::new("42P01", format!("no such listing: {table}{meant}"));
    }
    Refusal::new(error.sqlstate(), error.message)
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
        let Table { columns, rows } = ask(&connection, query)?;
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
        let (kinds, _) = asked("SELECT \"all\" FROM t UNION ALL SELECT -1").unwrap();
        assert_eq!(kinds, [Kind::Int8]);
        let (kinds, _) = asked("SELECT few FROM t UNION ALL SELECT 5000000000").unwrap();
        assert_eq!(kinds, [Kind::Int8]);
    }

    #[test]
    fn errors_have_codes() {
        let code = |query| asked(query).unwrap_err().sqlstate;
        assert_eq!(code("SELECT absent FROM t"), "42703");
        assert_eq!(code("SELECT absent() FROM t"), "42883");
        assert_eq!(code("SELECT FROM WHERE"), "42601");
        assert_eq!(code("SELECT zeroblob(100000000)"), "54000");
        assert_eq!(code("SELECT * FROM t WHERE few = $1"), "0A000");
        assert_eq!(code("WITH x AS (SELECT 1) DELETE FROM t"), "0A000");
        assert_eq!(code("ATTACH 'x' AS y"), "42501");
        let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                    SELECT zeroblob(60000) FROM c";
        assert_eq!(code(many), "54000");
        let slow = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(\
                    instr(zeroblob(60000), zeroblob(29999) || x'01')) FROM c";
        assert_eq!(code(slow), "57014");
        let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                       SELECT count(*) FROM c";
        assert_eq!(code(endless), "57014");
        let refused = asked("SELECT * FROM pooles").unwrap_err();
        assert_eq!(refused.sqlstate, "42P01");
        assert_eq!(refused.message, "no such listing: pooles; did you mean pools?");
    }
}

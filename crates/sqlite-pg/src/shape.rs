//! The shape of a statement: its columns and its command tag, and how they are sent.

use std::sync::Arc;

use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sqlite::{Connection, Error, Run, Statement, Step, Value};

use crate::dialect::ResultColumn;
use crate::encode::{self, Format, Unfit};
use crate::failure::Failure;
use crate::infer::{ColumnLookup, Inferred};
use crate::schema_reads::SchemaReads;
use crate::translation_cache::TranslatedStatement;
use crate::types::Type;

/// The tag of CommandComplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// With the number of rows that were sent.
    Rows(&'static str),
    /// With the number of rows that were changed.
    Changes(&'static str),
    Plain(String),
}

/// The facts about a statement that are known without running it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) tag: Tag,
    /// True if the statement was translated for a schema that is gone: it has to be translated
    /// again.
    pub(crate) stale: bool,
}

/// The formats of a result's columns or of parameters, as Bind gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Formats {
    /// One format for all; Bind without a code means text.
    All(Format),
    /// A format for each.
    Each(Arc<[Format]>),
}

impl Default for Formats {
    fn default() -> Self {
        Self::All(Format::Text)
    }
}

impl Formats {
    /// Returns the format of one column or parameter.
    #[inline]
    pub(crate) fn of(&self, index: usize) -> Format {
        match self {
            Self::All(all) => *all,
            Self::Each(each) => each.get(index).copied().unwrap_or(Format::Text),
        }
    }
}

/// A statement in any state that can be described.
pub(crate) trait Described {
    /// Returns its shape. `client` is the client's text, `translated` its translation, if it is
    /// PostgreSQL's dialect.
    ///
    /// # Errors
    /// The schema could not be read.
    fn shape(
        &mut self,
        connection: &Connection,
        client: &[u8],
        translated: Option<&TranslatedStatement>,
    ) -> Result<Arc<Shape>, Error>;
}

macro_rules! described {
    ($($is:ty),*) => {$(
        impl Described for $is {
            fn shape(
                &mut self,
                connection: &Connection,
                client: &[u8],
                translated: Option<&TranslatedStatement>,
            ) -> Result<Arc<Shape>, Error> {
                // Two texts may have one text of SQLite's until the schema changes, `SELECT *` and
                // `SELECT a` for example; what is stale for one is not for the other.
                let subject = translated.map_or(0, |translated| translated.serial);
                self.memo(subject, |statement| {
                    let count = statement.column_count();
                    if let Some(translated) = translated {
                        return meant(translated, connection, client, count);
                    }
                    let declared = |column| statement.column_decltype(column);
                    let plain = (0..count).all(|column| declared(column).is_some());
                    let inferred = match plain {
                        true => Inferred::default(),
                        false => inferred(client, connection)?,
                    };
                    let column = |column| ResultColumn {
                        name: statement.column_name(column).unwrap_or_default().to_owned(),
                        is: match declared(column) {
                            Some(declared) => Type::declared(declared),
                            None => inferred.result(column, count).unwrap_or(Type::Text),
                        },
                        limit: None,
                    };
                    let columns = (0..count).map(column).collect();
                    Ok(Shape { columns, tag: Tag::read(client), stale: false })
                })
            }
        }
    )*};
}

/// Returns the shape of a translated statement.
fn meant(
    translated: &TranslatedStatement,
    connection: &Connection,
    client: &[u8],
    count: usize,
) -> Result<Shape, Error> {
    let columns = translated.columns.clone();
    // SQLite gives some statements without a result a column, as it checks rows with them (ADD
    // COLUMN).
    let stale = !columns.is_empty() && columns.len() != count || translated.is_stale(connection)?;
    Ok(Shape { columns, tag: Tag::read(client), stale })
}

described!(Statement<'_>, Run<'_, 'static>);

/// Infers the types of a text's columns and parameters.
///
/// # Errors
/// The tables that the text names could not be read.
pub(crate) fn inferred(client: &[u8], connection: &Connection) -> Result<Inferred, Error> {
    let tables = DeclaredTables(SchemaReads::of(connection));
    let inferred = Inferred::read(client, &tables);
    tables.0.check()?;
    Ok(inferred)
}

/// The tables of a connection, with declared types.
struct DeclaredTables<'a>(SchemaReads<'a>);

impl ColumnLookup for DeclaredTables<'_> {
    fn columns(&self, table: &str) -> Vec<(String, Option<Type>)> {
        const TEXT: &str = "SELECT name, type FROM pragma_table_xinfo(?1) WHERE hidden <> 1";
        let read = || {
            let mut run = self.0.connection.statement(TEXT)?.start();
            run.bind(1, Value::from(table))?;
            let mut columns = Vec::new();
            while run.step()? == Step::Row {
                let text = |column| match run.column(column) {
                    Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    _ => String::new(),
                };
                let declared = text(1);
                let is = (!declared.is_empty()).then(|| Type::declared(&declared));
                columns.push((text(0), is));
            }
            Ok(columns)
        };
        // The statement was compiled before, so its tables exist; a table that is gone since then
        // has no columns.
        self.0.found(read())
    }
}

impl Tag {
    /// Reads the first words of a statement.
    fn read(text: &[u8]) -> Self {
        let mut words = Words { text, lexer: Lexer::new(text, false) };
        let first = words.next().unwrap_or_default();
        match first.as_str() {
            "SELECT" | "VALUES" | "TABLE" | "UNION" | "INTERSECT" | "EXCEPT" => {
                Self::Rows("SELECT")
            }
            "INSERT" | "REPLACE" => Self::Changes("INSERT 0"),
            "UPDATE" => Self::Changes("UPDATE"),
            "DELETE" => Self::Changes("DELETE"),
            "WITH" => words.behind_with(),
            "CREATE" | "DROP" | "ALTER" => {
                let skipped = [
                    "TEMP",
                    "TEMPORARY",
                    "UNIQUE",
                    "VIRTUAL",
                    "UNLOGGED",
                    "RECURSIVE",
                    "OR",
                    "REPLACE",
                ];
                let object = words.find(|word| !skipped.contains(&word.as_str()));
                let object = match object.as_deref() {
                    Some("MATERIALIZED") => "MATERIALIZED VIEW",
                    object => object.unwrap_or_default(),
                };
                Self::Plain(format!("{first} {object}"))
            }
            "TRUNCATE" => Self::Plain("TRUNCATE TABLE".to_owned()),
            "" => Self::Rows("SELECT"), // begins with a parenthesis
            _ => Self::Plain(first),
        }
    }

    /// Appends the CommandComplete.
    pub(crate) fn write(&self, out: &mut Vec<u8>, rows: u64, changes: u64) {
        let (words, count) = match self {
            Self::Rows(word) => (*word, Some(rows)),
            Self::Changes(word) => (*word, Some(changes)),
            Self::Plain(words) => (words.as_str(), None),
        };
        write::message(out, back::COMMAND_COMPLETE, |out| {
            out.extend_from_slice(words.as_bytes());
            if let Some(count) = count {
                out.push(b' ');
                encode::decimal(out, count);
            }
            out.push(0);
        });
    }
}

/// The words of a statement outside of parentheses, in upper case.
struct Words<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut depth = 0_usize;
        loop {
            let token = self.lexer.significant()?;
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth = depth.saturating_sub(1),
                TokenKind::Word if depth == 0 => {
                    return Some(String::from_utf8_lossy(token.of(self.text)).to_ascii_uppercase());
                }
                _ => {}
            }
        }
    }
}

impl Words<'_> {
    fn behind_with(&mut self) -> Tag {
        let tag = self.find_map(|word| match word.as_str() {
            "SELECT" | "VALUES" => Some(Tag::Rows("SELECT")),
            "INSERT" | "REPLACE" => Some(Tag::Changes("INSERT 0")),
            "UPDATE" => Some(Tag::Changes("UPDATE")),
            "DELETE" => Some(Tag::Changes("DELETE")),
            _ => None,
        });
        tag.unwrap_or(Tag::Rows("SELECT"))
    }
}

/// Appends the reply to Describe: a RowDescription, or NoData if there are no columns.
pub(crate) fn description(out: &mut Vec<u8>, columns: &[ResultColumn], formats: &Formats) {
    if columns.is_empty() {
        write::bare(out, back::NO_DATA);
    } else {
        row_description(out, columns, formats);
    }
}

/// Appends a RowDescription.
pub(crate) fn row_description(out: &mut Vec<u8>, columns: &[ResultColumn], formats: &Formats) {
    write::message(out, back::ROW_DESCRIPTION, |out| {
        count(out, columns.len());
        for (index, column) in columns.iter().enumerate() {
            write::string(out, column.name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table, no column of it
            out.extend_from_slice(&column.is.oid().to_be_bytes());
            out.extend_from_slice(&column.is.size().to_be_bytes());
            // PostgreSQL's type modifier of a text's length counts its own four bytes.
            let own = if column.is.is_text() { 4 } else { 0 };
            let limit = column.limit.and_then(|limit| i32::try_from(limit).ok()?.checked_add(own));
            out.extend_from_slice(&limit.unwrap_or(-1).to_be_bytes());
            out.extend_from_slice(&formats.of(index).code().to_be_bytes());
        }
    });
}

/// Appends a DataRow. `number` is the number of the row, for the error message.
///
/// # Errors
/// A value does not fit its column; nothing is appended then.
#[inline]
pub(crate) fn data_row(
    out: &mut Vec<u8>,
    run: &Run<'_, 'static>,
    shape: &Shape,
    formats: &Formats,
    number: u64,
) -> Result<(), Failure> {
    let start = out.len();
    let mut unfit = None;
    write::message(out, back::DATA_ROW, |out| {
        count(out, shape.columns.len());
        for (index, column) in shape.columns.iter().enumerate() {
            let value = run.column(index);
            if encode::value(out, &value, column.is, formats.of(index)).is_err() {
                unfit = Some(Unfit::tell(&value, column.is, &column.name, number));
                return;
            }
        }
    });
    match unfit {
        Some(failure) => {
            out.truncate(start);
            Err(failure)
        }
        None => Ok(()),
    }
}

/// Appends a number of columns or parameters.
pub(crate) fn count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// Appends a DataRow of texts.
pub(crate) fn data_texts<T: AsRef<str>>(out: &mut Vec<u8>, values: &[T]) {
    write::text_row(out, values.iter().map(|value| Some(value.as_ref())));
}

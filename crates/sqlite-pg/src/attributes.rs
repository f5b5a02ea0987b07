//! The tables of a file, for the translation.

use refrain_sqlite::{Connection, Error, Step, Value};

use crate::dialect::{ADDED, Attribute, Catalog, EnumColumn, SCHEMA, SchemaObject, ViewColumn};
use crate::enums::{self, EnumType};
use crate::failure::Failure;
use crate::key_mark::{GivenBy, KeyMark};
use crate::key_sequences::{key_sequence_name, key_sequences};
use crate::schema_reads::SchemaReads;
use crate::sequences::{NEXT, Sequence};
use crate::standard;
use crate::types::Type;

/// The columns of a table: name, type, NOT NULL, position in the key, default, and whether the
/// column is generated.
const COLUMNS: &str = "SELECT name, type, \"notnull\", pk, dflt_value, hidden FROM pragma_table_xinfo(?1, ?2) \
                       WHERE hidden <> 1 AND (?1 LIKE 'sqlite\\_%' ESCAPE '\\' \
                       OR EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 \
                       AND NOT instr(coalesce(sql, ''), '/*refrain enum ')) \
                       OR EXISTS (SELECT 1 FROM sqlite_temp_schema WHERE name = ?1))";

/// The CREATE statement of a table or a view, of the main file, of the session's own, or of the
/// first that there is.
const MAIN_SQL: &str = "SELECT sql FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE \
                        AND type IN ('table', 'view')";
const TEMP_SQL: &str = "SELECT sql FROM sqlite_temp_schema WHERE name = ?1 COLLATE NOCASE \
                        AND type IN ('table', 'view')";
const ANY_SQL: &str = "SELECT sql FROM sqlite_temp_schema WHERE name = ?1 COLLATE NOCASE \
                       AND type IN ('table', 'view') UNION ALL SELECT sql FROM sqlite_schema \
                       WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')";

/// The CREATE statement of a table of the main file, under its exact name.
const DEFINITION: &str = "SELECT sql FROM sqlite_schema WHERE name = ?1 AND type = 'table'";

const TAKEN: &str = "SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE \
                     UNION ALL SELECT 1 FROM sqlite_temp_schema WHERE name = ?1 COLLATE NOCASE";

/// The tables and their CREATE statements, in the order in which they were made.
pub(crate) const TABLES: &str = "SELECT name, sql FROM (SELECT 0 AS part, rowid AS place, name, type, sql \
                                 FROM sqlite_schema UNION ALL SELECT 1, rowid, name, type, sql \
                                 FROM sqlite_temp_schema) WHERE type = 'table' ORDER BY part, place";

/// The columns of each UNIQUE of a table.
const UNIQUE: &str = "SELECT l.seq, i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i \
                      WHERE l.\"unique\" AND NOT l.partial ORDER BY l.seq";

/// Views that name a table or view. A translated statement has all names in quotes.
const READERS: &str = "SELECT name FROM (SELECT name, type, sql FROM sqlite_schema UNION ALL \
                       SELECT name, type, sql FROM sqlite_temp_schema) WHERE name <> ?1 \
                       AND type = 'view' AND instr(sql, '\"' || ?1 || '\"')";

/// The CREATE statements of what depends on a table; temporary objects may.
const DEPENDENTS: &str = "SELECT sql FROM (SELECT * FROM sqlite_schema UNION ALL \
                          SELECT * FROM sqlite_temp_schema) WHERE sql IS NOT NULL AND \
                          (tbl_name = ?1 COLLATE NOCASE AND type IN ('index', 'trigger') \
                          OR type = 'view' AND name <> ?1 AND instr(sql, '\"' || ?1 || '\"'))";

const SCHEMAS: &str = "SELECT substr(name, 1, length(name) - 1) FROM sqlite_schema \
                       WHERE type = 'table' AND instr(sql, ?1)";

const INSIDE: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') \
                      AND substr(name, 1, length(?1)) = ?1 AND name <> ?1";

const INDEX_COLUMNS: &str = "SELECT name FROM pragma_index_info(?1) ORDER BY seqno";

/// Tables that refer to another one.
const REFERRERS: &str = "SELECT DISTINCT s.name FROM sqlite_schema s, pragma_foreign_key_list(s.name) f \
                         WHERE s.type = 'table' AND s.name <> ?1 AND f.\"table\" = ?1 COLLATE NOCASE";

/// The name and the CREATE statement of an enum.
const ENUM: &str = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?1)";

/// The objects whose CREATE statements have a text, in the order in which they were made.
const WITH_TEXT: &str = "SELECT name, type, sql, part FROM (SELECT 0 AS part, rowid AS place, name, type, \
                         sql FROM sqlite_schema UNION ALL SELECT 1, rowid, name, type, sql \
                         FROM sqlite_temp_schema) WHERE instr(sql, ?1) ORDER BY part, place";

/// The number by which SQLite counts changes of the main file's schema.
const VERSION: &str = "SELECT schema_version FROM pragma_schema_version";

const ANY_TEMPORARY: &str = "SELECT 1 FROM sqlite_temp_schema LIMIT 1";

/// The tables that a connection sees.
pub(crate) struct Attributes<'a>(SchemaReads<'a>);

/// A row of [`COLUMNS`].
struct ColumnRow {
    name: String,
    declared: String,
    not_null: bool,
    key: i64,
    default: Option<String>,
    hidden: i64,
}

impl<'a> Attributes<'a> {
    /// Reads the tables of a connection. A caller that uses anything of them calls
    /// [`Attributes::check`] afterwards.
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self(SchemaReads::of(connection))
    }

    /// Checks that all tables could be read.
    ///
    /// # Errors
    /// The first error that says nothing of the tables.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    fn rows(&self, schema: Option<&str>, table: &str) -> Result<Vec<ColumnRow>, Error> {
        let mut run = self.0.connection.statement(COLUMNS)?.start();
        run.bind(1, Value::from(table))?;
        run.bind(2, schema.map_or(Value::Null, Value::from))?;
        let mut rows = Vec::new();
        while run.step()? == Step::Row {
            let text = |column| match run.column(column) {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            let default = match run.column(4) {
                Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            };
            let number = |column| match run.column(column) {
                Value::Integer(number) => number,
                _ => 0,
            };
            rows.push(ColumnRow {
                name: text(0),
                declared: text(1),
                not_null: number(2) != 0,
                key: number(3),
                default,
                hidden: number(5),
            });
        }
        Ok(rows)
    }

    /// True if a UNIQUE of a table has these columns.
    fn has_unique(&self, table: &str, columns: &[String]) -> Result<bool, Error> {
        let mut run = self.0.connection.statement(UNIQUE)?.start();
        run.bind(1, Value::from(table))?;
        let mut all = std::collections::HashMap::<i64, Vec<String>>::new();
        while run.step()? == Step::Row {
            if let (Value::Integer(index), Value::Text(name)) = (run.column(0), run.column(1)) {
                all.entry(index).or_default().push(String::from_utf8_lossy(name).into_owned());
            }
        }
        Ok(all.values().any(|names| is_same_set(names, columns)))
    }

    /// Returns the tables, with their CREATE statements.
    fn tables(&self) -> Result<Vec<(String, String)>, Error> {
        let mut run = self.0.connection.statement(TABLES)?.start();
        let mut all = Vec::new();
        while run.step()? == Step::Row {
            if let (Value::Text(name), Value::Text(sql)) = (run.column(0), run.column(1)) {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                all.push((text(name), text(sql)));
            }
        }
        Ok(all)
    }

    /// Returns the type of a declaration.
    fn declared(&self, declaration: &str) -> Type {
        let found = enums::declared_oid(declaration);
        let known = found.and_then(|(oid, array)| Some((self.enum_of(oid)?, array)));
        match known {
            Some((of, true)) => Type::EnumArray(of),
            Some((of, false)) => Type::Enum(of),
            None => Type::declared(declaration),
        }
    }

    /// Returns the first column of the first row as text.
    fn first(&self, text: &str, value: &str) -> Option<String> {
        self.0.found(self.first_of(text, Some(value), |value| match value {
            Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => Some(String::new()),
        }))
    }

    /// Returns the first columns of all rows.
    fn names(&self, text: &str, value: &str) -> Result<Vec<String>, Error> {
        let mut run = self.0.connection.statement(text)?.start();
        run.bind(1, Value::from(value))?;
        let mut all = Vec::new();
        while run.step()? == Step::Row {
            if let Value::Text(text) = run.column(0) {
                all.push(String::from_utf8_lossy(text).into_owned());
            }
        }
        Ok(all)
    }

    /// Returns the objects whose CREATE statements have a text.
    fn objects(&self, has: &str) -> Result<Vec<SchemaObject>, Error> {
        let mut run = self.0.connection.statement(WITH_TEXT)?.start();
        run.bind(1, Value::from(has))?;
        let mut all = Vec::new();
        while run.step()? == Step::Row {
            let text = |column| match run.column(column) {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            let temporary = matches!(run.column(3), Value::Integer(1));
            all.push(SchemaObject { name: text(0), kind: text(1), sql: text(2), temporary });
        }
        Ok(all)
    }

    /// Returns a number that changes with every change of the main file's schema.
    pub(crate) fn version(&self) -> Option<i64> {
        self.0.found(self.first_of(VERSION, None, |value| match value {
            Value::Integer(number) => Some(number),
            _ => None,
        }))
    }

    /// True if the connection has temporary objects, which belong to one session, or cannot tell.
    pub(crate) fn has_temporary(&self) -> bool {
        !matches!(self.first_of(ANY_TEMPORARY, None, |_| Some(())), Ok(None))
    }

    /// Returns what `read` makes of the first column of the first row; none if there is no row.
    fn first_of<T>(
        &self,
        text: &str,
        bound: Option<&str>,
        read: impl FnOnce(Value<'_>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut run = self.0.connection.statement(text)?.start();
        if let Some(bound) = bound {
            run.bind(1, Value::from(bound))?;
        }
        Ok(match run.step()? {
            Step::Row => read(run.column(0)),
            Step::Done => None,
        })
    }
}

/// Returns the query for the table to which an index was added as a constraint.
fn added() -> String {
    let of = |schema: &str| {
        format!(
            "SELECT tbl_name FROM {schema} WHERE type = 'index' AND name = ?1 COLLATE NOCASE \
             AND instr(sql, '{ADDED}')"
        )
    };
    format!("{} UNION ALL {}", of("sqlite_schema"), of("sqlite_temp_schema"))
}

fn is_same_set(names: &[String], others: &[String]) -> bool {
    let has = |name: &String| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    names.len() == others.len() && names.iter().all(has)
}

/// Returns the number in the parentheses of a declared type.
pub(crate) fn limit(declared: &str) -> Option<u32> {
    if enums::declared_oid(declared).is_some() {
        return None;
    }
    let (_, rest) = declared.split_once('(')?;
    rest.split_once(')')?.0.trim().parse().ok()
}

impl Catalog for Attributes<'_> {
    fn table(&self, schema: Option<&str>, table: &str) -> Option<Vec<Attribute>> {
        let rows = self.0.found(self.rows(schema, table));
        if rows.is_empty() {
            return None;
        }
        let statement = match schema {
            None => ANY_SQL,
            Some("main") => MAIN_SQL,
            Some(_) => TEMP_SQL,
        };
        let keys = rows.iter().filter(|row| row.key > 0).count();
        let is_row_number = |row: &ColumnRow| {
            keys == 1 && row.key == 1 && row.declared.eq_ignore_ascii_case("INTEGER")
        };
        let untyped = rows.iter().all(|row| row.key == 0 && !row.not_null);
        let sql = match untyped || rows.iter().any(is_row_number) {
            true => self.first(statement, table).unwrap_or_default(),
            false => String::new(),
        };
        let mark = KeyMark::read(&sql);
        let types = ViewColumn::read(&sql, |oid| self.enum_of(oid));
        let is_view = sql.starts_with("CREATE VIEW");
        let attribute = |(index, row): (usize, ColumnRow)| {
            let mark = mark.as_ref().filter(|_| is_row_number(&row));
            let is = self.declared(&row.declared);
            let limited =
                matches!(is, Type::Varchar | Type::Bpchar | Type::Timestamp | Type::Timestamptz);
            let limit = limit(&row.declared).filter(|_| limited);
            let plain = ViewColumn { is, limit, writable: !is_view };
            let ViewColumn { is, limit, writable } = types.get(index).copied().unwrap_or(plain);
            Attribute {
                is: mark.map_or(is, |mark| mark.is),
                limit,
                not_null: row.not_null || is_row_number(&row),
                key: u32::try_from(row.key).unwrap_or(0),
                default: row.default,
                computed: row.hidden > 1,
                writable,
                given: mark.map_or(GivenBy::Statement, |mark| mark.given),
                name: row.name,
            }
        };
        Some(rows.into_iter().enumerate().map(attribute).collect())
    }

    fn enum_of(&self, oid: u32) -> Option<EnumType> {
        let mark = format!("{}{oid} ", enums::MARK);
        let read = || {
            let mut run = self.0.connection.statement(ENUM)?.start();
            run.bind(1, Value::from(mark.as_str()))?;
            Ok(match (run.step()?, run.column(0), run.column(1)) {
                (Step::Row, Value::Text(name), Value::Text(sql)) => {
                    EnumType::read(&String::from_utf8_lossy(name), &String::from_utf8_lossy(sql))
                }
                _ => None,
            })
        };
        self.0.found(read())
    }

    fn with_text(&self, text: &str) -> Vec<SchemaObject> {
        self.0.found(self.objects(text))
    }

    fn schemas(&self) -> Vec<String> {
        self.0.found(self.names(SCHEMAS, SCHEMA))
    }

    fn inside(&self, schema: &str) -> Vec<String> {
        self.0.found(self.names(INSIDE, &format!("{schema}.")))
    }

    fn key_sequence(&self, name: &str) -> Option<(String, Type)> {
        let all = key_sequences(self.0.found(self.tables()));
        all.into_iter().find(|it| it.name == name).map(|it| (it.table, it.is))
    }

    fn key_sequence_name(&self, table: &str, column: &str) -> String {
        let sql = self.first(ANY_SQL, table).unwrap_or_default();
        self.0.found(key_sequence_name(&sql, table, column, || self.tables()))
    }

    fn users_of_sequence(&self, name: &str) -> Vec<(String, String)> {
        let call = format!("{NEXT}('{}')", name.replace('\'', "''"));
        let of = |(table, sql): (String, String)| {
            let columns = match sql.contains(&call) {
                true => self.table(None, &table).unwrap_or_default(),
                false => Vec::new(),
            };
            let uses = |column: &Attribute| {
                column.default.as_ref().is_some_and(|default| default.contains(&call))
            };
            let columns: Vec<_> = columns.into_iter().filter(uses).collect();
            columns.into_iter().map(move |column| (table.clone(), column.name))
        };
        self.0.found(self.tables()).into_iter().flat_map(of).collect()
    }

    fn owned_sequences(&self, table: &str) -> Vec<(String, String)> {
        let of = |(name, sql): (String, String)| {
            let (owner, column) = Sequence::read(&sql)?.owner?;
            (owner == *table).then_some((name, column))
        };
        self.0.found(self.tables()).into_iter().filter_map(of).collect()
    }

    fn columns_of_enum(&self, of: EnumType) -> Vec<EnumColumn> {
        let is_of = |column: &Attribute| match column.is {
            Type::Enum(is) | Type::EnumArray(is) => is == of,
            _ => false,
        };
        let columns = |table: SchemaObject| {
            let all = self.table(Some(table.schema()), &table.name).unwrap_or_default();
            let all = all.into_iter().filter(is_of);
            all.map(|column| EnumColumn { table: table.clone(), column }).collect::<Vec<_>>()
        };
        // The declaration of arrays has that of values in it.
        let declared = self.with_text(&of.declaration(false));
        declared.into_iter().filter(|it| it.kind == "table").flat_map(columns).collect()
    }

    fn columns_of(&self, index: &str) -> Vec<String> {
        self.0.found(self.names(INDEX_COLUMNS, index))
    }

    fn dependents(&self, table: &str) -> Vec<String> {
        self.0.found(self.names(DEPENDENTS, table))
    }

    fn readers(&self, name: &str) -> Vec<String> {
        self.0.found(self.names(READERS, name))
    }

    fn referrers(&self, table: &str) -> Vec<String> {
        self.0.found(self.names(REFERRERS, table))
    }

    fn constrained(&self, index: &str) -> Option<(String, bool)> {
        if let Some(table) = self.first(&added(), index) {
            return Some((table, true));
        }
        if self.is_taken(index) {
            return None;
        }
        let made = |(table, sql): &(String, String)| standard::has_key(sql, table, index);
        self.0.found(self.tables()).into_iter().find(made).map(|(table, _)| (table, false))
    }

    fn definition(&self, table: &str) -> Option<String> {
        self.first(DEFINITION, table)
    }

    fn computed(&self, sql: &str) -> Result<String, Failure> {
        let run = || {
            let mut run = self.0.connection.statement(format!("SELECT {sql}").as_str())?.start();
            run.step()?;
            Ok::<_, Error>(match run.column(0) {
                Value::Integer(number) => format!("({number})"),
                Value::Real(number) if number.is_finite() => format!("({number:e})"),
                Value::Null => "NULL".to_owned(),
                _ => sql.to_owned(),
            })
        };
        run().map_err(|error| {
            self.0.note(&error);
            Failure::from(error)
        })
    }

    fn is_unique(&self, table: &str, columns: &[String]) -> bool {
        let known = self.table(None, table).unwrap_or_default();
        let keys = known.into_iter().filter(|column| column.key > 0).map(|column| column.name);
        let keys: Vec<String> = keys.collect();
        is_same_set(&keys, columns)
            || self.0.found(self.has_unique(table, columns).map(Some)).unwrap_or(true)
    }

    fn is_taken(&self, name: &str) -> bool {
        self.first(TAKEN, name).is_some()
    }
}

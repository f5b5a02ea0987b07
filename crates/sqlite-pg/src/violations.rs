//! Violated constraints, told as the server tells them: with the constraint's name, the table, the
//! column, and the values of the key.
//!
//! SQLite says which columns were not unique or NULL, which CHECK failed, and of foreign keys
//! nothing. The rest is looked up when the statement has failed: names in the table's CREATE
//! statement, values by a query of the rows that an INSERT would have written or that a DELETE
//! would have deleted ([`WriteTarget`]). Where the values cannot be known, the error has no detail.

use refrain_sqlite::{Connection, Error, Step, Value};

use crate::attributes::Attributes;
use crate::dialect::{Attribute, Catalog, WriteTarget, WriteVerb};
use crate::failure::{About, Failure};
use crate::sql_text::{self, quoted};
use crate::standard::{self, ForeignKey};

/// The names of a table's unique indexes with their columns.
const UNIQUE: &str = "SELECT l.name, (SELECT group_concat(i.name, char(1) ORDER BY i.seqno) FROM pragma_index_info(l.name) i) \
                      FROM pragma_index_list(?1) l WHERE l.\"unique\"";

/// A statement that has failed.
struct Failed<'a> {
    connection: &'a Connection,
    target: &'a WriteTarget,
    columns: Vec<Attribute>,
    /// The query of the rows that it was about, in which `s` has them; none if it is not known.
    rows: Option<String>,
}

/// Returns the server's error in the place of SQLite's. `expanded` is SQLite's text of the
/// statement, with its values.
pub(crate) fn told(
    connection: &Connection,
    failure: Failure,
    target: &WriteTarget,
    expanded: Option<&str>,
) -> Failure {
    let columns = Attributes::of(connection).table(None, &target.table).unwrap_or_default();
    let rows = expanded.and_then(|sql| target.rows(sql));
    let failed = Failed { connection, target, columns, rows };
    let words = failure.message.split_once(" constraint failed").map(|(kind, rest)| {
        (kind.to_owned(), rest.strip_prefix(": ").unwrap_or_default().to_owned())
    });
    let made = match words.as_ref().map(|(kind, rest)| (kind.as_str(), rest.as_str())) {
        Some(("UNIQUE", columns)) => failed.not_unique(columns),
        Some(("NOT NULL", column)) => failed.null(column),
        Some(("CHECK", said)) => failed.not_checked(said),
        Some(("FOREIGN KEY", _)) => failed.not_referring(),
        _ => None,
    };
    let hint = failure.hint.clone();
    made.map_or(failure, |made| made.hint(hint))
}

impl Failed<'_> {
    fn about(&self, column: &str, constraint: &str) -> Option<Box<About>> {
        let (column, constraint) = (column.to_owned(), constraint.to_owned());
        Some(Box::new(About { table: self.target.table.clone(), column, constraint }))
    }

    fn definition(&self) -> String {
        Attributes::of(self.connection).definition(&self.target.table).unwrap_or_default()
    }

    /// Returns the columns that SQLite names with their table.
    fn named<'t>(&self, said: &'t str) -> Vec<&'t str> {
        let head = format!("{}.", self.target.table);
        said.split(", ").map(|part| part.strip_prefix(&head).unwrap_or(part)).collect()
    }

    fn not_unique(&self, said: &str) -> Option<Failure> {
        let columns = self.named(said);
        let index = said.strip_prefix("index '").and_then(|rest| rest.strip_suffix('\''));
        let name = match index {
            Some(index) => index.to_owned(),
            None => standard::key_of(&self.definition(), &self.target.table, &columns)
                .or_else(|| self.unique_index(&columns))?,
        };
        let message = format!("duplicate key value violates unique constraint \"{name}\"");
        let failure = Failure { about: self.about("", &name), ..Failure::new("23505", message) };
        let values = index.is_none().then(|| self.taken(&columns)).flatten();
        Some(match values {
            Some(values) => {
                failure.detail(format!("Key ({})=({values}) already exists.", listed(&columns)))
            }
            None => failure,
        })
    }

    fn unique_index(&self, columns: &[&str]) -> Option<String> {
        let wanted = columns.join("\u{1}");
        let read = || {
            let mut run = self.connection.statement(UNIQUE)?.start();
            run.bind(1, Value::from(self.target.table.as_str()))?;
            while run.step()? == Step::Row {
                if let (Value::Text(name), Value::Text(columns)) = (run.column(0), run.column(1))
                    && columns == wanted.as_bytes()
                {
                    return Ok(Some(String::from_utf8_lossy(name).into_owned()));
                }
            }
            Ok::<_, Error>(None)
        };
        self.connection.trusted(|_| read()).ok().flatten()
    }

    /// Returns the values of the key that another row has.
    fn taken(&self, columns: &[&str]) -> Option<String> {
        let (rows, values) = (self.rows.as_ref()?, self.values(columns)?);
        let equal = columns.iter().map(|it| format!("t.{0} = s.{0}", quoted(it)));
        let equal = equal.collect::<Vec<_>>().join(" AND ");
        let table = quoted(&self.target.table);
        let keys = columns.iter().map(|it| format!("s.{}", quoted(it))).collect::<Vec<_>>();
        self.first(&format!("{rows} SELECT {values} FROM s WHERE EXISTS (SELECT 1 FROM {table} t WHERE {equal}) LIMIT 1"))
            .or_else(|| {
                let keys = keys.join(", ");
                self.first(&format!("{rows} SELECT {values} FROM s GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"))
            })
    }

    /// Returns the SQL of values of columns as the server prints them in a detail.
    fn values(&self, columns: &[&str]) -> Option<String> {
        let one = |called: &&str| {
            let column = self.columns.iter().find(|column| column.name == **called)?;
            self.target
                .has(called)
                .then(|| format!("refrain_text({}, s.{})", column.is.oid(), quoted(called)))
        };
        let all: Option<Vec<String>> = columns.iter().map(one).collect();
        all.map(|all| all.join(" || ', ' || "))
    }

    fn first(&self, sql: &str) -> Option<String> {
        let read = || {
            let mut run = self.connection.statement(sql)?.start();
            Ok::<_, Error>(match run.step()? {
                Step::Row => match run.column(0) {
                    Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                    _ => None,
                },
                Step::Done => None,
            })
        };
        read().ok().flatten()
    }

    fn null(&self, said: &str) -> Option<Failure> {
        let column = *self.named(said).first()?;
        let table = &self.target.table;
        let message = format!(
            "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
        );
        Some(Failure { about: self.about(column, ""), ..Failure::new("23502", message) })
    }

    fn not_checked(&self, said: &str) -> Option<Failure> {
        let table = &self.target.table;
        let name = standard::check_of(&self.definition(), table, said)?;
        let message =
            format!("new row for relation \"{table}\" violates check constraint \"{name}\"");
        Some(Failure { about: self.about("", &name), ..Failure::new("23514", message) })
    }

    fn not_referring(&self) -> Option<Failure> {
        let own = standard::foreign_keys(&self.definition(), &self.target.table);
        let inserts = matches!(self.target.verb, WriteVerb::Insert { .. });
        let deletes = matches!(self.target.verb, WriteVerb::Delete { .. });
        let of_own = own.iter().filter(|_| !deletes);
        if let Some((key, values)) = of_own.clone().find_map(|key| Some((key, self.missing(key)?)))
        {
            return Some(self.absent(key, Some(values)));
        }
        let catalog = Attributes::of(self.connection);
        let others = catalog.referrers(&self.target.table).into_iter().filter(|_| !inserts);
        let others = others.flat_map(|table| {
            let sql = catalog.definition(&table).unwrap_or_default();
            let keys = standard::foreign_keys(&sql, &table).into_iter();
            keys.map(|key| (table.clone(), key)).collect::<Vec<_>>()
        });
        let others: Vec<_> = others.filter(|(_, key)| key.target == self.target.table).collect();
        let found =
            others.iter().find_map(|(table, key)| Some((table, key, self.referred(table, key)?)));
        if let Some((table, key, values)) = found {
            return Some(self.present(table, key, Some(values)));
        }
        match (&of_own.collect::<Vec<_>>()[..], &others[..]) {
            ([only], []) => Some(self.absent(only, None)),
            ([], [(table, only)]) => Some(self.present(table, only, None)),
            _ => None,
        }
    }

    /// Returns the columns that a foreign key refers to: the primary key, if it names none.
    fn referred_to(&self, key: &ForeignKey) -> Vec<String> {
        if !key.target_columns.is_empty() {
            return key.target_columns.clone();
        }
        let columns = Attributes::of(self.connection).table(None, &key.target).unwrap_or_default();
        let mut keys: Vec<_> = columns.into_iter().filter(|column| column.key > 0).collect();
        keys.sort_by_key(|column| column.key);
        keys.into_iter().map(|column| column.name).collect()
    }

    /// Returns the values for which no row is there to which a foreign key refers.
    fn missing(&self, key: &ForeignKey) -> Option<String> {
        let columns: Vec<&str> = key.columns.iter().map(String::as_str).collect();
        let (rows, values) = (self.rows.as_ref()?, self.values(&columns)?);
        let target = quoted(&key.target);
        let pairs = columns.iter().zip(self.referred_to(key));
        let equal = pairs.map(|(own, its)| format!("t.{} = s.{}", quoted(&its), quoted(own)));
        let equal = equal.collect::<Vec<_>>().join(" AND ");
        let given = columns.iter().map(|own| format!("s.{} IS NOT NULL", quoted(own)));
        let given = given.collect::<Vec<_>>().join(" AND ");
        self.first(&format!(
            "{rows} SELECT {values} FROM s WHERE {given} AND NOT EXISTS (SELECT 1 FROM {target} t WHERE {equal}) LIMIT 1"
        ))
    }

    fn absent(&self, key: &ForeignKey, values: Option<String>) -> Failure {
        let (table, name) = (&self.target.table, &key.name);
        let message = format!(
            "insert or update on table \"{table}\" violates foreign key constraint \"{name}\""
        );
        let columns: Vec<&str> = key.columns.iter().map(String::as_str).collect();
        let failure = Failure { about: self.about("", name), ..Failure::new("23503", message) };
        match values {
            Some(values) => failure.detail(format!(
                "Key ({})=({values}) is not present in table \"{}\".",
                listed(&columns),
                key.target
            )),
            None => failure,
        }
    }

    /// Returns the values of a row that is to be deleted and that rows of another table refer to.
    fn referred(&self, table: &str, key: &ForeignKey) -> Option<String> {
        let columns = self.referred_to(key);
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let (rows, values) = (self.rows.as_ref()?, self.values(&columns)?);
        let pairs = columns.iter().zip(&key.columns);
        let equal = pairs.map(|(its, own)| format!("t.{} = s.{}", quoted(own), quoted(its)));
        let equal = equal.collect::<Vec<_>>().join(" AND ");
        let table = quoted(table);
        self.first(&format!(
            "{rows} SELECT {values} FROM s WHERE EXISTS (SELECT 1 FROM {table} t WHERE {equal}) LIMIT 1"
        ))
    }

    fn present(&self, table: &str, key: &ForeignKey, values: Option<String>) -> Failure {
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{table}\"",
            self.target.table, key.name
        );
        let about =
            About { table: table.to_owned(), constraint: key.name.clone(), ..About::default() };
        let failure = Failure { about: Some(Box::new(about)), ..Failure::new("23503", message) };
        let columns = self.referred_to(key);
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        match values {
            Some(values) => failure.detail(format!(
                "Key ({})=({values}) is still referenced from table \"{table}\".",
                listed(&columns)
            )),
            None => failure,
        }
    }
}

fn listed(columns: &[&str]) -> String {
    let names: Vec<String> = columns.iter().map(|name| sql_text::identifier(name)).collect();
    names.join(", ")
}

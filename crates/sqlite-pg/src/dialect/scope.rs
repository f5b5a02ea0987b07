//! What names mean: the tables of a query and of those around it, and their columns.

use crate::failure::Failure;
use crate::types::Type;

use super::value::{Expr, name, text_literal};

/// What is known of a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) is: Type,
    /// How long its values may be.
    pub(crate) limit: Option<u32>,
    pub(crate) not_null: bool,
    /// Its place in the primary key, from 1; 0 for none.
    pub(crate) key: u32,
    /// Its default as SQLite keeps it.
    pub(crate) default: Option<String>,
    /// Whether it is computed from others.
    pub(crate) computed: bool,
    /// Whether it is a table's, or a view's that PostgreSQL would write through
    /// ([`super::objects`]).
    pub(crate) writable: bool,
    pub(crate) given: GivenBy,
}

impl Attribute {
    /// How a parameter is written that is stored in the column, with the checks that its type does
    /// not make.
    pub(crate) fn place(&self, number: usize, table: &str) -> String {
        let key = self.given != GivenBy::Statement;
        match self.limit {
            Some(limit) => format!("refrain_fit({}, ?{number}, {limit}, 0)", self.is.oid()),
            None if key => {
                let (table, column) = (text_literal(table), text_literal(&self.name));
                format!("refrain_present(?{number}, {table}, {column})")
            }
            None => format!("?{number}"),
        }
    }
}

/// Who gives a column its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenBy {
    /// The statement, or its default.
    Statement,
    /// The statement: it is SQLite's row number, and must not be given by SQLite.
    Key,
    /// SQLite gives the next number, unless the statement gives one: SERIAL.
    Next,
    /// The same, where IDENTITY says so.
    ByDefault,
    /// SQLite gives the next number, always.
    Always,
}

/// What can be asked about the file.
pub(crate) trait Catalog {
    /// The columns of a table or view, in order; `None` if there is none of that name.
    fn table(&self, schema: Option<&str>, table: &str) -> Option<Vec<Attribute>>;

    /// What an expression of constants is, in SQLite's words.
    ///
    /// # Errors
    /// What computing it raises.
    fn computed(&self, sql: &str) -> Result<String, Failure>;

    /// Whether something in the file has this name.
    fn is_taken(&self, name: &str) -> bool;

    /// Whether these columns of a table are its key, or UNIQUE together.
    fn is_unique(&self, table: &str, columns: &[String]) -> bool;

    /// The table that an index belongs to as one of its constraints, if it does; whether the
    /// constraint was added to it.
    fn constrained(&self, index: &str) -> Option<(String, bool)>;

    /// A view that reads a table or view, or a table that refers to it.
    fn dependent(&self, name: &str) -> Option<String>;
}

/// A column of something that stands in FROM.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// How it is written.
    pub(super) sql: String,
    /// How the columns are written that USING made it of; nothing for a column of a table.
    pub(super) of: Vec<String>,
    pub(super) is: Type,
    pub(super) limit: Option<u32>,
    pub(super) not_null: bool,
    pub(super) key: u32,
    pub(super) writable: bool,
    /// Whether `*` leaves it out, and a plain name does not find it: USING has merged it with
    /// another.
    pub(super) merged: bool,
}

impl Column {
    /// How the columns of tables are written that it is made of.
    pub(super) fn parts(&self) -> &[String] {
        if self.of.is_empty() { std::slice::from_ref(&self.sql) } else { &self.of }
    }
}

/// A table, subquery or join in FROM.
#[derive(Clone, Debug)]
pub(super) struct FromItem {
    /// What columns are qualified by.
    pub(super) alias: String,
    pub(super) columns: Vec<Column>,
    /// Whether it is a query that reads itself.
    pub(super) recursive: bool,
}

/// What one query sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) sources: Vec<FromItem>,
    /// Columns that a plain name finds before all others: those of USING.
    pub(super) joined: Vec<Column>,
    pub(super) ctes: Vec<Cte>,
    /// Names of WITH RECURSIVE that are still to come.
    pub(super) coming: Vec<String>,
    /// What it is grouped by, in SQLite's words; `None` if it is not.
    pub(super) groups: Option<Vec<String>>,
    /// Whether a function is called over a window.
    pub(super) windowed: bool,
}

/// A common table expression.
#[derive(Clone, Debug)]
pub(super) struct Cte {
    pub(super) name: String,
    pub(super) columns: Vec<(String, Type)>,
    /// Whether it is being made, so that what reads it is its own recursion.
    pub(super) open: bool,
    /// Whether anything has read it.
    pub(super) read: bool,
    /// Whether it reads columns of queries around its WITH.
    pub(super) outer: bool,
}

impl Cte {
    /// One of this name that has no columns yet.
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), columns: Vec::new(), open: false, read: false, outer: false }
    }
}

impl FromItem {
    /// A table, view, CTE or subquery under a name.
    pub(super) fn new(alias: &str, columns: impl Iterator<Item = (String, Type)>) -> Self {
        let column = |(column, is): (String, Type)| Column {
            sql: format!("{}.{}", name(alias), name(&column)),
            name: column,
            of: Vec::new(),
            is,
            limit: None,
            not_null: false,
            key: 0,
            writable: false,
            merged: false,
        };
        let columns = columns.map(column).collect();
        Self { alias: alias.to_owned(), columns, recursive: false }
    }

    /// A table of the file under a name.
    pub(super) fn table(alias: &str, attributes: &[Attribute]) -> Self {
        let plain = attributes.iter().map(|attribute| (attribute.name.clone(), attribute.is));
        let mut source = Self::new(alias, plain);
        for (column, attribute) in source.columns.iter_mut().zip(attributes) {
            column.limit = attribute.limit;
            column.not_null = attribute.not_null;
            column.key = attribute.key;
            column.writable = attribute.writable;
        }
        source
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

impl Scope {
    /// The column of this name, if there is one.
    ///
    /// # Errors
    /// 42702: there is more than one.
    fn column(&self, qualifier: Option<&str>, wanted: &str) -> Result<Option<&Column>, Failure> {
        if qualifier.is_none()
            && let Some(joined) = self.joined.iter().find(|column| same(&column.name, wanted))
        {
            return Ok(Some(joined));
        }
        let sources =
            self.sources.iter().filter(|source| qualifier.is_none_or(|q| same(&source.alias, q)));
        let fits = |column: &&Column| {
            same(&column.name, wanted) && (qualifier.is_some() || !column.merged)
        };
        let mut found = sources.flat_map(|source| source.columns.iter()).filter(fits);
        let first = found.next();
        if found.next().is_some() {
            let message = format!("column reference \"{wanted}\" is ambiguous");
            return Err(Failure::new("42702", message));
        }
        Ok(first)
    }

    pub(super) fn has_source(&self, qualifier: &str) -> bool {
        self.sources.iter().any(|source| same(&source.alias, qualifier))
    }

    /// The columns that `*` stands for.
    pub(super) fn all(&self) -> Vec<Column> {
        let sources = self.sources.iter().flat_map(|source| source.columns.iter());
        let rest = sources.filter(|column| !column.merged);
        self.joined.iter().chain(rest).cloned().collect()
    }

    /// The columns that `t.*` stands for.
    pub(super) fn all_of(&self, qualifier: &str) -> Option<Vec<Column>> {
        let source = self.sources.iter().find(|source| same(&source.alias, qualifier))?;
        Some(source.columns.clone())
    }

    /// Whether a query that is grouped has one value of a column for each group.
    pub(super) fn is_grouped(&self, column: &Column) -> bool {
        let Some(groups) = &self.groups else { return false };
        let has_one = |sql: &String| groups.contains(sql) || self.is_settled(groups, sql);
        groups.contains(&column.sql) || column.parts().iter().all(has_one)
    }

    /// Whether grouping by the key of a column's table settles the column
    /// (`check_functional_grouping` of the server).
    fn is_settled(&self, groups: &[String], column: &str) -> bool {
        let source = self
            .sources
            .iter()
            .find(|source| source.columns.iter().any(|other| other.sql == column));
        let Some(source) = source else { return false };
        let mut keys = source.columns.iter().filter(|other| other.key > 0).peekable();
        keys.peek().is_some() && keys.all(|key| groups.contains(&key.sql))
    }
}

const NO_COLUMN: &str =
    "PostgreSQL's system columns (ctid, xmin, tableoid) and rows as values are not supported";

/// Finds a column in the innermost query that has it; how many queries stand around that one.
///
/// # Errors
/// 42703, 42P01 or 42702, in PostgreSQL's words.
pub(super) fn find(
    scopes: &[Scope],
    qualifier: Option<&str>,
    wanted: &str,
) -> Result<(usize, Expr), Failure> {
    for (depth, scope) in scopes.iter().enumerate().rev() {
        if let Some(column) = scope.column(qualifier, wanted)? {
            let mut expr = Expr::typed(column.sql.clone(), column.is).named(wanted);
            if !scope.is_grouped(column) {
                let called = match qualifier {
                    Some(qualifier) => format!("{qualifier}.{wanted}"),
                    None => qualified(scope, column),
                };
                expr.bare.push((depth, called));
            }
            expr.not_null = column.not_null;
            expr.limit = column.limit;
            return Ok((depth, expr));
        }
        if qualifier.is_some_and(|qualifier| scope.has_source(qualifier)) {
            break;
        }
    }
    let known = |qualifier: &str| scopes.iter().any(|scope| scope.has_source(qualifier));
    Err(match qualifier {
        None => {
            Failure::new("42703", format!("column \"{wanted}\" does not exist")).hint(NO_COLUMN)
        }
        Some(qualifier) if known(qualifier) => {
            Failure::new("42703", format!("column {qualifier}.{wanted} does not exist"))
                .hint(NO_COLUMN)
        }
        Some(qualifier) => {
            let message = format!("missing FROM-clause entry for table \"{qualifier}\"");
            Failure::new("42P01", message)
        }
    })
}

fn qualified(scope: &Scope, column: &Column) -> String {
    let source = scope
        .sources
        .iter()
        .find(|source| source.columns.iter().any(|other| other.sql == column.sql));
    source.map_or(column.name.clone(), |source| format!("{}.{}", source.alias, column.name))
}

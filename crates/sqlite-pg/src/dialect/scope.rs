//! Names and their meanings: the tables of a query and of the enclosing queries, and their columns.

use std::borrow::Cow;

use crate::enums::EnumType;
use crate::failure::Failure;
use crate::key_mark::GivenBy;
use crate::types::Type;

use super::value::{Expr, name, text_literal};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) is: Type,
    /// The maximum length of its values.
    pub(crate) limit: Option<u32>,
    pub(crate) not_null: bool,
    /// Its position in the primary key, from 1; 0 if it is not in the key.
    pub(crate) key: u32,
    /// Its default, as SQLite stores it.
    pub(crate) default: Option<String>,
    /// True if it is a generated column.
    pub(crate) computed: bool,
    /// True for a table's column, and for a view's if PostgreSQL would accept writes through it
    /// ([`super::objects`]).
    pub(crate) writable: bool,
    pub(crate) given: GivenBy,
}

impl Attribute {
    /// Returns the SQL of a parameter that is stored in the column, with the checks that its type
    /// does not make.
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

/// A table, view, index or trigger that a connection sees.
#[derive(Clone, Debug)]
pub(crate) struct SchemaObject {
    pub(crate) name: String,
    /// SQLite's word for what it is.
    pub(crate) kind: String,
    /// Its CREATE statement.
    pub(crate) sql: String,
    /// True if it belongs to the session.
    pub(crate) temporary: bool,
}

impl SchemaObject {
    /// Returns the schema of SQLite that has it.
    pub(crate) fn schema(&self) -> &'static str {
        if self.temporary { "temp" } else { "main" }
    }
}

/// A column of a table whose values are of an enum, or arrays of it.
#[derive(Clone, Debug)]
pub(crate) struct EnumColumn {
    pub(crate) table: SchemaObject,
    pub(crate) column: Attribute,
}

/// The facts about the file that a translation needs.
pub(crate) trait Catalog {
    /// Returns the columns of a table or view, in order; `None` if it does not exist.
    fn table(&self, schema: Option<&str>, table: &str) -> Option<Vec<Attribute>>;

    /// Returns the CREATE statement of a table of the main file.
    fn definition(&self, table: &str) -> Option<String>;

    /// Evaluates a constant expression, and returns its value as SQL.
    ///
    /// # Errors
    /// The error of the evaluation.
    fn computed(&self, sql: &str) -> Result<String, Failure>;

    /// True if an object in the file has this name.
    fn is_taken(&self, name: &str) -> bool;

    /// True if these columns of a table are its key, or UNIQUE together.
    fn is_unique(&self, table: &str, columns: &[String]) -> bool;

    /// Returns the table of which an index is a constraint, if it is one, and whether ALTER TABLE
    /// added the constraint.
    fn constrained(&self, index: &str) -> Option<(String, bool)>;

    /// Returns the schemas that CREATE SCHEMA has made.
    fn schemas(&self) -> Vec<String>;

    /// Returns the tables and views of a schema, with its name in front.
    fn inside(&self, schema: &str) -> Vec<String>;

    /// Returns the table whose key has a sequence of this name, and the type of the key.
    fn key_sequence(&self, name: &str) -> Option<(String, Type)>;

    /// Returns the name of the sequence of a table's key.
    fn key_sequence_name(&self, table: &str, column: &str) -> String;

    /// Returns the columns whose default takes numbers from a sequence, each with its table.
    fn users_of_sequence(&self, name: &str) -> Vec<(String, String)>;

    /// Returns the sequences that a table owns, and those columns.
    fn owned_sequences(&self, table: &str) -> Vec<(String, String)>;

    /// Returns the enum of this name.
    fn enum_named(&self, name: &str) -> Option<EnumType> {
        self.definition(name).and_then(|sql| EnumType::read(name, &sql))
    }

    /// Returns the enum with this OID.
    fn enum_of(&self, oid: u32) -> Option<EnumType>;

    /// Returns the columns of tables whose values are of an enum, or arrays of it.
    fn columns_of_enum(&self, of: EnumType) -> Vec<EnumColumn>;

    /// Returns the objects whose CREATE statements have a text, in the order in which they were
    /// made.
    fn with_text(&self, text: &str) -> Vec<SchemaObject>;

    /// Returns the columns of an index.
    fn columns_of(&self, index: &str) -> Vec<String>;

    /// Returns the CREATE statements of the indexes and triggers of a table, and of the views that
    /// read it.
    fn dependents(&self, table: &str) -> Vec<String>;

    /// Returns the views that read a table or view.
    fn readers(&self, name: &str) -> Vec<String>;

    /// Returns the other tables with a foreign key that refers to this one.
    fn referrers(&self, table: &str) -> Vec<String>;
}

/// A column of an item of FROM.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its SQL.
    pub(super) sql: String,
    /// The SQL of the columns that USING has merged into it; empty for a column of a table.
    pub(super) of: Vec<String>,
    pub(super) is: Type,
    pub(super) limit: Option<u32>,
    pub(super) not_null: bool,
    pub(super) key: u32,
    pub(super) writable: bool,
    /// True if USING has merged it with another column: `*` leaves it out, and a plain name does
    /// not find it.
    pub(super) merged: bool,
}

impl Column {
    /// Returns the SQL of the tables' columns that it is made of.
    pub(super) fn parts(&self) -> &[String] {
        if self.of.is_empty() { std::slice::from_ref(&self.sql) } else { &self.of }
    }
}

/// A table, subquery or join in FROM.
#[derive(Clone, Debug)]
pub(super) struct FromItem {
    /// The qualifier of its columns.
    pub(super) alias: String,
    pub(super) columns: Vec<Column>,
    /// True if it is a query that reads itself.
    pub(super) recursive: bool,
    /// True if its columns have other names than those of its table.
    pub(super) renamed: bool,
    /// True while the item on the right of its RIGHT or FULL join is translated, which must not
    /// read it.
    pub(super) hidden: bool,
}

/// The names that one query sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) sources: Vec<FromItem>,
    /// The columns of USING: a plain name finds them before all others.
    pub(super) joined: Vec<Column>,
    pub(super) ctes: Vec<Cte>,
    /// Names of queries of WITH RECURSIVE that come later.
    pub(super) coming: Vec<String>,
    /// Its GROUP BY expressions, in SQL; `None` if it is not grouped.
    pub(super) groups: Option<Vec<String>>,
    /// True if it calls a function over a window.
    pub(super) windowed: bool,
    /// While the list of SELECT is translated: the SQL of arrays of which each element makes a row.
    pub(super) arrays: Option<Vec<String>>,
}

/// A common table expression.
#[derive(Clone, Debug)]
pub(super) struct Cte {
    pub(super) name: String,
    pub(super) columns: Vec<(String, Type)>,
    /// True while its query is being translated: a query that reads it now is its own recursion.
    pub(super) open: bool,
    /// True if a query has read it.
    pub(super) read: bool,
    /// True if it reads columns of queries that enclose its WITH.
    pub(super) outer: bool,
}

impl Cte {
    /// Makes one of this name without columns.
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), columns: Vec::new(), open: false, read: false, outer: false }
    }
}

impl FromItem {
    /// Makes a table, view, CTE or subquery under a name.
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
        Self { alias: alias.to_owned(), columns, recursive: false, renamed: false, hidden: false }
    }

    /// Makes a table of the file under a name.
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

/// The queries that enclose a place in a statement.
#[derive(Default)]
pub(super) struct Scopes {
    /// Their names, those of the innermost query last.
    pub(super) open: Vec<Scope>,
    /// For each column named so far, the number of queries that enclose the query it belongs to.
    pub(super) levels: Vec<usize>,
}

impl Scopes {
    /// Returns the number of queries that enclose the innermost one.
    pub(super) fn depth(&self) -> usize {
        self.open.len().saturating_sub(1)
    }
}

/// A part of the translation that sees names.
pub(super) trait Scoped {
    fn scopes(&mut self) -> &mut Scopes;

    /// Runs `make` for a part that sees the names of one more query.
    fn within<T>(&mut self, scope: Scope, make: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes().open.push(scope);
        let made = make(self);
        self.scopes().open.pop();
        made
    }
}

impl Scope {
    /// Makes a scope in which the columns of a table are plain names.
    pub(super) fn of_table(alias: &str, attributes: &[Attribute]) -> Self {
        let mut source = FromItem::table(alias, attributes);
        source.columns.iter_mut().for_each(|column| column.sql = name(&column.name));
        Self { sources: vec![source], ..Self::default() }
    }

    /// Makes a scope in which the columns of a table have the name of the table in front.
    pub(super) fn of_named(alias: &str, table: &str, attributes: &[Attribute]) -> Self {
        let mut source = FromItem::table(alias, attributes);
        let table = name(table);
        let named = |column: &str| format!("{table}.{}", name(column));
        source.columns.iter_mut().for_each(|column| column.sql = named(&column.name));
        Self { sources: vec![source], ..Self::default() }
    }

    /// Finds the column of this name.
    ///
    /// # Errors
    /// 42702 if there are several; 42P10 if it is one of a hidden item.
    fn column(&self, qualifier: Option<&str>, wanted: &str) -> Result<Option<&Column>, Failure> {
        if qualifier.is_none()
            && let Some(joined) = self.joined.iter().find(|column| column.name == wanted)
        {
            return Ok(Some(joined));
        }
        let sources =
            self.sources.iter().filter(|source| qualifier.is_none_or(|q| source.alias == q));
        let fits =
            |column: &Column| column.name == wanted && (qualifier.is_some() || !column.merged);
        let pairs = sources.flat_map(|source| source.columns.iter().map(move |it| (source, it)));
        let mut found = pairs.filter(|(_, column)| fits(column));
        let first = found.next();
        if found.next().is_some() {
            let message = format!("column reference \"{wanted}\" is ambiguous");
            return Err(Failure::new("42702", message));
        }
        match first {
            Some((source, _)) if source.hidden => Err(not_lateral(&source.alias)),
            first => Ok(first.map(|(_, column)| column)),
        }
    }

    pub(super) fn has_source(&self, qualifier: &str) -> bool {
        self.sources.iter().any(|source| source.alias == qualifier)
    }

    /// Returns the columns of `*`.
    pub(super) fn all(&self) -> Vec<Column> {
        let sources = self.sources.iter().flat_map(|source| source.columns.iter());
        let rest = sources.filter(|column| !column.merged);
        self.joined.iter().chain(rest).cloned().collect()
    }

    /// Returns the columns of `t.*`.
    pub(super) fn all_of(&self, qualifier: &str) -> Option<Vec<Column>> {
        let source = self.sources.iter().find(|source| source.alias == qualifier)?;
        Some(source.columns.clone())
    }

    /// True if a grouped query has one value of a column for each group.
    pub(super) fn is_grouped(&self, column: &Column) -> bool {
        let Some(groups) = &self.groups else { return false };
        let has_one = |sql: &String| groups.contains(sql) || self.is_settled(groups, sql);
        groups.contains(&column.sql) || column.parts().iter().all(has_one)
    }

    /// True if the query is grouped by the key of the column's table, so that each group has one
    /// value of the column (`check_functional_grouping` of the server).
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

/// Returns 42P10: an item of FROM reads another one that it must not see.
fn not_lateral(alias: &str) -> Failure {
    let message = format!("invalid reference to FROM-clause entry for table \"{alias}\"");
    let detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
    Failure::new("42P10", message).detail(detail)
}

const NO_COLUMN: &str =
    "PostgreSQL's system columns (ctid, xmin, tableoid) and row values are not supported";

/// Finds a column in the innermost query that has it. Returns how many queries enclose that query.
///
/// # Errors
/// 42703, 42P01 or 42702, with PostgreSQL's message.
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
            let failure = Failure::new("42703", format!("column \"{wanted}\" does not exist"));
            failure.hint(in_other_case(scopes, wanted))
        }
        Some(qualifier) if known(qualifier) => {
            Failure::new("42703", format!("column {qualifier}.{wanted} does not exist"))
                .hint(in_other_case(scopes, wanted))
        }
        Some(qualifier) => {
            let message = format!("missing FROM-clause entry for table \"{qualifier}\"");
            let hint = "a function or subquery in FROM sees the items before it if it is LATERAL";
            Failure::new("42P01", message).hint(hint)
        }
    })
}

/// Returns the hint for an unknown column: the one whose name differs in case alone, if any.
fn in_other_case(scopes: &[Scope], wanted: &str) -> Cow<'static, str> {
    let sources = scopes.iter().flat_map(|scope| &scope.sources);
    let mut columns = sources.flat_map(|source| &source.columns);
    match columns.find(|column| column.name.eq_ignore_ascii_case(wanted)) {
        Some(column) => format!(
            "Perhaps you meant to reference the column \"{}\": names without quotes are in lower case.",
            column.name
        )
        .into(),
        None => NO_COLUMN.into(),
    }
}

fn qualified(scope: &Scope, column: &Column) -> String {
    let source = scope
        .sources
        .iter()
        .find(|source| source.columns.iter().any(|other| other.sql == column.sql));
    source.map_or(column.name.clone(), |source| format!("{}.{}", source.alias, column.name))
}

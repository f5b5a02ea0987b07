//! Translates INSERT, and the parts that UPDATE and DELETE share with it.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    InsertStmt, Node, RangeVar, ReturningClause, SelectStmt, SetOperation, WithClause,
};

use crate::failure::{Failure, state};
use crate::key_mark::GivenBy;
use crate::types::Type;

use super::assignments::{missing, target_column};
use super::conflict::once;
use super::schema_names::split;
use super::scope::{Attribute, Catalog, Scope, Scoped};
use super::select::{ExpectedColumns, Output};
use super::sequence_calls::takes_numbers;
use super::sets::written_rows;
use super::target_table::{TargetTable, Writer};
use super::targets::Target;
use super::value::{Expr, name};
use super::write_target::{END_OF_ROWS, WriteTarget, WriteVerb};
use super::{NotTranslated, Translated, hints, location};

/// A statement that writes, and the columns that it returns.
pub(super) struct Written {
    pub(super) sql: String,
    pub(super) columns: Vec<Output>,
}

impl Writer<'_, '_> {
    pub(super) fn target_table(&mut self, relation: Option<&RangeVar>) -> Translated<TargetTable> {
        let relation = relation.ok_or_else(hints::unknown)?;
        let (written, attributes) = self.translator.basis.table(relation)?;
        self.translator.basis.no_sequence(&relation.relname, &attributes)?;
        let alias = relation.alias.as_ref().map(|alias| alias.aliasname.clone());
        let table = relation.relname.clone();
        Ok(TargetTable {
            alias: alias
                .unwrap_or_else(|| split(self.translator.basis.catalog, &table).1.to_owned()),
            table,
            written,
            attributes,
        })
    }

    /// Translates INSERT; `or` is the text of SQLite's own form between INSERT and INTO.
    pub(super) fn insert(&mut self, insert: &InsertStmt, or: &str) -> Translated<Written> {
        if insert.r#override() as i32 > 1 {
            return Err(hints::refuse("OVERRIDING").into());
        }
        self.behind_with(insert.with_clause.as_ref(), |this| this.insert_into(insert, or))
    }

    /// Translates the WITH of a statement that writes, then the statement.
    pub(super) fn behind_with(
        &mut self,
        with: Option<&WithClause>,
        make: impl FnOnce(&mut Self) -> Translated<Written>,
    ) -> Translated<Written> {
        let Some(with) = with else { return make(self) };
        self.within(Scope::default(), |this| {
            let words = this.translator.ctes(with)?;
            let Written { sql, columns } = make(this)?;
            // The rows may read the queries of WITH.
            this.target.iter_mut().for_each(|target| target.verb = WriteVerb::Update);
            Ok(Written { sql: format!("{words}{sql}"), columns })
        })
    }

    fn insert_into(&mut self, insert: &InsertStmt, or: &str) -> Translated<Written> {
        let into = self.target_table(insert.relation.as_ref())?;
        let mut columns = Vec::new();
        for node in &insert.cols {
            let found = target_column(self.translator.basis.text, node, &into)?;
            if columns.iter().any(|known: &Attribute| known.name == found.name) {
                let message = format!("column \"{}\" specified more than once", found.name);
                return Err(Failure::new("42701", message).into());
            }
            columns.push(found.clone());
        }
        let listed = !columns.is_empty();
        if !listed {
            columns = into.attributes.clone();
        }
        let select = match insert.select_stmt.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::SelectStmt(select)) => Some(&**select),
            _ => None,
        };
        let source = match select {
            None => {
                columns.clear();
                "DEFAULT VALUES".to_owned()
            }
            Some(select) if is_values(select) => {
                self.insert_rows(select, &into, &mut columns, listed)?
            }
            Some(select) => self.insert_query(select, &into, &mut columns, listed)?,
        };
        for attribute in &into.attributes {
            let given = columns.iter().any(|column| column.name == attribute.name);
            if attribute.given == GivenBy::Key && !given {
                return Err(missing(&into.table, &attribute.name).into());
            }
        }
        let names: Vec<String> = columns.iter().map(|column| name(&column.name)).collect();
        let list =
            if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let several =
            select.is_some_and(|select| !is_values(select) || select.values_lists.len() > 1);
        let source = match &insert.on_conflict_clause {
            Some(conflict) if several => once(conflict, &into, &columns, source)?,
            _ => source,
        };
        let mut sql = format!("INSERT {or}INTO {}{list} ", into.sql());
        let verb = match names.is_empty() {
            true => WriteVerb::Update,
            false => WriteVerb::Insert {
                columns: columns.iter().map(|column| column.name.clone()).collect(),
                head: sql.len(),
            },
        };
        let key = generated_key(self.translator.basis.catalog, insert, select, &into, &columns);
        // The query of its rows, for the details of an error, would take numbers once more.
        let verb = if takes_numbers(&source) { WriteVerb::Update } else { verb };
        *self.target = Some(WriteTarget { table: into.table.clone(), verb, key });
        sql.push_str(&source);
        if insert.on_conflict_clause.is_some() || insert.returning_clause.is_some() {
            sql.push_str(END_OF_ROWS);
        }
        if let Some(conflict) = &insert.on_conflict_clause {
            sql.push_str(&self.conflict(conflict, &into)?);
        }
        let columns = self.returning(insert.returning_clause.as_ref(), &into, &mut sql)?;
        Ok(Written { sql, columns })
    }

    fn insert_rows(
        &mut self,
        select: &SelectStmt,
        into: &TargetTable,
        columns: &mut Vec<Attribute>,
        listed: bool,
    ) -> Translated<String> {
        let mut lists = Vec::new();
        for list in &select.values_lists {
            let Some(NodeEnum::List(list)) = &list.node else {
                return Err(hints::unknown().into());
            };
            lists.push(&list.items);
        }
        let width = lists.first().map_or(0, |list| list.len());
        if lists.iter().any(|list| list.len() != width) {
            let message = "VALUES lists must all be the same length";
            return Err(Failure::new(state::SYNTAX, message).into());
        }
        fitting(width, columns, listed)?;
        let is_default = |node: &Node| matches!(node.node, Some(NodeEnum::SetToDefault(_)));
        // SQLite has no DEFAULT among values: a column that is DEFAULT in every row is left out.
        let default: Vec<bool> =
            (0..width).map(|index| lists.iter().all(|list| is_default(&list[index]))).collect();
        let row = |this: &mut Self, list: &[Node]| {
            let given = list.iter().zip(&default).zip(&*columns).filter(|((_, left), _)| !**left);
            let value = |((node, _), column): ((&Node, _), &Attribute)| match is_default(node) {
                true => {
                    let value = left_to_default(column, &into.table)?;
                    this.translator.typing.budget.take(value.sql.len())?;
                    Ok(value)
                }
                false => this.given_value(node, column, &into.table),
            };
            given.map(value).collect::<Translated<Vec<Expr>>>()
        };
        let rows = self.within(Scope::default(), |this| {
            lists.iter().map(|list| row(this, list)).collect::<Translated<Vec<_>>>()
        })?;
        let mut kept = default.iter();
        columns.retain(|_| !kept.next().copied().unwrap_or(false));
        if !columns.is_empty() {
            return Ok(written_rows(&rows));
        }
        match into.attributes.iter().find(|column| !column.computed) {
            Some(column) if rows.len() > 1 => {
                columns.push(column.clone());
                let value = left_to_default(column, &into.table)?;
                Ok(written_rows(&vec![vec![value]; rows.len()]))
            }
            _ => Ok("DEFAULT VALUES".to_owned()),
        }
    }

    fn insert_query(
        &mut self,
        select: &SelectStmt,
        into: &TargetTable,
        columns: &mut Vec<Attribute>,
        listed: bool,
    ) -> Translated<String> {
        let numbered: Vec<String> =
            (1..=columns.len().max(64)).map(|number| format!("column{number}")).collect();
        let query = self.translator.query(
            select,
            ExpectedColumns { names: &numbered, open: true, ..ExpectedColumns::default() },
        )?;
        fitting(query.columns.len(), columns, listed)?;
        let untyped = query.columns.iter().any(|column| column.is.is_none());
        let query = match untyped {
            false => query,
            true => {
                // A column without a type takes that of the target; other columns keep theirs.
                let types: Vec<Option<Type>> = query
                    .columns
                    .iter()
                    .zip(columns.iter())
                    .map(|(column, attribute)| Some(column.is.unwrap_or(attribute.is)))
                    .collect();
                self.translator.query(
                    select,
                    ExpectedColumns {
                        types: &types,
                        names: &numbered,
                        ..ExpectedColumns::default()
                    },
                )?
            }
        };
        let mut values = Vec::new();
        for ((column, attribute), called) in query.columns.iter().zip(columns.iter()).zip(&numbered)
        {
            let mut value = Expr::typed(name(called), column.is.unwrap_or(Type::Text));
            value.limit = column.limit;
            let stored = self.stored(value, attribute, &into.table)?;
            values.push(format!("{} AS {}", stored.sql, name(called)));
        }
        Ok(format!("SELECT {} FROM ({}) WHERE 1", values.join(", "), query.sql))
    }

    /// Translates a value among VALUES, and converts it to its column's type.
    fn given_value(&mut self, node: &Node, to: &Attribute, table: &str) -> Translated<Expr> {
        if let Some(bound) = self.literals.bind(self.translator.basis, node, to) {
            return Ok(bound);
        }
        let value = self.value_for(node, to.is)?;
        let stored = self.stored(value, to, table);
        stored.map_err(|failure| {
            NotTranslated::from(failure).at(self.translator.basis.text, location(node))
        })
    }

    /// Translates RETURNING, which sees the table alone. SQLite knows the table by its own name
    /// there, not by its alias.
    pub(super) fn returning(
        &mut self,
        returning: Option<&ReturningClause>,
        into: &TargetTable,
        sql: &mut String,
    ) -> Translated<Vec<Output>> {
        let Some(returning) = returning else { return Ok(Vec::new()) };
        if !returning.options.is_empty() {
            return Err(hints::refuse("RETURNING WITH").into());
        }
        let scope = Scope::of_named(&into.alias, &into.table, &into.attributes);
        let place = ExpectedColumns::default();
        let targets =
            self.within(scope, |this| this.translator.targets(&returning.exprs, place))?;
        // A table of this name in a query within would hide it.
        let own = name(&into.table);
        let hides = |target: &Target| {
            let words = target.expr.sql.split([' ', '(', ')', ',']);
            let mut before = "";
            words.filter(|word| !word.is_empty()).any(|word| {
                let found = ["FROM", "JOIN", "AS"].contains(&before) && word.ends_with(&own);
                before = word;
                found
            })
        };
        if into.alias != into.table && targets.iter().any(hides) {
            return Err(hints::refuse("RETURNING of a query").into());
        }
        if targets.iter().any(|target| target.expr.aggregate) {
            return Err(hints::aggregate("RETURNING").into());
        }
        let listed: Vec<String> = targets
            .iter()
            .map(|target| format!("{} AS {}", target.expr.sql, name(&target.name)))
            .collect();
        sql.push_str(&format!(" RETURNING {}", listed.join(", ")));
        let output = |target: Target| Output {
            name: target.name,
            is: target.expr.is(),
            limit: target.expr.limit,
        };
        Ok(targets.into_iter().map(output).collect())
    }
}

/// Returns the value of a column that is DEFAULT in one row, while another row gives it a value.
fn left_to_default(column: &Attribute, table: &str) -> Result<Expr, Failure> {
    match (column.given, &column.default) {
        (GivenBy::Key, _) => Err(missing(table, &column.name)),
        (_, Some(sql)) => Ok(Expr::typed(format!("({sql})"), column.is)),
        // SQLite generates a key in the place of NULL.
        (_, None) => Ok(Expr::typed("NULL", column.is)),
    }
}

/// Returns the sequence of the key that SQLite generates for rows, and whether the last row's key
/// is the last number; none if the statement gives all keys.
fn generated_key(
    catalog: &dyn Catalog,
    insert: &InsertStmt,
    select: Option<&SelectStmt>,
    into: &TargetTable,
    columns: &[Attribute],
) -> Option<(String, bool)> {
    let given = |known: &&Attribute| ![GivenBy::Statement, GivenBy::Key].contains(&known.given);
    let key = into.attributes.iter().find(given)?;
    let listed = columns.iter().any(|column| column.name == key.name);
    let mixed = listed && select.is_some_and(has_default);
    let known = !listed && insert.on_conflict_clause.is_none();
    (mixed || !listed).then(|| (catalog.key_sequence_name(&into.table, &key.name), known))
}

/// True if VALUES have the word DEFAULT.
fn has_default(select: &SelectStmt) -> bool {
    let of_row = |node: &Node| match &node.node {
        Some(NodeEnum::List(list)) => {
            list.items.iter().any(|value| matches!(value.node, Some(NodeEnum::SetToDefault(_))))
        }
        _ => false,
    };
    select.values_lists.iter().any(of_row)
}

fn is_values(select: &SelectStmt) -> bool {
    !select.values_lists.is_empty()
        && select.op() == SetOperation::SetopNone
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.with_clause.is_none()
}

/// Fits the list of columns to the number of values: without a list, the first columns of the
/// table.
fn fitting(width: usize, columns: &mut Vec<Attribute>, listed: bool) -> Result<(), Failure> {
    if width > columns.len() {
        let message = "INSERT has more expressions than target columns";
        return Err(Failure::new(state::SYNTAX, message));
    }
    if listed && width < columns.len() {
        let message = "INSERT has more target columns than expressions";
        return Err(Failure::new(state::SYNTAX, message));
    }
    columns.truncate(width);
    Ok(())
}

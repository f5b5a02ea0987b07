//! Translates VALUES, UNION, INTERSECT and EXCEPT.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Node, SelectStmt, SetOperation};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::coerce::Wanted;
use super::common_types::chosen;
use super::distinct::own_name;
use super::scope::{Scope, Scoped};
use super::select::{ExpectedColumns, Output, Query, output, unique};
use super::targets::Target;
use super::value::{Bare, Expr, name};
use super::{Translated, Translator, hints};

impl Translator<'_> {
    pub(super) fn values(
        &mut self,
        select: &SelectStmt,
        place: ExpectedColumns<'_>,
    ) -> Translated<Query> {
        let before = self.scopes.levels.len();
        let rows = self.rows(&select.values_lists, place)?;
        let depth = self.scopes.depth();
        // In FROM, SQLite's VALUES cannot name a column of an enclosing query.
        let written = match self.scopes.levels[before..].iter().any(|level| *level < depth) {
            true => selected_rows(&rows),
            false => written_rows(&rows),
        };
        let width = rows.first().map_or(0, Vec::len);
        let listed: Vec<String> = (1..=width)
            .map(|number| {
                let called = format!("column{number}");
                format!("{called} AS {}", name(&place.name(number - 1, &called)))
            })
            .collect();
        let columns = (0..width).map(|index| {
            let called = format!("column{}", index + 1);
            let is = rows.iter().find_map(|row| row[index].is());
            Target {
                name: place.name(index, &called),
                expr: Expr::typed(called, is.unwrap_or(Type::Text)),
            }
        });
        let targets: Vec<Target> = columns.collect();
        let mut sql = format!("SELECT {} FROM ({})", listed.join(", "), written);
        if !select.sort_clause.is_empty() {
            sql.push_str(&self.order(&select.sort_clause, &targets)?.0);
        }
        sql.push_str(&self.limits(select)?);
        let mut bare: Vec<Bare> = rows.into_iter().flatten().flat_map(|expr| expr.bare).collect();
        bare.retain(|(at, _)| *at < depth);
        Ok(Query { sql, columns: targets.into_iter().map(output).collect(), bare })
    }

    /// Translates the rows of VALUES. Each column gets one type.
    fn rows(&mut self, lists: &[Node], place: ExpectedColumns<'_>) -> Translated<Vec<Vec<Expr>>> {
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        for list in lists {
            let Some(NodeEnum::List(list)) = &list.node else {
                return Err(hints::unknown().into());
            };
            let row: Vec<Expr> =
                list.items.iter().map(|item| self.expr(item)).collect::<Result<_, _>>()?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                let message = "VALUES lists must all be the same length";
                return Err(Failure::new(state::SYNTAX, message).into());
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        for index in 0..width {
            let column: Vec<Expr> = rows.iter().map(|row| row[index].clone()).collect();
            let column = match place.of(index) {
                Some(is) => column
                    .into_iter()
                    .map(|expr| self.typing.coerce(expr, is, Wanted::Implicit))
                    .collect::<Result<Vec<_>, _>>()?,
                None => self.typing.unified(column, "VALUES")?.0,
            };
            rows.iter_mut().zip(column).for_each(|(row, expr)| row[index] = expr);
        }
        Ok(rows)
    }

    /// Translates UNION, INTERSECT and EXCEPT. Each side becomes a query in parentheses: SQLite
    /// combines them from left to right, PostgreSQL by precedence.
    pub(super) fn combined(
        &mut self,
        select: &SelectStmt,
        place: ExpectedColumns<'_>,
    ) -> Translated<Query> {
        let (left, right) = match (&select.larg, &select.rarg) {
            (Some(left), Some(right)) => (left, right),
            _ => return Err(hints::unknown().into()),
        };
        let word = match (select.op(), select.all) {
            (SetOperation::SetopUnion, false) => "UNION",
            (SetOperation::SetopUnion, true) => "UNION ALL",
            (SetOperation::SetopIntersect, false) => "INTERSECT",
            (SetOperation::SetopExcept, false) => "EXCEPT",
            _ => return Err(hints::refuse("INTERSECT ALL").into()),
        };
        let open = ExpectedColumns { open: true, ..place };
        let first = self.query(left, open)?;
        let second = self.query(right, ExpectedColumns { names: &[], ..open })?;
        if first.columns.len() != second.columns.len() {
            let message =
                format!("each {} query must have the same number of columns", plain(word));
            return Err(Failure::new(state::SYNTAX, message).into());
        }
        let mut types = Vec::new();
        for (index, (left, right)) in first.columns.iter().zip(&second.columns).enumerate() {
            types.push(Some(match (left.is, right.is) {
                (Some(left), Some(right)) => chosen(left, right).ok_or_else(|| {
                    let message = format!(
                        "{} types {} and {} cannot be matched",
                        plain(word),
                        left.name(),
                        right.name()
                    );
                    Failure::new(state::WRONG_TYPE, message)
                })?,
                (Some(is), None) | (None, Some(is)) => is,
                (None, None) => place.of(index).unwrap_or(Type::Text),
            }));
        }
        let differ =
            |query: &Query| query.columns.iter().zip(&types).any(|(column, is)| column.is != *is);
        let first = match differ(&first) {
            true => self.query(left, ExpectedColumns { types: &types, open: false, ..place })?,
            false => first,
        };
        let second = match differ(&second) {
            true => self.query(
                right,
                ExpectedColumns { types: &types, names: &[], open: false, exists: false },
            )?,
            false => second,
        };
        self.joined_queries(select, word, first, second)
    }

    fn joined_queries(
        &mut self,
        select: &SelectStmt,
        word: &str,
        first: Query,
        second: Query,
    ) -> Translated<Query> {
        let nested = |side: &Option<Box<SelectStmt>>| {
            side.as_ref().is_some_and(|side| {
                side.op() != SetOperation::SetopNone
                    || !side.sort_clause.is_empty()
                    || side.limit_count.is_some()
                    || side.limit_offset.is_some()
                    || side.with_clause.is_some()
            })
        };
        let written = |query: &Query, nested: bool| match nested {
            true => wrapped(&query.sql),
            false => query.sql.clone(),
        };
        let left = written(&first, nested(&select.larg));
        let mut sql = format!("{left} {word} {}", written(&second, nested(&select.rarg)));
        let repeated = unique(first.columns.iter().map(|column| column.name.as_str())).is_err();
        let target = |(place, column): (usize, &Output)| {
            let sql = if repeated { own_name(place) } else { name(&column.name) };
            let expr = Expr::typed(sql, column.is.unwrap_or(Type::Text));
            Target { name: column.name.clone(), expr }
        };
        let targets: Vec<Target> = first.columns.iter().enumerate().map(target).collect();
        if word != "UNION ALL"
            && targets.iter().any(|target| {
                matches!(
                    target.expr.is(),
                    Some(Type::Json | Type::Jsonb | Type::Numeric | Type::Bpchar)
                )
            })
        {
            return Err(hints::refuse("numeric").into());
        }
        if !select.sort_clause.is_empty() {
            // SQLite orders combined queries by their columns alone.
            if targets.iter().any(|target| matches!(target.expr.is(), Some(Type::Enum(_)))) {
                sql = if repeated { named_apart(&sql, &targets) } else { wrapped(&sql) };
            }
            let order =
                self.within(Scope::default(), |this| this.order(&select.sort_clause, &targets));
            sql.push_str(&order?.0);
        }
        sql.push_str(&self.limits(select)?);
        let mut bare = first.bare;
        bare.extend(second.bare);
        let mut columns = first.columns;
        columns.iter_mut().for_each(|column| column.limit = None);
        Ok(Query { sql, columns, bare })
    }
}

fn wrapped(sql: &str) -> String {
    format!("SELECT * FROM ({sql})")
}

/// Writes a query around combined queries in which each column has a name of its own.
fn named_apart(sql: &str, targets: &[Target]) -> String {
    const COMBINED: &str = "refrain_combined";
    let own: Vec<String> = (0..targets.len()).map(own_name).collect();
    let shown = |(own, target): (&String, &Target)| format!("{own} AS {}", name(&target.name));
    let shown: Vec<String> = own.iter().zip(targets).map(shown).collect();
    format!(
        "SELECT {} FROM (WITH {COMBINED}({}) AS ({sql}) SELECT * FROM {COMBINED})",
        shown.join(", "),
        own.join(", ")
    )
}

/// Writes rows as VALUES.
pub(super) fn written_rows(rows: &[Vec<Expr>]) -> String {
    let row = |row: &Vec<Expr>| {
        let parts: Vec<&str> = row.iter().map(|expr| expr.sql.as_str()).collect();
        format!("({})", parts.join(", "))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("VALUES {}", rows.join(", "))
}

/// Writes rows as SELECTs, which may name columns of enclosing queries.
fn selected_rows(rows: &[Vec<Expr>]) -> String {
    let row = |row: &Vec<Expr>| {
        let part = |(place, expr): (usize, &Expr)| format!("{} AS column{}", expr.sql, place + 1);
        format!("SELECT {}", row.iter().enumerate().map(part).collect::<Vec<_>>().join(", "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(" UNION ALL ")
}

fn plain(word: &str) -> &str {
    word.split(' ').next().unwrap_or(word)
}

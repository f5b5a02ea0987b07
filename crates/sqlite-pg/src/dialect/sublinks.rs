//! Translates queries within expressions, and comparisons of rows.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    Node, SelectStmt, SetOperation, SubLink, SubLinkType, a_const::Val,
};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::nodes::row;
use super::operators::{COMPARES, is_equated};
use super::select::{ExpectedColumns, Query, settled, value_of};
use super::typing::Typing;
use super::value::{Expr, ExprKind, as_element, name};
use super::{NotTranslated, Translated, Translator, hints, strings};

impl Translator<'_> {
    /// Translates a query within an expression.
    pub(super) fn sublink(&mut self, link: &SubLink) -> Translated<Expr> {
        let Some(NodeEnum::SelectStmt(select)) =
            link.subselect.as_ref().and_then(|node| node.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        let operator = strings(&link.oper_name).pop();
        match link.sub_link_type() {
            SubLinkType::ExistsSublink => {
                let query = self.query(
                    select,
                    ExpectedColumns { exists: true, ..ExpectedColumns::default() },
                )?;
                let made = Expr::typed(format!("EXISTS ({})", query.sql), Type::Bool);
                Ok(Expr { bare: query.bare, ..made }.named("exists"))
            }
            SubLinkType::ExprSublink => {
                let query = self.query(select, ExpectedColumns::default())?;
                let [column] = &query.columns[..] else { return Err(one_column()) };
                let (called, is) = settled(column);
                let sql = match is_one_row(select) {
                    true => format!("({})", query.sql),
                    false => one_row(&query),
                };
                Ok(Expr { bare: query.bare, ..Expr::typed(sql, is) }.named(called))
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let any = link.sub_link_type() == SubLinkType::AnySublink;
                let not = match (any, operator.as_deref()) {
                    (true, None | Some("=")) => false,
                    (false, Some("<>")) => true,
                    _ => return Err(hints::refuse("ANY (query)").into()),
                };
                self.is_in_query(link, select, not)
            }
            SubLinkType::ArraySublink => {
                let query = self.query(select, ExpectedColumns::default())?;
                let [column] = &query.columns[..] else { return Err(one_column()) };
                let (called, of) = settled(column);
                let is = of.array().ok_or_else(|| hints::refuse("ARRAY"))?;
                let called = as_element(&name(&called), of);
                let sql = format!("(SELECT json_group_array({called}) FROM ({}))", query.sql);
                Ok(Expr { bare: query.bare, ..Expr::typed(sql, is) }.named("array"))
            }
            _ => Err(hints::refuse("row").into()),
        }
    }

    fn is_in_query(&mut self, link: &SubLink, select: &SelectStmt, not: bool) -> Translated<Expr> {
        let test = link.testexpr.as_deref().ok_or_else(hints::unknown)?;
        if row(test).is_some() {
            return self.row_is_in_query(link, select, not);
        }
        let left = self.expr(test)?;
        let query =
            self.query(select, ExpectedColumns { open: true, ..ExpectedColumns::default() })?;
        let [column] = &query.columns[..] else { return Err(one_column()) };
        let right = column.is.map_or(ExprKind::Null, ExprKind::Typed);
        let (left, right, is) = self.typing.together(left, Expr::of("", right), "=")?;
        if matches!(is, Type::Bpchar | Type::Numeric | Type::Json | Type::Jsonb)
            || !right.sql.is_empty() && right.sql != "NULL"
        {
            return Err(hints::refuse("IN (query) of another type").into());
        }
        let query = match column.is {
            Some(_) => query,
            None => self.query(
                select,
                ExpectedColumns { types: &[Some(is)], ..ExpectedColumns::default() },
            )?,
        };
        let word = if not { "NOT IN" } else { "IN" };
        let mut made =
            Expr::made(format!("({} {word} ({}))", left.sql, query.sql), Type::Bool, &[&left]);
        made.bare.extend(query.bare);
        Ok(made)
    }

    /// Translates the parts of a row.
    fn row_parts(&mut self, node: &Node) -> Translated<Vec<Expr>> {
        let parts = row(node).ok_or_else(|| hints::refuse("row"))?;
        if parts.is_empty() {
            return Err(hints::refuse("row").into());
        }
        parts.iter().map(|part| self.expr(part)).collect()
    }

    /// Translates a comparison of two rows (`make_row_comparison_op` of the server).
    pub(super) fn compared_rows(
        &mut self,
        operator: &str,
        left: &Node,
        right: &Node,
    ) -> Translated<Expr> {
        if !COMPARES.contains(&operator) {
            return Err(hints::refuse("row").into());
        }
        let (left, right) = (self.row_parts(left)?, self.row_parts(right)?);
        same_length(left.len(), right.len())?;
        let made = self.typing.compared_parts(operator, &left, &right)?;
        // A part is written several times.
        match made.sql.contains("refrain_random") {
            true => Err(hints::refuse("row").into()),
            false => Ok(made),
        }
    }

    /// Translates IN with a list of rows.
    pub(super) fn row_is_in(&mut self, left: &Node, items: &[Node], not: bool) -> Translated<Expr> {
        let left = self.row_parts(left)?;
        let mut all = Vec::new();
        for item in items {
            let right = self.row_parts(item)?;
            same_length(left.len(), right.len())?;
            left.iter().try_for_each(|part| self.typing.budget.copy(part))?;
            all.push(self.typing.compared_parts("=", &left, &right)?);
        }
        let parts: Vec<&str> = all.iter().map(|expr| expr.sql.as_str()).collect();
        let (not, parts) = (if not { "NOT " } else { "" }, parts.join(" OR "));
        Ok(Expr::made(format!("({not}({parts}))"), Type::Bool, &all.iter().collect::<Vec<_>>()))
    }

    /// Translates IN of a row with a query.
    pub(super) fn row_is_in_query(
        &mut self,
        link: &SubLink,
        select: &SelectStmt,
        not: bool,
    ) -> Translated<Expr> {
        let test = link.testexpr.as_deref().ok_or_else(hints::unknown)?;
        let left = self.row_parts(test)?;
        let query =
            self.query(select, ExpectedColumns { open: true, ..ExpectedColumns::default() })?;
        let columns = query.columns.len();
        if columns != left.len() {
            let word = if columns < left.len() { "few" } else { "many" };
            return Err(
                Failure::new(state::SYNTAX, format!("subquery has too {word} columns")).into()
            );
        }
        let (mut made, mut types) = (Vec::new(), Vec::new());
        for (left, column) in left.into_iter().zip(&query.columns) {
            let right = Expr::of("", column.is.map_or(ExprKind::Null, ExprKind::Typed));
            let (left, right, is) = self.typing.together(left, right, "=")?;
            // SQLite compares what the query gives.
            if is_equated(&left).is_err() || !right.sql.is_empty() && right.sql != "NULL" {
                return Err(hints::refuse("IN (query) of another type").into());
            }
            made.push(left);
            types.push(Some(is));
        }
        let query = match query.columns.iter().all(|column| column.is.is_some()) {
            true => query,
            false => {
                self.query(select, ExpectedColumns { types: &types, ..ExpectedColumns::default() })?
            }
        };
        let parts: Vec<&str> = made.iter().map(|expr| expr.sql.as_str()).collect();
        let word = if not { "NOT IN" } else { "IN" };
        let sql = format!("(({}) {word} ({}))", parts.join(", "), query.sql);
        let mut made = Expr::made(sql, Type::Bool, &made.iter().collect::<Vec<_>>());
        made.bare.extend(query.bare);
        Ok(made)
    }
}

impl Typing<'_> {
    fn compared_parts(
        &mut self,
        operator: &str,
        left: &[Expr],
        right: &[Expr],
    ) -> Result<Expr, Failure> {
        let mut all = Vec::new();
        let mut pairs = left.iter().zip(right).rev();
        let (last_left, last_right) = pairs.next().ok_or_else(|| hints::refuse("row"))?;
        let last = self.compare(operator, last_left.clone(), last_right.clone())?;
        let mut sql = last.sql.clone();
        all.push(last);
        for (left, right) in pairs {
            let mut one = |operator: &str| self.compare(operator, left.clone(), right.clone());
            sql = match operator {
                "=" | "<>" => {
                    let first = one(operator)?;
                    let word = if operator == "=" { "AND" } else { "OR" };
                    let sql = format!("({} {word} {sql})", first.sql);
                    all.push(first);
                    sql
                }
                _ => {
                    // The first of the three lets SQLite use an index.
                    let strict = operator.trim_end_matches('=');
                    let (weak, strict) = (one(&format!("{strict}="))?, one(strict)?);
                    let equal = one("=")?;
                    let sql =
                        format!("({} AND ({} OR {} AND {sql}))", weak.sql, strict.sql, equal.sql);
                    all.extend([weak, strict, equal]);
                    sql
                }
            };
        }
        Ok(Expr::made(sql, Type::Bool, &all.iter().collect::<Vec<_>>()))
    }
}

/// Returns 42601 for rows of different lengths.
fn same_length(left: usize, right: usize) -> Result<(), Failure> {
    match left == right {
        true => Ok(()),
        false => Err(Failure::new(state::SYNTAX, "unequal number of entries in row expressions")),
    }
}

fn one_column() -> NotTranslated {
    Failure::new(state::SYNTAX, "subquery must return only one column").into()
}

/// True if a query has one row at most, whatever rows the tables have.
fn is_one_row(select: &SelectStmt) -> bool {
    let no_tables = select.from_clause.is_empty() && select.values_lists.is_empty();
    let only = select.op() == SetOperation::SetopNone && select.group_clause.is_empty();
    let first = |node: &Node| value_of(node).is_some_and(super::is_plain_aggregate);
    let aggregate = select.target_list.first().is_some_and(first);
    let one = |node: &Node| {
        matches!(&node.node, Some(NodeEnum::AConst(constant))
        if matches!(&constant.val, Some(Val::Ival(number)) if number.ival <= 1))
    };
    only && (no_tables || aggregate) || select.limit_count.as_deref().is_some_and(one)
}

/// Writes a query that may have one row: a second row is an error.
fn one_row(query: &Query) -> String {
    let column = query.columns.first().map(|column| name(&column.name)).unwrap_or_default();
    format!(
        "(SELECT CASE count(*) WHEN 0 THEN NULL WHEN 1 THEN max({column}) ELSE refrain_one() END \
         FROM (SELECT {column} FROM ({}) LIMIT 2))",
        query.sql
    )
}

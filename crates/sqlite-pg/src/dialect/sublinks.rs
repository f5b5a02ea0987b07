//! Translates queries within expressions.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    Node, SelectStmt, SetOperation, SubLink, SubLinkType, a_const::Val,
};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::select::{ExpectedColumns, Query, settled, value_of};
use super::value::{Expr, ExprKind, name};
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
                self.within_query(link, select, not)
            }
            SubLinkType::ArraySublink => {
                let query = self.query(select, ExpectedColumns::default())?;
                let [column] = &query.columns[..] else { return Err(one_column()) };
                let (called, of) = settled(column);
                let is = of.array().ok_or_else(|| hints::refuse("ARRAY"))?;
                let called = name(&called);
                let sql = format!("(SELECT json_group_array({called}) FROM ({}))", query.sql);
                Ok(Expr { bare: query.bare, ..Expr::typed(sql, is) }.named("array"))
            }
            _ => Err(hints::refuse("row").into()),
        }
    }

    fn within_query(&mut self, link: &SubLink, select: &SelectStmt, not: bool) -> Translated<Expr> {
        let test = link.testexpr.as_deref().ok_or_else(hints::unknown)?;
        if matches!(test.node, Some(NodeEnum::RowExpr(_))) {
            return Err(hints::refuse("row").into());
        }
        let left = self.expr(test)?;
        let query =
            self.query(select, ExpectedColumns { open: true, ..ExpectedColumns::default() })?;
        let [column] = &query.columns[..] else { return Err(one_column()) };
        let right = column.is.map_or(ExprKind::Null, ExprKind::Typed);
        let (left, right, is) = self.together(left, Expr::of("", right), "=")?;
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

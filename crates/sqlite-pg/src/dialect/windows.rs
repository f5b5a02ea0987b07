//! Windows and orders: OVER, ORDER BY, and functions that need OVER.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{Node, SelectStmt, SortByDir, SortByNulls, WindowDef};

use crate::failure::Failure;
use crate::types::Type;
use crate::types::Type::{Float8, Int4, Int8, Text};

use super::catalog_functions::FunctionRow;
use super::coerce::Wanted;
use super::distinct::{DistinctOn, begins_with};
use super::operators::is_equated;
use super::targets::{Sorted, Target, sorted_target};
use super::value::{Expr, ExprKind, name, no_place};
use super::{Translated, Translator, hints};

/// Functions that need OVER.
const WINDOWED: &[FunctionRow] = &[
    ("row_number", &[], Int8, "row_number()"),
    ("rank", &[], Int8, "rank()"),
    ("dense_rank", &[], Int8, "dense_rank()"),
    ("percent_rank", &[], Float8, "percent_rank()"),
    ("cume_dist", &[], Float8, "cume_dist()"),
    ("ntile", &[Int4], Int4, "ntile($1)"),
];

/// Functions that need OVER and return the type of their first argument, with the least and the
/// greatest number of arguments.
const WINDOWED_ANY: &[(&str, usize, usize)] = &[
    ("lag", 1, 3),
    ("lead", 1, 3),
    ("first_value", 1, 1),
    ("last_value", 1, 1),
    ("nth_value", 2, 2),
];

impl Translator<'_> {
    pub(super) fn windowed(
        &mut self,
        function: &str,
        arguments: Vec<Expr>,
        over: &WindowDef,
    ) -> Translated<Expr> {
        let (tail, parts) = self.over(over)?;
        let any = WINDOWED_ANY.iter().find(|row| row.0 == function);
        let made = match any {
            Some((_, least, most)) if (*least..=*most).contains(&arguments.len()) => {
                self.of_first(function, arguments)?
            }
            _ => self.typing.resolved(WINDOWED, function, arguments)?,
        };
        let sql = format!("{}{tail}", made.sql);
        Ok(Expr { sql, ..made }.with(&parts.iter().collect::<Vec<_>>()).named(function))
    }

    fn of_first(&mut self, function: &str, arguments: Vec<Expr>) -> Result<Expr, Failure> {
        let mut made = Vec::new();
        let mut is = Text;
        for (place, argument) in arguments.into_iter().enumerate() {
            let argument = match place {
                0 => self.typing.settle(argument)?,
                1 => self.typing.coerce(argument, Int4, Wanted::Implicit)?,
                _ => self.typing.coerce(argument, is, Wanted::Implicit)?,
            };
            if place == 0 {
                is = argument.is().unwrap_or(Text);
            }
            made.push(argument);
        }
        let parts: Vec<&str> = made.iter().map(|expr| expr.sql.as_str()).collect();
        let sql = format!("{function}({})", parts.join(", "));
        Ok(Expr::made(sql, is, &made.iter().collect::<Vec<_>>()))
    }

    /// Translates OVER, with a blank in front.
    pub(super) fn over(&mut self, over: &WindowDef) -> Translated<(String, Vec<Expr>)> {
        self.scopes.open.last_mut().into_iter().for_each(|scope| scope.windowed = true);
        if !over.name.is_empty() {
            return Ok((format!(" OVER {}", name(&over.name)), Vec::new()));
        }
        let (inside, parts) = self.window(over)?;
        Ok((format!(" OVER ({inside})"), parts))
    }

    /// Translates a window, without parentheses.
    pub(super) fn window(&mut self, over: &WindowDef) -> Translated<(String, Vec<Expr>)> {
        let mut sql = String::new();
        let mut parts = Vec::new();
        if !over.refname.is_empty() {
            sql.push_str(&name(&over.refname));
        }
        if !over.partition_clause.is_empty() {
            let mut by = Vec::new();
            for node in &over.partition_clause {
                let value = self.expr(node)?;
                is_equated(&value)?;
                by.push(value.sql.clone());
                parts.push(value);
            }
            sql.push_str(&format!(" PARTITION BY {}", by.join(", ")));
        }
        if !over.order_clause.is_empty() {
            let (order, more) = self.order(&over.order_clause, &[])?;
            sql.push_str(&order);
            parts.extend(more);
        }
        let (frame, more) = self.frame(over)?;
        sql.push_str(&frame);
        parts.extend(more);
        Ok((sql.trim_start().to_owned(), parts))
    }

    /// Translates the frame of a window (`FRAMEOPTION_*` in the server's `parsenodes.h`).
    fn frame(&mut self, over: &WindowDef) -> Translated<(String, Vec<Expr>)> {
        const BOUNDS: &[(i32, i32, &str)] = &[
            (0x20, 0x40, "UNBOUNDED PRECEDING"),
            (0x80, 0x100, "UNBOUNDED FOLLOWING"),
            (0x200, 0x400, "CURRENT ROW"),
            (0x800, 0x1000, "PRECEDING"),
            (0x2000, 0x4000, "FOLLOWING"),
        ];
        let options = over.frame_options;
        if options & 0x1 == 0 {
            return Ok((String::new(), Vec::new()));
        }
        let is_range = options & 0x2 != 0;
        let unit = match options {
            options if options & 0x4 != 0 => "ROWS",
            options if options & 0x8 != 0 => "GROUPS",
            _ => "RANGE",
        };
        if unit == "GROUPS" && over.order_clause.is_empty() && over.refname.is_empty() {
            let message = "GROUPS mode requires an ORDER BY clause";
            return Err(Failure::new("42P20", message).into());
        }
        let mut parts = Vec::new();
        let mut words = Vec::new();
        for (end, offset) in [(false, &over.start_offset), (true, &over.end_offset)] {
            let bound = BOUNDS
                .iter()
                .find(|(start, stop, _)| options & if end { *stop } else { *start } != 0);
            let Some((.., word)) = bound else { continue };
            let Some(node) = offset else {
                words.push((*word).to_owned());
                continue;
            };
            if is_range {
                return Err(hints::refuse("RANGE with an offset").into());
            }
            let value = self.expr(node)?;
            if !value.bare.is_empty() {
                let message = format!("argument of {unit} must not contain variables");
                return Err(Failure::new("42P10", message).into());
            }
            let value = self.typing.coerce(value, Int8, Wanted::Implicit)?;
            if value.sql.contains("SELECT") {
                return Err(hints::refuse("a frame's offset").into());
            }
            words.push(format!("{} {word}", value.sql));
            parts.push(value);
        }
        let exclude = match options {
            options if options & 0x8000 != 0 => " EXCLUDE CURRENT ROW",
            options if options & 0x10000 != 0 => " EXCLUDE GROUP",
            options if options & 0x20000 != 0 => " EXCLUDE TIES",
            _ => "",
        };
        let words = match &words[..] {
            [start, end] if options & 0x10 != 0 => format!("BETWEEN {start} AND {end}"),
            [start, ..] => start.clone(),
            [] => "UNBOUNDED PRECEDING".to_owned(),
        };
        Ok((format!(" {unit} {words}{exclude}"), parts))
    }

    /// Translates ORDER BY, with a blank in front. A name or a number may refer to one of
    /// `targets`.
    pub(super) fn order(
        &mut self,
        nodes: &[Node],
        targets: &[Target],
    ) -> Translated<(String, Vec<Expr>)> {
        let (mut words, mut parts) = (Vec::new(), Vec::new());
        for mut sorted in self.sorted(nodes, targets)? {
            match sorted.target.filter(|_| !sorted.is_by_place()) {
                Some(place) => sorted.value.sql = (place + 1).to_string(),
                None => sorted.value.sql = no_place(&sorted.value.sql),
            }
            words.push(format!("{}{}", sorted.by(&sorted.value.sql), sorted.tail));
            parts.push(sorted.value);
        }
        Ok((format!(" ORDER BY {}", words.join(", ")), parts))
    }

    /// Translates DISTINCT ON with the ORDER BY of the query; none if there is none.
    pub(super) fn distinct_on(
        &mut self,
        select: &SelectStmt,
        targets: &[Target],
    ) -> Translated<Option<DistinctOn>> {
        let nodes: Vec<&Node> =
            select.distinct_clause.iter().filter(|node| node.node.is_some()).collect();
        if nodes.is_empty() {
            return Ok(None);
        }
        if targets.is_empty() {
            return Err(hints::refuse("SELECT without columns").into());
        }
        let mut by: Vec<Expr> = Vec::new();
        for node in nodes {
            let value = match sorted_target(node, targets)? {
                Some(place) => {
                    self.typing.budget.copy(&targets[place].expr)?;
                    targets[place].expr.clone()
                }
                None => {
                    let value = self.expr(node)?;
                    self.typing.settle(value)?
                }
            };
            is_equated(&value)?;
            by.push(value);
        }
        let mut order: Vec<Sorted> = Vec::new();
        for sorted in self.sorted(&select.sort_clause, targets)? {
            // A value that the order has already orders nothing more.
            if !order.iter().any(|known| known.value.sql == sorted.value.sql) {
                order.push(sorted);
            }
        }
        begins_with(&by, &order)?;
        Ok(Some(DistinctOn { by, order }))
    }

    /// Translates the values of an ORDER BY.
    pub(super) fn sorted(&mut self, nodes: &[Node], targets: &[Target]) -> Translated<Vec<Sorted>> {
        let mut all = Vec::new();
        for node in nodes {
            let Some(NodeEnum::SortBy(by)) = &node.node else {
                return Err(hints::unknown().into());
            };
            if by.sortby_dir() == SortByDir::SortbyUsing {
                return Err(hints::refuse("ORDER BY … USING").into());
            }
            let inner = by.node.as_deref().ok_or_else(hints::unknown)?;
            let target = sorted_target(inner, targets)?;
            let value = match target {
                Some(place) => {
                    self.typing.budget.copy(&targets[place].expr)?;
                    targets[place].expr.clone()
                }
                None => {
                    let value = self.expr(inner)?;
                    self.typing.settle(value)?
                }
            };
            is_ordered(&value)?;
            let down = by.sortby_dir() == SortByDir::SortbyDesc;
            let first = match by.sortby_nulls() {
                SortByNulls::SortbyNullsFirst => true,
                SortByNulls::SortbyNullsLast => false,
                _ => down,
            };
            // In SQLite NULLs are smaller than all other values, in PostgreSQL they are larger.
            let nulls = match (value.not_null, down, first) {
                (true, ..) | (_, false, true) | (_, true, false) => "",
                (_, _, true) => " NULLS FIRST",
                (_, _, false) => " NULLS LAST",
            };
            let tail = format!("{}{nulls}", if down { " DESC" } else { "" });
            all.push(Sorted { value, target, tail });
        }
        Ok(all)
    }
}

/// Checks that SQLite orders values as PostgreSQL does.
fn is_ordered(value: &Expr) -> Result<(), Failure> {
    match value.is() {
        Some(Type::Json) => {
            let message = "could not identify an ordering operator for type json";
            Err(Failure::new("42883", message))
        }
        Some(is) if is.element().is_some() => Err(hints::refuse("order of arrays")),
        Some(Type::Jsonb | Type::Numeric)
            if !matches!(value.kind, ExprKind::Number(_)) && !value.whole =>
        {
            Err(hints::refuse("numeric"))
        }
        Some(Type::Interval) => Err(hints::refuse("interval")),
        _ => Ok(()),
    }
}

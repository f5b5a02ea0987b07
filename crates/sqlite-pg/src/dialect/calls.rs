//! Calls of functions and aggregates.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{FuncCall, Node};

use crate::catalog;
use crate::failure::Failure;
use crate::types::Type;
use crate::types::Type::{Bool, Bytea, Date, Int8, Text, Timestamp, Timestamptz, Uuid};

use super::catalog_functions::CATALOG_FUNCTIONS;
use super::coerce::Wanted;
use super::function_tables::{AGGREGATES, FUNCTIONS};
use super::nodes::names;
use super::operators::is_equated;
use super::resolution::no_function;
use super::sequence_calls::{is_of_sequences, uncast};
use super::value::{Expr, ExprKind, name};
use super::{NotTranslated, Translated, Translator, hints};

/// Units of `extract` whose value has a fraction.
const FRACTIONS: &[&str] =
    &["milliseconds", "millisecond", "ms", "second", "seconds", "sec", "s", "epoch"];

/// SQLite's text for parts of a call: DISTINCT, ORDER BY in the argument list, FILTER, OVER.
#[derive(Default)]
pub(super) struct Around {
    distinct: bool,
    order: String,
    tail: String,
    parts: Vec<Expr>,
}

/// Refuses calls of functions of other schemas, and of arguments by name.
fn plain_call(it: &FuncCall, called: &[String]) -> Result<(), Failure> {
    let foreign = called.len() > 1 && called[0] != "pg_catalog";
    let is_named = |arg: &Node| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_)));
    if foreign || it.func_variadic || it.agg_within_group || it.args.iter().any(is_named) {
        return Err(hints::refuse("such a call"));
    }
    Ok(())
}

impl Translator<'_> {
    pub(super) fn call(&mut self, it: &FuncCall) -> Translated<Expr> {
        let called = names(&it.funcname);
        let Some(function) = called.last().cloned() else { return Err(hints::unknown().into()) };
        if super::SQLITE_FUNCTIONS.contains(&function.as_str()) && called.len() == 1 {
            return Err(NotTranslated::Sqlite);
        }
        plain_call(it, &called)?;
        if it.over.is_none() && is_of_sequences(&function, it.args.len()) {
            return self.of_sequence(it, function);
        }
        if aggregates(&function) {
            return self.aggregate(it, &function);
        }
        let mut arguments = Vec::new();
        for argument in &it.args {
            arguments.push(self.expr(argument)?);
        }
        let by_pattern = |expr: &Expr| expr.is().is_none_or(|is| !is.is_integer());
        if matches!(&*function, "substring" | "substr") && arguments.iter().skip(1).any(by_pattern)
        {
            let parameters = |expr: &Expr| matches!(expr.kind, ExprKind::Parameter(_));
            if !arguments.iter().skip(1).all(parameters) {
                return Err(hints::refuse("regular expression").into());
            }
        }
        if let Some(over) = &it.over {
            return self.windowed(&function, arguments, over);
        }
        if it.agg_distinct || it.agg_filter.is_some() || !it.agg_order.is_empty() || it.agg_star {
            let message = format!("{function} is not an aggregate function");
            return Err(Failure::new("42809", message).hint(hints::function(&function)).into());
        }
        if let Some(made) = self.of_any(&function, &arguments)? {
            return Ok(made.named(function));
        }
        if let Some(made) = self.of_array(&function, &arguments)? {
            return Ok(made.named(function));
        }
        if let Some(made) = self.rows_of_array(&function, &arguments)? {
            return Ok(made);
        }
        let of_catalog = CATALOG_FUNCTIONS.iter().filter(|row| row.0 == function);
        let used: Vec<_> = of_catalog.clone().flat_map(|row| catalog::named_in(row.3)).collect();
        if of_catalog.count() > 0 {
            self.relations.extend(used);
            let made = self.resolved(CATALOG_FUNCTIONS, &function, arguments)?;
            return Ok(made.named(function));
        }
        if function == "date"
            && matches!(arguments[..], [ref only] if only.is().is_none() || only.is() == Some(Date))
        {
            let only = arguments.remove(0);
            return Ok(self.coerce(only, Date, Wanted::Explicit)?.named(function));
        }
        let whole = function == "extract" && is_whole(&arguments);
        let made = self.resolved(FUNCTIONS, &function, arguments)?;
        Ok(Expr { whole, ..made.named(function) })
    }

    /// Translates a call of a function of sequences.
    fn of_sequence(&mut self, it: &FuncCall, function: String) -> Translated<Expr> {
        let Some((first, rest)) = it.args.split_first() else {
            return Ok(Expr::typed("refrain_lastval()", Int8).named(function));
        };
        let first = self.expr(uncast(first))?;
        let sequence = self.sequence_named(&first)?;
        if function == "currval" {
            return Ok(sequence.current().named(function));
        }
        self.locks.get_or_insert(name(sequence.table()));
        let mut arguments = Vec::new();
        for (node, is) in rest.iter().zip([Int8, Bool]) {
            let value = self.expr(node)?;
            arguments.push(self.coerce(value, is, Wanted::Implicit)?);
        }
        Ok(sequence.call(&function, arguments).named(function))
    }

    /// Translates functions that take any type.
    fn of_any(&mut self, function: &str, arguments: &[Expr]) -> Result<Option<Expr>, Failure> {
        match function {
            "json_build_object" | "jsonb_build_object" => {
                self.built_object(function, arguments).map(Some)
            }
            "concat" | "concat_ws" => {
                let mut texts = Vec::new();
                for argument in arguments {
                    let argument = match argument.is() {
                        Some(Bool) => {
                            let sql = format!(
                                "CASE {} WHEN 1 THEN 't' WHEN 0 THEN 'f' END",
                                argument.sql
                            );
                            argument.clone().rewritten(sql, Text)
                        }
                        _ => self.coerce(argument.clone(), Text, Wanted::Assignment)?,
                    };
                    texts.push(argument);
                }
                let parts: Vec<&str> = texts.iter().map(|text| text.sql.as_str()).collect();
                let sql = format!("{function}({})", parts.join(", "));
                Ok(Some(Expr::made(sql, Text, &texts.iter().collect::<Vec<_>>())))
            }
            "timezone" => self.at_time_zone(arguments).map(Some),
            _ => Ok(None),
        }
    }

    /// Translates AT TIME ZONE 'UTC'.
    fn at_time_zone(&mut self, arguments: &[Expr]) -> Result<Expr, Failure> {
        let [zone, moment] = arguments else { return Err(no_function("timezone", arguments)) };
        let ExprKind::Literal(named) = &zone.kind else {
            return Err(hints::refuse("AT TIME ZONE"));
        };
        if !["utc", "gmt", "etc/utc", "z"].contains(&named.to_ascii_lowercase().as_str()) {
            return Err(hints::refuse("AT TIME ZONE"));
        }
        match moment.is() {
            Some(Timestamp) => {
                Ok(Expr::made(format!("({} || '+00')", moment.sql), Timestamptz, &[moment]))
            }
            Some(Timestamptz) => {
                let sql = format!("replace({}, '+00', '')", moment.sql);
                Ok(Expr::made(sql, Timestamp, &[moment]))
            }
            Some(Date) => {
                let moment = self.coerce(moment.clone(), Timestamptz, Wanted::Implicit)?;
                self.at_time_zone(&[zone.clone(), moment])
            }
            _ => Err(hints::refuse("AT TIME ZONE")),
        }
    }

    /// Translates `json_build_object` of scalars.
    fn built_object(&mut self, function: &str, arguments: &[Expr]) -> Result<Expr, Failure> {
        if function != "json_build_object" || !arguments.len().is_multiple_of(2) {
            return Err(hints::refuse("JSON operator"));
        }
        let (mut parts, mut all) = (Vec::new(), Vec::new());
        for (place, argument) in arguments.iter().enumerate() {
            let value = self.settle(argument.clone())?;
            let sql = &value.sql;
            let json = match value.is() {
                _ if place % 2 == 0 && !value.is().is_some_and(Type::is_text) => {
                    return Err(hints::refuse("JSON operator"));
                }
                Some(Bool) => {
                    format!("CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END")
                }
                Some(is) if is.is_integer() || is.is_text() => format!("json_quote({sql})"),
                Some(Type::Json) => format!("coalesce({sql}, 'null')"),
                _ => return Err(hints::refuse("JSON operator")),
            };
            let between = match place {
                0 => "'{'",
                place if place % 2 == 0 => "', '",
                _ => "' : '",
            };
            parts.push(format!("{between} || {json}"));
            all.push(value);
        }
        let sql = match &parts[..] {
            [] => "'{}'".to_owned(),
            parts => format!("({} || '}}')", parts.join(" || ")),
        };
        Ok(Expr::made(sql, Type::Json, &all.iter().collect::<Vec<_>>()))
    }

    fn aggregate(&mut self, it: &FuncCall, function: &str) -> Translated<Expr> {
        let before = self.levels.len();
        let made = self.aggregated(it, function)?;
        // The aggregate belongs to the innermost query whose columns it takes
        // (`check_agg_arguments` of the server).
        let depth = self.depth();
        let level = self.levels[before..].iter().filter(|level| **level <= depth).max();
        if it.over.is_none() && level.is_some_and(|level| *level < depth) {
            return Err(hints::refuse("an aggregate of a query around").into());
        }
        Ok(made)
    }

    fn aggregated(&mut self, it: &FuncCall, function: &str) -> Translated<Expr> {
        let mut arguments = Vec::new();
        for argument in &it.args {
            arguments.push(self.expr(argument)?);
        }
        if it.over.is_none() && arguments.iter().any(|argument| argument.aggregate) {
            return Err(Failure::new("42803", "aggregate function calls cannot be nested").into());
        }
        let around = self.around(it)?;
        if around.distinct {
            arguments.iter().try_for_each(is_equated)?;
        }
        let inside = |sql: &str| {
            format!("{}{sql}{}", if around.distinct { "DISTINCT " } else { "" }, around.order)
        };
        let mut made = match (function, &arguments[..]) {
            ("count", []) if it.agg_star => Expr::made("count(*)", Int8, &[]),
            ("count", [only]) => {
                let sql = format!("count({})", inside(&only.sql));
                Expr::made(sql, Int8, &[only])
            }
            (extreme, [only]) if is_extreme(extreme) => {
                let only = self.settle(only.clone())?;
                let is = only.is().unwrap_or(Text);
                let array = is.element().is_some();
                if array || matches!(is, Bool | Uuid | Type::Json | Type::Jsonb | Bytea) {
                    return Err(no_function(function, &[only]).into());
                }
                if is == Type::Numeric {
                    return Err(hints::refuse("numeric").into());
                }
                Expr::made(format!("{function}({})", inside(&only.sql)), is, &[&only])
            }
            ("avg", [only]) if only.is().is_some_and(Type::is_integer) => {
                let value = inside(&only.sql);
                let tail = &around.tail;
                let sql = format!("refrain_ratio(sum({value}){tail}, count({value}){tail})");
                let mut made = Expr::made(sql, Type::Numeric, &[only]);
                made = made.with(&around.parts.iter().collect::<Vec<_>>());
                return Ok(self.is_aggregate(made, it).named(function));
            }
            ("array_agg", [only]) => {
                let only = self.settle(only.clone())?;
                let made = array_of_rows(&only, &inside(&only.sql), &around)?;
                return Ok(self.is_aggregate(made, it).named(function));
            }
            ("sum", [only]) if only.is() == Some(Type::Float4) => {
                return Err(hints::refuse("sum of real").into());
            }
            _ => {
                if around.distinct && function == "string_agg" {
                    return Err(hints::refuse("string_agg (DISTINCT …)").into());
                }
                let made = self.resolved(AGGREGATES, function, arguments.clone())?;
                if around.distinct || !around.order.is_empty() {
                    let sql = made.sql.clone();
                    let (head, rest) = sql.split_once('(').unwrap_or((&sql, ")"));
                    let rest = rest.strip_suffix(')').unwrap_or(rest);
                    Expr { sql: format!("{head}({})", inside(rest)), ..made }
                } else {
                    made
                }
            }
        };
        made.sql.push_str(&around.tail);
        made = made.with(&around.parts.iter().collect::<Vec<_>>());
        Ok(self.is_aggregate(made, it).named(function))
    }

    /// Marks a call as an aggregate, whose arguments need no GROUP BY. With OVER it is none.
    fn is_aggregate(&self, mut made: Expr, it: &FuncCall) -> Expr {
        if it.over.is_none() {
            let depth = self.scopes.len().saturating_sub(1);
            made.bare.retain(|(at, _)| *at < depth);
            made.aggregate = true;
        }
        made
    }

    fn around(&mut self, it: &FuncCall) -> Translated<Around> {
        let mut around = Around { distinct: it.agg_distinct, ..Around::default() };
        if !it.agg_order.is_empty() {
            let (order, parts) = self.order(&it.agg_order, &[])?;
            around.order = order;
            around.parts.extend(parts);
        }
        if let Some(filter) = &it.agg_filter {
            let filter = self.condition(filter, "FILTER")?;
            if filter.aggregate {
                return Err(hints::aggregate("FILTER").into());
            }
            around.tail.push_str(&format!(" FILTER (WHERE {})", filter.sql));
            around.parts.push(filter);
        }
        if let Some(over) = &it.over {
            if it.agg_distinct {
                return Err(hints::refuse("DISTINCT in a window function").into());
            }
            let (over, parts) = self.over(over)?;
            around.tail.push_str(&over);
            around.parts.extend(parts);
        }
        Ok(around)
    }
}

/// Returns the array of an expression's values in all rows; that of no rows is NULL.
fn array_of_rows(of: &Expr, value: &str, around: &Around) -> Result<Expr, Failure> {
    let is = of.is().and_then(Type::array).ok_or_else(|| hints::refuse("ARRAY"))?;
    let sql = format!("nullif(json_group_array({value}){}, '[]')", around.tail);
    Ok(Expr::made(sql, is, &[of]).with(&around.parts.iter().collect::<Vec<_>>()))
}

/// True if the part of a moment that `extract` gives for these arguments is always a whole number.
fn is_whole(arguments: &[Expr]) -> bool {
    match arguments.first().map(|unit| &unit.kind) {
        Some(ExprKind::Literal(word)) => {
            !FRACTIONS.iter().any(|unit| word.eq_ignore_ascii_case(unit))
        }
        _ => false,
    }
}

/// True if a function is an aggregate.
fn aggregates(function: &str) -> bool {
    let listed = AGGREGATES.iter().any(|row| row.0 == function);
    listed || matches!(function, "count" | "array_agg") || is_extreme(function)
}

fn is_extreme(function: &str) -> bool {
    matches!(function, "min" | "max")
}

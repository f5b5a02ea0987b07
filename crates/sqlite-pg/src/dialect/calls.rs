//! Calls of functions and aggregates.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{FuncCall, Node};

use crate::arrays::json_string;
use crate::catalog;
use crate::failure::Failure;
use crate::types::Type;
use crate::types::Type::{Bool, Bytea, Date, Int8, Text, Uuid};

use super::catalog_functions::CATALOG_FUNCTIONS;
use super::coerce::Wanted;
use super::common_types::plain_text;
use super::function_tables::{AGGREGATES, FUNCTIONS};
use super::json_calls::{
    AGGREGATES as JSON_AGGREGATES, BUILDERS, JsonItem, in_brackets, item_json, object, of_given,
    of_kind,
};
use super::nodes::names;
use super::operators::is_equated;
use super::resolution::no_function;
use super::scope::{Scopes, find};
use super::sequence_calls::{is_of_sequences, sequence_named, uncast};
use super::value::{Expr, ExprKind, as_element, name, text_literal};
use super::{NotTranslated, Translated, Translator, hints, strings};

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

impl Around {
    /// Writes an argument with DISTINCT and ORDER BY.
    fn inside(&self, sql: &str) -> String {
        format!("{}{sql}{}", if self.distinct { "DISTINCT " } else { "" }, self.order)
    }
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
        self.number_calls += usize::from(matches!(&*function, "nextval" | "setval"));
        if it.over.is_none() && is_of_sequences(&function, it.args.len()) {
            return self.of_sequence(it, function);
        }
        if aggregates(&function) {
            return self.aggregate(it, &function);
        }
        let plain = !it.agg_distinct && it.agg_filter.is_none() && it.agg_order.is_empty();
        if plain
            && it.over.is_none()
            && let Some(made) = self.json_built(&function, &it.args)?
        {
            return Ok(made);
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
        if let Some(made) = self.typing.of_any(&function, &arguments)? {
            return Ok(made.named(function));
        }
        if let Some(made) = self.typing.of_array(&function, &arguments)? {
            return Ok(made.named(function));
        }
        if let Some(made) = self.scopes.rows_of_array(&mut self.typing, &function, &arguments)? {
            return Ok(made);
        }
        let of_catalog = CATALOG_FUNCTIONS.iter().filter(|row| row.0 == function);
        let used: Vec<_> = of_catalog.clone().flat_map(|row| catalog::named_in(row.3)).collect();
        if of_catalog.count() > 0 {
            self.typing.relations.extend(used);
            let made = self.typing.resolved(CATALOG_FUNCTIONS, &function, arguments)?;
            return Ok(made.named(function));
        }
        if function == "date"
            && matches!(arguments[..], [ref only] if only.is().is_none() || only.is() == Some(Date))
        {
            let only = arguments.remove(0);
            return Ok(self.typing.coerce(only, Date, Wanted::Explicit)?.named(function));
        }
        let whole = function == "extract" && is_whole(&arguments);
        let made = self.typing.resolved(FUNCTIONS, &function, arguments)?;
        Ok(Expr { whole, ..made.named(function) })
    }

    /// Translates a call of a function of sequences.
    fn of_sequence(&mut self, it: &FuncCall, function: String) -> Translated<Expr> {
        let Some((first, rest)) = it.args.split_first() else {
            return Ok(Expr::typed("refrain_lastval()", Int8).named(function));
        };
        let first = self.expr(uncast(first))?;
        let sequence = sequence_named(self.basis.catalog, &first)?;
        if function == "currval" {
            return Ok(sequence.current().named(function));
        }
        self.locks.get_or_insert(name(sequence.table()));
        let mut arguments = Vec::new();
        for (node, is) in rest.iter().zip([Int8, Bool]) {
            let value = self.expr(node)?;
            arguments.push(self.typing.coerce(value, is, Wanted::Implicit)?);
        }
        Ok(sequence.call(&function, arguments).named(function))
    }

    /// Translates a function that makes JSON; `None` for other functions.
    pub(super) fn json_built(
        &mut self,
        function: &str,
        nodes: &[Node],
    ) -> Translated<Option<Expr>> {
        if !BUILDERS.contains(&function) {
            return Ok(None);
        }
        let mut items = Vec::new();
        for node in nodes {
            items.push(self.json_item(node)?);
        }
        let sql = match (function, &items[..]) {
            ("json_build_object" | "jsonb_build_object", items) => object(items)?,
            ("json_build_array" | "jsonb_build_array", items) => {
                let all: Vec<&str> = items.iter().map(|item| item.json.as_str()).collect();
                in_brackets(&all.join(" || ', ' || "))
            }
            ("row_to_json", [item]) if item.is_row => of_given(item),
            ("array_to_json", [item]) if item.value.is_array() => of_given(item),
            ("to_json" | "to_jsonb", [item]) => of_given(item),
            _ => return Err(hints::refuse("JSON function").into()),
        };
        let parts: Vec<&Expr> = items.iter().map(|item| &item.value).collect();
        Ok(Some(of_kind(function, sql, &parts).named(function)))
    }

    /// Translates `json_agg` and `jsonb_agg`; NULL if there are no rows.
    fn json_aggregate(&mut self, function: &str, it: &FuncCall, of: &Node) -> Translated<Expr> {
        let around = self.around(it)?;
        if around.distinct {
            return Err(hints::refuse("JSON function").into());
        }
        let item = self.json_item(of)?;
        if it.over.is_none() && item.value.aggregate {
            return Err(nested().into());
        }
        let between = match item.is_row || item.value.is_array() {
            true => "', ' || char(10) || ' '",
            false => "', '",
        };
        let (order, tail) = (&around.order, &around.tail);
        let sql = format!("('[' || group_concat({}, {between}{order}){tail} || ']')", item.json);
        let made = of_kind(function, sql, &[&item.value]);
        let made = made.with(&around.parts.iter().collect::<Vec<_>>());
        Ok(self.scopes.is_aggregate(made, it).named(function))
    }

    /// Returns a value as an item of JSON. The name of an item of FROM stands for its row.
    fn json_item(&mut self, node: &Node) -> Translated<JsonItem> {
        if let Some(columns) = self.scopes.whole_row(node) {
            self.reads_rows = true;
            let (mut parts, mut all) = (Vec::new(), Vec::new());
            for column in columns {
                let key = format!("{}:", json_string(column.name.as_deref().unwrap_or_default()));
                parts.push(format!("{} || {}", text_literal(&key), item_json(&column)?));
                all.push(column);
            }
            let json = format!("('{{' || {} || '}}')", parts.join(" || ',' || "));
            let value = Expr::made(json.clone(), Type::Json, &all.iter().collect::<Vec<_>>());
            return Ok(JsonItem { value, json, is_row: true });
        }
        let value = self.expr(node)?;
        let value = self.typing.settle(value)?;
        let json = item_json(&value)?;
        Ok(JsonItem { value, json, is_row: false })
    }

    fn aggregate(&mut self, it: &FuncCall, function: &str) -> Translated<Expr> {
        let before = self.scopes.levels.len();
        let made = match &it.args[..] {
            [only] if JSON_AGGREGATES.contains(&function) => {
                self.json_aggregate(function, it, only)?
            }
            _ => self.aggregated(it, function)?,
        };
        // The aggregate belongs to the innermost query whose columns it takes
        // (`check_agg_arguments` of the server).
        let depth = self.scopes.depth();
        let level = self.scopes.levels[before..].iter().filter(|level| **level <= depth).max();
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
            return Err(nested().into());
        }
        let around = self.around(it)?;
        if around.distinct {
            arguments.iter().try_for_each(is_equated)?;
        }
        let inside = |sql: &str| around.inside(sql);
        let mut made = match (function, &arguments[..]) {
            ("count", []) if it.agg_star => Expr::made("count(*)", Int8, &[]),
            ("count", [only]) => {
                let sql = format!("count({})", inside(&only.sql));
                Expr::made(sql, Int8, &[only])
            }
            (extreme, [only]) if is_extreme(extreme) => {
                let made = self.extreme_of(function, only.clone(), &around)?;
                return Ok(self.scopes.is_aggregate(made, it).named(function));
            }
            ("avg", [only]) if only.is().is_some_and(Type::is_integer) => {
                let value = inside(&only.sql);
                let tail = &around.tail;
                let sql = format!("refrain_ratio(sum({value}){tail}, count({value}){tail})");
                let mut made = Expr::made(sql, Type::Numeric, &[only]);
                made = made.with(&around.parts.iter().collect::<Vec<_>>());
                return Ok(self.scopes.is_aggregate(made, it).named(function));
            }
            ("array_agg", [only]) => {
                let only = self.typing.settle(only.clone())?;
                let value = match only.sql.contains('(') {
                    true => as_element(&only.sql, only.is().unwrap_or(Text)),
                    false => only.sql.clone(),
                };
                // The server sorts the values to find equal ones.
                let sorted = match around.distinct && around.order.is_empty() {
                    true => format!(" ORDER BY {value} NULLS LAST"),
                    false => String::new(),
                };
                let made = array_of_rows(&only, &format!("{}{sorted}", inside(&value)), &around)?;
                return Ok(self.scopes.is_aggregate(made, it).named(function));
            }
            ("sum", [only]) if only.is() == Some(Type::Float4) => {
                return Err(hints::refuse("sum of real").into());
            }
            _ => {
                if around.distinct && function == "string_agg" {
                    return Err(hints::refuse("string_agg (DISTINCT …)").into());
                }
                let made = self.typing.resolved(AGGREGATES, function, arguments.clone())?;
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
        Ok(self.scopes.is_aggregate(made, it).named(function))
    }

    /// Translates `min` and `max`.
    fn extreme_of(&mut self, function: &str, only: Expr, around: &Around) -> Result<Expr, Failure> {
        let only = self.typing.settle(only)?;
        let is = only.is().unwrap_or(Text);
        let array = is.element().is_some();
        if array || matches!(is, Bool | Uuid | Type::Json | Type::Jsonb | Bytea) {
            return Err(no_function(function, &[only]));
        }
        if is == Type::Numeric {
            return Err(hints::refuse("numeric"));
        }
        let call = |value: &str| format!("{function}({}){}", around.inside(value), around.tail);
        let sql = match is {
            Type::Enum(of) => of.label_at(&call(&of.place(&only.sql))),
            _ => call(&only.sql),
        };
        let made = Expr::made(sql, plain_text(is), &[&only]);
        Ok(made.with(&around.parts.iter().collect::<Vec<_>>()))
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

impl Scopes {
    /// Returns the columns of an item of FROM, if the node is its name and that of no column.
    fn whole_row(&self, node: &Node) -> Option<Vec<Expr>> {
        let Some(NodeEnum::ColumnRef(reference)) = &node.node else { return None };
        let names = strings(&reference.fields);
        let [called] = &names[..] else { return None };
        if reference.fields.len() != 1 || find(&self.open, None, called).is_ok() {
            return None;
        }
        let (depth, scope) = self.open.iter().enumerate().next_back()?;
        // The row of an outer join that has none is NULL, not a row of NULLs.
        let alone = matches!(&scope.sources[..], [only] if !only.renamed);
        let columns = scope.all_of(called).filter(|_| alone)?;
        let column = |column: super::scope::Column| {
            let mut expr = Expr::typed(column.sql.clone(), column.is).named(column.name.clone());
            if !scope.is_grouped(&column) {
                expr.bare.push((depth, column.name));
            }
            expr
        };
        Some(columns.into_iter().map(column).collect())
    }

    /// Marks a call as an aggregate, whose arguments need no GROUP BY. With OVER it is none.
    fn is_aggregate(&self, mut made: Expr, it: &FuncCall) -> Expr {
        if it.over.is_none() {
            let depth = self.depth();
            made.bare.retain(|(at, _)| *at < depth);
            made.aggregate = true;
        }
        made
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

fn nested() -> Failure {
    Failure::new("42803", "aggregate function calls cannot be nested")
}

/// True if a function is an aggregate.
fn aggregates(function: &str) -> bool {
    let listed = AGGREGATES.iter().any(|row| row.0 == function);
    let other = matches!(function, "count" | "array_agg") || JSON_AGGREGATES.contains(&function);
    listed || other || is_extreme(function)
}

fn is_extreme(function: &str) -> bool {
    matches!(function, "min" | "max")
}

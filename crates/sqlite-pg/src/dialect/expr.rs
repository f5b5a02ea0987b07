//! Translates expressions.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    AExpr, AExprKind, AIndirection, BoolExpr, BoolExprType, BoolTestType, BooleanTest, CaseExpr,
    ColumnRef, MinMaxExpr, MinMaxOp, Node, NullTest, NullTestType, ParamRef, TypeCast,
};

use crate::failure::{Failure, state};
use crate::text::PARAMETERS_MAX;
use crate::types::Type;

use super::arrays::gathered_array;
use super::coerce::{Wanted, no_collation};
use super::common_types::plain_text;
use super::constants::constant;
use super::nodes::{is_pattern, like_escape, row, value_function};
use super::operators::no_operator;
use super::schema_names::split;
use super::scope::{Scopes, find};
use super::sequence_calls::taken_once;
use super::type_names::type_name;
use super::value::{Expr, ExprKind, text_literal};
use super::{Translated, Translator, bounded, hints, inner, strings};

impl Translator<'_> {
    /// Translates an expression.
    pub(super) fn expr(&mut self, node: &Node) -> Translated<Expr> {
        let around = self.typing.budget.begin()?;
        let (before, made) = (self.number_calls, self.any(inner(node)?));
        let mut made = made.map_err(|stop| stop.at(self.basis.text, super::location(node)))?;
        bounded(&made.sql, self.basis.text)?;
        self.typing.budget.end(around, &made)?;
        taken_once(&made.sql, self.number_calls - before)?;
        if !made.bare.is_empty() && self.scopes.is_group(&made.sql) {
            let depth = self.scopes.depth();
            made.bare.retain(|(at, _)| *at != depth);
        }
        Ok(made)
    }

    /// Runs `make` for a part that PostgreSQL may never evaluate if `settled` is true: no constant
    /// in it is evaluated in advance.
    pub(super) fn unless<T>(
        &mut self,
        settled: bool,
        make: impl FnOnce(&mut Self) -> Translated<T>,
    ) -> Translated<T> {
        self.typing.unfolded += usize::from(settled);
        let made = make(self);
        self.typing.unfolded -= usize::from(settled);
        made
    }

    fn any(&mut self, node: &NodeEnum) -> Translated<Expr> {
        match node {
            NodeEnum::AConst(it) => Ok(constant(it, self.basis.text)?),
            NodeEnum::ColumnRef(it) => self.column(it),
            NodeEnum::ParamRef(it) => self.parameter(it),
            NodeEnum::AExpr(it) => self.operation(it),
            NodeEnum::BoolExpr(it) => self.logic(it),
            NodeEnum::NullTest(it) => self.null_test(it),
            NodeEnum::BooleanTest(it) => self.boolean_test(it),
            NodeEnum::TypeCast(it) => self.cast(it),
            NodeEnum::CaseExpr(it) => self.case(it),
            NodeEnum::CoalesceExpr(it) => {
                let (mut all, mut settled) = (Vec::new(), false);
                for node in &it.args {
                    let value = self.unless(settled, |this| this.expr(node))?;
                    settled |= self.typing.is_given(&value);
                    all.push(value);
                }
                let (all, is) = self.typing.unified(all, "COALESCE")?;
                let constant = self.typing.first_given(&all);
                let made = gathered("coalesce", &all, is).named("coalesce");
                Ok(Expr { constant, ..made })
            }
            NodeEnum::MinMaxExpr(it) => self.extreme(it),
            NodeEnum::SqlvalueFunction(it) => value_function(it),
            NodeEnum::FuncCall(it) => self.call(it),
            NodeEnum::SubLink(it) => self.sublink(it),
            NodeEnum::AArrayExpr(it) => self.array(&it.elements, None),
            NodeEnum::AIndirection(it) => self.subscripted(it),
            NodeEnum::CollateClause(it) => {
                let names = strings(&it.collname);
                // The default collation is "C" here.
                if names
                    .last()
                    .is_none_or(|name| !["C", "POSIX", "default"].contains(&name.as_str()))
                {
                    return Err(hints::refuse("COLLATE").into());
                }
                let value = self.expr(it.arg.as_deref().ok_or_else(hints::unknown)?)?;
                if let Some(is) = value.is().filter(|is| !is.is_text()) {
                    return Err(no_collation(is).into());
                }
                Ok(self.typing.coerce(value, Type::Text, Wanted::Implicit)?)
            }
            NodeEnum::SetToDefault(_) => {
                Err(Failure::new(state::SYNTAX, "DEFAULT is not allowed in this context").into())
            }
            other => Err(hints::node(other).into()),
        }
    }

    fn column(&mut self, reference: &ColumnRef) -> Translated<Expr> {
        let names = strings(&reference.fields);
        if names.len() < reference.fields.len() {
            return Err(hints::refuse("row").into());
        }
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let [table, _] = &mut names[..] {
            *table = split(self.basis.catalog, table).1;
        }
        let found = match names[..] {
            [column] => find(&self.scopes.open, None, column),
            [table, column]
            | ["public" | "main" | "pg_catalog" | "information_schema", table, column] => {
                find(&self.scopes.open, Some(table), column)
            }
            _ => Err(Failure::new("42703", "column does not exist")),
        };
        let (level, column) = found?;
        self.scopes.levels.push(level);
        Ok(column)
    }

    fn parameter(&mut self, parameter: &ParamRef) -> Translated<Expr> {
        let number = usize::try_from(parameter.number).unwrap_or(0);
        if !(1..=PARAMETERS_MAX).contains(&number) {
            let message = format!("there is no parameter ${}", parameter.number);
            return Err(Failure::new("42P02", message).into());
        }
        if self.typing.parameters.len() < number {
            self.typing.parameters.resize(number, None);
        }
        let kind = match self.typing.parameters.get(number - 1).copied().flatten() {
            Some(is) => ExprKind::Typed(is),
            None => ExprKind::Parameter(number - 1),
        };
        Ok(Expr::of(format!("?{number}"), kind))
    }

    /// Translates a condition, whose value must be a boolean.
    pub(super) fn condition(&mut self, node: &Node, place: &str) -> Translated<Expr> {
        let value = self.expr(node)?;
        self.typing.truth(value, place).map_err(|failure| {
            super::NotTranslated::from(failure).at(self.basis.text, super::location(node))
        })
    }

    fn logic(&mut self, it: &BoolExpr) -> Translated<Expr> {
        let word = match it.boolop() {
            BoolExprType::AndExpr => "AND",
            BoolExprType::OrExpr => "OR",
            _ => "NOT",
        };
        let (mut all, mut settled) = (Vec::new(), false);
        for arg in &it.args {
            let condition = self.unless(settled, |this| this.condition(arg, word))?;
            settled |= word != "NOT" && self.typing.known(&condition) == Some(word == "OR");
            all.push(condition);
        }
        let parts: Vec<&str> = all.iter().map(|expr| expr.sql.as_str()).collect();
        let sql = match word {
            "NOT" => format!("(NOT {})", parts.join("")),
            word => format!("({})", parts.join(&format!(" {word} "))),
        };
        let made = Expr::pure(sql, Type::Bool, &all.iter().collect::<Vec<_>>());
        let decided = settled.then(|| u8::from(word == "OR").to_string());
        Ok(Expr { constant: decided.or(made.constant.clone()), ..made })
    }

    fn null_test(&mut self, it: &NullTest) -> Translated<Expr> {
        let node = it.arg.as_deref().ok_or_else(hints::unknown)?;
        if matches!(node.node, Some(NodeEnum::RowExpr(_))) {
            return Err(hints::refuse("row").into());
        }
        let value = self.expr(node)?;
        let value = self.typing.settle(value)?;
        let is = it.nulltesttype() == NullTestType::IsNull;
        let sql = format!("({} {})", value.sql, if is { "IS NULL" } else { "IS NOT NULL" });
        Ok(Expr::pure(sql, Type::Bool, &[&value]))
    }

    fn boolean_test(&mut self, it: &BooleanTest) -> Translated<Expr> {
        let words = match it.booltesttype() {
            BoolTestType::IsTrue => "IS TRUE",
            BoolTestType::IsNotTrue => "IS NOT TRUE",
            BoolTestType::IsFalse => "IS FALSE",
            BoolTestType::IsNotFalse => "IS NOT FALSE",
            BoolTestType::IsNotUnknown => "IS NOT NULL",
            _ => "IS NULL",
        };
        let value = self.condition(it.arg.as_deref().ok_or_else(hints::unknown)?, words)?;
        Ok(Expr::pure(format!("({} {words})", value.sql), Type::Bool, &[&value]))
    }

    /// Translates ARRAY[…], whose elements take the type of a cast around it.
    fn array(&mut self, nodes: &[Node], of: Option<Type>) -> Translated<Expr> {
        let all = nodes.iter().map(|node| self.expr(node)).collect::<Result<Vec<_>, _>>()?;
        if all.iter().any(Expr::is_array) {
            return Err(hints::refuse("ARRAY").into());
        }
        let (all, of) = match of {
            Some(of) => {
                let made =
                    all.into_iter().map(|value| self.typing.coerce(value, of, Wanted::Explicit));
                (made.collect::<Result<Vec<_>, _>>()?, of)
            }
            None if all.is_empty() => {
                let failure = Failure::new("42P18", "cannot determine type of empty array");
                let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
                return Err(failure.hint(hint).into());
            }
            None => self.typing.unified(all, "ARRAY")?,
        };
        Ok(gathered_array(&all, of)?)
    }

    fn subscripted(&mut self, it: &AIndirection) -> Translated<Expr> {
        let array = self.expr(it.arg.as_deref().ok_or_else(hints::unknown)?)?;
        let [Node { node: Some(NodeEnum::AIndices(index)) }] = &it.indirection[..] else {
            return Err(hints::refuse("ARRAY").into());
        };
        if index.is_slice {
            return Err(hints::refuse("ARRAY").into());
        }
        let place = self.expr(index.uidx.as_deref().ok_or_else(hints::unknown)?)?;
        Ok(self.typing.at_subscript(array, place)?)
    }

    fn cast(&mut self, it: &TypeCast) -> Translated<Expr> {
        let (is, limit) = type_name(self.basis, it.type_name.as_ref().ok_or_else(hints::unknown)?)?;
        let node = it.arg.as_deref().ok_or_else(hints::unknown)?;
        let value = match (&node.node, is.element()) {
            (Some(NodeEnum::AArrayExpr(array)), Some(of)) if !is.is_vector() => {
                self.array(&array.elements, Some(of))?
            }
            _ => self.expr(node)?,
        };
        let name = value.name.clone().filter(|_| !value.weak);
        let value = self.typing.fit(value, is, limit, Wanted::Explicit);
        let value = value.map_err(|failure| {
            super::NotTranslated::from(failure).at(self.basis.text, super::location(node))
        })?;
        Ok(match name {
            Some(name) => value.named(name),
            None => value.named_weakly(is.written_name()),
        })
    }

    fn case(&mut self, it: &CaseExpr) -> Translated<Expr> {
        let base = it.arg.as_deref().map(|arg| self.expr(arg)).transpose()?;
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        let mut settled = false;
        for when in &it.args {
            let Some(NodeEnum::CaseWhen(when)) = &when.node else {
                return Err(hints::unknown().into());
            };
            let condition = when.expr.as_deref().ok_or_else(hints::unknown)?;
            let condition = self.unless(settled, |this| match &base {
                Some(base) => {
                    let value = this.expr(condition)?;
                    this.typing.budget.copy(base)?;
                    Ok(this.typing.compare("=", base.clone(), value)?)
                }
                None => this.condition(condition, "CASE/WHEN"),
            })?;
            let known = self.typing.known(&condition);
            conditions.push(condition);
            let result = when.result.as_deref().ok_or_else(hints::unknown)?;
            results.push(self.unless(settled || known == Some(false), |this| this.expr(result))?);
            settled |= known == Some(true);
        }
        let otherwise = it.defresult.as_deref();
        let otherwise =
            otherwise.map(|node| self.unless(settled, |this| this.expr(node))).transpose()?;
        let strong = otherwise.as_ref().filter(|expr| !expr.weak);
        let name = strong.and_then(|expr| expr.name.clone());
        results.extend(otherwise);
        // PostgreSQL takes the type of ELSE into account first.
        let last = results.len() - usize::from(it.defresult.is_some());
        results.rotate_left(last);
        let (mut results, is) = self.typing.unified(results, "CASE")?;
        results.rotate_right(last);
        let mut sql = "CASE".to_owned();
        for (condition, result) in conditions.iter().zip(&results) {
            sql.push_str(&format!(" WHEN {} THEN {}", condition.sql, result.sql));
        }
        if let Some(result) = results.get(conditions.len()) {
            sql.push_str(&format!(" ELSE {}", result.sql));
        }
        sql.push_str(" END");
        let parts: Vec<&Expr> = conditions.iter().chain(&results).collect();
        let constant = self.typing.taken(&conditions, &results);
        let made = Expr { constant, ..Expr::made(sql, is, &parts) };
        Ok(match name {
            Some(name) => made.named(name),
            None => made.named_weakly("case"),
        })
    }

    /// Translates GREATEST and LEAST, which ignore NULLs.
    fn extreme(&mut self, it: &MinMaxExpr) -> Translated<Expr> {
        let greatest = it.op() == MinMaxOp::IsGreatest;
        let word = if greatest { "greatest" } else { "least" };
        let (all, is) = self.list(&it.args, word)?;
        if matches!(is, Type::Numeric | Type::Json | Type::Jsonb | Type::Bpchar) {
            return Err(hints::refuse("numeric").into());
        }
        if let (Type::Enum(of), [_, _, ..]) = (is, &all[..]) {
            let places: Vec<String> = all.iter().map(|expr| of.place(&expr.sql)).collect();
            let sql = of.label_at(&format!("refrain_{word}({})", places.join(", ")));
            return Ok(Expr::pure(sql, is, &all.iter().collect::<Vec<_>>()).named(word));
        }
        Ok(gathered(&format!("refrain_{word}"), &all, is).named(word))
    }

    /// Translates values that must have one type.
    fn list(&mut self, nodes: &[Node], word: &str) -> Translated<(Vec<Expr>, Type)> {
        let all = nodes.iter().map(|node| self.expr(node)).collect::<Result<_, _>>()?;
        self.typing.unified(all, word)
    }

    fn operation(&mut self, it: &AExpr) -> Translated<Expr> {
        let operator = strings(&it.name).pop().unwrap_or_default();
        if it.name.len() > 1 && strings(&it.name)[0] != "pg_catalog" {
            return Err(hints::refuse("OPERATOR").into());
        }
        let side = |side: &Option<Box<Node>>| -> Option<Node> { side.as_deref().cloned() };
        let (left, right) = (side(&it.lexpr), side(&it.rexpr));
        match it.kind() {
            AExprKind::AexprOp => match (left, right) {
                (None, Some(right)) => {
                    let value = self.expr(&right)?;
                    Ok(self.typing.prefix(&operator, value)?)
                }
                (Some(left), Some(right)) => self.binary(&operator, &left, &right),
                _ => Err(hints::operator(&operator).into()),
            },
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                let (left, right) = self.both(left, right)?;
                let (left, right, _) = self.typing.together(left, right, "=")?;
                let is = if it.kind() == AExprKind::AexprDistinct { "IS NOT" } else { "IS" };
                let sql = format!("({} {is} {})", left.sql, right.sql);
                Ok(Expr::pure(sql, Type::Bool, &[&left, &right]))
            }
            AExprKind::AexprNullif => {
                let (left, right) = self.both(left, right)?;
                let (left, right, is) = self.typing.together(left, right, "=")?;
                let is = plain_text(is);
                let sql = format!("nullif({}, {})", left.sql, right.sql);
                Ok(Expr::pure(sql, is, &[&left, &right]).named("nullif"))
            }
            AExprKind::AexprIn => self.is_in(left, right, operator == "<>"),
            AExprKind::AexprLike | AExprKind::AexprIlike => self.like(
                left,
                right,
                operator.starts_with('!'),
                it.kind() == AExprKind::AexprIlike,
            ),
            AExprKind::AexprBetween | AExprKind::AexprNotBetween => {
                self.between(left, right, it.kind() == AExprKind::AexprNotBetween)
            }
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => {
                let (left, right) = self.both(left, right)?;
                let any = it.kind() == AExprKind::AexprOpAny;
                Ok(self.typing.any_or_all(&operator, left, right, any)?)
            }
            AExprKind::AexprSimilar => Err(hints::refuse("SIMILAR TO").into()),
            _ => Err(hints::refuse("BETWEEN SYMMETRIC").into()),
        }
    }

    fn both(&mut self, left: Option<Node>, right: Option<Node>) -> Translated<(Expr, Expr)> {
        let left = self.expr(&left.ok_or_else(hints::unknown)?)?;
        Ok((left, self.expr(&right.ok_or_else(hints::unknown)?)?))
    }

    fn binary(&mut self, operator: &str, left: &Node, right: &Node) -> Translated<Expr> {
        if row(left).is_some() || row(right).is_some() {
            return self.compared_rows(operator, left, right);
        }
        let left = self.expr(left)?;
        let right = self.expr(right)?;
        Ok(self.typing.operator(operator, left, right)?)
    }

    fn is_in(&mut self, left: Option<Node>, right: Option<Node>, not: bool) -> Translated<Expr> {
        let (left, right) = (left.ok_or_else(hints::unknown)?, right.ok_or_else(hints::unknown)?);
        let Some(NodeEnum::List(list)) = &right.node else { return Err(hints::unknown().into()) };
        if row(&left).is_some() {
            return self.row_is_in(&left, &list.items, not);
        }
        let left = self.expr(&left)?;
        let mut all = vec![left];
        for item in &list.items {
            all.push(self.expr(item)?);
        }
        let integer = |expr: &Expr| expr.is().is_some_and(Type::is_integer);
        let whole = |expr: &Expr| expr.is().is_none_or(Type::is_integer);
        if all.iter().any(|expr| matches!(expr.kind, ExprKind::Number(_)))
            || all[0].is() == Some(Type::Bpchar)
            || all.iter().any(integer) && !all.iter().all(whole)
        {
            return self.is_one_of(&all, not);
        }
        let (all, is) = self.typing.unified(all, "IN")?;
        if matches!(is, Type::Json | Type::Jsonb | Type::Numeric) {
            return Err(no_operator(&all[0], "=", &all[0]).into());
        }
        let items: Vec<&str> = all[1..].iter().map(|expr| expr.sql.as_str()).collect();
        let word = if not { "NOT IN" } else { "IN" };
        let sql = format!("({} {word} ({}))", all[0].sql, items.join(", "));
        Ok(Expr::pure(sql, Type::Bool, &all.iter().collect::<Vec<_>>()))
    }

    /// Translates IN for values of several types: compares with each value on its own.
    fn is_one_of(&mut self, all: &[Expr], not: bool) -> Translated<Expr> {
        let mut made = Vec::new();
        for item in &all[1..] {
            let operator = if not { "<>" } else { "=" };
            self.typing.budget.copy(&all[0])?;
            made.push(self.typing.compare(operator, all[0].clone(), item.clone())?);
        }
        let parts: Vec<&str> = made.iter().map(|expr| expr.sql.as_str()).collect();
        let sql = format!("({})", parts.join(if not { " AND " } else { " OR " }));
        Ok(Expr::pure(sql, Type::Bool, &made.iter().collect::<Vec<_>>()))
    }

    fn like(
        &mut self,
        left: Option<Node>,
        right: Option<Node>,
        not: bool,
        fold: bool,
    ) -> Translated<Expr> {
        let right = right.ok_or_else(hints::unknown)?;
        let (pattern, escape) = like_escape(&right);
        let (left, right) = self.both(left, Some(pattern.clone()))?;
        let text = |expr: &Expr| expr.is().is_none_or(Type::is_text);
        if !text(&left) || !text(&right) {
            return Err(no_operator(&left, if not { "!~~" } else { "~~" }, &right).into());
        }
        // Constants are computed during the translation, in one step, and a pattern with many parts
        // may take long.
        let quick = matches!(&right.kind, ExprKind::Literal(it) if it.matches('%').count() <= 2);
        let given = right.kind.clone();
        let left = self.typing.with_blanks(left)?;
        let right = self.typing.coerce(right, Type::Text, Wanted::Implicit)?;
        let escape = match escape.map(|escape| self.expr(escape)).transpose()? {
            Some(Expr { kind: ExprKind::Literal(letter), .. }) if letter.chars().count() == 1 => {
                text_literal(&letter)
            }
            Some(_) => return Err(hints::refuse("LIKE ESCAPE").into()),
            None => "'\\'".to_owned(),
        };
        is_pattern(&given, &escape)?;
        let fit = |sql: &str| if fold { format!("lower({sql})") } else { sql.to_owned() };
        let word = if not { "NOT LIKE" } else { "LIKE" };
        let (value, pattern) = (fit(&left.sql), fit(&right.sql));
        let sql = format!("({value} {word} {pattern} ESCAPE {escape})");
        let make = if quick { Expr::pure } else { Expr::made };
        Ok(make(sql, Type::Bool, &[&left, &right]))
    }

    fn between(&mut self, left: Option<Node>, right: Option<Node>, not: bool) -> Translated<Expr> {
        let value = self.expr(&left.ok_or_else(hints::unknown)?)?;
        let right = right.ok_or_else(hints::unknown)?;
        let Some(NodeEnum::List(list)) = &right.node else { return Err(hints::unknown().into()) };
        let [low, high] = &list.items[..] else { return Err(hints::unknown().into()) };
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let low = self.typing.compare(if not { "<" } else { ">=" }, value.clone(), low)?;
        let high = self.typing.compare(if not { ">" } else { "<=" }, value, high)?;
        let word = if not { "OR" } else { "AND" };
        let sql = format!("({} {word} {})", low.sql, high.sql);
        Ok(Expr::pure(sql, Type::Bool, &[&low, &high]))
    }
}

impl Scopes {
    fn is_group(&self, sql: &str) -> bool {
        let groups = self.open.last().and_then(|scope| scope.groups.as_ref());
        groups.is_some_and(|groups| groups.iter().any(|group| group == sql))
    }
}

fn gathered(function: &str, all: &[Expr], is: Type) -> Expr {
    let parts: Vec<&str> = all.iter().map(|expr| expr.sql.as_str()).collect();
    let sql = match parts[..] {
        [only] => only.to_owned(),
        _ => format!("{function}({})", parts.join(", ")),
    };
    Expr::pure(sql, is, &all.iter().collect::<Vec<_>>())
}

//! Translates SELECT and VALUES.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    LimitOption, Node, ResTarget, SelectStmt, SetOperation, a_const::Val,
};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::coerce::Wanted;
use super::locking::{locking, locks_rows};
use super::operators::is_equated;
use super::schema_names::split;
use super::scope::{FromItem, Scope, Scoped, find};
use super::targets::{Target, few_enough, sorted_by_targets};
use super::value::{Bare, Expr, ExprKind, name, no_place};
use super::{NotTranslated, Translated, Translator, bounded, hints, inner, location, strings};

/// A column of a query, as the enclosing query sees it.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    /// Its type; `None` for a string or NULL that has got none yet.
    pub(super) is: Option<Type>,
    pub(super) limit: Option<u32>,
}

/// A query in SQLite's dialect.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) columns: Vec<Output>,
    /// The columns of enclosing queries in it.
    pub(super) bare: Vec<Bare>,
}

/// The requirements of a query's place for its columns.
#[derive(Clone, Copy, Default)]
pub(super) struct ExpectedColumns<'a> {
    /// The types. A column without a type takes the one here; a column with another type is an
    /// error.
    pub(super) types: &'a [Option<Type>],
    /// The names.
    pub(super) names: &'a [String],
    /// True if strings without a type keep none: a column of the other side may give them one.
    pub(super) open: bool,
    /// True if the number of rows alone counts.
    pub(super) exists: bool,
}

impl ExpectedColumns<'_> {
    pub(super) fn of(self, index: usize) -> Option<Type> {
        self.types.get(index).copied().flatten()
    }

    pub(super) fn name(self, index: usize, otherwise: &str) -> String {
        self.names.get(index).cloned().unwrap_or_else(|| otherwise.to_owned())
    }
}

impl Translator<'_> {
    /// Translates a query.
    pub(super) fn query(
        &mut self,
        select: &SelectStmt,
        place: ExpectedColumns<'_>,
    ) -> Translated<Query> {
        refuse_parts(select)?;
        let locks = locking(self.basis.catalog, select)?;
        self.locks = self.locks.take().or(locks);
        let (with, mut made) =
            self.behind(select.with_clause.as_ref(), |this| match select.op() {
                SetOperation::SetopNone | SetOperation::Undefined => {
                    this.within(Scope::default(), |this| this.simple(select, place))
                }
                _ => this.combined(select, place),
            })?;
        if let Some(with) = with {
            made.sql = format!("{with}{}", made.sql);
        }
        bounded(&made.sql, self.basis.text)?;
        Ok(made)
    }

    fn simple(&mut self, select: &SelectStmt, place: ExpectedColumns<'_>) -> Translated<Query> {
        match select.values_lists.is_empty() {
            true => self.select(select, place),
            false => self.values(select, place),
        }
    }

    fn select(&mut self, select: &SelectStmt, place: ExpectedColumns<'_>) -> Translated<Query> {
        let mut bare = Vec::new();
        let mut from = self.from(&select.from_clause, &mut bare)?;
        let mut sql = String::new();
        if let Some(node) = &select.where_clause {
            let condition = self.condition(node, "WHERE")?;
            if condition.aggregate {
                return Err(NotTranslated::from(hints::aggregate("WHERE"))
                    .at(self.basis.text, location(node)));
            }
            sql.push_str(&format!(" WHERE {}", condition.sql));
            bare.extend(condition.bare);
        }
        let groups = self.group(select)?;
        let targets = self.listed_targets(select, place, &mut from)?;
        if !from.is_empty() {
            sql.insert_str(0, &format!(" FROM {from}"));
        }
        let mut parts: Vec<Expr> = targets.iter().map(|target| target.expr.clone()).collect();
        if !groups.is_empty() {
            let groups: Vec<String> = groups.iter().map(|group| no_place(group)).collect();
            sql.push_str(&format!(" GROUP BY {}", groups.join(", ")));
        }
        if let Some(node) = &select.having_clause {
            let condition = self.condition(node, "HAVING")?;
            if groups.is_empty() && !parts.iter().any(|part| part.aggregate) {
                return Err(hints::refuse("HAVING without an aggregate").into());
            }
            sql.push_str(&format!(" HAVING {}", condition.sql));
            parts.push(condition);
        }
        sql.push_str(&self.windows(&select.window_clause, &mut parts)?);
        let on = self.distinct_on(select, &targets)?;
        match &on {
            Some(on) => parts.extend(on.parts()),
            None => self.ordered(select, &targets, &mut sql, &mut parts)?,
        }
        let windowed = self.scopes.open.last().is_some_and(|scope| scope.windowed);
        locks_rows(windowed, select, &targets)?;
        let depth = self.scopes.depth();
        check_grouping(&parts, depth, !groups.is_empty() || select.having_clause.is_some())?;
        bare.extend(parts.into_iter().flat_map(|part| part.bare));
        bare.retain(|(at, _)| *at < depth);
        let limits = self.limits(select)?;
        let listed: Vec<(String, &str)> = targets
            .iter()
            .map(|target| (self.listed_target(target, depth == 0), target.name.as_str()))
            .collect();
        let sql = match on {
            Some(on) => format!("{}{limits}", on.written(&listed, &sql)?),
            None => {
                let column = |(sql, called): &(String, &str)| format!("{sql} AS {}", name(called));
                let listed: Vec<String> = listed.iter().map(column).collect();
                let listed = match &listed[..] {
                    [] if place.exists => "1".to_owned(),
                    [] => return Err(hints::refuse("SELECT without columns").into()),
                    listed => listed.join(", "),
                };
                let all = select.distinct_clause.is_empty();
                let word = if all { "SELECT" } else { "SELECT DISTINCT" };
                format!("{word} {listed}{sql}{limits}")
            }
        };
        Ok(Query { sql, columns: targets.into_iter().map(output).collect(), bare })
    }

    /// Adds ORDER BY to a query.
    fn ordered(
        &mut self,
        select: &SelectStmt,
        targets: &[Target],
        sql: &mut String,
        parts: &mut Vec<Expr>,
    ) -> Translated<()> {
        let distinct = !select.distinct_clause.is_empty();
        if distinct {
            targets.iter().try_for_each(|target| is_equated(&target.expr))?;
        }
        if !select.sort_clause.is_empty() {
            let (order, sorted) = self.order(&select.sort_clause, targets)?;
            if distinct {
                sorted_by_targets(&sorted, targets)?;
            }
            sql.push_str(&order);
            parts.extend(sorted);
        }
        Ok(())
    }

    /// Translates the list of SELECT. Functions in it that make rows of arrays add these to FROM.
    fn listed_targets(
        &mut self,
        select: &SelectStmt,
        place: ExpectedColumns<'_>,
        from: &mut String,
    ) -> Translated<Vec<Target>> {
        if let Some(scope) = self.scopes.open.last_mut() {
            scope.arrays = Some(Vec::new());
        }
        // EXISTS does not evaluate the columns of its query.
        let targets = self.unless(place.exists, |this| this.targets(&select.target_list, place))?;
        let Some(rows) = self.scopes.rows_of_targets() else { return Ok(targets) };
        let aggregate = targets.iter().any(|target| target.expr.aggregate);
        let windowed = self.scopes.open.last().is_some_and(|scope| scope.windowed);
        let grouped = !select.group_clause.is_empty() || select.having_clause.is_some();
        if aggregate || windowed || grouped || place.exists {
            return Err(hints::refuse("rows from arrays").into());
        }
        let between = if from.is_empty() { "" } else { ", " };
        from.push_str(&format!("{between}{rows}"));
        Ok(targets)
    }

    /// Writes a column of the list of SELECT, without its name.
    fn listed_target(&mut self, target: &Target, outermost: bool) -> String {
        match target.expr.is() {
            // A client reads the name of a relation; other places compare OIDs.
            Some(Type::Regclass) if outermost => self.typing.relation_name(&target.expr.sql),
            Some(Type::Regtype) if outermost => {
                let sql = &target.expr.sql;
                format!("coalesce(refrain_type_name({sql}), {sql})")
            }
            _ => target.expr.sql.clone(),
        }
    }

    fn windows(&mut self, nodes: &[Node], parts: &mut Vec<Expr>) -> Translated<String> {
        let (mut words, mut known) = (Vec::new(), std::collections::HashSet::new());
        for node in nodes {
            let Some(NodeEnum::WindowDef(window)) = &node.node else {
                return Err(hints::unknown().into());
            };
            let (inside, more) = self.window(window)?;
            if !known.insert(window.name.as_str()) {
                let message = format!("window \"{}\" is already defined", window.name);
                return Err(Failure::new("42P20", message).into());
            }
            words.push(format!("{} AS ({inside})", name(&window.name)));
            parts.extend(more);
        }
        Ok(if words.is_empty() { String::new() } else { format!(" WINDOW {}", words.join(", ")) })
    }

    /// Translates GROUP BY. From then on the scope has its expressions.
    fn group(&mut self, select: &SelectStmt) -> Translated<Vec<String>> {
        let (mut groups, mut values) = (Vec::new(), Vec::new());
        for node in &select.group_clause {
            let value = self.group_item(node, &select.target_list)?;
            if value.aggregate {
                return Err(hints::aggregate("GROUP BY").into());
            }
            let value = self.typing.settle(value)?;
            groups.push(value.sql.clone());
            values.push(value);
        }
        // A group is one row of a table whose key it has, whatever its other columns are.
        let scope = self.scopes.open.last().ok_or_else(hints::unknown)?;
        let of_key = |value: &&Expr| {
            let has = |source: &&FromItem| source.columns.iter().any(|it| it.sql == value.sql);
            let source = scope.sources.iter().find(has);
            let mut keys =
                source.iter().flat_map(|it| &it.columns).filter(|it| it.key > 0).peekable();
            keys.peek().is_some() && keys.all(|key| groups.contains(&key.sql))
        };
        values.iter().filter(|value| !of_key(value)).try_for_each(is_equated)?;
        if (!groups.is_empty() || select.having_clause.is_some())
            && let Some(scope) = self.scopes.open.last_mut()
        {
            scope.groups = Some(groups.clone());
        }
        Ok(groups)
    }

    fn group_item(&mut self, node: &Node, targets: &[Node]) -> Translated<Expr> {
        match inner(node)? {
            NodeEnum::GroupingSet(_) => Err(hints::refuse("GROUPING SETS").into()),
            NodeEnum::AConst(constant) => {
                let Some(Val::Ival(number)) = &constant.val else {
                    let message = "non-integer constant in GROUP BY";
                    return Err(Failure::new(state::SYNTAX, message).into());
                };
                let place =
                    usize::try_from(number.ival).ok().and_then(|place| place.checked_sub(1));
                let target = place.and_then(|place| targets.get(place)).and_then(value_of);
                let Some(target) = target else {
                    let message =
                        format!("GROUP BY position {} is not in select list", number.ival);
                    return Err(Failure::new("42P10", message).into());
                };
                self.expr(target)
            }
            NodeEnum::ColumnRef(column) if column.fields.len() == 1 => {
                let wanted = strings(&column.fields).pop().unwrap_or_default();
                let local = self.scopes.depth();
                if find(&self.scopes.open[local..], None, &wanted).is_ok() {
                    return self.expr(node);
                }
                let named =
                    targets.iter().find(|target| is_named(target, &wanted)).and_then(value_of);
                self.expr(named.unwrap_or(node))
            }
            _ => self.expr(node),
        }
    }

    /// Translates the list of SELECT or RETURNING.
    pub(super) fn targets(
        &mut self,
        nodes: &[Node],
        place: ExpectedColumns<'_>,
    ) -> Translated<Vec<Target>> {
        let mut targets = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else {
                return Err(hints::unknown().into());
            };
            let value = target.val.as_deref().ok_or_else(hints::unknown)?;
            if let Some(columns) = self.star(value)? {
                few_enough(targets.len() + columns.len())?;
                for column in columns {
                    let index = targets.len();
                    let expr = self.placed(column, index, place)?;
                    let called = expr.name.clone().unwrap_or_default();
                    targets.push(Target { name: place.name(index, &called), expr });
                }
                continue;
            }
            let expr = self.expr(value)?;
            let called = called(target, &expr);
            let index = targets.len();
            let expr = self.placed(expr, index, place);
            let expr = expr.map_err(|failure| {
                NotTranslated::from(failure).at(self.basis.text, location(value))
            })?;
            targets.push(Target { name: place.name(index, &called), expr });
            few_enough(targets.len())?;
        }
        Ok(targets)
    }

    /// Converts a column to the type that its place requires.
    fn placed(
        &mut self,
        expr: Expr,
        index: usize,
        place: ExpectedColumns<'_>,
    ) -> Result<Expr, Failure> {
        match place.of(index) {
            Some(is) => self.typing.coerce(expr, is, Wanted::Implicit),
            None if place.open => Ok(expr),
            None => self.typing.settle(expr),
        }
    }

    /// Returns the columns of `*` or `t.*`.
    fn star(&mut self, value: &Node) -> Translated<Option<Vec<Expr>>> {
        let Some(NodeEnum::ColumnRef(reference)) = &value.node else { return Ok(None) };
        let is_star = |node: &Node| matches!(node.node, Some(NodeEnum::AStar(_)));
        if !reference.fields.last().is_some_and(is_star) {
            return Ok(None);
        }
        let names = strings(&reference.fields);
        let mut around = self.scopes.open.iter().enumerate().rev();
        let (depth, scope, columns) = match names.last() {
            None => around.next().map(|(depth, scope)| (depth, scope, scope.all())),
            Some(table) => {
                let own = split(self.basis.catalog, table).1;
                around.find_map(|(depth, scope)| Some((depth, scope, scope.all_of(own)?)))
            }
        }
        .ok_or_else(|| {
            let table = names.last().map(String::as_str).unwrap_or_default();
            let message = format!("missing FROM-clause entry for table \"{table}\"");
            Failure::new("42P01", message).hint("name a table of FROM, or its alias")
        })?;
        if columns.is_empty() {
            let message = "SELECT * with no tables specified is not valid";
            return Err(Failure::new(state::SYNTAX, message).into());
        }
        let made = columns.into_iter().map(|column| {
            let mut expr = Expr::typed(column.sql.clone(), column.is).named(column.name.clone());
            expr.limit = column.limit;
            expr.not_null = column.not_null;
            if !scope.is_grouped(&column) {
                expr.bare.push((depth, column.name));
            }
            expr
        });
        Ok(Some(made.collect()))
    }

    /// Translates LIMIT and OFFSET, with a blank in front.
    pub(super) fn limits(&mut self, select: &SelectStmt) -> Translated<String> {
        if select.limit_option() == LimitOption::WithTies {
            return Err(hints::refuse("WITH TIES").into());
        }
        let count = self.limit(select.limit_count.as_deref(), "LIMIT")?;
        let offset = self.limit(select.limit_offset.as_deref(), "OFFSET")?;
        Ok(match (count, offset) {
            (None, None) => String::new(),
            (Some(count), None) => format!(" LIMIT {count}"),
            (count, Some(offset)) => {
                format!(" LIMIT {} OFFSET {offset}", count.unwrap_or_else(|| "-1".to_owned()))
            }
        })
    }

    fn limit(&mut self, node: Option<&Node>, word: &str) -> Translated<Option<String>> {
        let Some(node) = node else { return Ok(None) };
        let value = self.expr(node)?;
        if value.kind == ExprKind::Null {
            return Ok(None);
        }
        if value.bare.iter().any(|(at, _)| *at == self.scopes.depth()) {
            let message = format!("argument of {word} must not contain variables");
            return Err(Failure::new("42P10", message).into());
        }
        if !value.bare.is_empty() {
            return Err(hints::refuse("LIMIT of a column").into());
        }
        let value = self.typing.coerce(value, Type::Int8, Wanted::Assignment)?;
        let plain = value.sql.bytes().all(|byte| byte.is_ascii_digit());
        Ok(Some(match plain {
            true => value.sql,
            false => format!("refrain_limit({}, '{word}')", value.sql),
        }))
    }
}

fn refuse_parts(select: &SelectStmt) -> Result<(), Failure> {
    if select.into_clause.is_some() {
        return Err(hints::refuse("SELECT INTO"));
    }
    if select.group_distinct {
        return Err(hints::refuse("GROUPING SETS"));
    }
    Ok(())
}

/// Returns the value of a node in the list of SELECT.
pub(super) fn value_of(node: &Node) -> Option<&Node> {
    match &node.node {
        Some(NodeEnum::ResTarget(target)) => target.val.as_deref(),
        _ => None,
    }
}

fn is_named(node: &Node, wanted: &str) -> bool {
    matches!(&node.node, Some(NodeEnum::ResTarget(target)) if target.name == wanted)
}

fn called(target: &ResTarget, expr: &Expr) -> String {
    match (target.name.as_str(), &expr.name) {
        ("", Some(called)) => called.clone(),
        ("", None) => "?column?".to_owned(),
        (called, _) => called.to_owned(),
    }
}

pub(super) fn output(target: Target) -> Output {
    Output { name: target.name, is: target.expr.is(), limit: target.expr.limit }
}

/// Returns name and type of a column. A string without a type becomes a text.
pub(super) fn settled(column: &Output) -> (String, Type) {
    (column.name.clone(), column.is.unwrap_or(Type::Text))
}

/// Refuses two columns of one name where an enclosing query may name them.
pub(super) fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut known = std::collections::HashSet::new();
    for name in names {
        if !known.insert(name.to_ascii_lowercase()) {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(Failure::new("42702", message)
                .hint("give the columns of a subquery names of their own"));
        }
    }
    Ok(())
}

/// Refuses columns beside aggregates that are not in GROUP BY.
fn check_grouping(parts: &[Expr], depth: usize, grouped: bool) -> Result<(), Failure> {
    if !grouped && !parts.iter().any(|part| part.aggregate) {
        return Ok(());
    }
    let bare = parts.iter().flat_map(|part| &part.bare).find(|(at, _)| *at == depth);
    match bare {
        None => Ok(()),
        Some((_, column)) => {
            let message = format!(
                "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
            );
            Err(Failure::new("42803", message))
        }
    }
}

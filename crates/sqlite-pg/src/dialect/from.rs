//! FROM: tables, subqueries and joins.

use std::ops::Range;

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    FuncCall, JoinExpr, JoinType, Node, RangeFunction, RangeSubselect, RangeVar,
};

use crate::catalog;
use crate::failure::Failure;
use crate::types::Type;

use super::arrays::longest;
use super::arrays::no_partitions;
use super::coerce::Wanted;
use super::common_types::common;
use super::joins::{
    has_right, is_lateral, lateral, merge, merged, natural, no_recursion_within, too_many,
};
use super::nodes::names as names_of;
use super::schema_names::split;
use super::scope::{Column, FromItem, Scope, Scoped, Scopes};
use super::select::{ExpectedColumns, settled, unique};
use super::sequence_calls::computed_once;
use super::value::{Bare, as_element, name};
use super::{NotTranslated, Translated, Translator, hints, inner, strings};

/// The most tables that SQLite joins.
const TABLES_MAX: usize = 64;

impl Translator<'_> {
    /// Translates FROM. From then on the scope has its columns.
    pub(super) fn from(&mut self, nodes: &[Node], bare: &mut Vec<Bare>) -> Translated<String> {
        let mut words = Vec::new();
        for node in nodes {
            let item = self.item(node, bare)?;
            let is_join = matches!(node.node, Some(NodeEnum::JoinExpr(_))) && nodes.len() > 1;
            // In parentheses a LATERAL query would not see the items before them.
            words.push(match is_join && is_lateral(node) {
                true if has_right(node) => return Err(hints::refuse("LATERAL").into()),
                true => item,
                false if is_join => format!("({item})"),
                false => item,
            });
        }
        Ok(words.join(", "))
    }

    fn item(&mut self, node: &Node, bare: &mut Vec<Bare>) -> Translated<String> {
        match inner(node)? {
            NodeEnum::RangeVar(it) => self.named_table(it),
            NodeEnum::RangeSubselect(it) => self.subquery(it, bare),
            NodeEnum::JoinExpr(it) => self.join(it, bare),
            NodeEnum::RangeFunction(it) => self.function(it),
            other => Err(hints::node(other).into()),
        }
    }

    fn named_table(&mut self, table: &RangeVar) -> Translated<String> {
        let alias = table.alias.as_ref();
        let plain = table.schemaname.is_empty();
        let own = if plain { split(self.basis.catalog, &table.relname).1 } else { &table.relname };
        let called = alias.map_or(own, |alias| alias.aliasname.as_str());
        let renamed = alias.map(|alias| strings(&alias.colnames)).unwrap_or_default();
        let cte = if plain { self.scopes.with_query(&table.relname)? } else { None };
        let relation = || catalog::relation(&table.schemaname, &table.relname);
        let (written, mut source) = match cte {
            Some(cte) => {
                let source = FromItem::new(called, cte.columns.into_iter());
                (name(&cte.name), FromItem { recursive: cte.open, ..source })
            }
            None if let Some((known, columns)) = relation() => {
                self.typing.relations.push(known);
                (format!("{known} AS {}", name(called)), FromItem::new(called, columns.into_iter()))
            }
            None => {
                self.scopes.not_to_come(table)?;
                let (written, attributes) = self.basis.table(table)?;
                if plain {
                    self.named_tables.push(table.relname.clone());
                }
                (written, FromItem::table(called, &attributes))
            }
        };
        if renamed.is_empty() {
            let other = alias.is_some() || called != table.relname;
            let sql = match other && !written.contains(" AS ") {
                true => format!("{written} AS {}", name(called)),
                false => written,
            };
            self.scopes.add(source)?;
            return Ok(sql);
        }
        too_many(&renamed, source.columns.len(), called)?;
        source.renamed = true;
        let mut listed = Vec::new();
        for (index, column) in source.columns.iter_mut().enumerate() {
            let to = renamed.get(index).unwrap_or(&column.name).clone();
            listed.push(format!("{} AS {}", name(&column.name), name(&to)));
            column.sql = format!("{}.{}", name(called), name(&to));
            column.name = to;
        }
        self.scopes.add(source)?;
        Ok(format!("(SELECT {} FROM {written}) AS {}", listed.join(", "), name(called)))
    }

    fn subquery(&mut self, it: &RangeSubselect, bare: &mut Vec<Bare>) -> Translated<String> {
        let Some(NodeEnum::SelectStmt(select)) =
            it.subquery.as_ref().and_then(|query| query.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        let alias = it.alias.as_ref();
        let Some(alias) = alias else {
            // PostgreSQL 16 and later allow a subquery without an alias.
            return Err(Failure::new("42601", "subquery in FROM must have an alias")
                .hint("For example, FROM (SELECT ...) [AS] foo.")
                .into());
        };
        let renamed = strings(&alias.colnames);
        let place = ExpectedColumns { names: &renamed, ..ExpectedColumns::default() };
        let query = if it.lateral {
            self.query(select, place)?
        } else {
            // The subquery sees the enclosing queries, but not the other items of FROM.
            let scope = self.scopes.open.pop().unwrap_or_default();
            let (ctes, coming) = (scope.ctes.clone(), scope.coming.clone());
            let alone = Scope { ctes, coming, ..Scope::default() };
            let query = self.within(alone, |this| this.query(select, place));
            self.scopes.open.push(scope);
            query?
        };
        too_many(&renamed, query.columns.len(), &alias.aliasname)?;
        let columns: Vec<_> = query.columns.iter().map(settled).collect();
        unique(columns.iter().map(|(name, _)| name.as_str()))?;
        let depth = self.scopes.depth();
        bare.extend(query.bare.iter().filter(|(at, _)| *at < depth).cloned());
        let mut source = FromItem::new(&alias.aliasname, columns.into_iter());
        for (column, output) in source.columns.iter_mut().zip(&query.columns) {
            column.limit = output.limit;
        }
        let called = name(&alias.aliasname);
        let sql = match it.lateral {
            true => lateral(&query.sql, &called, &mut source)?,
            false => format!("({}) AS {called}", computed_once(query.sql)),
        };
        self.scopes.add(source)?;
        Ok(sql)
    }

    fn join(&mut self, it: &JoinExpr, bare: &mut Vec<Bare>) -> Translated<String> {
        if it.alias.is_some() || it.join_using_alias.is_some() {
            return Err(hints::refuse("(JOIN) AS").into());
        }
        let sources = |me: &Self| me.scopes.open.last().map_or(0, |scope| scope.sources.len());
        let joined_before =
            self.scopes.open.last_mut().map(|scope| std::mem::take(&mut scope.joined));
        let start = sources(self);
        let left = self.item(it.larg.as_deref().ok_or_else(hints::unknown)?, bare)?;
        let middle = sources(self);
        let left_joined =
            self.scopes.open.last_mut().map(|scope| std::mem::take(&mut scope.joined));
        let right_node = it.rarg.as_deref().ok_or_else(hints::unknown)?;
        let kind = it.jointype();
        let hides = matches!(kind, JoinType::JoinRight | JoinType::JoinFull);
        self.scopes.hide(start..middle, hides);
        let right = self.item(right_node, bare);
        self.scopes.hide(start..middle, false);
        let mut right = right?;
        if matches!(right_node.node, Some(NodeEnum::JoinExpr(_))) {
            right = format!("({right})");
        }
        let left_joined = left_joined.unwrap_or_default();
        if let Some(scope) = self.scopes.open.last() {
            no_recursion_within(&scope.sources, kind, start, middle)?;
        }
        if hides && is_lateral(right_node) {
            return Err(hints::refuse("LATERAL").into());
        }
        let mut using = strings(&it.using_clause);
        if it.is_natural {
            let sources = self.scopes.open.last().map_or(&[][..], |scope| &scope.sources[..]);
            using = natural(sources, start, middle, &left_joined);
        }
        let condition = match &it.quals {
            Some(quals) => {
                // ON sees both sides of the join, and no other item.
                let mut beside = self.scopes.open.last().cloned().unwrap_or_default();
                let mut inside = beside.clone();
                inside.sources.drain(..start);
                inside.joined.extend(left_joined.iter().cloned());
                std::mem::swap(self.scopes.open.last_mut().unwrap_or(&mut beside), &mut inside);
                let condition = self.condition(quals, "JOIN/ON");
                std::mem::swap(self.scopes.open.last_mut().unwrap_or(&mut beside), &mut inside);
                let condition = condition?;
                bare.extend(condition.bare);
                Some(format!("ON {}", condition.sql))
            }
            None if using.is_empty() => None,
            None => Some(self.scopes.using(&using, kind, (start, middle), &left_joined)?),
        };
        if let Some(scope) = self.scopes.open.last_mut() {
            let mut all = joined_before.unwrap_or_default();
            all.extend(std::mem::take(&mut scope.joined));
            let rest = left_joined.into_iter().filter(|column| !using.contains(&column.name));
            all.extend(rest);
            scope.joined = all;
            if kind != JoinType::JoinInner {
                let joined =
                    scope.sources[start..].iter_mut().flat_map(|source| &mut source.columns);
                joined.for_each(|column| column.not_null = false);
            }
        }
        let word = match kind {
            JoinType::JoinLeft => "LEFT JOIN",
            JoinType::JoinRight => "RIGHT JOIN",
            JoinType::JoinFull => "FULL JOIN",
            _ if condition.is_none() => "CROSS JOIN",
            _ => "JOIN",
        };
        Ok(format!("{left} {word} {right} {}", condition.unwrap_or_default()))
    }

    /// Translates `generate_series` of integers, the one function that may stand in FROM.
    fn function(&mut self, it: &RangeFunction) -> Translated<String> {
        let first = match &it.functions[..] {
            [only] if it.coldeflist.is_empty() => match &only.node {
                Some(NodeEnum::List(list)) => {
                    list.items.first().and_then(|node| node.node.as_ref())
                }
                _ => None,
            },
            _ => None,
        };
        let Some(NodeEnum::FuncCall(call)) = first else {
            return Err(hints::refuse("a function in FROM").into());
        };
        let called = names_of(&call.funcname).pop().unwrap_or_default();
        if super::SQLITE_FUNCTIONS.contains(&called.as_str()) || called.starts_with("pragma_") {
            return Err(NotTranslated::Sqlite);
        }
        if called == "pg_get_keywords" && !it.ordinality && call.args.is_empty() {
            let (relname, alias) = (called, it.alias.clone());
            return self.named_table(&RangeVar { relname, alias, ..RangeVar::default() });
        }
        if called != "generate_series" {
            return self.other_function(it, call, &called);
        }
        if it.ordinality || !(2..=3).contains(&call.args.len()) {
            return Err(hints::refuse("a function in FROM").into());
        }
        let (mut values, mut lateral) = (Vec::new(), false);
        let mut is = Type::Int4;
        for node in &call.args {
            let value = self.expr(node)?;
            match value.is() {
                Some(Type::Int2 | Type::Int4) | None => {}
                Some(Type::Int8) => is = Type::Int8,
                _ => return Err(hints::refuse("a function in FROM").into()),
            }
            lateral |= !value.bare.is_empty();
            values.push(value);
        }
        let mut words = Vec::new();
        for value in values {
            words.push(self.typing.coerce(value, is, Wanted::Implicit)?.sql);
        }
        let alias = it.alias.as_ref();
        let called = alias.map_or("generate_series", |alias| alias.aliasname.as_str()).to_owned();
        let columns = alias.map(|alias| strings(&alias.colnames)).unwrap_or_default();
        let column = columns.first().cloned().unwrap_or_else(|| called.clone());
        let step = words.get(2).map_or("1", String::as_str);
        if lateral {
            let (from, to) = (&words[0], &words[1]);
            let sql =
                format!("json_each(refrain_series({from}, {to}, {step})) AS {}", name(&called));
            let mut made = FromItem::new(&called, std::iter::once((column, is)));
            made.columns[0].sql = format!("{}.value", name(&called));
            self.scopes.add(made)?;
            return Ok(sql);
        }
        let sql = format!(
            "(WITH RECURSIVE refrain_from(x, stop, step) AS (SELECT {}, {}, refrain_step({step})), \
             refrain_series(x, stop, step) AS (SELECT x, stop, step FROM refrain_from \
             WHERE CASE WHEN step > 0 THEN x <= stop ELSE x >= stop END UNION ALL \
             SELECT x + step, stop, step FROM refrain_series \
             WHERE CASE WHEN step > 0 THEN x + step <= stop ELSE x + step >= stop END) \
             SELECT x AS {} FROM refrain_series) AS {}",
            words[0],
            words[1],
            name(&column),
            name(&called)
        );
        self.scopes.add(FromItem::new(&called, std::iter::once((column, is))))?;
        Ok(sql)
    }

    /// Translates a function other than `generate_series` in FROM: one that makes rows of an array,
    /// or one with a single value.
    fn other_function(
        &mut self,
        it: &RangeFunction,
        call: &FuncCall,
        called: &str,
    ) -> Translated<String> {
        let rows = matches!(called, "unnest" | "generate_subscripts" | "pg_partition_ancestors");
        let single = !it.ordinality && !it.lateral;
        if it.is_rowsfrom || !rows && !single {
            return Err(hints::refuse("a function in FROM").into());
        }
        let alias = it.alias.as_ref();
        let source = alias.map_or(called, |alias| alias.aliasname.as_str()).to_owned();
        let (sql, mut columns) = match rows {
            true => self.array_in_from(call, called, &source, it.ordinality)?,
            false => self.value_in_from(call, &source)?,
        };
        let renamed = alias.map(|alias| strings(&alias.colnames)).unwrap_or_default();
        for (place, (column, ..)) in columns.iter_mut().enumerate() {
            match renamed.get(place) {
                Some(name) => name.clone_into(column),
                // One column has the name of the alias.
                None if place == 0 && renamed.is_empty() => source.clone_into(column),
                None => {}
            }
        }
        let plain = columns.iter().map(|(name, _, is)| (name.clone(), *is));
        let mut made = FromItem::new(&source, plain);
        for (known, (_, sql, _)) in made.columns.iter_mut().zip(columns) {
            known.sql = sql;
        }
        self.scopes.add(made)?;
        Ok(sql)
    }

    /// Translates `unnest` and `generate_subscripts` in FROM. Returns the SQL and the columns.
    fn array_in_from(
        &mut self,
        call: &FuncCall,
        called: &str,
        source: &str,
        numbered: bool,
    ) -> Translated<(String, Vec<FunctionColumn>)> {
        let mut all =
            call.args.iter().map(|node| self.expr(node)).collect::<Result<Vec<_>, _>>()?;
        let subscripts = called == "generate_subscripts";
        if subscripts {
            let [array, dimension] = &all[..] else {
                return Err(hints::refuse("a function in FROM").into());
            };
            all = vec![self.typing.of_dimension(array.clone(), dimension.clone())?];
        }
        if called == "pg_partition_ancestors" {
            all = vec![no_partitions()];
        }
        let key = format!("{}.key", name(source));
        let (mut arrays, mut columns) = (Vec::new(), Vec::new());
        for array in &all {
            let Some(of) = array.is().and_then(Type::element) else {
                return Err(hints::refuse("a function in FROM").into());
            };
            let first = array.is().map_or(1, Type::first_subscript);
            arrays.push(array.sql.clone());
            columns.push(match subscripts {
                true => (called.to_owned(), format!("({key} + {first})"), Type::Int4),
                false => (called.to_owned(), format!("({} ->> {key})", array.sql), of),
            });
        }
        if numbered {
            columns.push(("ordinality".to_owned(), format!("({key} + 1)"), Type::Int8));
        }
        Ok((format!("json_each({}) AS {}", longest(&arrays), name(source)), columns))
    }

    /// Translates a function with a single value in FROM.
    fn value_in_from(
        &mut self,
        call: &FuncCall,
        source: &str,
    ) -> Translated<(String, Vec<FunctionColumn>)> {
        let value = self.call(call)?;
        let value = self.typing.settle(value)?;
        if value.aggregate {
            return Err(hints::aggregate("functions in FROM").into());
        }
        let (is, depth) = (value.is().unwrap_or(Type::Text), self.scopes.depth());
        let sql = match value.bare.iter().any(|(at, _)| *at == depth) {
            // SQLite computes the arguments of a function for each row of the items before it.
            true if is == Type::Bytea => return Err(hints::refuse("LATERAL").into()),
            true => {
                format!("json_each(json_array({})) AS {}", as_element(&value.sql, is), name(source))
            }
            false => format!("(SELECT {} AS value) AS {}", value.sql, name(source)),
        };
        Ok((sql, vec![(source.to_owned(), format!("{}.value", name(source)), is)]))
    }
}

impl Scopes {
    fn add(&mut self, source: FromItem) -> Translated<()> {
        let Some(scope) = self.open.last_mut() else { return Ok(()) };
        if scope.sources.iter().any(|known| known.alias.eq_ignore_ascii_case(&source.alias)) {
            let message = format!("table name \"{}\" specified more than once", source.alias);
            return Err(Failure::new("42712", message)
                .hint("give each table of FROM a name of its own: t AS a")
                .into());
        }
        if scope.sources.len() == TABLES_MAX {
            let message = format!("a FROM of more than {TABLES_MAX} tables is not supported");
            return Err(Failure::new("54000", message)
                .hint("join some of the tables in a subquery")
                .into());
        }
        scope.sources.push(source);
        Ok(())
    }

    /// Refuses a query of WITH RECURSIVE that reads a later one, or itself outside of the second
    /// part of a UNION.
    fn not_to_come(&self, table: &RangeVar) -> Translated<()> {
        let coming = |scope: &Scope| scope.coming.contains(&table.relname);
        let Some(scope) = self.open.iter().rev().find(|scope| coming(scope)) else {
            return Ok(());
        };
        if !table.schemaname.is_empty() {
            return Ok(());
        }
        if scope.coming.first() != Some(&table.relname) {
            return Err(hints::refuse("a WITH that comes later").into());
        }
        let message = format!(
            "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] recursive-term",
            table.relname
        );
        Err(Failure::new("42P19", message).into())
    }

    /// Hides items of the innermost FROM from the item that is translated next, or shows them
    /// again.
    fn hide(&mut self, items: Range<usize>, hidden: bool) {
        let scope = self.open.last_mut();
        let sources = scope.into_iter().flat_map(|scope| &mut scope.sources[items.clone()]);
        sources.for_each(|source| source.hidden = hidden);
    }

    /// Translates USING: plain names and `*` see one column for the two.
    fn using(
        &mut self,
        names: &[String],
        kind: JoinType,
        (start, middle): (usize, usize),
        left_joined: &[Column],
    ) -> Translated<String> {
        let Some(scope) = self.open.last_mut() else { return Ok(String::new()) };
        let (before, after) = scope.sources.split_at_mut(middle);
        let mut conditions = Vec::new();
        let mut joined = Vec::new();
        for wanted in names {
            let missing = |side: &str| {
                let message = format!(
                    "column \"{wanted}\" specified in USING clause does not exist in {side} table"
                );
                Failure::new("42703", message)
            };
            let earlier = left_joined.iter().find(|column| column.name == *wanted).cloned();
            let left = match earlier {
                Some(column) => column,
                None => merge(&mut before[start..], wanted).ok_or_else(|| missing("left"))?,
            };
            let right = merge(after, wanted).ok_or_else(|| missing("right"))?;
            let is = common(left.is, right.is).ok_or_else(|| {
                let message = format!(
                    "JOIN/USING types {} and {} cannot be matched",
                    left.is.name(),
                    right.is.name()
                );
                Failure::new("42804", message)
            })?;
            if is == Type::Bpchar || left.is != right.is && !is.is_integer() {
                return Err(hints::refuse("USING of two types").into());
            }
            conditions.push(format!("({} = {})", left.sql, right.sql));
            joined.push(merged(left, &right, is, kind));
        }
        scope.joined.extend(joined);
        Ok(format!("ON {}", conditions.join(" AND ")))
    }
}

/// A column of a function in FROM: its name, its SQL and its type.
type FunctionColumn = (String, String, Type);

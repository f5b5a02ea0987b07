//! The walk over the tree of a statement.
//!
//! What: [`Walk`] visits all nodes in which constants may stand and passes each constant to
//! [`Slots`], which finds its literal. On the way down it carries a [`Place`]: the reason, if any,
//! for keeping all literals below.
//!
//! What always holds: no literal below an unknown kind of node becomes a parameter. The first
//! reason on the way down is the one that is shown.
//!
//! What it does not do: look at values. The treatment of a literal depends on the normalized query,
//! not on the text.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AConst, AExpr, AExprKind, CaseExpr, FuncCall, InferClause, InsertStmt, JoinExpr, JoinType,
    Node, RangeTableSample, RangeVar, ReturningClause, SelectStmt, SubLink, TypeCast, TypeName,
    WithClause,
};
use refrain_sql::normalize::Store;

use crate::names::{is_comparing, is_keyed, is_moving_type, is_type, kept_argument, takes_any};
use crate::rules::*;
use crate::slots::Slots;
use crate::stores::stores;
use crate::tree::{
    built_in, children, computes, constant, has_column, is_constant, is_list, is_starred,
    relation_name, returns, row, string, type_name,
};

/// The reason why all literals from here on down are kept, if they are.
#[derive(Clone, Copy)]
struct Place(Option<&'static Rule>);

impl Place {
    /// Returns a place further down with a reason of its own.
    fn inside(self, rule: &'static Rule) -> Place {
        Place(self.0.or(Some(rule)))
    }

    /// [`Place::inside`] if `applies`.
    fn inside_if(self, applies: bool, rule: &'static Rule) -> Place {
        if applies { self.inside(rule) } else { self }
    }
}

/// The walk; see the module.
pub(crate) struct Walk<'a> {
    pub(crate) slots: Slots<'a>,
    /// The reason why the whole text is left alone.
    pub(crate) never: Option<&'static Rule>,
    /// The tables that it writes to, as SQL names them.
    pub(crate) writes: Vec<String>,
    /// The relations from which it reads.
    pub(crate) reads: Vec<String>,
    /// Functions that are called with constants only.
    pub(crate) constant_calls: Vec<String>,
    /// True if `*` decides which columns it returns.
    pub(crate) starred: bool,
    /// Literals that an INSERT stores as they are.
    pub(crate) stores: Vec<Store>,
    /// True if it has other literals.
    pub(crate) computes: bool,
}

impl<'a> Walk<'a> {
    /// Creates a walk that has visited nothing yet.
    pub(crate) fn new(slots: Slots<'a>) -> Self {
        let (writes, reads, constant_calls) = Default::default();
        let (starred, stores, computes) = Default::default();
        Walk { slots, never: None, writes, reads, constant_calls, starred, stores, computes }
    }

    /// Walks a statement. A statement without a plan is left alone.
    pub(crate) fn statement(&mut self, node: &Node) {
        match node.node {
            Some(
                NodeEnum::SelectStmt(_)
                | NodeEnum::InsertStmt(_)
                | NodeEnum::UpdateStmt(_)
                | NodeEnum::DeleteStmt(_)
                | NodeEnum::MergeStmt(_),
            ) => {
                self.starred = returns(node).into_iter().any(is_starred);
                self.node(node, Place(None));
                if let Some(NodeEnum::InsertStmt(it)) = &node.node {
                    (self.stores, self.computes) = stores(it, &self.slots);
                }
            }
            _ => self.never = Some(&UTILITY),
        }
    }

    fn nodes<'b>(&mut self, nodes: impl IntoIterator<Item = &'b Node>, place: Place) {
        nodes.into_iter().for_each(|node| self.node(node, place));
    }

    fn maybe(&mut self, node: &Option<Box<Node>>, place: Place) {
        self.nodes(node.iter().map(AsRef::as_ref), place);
    }

    fn node(&mut self, node: &Node, place: Place) {
        let Some(node) = &node.node else { return };
        match node {
            NodeEnum::AConst(it) => self.constant(it, place),
            NodeEnum::SelectStmt(it) => self.select(it, place),
            NodeEnum::InsertStmt(it) => self.insert(it, place),
            NodeEnum::UpdateStmt(it) => {
                self.target(&it.relation);
                self.with(&it.with_clause, place);
                self.nodes(it.target_list.iter().chain(&it.from_clause), place);
                self.maybe(&it.where_clause, place);
                self.returning(&it.returning_clause, place);
            }
            NodeEnum::DeleteStmt(it) => {
                self.target(&it.relation);
                self.with(&it.with_clause, place);
                self.nodes(&it.using_clause, place);
                self.maybe(&it.where_clause, place);
                self.returning(&it.returning_clause, place);
            }
            NodeEnum::MergeStmt(it) => {
                self.target(&it.relation);
                self.with(&it.with_clause, place);
                self.maybe(&it.source_relation, place);
                self.maybe(&it.join_condition, place);
                self.nodes(&it.merge_when_clauses, place);
                self.returning(&it.returning_clause, place);
            }
            NodeEnum::JoinExpr(it) => self.join(it, place),
            NodeEnum::RangeTableSample(it) => self.sample(it, place),
            NodeEnum::RangeVar(it) => self.reads.push(relation_name(it)),
            NodeEnum::CurrentOfExpr(_) => self.never = Some(&CURRENT_OF),
            NodeEnum::MultiAssignRef(it) => {
                let source = it.source.as_deref();
                match source.and_then(row) {
                    Some(elements) => self.nodes(elements, place),
                    None => self.nodes(source, place),
                }
            }
            _ => self.expression(node, place),
        }
    }

    fn expression(&mut self, node: &NodeEnum, place: Place) {
        match node {
            NodeEnum::AExpr(it) => self.operator(it, place),
            NodeEnum::FuncCall(it) => self.call(it, place),
            NodeEnum::TypeCast(it) => self.cast(it, place),
            NodeEnum::SubLink(it) => self.sublink(it, place),
            NodeEnum::RowExpr(it) => self.strings(&it.args, &UNTYPED, place),
            NodeEnum::NullTest(it) => {
                self.strings(it.arg.iter().map(AsRef::as_ref), &UNTYPED, place)
            }
            NodeEnum::CollateClause(it) => {
                self.strings(it.arg.iter().map(AsRef::as_ref), &COLLATE, place);
            }
            NodeEnum::XmlExpr(_) | NodeEnum::XmlSerialize(_) | NodeEnum::RangeTableFunc(_) => {
                self.nodes(children(node), place.inside(&XML));
            }
            NodeEnum::WindowDef(_) => self.nodes(children(node), place.inside(&WINDOW)),
            NodeEnum::CaseExpr(it) => self.case(it, place),
            _ => self.nodes(children(node), place),
        }
    }

    /// Records a table that is written.
    fn target(&mut self, relation: &Option<RangeVar>) {
        let names = relation.iter().map(relation_name);
        self.writes.extend(names);
    }

    fn constant(&mut self, constant: &AConst, place: Place) {
        match place.0 {
            Some(rule) => self.slots.keep(constant, rule),
            None => self.slots.parameter(constant),
        }
    }

    /// Walks nodes; direct strings among them are kept.
    fn strings<'b>(
        &mut self,
        nodes: impl IntoIterator<Item = &'b Node>,
        rule: &'static Rule,
        place: Place,
    ) {
        for node in nodes {
            self.node(node, place.inside_if(string(node).is_some(), rule));
        }
    }

    fn select(&mut self, select: &SelectStmt, place: Place) {
        if select.into_clause.is_some() {
            self.never = Some(&UTILITY);
        }
        self.with(&select.with_clause, place);
        for side in select.larg.iter().chain(&select.rarg) {
            self.select(side, place);
        }
        let grouped = !select.group_clause.is_empty() || !select.distinct_clause.is_empty();
        let listed = place.inside_if(grouped, &GROUPED);
        self.nodes(&select.target_list, listed);
        self.maybe(&select.having_clause, listed);
        self.nodes(&select.distinct_clause, place.inside(&DISTINCT_ON));
        self.nodes(&select.group_clause, place.inside(&GROUP_BY));
        self.nodes(&select.sort_clause, place.inside(&ORDER_BY));
        self.nodes(&select.window_clause, place);
        self.nodes(&select.from_clause, place);
        self.maybe(&select.where_clause, place);
        self.nodes(&select.values_lists, place);
        self.maybe(&select.limit_offset, place);
        self.maybe(&select.limit_count, place);
    }

    fn insert(&mut self, insert: &InsertStmt, place: Place) {
        self.target(&insert.relation);
        self.with(&insert.with_clause, place);
        self.nodes(&insert.cols, place);
        self.maybe(&insert.select_stmt, place);
        if let Some(conflict) = &insert.on_conflict_clause {
            if let Some(infer) = &conflict.infer {
                self.infer(infer, place.inside(&CONFLICT));
            }
            self.nodes(&conflict.target_list, place);
            self.maybe(&conflict.where_clause, place);
        }
        self.returning(&insert.returning_clause, place);
    }

    fn infer(&mut self, infer: &InferClause, place: Place) {
        self.nodes(&infer.index_elems, place);
        self.maybe(&infer.where_clause, place);
    }

    fn returning(&mut self, returning: &Option<ReturningClause>, place: Place) {
        self.nodes(returning.iter().flat_map(|it| &it.exprs), place);
    }

    fn with(&mut self, with: &Option<WithClause>, place: Place) {
        for table in with.iter().flat_map(|with| &with.ctes) {
            let Some(NodeEnum::CommonTableExpr(table)) = &table.node else { continue };
            self.maybe(&table.ctequery, place);
            if let Some(cycle) = &table.cycle_clause {
                self.maybe(&cycle.cycle_mark_value, place.inside(&CYCLE));
                self.maybe(&cycle.cycle_mark_default, place.inside(&CYCLE));
            }
        }
    }

    fn join(&mut self, join: &JoinExpr, place: Place) {
        self.maybe(&join.larg, place);
        self.maybe(&join.rarg, place);
        let full = join.jointype() == JoinType::JoinFull;
        self.maybe(&join.quals, place.inside_if(full, &FULL_JOIN));
    }

    fn sample(&mut self, sample: &RangeTableSample, place: Place) {
        self.maybe(&sample.relation, place);
        self.nodes(&sample.args, place.inside(&SAMPLE));
        self.maybe(&sample.repeatable, place.inside(&SAMPLE));
    }

    fn sublink(&mut self, sublink: &SubLink, place: Place) {
        self.maybe(&sublink.subselect, place);
        let tested = sublink.testexpr.as_deref();
        match tested.and_then(row) {
            // Each element is compared with a column.
            Some(elements) => self.nodes(elements, place),
            None => self.nodes(tested, place),
        }
    }

    fn operator(&mut self, it: &AExpr, place: Place) {
        let (Some(left), Some(right)) = (it.lexpr.as_deref(), it.rexpr.as_deref()) else {
            return self.nodes(it.lexpr.iter().chain(&it.rexpr).map(AsRef::as_ref), place);
        };
        let name = built_in_operator(it);
        let indexed = |side: &Node, other: &Node| {
            is_comparing(name) && computes(side) && has_column(side) && !has_column(other)
        };
        let rows = row(left).is_some() && (row(right).is_some() || is_list(right));
        self.operand(left, rows, place.inside_if(indexed(left, right), &INDEXED));
        let key = it.kind() == AExprKind::AexprOp && is_keyed(name) && constant(right).is_some();
        let right_place = place.inside_if(key || indexed(right, left), &INDEXED);
        self.operand(right, rows, right_place);
    }

    /// Walks one side of an operator. If both sides are rows, they are compared element by element.
    fn operand(&mut self, node: &Node, rows: bool, place: Place) {
        match &node.node {
            Some(NodeEnum::RowExpr(it)) if rows => self.nodes(&it.args, place),
            Some(NodeEnum::List(it)) => {
                it.items.iter().for_each(|item| self.operand(item, rows, place));
            }
            _ => self.node(node, place),
        }
    }

    /// Walks a CASE. If the planner can decide a condition, it does so, and the rest has a
    /// different type modifier.
    fn case(&mut self, case: &CaseExpr, place: Place) {
        let argument = case.arg.as_deref();
        let decided = argument.is_none_or(is_constant);
        self.nodes(argument, place.inside_if(decided, &CASE_CONDITION));
        for branch in &case.args {
            let Some(NodeEnum::CaseWhen(branch)) = &branch.node else { continue };
            match branch.expr.as_deref() {
                Some(condition) if decided => self.condition(condition, place),
                condition => self.nodes(condition, place),
            }
            self.maybe(&branch.result, place);
        }
        self.maybe(&case.defresult, place);
    }

    fn condition(&mut self, condition: &Node, place: Place) {
        match &condition.node {
            Some(NodeEnum::BoolExpr(it)) => {
                it.args.iter().for_each(|part| self.condition(part, place));
            }
            _ => self.node(condition, place.inside_if(is_constant(condition), &CASE_CONDITION)),
        }
    }

    fn call(&mut self, call: &FuncCall, place: Place) {
        let parameters = self.slots.parameters();
        self.arguments(call, place);
        let constant = parameters == self.slots.parameters() && !call.args.iter().any(has_column);
        if constant
            && let Some(NodeEnum::String(name)) = call.funcname.last().and_then(|n| n.node.as_ref())
        {
            self.constant_calls.push(name.sval.clone());
        }
    }

    fn arguments(&mut self, call: &FuncCall, place: Place) {
        let name = built_in(&call.funcname).unwrap_or_default();
        let place = place.inside_if(call.agg_distinct, &AGGREGATE);
        match &*call.args {
            [argument] if is_type(name) && constant(argument).is_some() => {
                if string(argument).is_some() && is_moving_type(name) {
                    self.never = Some(&CALLED_CLOCK);
                }
                self.strings([argument], &CALLED_TYPE, place);
            }
            arguments if takes_any(name) => self.strings(arguments, &UNTYPED, place),
            arguments => {
                for (argument, at) in arguments.iter().zip(0..) {
                    let rule = kept_argument(name, at).filter(|_| constant(argument).is_some());
                    self.node(argument, rule.map_or(place, |rule| place.inside(rule)));
                }
            }
        }
        self.nodes(&call.agg_order, place.inside(&AGGREGATE));
        self.maybe(&call.agg_filter, place);
        if let Some(window) = &call.over {
            let window = NodeEnum::WindowDef(window.clone());
            self.expression(&window, place);
        }
    }

    fn cast(&mut self, cast: &TypeCast, place: Place) {
        let (Some(argument), Some(to)) = (cast.arg.as_deref(), &cast.type_name) else { return };
        let literal = constant(argument);
        // The grammar gives a typed literal just the places of its parts.
        let typed = cast.location < 0;
        let rule = literal.and_then(|_| cast_rule(argument, to, typed));
        self.nodes(&to.typmods, place.inside(rule.unwrap_or(&TYPE_MODIFIER)));
        match (literal, place.0.or(rule)) {
            (None, _) => self.node(argument, place),
            (Some(literal), Some(rule)) => self.slots.keep(literal, rule),
            (Some(literal), None) if typed => self.slots.typed(literal, to),
            (Some(literal), None) => self.slots.parameter(literal),
        }
    }
}

/// Returns the rule by which a literal is kept that is cast to a type, or that follows the type's
/// name if it is `typed`.
fn cast_rule(literal: &Node, to: &TypeName, typed: bool) -> Option<&'static Rule> {
    let modified = !to.typmods.is_empty();
    match type_name(to).filter(|name| is_type(name)) {
        None => Some(&OWN_TYPE),
        Some("interval") if modified && string(literal).is_some() => Some(&INTERVAL_FIELDS),
        Some("bpchar" | "bit") if typed => Some(&TYPED_CHARACTER),
        Some(_) if typed && modified => Some(&TYPED_MODIFIER),
        Some(_) => None,
    }
}

/// Returns the operator of an expression, if it is written like a built-in one.
fn built_in_operator(it: &AExpr) -> &str {
    match it.kind() {
        AExprKind::AexprIn | AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => "=",
        AExprKind::AexprBetween
        | AExprKind::AexprNotBetween
        | AExprKind::AexprBetweenSym
        | AExprKind::AexprNotBetweenSym => "<=",
        _ => built_in(&it.name).unwrap_or_default(),
    }
}

//! Questions about nodes of the tree that do not depend on a rule.

use pg_query::protobuf::{AConst, Node, RangeVar, SelectStmt, TypeName};
use pg_query::{NodeEnum, protobuf};

/// Returns the child nodes of an expression, or of a clause that holds nothing but expressions. Of
/// any other node, none: nodes below it are not examined.
pub(crate) fn children(node: &NodeEnum) -> Vec<&Node> {
    match node {
        NodeEnum::List(it) => it.items.iter().collect(),
        NodeEnum::AExpr(it) => it.lexpr.iter().chain(&it.rexpr).map(AsRef::as_ref).collect(),
        NodeEnum::BoolExpr(it) => it.args.iter().collect(),
        NodeEnum::NullTest(it) => it.arg.iter().map(AsRef::as_ref).collect(),
        NodeEnum::BooleanTest(it) => it.arg.iter().map(AsRef::as_ref).collect(),
        NodeEnum::FuncCall(it) => it.args.iter().collect(),
        NodeEnum::NamedArgExpr(it) => it.arg.iter().map(AsRef::as_ref).collect(),
        NodeEnum::TypeCast(it) => it.arg.iter().map(AsRef::as_ref).collect(),
        NodeEnum::CollateClause(it) => it.arg.iter().map(AsRef::as_ref).collect(),
        NodeEnum::CaseExpr(it) => {
            let ends = it.arg.iter().chain(&it.defresult).map(AsRef::as_ref);
            ends.chain(&it.args).collect()
        }
        NodeEnum::CaseWhen(it) => it.expr.iter().chain(&it.result).map(AsRef::as_ref).collect(),
        NodeEnum::CoalesceExpr(it) => it.args.iter().collect(),
        NodeEnum::MinMaxExpr(it) => it.args.iter().collect(),
        NodeEnum::AArrayExpr(it) => it.elements.iter().collect(),
        NodeEnum::AIndices(it) => it.lidx.iter().chain(&it.uidx).map(AsRef::as_ref).collect(),
        NodeEnum::AIndirection(it) => {
            it.arg.iter().map(AsRef::as_ref).chain(&it.indirection).collect()
        }
        NodeEnum::RowExpr(it) => it.args.iter().collect(),
        NodeEnum::XmlExpr(it) => it.named_args.iter().chain(&it.args).collect(),
        NodeEnum::XmlSerialize(it) => it.expr.iter().map(AsRef::as_ref).collect(),
        NodeEnum::ResTarget(it) => {
            it.val.iter().map(AsRef::as_ref).chain(&it.indirection).collect()
        }
        NodeEnum::SortBy(it) => it.node.iter().map(AsRef::as_ref).collect(),
        NodeEnum::GroupingSet(it) => it.content.iter().collect(),
        NodeEnum::WindowDef(it) => {
            let bounds = it.start_offset.iter().chain(&it.end_offset).map(AsRef::as_ref);
            bounds.chain(&it.partition_clause).chain(&it.order_clause).collect()
        }
        NodeEnum::IndexElem(it) => it.expr.iter().map(AsRef::as_ref).collect(),
        NodeEnum::RangeSubselect(it) => it.subquery.iter().map(AsRef::as_ref).collect(),
        NodeEnum::RangeFunction(it) => it.functions.iter().collect(),
        NodeEnum::RangeTableFunc(it) => {
            let parts = it.docexpr.iter().chain(&it.rowexpr).map(AsRef::as_ref);
            parts.chain(&it.namespaces).chain(&it.columns).collect()
        }
        NodeEnum::RangeTableFuncCol(it) => {
            it.colexpr.iter().chain(&it.coldefexpr).map(AsRef::as_ref).collect()
        }
        NodeEnum::MergeWhenClause(it) => {
            let condition = it.condition.iter().map(AsRef::as_ref);
            condition.chain(&it.target_list).chain(&it.values).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the constant that a node is, or that it passes to a function as a named argument.
pub(crate) fn constant(node: &Node) -> Option<&AConst> {
    match node.node.as_ref()? {
        NodeEnum::AConst(it) => Some(it),
        NodeEnum::NamedArgExpr(it) => constant(it.arg.as_ref()?),
        _ => None,
    }
}

/// Returns the string constant that a node is.
pub(crate) fn string(node: &Node) -> Option<&AConst> {
    let is_string = |it: &&AConst| matches!(it.val, Some(protobuf::a_const::Val::Sval(_)));
    constant(node).filter(is_string)
}

/// Returns the elements of a row.
pub(crate) fn row(node: &Node) -> Option<&[Node]> {
    match node.node.as_ref()? {
        NodeEnum::RowExpr(it) => Some(&it.args),
        _ => None,
    }
}

pub(crate) fn is_list(node: &Node) -> bool {
    matches!(node.node, Some(NodeEnum::List(_)))
}

/// True if an expression names a column, outside its subqueries.
pub(crate) fn has_column(node: &Node) -> bool {
    match &node.node {
        Some(NodeEnum::ColumnRef(_)) => true,
        Some(node) => children(node).into_iter().any(has_column),
        None => false,
    }
}

/// True if the planner may be able to evaluate an expression: it names no column and has no
/// subquery.
pub(crate) fn is_constant(node: &Node) -> bool {
    match &node.node {
        Some(NodeEnum::ColumnRef(_) | NodeEnum::SubLink(_)) => false,
        Some(node) => children(node).into_iter().all(is_constant),
        None => true,
    }
}

/// Returns the expressions that a statement returns.
pub(crate) fn returns(statement: &Node) -> Vec<&Node> {
    let returning = match &statement.node {
        Some(NodeEnum::SelectStmt(it)) => return selects(it),
        Some(NodeEnum::InsertStmt(it)) => &it.returning_clause,
        Some(NodeEnum::UpdateStmt(it)) => &it.returning_clause,
        Some(NodeEnum::DeleteStmt(it)) => &it.returning_clause,
        Some(NodeEnum::MergeStmt(it)) => &it.returning_clause,
        _ => &None,
    };
    returning.iter().flat_map(|it| &it.exprs).collect()
}

fn selects(select: &SelectStmt) -> Vec<&Node> {
    let sides = select.larg.iter().chain(&select.rarg).flat_map(|side| selects(side));
    select.target_list.iter().chain(sides).collect()
}

/// True if a returned expression is `*`, of a table or of a row.
pub(crate) fn is_starred(target: &Node) -> bool {
    let Some(NodeEnum::ResTarget(target)) = &target.node else { return false };
    let parts = match target.val.as_deref().and_then(|value| value.node.as_ref()) {
        Some(NodeEnum::ColumnRef(it)) => &it.fields,
        Some(NodeEnum::AIndirection(it)) => &it.indirection,
        _ => return false,
    };
    parts.iter().any(|part| matches!(part.node, Some(NodeEnum::AStar(_))))
}

/// True if a node computes a value.
pub(crate) fn computes(node: &Node) -> bool {
    matches!(
        node.node,
        Some(
            NodeEnum::AExpr(_)
                | NodeEnum::FuncCall(_)
                | NodeEnum::TypeCast(_)
                | NodeEnum::CoalesceExpr(_)
                | NodeEnum::CaseExpr(_)
                | NodeEnum::AIndirection(_)
        )
    )
}

/// Returns a name that may be built in: it is unqualified, or in `pg_catalog`.
pub(crate) fn built_in(names: &[Node]) -> Option<&str> {
    let mut names = names.iter().map(|name| match &name.node {
        Some(NodeEnum::String(it)) => it.sval.as_str(),
        _ => "",
    });
    match (names.next()?, names.next(), names.next()) {
        (name, None, None) | ("pg_catalog", Some(name), None) => Some(name),
        _ => None,
    }
}

/// Returns the name of a type that is written like a built-in one.
pub(crate) fn type_name(name: &TypeName) -> Option<&str> {
    let plain = !name.setof && !name.pct_type;
    built_in(&name.names).filter(|_| plain)
}

/// Returns the name of a table as SQL writes it.
pub(crate) fn relation_name(relation: &RangeVar) -> String {
    let parts = [&relation.schemaname, &relation.relname];
    let quoted = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(".")
}

//! Reads: whether the tree of a text is one SELECT that writes and locks nothing, and what it
//! mentions.
//!
//! What: [`read`] walks the whole tree, and returns the first objection, or all names about which
//! the catalog has to say more. [`Walk`] walks statements that write as well, for
//! [`crate::effect()`].
//!
//! What always holds: a kind of node that [`Walk::node`] does not list is an objection
//! ([`Objection::Form`]), so that no name in a new kind of expression is missed.

use pg_query::NodeEnum;
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{
    AConst, CmdType, ColumnRef, CommonTableExpr, DeleteStmt, FuncCall, InsertStmt, MergeStmt, Node,
    OnConflictAction, OnConflictClause, RangeFunction, RangeVar, ReturningClause, SelectStmt,
    SqlValueFunctionOp, SubLink, TypeCast, TypeName, UpdateStmt, WithClause,
};
use refrain_sql::effect::{Target, Way};
use refrain_sql::moments::names_moment;
use refrain_sql::reads::{Mentioned, Objection, Unkept};

use crate::names;
use crate::parse::{Fault, statement};
use crate::tree::{children, relation_name};

/// The schema of a session's own objects.
const TEMPORARY: &str = "pg_temp";

/// Returns what a text mentions, if its tree does not show that it is no read. The thread needs a
/// stack of [`crate::STACK`] bytes.
///
/// # Errors
/// The first objection.
pub fn read(text: &str) -> Result<Mentioned, Objection> {
    let tree = statement(text).map_err(|fault| match fault {
        Fault::Syntax(_) => Objection::Syntax,
        Fault::Deep => Objection::Deep,
        Fault::NotOne => Objection::Kind,
    })?;
    let Some(NodeEnum::SelectStmt(select)) = &tree.node else { return Err(Objection::Kind) };
    let mut walk = Walk::default();
    walk.select(select)?;
    Ok(walk.finish().1)
}

/// The result of a part of the walk.
pub(crate) type Walked = Result<(), Objection>;

/// The walk; see the module.
#[derive(Default)]
pub(crate) struct Walk {
    mentioned: Mentioned,
    /// Whether statements may write. INTO is an objection all the same.
    writes: bool,
    targets: Vec<Target>,
}

impl Walk {
    /// Begins a walk through a statement that may write.
    pub(crate) fn writing() -> Self {
        Self { writes: true, ..Self::default() }
    }

    /// Returns what is written and what is mentioned, each once.
    pub(crate) fn finish(self) -> (Vec<Target>, Mentioned) {
        let (mut targets, mut all) = (self.targets, self.mentioned);
        targets.sort_unstable();
        targets.dedup();
        let Mentioned { relations, with, functions, fields, operators, types, .. } = &mut all;
        for names in [relations, with, functions, fields, operators, types] {
            names.sort_unstable();
            names.dedup();
        }
        (targets, all)
    }

    /// Notes why results are not to be kept.
    fn unkept(&mut self, why: Unkept) {
        self.mentioned.unkept = self.mentioned.unkept.max(Some(why));
    }

    /// Walks through a statement that may write.
    pub(crate) fn statement(&mut self, statement: &NodeEnum) -> Walked {
        match statement {
            NodeEnum::SelectStmt(it) => self.select(it),
            NodeEnum::InsertStmt(it) => self.insert(it),
            NodeEnum::UpdateStmt(it) => self.update(it),
            NodeEnum::DeleteStmt(it) => self.delete(it),
            NodeEnum::MergeStmt(it) => self.merge(it),
            _ => Err(Objection::Kind),
        }
    }

    pub(crate) fn nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Walked {
        nodes.into_iter().try_for_each(|node| self.node(node))
    }

    pub(crate) fn maybe(&mut self, node: &Option<Box<Node>>) -> Walked {
        self.nodes(node.as_deref())
    }

    fn node(&mut self, node: &Node) -> Walked {
        let Some(node) = &node.node else { return Ok(()) };
        match node {
            NodeEnum::SelectStmt(it) => return self.select(it),
            NodeEnum::SubLink(it) => return self.sublink(it),
            NodeEnum::FuncCall(it) => return self.call(it),
            NodeEnum::RangeVar(it) => return self.relation(it),
            NodeEnum::RangeFunction(it) => return self.range_function(it),
            NodeEnum::JoinExpr(it) => {
                self.maybe(&it.larg)?;
                self.maybe(&it.rarg)?;
                return self.maybe(&it.quals);
            }
            NodeEnum::ColumnRef(it) => self.column(it),
            NodeEnum::AIndirection(it) => self.fields(&it.indirection),
            NodeEnum::AExpr(it) => push_last(&mut self.mentioned.operators, &it.name),
            NodeEnum::SortBy(it) => push_last(&mut self.mentioned.operators, &it.use_op),
            NodeEnum::TypeCast(it) => self.cast(it)?,
            NodeEnum::ColumnDef(it) => self.type_name(it.type_name.as_ref())?,
            NodeEnum::XmlSerialize(it) => self.type_name(it.type_name.as_ref())?,
            NodeEnum::GroupingFunc(it) => return self.nodes(&it.args),
            NodeEnum::AConst(it) => self.constant(it),
            NodeEnum::SqlvalueFunction(it) => self.unkept(shown_by(it.op())),
            NodeEnum::MultiAssignRef(it) => return self.maybe(&it.source),
            NodeEnum::IndexElem(_) if self.writes => {}
            // Their child nodes are all that they have.
            NodeEnum::List(_)
            | NodeEnum::BoolExpr(_)
            | NodeEnum::NullTest(_)
            | NodeEnum::BooleanTest(_)
            | NodeEnum::NamedArgExpr(_)
            | NodeEnum::CollateClause(_)
            | NodeEnum::CaseExpr(_)
            | NodeEnum::CaseWhen(_)
            | NodeEnum::CoalesceExpr(_)
            | NodeEnum::MinMaxExpr(_)
            | NodeEnum::AArrayExpr(_)
            | NodeEnum::AIndices(_)
            | NodeEnum::RowExpr(_)
            | NodeEnum::XmlExpr(_)
            | NodeEnum::ResTarget(_)
            | NodeEnum::GroupingSet(_)
            | NodeEnum::WindowDef(_)
            | NodeEnum::RangeSubselect(_) => {}
            // They have none.
            NodeEnum::ParamRef(_)
            | NodeEnum::AStar(_)
            | NodeEnum::String(_)
            | NodeEnum::SetToDefault(_)
            | NodeEnum::CurrentOfExpr(_) => {}
            _ => return Err(Objection::Form),
        }
        self.nodes(children(node))
    }

    fn select(&mut self, select: &SelectStmt) -> Walked {
        if select.into_clause.is_some() {
            return Err(Objection::Into);
        }
        if !select.locking_clause.is_empty() && !self.writes {
            return Err(Objection::Locks);
        }
        self.with(select.with_clause.as_ref())?;
        for side in select.larg.iter().chain(&select.rarg) {
            self.select(side)?;
        }
        // DISTINCT alone is a list of one empty node.
        self.nodes(&select.distinct_clause)?;
        self.nodes(&select.target_list)?;
        self.nodes(&select.from_clause)?;
        self.maybe(&select.where_clause)?;
        self.nodes(&select.group_clause)?;
        self.maybe(&select.having_clause)?;
        self.nodes(&select.window_clause)?;
        self.nodes(&select.values_lists)?;
        self.nodes(&select.sort_clause)?;
        self.maybe(&select.limit_offset)?;
        self.maybe(&select.limit_count)
    }

    fn with(&mut self, with: Option<&WithClause>) -> Walked {
        for table in with.iter().flat_map(|with| &with.ctes) {
            let Some(NodeEnum::CommonTableExpr(table)) = &table.node else {
                return Err(Objection::Form);
            };
            self.common_table(table)?;
        }
        Ok(())
    }

    fn common_table(&mut self, table: &CommonTableExpr) -> Walked {
        let query = table.ctequery.as_deref().and_then(|query| query.node.as_ref());
        let name = RangeVar { relname: table.ctename.clone(), ..RangeVar::default() };
        self.mentioned.with.push(relation_name(&name));
        match query {
            Some(NodeEnum::SelectStmt(query)) => self.select(query)?,
            Some(query) if self.writes => self.statement(query)?,
            _ => return Err(Objection::Writes),
        }
        if let Some(cycle) = &table.cycle_clause {
            self.maybe(&cycle.cycle_mark_value)?;
            self.maybe(&cycle.cycle_mark_default)?;
        }
        Ok(())
    }

    fn sublink(&mut self, sublink: &SubLink) -> Walked {
        push_last(&mut self.mentioned.operators, &sublink.oper_name);
        self.maybe(&sublink.testexpr)?;
        self.maybe(&sublink.subselect)
    }

    fn call(&mut self, call: &FuncCall) -> Walked {
        self.no_temporary(&call.funcname)?;
        push_last(&mut self.mentioned.functions, &call.funcname);
        self.mentioned.dates |=
            strings(&call.funcname).last().is_none_or(|name| !names::keeps_texts(&name));
        self.nodes(&call.args)?;
        self.nodes(&call.agg_order)?;
        self.maybe(&call.agg_filter)?;
        let Some(window) = &call.over else { return Ok(()) };
        self.nodes(children(&NodeEnum::WindowDef(window.clone())))
    }

    fn relation(&mut self, relation: &RangeVar) -> Walked {
        if relation.schemaname.starts_with(TEMPORARY) {
            return Err(Objection::Temporary);
        }
        self.mentioned.relations.push(relation_name(relation));
        Ok(())
    }

    fn range_function(&mut self, function: &RangeFunction) -> Walked {
        self.nodes(&function.functions)?;
        self.nodes(&function.coldeflist)
    }

    /// Notes that `a.b` may be `b(a)`.
    fn column(&mut self, column: &ColumnRef) {
        let last = strings(&column.fields).last();
        if last.is_some_and(|name| names::is_system_column(&name)) {
            self.unkept(Unkept::Column);
        }
        self.fields(column.fields.get(1..).unwrap_or_default());
    }

    fn fields(&mut self, fields: &[Node]) {
        if strings(fields).any(|name| names::is_system_column(&name)) {
            self.unkept(Unkept::Column);
        }
        self.mentioned.fields.extend(strings(fields));
    }

    fn constant(&mut self, constant: &AConst) {
        let Some(Val::Sval(text)) = &constant.val else { return };
        if names_moment(text.sval.as_bytes()) {
            self.unkept(Unkept::Word);
        }
    }

    fn cast(&mut self, cast: &TypeCast) -> Walked {
        let literal = cast.arg.as_deref().and_then(|arg| arg.node.as_ref());
        let names = cast.type_name.iter().flat_map(|it| strings(&it.names)).last();
        let dates = names.is_none_or(|name| !names::is_no_date(&name));
        self.mentioned.dates |= dates && !matches!(literal, Some(NodeEnum::AConst(_)));
        self.type_name(cast.type_name.as_ref())
    }

    fn type_name(&mut self, name: Option<&TypeName>) -> Walked {
        let Some(name) = name else { return Ok(()) };
        self.no_temporary(&name.names)?;
        push_last(&mut self.mentioned.types, &name.names);
        self.nodes(&name.typmods)
    }

    fn no_temporary(&self, names: &[Node]) -> Walked {
        let schemas = names.split_last().map(|(_, schemas)| schemas).unwrap_or_default();
        let temporary = strings(schemas).any(|schema| schema.starts_with(TEMPORARY));
        if temporary { Err(Objection::Temporary) } else { Ok(()) }
    }
}

/// The walk through statements that write.
impl Walk {
    /// Notes that rows of a relation are changed in these ways.
    pub(crate) fn target(&mut self, relation: Option<&RangeVar>, ways: &[Way]) {
        let Some(relation) = relation else { return };
        // A temporary table is the session's own.
        if !relation.schemaname.starts_with(TEMPORARY) {
            let relation = relation_name(relation);
            let target = |way: &Way| Target { relation: relation.clone(), way: *way };
            self.targets.extend(ways.iter().map(target));
        }
    }

    fn insert(&mut self, insert: &InsertStmt) -> Walked {
        self.target(insert.relation.as_ref(), &[Way::Insert]);
        self.with(insert.with_clause.as_ref())?;
        self.nodes(&insert.cols)?;
        self.maybe(&insert.select_stmt)?;
        if let Some(conflict) = &insert.on_conflict_clause {
            self.conflict(insert, conflict)?;
        }
        self.returning(insert.returning_clause.as_ref())
    }

    fn conflict(&mut self, insert: &InsertStmt, conflict: &OnConflictClause) -> Walked {
        if conflict.action() == OnConflictAction::OnconflictUpdate {
            self.target(insert.relation.as_ref(), &[Way::Update]);
        }
        if let Some(infer) = &conflict.infer {
            self.nodes(&infer.index_elems)?;
            self.maybe(&infer.where_clause)?;
        }
        self.nodes(&conflict.target_list)?;
        self.maybe(&conflict.where_clause)
    }

    fn update(&mut self, update: &UpdateStmt) -> Walked {
        self.target(update.relation.as_ref(), &[Way::Update]);
        self.with(update.with_clause.as_ref())?;
        self.nodes(&update.target_list)?;
        self.nodes(&update.from_clause)?;
        self.maybe(&update.where_clause)?;
        self.returning(update.returning_clause.as_ref())
    }

    fn delete(&mut self, delete: &DeleteStmt) -> Walked {
        self.target(delete.relation.as_ref(), &[Way::Delete]);
        self.with(delete.with_clause.as_ref())?;
        self.nodes(&delete.using_clause)?;
        self.maybe(&delete.where_clause)?;
        self.returning(delete.returning_clause.as_ref())
    }

    fn merge(&mut self, merge: &MergeStmt) -> Walked {
        self.with(merge.with_clause.as_ref())?;
        self.maybe(&merge.source_relation)?;
        self.maybe(&merge.join_condition)?;
        for clause in &merge.merge_when_clauses {
            let Some(clause @ NodeEnum::MergeWhenClause(when)) = &clause.node else {
                return Err(Objection::Form);
            };
            let way = match when.command_type() {
                CmdType::CmdInsert => Some(Way::Insert),
                CmdType::CmdUpdate => Some(Way::Update),
                CmdType::CmdDelete => Some(Way::Delete),
                CmdType::CmdNothing => None,
                _ => return Err(Objection::Form),
            };
            self.target(merge.relation.as_ref(), way.as_slice());
            self.nodes(children(clause))?;
        }
        self.returning(merge.returning_clause.as_ref())
    }

    fn returning(&mut self, returning: Option<&ReturningClause>) -> Walked {
        returning.map_or(Ok(()), |returning| self.nodes(&returning.exprs))
    }
}

/// Returns what a value such as `CURRENT_DATE` shows.
fn shown_by(op: SqlValueFunctionOp) -> Unkept {
    match op {
        SqlValueFunctionOp::SvfopCurrentRole
        | SqlValueFunctionOp::SvfopCurrentUser
        | SqlValueFunctionOp::SvfopUser
        | SqlValueFunctionOp::SvfopSessionUser
        | SqlValueFunctionOp::SvfopCurrentCatalog
        | SqlValueFunctionOp::SvfopCurrentSchema => Unkept::Session,
        _ => Unkept::Clock,
    }
}

fn strings(names: &[Node]) -> impl Iterator<Item = String> {
    names.iter().filter_map(|name| match &name.node {
        Some(NodeEnum::String(it)) => Some(it.sval.clone()),
        _ => None,
    })
}

/// Adds the last part of a name.
fn push_last(to: &mut Vec<String>, names: &[Node]) {
    to.extend(strings(names).last());
}

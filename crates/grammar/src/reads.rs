//! Reads: whether the tree of a text is one SELECT that writes and locks nothing, and what it
//! mentions.
//!
//! What: [`read`] walks the whole tree, and returns the first objection, or all names about which
//! the catalog has to say more.
//!
//! What always holds: a kind of node that [`Walk::node`] does not list is an objection
//! ([`Objection::Form`]), so that no name in a new kind of expression is missed.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    ColumnRef, CommonTableExpr, FuncCall, Node, RangeFunction, RangeVar, SelectStmt, SubLink,
    TypeName, WithClause,
};
use refrain_sql::reads::{Mentioned, Objection};

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
    Ok(walk.finish())
}

/// The result of a part of the walk.
type Walked = Result<(), Objection>;

/// The walk; see the module.
#[derive(Default)]
struct Walk {
    mentioned: Mentioned,
}

impl Walk {
    /// Returns each name once.
    fn finish(self) -> Mentioned {
        let mut all = self.mentioned;
        let Mentioned { relations, with, functions, fields, operators, types } = &mut all;
        for names in [relations, with, functions, fields, operators, types] {
            names.sort_unstable();
            names.dedup();
        }
        all
    }

    fn nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Walked {
        nodes.into_iter().try_for_each(|node| self.node(node))
    }

    fn maybe(&mut self, node: &Option<Box<Node>>) -> Walked {
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
            NodeEnum::AIndirection(it) => self.mentioned.fields.extend(strings(&it.indirection)),
            NodeEnum::AExpr(it) => push_last(&mut self.mentioned.operators, &it.name),
            NodeEnum::SortBy(it) => push_last(&mut self.mentioned.operators, &it.use_op),
            NodeEnum::TypeCast(it) => self.type_name(it.type_name.as_ref())?,
            NodeEnum::ColumnDef(it) => self.type_name(it.type_name.as_ref())?,
            NodeEnum::XmlSerialize(it) => self.type_name(it.type_name.as_ref())?,
            NodeEnum::GroupingFunc(it) => return self.nodes(&it.args),
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
            NodeEnum::AConst(_)
            | NodeEnum::ParamRef(_)
            | NodeEnum::AStar(_)
            | NodeEnum::String(_)
            | NodeEnum::SqlvalueFunction(_) => {}
            _ => return Err(Objection::Form),
        }
        self.nodes(children(node))
    }

    fn select(&mut self, select: &SelectStmt) -> Walked {
        if select.into_clause.is_some() {
            return Err(Objection::Into);
        }
        if !select.locking_clause.is_empty() {
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
        let Some(NodeEnum::SelectStmt(query)) = query else { return Err(Objection::Writes) };
        let name = RangeVar { relname: table.ctename.clone(), ..RangeVar::default() };
        self.mentioned.with.push(relation_name(&name));
        self.select(query)?;
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
        let fields = column.fields.get(1..).unwrap_or_default();
        self.mentioned.fields.extend(strings(fields));
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

//! Refusals of PostgreSQL's forms: SQLSTATE, message and way out, from one table.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{AlterTableCmd, AlterTableType, ConstrType, ObjectType};

use crate::failure::{Failure, state};

use super::forms::FORMS;

/// Functions that Refrain does not have, with the way out.
const FUNCTIONS: &[(&[&str], &str)] = &[
    (&["to_char"], "write SQLite's strftime('%Y-%m', x)"),
    (&["justify_days", "make_interval"], "write an interval: '3 days'::interval"),
    (&["format", "quote_ident", "quote_literal"], "join texts with || and concat(…)"),
    (
        &["regexp_replace", "regexp_matches", "regexp_match", "regexp_split_to_array"],
        "regular expressions are not supported: write replace(…) and LIKE",
    ),
    (
        &["jsonb_set", "json_object_agg", "jsonb_object_agg", "jsonb_pretty"],
        "write SQLite's json_object(…), json_array(…) and json_extract(…)",
    ),
];

/// Returns the hint for an unknown function.
pub(super) fn function(name: &str) -> &'static str {
    let known = FUNCTIONS.iter().find(|(names, _)| names.contains(&name));
    known.map_or("docs/sqlite.md lists the supported functions and aggregates; you might need explicit type casts", |(_, hint)| hint)
}

/// Refuses a form, with the message and hint of the table.
pub(super) fn refuse(form: &str) -> Failure {
    let row = FORMS.iter().find(|row| row.form == form);
    let (message, hint) = row.map_or(("this is not supported", ""), |row| (row.message, row.hint));
    Failure::new(state::NOT_SUPPORTED, message).hint(hint)
}

/// Returns 54001: the SQL of a part of a statement grows too long.
pub(super) fn too_long() -> Failure {
    Failure::new("54001", "statement too complex").hint("nest calls and operators less deeply")
}

/// Returns 42803: an aggregate in a place where it must not stand.
pub(super) fn aggregate(place: &str) -> Failure {
    let message = format!("aggregate functions are not allowed in {place}");
    Failure::new("42803", message).hint(
        "an aggregate of an enclosing query is not supported: compute it there, in a subquery in FROM",
    )
}

/// Refuses a part of the tree that is unknown here.
pub(super) fn unknown() -> Failure {
    refuse("expression")
}

/// Refuses an operator.
pub(super) fn operator(operator: &str) -> Failure {
    let form = match operator {
        "~" | "~*" | "!~" | "!~*" => "regular expression",
        "->" | "->>" | "#>" | "#>>" | "@>" | "<@" | "?" | "?|" | "?&" | "||" | "#-" => {
            "JSON operator"
        }
        _ => "operator",
    };
    refuse(form)
}

/// Refuses a node of the tree.
pub(super) fn node(node: &NodeEnum) -> Failure {
    refuse(match node {
        NodeEnum::AArrayExpr(_) | NodeEnum::AIndirection(_) => "ARRAY",
        NodeEnum::RowExpr(_) | NodeEnum::List(_) => "row",
        NodeEnum::ExplainStmt(_) => "EXPLAIN",
        NodeEnum::VacuumStmt(_) | NodeEnum::ReindexStmt(_) => "VACUUM",
        NodeEnum::CreateTableAsStmt(_) => "CREATE TABLE AS",
        NodeEnum::CompositeTypeStmt(_)
        | NodeEnum::CreateDomainStmt(_)
        | NodeEnum::CreateRangeStmt(_)
        | NodeEnum::DefineStmt(_) => "CREATE TYPE",
        NodeEnum::CreateExtensionStmt(_) => "CREATE EXTENSION",
        NodeEnum::CreateFunctionStmt(_) | NodeEnum::DoStmt(_) => "CREATE FUNCTION",
        NodeEnum::CreateTrigStmt(_) | NodeEnum::RuleStmt(_) => "CREATE TRIGGER",
        NodeEnum::TableLikeClause(_) => "such a table",
        NodeEnum::RangeTableSample(_) | NodeEnum::RangeTableFunc(_) => "a function in FROM",
        _ => "expression",
    })
}

/// Refuses a statement.
pub(super) fn statement(statement: &NodeEnum) -> Failure {
    let failure = node(statement);
    if failure == unknown() { refuse("statement") } else { failure }
}

/// Refuses a change of a table.
pub(super) fn alter(command: &AlterTableCmd) -> Failure {
    use AlterTableType as Change;
    let constraint = match command.def.as_ref().and_then(|def| def.node.as_ref()) {
        Some(NodeEnum::Constraint(constraint)) => Some(constraint.contype()),
        _ => None,
    };
    refuse(match (command.subtype(), constraint) {
        (Change::AtAddConstraint, Some(ConstrType::ConstrForeign)) => "ADD FOREIGN KEY",
        (Change::AtAddConstraint, Some(ConstrType::ConstrPrimary)) => "ADD PRIMARY KEY",
        (Change::AtAddConstraint, Some(ConstrType::ConstrCheck)) => "ADD CHECK",
        (change, _) => any_change(change),
    })
}

fn any_change(change: AlterTableType) -> &'static str {
    use AlterTableType as Change;
    match change {
        Change::AtAddConstraint | Change::AtAddIndex | Change::AtValidateConstraint => {
            "ADD CONSTRAINT"
        }
        Change::AtDropConstraint | Change::AtAlterConstraint => "DROP CONSTRAINT",
        Change::AtColumnDefault
        | Change::AtDropNotNull
        | Change::AtSetNotNull
        | Change::AtAlterColumnType
        | Change::AtAddIdentity
        | Change::AtSetIdentity
        | Change::AtDropIdentity
        | Change::AtSetStatistics
        | Change::AtSetStorage
        | Change::AtDropExpression => "ALTER COLUMN",
        _ => "ALTER",
    }
}

/// Refuses a statement about a kind of object.
pub(super) fn object(_: &str, of: ObjectType) -> Failure {
    refuse(match of {
        ObjectType::ObjectSchema => "CREATE SCHEMA",
        ObjectType::ObjectType | ObjectType::ObjectDomain => "CREATE TYPE",
        ObjectType::ObjectExtension => "CREATE EXTENSION",
        ObjectType::ObjectFunction | ObjectType::ObjectProcedure => "CREATE FUNCTION",
        _ => "statement",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_refused_with_its_hint() {
        let catalog = crate::dialect::tests::Fixed;
        for row in FORMS {
            let made = crate::dialect::translate(row.example, &catalog, &[], &[]);
            let Err(crate::dialect::NotTranslated::Refused(failure)) = made else {
                panic!("{}: {made:?}", row.example);
            };
            assert_eq!(failure.sqlstate, "0A000", "{}: {failure:?}", row.example);
            assert_eq!(failure.message, row.message, "{}", row.example);
            assert!(!row.hint.is_empty() && failure.hint == row.hint, "{}", row.example);
        }
    }
}

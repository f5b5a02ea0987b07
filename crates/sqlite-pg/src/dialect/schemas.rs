//! CREATE SCHEMA and DROP SCHEMA.
//!
//! The name of a schema is a prefix of the names of its tables (`schema_names.rs`). CREATE SCHEMA
//! makes a table without rows, "app.", which says that the schema is there.

use refrain_grammar::protobuf::{CreateSchemaStmt, DropBehavior, DropStmt};

use crate::failure::Failure;
use crate::sequences::Sequence;

use super::edits::{Edits, NOTHING};
use super::scope::Catalog;
use super::several::dependents_first;
use super::value::name;
use super::{Translated, hints, string};

/// The comment that makes a table a schema.
pub(crate) const MARK: &str = "/*refrain schema*/";

impl Edits<'_> {
    pub(super) fn drop_schema(&mut self, drop: &DropStmt) -> Translated<String> {
        let cascade = drop.behavior() == DropBehavior::DropCascade;
        let mut parts = Vec::new();
        for called in drop.objects.iter().filter_map(string) {
            if !self.basis.catalog.schemas().contains(&called) {
                if ["public", "pg_catalog", "information_schema"].contains(&called.as_str()) {
                    return Err(hints::refuse("CREATE SCHEMA").into());
                }
                if drop.missing_ok {
                    continue;
                }
                let message = format!("schema \"{called}\" does not exist");
                return Err(Failure::new("3F000", message).into());
            }
            let inside = self.basis.catalog.inside(&called);
            if !inside.is_empty() && !cascade {
                let message =
                    format!("cannot drop schema {called} because other objects depend on it");
                let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                return Err(Failure::new("2BP01", message).hint(hint).into());
            }
            let is_enum = |inside: &String| self.basis.catalog.enum_named(inside).is_some();
            let (types, inside): (Vec<_>, Vec<_>) = inside.into_iter().partition(is_enum);
            for inside in dependents_first(self.basis.catalog, inside) {
                let word = match self.basis.catalog.definition(&inside) {
                    Some(sql) if Sequence::read(&sql).is_some() => "SEQUENCE",
                    Some(_) => "TABLE",
                    None => "VIEW",
                };
                parts.push(format!("DROP {word} IF EXISTS {} CASCADE", name(&inside)));
            }
            let drop = |of: &String| format!("DROP TYPE IF EXISTS {} CASCADE", name(of));
            parts.extend(types.iter().map(drop));
            parts.push(format!("DROP TABLE {}", name(&format!("{called}."))));
        }
        match &parts[..] {
            [] => Ok(NOTHING.to_owned()),
            _ => self.sequence(parts),
        }
    }
}

pub(super) fn create_schema(catalog: &dyn Catalog, it: &CreateSchemaStmt) -> Translated<String> {
    if !it.schema_elts.is_empty() || it.schemaname.is_empty() {
        return Err(hints::refuse("CREATE SCHEMA").into());
    }
    let called = &it.schemaname;
    let known = ["public", "pg_catalog", "information_schema"].contains(&called.as_str());
    if known || catalog.schemas().contains(called) {
        if it.if_not_exists {
            return Ok(NOTHING.to_owned());
        }
        let message = format!("schema \"{called}\" already exists");
        return Err(Failure::new("42P06", message).into());
    }
    if called.starts_with("pg_") {
        let message = format!("unacceptable schema name \"{called}\"");
        let detail = "The prefix \"pg_\" is reserved for system schemas.";
        return Err(Failure::new("42939", message).detail(detail).into());
    }
    let refused = called.contains('.') || ["main", "temp"].contains(&called.as_str());
    if refused || catalog.is_taken(&format!("{called}.")) {
        return Err(hints::refuse("CREATE SCHEMA").into());
    }
    Ok(format!("CREATE TABLE {} (\"schema\" {MARK} INT)", name(&format!("{called}."))))
}

//! ALTER TABLE.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ConstrType, Constraint, DropBehavior,
    ObjectType, RangeVar, RenameStmt,
};

use crate::failure::Failure;

use super::define::{SYSTEM_COLUMNS, plain_key, written};
use super::scope::{Attribute, FromItem, GivenBy, Scope};
use super::value::name;
use super::{Translated, Translator, hints, strings};

/// Mark in the CREATE statement of an index that stands for a constraint.
pub(crate) const ADDED: &str = "/*refrain constraint*/";

impl Translator<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTableStmt) -> Translated<String> {
        let relation = alter.relation.as_ref().ok_or_else(hints::unknown)?;
        if alter.objtype() != ObjectType::ObjectTable {
            return Err(hints::refuse("ALTER").into());
        }
        let [command] = &alter.cmds[..] else {
            return Err(hints::refuse("ALTER TABLE with several changes").into());
        };
        let Some(NodeEnum::AlterTableCmd(command)) = &command.node else {
            return Err(hints::unknown().into());
        };
        let unique = match command.def.as_ref().and_then(|def| def.node.as_ref()) {
            Some(NodeEnum::Constraint(it)) if it.contype() == ConstrType::ConstrUnique => Some(it),
            _ => None,
        };
        let column =
            matches!(command.subtype(), AlterTableType::AtAddColumn | AlterTableType::AtDropColumn);
        if command.subtype() == AlterTableType::AtDropConstraint {
            return self.drop_constraint(command, relation);
        }
        if !column && unique.is_none() {
            return Err(hints::alter(command).into());
        }
        let (table, attributes) = match self.table(relation) {
            Err(_) if alter.missing_ok => return Ok("SELECT 1 WHERE 0".to_owned()),
            found => found?,
        };
        if let Some(constraint) = unique {
            return self.add_unique(constraint, relation, &table, &attributes);
        }
        let known =
            |wanted: &str| attributes.iter().any(|known| known.name.eq_ignore_ascii_case(wanted));
        if command.subtype() == AlterTableType::AtDropColumn {
            is_dropped(command, relation, known(&command.name))?;
            return Ok(format!("ALTER TABLE {table} DROP COLUMN {}", name(&command.name)));
        }
        let Some(NodeEnum::ColumnDef(column)) =
            command.def.as_ref().and_then(|def| def.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        if command.missing_ok {
            return Err(hints::refuse("ADD COLUMN IF NOT EXISTS").into());
        }
        let mut attributes = attributes;
        attributes.push(self.attribute(column)?);
        let mut source = FromItem::table(&relation.relname, &attributes);
        source.columns.iter_mut().for_each(|column| column.sql = name(&column.name));
        self.scopes.push(Scope { sources: vec![source], ..Scope::default() });
        let made = self.declared(column);
        self.scopes.pop();
        let made = made?;
        if made.key || made.given != GivenBy::Statement || made.rest.contains(" UNIQUE") {
            return Err(hints::refuse("ADD COLUMN with a key").into());
        }
        Ok(format!("ALTER TABLE {table} ADD COLUMN {}", written(made)?))
    }

    /// Translates DROP CONSTRAINT: a constraint that ADD made is an index, which is dropped.
    fn drop_constraint(&self, it: &AlterTableCmd, relation: &RangeVar) -> Translated<String> {
        let plain = !it.missing_ok && it.behavior() != DropBehavior::DropCascade;
        match self.catalog.constrained(&it.name) {
            Some((table, true)) if plain && table == relation.relname => {
                Ok(format!("DROP INDEX {}", name(&it.name)))
            }
            _ => Err(hints::refuse("DROP CONSTRAINT").into()),
        }
    }

    /// Translates ADD UNIQUE to an index, which enforces the same in SQLite.
    fn add_unique(
        &mut self,
        constraint: &Constraint,
        relation: &RangeVar,
        table: &str,
        attributes: &[Attribute],
    ) -> Translated<String> {
        plain_key(constraint)?;
        let keys = strings(&constraint.keys);
        for key in &keys {
            if !attributes.iter().any(|known| known.name == *key) {
                let message = format!("column \"{key}\" named in key does not exist");
                return Err(Failure::new("42703", message).into());
            }
        }
        let called = match constraint.conname.as_str() {
            "" => self.free_name(&format!("{}_{}_key", relation.relname, keys.join("_"))),
            given => given.to_owned(),
        };
        let schema = if table.starts_with("temp.") { "temp." } else { "" };
        let table = table.strip_prefix("temp.").unwrap_or(table);
        let keys: Vec<String> = keys.iter().map(|key| name(key)).collect();
        Ok(format!(
            "CREATE UNIQUE INDEX {schema}{} ON {table} ({ADDED}{})",
            name(&called),
            keys.join(", ")
        ))
    }

    pub(super) fn rename(&mut self, rename: &RenameStmt) -> Translated<String> {
        let relation = rename.relation.as_ref().ok_or_else(|| hints::refuse("ALTER"))?;
        let is_table = rename.relation_type() == ObjectType::ObjectTable
            || rename.rename_type() == ObjectType::ObjectTable;
        if rename.missing_ok && is_table && self.table(relation).is_err() {
            return Ok("SELECT 1 WHERE 0".to_owned());
        }
        match rename.rename_type() {
            ObjectType::ObjectTable => {
                let (table, _) = self.table(relation)?;
                Ok(format!("ALTER TABLE {table} RENAME TO {}", name(&rename.newname)))
            }
            ObjectType::ObjectColumn if is_table => {
                let (table, _) = self.table(relation)?;
                let (from, to) = (name(&rename.subname), name(&rename.newname));
                Ok(format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}"))
            }
            _ => Err(hints::refuse("ALTER").into()),
        }
    }
}

/// Checks whether a column may be dropped.
fn is_dropped(it: &AlterTableCmd, relation: &RangeVar, known: bool) -> Result<(), Failure> {
    if it.missing_ok || it.behavior() == DropBehavior::DropCascade {
        return Err(hints::refuse("DROP COLUMN IF EXISTS"));
    }
    if SYSTEM_COLUMNS.contains(&it.name.as_str()) {
        let message = format!("cannot drop system column \"{}\"", it.name);
        return Err(Failure::unsupported(message).hint("tables have no system columns here"));
    }
    if known {
        return Ok(());
    }
    let message =
        format!("column \"{}\" of relation \"{}\" does not exist", it.name, relation.relname);
    Err(Failure::new("42703", message))
}

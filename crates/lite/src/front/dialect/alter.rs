//! ALTER TABLE.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{AlterTableStmt, AlterTableType, ObjectType, RenameStmt};

use crate::front::failure::Failure;

use super::define::written;
use super::scope::{Given, Scope, Source};
use super::value::name;
use super::{Translated, Translator, hints};

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
        if !matches!(command.subtype(), AlterTableType::AtAddColumn | AlterTableType::AtDropColumn)
        {
            return Err(hints::alter(command.subtype()).into());
        }
        let (table, attributes) = match self.table(relation) {
            Err(_) if alter.missing_ok => return Ok("SELECT 1 WHERE 0".to_owned()),
            found => found?,
        };
        let known =
            |wanted: &str| attributes.iter().any(|known| known.name.eq_ignore_ascii_case(wanted));
        if command.subtype() == AlterTableType::AtDropColumn {
            if command.missing_ok || command.behavior == 2 {
                return Err(hints::refuse("DROP COLUMN IF EXISTS").into());
            }
            if !known(&command.name) {
                let message = format!(
                    "column \"{}\" of relation \"{}\" does not exist",
                    command.name, relation.relname
                );
                return Err(Failure::new("42703", message).into());
            }
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
        let mut source = Source::table(&relation.relname, &attributes);
        source.columns.iter_mut().for_each(|column| column.sql = name(&column.name));
        self.scopes.push(Scope { sources: vec![source], ..Scope::default() });
        let made = self.declared(column);
        self.scopes.pop();
        let made = made?;
        if made.key || made.given != Given::Statement || made.rest.contains(" UNIQUE") {
            return Err(hints::refuse("ADD COLUMN with a key").into());
        }
        Ok(format!("ALTER TABLE {table} ADD COLUMN {}", written(made)?))
    }

    pub(super) fn rename(&mut self, rename: &RenameStmt) -> Translated<String> {
        let relation = rename.relation.as_ref().ok_or_else(|| hints::refuse("ALTER"))?;
        let is_table = rename.relation_type() == ObjectType::ObjectTable;
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

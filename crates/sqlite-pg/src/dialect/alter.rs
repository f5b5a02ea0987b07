//! ALTER TABLE.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, ConstrType, Node, ObjectType,
    RangeVar, RenameStmt,
};

use crate::failure::{Failure, state};
use crate::key_mark::GivenBy;

use super::defaults::without_default;
use super::define::{SYSTEM_COLUMNS, attribute, plain_key, written};
use super::definer::{Declared, Definer};
use super::edits::{Edits, FollowUp, NOTHING, SchemaChange, SchemaEdit, is_permanent};
use super::schema_names::beside;
use super::scope::{Attribute, Catalog, Scope, Scoped};
use super::sequences::sequences_of;
use super::type_names::is_no_type;
use super::value::name;
use super::{Translated, hints};

impl Definer<'_, '_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTableStmt) -> Translated<String> {
        let relation = alter.relation.as_ref().ok_or_else(hints::unknown)?;
        if alter.objtype() == ObjectType::ObjectType {
            return Err(hints::refuse("ALTER TYPE").into());
        }
        if alter.objtype() != ObjectType::ObjectTable {
            return Err(hints::refuse("ALTER").into());
        }
        let [command] = &alter.cmds[..] else { return self.edits.changes(alter) };
        let Some(NodeEnum::AlterTableCmd(command)) = &command.node else {
            return Err(hints::unknown().into());
        };
        let column =
            matches!(command.subtype(), AlterTableType::AtAddColumn | AlterTableType::AtDropColumn);
        if alter.missing_ok && self.edits.basis.table(relation).is_err() {
            return Ok(NOTHING.to_owned());
        }
        is_no_view(self.edits.basis.catalog, command, relation)?;
        if command.subtype() == AlterTableType::AtDropConstraint {
            return self.edits.drop_constraint(command, relation);
        }
        if let Some(made) = self.edited(command, relation)? {
            return Ok(made);
        }
        let changes = [AlterTableType::AtSetNotNull, AlterTableType::AtDropNotNull];
        let change = changes.contains(&command.subtype());
        if !column && !change {
            return Err(hints::alter(command).into());
        }
        let (table, attributes) = self.edits.basis.table(relation)?;
        if change {
            return not_null(command, relation, &table, &attributes);
        }
        let known = |wanted: &str| attributes.iter().any(|known| known.name == *wanted);
        if command.subtype() == AlterTableType::AtDropColumn {
            if command.missing_ok && !known(&command.name) {
                return Ok(NOTHING.to_owned());
            }
            // With or without CASCADE, SQLite refuses to drop a column on which something depends.
            is_dropped(command, relation, known(&command.name))?;
            for (sequence, column) in sequences_of(self.edits.basis.catalog, &relation.relname) {
                if column == command.name {
                    let text = format!("DROP SEQUENCE {}", name(&sequence));
                    self.edits.follow_ups.push(FollowUp::Statement(text));
                }
            }
            return Ok(format!("ALTER TABLE {table} DROP COLUMN {}", name(&command.name)));
        }
        let Some(NodeEnum::ColumnDef(column)) =
            command.def.as_ref().and_then(|def| def.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        if command.missing_ok && known(&column.colname) {
            return Ok(NOTHING.to_owned());
        }
        let mut attributes = attributes;
        attributes.push(attribute(self.edits.basis, column)?);
        let scope = Scope::of_table(&relation.relname, &attributes);
        let made = self.within(scope, |this| this.declared(column))?;
        self.added_column(made, column, relation, &table)
    }

    /// Translates ADD COLUMN. A default that SQLite cannot add, NOT NULL and UNIQUE follow it.
    fn added_column(
        &mut self,
        mut made: Declared,
        column: &ColumnDef,
        relation: &RangeVar,
        table: &str,
    ) -> Translated<String> {
        let plain = |node: &Node| match &node.node {
            Some(NodeEnum::Constraint(it)) => match it.contype() {
                ConstrType::ConstrUnique => plain_key(it).is_ok() && it.conname.is_empty(),
                _ => true,
            },
            _ => false,
        };
        if made.key || made.given != GivenBy::Statement || !column.constraints.iter().all(plain) {
            return Err(hints::refuse("ADD COLUMN with a key").into());
        }
        let called = name(&made.name);
        let mut after = Vec::new();
        if let Some(rest) = without_part(&made.rest, " UNIQUE") {
            made.rest = rest;
            let text = format!("ALTER TABLE {} ADD UNIQUE ({called})", name(&relation.relname));
            after.push(FollowUp::Statement(text));
        }
        let node = |node: &Node| match &node.node {
            Some(NodeEnum::Constraint(it)) if it.contype() == ConstrType::ConstrDefault => {
                it.raw_expr.as_deref().cloned()
            }
            _ => None,
        };
        let default = column.constraints.iter().find_map(node);
        let literal = |node: &Node| match &node.node {
            Some(NodeEnum::TypeCast(it)) => it.arg.as_deref().is_some_and(is_constant),
            _ => is_constant(node),
        };
        let computed = match &default {
            Some(node) => {
                let part = format!(" {}", self.default_of(node, made.is, made.limit)?);
                (!literal(node) || part.contains("refrain_")).then_some(part)
            }
            None => None,
        };
        if let Some(part) = computed {
            made.rest = without_part(&made.rest, &part).ok_or_else(hints::unknown)?;
            let value = part.trim_start_matches(" DEFAULT ");
            no_triggers(self.edits.basis.catalog, &relation.relname, "ALTER COLUMN")?;
            after.push(FollowUp::Sqlite(format!("UPDATE {table} SET {called} = {value}")));
            let change = SchemaChange::Append { column: made.name.clone(), part: part.clone() };
            let refusal = hints::refuse("ALTER COLUMN");
            is_permanent(self.edits.basis.catalog, &relation.relname, &refusal)?;
            let edit = SchemaEdit::of(&relation.relname, table, change, None, refusal);
            after.push(FollowUp::Edit(Box::new(edit)));
        }
        if !made.rest.contains(" DEFAULT ")
            && let Some(rest) = without_part(&made.rest, " NOT NULL")
        {
            made.rest = rest;
            let sql = format!("ALTER TABLE {table} ALTER COLUMN {called} SET NOT NULL");
            after.push(FollowUp::Sqlite(sql));
        }
        self.edits.follow_ups.extend(after);
        Ok(format!("ALTER TABLE {table} ADD COLUMN {}", written(made)?))
    }

    /// Translates the changes that a new definition makes; `None` for other changes.
    fn edited(&mut self, it: &AlterTableCmd, relation: &RangeVar) -> Translated<Option<String>> {
        let def = it.def.as_ref().and_then(|def| def.node.as_ref());
        match (it.subtype(), def) {
            (AlterTableType::AtAddConstraint, Some(NodeEnum::Constraint(it))) => {
                self.add_constraint(it, relation)
            }
            (AlterTableType::AtColumnDefault, None) => {
                let column = self.edits.basis.column_of(&it.name, relation)?;
                has_default(&column, relation)?;
                let Some(change) = without_default(&column) else {
                    return Ok(Some(NOTHING.to_owned()));
                };
                self.edits.keep_values(&column, relation)?;
                self.edits.edit(relation, None, change, "ALTER COLUMN").map(Some)
            }
            (AlterTableType::AtColumnDefault, Some(_)) => {
                let column = self.edits.basis.column_of(&it.name, relation)?;
                has_default(&column, relation)?;
                let node = it.def.as_deref().ok_or_else(hints::unknown)?;
                let part = format!(" {}", self.default_of(node, column.is, column.limit)?);
                let change = match without_default(&column) {
                    Some(SchemaChange::Column { column, from, .. }) => {
                        SchemaChange::Column { column, from, to: part }
                    }
                    _ => SchemaChange::Append { column: column.name.clone(), part },
                };
                self.edits.keep_values(&column, relation)?;
                self.edits.edit(relation, None, change, "ALTER COLUMN").map(Some)
            }
            (AlterTableType::AtAlterColumnType, Some(NodeEnum::ColumnDef(to))) => {
                let column = self.edits.basis.column_of(&it.name, relation)?;
                self.retype(relation, &column, to).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Edits<'_> {
    /// Writes a column's values into the rows: those that are older than the column have none, and
    /// SQLite reads its default for them, or NULL, which is about to change.
    fn keep_values(&mut self, column: &Attribute, relation: &RangeVar) -> Translated<()> {
        let (table, attributes) = self.basis.table(relation)?;
        if is_in_all_rows(&attributes, &column.name) {
            return Ok(());
        }
        no_triggers(self.basis.catalog, &relation.relname, "ALTER COLUMN")?;
        let called = name(&column.name);
        self.follow_ups.push(FollowUp::Sqlite(format!("UPDATE {table} SET {called} = {called}")));
        Ok(())
    }

    pub(super) fn rename(&mut self, rename: &RenameStmt) -> Translated<String> {
        if rename.rename_type() == ObjectType::ObjectType {
            return self.rename_type(rename);
        }
        let relation = rename.relation.as_ref().ok_or_else(|| hints::refuse("ALTER"))?;
        let is_table = rename.relation_type() == ObjectType::ObjectTable
            || rename.rename_type() == ObjectType::ObjectTable;
        if rename.missing_ok && is_table && self.basis.table(relation).is_err() {
            return Ok(NOTHING.to_owned());
        }
        match rename.rename_type() {
            ObjectType::ObjectSequence
                if rename.missing_ok && self.basis.table(relation).is_err() =>
            {
                Ok(NOTHING.to_owned())
            }
            ObjectType::ObjectSequence | ObjectType::ObjectTable => {
                let (table, _) = self.basis.table(relation)?;
                let to = beside(self.basis.catalog, &relation.relname, &rename.newname);
                is_no_type(self.basis.catalog, &to)?;
                // A default names its sequence.
                if !self.basis.catalog.users_of_sequence(&relation.relname).is_empty() {
                    return Err(hints::refuse("ALTER SEQUENCE of a key").into());
                }
                self.with_owner(&relation.relname, |owner| owner.0.clone_from(&to));
                let sql = format!("ALTER TABLE {table} RENAME TO {}", name(&to));
                self.behind_names(relation, sql)
            }
            ObjectType::ObjectColumn if is_table => {
                let (table, _) = self.basis.table(relation)?;
                self.basis.column_of(&rename.subname, relation).map_err(|_| {
                    let message = format!("column \"{}\" does not exist", rename.subname);
                    Failure::new("42703", message)
                })?;
                let (from, to) = (name(&rename.subname), name(&rename.newname));
                self.with_owner(&relation.relname, |owner| {
                    if owner.1 == rename.subname {
                        owner.1.clone_from(&rename.newname);
                    }
                });
                let sql = format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}");
                self.behind_names(relation, sql)
            }
            _ => Err(hints::refuse("ALTER").into()),
        }
    }

    /// Writes the names of a table's constraints into its definition before it is renamed: they
    /// were made of the old name, and stay.
    fn behind_names(&mut self, relation: &RangeVar, rename: String) -> Translated<String> {
        let (catalog, table) = (self.basis.catalog, &relation.relname);
        let change = SchemaChange::Names { table: table.clone() };
        let old = match catalog.table(Some("temp"), table) {
            Some(_) => None,
            None => catalog.definition(table),
        };
        if old.and_then(|old| change.apply(&old)).is_none() {
            return Ok(rename);
        }
        let first = self.edit(relation, None, change, "ALTER")?;
        self.follow_ups.push(FollowUp::Sqlite(rename));
        Ok(first)
    }
}

/// Checks that a column's default may change: not that of a key whose numbers SQLite generates.
///
/// # Errors
/// 42601 for IDENTITY, as in the server; 0A000 for SERIAL.
fn has_default(column: &Attribute, relation: &RangeVar) -> Result<(), Failure> {
    match column.given {
        GivenBy::ByDefault | GivenBy::Always => {
            let (name, table) = (&column.name, &relation.relname);
            let message =
                format!("column \"{name}\" of relation \"{table}\" is an identity column");
            Err(Failure::new(state::SYNTAX, message))
        }
        GivenBy::Next => Err(hints::refuse("ALTER COLUMN")),
        GivenBy::Statement | GivenBy::Key => Ok(()),
    }
}

/// Refuses a change of a view.
fn is_no_view(
    catalog: &dyn Catalog,
    command: &AlterTableCmd,
    relation: &RangeVar,
) -> Result<(), Failure> {
    let columns = |schema: &str| catalog.table(Some(schema), &relation.relname);
    // A view has neither keys nor defaults.
    let plain = |known: &Attribute| known.key == 0 && known.default.is_none();
    let may_be =
        columns("temp").is_none() && columns("main").is_some_and(|known| known.iter().all(plain));
    if !may_be || catalog.definition(&relation.relname).is_some() {
        return Ok(());
    }
    let action = match command.subtype() {
        AlterTableType::AtAddColumn => "ADD COLUMN",
        AlterTableType::AtDropColumn => "DROP COLUMN",
        AlterTableType::AtSetNotNull => "ALTER COLUMN ... SET NOT NULL",
        AlterTableType::AtDropNotNull => "ALTER COLUMN ... DROP NOT NULL",
        AlterTableType::AtAlterColumnType => "ALTER COLUMN ... SET DATA TYPE",
        AlterTableType::AtAddConstraint => "ADD CONSTRAINT",
        AlterTableType::AtDropConstraint => "DROP CONSTRAINT",
        _ => return Err(hints::refuse("ALTER")),
    };
    let message =
        format!("ALTER action {action} cannot be performed on relation \"{}\"", relation.relname);
    let detail = "This operation is not supported for views.";
    Err(Failure::new("42809", message).detail(detail))
}

/// Refuses a table with triggers: they would run as its rows are written anew.
fn no_triggers(catalog: &dyn Catalog, table: &str, form: &str) -> Translated<()> {
    let is_trigger = |sql: &String| sql.starts_with("CREATE TRIGGER");
    match catalog.dependents(table).iter().any(is_trigger) {
        true => Err(hints::refuse(form).into()),
        false => Ok(()),
    }
}

/// True if all rows have a value of a column. A row is shorter than the table if a column was added
/// since it was written, and reads as that column's default; so a column without a default and
/// without NULLs is in every row, with all columns in front of it.
fn is_in_all_rows(attributes: &[Attribute], column: &str) -> bool {
    let mut from_here = attributes.iter().skip_while(|known| known.name != column);
    from_here.any(|known| known.not_null && known.default.is_none() && !known.computed)
}

/// True if an expression is a literal.
fn is_constant(node: &Node) -> bool {
    matches!(node.node, Some(NodeEnum::AConst(_)))
}

/// Takes a part out of a column's constraints; none if they do not have it.
fn without_part(rest: &str, part: &str) -> Option<String> {
    let (before, after) = rest.split_once(part)?;
    Some(format!("{before}{after}"))
}

/// Translates SET NOT NULL and DROP NOT NULL. A key stays without NULLs, as in the server.
fn not_null(
    command: &AlterTableCmd,
    relation: &RangeVar,
    table: &str,
    attributes: &[Attribute],
) -> Translated<String> {
    let column = attributes.iter().find(|known| known.name == command.name);
    let Some(column) = column else {
        let message = format!(
            "column \"{}\" of relation \"{}\" does not exist",
            command.name, relation.relname
        );
        return Err(Failure::new("42703", message).into());
    };
    let set = command.subtype() == AlterTableType::AtSetNotNull;
    if !set && column.key > 0 {
        let message = format!("column \"{}\" is in a primary key", command.name);
        return Err(Failure::new("42P16", message).into());
    }
    // SQLite refuses to drop what is not there, and would write NOT NULL twice.
    if set == column.not_null {
        return Ok(NOTHING.to_owned());
    }
    let word = if set { "SET" } else { "DROP" };
    Ok(format!("ALTER TABLE {table} ALTER COLUMN {} {word} NOT NULL", name(&column.name)))
}

/// Checks whether a column may be dropped.
fn is_dropped(it: &AlterTableCmd, relation: &RangeVar, known: bool) -> Result<(), Failure> {
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

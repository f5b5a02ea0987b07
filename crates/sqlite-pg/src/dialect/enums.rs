//! CREATE TYPE … AS ENUM, and the changes of such a type.
//!
//! A type is a table without rows, whose CREATE statement has its labels
//! ([`EnumType`]). A value is stored as its label, so a new name of a label is written into the
//! rows.

use std::collections::HashSet;

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    AlterEnumStmt, CreateEnumStmt, DropBehavior, DropStmt, Node, RenameStmt,
};

use crate::enums::{self, EnumType, LABELS_MAX, OIDS_EACH};
use crate::failure::{Failure, state};
use crate::types::Type;

use super::defaults::without_default;
use super::edits::{Edits, FollowUp, NOTHING, SchemaChange, SchemaEdit, is_permanent};
use super::relabel::{Relabel, renamed_literal};
use super::schema_names::{beside, of_sqlite, split};
use super::scope::{Attribute, Catalog, EnumColumn, SchemaObject};
use super::value::{name, text_literal};
use super::{Translated, hints, strings};

/// The column of the table of an enum, whose definition has the labels.
const COLUMN: &str = "label";
/// The most bytes of a label (`NAMEDATALEN` of the server).
const LABEL_BYTES_MAX: usize = 63;
/// The first OID of an enum.
const FIRST_OID: u32 = 1_000_000_000;
/// The number of OIDs among which the name of an enum chooses.
const OIDS: u32 = 1_000_000;

impl Edits<'_> {
    pub(super) fn create_enum(&mut self, it: &CreateEnumStmt) -> Translated<String> {
        let called = named(&strings(&it.type_name))?;
        let catalog = self.basis.catalog;
        let (schema, own) = split(catalog, &called);
        if own.contains('.') || Type::catalog_named(own).is_some() && schema.is_empty() {
            return Err(hints::refuse("CREATE TYPE").into());
        }
        is_new(catalog, &called)?;
        let labels = strings(&it.vals);
        are_few(&labels)?;
        let mut known = HashSet::new();
        for label in &labels {
            fits(label)?;
            if !known.insert(label) {
                let message = "duplicate key value violates unique constraint \
                               \"pg_enum_typid_label_index\"";
                let detail = format!("The label \"{label}\" stands twice.");
                return Err(Failure::new("23505", message).detail(detail).into());
            }
        }
        let mark = enums::mark(free_oid(catalog, &called), &labels);
        Ok(format!("CREATE TABLE {} ({} {mark} TEXT)", name(&called), name(COLUMN)))
    }

    /// Translates ALTER TYPE … ADD VALUE and RENAME VALUE.
    pub(super) fn alter_enum(&mut self, it: &AlterEnumStmt) -> Translated<String> {
        let old = existing(self.basis.catalog, &strings(&it.type_name))?;
        enums::has_room()?;
        fits(&it.new_val)?;
        let place_of = |label: &str| {
            let place = old.labels().iter().position(|known| known == label);
            place.ok_or_else(|| {
                let message = format!("\"{label}\" is not an existing enum label");
                Failure::new(state::BAD_PARAMETER_VALUE, message)
            })
        };
        let renamed = if it.old_val.is_empty() { None } else { Some(place_of(&it.old_val)?) };
        if old.labels().contains(&it.new_val) {
            if it.skip_if_new_val_exists {
                return Ok(NOTHING.to_owned());
            }
            let message = format!("enum label \"{}\" already exists", it.new_val);
            return Err(Failure::new("42710", message).into());
        }
        let mut labels = old.labels().to_vec();
        match renamed {
            Some(place) => labels[place].clone_from(&it.new_val),
            None => {
                let place = match it.new_val_neighbor.as_str() {
                    "" => labels.len(),
                    neighbor => place_of(neighbor)? + usize::from(it.new_val_is_after),
                };
                labels.insert(place, it.new_val.clone());
                are_few(&labels)?;
            }
        }
        self.relabel(Relabel { from: old, to: EnumType::new(old.called(), old.oid(), labels) })
    }

    /// Gives a type its new labels, also where other definitions have them.
    fn relabel(&mut self, relabel: Relabel) -> Translated<String> {
        let (catalog, of) = (self.basis.catalog, relabel.from);
        let defined = with_labels(catalog, of);
        for object in &defined {
            let fits = !object.temporary && object.kind != "trigger";
            if !fits || relabel.apply(&object.sql).is_none() {
                let detail =
                    format!("The {} \"{}\" has labels of the type.", object.kind, object.name);
                return Err(hints::refuse("ALTER TYPE").detail(detail).into());
            }
        }
        let renamed = relabel.renamed();
        let is_index = |object: &&SchemaObject| renamed.is_some() && object.kind == "index";
        // Such an index would have entries by the old name.
        let indexes: Vec<SchemaObject> = defined.iter().filter(is_index).cloned().collect();
        for index in &indexes {
            let drop = format!("DROP INDEX {}", main_name(&index.name));
            self.follow_ups.push(FollowUp::Sqlite(drop));
        }
        let column = COLUMN.to_owned();
        let from = vec![enums::mark(of.oid(), of.labels())];
        let to = enums::mark(of.oid(), relabel.to.labels());
        let change = SchemaChange::Column { column, from, to };
        self.edit_of(of.called(), change, Some(relabel.clone()))?;
        if let Some((old, new)) = renamed {
            self.rename_label(of, old, new)?;
        }
        let made = indexes.iter().filter_map(|index| relabel.apply(&index.sql));
        self.follow_ups.extend(made.map(FollowUp::Sqlite));
        Ok(format!("DELETE FROM {} WHERE 0", main_name(of.called())))
    }

    /// Gives a permanent table a new definition.
    fn edit_of(
        &mut self,
        table: &str,
        change: SchemaChange,
        relabel: Option<Relabel>,
    ) -> Translated<()> {
        let refusal = hints::refuse("ALTER TYPE");
        is_permanent(self.basis.catalog, table, &refusal.clone().detail(of_session(table)))?;
        let edit = SchemaEdit::of(table, &name(table), change, None, refusal);
        let edit = SchemaEdit { relabel, ..edit };
        self.follow_ups.push(FollowUp::Edit(Box::new(edit)));
        Ok(())
    }

    /// Writes a new name of a label into the rows and the defaults.
    fn rename_label(&mut self, of: EnumType, old: &str, new: &str) -> Translated<()> {
        let columns = self.basis.catalog.columns_of_enum(of);
        // A foreign key between two of the columns holds again when both have the new name.
        let defer = |on: u8| FollowUp::Sqlite(format!("PRAGMA defer_foreign_keys = {on}"));
        self.follow_ups.push(defer(1));
        for it in &columns {
            let default = renamed_default(&it.column, old, new);
            if let Some(default) = default
                && let Some(SchemaChange::Column { column, from, .. }) = without_default(&it.column)
            {
                let to = format!(" DEFAULT ({default})");
                self.edit_of(&it.table.name, SchemaChange::Column { column, from, to }, None)?;
            }
            if !it.column.computed {
                self.follow_ups.push(FollowUp::Sqlite(relabelled(it, old, new)));
            }
        }
        self.follow_ups.push(defer(0));
        Ok(())
    }

    pub(super) fn rename_type(&mut self, rename: &RenameStmt) -> Translated<String> {
        let catalog = self.basis.catalog;
        let names = match rename.object.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::List(list)) => strings(&list.items),
            _ => Vec::new(),
        };
        let old = existing(catalog, &names)?;
        let to = beside(catalog, old.called(), &rename.newname);
        let own = split(catalog, &to).1;
        if own.contains('.') || Type::catalog_named(own).is_some() && own == to {
            return Err(hints::refuse("ALTER TYPE").into());
        }
        is_new(catalog, &to)?;
        enums::has_room()?;
        Ok(format!("ALTER TABLE {} RENAME TO {}", main_name(old.called()), name(&to)))
    }

    /// Translates DROP TYPE. With CASCADE the columns of the type, and the views and indexes
    /// that have it, go first.
    pub(super) fn drop_types(&mut self, drop: &DropStmt) -> Translated<String> {
        let catalog = self.basis.catalog;
        let cascade = drop.behavior() == DropBehavior::DropCascade;
        let mut all = Vec::new();
        for node in &drop.objects {
            match existing(catalog, &type_names(node)) {
                Err(failure) if drop.missing_ok && failure.sqlstate == state::NO_OBJECT => {}
                Err(Failure { sqlstate: "42809", .. }) => {
                    return Err(required(catalog, &type_names(node)).into());
                }
                found => all.push(found?),
            }
        }
        let mut first = Vec::new();
        for of in &all {
            let columns = catalog.columns_of_enum(*of);
            let others = others_with(catalog, *of, &columns);
            if columns.is_empty() && others.is_empty() {
                continue;
            }
            if !cascade {
                return Err(needed(catalog, *of, &columns, &others).into());
            }
            for other in &others {
                let called = is_reached(catalog, other)?;
                first.push(match other.kind.as_str() {
                    "view" => format!("DROP VIEW IF EXISTS {called} CASCADE"),
                    "index" => format!("DROP INDEX IF EXISTS {called}"),
                    kind => {
                        let shown = split(catalog, &other.name).1;
                        let detail = format!("A part of {kind} {shown} has labels of the type.");
                        return Err(not_cascaded(detail).into());
                    }
                });
            }
            for it in &columns {
                let (table, column) = (is_reached(catalog, &it.table)?, name(&it.column.name));
                first.push(format!("ALTER TABLE {table} DROP COLUMN {column}"));
            }
        }
        let drop = |of: &EnumType| format!("DROP TABLE {}", main_name(of.called()));
        if !first.is_empty() {
            first.extend(all.iter().map(|of| format!("DROP TYPE {}", name(of.called()))));
            return self.sequence(first);
        }
        let Some((last, others)) = all.split_last() else { return Ok(NOTHING.to_owned()) };
        self.follow_ups.extend(others.iter().map(|of| FollowUp::Sqlite(drop(of))));
        Ok(drop(last))
    }
}

/// Returns the name of a table of the file as SQL, which no temporary table hides.
fn main_name(table: &str) -> String {
    format!("main.{}", name(table))
}

fn of_session(table: &str) -> String {
    format!("The session has a temporary table \"{table}\".")
}

/// Returns 0A000: DROP TYPE with CASCADE cannot drop all that has the type.
fn not_cascaded(detail: String) -> Failure {
    let failure = Failure::unsupported("this form of DROP TYPE … CASCADE is not supported");
    failure.detail(detail).hint("drop what has the type, then the type")
}

/// Returns the name of a type in the file.
fn named(names: &[String]) -> Result<String, Failure> {
    match names {
        [only] => Ok(only.clone()),
        [schema, only] if of_sqlite(schema)? == Some("main") => Ok(only.clone()),
        _ => Err(hints::refuse("CREATE TYPE")),
    }
}

/// Returns the enum of this name.
///
/// # Errors
/// 42704 if there is no such type, 42809 if it is no enum.
fn existing(catalog: &dyn Catalog, names: &[String]) -> Result<EnumType, Failure> {
    let built_in = match names {
        [only] => Type::catalog_named(only),
        [schema, only] if schema == "pg_catalog" => Type::catalog_named(only),
        _ => None,
    };
    if let Some(is) = built_in {
        return Err(Failure::new("42809", format!("{} is not an enum", is.name())));
    }
    let called = named(names)?;
    if let Some(of) = catalog.enum_named(&called) {
        return Ok(of);
    }
    if catalog.table(None, &called).is_some() {
        return Err(Failure::new("42809", format!("{called} is not an enum")));
    }
    let message = format!("type \"{}\" does not exist", names.join("."));
    Err(Failure::new(state::NO_OBJECT, message))
}

/// Returns 2BP01: a type that is no enum cannot be dropped.
fn required(catalog: &dyn Catalog, names: &[String]) -> Failure {
    let called = names.last().map(String::as_str).unwrap_or_default();
    let built_in = Type::catalog_named(called);
    if built_in.is_none() && catalog.table(None, called).is_some() {
        let message = format!("cannot drop type {called} because table {called} requires it");
        let hint = format!("You can drop table {called} instead.");
        return Failure::new("2BP01", message).hint(hint);
    }
    let shown = built_in.map_or("", Type::name);
    let message = format!("cannot drop type {shown} because it is required by the database system");
    Failure::new("2BP01", message)
}

/// Returns the names in a node of DROP TYPE.
fn type_names(node: &Node) -> Vec<String> {
    match &node.node {
        Some(NodeEnum::TypeName(it)) if it.array_bounds.is_empty() => strings(&it.names),
        _ => Vec::new(),
    }
}

/// Returns the name of an object as SQL, which stands for no other one.
///
/// # Errors
/// 0A000 for a permanent one that a temporary one hides.
fn is_reached(catalog: &dyn Catalog, object: &SchemaObject) -> Translated<String> {
    if !object.temporary {
        is_permanent(catalog, &object.name, &not_cascaded(of_session(&object.name)))?;
    }
    Ok(name(&object.name))
}

/// Returns what has labels of an enum in its SQL.
fn with_labels(catalog: &dyn Catalog, of: EnumType) -> Vec<SchemaObject> {
    let mut all = catalog.with_text(&of.listed_mark());
    for object in catalog.with_text(&of.single_mark()) {
        let is_same =
            |it: &SchemaObject| (&it.name, it.temporary) == (&object.name, object.temporary);
        if !all.iter().any(is_same) {
            all.push(object);
        }
    }
    all
}

/// Returns what has an enum beside columns of tables: views, and what has its labels.
fn others_with(catalog: &dyn Catalog, of: EnumType, columns: &[EnumColumn]) -> Vec<SchemaObject> {
    let mut all = with_labels(catalog, of);
    all.extend(catalog.with_text(&of.word(false)));
    let key = |it: &SchemaObject| (it.name.clone(), it.temporary);
    all.retain(|object| !columns.iter().any(|it| key(&it.table) == key(object)));
    all.sort_by_key(key);
    all.dedup_by_key(|object| key(object));
    all
}

/// Returns 2BP01: columns or other objects need an enum.
fn needed(
    catalog: &dyn Catalog,
    of: EnumType,
    columns: &[EnumColumn],
    others: &[SchemaObject],
) -> Failure {
    let shown = |called: &str| split(catalog, called).1.to_owned();
    let mut lines = Vec::new();
    for EnumColumn { table, column } in columns {
        let (table, is) = (shown(&table.name), column.is.name());
        lines.push(format!("column {} of table {table} depends on type {is}", column.name));
    }
    for SchemaObject { name, kind, .. } in others {
        lines.push(format!("{kind} {} depends on type {}", shown(name), of.name()));
    }
    let message = format!("cannot drop type {} because other objects depend on it", of.name());
    Failure::new("2BP01", message)
        .detail(lines.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// Returns a default that is no more than a text, as SQL.
fn text_of_default(column: &Attribute) -> Option<String> {
    let default = column.default.as_ref()?;
    let inside = default.strip_prefix('\'')?.strip_suffix('\'')?;
    let is_one = !inside.replace("''", "").contains('\'');
    is_one.then(|| default.clone())
}

/// Returns the default of a column of an enum with a label's new name; none if it does not have
/// the label, or is more than a text.
fn renamed_default(column: &Attribute, old: &str, new: &str) -> Option<String> {
    let text = text_of_default(column)?;
    let made = renamed_literal(&text, old, new)?;
    (made != text).then_some(made)
}

/// Writes the statement that gives the rows a label's new name.
fn relabelled(it: &EnumColumn, old: &str, new: &str) -> String {
    let (schema, column) = (it.table.schema(), name(&it.column.name));
    let table = format!("{schema}.{}", name(&it.table.name));
    let (old, new) = (text_literal(old), text_literal(new));
    match it.column.is {
        Type::Enum(_) => format!("UPDATE {table} SET {column} = {new} WHERE {column} = {old}"),
        _ => format!(
            "UPDATE {table} SET {column} = (SELECT json_group_array(iif(value = {old}, {new}, \
             value) ORDER BY key) FROM json_each({column})) \
             WHERE {old} IN (SELECT value FROM json_each({column}))"
        ),
    }
}

/// Checks that no type has this name. A table or a view has a type of its name too.
fn is_new(catalog: &dyn Catalog, called: &str) -> Result<(), Failure> {
    if catalog.enum_named(called).is_none() && !catalog.is_taken(called) {
        return Ok(());
    }
    let message = format!("type \"{}\" already exists", split(catalog, called).1);
    Err(Failure::new("42710", message))
}

/// Checks the number of labels, and that there is room for their definition.
fn are_few(labels: &[String]) -> Result<(), Failure> {
    if labels.len() <= LABELS_MAX {
        return enums::has_room();
    }
    Err(Failure::new("54000", format!("a type can have at most {LABELS_MAX} labels")))
}

/// Checks the length of a label.
fn fits(label: &str) -> Result<(), Failure> {
    if label.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{label}\"");
    let detail = format!("Labels must be {LABEL_BYTES_MAX} bytes or less.");
    Err(Failure::new("42602", message).detail(detail))
}

/// Chooses an OID by the name of an enum, so that a file that is made again has the same OIDs.
fn free_oid(catalog: &dyn Catalog, called: &str) -> u32 {
    // FNV-1a: the same in each process.
    let hashed = called
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mut oid = FIRST_OID + hashed % OIDS * OIDS_EACH;
    while catalog.enum_of(oid).is_some() {
        oid += OIDS_EACH;
    }
    oid
}

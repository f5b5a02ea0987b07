//! ALTER TABLE … ADD and DROP CONSTRAINT.

use refrain_grammar::protobuf::{AlterTableCmd, ConstrType, Constraint, DropBehavior, RangeVar};

use crate::failure::{Failure, state};
use crate::sql_text::object_name;
use crate::standard;

use super::basis::Basis;
use super::define::plain_key;
use super::definer::Definer;
use super::edits::{Edits, FollowUp, NOTHING, SchemaChange, is_permanent};
use super::keys::{is_indexed, is_once};
use super::schema_names::{beside, free_name, of_index, split};
use super::scope::{Attribute, Catalog, Scope, Scoped};
use super::value::name;
use super::{Translated, hints, strings};

/// Mark in the CREATE statement of an index that stands for a constraint.
pub(crate) const ADDED: &str = "/*refrain constraint*/";

impl Definer<'_, '_> {
    /// Translates ADD CONSTRAINT; `None` for other kinds of constraints.
    pub(super) fn add_constraint(
        &mut self,
        it: &Constraint,
        relation: &RangeVar,
    ) -> Translated<Option<String>> {
        if it.skip_validation && !it.initially_valid {
            return Ok(None);
        }
        is_new_constraint(self.edits.basis.catalog, it, relation)?;
        match it.contype() {
            ConstrType::ConstrForeign => self.add_foreign_key(it, relation),
            ConstrType::ConstrCheck => self.add_check(it, relation),
            ConstrType::ConstrUnique => add_unique(self.edits.basis, it, relation),
            ConstrType::ConstrPrimary => self.edits.add_key(it, relation),
            _ => return Ok(None),
        }
        .map(Some)
    }

    /// Translates a constraint of a table that exists.
    fn of_table(&mut self, it: &Constraint, relation: &RangeVar) -> Translated<String> {
        let (_, attributes) = self.edits.basis.table(relation)?;
        let scope = Scope::of_table(&relation.relname, &attributes);
        self.within(scope, |this| this.constraint(it, None))
    }

    fn add_foreign_key(&mut self, it: &Constraint, relation: &RangeVar) -> Translated<String> {
        let made = self.of_table(it, relation)?;
        let called = match it.conname.as_str() {
            "" => {
                let own = split(self.edits.basis.catalog, &relation.relname).1;
                object_name(own, &strings(&it.fk_attrs).join("_"), "fkey")
            }
            given => given.to_owned(),
        };
        self.edits.edit(relation, Some(called), SchemaChange::Add(made), "ADD FOREIGN KEY")
    }

    /// Translates ADD CHECK. Without a name it gets the one that the server gives it.
    fn add_check(&mut self, it: &Constraint, relation: &RangeVar) -> Translated<String> {
        let mut made = self.of_table(it, relation)?;
        let (table, _) = self.edits.basis.table(relation)?;
        if it.conname.is_empty() {
            let old = self.edits.basis.catalog.definition(&relation.relname).unwrap_or_default();
            let with = SchemaChange::Add(made.clone()).apply(&old);
            let named = with.and_then(|sql| standard::last_name(&sql, &relation.relname));
            let named = named.ok_or_else(|| hints::refuse("ADD CHECK"))?;
            made = format!("CONSTRAINT {} {made}", name(&named));
        }
        Ok(format!("ALTER TABLE {table} ADD {made}"))
    }
}

impl Edits<'_> {
    /// Translates ADD PRIMARY KEY. Its columns become NOT NULL first.
    fn add_key(&mut self, it: &Constraint, relation: &RangeVar) -> Translated<String> {
        plain_key(it)?;
        let (table, attributes) = self.basis.table(relation)?;
        if attributes.iter().any(|column| column.key > 0) {
            let message =
                format!("multiple primary keys for table \"{}\" are not allowed", relation.relname);
            return Err(Failure::new("42P16", message).into());
        }
        let called = match it.conname.as_str() {
            "" => object_name(split(self.basis.catalog, &relation.relname).1, "", "pkey"),
            given => given.to_owned(),
        };
        if self.basis.catalog.is_taken(&called) || self.basis.catalog.constrained(&called).is_some()
        {
            let message = format!("relation \"{called}\" already exists");
            return Err(Failure::new("42P07", message).into());
        }
        let columns = key_columns(it, &attributes)?;
        for column in columns.iter().filter(|column| !column.not_null) {
            let called = name(&column.name);
            let sql = format!("ALTER TABLE {table} ALTER COLUMN {called} SET NOT NULL");
            self.follow_ups.push(FollowUp::Sqlite(sql));
        }
        let columns = columns.into_iter().map(|column| column.name.clone()).collect();
        let change = SchemaChange::AddKey { called, columns };
        self.edit(relation, None, change, "ADD PRIMARY KEY")
    }

    /// Translates DROP CONSTRAINT.
    pub(super) fn drop_constraint(
        &mut self,
        it: &AlterTableCmd,
        relation: &RangeVar,
    ) -> Translated<String> {
        let table = &relation.relname;
        self.basis.table(relation)?;
        is_permanent(self.basis.catalog, table, &hints::refuse("DROP CONSTRAINT"))?;
        let sql = self.basis.catalog.definition(table).unwrap_or_default();
        let index = beside(self.basis.catalog, table, &it.name);
        let added =
            matches!(self.basis.catalog.constrained(&index), Some((of, true)) if of == *table);
        let key = standard::key_named(&sql, table, &it.name);
        if key.is_none() && !added {
            return self.drop_other_constraint(it, relation, &sql);
        }
        let dependents = dependents_of_key(self.basis.catalog, &index, table, key.as_ref());
        if let Some((other, key)) = dependents.first()
            && it.behavior() != DropBehavior::DropCascade
        {
            let message = format!(
                "cannot drop constraint {} on table {table} because other objects depend on it",
                it.name
            );
            let detail = format!("constraint {key} on table {other} depends on index {}", it.name);
            let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
            return Err(Failure::new("2BP01", message).detail(detail).hint(hint).into());
        }
        if let [_, ..] = &dependents[..] {
            let drop = |table: &str, key: &str| {
                format!("ALTER TABLE {} DROP CONSTRAINT {}", name(table), name(key))
            };
            let mut all: Vec<_> = dependents.iter().map(|(of, key)| drop(of, key)).collect();
            all.push(drop(table, &it.name));
            return self.sequence(all);
        }
        if added {
            return Ok(format!("DROP INDEX {}", name(&index)));
        }
        let change = SchemaChange::Drop { table: table.clone(), constraint: it.name.clone() };
        self.edit(relation, None, change, "DROP CONSTRAINT")
    }

    fn drop_other_constraint(
        &mut self,
        it: &AlterTableCmd,
        relation: &RangeVar,
        sql: &str,
    ) -> Translated<String> {
        let change =
            SchemaChange::Drop { table: relation.relname.clone(), constraint: it.name.clone() };
        if change.apply(sql).is_some() {
            return self.edit(relation, None, change, "DROP CONSTRAINT");
        }
        if it.missing_ok {
            return Ok(NOTHING.to_owned());
        }
        let message = format!(
            "constraint \"{}\" of relation \"{}\" does not exist",
            it.name, relation.relname
        );
        let hint = format!("\\d {} lists the constraints", relation.relname);
        Err(Failure::new(state::NO_OBJECT, message).hint(hint).into())
    }
}

/// Checks that no constraint of a table has the name of a new one. SQLite checks the names of keys,
/// which are indexes.
fn is_new_constraint(
    catalog: &dyn Catalog,
    it: &Constraint,
    relation: &RangeVar,
) -> Result<(), Failure> {
    let (table, called) = (&relation.relname, &it.conname);
    let sql = catalog.definition(table).unwrap_or_default();
    let is_key = matches!(it.contype(), ConstrType::ConstrUnique | ConstrType::ConstrPrimary);
    let key = || {
        let added = catalog.constrained(&beside(catalog, table, called));
        standard::has_key(&sql, table, called) || added.is_some_and(|(of, _)| of == *table)
    };
    let taken = standard::has_other(&sql, table, called) || !is_key && key();
    if called.is_empty() || !taken {
        return Ok(());
    }
    let message = format!("constraint \"{called}\" for relation \"{table}\" already exists");
    Err(Failure::new("42710", message))
}

/// Translates ADD UNIQUE to an index, which enforces the same in SQLite.
fn add_unique(basis: Basis<'_>, it: &Constraint, relation: &RangeVar) -> Translated<String> {
    let (table, attributes) = basis.table(relation)?;
    plain_key(it)?;
    let keys = key_columns(it, &attributes)?;
    let keys: Vec<String> = keys.iter().map(|column| column.name.clone()).collect();
    let called = match it.conname.as_str() {
        "" => free_name(basis.catalog, &relation.relname, &keys.join("_"), "key"),
        given => beside(basis.catalog, &relation.relname, given),
    };
    let (schema, table) = of_index(&table);
    let keys: Vec<String> = keys.iter().map(|key| name(key)).collect();
    Ok(format!(
        "CREATE UNIQUE INDEX {schema}{} ON {table} ({ADDED}{})",
        name(&called),
        keys.join(", ")
    ))
}

/// Returns the columns of a key.
fn key_columns<'a>(it: &Constraint, attributes: &'a [Attribute]) -> Translated<Vec<&'a Attribute>> {
    is_once(it)?;
    let mut columns: Vec<&Attribute> = Vec::new();
    for key in strings(&it.keys) {
        let column = attributes.iter().find(|known| known.name == key).ok_or_else(|| {
            Failure::new("42703", format!("column \"{key}\" named in key does not exist"))
        })?;
        is_indexed(column.is, true)?;
        columns.push(column);
    }
    Ok(columns)
}

/// Returns the foreign keys that need a key, each with its table. Without a key of the definition
/// it is an index, which has no other name.
fn dependents_of_key(
    catalog: &dyn Catalog,
    index: &str,
    table: &str,
    key: Option<&standard::Key>,
) -> Vec<(String, String)> {
    let columns = match key {
        Some(key) => key.columns.clone(),
        None => catalog.columns_of(index),
    };
    let is_primary = key.is_some_and(|key| key.is_primary);
    let mut tables = catalog.referrers(table);
    tables.push(table.to_owned());
    let mut all = Vec::new();
    for other in tables {
        let sql = catalog.definition(&other).unwrap_or_default();
        for key in standard::foreign_keys(&sql, &other) {
            let of_key = match &key.target_columns[..] {
                [] => is_primary,
                of => of.len() == columns.len() && of.iter().all(|it| columns.contains(it)),
            };
            if key.target == *table && of_key {
                all.push((other.clone(), key.name));
            }
        }
    }
    all
}

//! REFERENCES.

use refrain_grammar::protobuf::{Constraint, RangeVar};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::basis::Basis;
use super::common_types::common;
use super::scope::{Attribute, Catalog, Scopes, find};
use super::value::name;
use super::{Translated, hints, strings};

impl Scopes {
    /// Returns the types of columns of the table that is being declared.
    pub(super) fn types_of(&self, columns: &[String]) -> Translated<Vec<Type>> {
        let found = columns.iter().map(|column| {
            let message =
                format!("column \"{column}\" referenced in foreign key constraint does not exist");
            let found = find(&self.open, None, column);
            let (_, found) = found.map_err(|_| Failure::new("42703", message))?;
            Ok(found.is().unwrap_or(Type::Text))
        });
        Ok(found.collect::<Result<_, Failure>>()?)
    }

    /// True if a table is the one that is being declared.
    fn is_own(&self, table: &RangeVar) -> bool {
        let own = self.open.last().and_then(|scope| scope.sources.first());
        own.is_some_and(|own| own.alias == table.relname)
    }
}

/// Checks that the table exists to which a foreign key refers.
pub(super) fn refers(basis: Basis<'_>, scopes: &Scopes, it: &Constraint) -> Translated<()> {
    let table = it.pktable.as_ref().ok_or_else(hints::unknown)?;
    if !scopes.is_own(table) {
        basis.table(table)?;
    }
    Ok(())
}

pub(super) fn foreign_key(
    basis: Basis<'_>,
    scopes: &Scopes,
    it: &Constraint,
    types: &[Type],
) -> Translated<String> {
    let table = it.pktable.as_ref().ok_or_else(hints::unknown)?;
    let plain = it.initially_valid || !it.skip_validation;
    if it.fk_matchtype == "f" || !it.fk_del_set_cols.is_empty() || !plain {
        return Err(hints::refuse("MATCH FULL").into());
    }
    if !scopes.is_own(table) {
        let (_, attributes) = basis.table(table)?;
        if it.pk_attrs.is_empty() && attributes.iter().all(|attribute| attribute.key == 0) {
            return Err(no_key(table).into());
        }
        referred_to(basis.catalog, it, &table.relname, &attributes, types)?;
    }
    if scopes.is_own(table) && it.pk_attrs.is_empty() {
        own_key(basis.catalog, table)?;
    }
    let action = |letter: &str| match letter {
        "r" => Some("RESTRICT"),
        "c" => Some("CASCADE"),
        "n" => Some("SET NULL"),
        "d" => Some("SET DEFAULT"),
        _ => None,
    };
    let mut words = format!("REFERENCES {}", name(&table.relname));
    let columns: Vec<String> = strings(&it.pk_attrs).iter().map(|column| name(column)).collect();
    if !columns.is_empty() {
        words.push_str(&format!(" ({})", columns.join(", ")));
    }
    for (event, letter) in [("DELETE", &it.fk_del_action), ("UPDATE", &it.fk_upd_action)] {
        if let Some(action) = action(letter) {
            words.push_str(&format!(" ON {event} {action}"));
        }
    }
    if it.deferrable {
        let when = if it.initdeferred { "DEFERRED" } else { "IMMEDIATE" };
        words.push_str(&format!(" DEFERRABLE INITIALLY {when}"));
    }
    Ok(words)
}

/// Checks that the columns that a foreign key refers to are a key, and have types comparable with
/// its own.
fn referred_to(
    catalog: &dyn Catalog,
    it: &Constraint,
    table: &str,
    attributes: &[Attribute],
    own: &[Type],
) -> Translated<()> {
    let mut columns = strings(&it.pk_attrs);
    if columns.is_empty() {
        let mut keys: Vec<_> = attributes.iter().filter(|known| known.key > 0).collect();
        keys.sort_by_key(|known| known.key);
        columns = keys.into_iter().map(|known| known.name.clone()).collect();
    }
    let mut theirs = Vec::new();
    for column in &columns {
        let known = attributes.iter().find(|known| known.name == *column);
        let message =
            format!("column \"{column}\" referenced in foreign key constraint does not exist");
        theirs.push(known.ok_or_else(|| Failure::new("42703", message))?.is);
    }
    if theirs.len() != own.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(Failure::new("42830", message).into());
    }
    if !catalog.is_unique(table, &columns) {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{table}\""
        );
        return Err(Failure::new("42830", message).into());
    }
    if own.iter().zip(&theirs).any(|(own, their)| common(*own, *their).is_none()) {
        let message = "a foreign key and what it refers to are of types that cannot be compared";
        return Err(Failure::new(state::WRONG_TYPE, message).into());
    }
    Ok(())
}

/// Checks that a table that exists has a primary key, to which a new column refers.
fn own_key(catalog: &dyn Catalog, table: &RangeVar) -> Result<(), Failure> {
    let known = catalog.table(None, &table.relname);
    if known.is_none_or(|columns| columns.iter().any(|column| column.key > 0)) {
        return Ok(());
    }
    Err(no_key(table))
}

fn no_key(table: &RangeVar) -> Failure {
    let message = format!("there is no primary key for referenced table \"{}\"", table.relname);
    Failure::new("42704", message)
}

//! Checks of keys and indexes that are to be made.

use refrain_grammar::protobuf::{ConstrType, Constraint};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::schema_names::beside;
use super::scope::Catalog;
use super::{hints, strings};

/// Checks that an index has values of a type as the server has them.
///
/// # Errors
/// 42704 for `json`, 0A000 for a unique index of `jsonb`, whose equality is not that of its text.
pub(super) fn is_indexed(is: Type, unique: bool) -> Result<(), Failure> {
    match is {
        Type::Json => {
            let message =
                "data type json has no default operator class for access method \"btree\"";
            let hint = "You must specify an operator class for the index or define a default \
                        operator class for the data type.";
            Err(Failure::new(state::NO_OBJECT, message).hint(hint))
        }
        Type::Jsonb if unique => Err(hints::refuse("jsonb comparison")),
        _ => Ok(()),
    }
}

/// Checks that nothing has the name that a statement gives to a key of a new table.
///
/// # Errors
/// 42P07.
pub(super) fn is_new_key(
    catalog: &dyn Catalog,
    it: &Constraint,
    table: &str,
) -> Result<(), Failure> {
    let is_key = matches!(it.contype(), ConstrType::ConstrUnique | ConstrType::ConstrPrimary);
    let called = beside(catalog, table, &it.conname);
    let is_taken = || catalog.is_taken(&called) || catalog.constrained(&called).is_some();
    if !is_key || it.conname.is_empty() || !is_taken() {
        return Ok(());
    }
    Err(Failure::new("42P07", format!("relation \"{}\" already exists", it.conname)))
}

/// Checks that no column stands twice in a key.
///
/// # Errors
/// 42701.
pub(super) fn is_once(it: &Constraint) -> Result<(), Failure> {
    let keys = strings(&it.keys);
    let twice = keys.iter().enumerate().find(|(place, key)| keys[..*place].contains(key));
    let Some((_, key)) = twice else { return Ok(()) };
    let kind = match it.contype() {
        ConstrType::ConstrUnique => "unique",
        _ => "primary key",
    };
    let message = format!("column \"{key}\" appears twice in {kind} constraint");
    Err(Failure::new("42701", message))
}

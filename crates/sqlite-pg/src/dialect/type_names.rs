//! Names of types: the type of a name, and the maximum length of its values.

use refrain_grammar::protobuf::TypeName;

use crate::enums::element_name;
use crate::failure::{Failure, state};
use crate::types::Type;

use super::basis::Basis;
use super::schema_names::split;
use super::scope::Catalog;
use super::words::{OTHER_TYPES, SQLITE_TYPES};
use super::{NotTranslated, Translated, hints, integer, strings};

/// Returns a type by its name, and the maximum length of its values.
pub(super) fn type_name(basis: Basis<'_>, written: &TypeName) -> Translated<(Type, Option<u32>)> {
    let text = basis.text;
    if written.setof {
        return Err(hints::refuse("ARRAY").into());
    }
    if !written.array_bounds.is_empty() {
        let of = TypeName { array_bounds: Vec::new(), ..written.clone() };
        let (of, limit) = type_name(basis, &of)?;
        let array = of.array().filter(|_| limit.is_none());
        return Ok((array.ok_or_else(|| hints::refuse("ARRAY"))?, None));
    }
    let names = strings(&written.names);
    let called = names.last().map(String::as_str).unwrap_or_default();
    // The grammar reads CHAR without quotes as `bpchar`.
    if called == "char" && names.len() <= 2 {
        return Ok((Type::Char, None));
    }
    if OTHER_TYPES.contains(&called) || written.pct_type {
        return Err(NotTranslated::from(hints::refuse("type")).at(text, written.location));
    }
    if names.len() == 1 && SQLITE_TYPES.contains(&called) {
        return Err(NotTranslated::Sqlite);
    }
    let known = names.len() == 1 || names.len() == 2 && names[0] == "pg_catalog";
    let in_file = names.len() == 1 || names.len() == 2 && names[0] == "public";
    let of_array = || {
        let of = basis.catalog.enum_named(&element_name(called)?);
        of.map(Type::EnumArray)
    };
    let of_enum = || basis.catalog.enum_named(called).map(Type::Enum);
    let of_file = || if in_file { of_enum().or_else(of_array) } else { None };
    let Some(is) = Type::catalog_named(called).filter(|_| known).or_else(of_file) else {
        let message = format!("type \"{}\" does not exist", names.join("."));
        let failure = Failure::new(state::NO_OBJECT, message)
            .hint("CREATE TYPE … AS ENUM makes a type; for others write text, with a CHECK");
        return Err(NotTranslated::from(failure).at(text, written.location));
    };
    let modifiers: Vec<i32> = written.typmods.iter().filter_map(integer).collect();
    match (is, &modifiers[..]) {
        (Type::Varchar | Type::Bpchar, [limit]) => {
            let limit = u32::try_from(*limit).ok().filter(|limit| (1..=10_485_760).contains(limit));
            let limit = limit.ok_or_else(|| {
                let message = format!("length for type {} must be at least 1", is.name());
                Failure::new(state::BAD_PARAMETER_VALUE, message)
            })?;
            Ok((is, Some(limit)))
        }
        (Type::Timestamp | Type::Timestamptz | Type::Time, [6]) => Ok((is, None)),
        (Type::Timestamp | Type::Timestamptz, [digits @ 0..=5]) => {
            Ok((is, Some(digits.unsigned_abs())))
        }
        (_, []) if written.typmods.is_empty() => Ok((is, None)),
        (Type::Numeric, _) => Err(hints::refuse("numeric column").into()),
        _ => Err(hints::refuse("type with a precision").into()),
    }
}

/// Checks that no enum has the name of a new table or view, which has a type of its name.
///
/// # Errors
/// 42710.
pub(super) fn is_no_type(catalog: &dyn Catalog, called: &str) -> Result<(), Failure> {
    if catalog.enum_named(called).is_none() {
        return Ok(());
    }
    let (_, own) = split(catalog, called);
    let message = format!("type \"{own}\" already exists");
    Err(Failure::new("42710", message).hint(
        "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
    ))
}

//! Arrays in SQLite's dialect: arrays of JSON, which SQLite takes apart by itself.

use crate::failure::Failure;
use crate::types::Type;

use super::coerce::Wanted;
use super::hints;
use super::scope::Scopes;
use super::typing::Typing;
use super::value::{Expr, as_element, name};

/// The name of the rows of an array's elements within an expression.
const ELEMENT: &str = "refrain_element";

/// Returns the type of an array's elements.
///
/// # Errors
/// 42804 for a value that is no array.
fn element_of(array: &Expr) -> Result<Type, Failure> {
    array.is().and_then(Type::element).ok_or_else(|| {
        let message = format!("an array was expected, not type {}", array.type_name());
        Failure::new("42804", message)
    })
}

/// Returns the array of the tables of which a table is a partition: there are no partitions.
pub(super) fn no_partitions() -> Expr {
    Expr::typed("'[]'", Type::OidArray)
}

impl Typing<'_> {
    /// Translates a subscript.
    pub(super) fn at_subscript(&mut self, array: Expr, place: Expr) -> Result<Expr, Failure> {
        if array.is() == Some(Type::Jsonb) {
            let place = self.coerce(place, Type::Text, Wanted::Assignment)?;
            let sql = format!(
                "refrain_json_path({}, {}, json_array({}), 0)",
                Type::Jsonb.oid(),
                array.sql,
                place.sql
            );
            let made = Expr::made(sql, Type::Jsonb, &[&array, &place]);
            return Ok(Expr { name: array.name.clone(), ..made });
        }
        let of = element_of(&array)?;
        let first = array.is().map_or(1, Type::first_subscript);
        let place = self.coerce(place, Type::Int4, Wanted::Assignment)?;
        let (array_sql, place_sql) = (&array.sql, &place.sql);
        let sql = format!(
            "CASE WHEN {place_sql} >= {first} THEN {array_sql} ->> ({place_sql} - {first}) END"
        );
        let made = Expr::made(format!("({sql})"), of, &[&array, &place]);
        Ok(Expr { name: array.name.clone(), weak: array.weak, ..made })
    }

    /// Translates a comparison with any or all elements of an array.
    pub(super) fn any_or_all(
        &mut self,
        operator: &str,
        left: Expr,
        right: Expr,
        any: bool,
    ) -> Result<Expr, Failure> {
        let right = match (right.is(), left.is()) {
            (Some(_), _) => right,
            (None, is) => {
                let array = is.unwrap_or(Type::Text).array();
                let array = array.ok_or_else(|| hints::refuse("ANY (array)"))?;
                self.coerce(right, array, Wanted::Implicit)?
            }
        };
        let of = element_of(&right).map_err(|_| {
            Failure::new("42809", "op ANY/ALL (array) requires array on right side")
        })?;
        if left.aggregate {
            return Err(hints::refuse("ANY (array)"));
        }
        let element = Expr::typed(format!("{ELEMENT}.value"), of);
        let compared = self.operator(operator, left.clone(), element)?;
        if compared.is() != Some(Type::Bool) {
            return Err(Failure::new(
                "42809",
                "op ANY/ALL (array) requires operator to yield boolean",
            ));
        }
        let array = &right.sql;
        let plain =
            |operator: &str| compared.sql == format!("({} {operator} {ELEMENT}.value)", left.sql);
        let sql = match any {
            true if plain("=") => format!("{} IN (SELECT value FROM json_each({array}))", left.sql),
            false if plain("<>") => {
                format!("{} NOT IN (SELECT value FROM json_each({array}))", left.sql)
            }
            _ => {
                let (extreme, word, decided) =
                    if any { ("max", "", 1) } else { ("min", "NOT ", 0) };
                format!(
                    "(SELECT CASE WHEN {word}{extreme}(c) THEN {decided} WHEN count(*) > count(c) \
                     THEN NULL ELSE {} END FROM (SELECT {} AS c FROM json_each({array}) AS {ELEMENT}))",
                    1 - decided,
                    compared.sql
                )
            }
        };
        let sql = format!("(CASE WHEN {array} IS NOT NULL THEN {sql} END)");
        Ok(Expr::made(sql, Type::Bool, &[&left, &right]))
    }

    /// Translates the functions that take an array of any type; `None` for other functions.
    pub(super) fn of_array(
        &mut self,
        function: &str,
        arguments: &[Expr],
    ) -> Result<Option<Expr>, Failure> {
        if let ("array_prepend", [element, array]) = (function, arguments)
            && array.is().is_some_and(|is| is.element().is_some())
        {
            return self.with_element(array.clone(), element.clone(), true).map(Some);
        }
        let [array, rest @ ..] = arguments else { return Ok(None) };
        let Some(is) = array.is().filter(|is| is.element().is_some()) else { return Ok(None) };
        let (first, sql) = (is.first_subscript(), &array.sql);
        let one = |rest: &[Expr]| rest.len() == 1 && rest[0].sql == "1";
        let (made, is) = match (function, rest) {
            ("array_length", rest) if one(rest) => {
                (format!("nullif(json_array_length({sql}), 0)"), Type::Int4)
            }
            ("array_upper", rest) if one(rest) => {
                (format!("(nullif(json_array_length({sql}), 0) - 1 + {first})"), Type::Int4)
            }
            ("array_lower", rest) if one(rest) => {
                (format!("iif(json_array_length({sql}), {first}, NULL)"), Type::Int4)
            }
            ("cardinality", []) => (format!("json_array_length({sql})"), Type::Int4),
            ("array_to_string", [by]) => {
                let by = self.coerce(by.clone(), Type::Text, Wanted::Implicit)?;
                let of = element_of(array)?;
                let value = match of.is_text() {
                    true => "value".to_owned(),
                    false => format!("refrain_text({}, value)", of.oid()),
                };
                let joined = format!(
                    "(SELECT coalesce(group_concat({value}, {} ORDER BY key), '') FROM json_each({sql}) \
                     WHERE value IS NOT NULL)",
                    by.sql
                );
                (
                    format!(
                        "CASE WHEN {sql} IS NOT NULL AND {} IS NOT NULL THEN {joined} END",
                        by.sql
                    ),
                    Type::Text,
                )
            }
            ("array_append", [element]) => {
                return self.with_element(array.clone(), element.clone(), false).map(Some);
            }
            ("array_cat", [other]) => {
                return self.array_of_both(array.clone(), other.clone()).map(Some);
            }
            ("array_remove", [wanted]) => {
                let wanted = self.coerce(wanted.clone(), element_of(array)?, Wanted::Implicit)?;
                let kept = format!(
                    "(SELECT json_group_array(value ORDER BY key) FROM json_each({sql}) \
                     WHERE value IS NOT {})",
                    wanted.sql
                );
                (format!("CASE WHEN {sql} IS NOT NULL THEN {kept} END"), is)
            }
            ("array_ndims", []) => (format!("iif(json_array_length({sql}), 1, NULL)"), Type::Int4),
            ("array_position", [wanted]) => {
                let wanted = self.coerce(wanted.clone(), element_of(array)?, Wanted::Implicit)?;
                let found = format!(
                    "(SELECT min(key) + {first} FROM json_each({sql}) WHERE value IS {})",
                    wanted.sql
                );
                (found, Type::Int4)
            }
            _ => return Ok(None),
        };
        Ok(Some(Expr::made(format!("({made})"), is, &arguments.iter().collect::<Vec<_>>())))
    }

    /// Returns the array of which a dimension has subscripts: there is only the first.
    pub(super) fn of_dimension(&mut self, array: Expr, dimension: Expr) -> Result<Expr, Failure> {
        let is = array.is().unwrap_or(Type::Text);
        let dimension = self.coerce(dimension, Type::Int4, Wanted::Implicit)?;
        if dimension.sql == "1" {
            return Ok(array);
        }
        let sql = format!("(CASE {} WHEN 1 THEN {} END)", dimension.sql, array.sql);
        Ok(Expr::made(sql, is, &[&array, &dimension]))
    }
}

impl Scopes {
    /// Translates a set-returning function of an array within the list of SELECT: each element
    /// makes a row of the query. `None` for other functions.
    pub(super) fn rows_of_array(
        &mut self,
        typing: &mut Typing<'_>,
        function: &str,
        arguments: &[Expr],
    ) -> Result<Option<Expr>, Failure> {
        let depth = self.depth();
        let (array, subscripts) = match (function, arguments) {
            ("unnest", [array]) => (array.clone(), false),
            ("pg_partition_ancestors", [_]) => (no_partitions(), false),
            ("generate_subscripts", [array, dimension]) => {
                (typing.of_dimension(array.clone(), dimension.clone())?, true)
            }
            _ => return Ok(None),
        };
        let of = element_of(&array)?;
        let rows = name(&format!("refrain_rows{depth}"));
        let arrays = self.open.last_mut().and_then(|scope| scope.arrays.as_mut());
        let arrays = arrays.ok_or_else(|| hints::refuse("rows from arrays"))?;
        arrays.push(array.sql.clone());
        let sql = &array.sql;
        let first = array.is().map_or(1, Type::first_subscript);
        let made = match subscripts {
            false => Expr::made(format!("({sql} ->> {rows}.key)"), of, &[&array]),
            true => {
                let inside = format!("{rows}.key < json_array_length({sql})");
                let sql = format!("(CASE WHEN {inside} THEN {rows}.key + {first} END)");
                Expr::made(sql, Type::Int4, &[&array])
            }
        };
        Ok(Some(made.named(function)))
    }

    /// Returns the item of FROM that makes the rows of the list of SELECT, if there is one.
    pub(super) fn rows_of_targets(&mut self) -> Option<String> {
        let depth = self.depth();
        let arrays = self.open.last_mut()?.arrays.take()?;
        let rows = name(&format!("refrain_rows{depth}"));
        (!arrays.is_empty()).then(|| format!("json_each({}) AS {rows}", longest(&arrays)))
    }
}

/// Makes an array of values of one type.
pub(super) fn gathered_array(all: &[Expr], of: Type) -> Result<Expr, Failure> {
    let is = of.array().ok_or_else(|| hints::refuse("ARRAY"))?;
    let parts: Vec<String> = all.iter().map(|value| as_element(&value.sql, of)).collect();
    let sql = format!("json_array({})", parts.join(", "));
    Ok(Expr::pure(sql, is, &all.iter().collect::<Vec<_>>()).named("array"))
}

/// Returns the SQL of an array with as many elements as the longest of some.
pub(super) fn longest(arrays: &[String]) -> String {
    match arrays {
        [only] => only.clone(),
        arrays if arrays.iter().all(|array| *array == arrays[0]) => arrays[0].clone(),
        arrays => format!("refrain_longest({})", arrays.join(", ")),
    }
}

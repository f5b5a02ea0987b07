//! Functions that make JSON of values, in SQLite's dialect: texts with PostgreSQL's blanks.

use crate::failure::Failure;
use crate::types::Type;

use super::hints;
use super::value::Expr;

/// Functions that make JSON of any values.
pub(super) const BUILDERS: &[&str] = &[
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
    "to_json",
    "to_jsonb",
    "row_to_json",
    "array_to_json",
];

/// Aggregates that make JSON of the values of all rows.
pub(super) const AGGREGATES: &[&str] = &["json_agg", "jsonb_agg"];

/// A value as an item of JSON: SQL that is never NULL, and whether it is a row.
pub(super) struct JsonItem {
    pub(super) value: Expr,
    pub(super) json: String,
    pub(super) is_row: bool,
}

/// Makes the value of a function for `json` or `jsonb`.
pub(super) fn of_kind(function: &str, sql: String, parts: &[&Expr]) -> Expr {
    match function.contains("jsonb") {
        true => Expr::made(format!("refrain_in({}, {sql})", Type::Jsonb.oid()), Type::Jsonb, parts),
        false => Expr::made(sql, Type::Json, parts),
    }
}

pub(super) fn in_brackets(items: &str) -> String {
    if items.is_empty() { "'[]'".to_owned() } else { format!("('[' || {items} || ']')") }
}

/// Returns an item; NULL for NULL.
pub(super) fn of_given(item: &JsonItem) -> String {
    if item.is_row {
        return item.json.clone();
    }
    format!("(CASE WHEN {} IS NOT NULL THEN {} END)", item.value.sql, item.json)
}

pub(super) fn object(items: &[JsonItem]) -> Result<String, Failure> {
    if !items.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        let hint =
            "The arguments of json_build_object() must consist of alternating keys and values.";
        return Err(Failure::new("22023", message).hint(hint));
    }
    let mut parts = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let is_key = place % 2 == 0;
        if is_key && !item.value.is().is_some_and(Type::is_text) {
            return Err(hints::refuse("JSON function"));
        }
        let between = match place {
            0 => "'{'",
            _ if is_key => "', '",
            _ => "' : '",
        };
        let json = match is_key {
            true => format!("refrain_json_key({})", item.value.sql),
            false => item.json.clone(),
        };
        parts.push(format!("{between} || {json}"));
    }
    Ok(match &parts[..] {
        [] => "'{}'".to_owned(),
        parts => format!("({} || '}}')", parts.join(" || ")),
    })
}

/// Returns the JSON of a value, as SQL that is never NULL (`datum_to_json` of the server).
pub(super) fn item_json(value: &Expr) -> Result<String, Failure> {
    use Type::*;
    let sql = &value.sql;
    Ok(match value.is() {
        Some(Bool) => {
            format!("CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END")
        }
        Some(Int2 | Int4 | Int8 | Uuid | Date | Time) => format!("json_quote({sql})"),
        Some(Enum(_)) => format!("json_quote({sql})"),
        // SQLite takes the result of its functions of JSON for JSON, and no text.
        Some(is) if is.is_text() && sql.contains('(') => format!("json_quote({sql} || '')"),
        Some(is) if is.is_text() => format!("json_quote({sql})"),
        Some(Timestamp) => format!("json_quote({})", with_t(sql)),
        Some(Timestamptz) => {
            let zoneless = with_t(&format!("refrain_zoneless({sql})"));
            let finite = format!("json_quote({zoneless} || '+00:00')");
            format!("CASE WHEN instr({sql}, ':') THEN {finite} ELSE json_quote({sql}) END")
        }
        Some(Json | Jsonb) => format!("coalesce({sql}, 'null')"),
        Some(Numeric) => format!("coalesce(CAST({sql} AS TEXT), 'null')"),
        Some(Float8) => {
            let text = format!("refrain_text({}, {sql})", Float8.oid());
            format!("CASE WHEN abs({sql}) < 9e999 THEN {text} ELSE json_quote({text}) END")
        }
        Some(is) if is_plain_array(is) => format!("coalesce({sql}, 'null')"),
        _ => return Err(hints::refuse("JSON function")),
    })
}

/// Writes a moment with a T in the place of its first blank.
fn with_t(sql: &str) -> String {
    let place = format!("instr({sql}, ' ')");
    format!(
        "iif({place}, substr({sql}, 1, {place} - 1) || 'T' || substr({sql}, {place} + 1), {sql})"
    )
}

/// True if the arrays of a type are kept as their JSON.
fn is_plain_array(is: Type) -> bool {
    use Type::*;
    let plain = [Int2, Int4, Int8, Text, Varchar, Uuid, Date, Time];
    is.element().is_some_and(|of| plain.contains(&of) || matches!(of, Enum(_)))
}

//! Defaults of columns with PostgreSQL's syntax.

use crate::sequences::NEXT;
use crate::sql_text::identifier;
use crate::types::Type;

/// Returns the value inside of the function that makes it fit its column.
fn without_fit(sql: &str) -> &str {
    let value = || {
        let inside = sql.strip_prefix("refrain_fit(")?.strip_suffix(')')?;
        let (_, value) = inside.split_once(", ")?;
        let (value, _) = value.rsplit_once(", ")?;
        Some(value.rsplit_once(", ")?.0)
    };
    value().unwrap_or(sql)
}

/// Writes a default with PostgreSQL's syntax.
pub(crate) fn default_of(sql: &str, is: Type) -> String {
    let inside = sql.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(sql);
    let inside = without_fit(inside);
    // A moment is stored without its zone where the column has none.
    let inside = match inside.strip_prefix("refrain_zoneless(") {
        Some(rest) => rest.strip_suffix(')').unwrap_or(rest),
        None => inside,
    };
    if let Some(rest) = inside.strip_prefix("refrain_zoned('") {
        let moment = rest.strip_suffix("')").unwrap_or(rest);
        return format!("'{moment}+00'::{}", is.name());
    }
    if let Some(rest) = inside.strip_prefix(NEXT).and_then(|rest| rest.strip_prefix('(')) {
        let called = rest.trim_end_matches(')').trim_matches('\'').replace("''", "'");
        return format!("nextval('{}'::regclass)", identifier(&called).replace('\'', "''"));
    }
    match (is, inside) {
        (Type::Bool, "0") => "false".to_owned(),
        (Type::Bool, "1") => "true".to_owned(),
        _ if inside.starts_with('\'') && inside.ends_with('\'') => {
            format!("{inside}::{}", is.name())
        }
        _ => inside.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_told_in_the_servers_words() {
        assert_eq!(default_of("(1)", Type::Bool), "true");
        assert_eq!(default_of("(18)", Type::Int8), "18");
        assert_eq!(default_of("('{}')", Type::Jsonb), "'{}'::jsonb");
        assert_eq!(default_of("(now())", Type::Timestamptz), "now()");
        assert_eq!(default_of("(refrain_zoneless(now()))", Type::Timestamp), "now()");
        assert_eq!(default_of("(refrain_fit(1184, now(), 3, 0))", Type::Timestamptz), "now()");
        let moment = "'2024-01-01 00:00:00+00'::timestamp with time zone";
        let zoned = "(refrain_zoned('2024-01-01 00:00:00'))";
        assert_eq!(default_of(zoned, Type::Timestamptz), moment);
    }
}

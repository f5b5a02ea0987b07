//! Defaults of columns.

use refrain_grammar::protobuf::Node;

use crate::failure::Failure;
use crate::types::Type;

use super::coerce::Wanted;
use super::definer::Definer;
use super::edits::SchemaChange;
use super::scope::{Attribute, Scope};
use super::value::ExprKind;
use super::{NotTranslated, Translated};

impl Definer<'_, '_> {
    /// Translates a DEFAULT, of constants and functions.
    pub(super) fn default_of(
        &mut self,
        node: &Node,
        is: Type,
        limit: Option<u32>,
    ) -> Translated<String> {
        let scopes = std::mem::replace(&mut self.translator.scopes.open, vec![Scope::default()]);
        let value = self.translator.expr(node);
        self.translator.scopes.open = scopes;
        let value = value.map_err(without_columns)?;
        if value.aggregate {
            let message = "aggregate functions are not allowed in DEFAULT expressions";
            return Err(Failure::new("42803", message).into());
        }
        let null = value.kind == ExprKind::Null;
        let value = self.translator.typing.fit(value, is, limit, Wanted::Assignment)?;
        let sql = without_mark(&value.sql);
        Ok(if null { "DEFAULT NULL".to_owned() } else { format!("DEFAULT ({sql})") })
    }
}

/// Returns the literal of a label without the comment behind it. A default that is no more than a
/// literal is told apart by the type of its column.
fn without_mark(sql: &str) -> &str {
    let Some((literal, mark)) = sql.split_once("'/*label of ") else { return sql };
    let is_number = |oid: &str| oid.bytes().all(|byte| byte.is_ascii_digit());
    match mark.strip_suffix("*/").is_some_and(is_number) && literal.starts_with('\'') {
        true => sql.get(..=literal.len()).unwrap_or(sql),
        false => sql,
    }
}

/// Replaces the errors about columns in a DEFAULT, which must not name any.
fn without_columns(stop: NotTranslated) -> NotTranslated {
    match stop {
        NotTranslated::Refused(failure) if ["42703", "42P01"].contains(&failure.sqlstate) => {
            let message = "cannot use column reference in DEFAULT expression";
            let hint = "a default is made of constants and functions";
            Failure { position: failure.position, ..Failure::unsupported(message).hint(hint) }
                .into()
        }
        stop => stop,
    }
}

/// Returns the change that takes away a column's default; none if it has none.
pub(super) fn without_default(column: &Attribute) -> Option<SchemaChange> {
    let default = column.default.as_ref()?;
    let from = vec![format!(" DEFAULT ({default})"), format!(" DEFAULT {default}")];
    Some(SchemaChange::Column { column: column.name.clone(), from, to: String::new() })
}

//! Values that a statement assigns to columns: the list of SET, and the conversion to the column's
//! type.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::Node;

use crate::failure::{Failure, state};
use crate::key_mark::GivenBy;
use crate::types::Type;

use super::arrays::gathered_array;
use super::coerce::Wanted;
use super::scope::Attribute;
use super::select::value_of;
use super::target_table::{TargetTable, Writer};
use super::value::{Expr, ExprKind, name, text_literal};
use super::{NotTranslated, Translated, hints, location};

impl Writer<'_, '_> {
    /// Converts a value to the form in which its column stores it.
    pub(super) fn stored(
        &mut self,
        value: Expr,
        to: &Attribute,
        table: &str,
    ) -> Result<Expr, Failure> {
        if to.computed || to.given == GivenBy::Always {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", to.name);
            return Err(Failure::new("428C9", message)
                .hint("leave the column out: its values are generated"));
        }
        let null = value.kind == ExprKind::Null;
        let from = value.type_name();
        let unfit = value.is().is_some();
        let constant = matches!(value.kind, ExprKind::Literal(_))
            || value.sql.bytes().all(|byte| byte.is_ascii_digit());
        let made = self.translator.typing.fit(value, to.is, to.limit, Wanted::Assignment);
        let mut made = made.map_err(|failure| match failure.sqlstate {
            state::WRONG_TYPE if unfit => {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {from}",
                    to.name,
                    to.is.name()
                );
                Failure { message: message.into(), ..failure }
                    .hint("You will need to rewrite or cast the expression.")
            }
            _ => failure,
        })?;
        let key = matches!(to.given, GivenBy::Key | GivenBy::Next | GivenBy::ByDefault);
        if key && null {
            return Err(missing(table, &to.name));
        }
        if key && !constant {
            let (table, column) = (text_literal(table), text_literal(&to.name));
            made.sql = format!("refrain_present({}, {table}, {column})", made.sql);
        }
        Ok(made)
    }

    /// Translates the value of a column. Numbers in ARRAY[…] get the type of the column's elements:
    /// one with a fraction has no array of its own type.
    pub(super) fn value_for(&mut self, node: &Node, to: Type) -> Translated<Expr> {
        if let (Some(NodeEnum::AArrayExpr(array)), Some(of)) = (&node.node, to.element()) {
            let all = array.elements.iter().map(|node| self.translator.expr(node));
            let all: Vec<Expr> = all.collect::<Result<_, _>>()?;
            let number = |expr: &Expr| match expr.is() {
                Some(is) => is.is_integer() || matches!(is, Type::Numeric | Type::Float8),
                None => expr.kind == ExprKind::Null,
            };
            if all.iter().all(number) && all.iter().any(|it| it.is() == Some(Type::Numeric)) {
                let made = all
                    .into_iter()
                    .map(|it| self.translator.typing.coerce(it, of, Wanted::Assignment));
                let made: Vec<Expr> = made.collect::<Result<_, _>>()?;
                return Ok(gathered_array(&made, of)?);
            }
        }
        self.translator.expr(node)
    }

    /// Translates the list of SET.
    pub(super) fn assignments(&mut self, nodes: &[Node], into: &TargetTable) -> Translated<String> {
        let mut words = Vec::new();
        let mut known: Vec<String> = Vec::new();
        for node in nodes {
            let attribute = target_column(self.translator.basis.text, node, into)?;
            if known.contains(&attribute.name) {
                let message = format!("multiple assignments to same column \"{}\"", attribute.name);
                return Err(Failure::new("42601", message).into());
            }
            known.push(attribute.name.clone());
            let value = value_of(node).ok_or_else(hints::unknown)?;
            let value = match &value.node {
                Some(NodeEnum::MultiAssignRef(multi)) => {
                    let row = multi.source.as_ref().and_then(|source| source.node.as_ref());
                    let Some(NodeEnum::RowExpr(row)) = row else {
                        return Err(hints::refuse("SET (…) = (query)").into());
                    };
                    let place = usize::try_from(multi.colno - 1).unwrap_or(0);
                    row.args.get(place).ok_or_else(|| {
                        let message = "number of columns does not match number of values";
                        Failure::new(state::SYNTAX, message)
                    })?
                }
                _ => value,
            };
            if matches!(value.node, Some(NodeEnum::SetToDefault(_))) {
                if attribute.computed || attribute.given != GivenBy::Statement {
                    return Err(hints::refuse("SET … = DEFAULT").into());
                }
                let default = attribute.default.as_deref().unwrap_or("NULL");
                words.push(format!("{} = ({default})", name(&attribute.name)));
                continue;
            }
            let made = self.value_for(value, attribute.is)?;
            let stored = self.stored(made, attribute, &into.table);
            let stored = stored.map_err(|failure| {
                NotTranslated::from(failure).at(self.translator.basis.text, location(value))
            })?;
            if stored.aggregate {
                return Err(hints::aggregate("UPDATE").into());
            }
            words.push(format!("{} = {}", name(&attribute.name), stored.sql));
        }
        Ok(words.join(", "))
    }
}

/// Returns the column that an INSERT or an assignment names.
pub(super) fn target_column<'a>(
    text: &str,
    node: &Node,
    into: &'a TargetTable,
) -> Translated<&'a Attribute> {
    let Some(NodeEnum::ResTarget(target)) = &node.node else {
        return Err(hints::unknown().into());
    };
    if !target.indirection.is_empty() {
        return Err(hints::refuse("row").into());
    }
    let found = into.attribute(&target.name);
    found.map_err(|failure| NotTranslated::from(failure).at(text, target.location))
}

/// Returns 23502 for a key without a value.
pub(crate) fn missing(table: &str, column: &str) -> Failure {
    let message = format!(
        "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
    );
    Failure::new("23502", message).hint(
        "declare a generated key SERIAL or GENERATED … AS IDENTITY, or AUTOINCREMENT in SQLite's dialect",
    )
}

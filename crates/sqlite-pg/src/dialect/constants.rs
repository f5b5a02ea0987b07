//! Constants of a statement.

use refrain_grammar::protobuf::{AConst, a_const::Val};

use crate::failure::{Failure, state};
use crate::types::Type;

use super::hints;
use super::value::{Expr, ExprKind, digits, text_literal};

/// Translates a constant.
pub(super) fn constant(it: &AConst, text: &str) -> Result<Expr, Failure> {
    no_junk(it, text)?;
    if it.isnull {
        return Ok(Expr::constant("NULL", ExprKind::Null));
    }
    let typed = |sql: String, is| Expr::constant(sql, ExprKind::Typed(is));
    Ok(match it.val.as_ref().ok_or_else(hints::unknown)? {
        Val::Ival(number) => typed(number.ival.to_string(), Type::Int4),
        Val::Fval(number) => match number.fval.parse::<i64>() {
            Ok(whole) if i32::try_from(whole).is_ok() => typed(whole.to_string(), Type::Int4),
            Ok(i64::MIN) => typed("(-9223372036854775807 - 1)".to_owned(), Type::Int8),
            Ok(whole) => typed(whole.to_string(), Type::Int8),
            Err(_) => number_constant(&number.fval)?,
        },
        Val::Boolval(truth) => typed(u8::from(truth.boolval).to_string(), Type::Bool),
        Val::Sval(it) => Expr::constant(text_literal(&it.sval), ExprKind::Literal(it.sval.clone())),
        Val::Bsval(_) => return Err(hints::refuse("bit string")),
    })
}

fn number_constant(written: &str) -> Result<Expr, Failure> {
    let digits = digits(written).ok_or_else(|| hints::refuse("numeric with an exponent"))?;
    Ok(Expr::constant(text_literal(&digits), ExprKind::Number(digits)))
}

/// Refuses numbers such as `1_000` and `0x1F` (42601), which later grammars accept: PostgreSQL 15
/// has nothing but decimal numbers.
fn no_junk(it: &AConst, text: &str) -> Result<(), Failure> {
    if !matches!(it.val, Some(Val::Ival(_) | Val::Fval(_))) {
        return Ok(());
    }
    let start = usize::try_from(it.location).unwrap_or(usize::MAX);
    let written = text.get(start..).unwrap_or_default();
    let written = written.trim_start_matches(|c: char| c == '-' || c.is_whitespace());
    let end = written.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
    let written = &written[..end.unwrap_or(written.len())];
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E');
    if written.chars().all(plain) {
        return Ok(());
    }
    let message = format!("trailing junk after numeric literal at or near \"{written}\"");
    Err(Failure::new(state::SYNTAX, message).hint("write the number in decimal digits"))
}

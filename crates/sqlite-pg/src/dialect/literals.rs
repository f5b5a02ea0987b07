//! The literals of a normalized query that are bound in the place of being written.
//!
//! A literal among the VALUES of an INSERT is bound if its place alone says what is stored: it is
//! the whole value of its column, and its class is one that the column takes as it is. The value is
//! made by the functions that make the constant of SQLite's text, so it is the same value. A
//! literal without such a value, as one out of range, is an error of the text, and the caller has
//! the text translated as it is.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{AConst, Node, a_const::Val};
use refrain_sql::normalize::{self, Class, Span};

use crate::decode::{self, Decoded};
use crate::key_mark::GivenBy;
use crate::types::Type;

use super::basis::Basis;
use super::coerce::fitted;
use super::scope::Attribute;
use super::type_names::type_name;
use super::value::{Expr, digits};

/// How a literal is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundLiteral {
    /// The type of its column.
    is: Type,
    /// How long its column's values may be.
    limit: Option<u32>,
    /// True if a minus sign stands before it.
    negative: bool,
}

impl BoundLiteral {
    /// Returns the type of its column, and how long the column's values may be.
    pub(crate) fn of(&self) -> (Type, Option<u32>) {
        (self.is, self.limit)
    }

    /// Returns the value that the column gets; none if the text with this literal is an error.
    pub(crate) fn value(&self, class: Class, literal: &[u8]) -> Option<Decoded<'static>> {
        if !class.is_string() {
            return self.number(std::str::from_utf8(literal).ok()?);
        }
        let mut bytes = Vec::with_capacity(literal.len());
        normalize::value(class, literal, true, &mut bytes).ok()?;
        let decoded = decode::text(&bytes, self.is).ok()?;
        let Some(limit) = self.limit else { return Some(decoded.into_owned()) };
        let text = std::str::from_utf8(&bytes).ok()?;
        let fitted = fitted(text, self.is, limit, false).ok()?;
        Some(Decoded::Text(fitted.into_bytes().into()))
    }

    fn number(&self, digits_of_it: &str) -> Option<Decoded<'static>> {
        let written = match self.negative {
            true => format!("-{digits_of_it}"),
            false => digits_of_it.to_owned(),
        };
        match (written.parse::<i64>(), self.is) {
            (Ok(whole), Type::Float4 | Type::Float8) => Some(Decoded::Real(whole as f64)),
            (Ok(whole), is) => decode::in_range(whole, is).ok().map(Decoded::Integer),
            (Err(_), Type::Float4 | Type::Float8) => {
                match decode::text(digits(&written)?.as_bytes(), self.is).ok()? {
                    Decoded::Real(number) if number.is_finite() => Some(Decoded::Real(number)),
                    _ => None,
                }
            }
            (Err(_), _) => None,
        }
    }
}

/// The literals of the text, and how those are bound that the translation has met.
#[derive(Default)]
pub(super) struct Literals<'a> {
    spans: &'a [Span],
    bound: Vec<Option<BoundLiteral>>,
}

impl<'a> Literals<'a> {
    pub(super) fn new(spans: &'a [Span]) -> Self {
        Self { spans, bound: vec![None; spans.len()] }
    }

    /// Returns how each is bound; none if one of them is not.
    pub(super) fn all(self) -> Option<Vec<BoundLiteral>> {
        self.bound.into_iter().collect()
    }

    /// Returns the number of the literal at a place in the text, and true if a minus sign stands
    /// before it.
    fn at(&self, text: &str, location: i32) -> Option<(usize, bool)> {
        let place = usize::try_from(location).ok()?;
        let rest = text.get(place..)?;
        let unsigned = rest.strip_prefix('-');
        let blanks = unsigned.map_or(0, |rest| 1 + rest.len() - rest.trim_ascii_start().len());
        let start = u32::try_from(place + blanks).ok()?;
        let found = self.spans.binary_search_by_key(&start, |span| span.start).ok()?;
        Some((found, unsigned.is_some()))
    }
}

impl Literals<'_> {
    /// Returns the place of a literal that is bound as the value of a column; none if the value is
    /// anything else, or has to be converted.
    pub(super) fn bind(&mut self, basis: Basis<'_>, node: &Node, to: &Attribute) -> Option<Expr> {
        if self.spans.is_empty() || to.computed || to.given == GivenBy::Always {
            return None;
        }
        let constant = plain_constant(basis, node, to)?;
        let (index, negative) = self.at(basis.text, constant.location)?;
        let class = self.spans.get(index)?.class;
        let fits = match (&constant.val, to.is) {
            (_, Type::Numeric | Type::Void | Type::Unknown) => false,
            (Some(Val::Sval(_)), _) => class.is_string(),
            (Some(Val::Ival(_) | Val::Fval(_)), Type::Float4 | Type::Float8) => class.is_number(),
            (Some(Val::Ival(_) | Val::Fval(_)), Type::Int2 | Type::Int4 | Type::Int8) => {
                class.is_number() && class != Class::Numeric
            }
            _ => false,
        };
        if !fits {
            return None;
        }
        let limit = to.limit;
        *self.bound.get_mut(index)? = Some(BoundLiteral { is: to.is, limit, negative });
        Some(Expr::typed(format!("?{}", index + 1), to.is))
    }
}

/// Returns the constant that a value is, or that it casts to the type of its column.
fn plain_constant<'n>(basis: Basis<'_>, node: &'n Node, to: &Attribute) -> Option<&'n AConst> {
    match node.node.as_ref()? {
        NodeEnum::AConst(constant) => Some(constant),
        NodeEnum::TypeCast(cast) if to.limit.is_none() => {
            let (is, limit) = type_name(basis, cast.type_name.as_ref()?).ok()?;
            let constant = match cast.arg.as_deref()?.node.as_ref()? {
                NodeEnum::AConst(constant) => constant,
                _ => return None,
            };
            let is_string = matches!(constant.val, Some(Val::Sval(_)));
            (is == to.is && limit.is_none() && is_string).then_some(constant)
        }
        _ => None,
    }
}

//! Operators: the types of their operands and results, and SQLite's text for each.

use crate::failure::Failure;
use crate::standard::COMPUTES;
use crate::types::Type;

use super::array_operators::{CONTAINS, contained, joined_arrays, with_one};
use super::coerce::Wanted;
use super::common_types::{chosen, common};
use super::folding::of_both;
use super::function_tables::FUNCTIONS;
use super::hints;
use super::typing::Typing;
use super::value::{Expr, ExprKind, real_literal};

const BITS: &[&str] = &["&", "|"];

/// The operators of regular expressions: whether they ignore case, and whether they negate.
const MATCHES: &[(&str, bool, bool)] =
    &[("~", false, false), ("~*", true, false), ("!~", false, true), ("!~*", true, true)];

pub(super) const COMPARES: &[&str] = &["=", "<>", "<", ">", "<=", ">="];

/// Operators of JSON that are functions of the table.
const JSON: &[&str] = &["->", "->>", "#>", "#>>", "?"];

/// Checks that equal values are equal as SQLite stores them, which DISTINCT, GROUP BY and PARTITION
/// BY need.
///
/// # Errors
/// 42883 if PostgreSQL has no equality for the type, 0A000 if its equality is not that of the
/// stored values.
pub(super) fn is_equated(expr: &Expr) -> Result<(), Failure> {
    match expr.is() {
        Some(Type::Json) => {
            let message = "could not identify an equality operator for type json";
            Err(Failure::new("42883", message).hint("cast to text"))
        }
        Some(Type::Jsonb) => Err(hints::refuse("jsonb comparison")),
        Some(Type::Numeric) if !expr.whole => Err(hints::refuse("numeric")),
        Some(Type::Interval) => Err(hints::refuse("interval")),
        Some(Type::Bpchar) if expr.limit.is_none() => Err(hints::refuse("equal char(n)")),
        Some(is) if is.element().is_some_and(|of| !of.is_equal_by_text()) => {
            Err(hints::refuse("order of arrays"))
        }
        _ => Ok(()),
    }
}

impl Typing<'_> {
    /// Gives two operands one type, as operators and lists need.
    pub(super) fn together(
        &mut self,
        left: Expr,
        right: Expr,
        operator: &str,
    ) -> Result<(Expr, Expr, Type), Failure> {
        let is = match (left.is(), right.is()) {
            (Some(left_is), Some(right_is)) => {
                let of_numbers = with_number(&left, &right);
                let is = of_numbers.or_else(|| common(left_is, right_is));
                is.ok_or_else(|| no_operator(&left, operator, &right))?
            }
            // PostgreSQL's varchar has no operators of its own, but those of text.
            (Some(Type::Varchar), None) | (None, Some(Type::Varchar)) => Type::Text,
            (Some(is), None) | (None, Some(is)) => is,
            (None, None) => Type::Text,
        };
        let (left, right) = if is_number_beside_integer(&left, &right) {
            (plain_number(left), plain_number(right))
        } else {
            let left = self.coerce(left, is, Wanted::Implicit)?;
            (left, self.coerce(right, is, Wanted::Implicit)?)
        };
        Ok((left, right, is))
    }

    /// Translates a comparison.
    pub(super) fn compare(
        &mut self,
        operator: &str,
        left: Expr,
        right: Expr,
    ) -> Result<Expr, Failure> {
        let whole = |expr: &Expr| expr.whole || expr.is().is_some_and(Type::is_integer);
        if (left.whole || right.whole) && whole(&left) && whole(&right) {
            let sql = format!("({} {operator} {})", left.sql, right.sql);
            return Ok(Expr::made(sql, Type::Bool, &[&left, &right]));
        }
        let open = |expr: &Expr| matches!(expr.kind, ExprKind::Parameter(_));
        let given = left.whole && open(&right) || open(&left) && right.whole;
        let (left, right, is) = self.together(left, right, operator)?;
        // The value of a `numeric` parameter is bound as a number.
        let numbers = given || is_number_beside_integer(&left, &right);
        match is {
            Type::Json => return Err(no_operator(&left, operator, &right)),
            Type::Jsonb => return Err(hints::refuse("jsonb comparison")),
            Type::Numeric if !numbers => return Err(hints::refuse("numeric")),
            is if is
                .element()
                .is_some_and(|of| !["=", "<>"].contains(&operator) || !of.is_equal_by_text()) =>
            {
                return Err(hints::refuse("order of arrays"));
            }
            _ => {}
        }
        let written = |left: &str, right: &str| match is {
            Type::Interval => format!("(refrain_span({left}) {operator} refrain_span({right}))"),
            Type::Bpchar => format!("(rtrim({left}, ' ') {operator} rtrim({right}, ' '))"),
            Type::Enum(of) if !["=", "<>"].contains(&operator) => {
                format!("({} {operator} {})", of.place(left), of.place(right))
            }
            _ => format!("({left} {operator} {right})"),
        };
        let made = Expr::made(written(&left.sql, &right.sql), Type::Bool, &[&left, &right]);
        Ok(Expr { constant: of_both(&left, &right, written), ..made })
    }

    /// Translates an operator between two values.
    pub(super) fn operator(
        &mut self,
        operator: &str,
        left: Expr,
        right: Expr,
    ) -> Result<Expr, Failure> {
        if COMPARES.contains(&operator) {
            return self.compare(operator, left, right);
        }
        if operator == "||" {
            return self.joined(left, right);
        }
        if let Some((_, function)) = COMPUTES.iter().find(|(known, _)| *known == operator) {
            return self.computed(operator, function, left, right);
        }
        if let Some((_, fold, not)) = MATCHES.iter().find(|(known, ..)| *known == operator) {
            return self.matched(left, right, *fold, *not);
        }
        if JSON.contains(&operator) && matches!(left.is(), Some(Type::Json | Type::Jsonb)) {
            // `json` has all of these operators but this one.
            if left.is() == Some(Type::Json) && operator == "?" {
                return Err(hints::operator(operator));
            }
            return self.resolved(FUNCTIONS, operator, vec![left, right]);
        }
        if CONTAINS.contains(&operator) && (left.is_array() || right.is_array()) {
            let (left, right, is) = self.together(left, right, operator)?;
            return match is.element().is_some_and(Type::is_equal_by_text) {
                true => Ok(contained(operator, &left, &right)),
                false => Err(no_operator(&left, operator, &right)),
            };
        }
        if BITS.contains(&operator) {
            let (left, right, is) = self.together(left, right, operator)?;
            if !is.is_integer() {
                return Err(no_operator(&left, operator, &right));
            }
            let sql = format!("({} {operator} {})", left.sql, right.sql);
            return Ok(Expr::pure(sql, is, &[&left, &right]));
        }
        Err(hints::operator(operator))
    }

    /// Converts the left side of a match to a text. A `char(n)` keeps its blanks there, as in the
    /// server (`bpcharlike`).
    pub(super) fn with_blanks(&mut self, left: Expr) -> Result<Expr, Failure> {
        match left.is() {
            Some(Type::Bpchar) => Ok(Expr { kind: ExprKind::Typed(Type::Text), ..left }),
            _ => self.coerce(left, Type::Text, Wanted::Implicit),
        }
    }

    /// Translates a match with a regular expression.
    fn matched(&mut self, left: Expr, right: Expr, fold: bool, not: bool) -> Result<Expr, Failure> {
        let text = |expr: &Expr| expr.is().is_none_or(Type::is_text);
        if !text(&left) || !text(&right) {
            return Err(no_operator(&left, "~", &right));
        }
        let left = self.with_blanks(left)?;
        let right = self.coerce(right, Type::Text, Wanted::Implicit)?;
        let not = if not { "NOT " } else { "" };
        let sql =
            format!("({not}refrain_matches({}, {}, {}))", left.sql, right.sql, u8::from(fold));
        Ok(Expr::made(sql, Type::Bool, &[&left, &right]))
    }

    fn computed(
        &mut self,
        operator: &str,
        function: &str,
        left: Expr,
        right: Expr,
    ) -> Result<Expr, Failure> {
        if let Some(made) = self.of_dates(operator, &left, &right)? {
            return Ok(made);
        }
        if let Some(made) = self.of_intervals(operator, &left, &right)? {
            return Ok(made);
        }
        let json = |expr: &Expr| matches!(expr.is(), Some(Type::Json | Type::Jsonb));
        if json(&left) || json(&right) {
            return Err(hints::refuse("JSON operator"));
        }
        let both_unknown = left.is().is_none() && right.is().is_none();
        if both_unknown {
            let message = format!("operator is not unique: unknown {operator} unknown");
            return Err(Failure::new("42725", message).hint("add explicit type casts"));
        }
        let (left, right, is) = self.together(left, right, operator)?;
        match is {
            Type::Numeric => return Err(hints::refuse("numeric")),
            Type::Float4 | Type::Float8 if operator == "%" => {
                return Err(no_operator(&left, operator, &right));
            }
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Float4 | Type::Float8 => {}
            _ => return Err(no_operator(&left, operator, &right)),
        }
        let call = |left: &str, right: &str| format!("{function}({}, {left}, {right})", is.oid());
        let made = Expr::made(call(&left.sql, &right.sql), is, &[&left, &right]);
        Ok(self.folded(made, of_both(&left, &right, call)))
    }

    /// Translates dates plus or minus days. Other computations with dates and times need
    /// `interval`.
    fn of_dates(
        &mut self,
        operator: &str,
        left: &Expr,
        right: &Expr,
    ) -> Result<Option<Expr>, Failure> {
        let date = |expr: &Expr| expr.is() == Some(Type::Date);
        let moment = |expr: &Expr| {
            matches!(expr.is(), Some(Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz))
        };
        let whole = |expr: &Expr| matches!(expr.is(), Some(Type::Int2 | Type::Int4));
        let spans = |expr: &Expr| expr.is() == Some(Type::Interval);
        if !moment(left) && !moment(right) || spans(left) || spans(right) {
            return Ok(None);
        }
        let zoned = |expr: &Expr| expr.is() == Some(Type::Timestamptz);
        let (sql, is) = match operator {
            "-" if date(left) && date(right) => {
                (format!("refrain_days_between({}, {})", left.sql, right.sql), Type::Int4)
            }
            "+" if date(left) && whole(right) => {
                (format!("refrain_add_days({}, {})", left.sql, right.sql), Type::Date)
            }
            "+" if whole(left) && date(right) => {
                (format!("refrain_add_days({}, {})", right.sql, left.sql), Type::Date)
            }
            "-" if date(left) && whole(right) => {
                (format!("refrain_add_days({}, -({}))", left.sql, right.sql), Type::Date)
            }
            "-" if are_moments(left, right) => {
                let is =
                    if zoned(left) || zoned(right) { Type::Timestamptz } else { Type::Timestamp };
                let left = self.coerce(left.clone(), is, Wanted::Implicit)?;
                let right = self.coerce(right.clone(), is, Wanted::Implicit)?;
                let sql = format!("refrain_between({}, {})", left.sql, right.sql);
                return Ok(Some(Expr::made(sql, Type::Interval, &[&left, &right])));
            }
            _ => return Err(hints::refuse("interval")),
        };
        let made = Expr::pure(sql, is, &[left, right]);
        let constant = made.constant.clone();
        Ok(Some(self.folded(made, constant)))
    }

    /// Translates computations with an interval: none if neither side is one.
    fn of_intervals(
        &mut self,
        operator: &str,
        left: &Expr,
        right: &Expr,
    ) -> Result<Option<Expr>, Failure> {
        let spans = |expr: &Expr| expr.is() == Some(Type::Interval);
        if !spans(left) && !spans(right) {
            return Ok(None);
        }
        let untyped = |expr: &Expr| expr.is().is_none();
        let (sql, is) = match (operator, left.is(), right.is()) {
            ("+" | "-", Some(is @ (Type::Date | Type::Timestamp | Type::Timestamptz)), _)
            | ("+", _, Some(is @ (Type::Date | Type::Timestamp | Type::Timestamptz))) => {
                let (moment, span) = if spans(right) { (left, right) } else { (right, left) };
                let is = if is == Type::Date { Type::Timestamp } else { is };
                let moment = self.coerce(moment.clone(), is, Wanted::Implicit)?;
                let word = if operator == "+" { "plus" } else { "minus" };
                (format!("refrain_{word}({}, {}, {})", is.oid(), moment.sql, span.sql), is)
            }
            ("+" | "-", ..)
                if (spans(left) || untyped(left)) && (spans(right) || untyped(right)) =>
            {
                let left = self.coerce(left.clone(), Type::Interval, Wanted::Implicit)?;
                let right = self.coerce(right.clone(), Type::Interval, Wanted::Implicit)?;
                let sql = format!("refrain_intervals('{operator}', {}, {})", left.sql, right.sql);
                (sql, Type::Interval)
            }
            ("*", _, Some(is)) if is.is_integer() => {
                (format!("refrain_intervals('*', {}, {})", left.sql, right.sql), Type::Interval)
            }
            ("*", Some(is), _) if is.is_integer() => {
                (format!("refrain_intervals('*', {}, {})", right.sql, left.sql), Type::Interval)
            }
            _ => return Err(hints::refuse("interval")),
        };
        Ok(Some(Expr::made(sql, is, &[left, right])))
    }

    /// Translates `||`: of texts, of a text and any other value, of bytes.
    fn joined(&mut self, left: Expr, right: Expr) -> Result<Expr, Failure> {
        if left.is_array() || right.is_array() {
            let whole = |expr: &Expr| expr.is().is_none() || expr.is_array();
            let made = match (whole(&left), whole(&right)) {
                (true, true) => self.array_of_both(left, right)?,
                (true, false) => self.with_element(left, right, false)?,
                _ => self.with_element(right, left, true)?,
            };
            return Ok(made);
        }
        let is = |expr: &Expr| expr.is();
        let text = |expr: &Expr| is(expr).is_none_or(Type::is_text);
        if is(&left) == Some(Type::Bytea) || is(&right) == Some(Type::Bytea) {
            let left = self.coerce(left, Type::Bytea, Wanted::Implicit)?;
            let right = self.coerce(right, Type::Bytea, Wanted::Implicit)?;
            let sql = format!("CAST({} || {} AS BLOB)", left.sql, right.sql);
            return Ok(Expr::pure(sql, Type::Bytea, &[&left, &right]));
        }
        let jsonb = is(&left) == Some(Type::Jsonb) || is(&right) == Some(Type::Jsonb);
        if jsonb || !text(&left) && !text(&right) {
            return Err(match jsonb {
                true => hints::operator("||"),
                false => no_operator(&left, "||", &right),
            });
        }
        let left = self.coerce(left, Type::Text, Wanted::Assignment)?;
        let right = self.coerce(right, Type::Text, Wanted::Assignment)?;
        let sql = format!("({} || {})", left.sql, right.sql);
        Ok(Expr::pure(sql, Type::Text, &[&left, &right]))
    }

    /// Joins two arrays.
    pub(super) fn array_of_both(&mut self, left: Expr, right: Expr) -> Result<Expr, Failure> {
        let (left, right, is) = self.together(left, right, "||")?;
        match is.element() {
            Some(_) => Ok(joined_arrays(&left, &right, is)),
            None => Err(no_operator(&left, "||", &right)),
        }
    }

    /// Adds an element in front of an array, or behind it.
    pub(super) fn with_element(
        &mut self,
        array: Expr,
        element: Expr,
        in_front: bool,
    ) -> Result<Expr, Failure> {
        let of = array.is().and_then(Type::element).unwrap_or(Type::Text);
        let is = match element.is() {
            Some(Type::Numeric) if matches!(of, Type::Float4 | Type::Float8) => Some(of),
            Some(Type::Numeric) => None,
            // The first type stays, as in a list.
            Some(other) if of.is_text() && in_front => chosen(other, of),
            Some(other) if of.is_text() => chosen(of, other),
            Some(other) => common(of, other),
            None => Some(of),
        };
        let is = is.ok_or_else(|| no_operator(&array, "||", &element))?;
        let array_type = is.array().ok_or_else(|| hints::refuse("ARRAY"))?;
        let array = self.coerce(array, array_type, Wanted::Implicit)?;
        let element = self.coerce(element, is, Wanted::Implicit)?;
        Ok(with_one(&array, &element, array_type, in_front))
    }

    /// Translates an operator with one operand.
    pub(super) fn prefix(&mut self, operator: &str, value: Expr) -> Result<Expr, Failure> {
        let is = value.is();
        let number =
            matches!(is, Some(Type::Int2 | Type::Int4 | Type::Int8 | Type::Float4 | Type::Float8));
        match (operator, &value.kind) {
            ("-", ExprKind::Number(digits)) => {
                let digits = match digits.strip_prefix('-') {
                    Some(positive) => positive.to_owned(),
                    None => format!("-{digits}"),
                };
                Ok(Expr::constant(super::value::text_literal(&digits), ExprKind::Number(digits)))
            }
            ("+", _) if number || matches!(value.kind, ExprKind::Number(_)) => {
                let mut value = value;
                value.name = None;
                Ok(value)
            }
            ("-", _) if is == Some(Type::Interval) => {
                let sql = format!("refrain_intervals('*', {}, -1)", value.sql);
                Ok(Expr::made(sql, Type::Interval, &[&value]))
            }
            ("-", _) if number => {
                let is = is.unwrap_or(Type::Int4);
                let call = |value: &str| format!("refrain_negate({}, {value})", is.oid());
                let made = Expr::made(call(&value.sql), is, &[&value]);
                Ok(self.folded(made, value.constant.as_deref().map(call)))
            }
            ("~", _) if is.is_some_and(Type::is_integer) => {
                let sql = format!("(~{})", value.sql);
                Ok(Expr::pure(sql, is.unwrap_or(Type::Int4), &[&value]))
            }
            ("-" | "+" | "~", _) => {
                let message = format!("operator does not exist: {operator} {}", value.type_name());
                Err(Failure::new("42883", message).hint("add explicit type casts"))
            }
            _ => Err(hints::operator(operator)),
        }
    }
}

/// Returns `float8` for a number with a fraction beside a float.
fn with_number(left: &Expr, right: &Expr) -> Option<Type> {
    let float = |expr: &Expr| matches!(expr.is(), Some(Type::Float4 | Type::Float8));
    let number = |expr: &Expr| matches!(expr.kind, ExprKind::Number(_));
    (float(left) && number(right) || number(left) && float(right)).then_some(Type::Float8)
}

/// True if both are moments, of which one may be a string.
fn are_moments(left: &Expr, right: &Expr) -> bool {
    let moment =
        |expr: &Expr| matches!(expr.is(), Some(Type::Date | Type::Timestamp | Type::Timestamptz));
    let open = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(_));
    let timed = |expr: &Expr| matches!(expr.is(), Some(Type::Timestamp | Type::Timestamptz));
    moment(left) && moment(right) || timed(left) && open(right) || open(left) && timed(right)
}

fn is_number_beside_integer(left: &Expr, right: &Expr) -> bool {
    let number = |expr: &Expr| matches!(expr.kind, ExprKind::Number(_));
    let whole = |expr: &Expr| expr.is().is_some_and(Type::is_integer);
    number(left) && whole(right) || whole(left) && number(right)
}

/// Writes a number beside an integer so that SQLite compares the values.
fn plain_number(expr: Expr) -> Expr {
    let ExprKind::Number(digits) = &expr.kind else { return expr };
    let sql = real_literal(digits);
    Expr { constant: Some(sql.clone()), sql, ..expr }
}

/// Returns 42883, with PostgreSQL's message.
pub(super) fn no_operator(left: &Expr, operator: &str, right: &Expr) -> Failure {
    let (left, right) = (left.type_name(), right.type_name());
    let message = format!("operator does not exist: {left} {operator} {right}");
    Failure::new("42883", message).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

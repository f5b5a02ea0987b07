//! Conversions between types, by PostgreSQL's rules (`pg_cast`), in SQLite's dialect.

use crate::calendar;
use crate::decode::{self, Decoded};
use crate::enums::element_name;
use crate::failure::{Failure, state};
use crate::sql_text::name_parts;
use crate::types::Type;

use super::typing::Typing;
use super::value::{Expr, ExprKind, real_literal, text_literal};

/// The context of a conversion: the later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// An expression whose place has a type.
    Implicit,
    /// A value that is stored in a column.
    Assignment,
    /// A cast.
    Explicit,
}

/// The context that a conversion needs, and its SQL, where `$` is the value.
type Way = (Wanted, String);

fn way(wanted: Wanted, sql: &str) -> Option<Way> {
    Some((wanted, sql.to_owned()))
}

/// Returns the conversion from one type to another.
fn conversion(from: Type, to: Type) -> Option<Way> {
    use Type::*;
    use Wanted::*;
    let rank = |is: Type| [Int2, Int4, Int8].iter().position(|other| *other == is);
    if let (Some(low), Some(high)) = (rank(from), rank(to)) {
        return match low <= high {
            true => way(Implicit, "$"),
            false => Some((Assignment, format!("refrain_int({}, $)", to.oid()))),
        };
    }
    let text = [Text, Varchar, Name];
    match (from, to) {
        (Int2 | Int4 | Int8, Float4 | Float8) => way(Implicit, "CAST($ AS REAL)"),
        (Float4 | Float8, Int2 | Int4 | Int8) | (Numeric, Int2 | Int4 | Int8) => {
            Some((Assignment, format!("refrain_int({}, $)", to.oid())))
        }
        (Int2 | Int4 | Int8, Numeric) => way(Implicit, "CAST($ AS TEXT)"),
        (Numeric, Float4 | Float8) => {
            Some((Implicit, format!("refrain_in({}, CAST($ AS TEXT))", to.oid())))
        }
        (Float8, Float4) => Some((Assignment, format!("refrain_float({}, $)", to.oid()))),
        (Float4, Float8) | (Int2 | Int4 | Int8, Oid) | (Oid, Int8) => way(Implicit, "$"),
        (Int2 | Int4 | Int8 | Oid, to) if to.is_reg() => way(Implicit, "$"),
        (from, Oid) if from.is_reg() => way(Implicit, "$"),
        (from, Int4 | Int8) if from.is_reg() => way(Assignment, "$"),
        (Oid, Int4) => way(Assignment, "refrain_int(23, $)"),
        (Bool, Int4) => way(Explicit, "$"),
        (Int4, Bool) => way(Explicit, "($ <> 0)"),
        (Bool, to) if text.contains(&to) => {
            way(Assignment, "CASE $ WHEN 1 THEN 'true' WHEN 0 THEN 'false' END")
        }
        (Bpchar, to) if text.contains(&to) => way(Implicit, "rtrim($, ' ')"),
        (Name, Varchar | Bpchar) => way(Assignment, "$"),
        (Text | Varchar, Name) => way(Implicit, "refrain_in(19, $)"),
        (Char, Text) => way(Implicit, "$"),
        (Text | Varchar | Bpchar | Name, Char) => way(Assignment, "refrain_in(18, $)"),
        (Char, Int4) | (Int4, Char) => None,
        (from, to) if text.contains(&from) && text.contains(&to) => way(Implicit, "$"),
        (from, Bpchar) if text.contains(&from) => way(Implicit, "$"),
        (Timestamptz, to) if text.contains(&to) => {
            way(Assignment, "(refrain_zoneless($) || '+00')")
        }
        (Date | Time | Timestamp | Interval | Uuid | Json | Jsonb, to) if text.contains(&to) => {
            way(Assignment, "$")
        }
        (Numeric, to) if text.contains(&to) => way(Assignment, "CAST($ AS TEXT)"),
        (Enum(_) | EnumArray(_) | Regtype, it) | (it, Enum(_) | EnumArray(_) | Regtype)
            if text.contains(&it) =>
        {
            of_names(from, to)
        }
        (from, to) if text.contains(&to) => {
            Some((Assignment, format!("refrain_text({}, $)", from.oid())))
        }
        (from, to) if text.contains(&from) => {
            Some((Explicit, format!("refrain_in({}, $)", to.oid())))
        }
        (Date | Timestamp | Timestamptz, _) => of_moments(from, to),
        (from, to) if from.element().is_some() && to.element().is_some() => {
            // The elements of an array are converted as they are alone, where they stay the same.
            let (from, to) = (from.element()?, to.element()?);
            let same = from == to || matches!((from, to), (Name | Varchar | Char, Text));
            if same {
                way(Implicit, "$")
            } else {
                conversion(from, to).filter(|(_, sql)| sql == "$")
            }
        }
        (Jsonb, Json) => way(Assignment, "$"),
        (Json, Jsonb) => way(Assignment, "refrain_in(3802, $)"),
        _ => None,
    }
}

/// Returns the conversion of a label, of an array of labels, or of a type to a text, or of a text
/// to a label or a type.
fn of_names(from: Type, to: Type) -> Option<Way> {
    use Type::*;
    use Wanted::*;
    match (from, to) {
        (Enum(_), _) => way(Assignment, "$"),
        // The elements are texts, whatever the enum is.
        (EnumArray(_), _) => way(Assignment, "refrain_text(1009, $)"),
        (Regtype, _) => way(Assignment, "coalesce(refrain_type_name($), refrain_text(2206, $))"),
        (_, Enum(to)) => Some((Explicit, to.of_text())),
        (_, Regtype) => way(Explicit, "coalesce(refrain_type_oid($), refrain_in(2206, $))"),
        _ => None,
    }
}

/// Returns the conversion of a moment to another type of moments.
fn of_moments(from: Type, to: Type) -> Option<Way> {
    use Type::*;
    use Wanted::*;
    match (from, to) {
        (Date, Timestamp) => way(Implicit, "($ || ' 00:00:00')"),
        (Date, Timestamptz) => way(Implicit, "refrain_zoned($ || ' 00:00:00')"),
        (Timestamp, Timestamptz) => way(Implicit, "refrain_zoned($)"),
        (Timestamptz, Timestamp) => way(Assignment, "refrain_zoneless($)"),
        (Timestamp, Date) => way(Assignment, "substr($, 1, 10)"),
        (Timestamptz, Date) => way(Assignment, "substr(refrain_zoneless($), 1, 10)"),
        (Timestamp, Time) => way(Assignment, "substr($, 12)"),
        (Timestamptz, Time) => way(Assignment, "substr(refrain_zoneless($), 12)"),
        _ => None,
    }
}

/// True if the result of a conversion depends on a setting of PostgreSQL's, so that a constant
/// cannot be converted in advance.
fn is_stable(from: Type, to: Type) -> bool {
    use Type::*;
    let moment = |is: Type| matches!(is, Date | Timestamp | Timestamptz | Json | Jsonb);
    let zoned = from == Timestamptz || to == Timestamptz;
    zoned || from.is_text() && (moment(to) || to == Time) || moment(from) && to.is_text()
}

/// True if PostgreSQL converts a type into another one without a cast.
pub(super) fn is_implicit(from: Type, to: Type) -> bool {
    from == to || conversion(from, to).is_some_and(|(wanted, _)| wanted == Wanted::Implicit)
}

/// Writes a value as SQLite's SQL.
fn written(given: &Decoded<'_>) -> String {
    match given {
        Decoded::Null => "NULL".to_owned(),
        Decoded::Integer(number) => number.to_string(),
        Decoded::Real(number) if number.is_infinite() => {
            if *number > 0.0 { "9e999" } else { "-9e999" }.to_owned()
        }
        Decoded::Real(number) => format!("{number:e}"),
        Decoded::Text(text) => text_literal(&String::from_utf8_lossy(text)),
        Decoded::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{digits}'")
        }
    }
}

impl Typing<'_> {
    /// Converts a value to this type.
    ///
    /// # Errors
    /// The type's own error for a string that is no value of it; 42804 or 42846, without a
    /// position, if there is no conversion.
    pub(super) fn coerce(&mut self, from: Expr, to: Type, wanted: Wanted) -> Result<Expr, Failure> {
        match &from.kind {
            ExprKind::Typed(is) if *is == to => Ok(from),
            ExprKind::Typed(is) => self.convert(from.clone(), *is, to, wanted),
            ExprKind::Null => Ok(as_constant(from.rewritten("NULL".to_owned(), to))),
            ExprKind::Literal(text) if to == Type::Regclass && text.parse::<u32>().is_err() => {
                let sql = self.relation_oid(&text_literal(text));
                self.named_relations.push(sql.clone());
                Ok(from.rewritten(sql, to))
            }
            ExprKind::Literal(text) if to == Type::Regtype && decode::type_oid(text).is_err() => {
                let sql = self.type_oid(text)?;
                Ok(as_constant(from.rewritten(sql, to)))
            }
            ExprKind::Literal(text) => {
                let sql = literal(text, to)?;
                let sql = match to {
                    Type::Enum(of) | Type::EnumArray(of) => format!("{sql}{}", of.single_mark()),
                    _ => sql,
                };
                Ok(as_constant(from.rewritten(sql, to)))
            }
            ExprKind::Number(number) => {
                let made = number_as(from.clone(), number, to, wanted)?;
                let constant = made.sql.clone();
                match constant.starts_with("refrain_") {
                    true => Ok(self.folded(made, Some(constant))),
                    false => Ok(as_constant(made)),
                }
            }
            // The client sends the name of a relation as a text.
            ExprKind::Parameter(_) if to == Type::Regclass => {
                let name = self.coerce(from, Type::Text, wanted)?;
                let sql = self.relation_oid(&name.sql);
                Ok(name.rewritten(sql, to))
            }
            ExprKind::Parameter(number) => {
                if let Some(place) = self.parameters.get_mut(*number) {
                    place.get_or_insert(to);
                }
                let sql = from.sql.clone();
                Ok(from.rewritten(sql, to))
            }
        }
    }

    /// Returns the OID of a type by a constant name, or of a number.
    fn type_oid(&self, text: &str) -> Result<String, Failure> {
        let plain = text.trim().strip_suffix("[]");
        let called = match &name_parts(plain.unwrap_or(text)).unwrap_or_default()[..] {
            [only] => only.clone(),
            [schema, only] if schema == "public" => only.clone(),
            [schema, only] => format!("{schema}.{only}"),
            _ => String::new(),
        };
        match (self.catalog.enum_named(&called), plain) {
            (Some(of), None) => Ok(of.oid().to_string()),
            (Some(of), Some(_)) => Ok(of.array_oid().to_string()),
            (None, _) => {
                let of = element_name(&called).and_then(|of| self.catalog.enum_named(&of));
                let array = of.filter(|_| plain.is_none()).map(|of| of.array_oid().to_string());
                array.map_or_else(|| literal(text, Type::Regtype), Ok)
            }
        }
    }

    /// Returns the SQL of the OID of a relation by its name; an unknown name is an error.
    fn relation_oid(&mut self, name: &str) -> String {
        self.relations.push("refrain_regclass");
        format!(
            "refrain_found((SELECT c.oid FROM refrain_regclass c \
             WHERE c.name = refrain_relation_name({name})), {name})"
        )
    }

    /// Returns the SQL of the name of a relation by its OID, as `regclass` prints it.
    pub(super) fn relation_name(&mut self, oid: &str) -> String {
        self.relations.push("refrain_regclass");
        format!(
            "coalesce((SELECT c.shown FROM refrain_regclass c \
             WHERE c.oid = {oid}), iif({oid} = 0, '-', CAST({oid} AS TEXT)))"
        )
    }

    fn convert(&mut self, from: Expr, is: Type, to: Type, wanted: Wanted) -> Result<Expr, Failure> {
        if is.is_text() && to == Type::Regclass {
            let sql = self.relation_oid(&from.sql);
            return Ok(from.rewritten(sql, to));
        }
        if is == Type::Regclass && to.is_text() && wanted > Wanted::Implicit {
            let sql = self.relation_name(&from.sql);
            return Ok(from.rewritten(sql, to));
        }
        let Some((least, sql)) = conversion(is, to) else {
            return Err(no_way(is, to, wanted));
        };
        if wanted < least {
            return Err(no_way(is, to, wanted));
        }
        let way = sql;
        let sql = way.replace('$', &from.sql);
        let not_null = from.not_null && from.sql == sql;
        let lasting = from.constant.as_ref().filter(|_| !is_stable(is, to));
        let constant = lasting.map(|constant| way.replace('$', constant));
        let mut made = from.rewritten(sql, to);
        made.not_null = not_null;
        match way.starts_with("refrain_") {
            true => Ok(self.folded(made, constant)),
            false => Ok(Expr { constant, ..made }),
        }
    }

    /// Converts the value of a condition, which must be a boolean.
    pub(super) fn truth(&mut self, value: Expr, place: &str) -> Result<Expr, Failure> {
        match value.is() {
            None | Some(Type::Bool) => self.coerce(value, Type::Bool, Wanted::Implicit),
            Some(is) => {
                let message =
                    format!("argument of {place} must be type boolean, not type {}", is.name());
                Err(Failure::new(state::WRONG_TYPE, message))
            }
        }
    }

    /// Converts a value for a column or a cast with a length.
    pub(super) fn fit(
        &mut self,
        from: Expr,
        to: Type,
        limit: Option<u32>,
        wanted: Wanted,
    ) -> Result<Expr, Failure> {
        let known = from.limit;
        let literal = match &from.kind {
            ExprKind::Literal(text) => Some(text.clone()),
            _ => None,
        };
        let null = from.kind == ExprKind::Null;
        let mut made = self.coerce(from, to, wanted)?;
        let Some(limit) = limit else { return Ok(made) };
        let fits = null || known.is_some_and(|known| known <= limit && to == Type::Varchar);
        if !fits {
            let explicit = wanted == Wanted::Explicit;
            made.sql = match literal {
                Some(text) if to.is_text() => text_literal(&fitted(&text, to, limit, explicit)?),
                _ => format!(
                    "refrain_fit({}, {}, {limit}, {})",
                    to.oid(),
                    made.sql,
                    u8::from(explicit)
                ),
            };
            let constant = made.constant.as_ref().map(|_| made.sql.clone());
            made = self.folded(made, constant);
        }
        made.limit = Some(limit);
        Ok(made)
    }

    /// Gives a value its final type: strings and parameters without a type become texts.
    pub(super) fn settle(&mut self, from: Expr) -> Result<Expr, Failure> {
        match from.kind {
            ExprKind::Typed(_) => Ok(from),
            ExprKind::Number(_) => {
                let sql = from.sql.clone();
                Ok(from.rewritten(sql, Type::Numeric))
            }
            _ => self.coerce(from, Type::Text, Wanted::Implicit),
        }
    }
}

/// Shortens a text to `limit` characters. That is an error unless the cast is explicit or the rest
/// is blanks.
///
/// # Errors
/// 22001.
pub(crate) fn fitted(text: &str, is: Type, limit: u32, explicit: bool) -> Result<String, Failure> {
    let most = limit as usize;
    let length = text.chars().count();
    if length > most {
        let rest: String = text.chars().skip(most).collect();
        if !explicit && rest.chars().any(|letter| letter != ' ') {
            let message = format!("value too long for type {}({limit})", is.name());
            return Err(Failure::new("22001", message));
        }
        return Ok(text.chars().take(most).collect());
    }
    let blanks = if is == Type::Bpchar { most - length } else { 0 };
    Ok(format!("{text}{}", " ".repeat(blanks)))
}

fn as_constant(made: Expr) -> Expr {
    Expr { constant: Some(made.sql.clone()), ..made }
}

fn literal(text: &str, to: Type) -> Result<String, Failure> {
    if to == Type::Numeric {
        return numeric_literal(text);
    }
    if to == Type::Timestamptz && !calendar::is_zoned(text.as_bytes()) {
        // The session's zone is not known before the statement runs.
        return Ok(format!("refrain_zoned({})", literal(text, Type::Timestamp)?));
    }
    Ok(written(&decode::text(text.as_bytes(), to)?))
}

/// Checks a `numeric` literal. Its value is its digits, because Refrain does not compute with it.
fn numeric_literal(text: &str) -> Result<String, Failure> {
    match decode::text(text.as_bytes(), Type::Numeric) {
        Err(failure) if failure.sqlstate == state::TOO_LARGE_NUMBER => {
            return Err(super::hints::refuse("numeric"));
        }
        known => known?,
    };
    let plain = text.trim();
    if plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        || plain.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && plain.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
            && !plain.ends_with('.')
    {
        return Ok(text_literal(plain));
    }
    Err(super::hints::refuse("numeric"))
}

fn number_as(from: Expr, number: &str, to: Type, wanted: Wanted) -> Result<Expr, Failure> {
    let sql = match to {
        Type::Numeric => from.sql.clone(),
        Type::Float4 | Type::Float8 => {
            let given = decode::text(number.as_bytes(), to)?;
            match given {
                Decoded::Real(value) if value.is_finite() => real_literal(&written(&given)),
                _ => return Err(decode::out_of_range(to, number)),
            }
        }
        Type::Int2 | Type::Int4 | Type::Int8 if wanted >= Wanted::Assignment => {
            format!("refrain_int({}, {})", to.oid(), text_literal(number))
        }
        to if to.is_text() && wanted >= Wanted::Assignment => from.sql.clone(),
        _ => return Err(no_way(Type::Numeric, to, wanted)),
    };
    Ok(from.rewritten(sql, to))
}

fn no_way(from: Type, to: Type, wanted: Wanted) -> Failure {
    match wanted {
        Wanted::Explicit => {
            let message = format!("cannot cast type {} to {}", from.name(), to.name());
            Failure::new("42846", message).hint("cast to text first, if that is meant")
        }
        _ => {
            let message = format!("an expression of type {} is no {}", from.name(), to.name());
            Failure::new(state::WRONG_TYPE, message).hint(format!(
                "You will need to rewrite or cast the expression: CAST(… AS {})",
                to.name()
            ))
        }
    }
}

/// Returns 42804: texts alone have collations.
pub(super) fn no_collation(is: Type) -> Failure {
    let message = format!("collations are not supported by type {}", is.name());
    Failure::new(state::WRONG_TYPE, message)
}

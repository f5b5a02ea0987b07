//! The function of a table that accepts some arguments.

use crate::failure::Failure;
use crate::types::Type;

use super::catalog_functions::FunctionRow;
use super::coerce::{Wanted, is_implicit};
use super::hints;
use super::typing::Typing;
use super::value::{Expr, ExprKind};

/// Functions that are computed ahead where they are of constants: those that PostgreSQL does
/// (`provolatile` is `i`), but for what may take longer than its arguments are long.
const FOLDED: &[&str] = &[
    "abs",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "floor",
    "left",
    "length",
    "lower",
    "mod",
    "octet_length",
    "reverse",
    "right",
    "round",
    "substr",
    "substring",
    "trunc",
    "upper",
];

/// Functions that compute with `numeric` if an argument is a numeric.
const NUMERIC_TOO: &[&str] = &[
    "abs", "mod", "round", "ceil", "ceiling", "floor", "trunc", "sum", "avg", "sign", "sqrt",
    "power", "pow", "exp", "ln", "log", "log10",
];

impl Typing<'_> {
    /// Calls the function of the table that accepts these arguments.
    pub(super) fn resolved(
        &mut self,
        table: &[FunctionRow],
        function: &str,
        arguments: Vec<Expr>,
    ) -> Result<Expr, Failure> {
        let number = |expr: &Expr| expr.is() == Some(Type::Numeric);
        if NUMERIC_TOO.contains(&function) && arguments.iter().any(number) {
            return Err(hints::refuse("numeric"));
        }
        let of_name =
            || table.iter().filter(|row| row.0 == function && row.1.len() == arguments.len());
        let exact = |row: &&FunctionRow| {
            row.1.iter().zip(&arguments).all(|(to, expr)| expr.is().is_none_or(|is| is == *to))
        };
        let fits = |row: &&FunctionRow| {
            row.1
                .iter()
                .zip(&arguments)
                .all(|(to, expr)| expr.is().is_none_or(|is| is_implicit(is, *to)))
        };
        let Some(row) = of_name().find(exact).or_else(|| of_name().find(fits)) else {
            return Err(no_function(function, &arguments));
        };
        let mut sql = row.3.to_owned();
        let mut made = Vec::new();
        for (place, (argument, to)) in arguments.into_iter().zip(row.1).enumerate() {
            let argument = self.coerce(argument, *to, Wanted::Implicit)?;
            sql = sql.replace(&format!("${}", place + 1), &format!("\u{1}{place}\u{1}"));
            made.push(argument);
        }
        for (place, argument) in made.iter().enumerate() {
            sql = sql.replace(&format!("\u{1}{place}\u{1}"), &argument.sql);
        }
        // SQLite would not look for a relation where no row asks for it.
        for argument in made.iter().filter(|it| it.sql.starts_with("refrain_found(")) {
            sql = format!("(CASE WHEN {} IS NOT NULL THEN {sql} END)", argument.sql);
        }
        let parts: Vec<&Expr> = made.iter().collect();
        if !FOLDED.contains(&function) {
            return Ok(Expr::made(sql, row.2, &parts));
        }
        let made = Expr::pure(sql, row.2, &parts);
        let constant = made.constant.clone();
        Ok(self.folded(made, constant))
    }

    /// Translates functions that take any type.
    pub(super) fn of_any(
        &mut self,
        function: &str,
        arguments: &[Expr],
    ) -> Result<Option<Expr>, Failure> {
        match function {
            "concat" | "concat_ws" => {
                let mut texts = Vec::new();
                for argument in arguments {
                    let argument = match argument.is() {
                        Some(Type::Bool) => {
                            let sql = format!(
                                "CASE {} WHEN 1 THEN 't' WHEN 0 THEN 'f' END",
                                argument.sql
                            );
                            argument.clone().rewritten(sql, Type::Text)
                        }
                        // Its output function writes the blanks.
                        Some(Type::Bpchar) => {
                            Expr { kind: ExprKind::Typed(Type::Text), ..argument.clone() }
                        }
                        _ => self.coerce(argument.clone(), Type::Text, Wanted::Assignment)?,
                    };
                    texts.push(argument);
                }
                let parts: Vec<&str> = texts.iter().map(|text| text.sql.as_str()).collect();
                let sql = format!("{function}({})", parts.join(", "));
                Ok(Some(Expr::made(sql, Type::Text, &texts.iter().collect::<Vec<_>>())))
            }
            "timezone" => self.at_time_zone(arguments).map(Some),
            "enum_first" | "enum_last" | "enum_range" => {
                self.of_enum(function, arguments).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Translates the functions of an enum, which take its type from their arguments.
    fn of_enum(&mut self, function: &str, arguments: &[Expr]) -> Result<Expr, Failure> {
        let of = arguments.iter().find_map(|argument| match argument.is() {
            Some(Type::Enum(of)) => Some(of),
            _ => None,
        });
        let count = if function == "enum_range" { 1..=2 } else { 1..=1 };
        let Some(of) = of.filter(|_| count.contains(&arguments.len())) else {
            return Err(no_function(function, arguments));
        };
        let mut bounds = Vec::new();
        for argument in arguments {
            bounds.push(self.coerce(argument.clone(), Type::Enum(of), Wanted::Implicit)?);
        }
        let parts: Vec<&Expr> = bounds.iter().collect();
        let shown = match function {
            "enum_first" => of.labels().get(..1),
            "enum_last" => of.labels().last_chunk::<1>().map(|last| &last[..]),
            _ => Some(of.labels()),
        };
        for label in shown.unwrap_or_default() {
            of.label(label)?;
        }
        match function {
            "enum_first" => Ok(Expr::made(format!("({})", of.first()), Type::Enum(of), &parts)),
            "enum_last" => Ok(Expr::made(format!("({})", of.last()), Type::Enum(of), &parts)),
            _ => {
                let array = format!("json_array({})", of.all());
                let sql = match &bounds[..] {
                    [from, to] => format!(
                        "(SELECT json_group_array(value ORDER BY key) FROM json_each({array}) \
                         WHERE key + 1 >= coalesce({}, 1) AND key + 1 <= coalesce({}, {}))",
                        of.place(&from.sql),
                        of.place(&to.sql),
                        of.count()
                    ),
                    _ => array,
                };
                Ok(Expr::made(sql, Type::EnumArray(of), &parts))
            }
        }
    }

    /// Translates AT TIME ZONE 'UTC'.
    fn at_time_zone(&mut self, arguments: &[Expr]) -> Result<Expr, Failure> {
        let [zone, moment] = arguments else { return Err(no_function("timezone", arguments)) };
        let ExprKind::Literal(named) = &zone.kind else {
            return Err(hints::refuse("AT TIME ZONE"));
        };
        if !["utc", "gmt", "etc/utc", "z"].contains(&named.to_ascii_lowercase().as_str()) {
            return Err(hints::refuse("AT TIME ZONE"));
        }
        match moment.is() {
            Some(Type::Timestamp) => {
                Ok(Expr::made(format!("({} || '+00')", moment.sql), Type::Timestamptz, &[moment]))
            }
            Some(Type::Timestamptz) => {
                let sql = format!("replace({}, '+00', '')", moment.sql);
                Ok(Expr::made(sql, Type::Timestamp, &[moment]))
            }
            Some(Type::Date) => {
                let moment = self.coerce(moment.clone(), Type::Timestamptz, Wanted::Implicit)?;
                self.at_time_zone(&[zone.clone(), moment])
            }
            _ => Err(hints::refuse("AT TIME ZONE")),
        }
    }
}

/// Returns 42883, with PostgreSQL's message.
pub(super) fn no_function(function: &str, arguments: &[Expr]) -> Failure {
    let types: Vec<&str> = arguments.iter().map(Expr::type_name).collect();
    let message = format!("function {function}({}) does not exist", types.join(", "));
    Failure::new("42883", message).hint(hints::function(function))
}

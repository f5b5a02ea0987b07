//! Calls of the functions of sequences.
//!
//! A sequence that CREATE SEQUENCE has made is a table with its number. The sequence of a table's
//! key is SQLite's own.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::Node;

use crate::failure::Failure;
use crate::sequences::{NEXT, NEXT_KEY, SET, SET_KEY, Sequence};
use crate::sql_text;
use crate::types::Type;

use super::scope::Catalog;
use super::value::{Expr, ExprKind, name, text_literal};
use super::{Translated, hints};

/// A sequence that a function names.
pub(super) enum Named {
    /// One that CREATE SEQUENCE has made.
    Sequence(String),
    /// That of a table's key: its name, the table, and the largest number.
    Key(String, String, i64),
}

/// True if SQL takes numbers from sequences, or sets them.
pub(super) fn takes_numbers(sql: &str) -> bool {
    number_calls(sql) > 0
}

/// Returns the number of calls in SQL that take numbers from sequences, or set them.
fn number_calls(sql: &str) -> usize {
    let calls = |function: &str| {
        let behind = sql.match_indices(function).map(|(place, _)| place + function.len());
        behind.filter(|end| sql.get(*end..).is_some_and(|rest| rest.starts_with('('))).count()
    };
    [NEXT, NEXT_KEY, SET, SET_KEY].into_iter().map(calls).sum()
}

/// Checks the SQL of an expression with this many calls of `nextval` and `setval`: some forms write
/// an operand several times.
///
/// # Errors
/// The SQL has more calls than the expression.
pub(super) fn taken_once(sql: &str, calls: usize) -> Result<(), Failure> {
    match calls == 0 || number_calls(sql) <= calls {
        true => Ok(()),
        false => Err(hints::refuse("repeated value")),
    }
}

/// Returns a subquery whose rows SQLite computes once, if they have numbers of sequences.
pub(super) fn computed_once(sql: String) -> String {
    match takes_numbers(&sql) {
        // With LIMIT and OFFSET its expressions are not put in the place of its columns.
        true => format!("SELECT * FROM ({sql}) LIMIT -1 OFFSET 0"),
        false => sql,
    }
}

/// True if a function of sequences takes this number of arguments.
pub(super) fn is_of_sequences(function: &str, count: usize) -> bool {
    match function {
        "nextval" | "currval" => count == 1,
        "setval" => count == 2 || count == 3,
        "lastval" => count == 0,
        _ => false,
    }
}

/// Returns the argument that names a sequence, without its cast to `regclass`.
pub(super) fn uncast(node: &Node) -> &Node {
    match &node.node {
        Some(NodeEnum::TypeCast(cast)) => cast.arg.as_deref().unwrap_or(node),
        _ => node,
    }
}

impl Named {
    /// Returns the name of the table that a new number changes.
    pub(super) fn table(&self) -> &str {
        match self {
            Self::Sequence(written) => written,
            Self::Key(_, table, _) => table,
        }
    }

    /// Returns the call of `currval`.
    pub(super) fn current(&self) -> Expr {
        let (written, key) = match self {
            Self::Sequence(written) => (written, 0),
            Self::Key(written, ..) => (written, 1),
        };
        Expr::typed(format!("refrain_currval({}, {key})", text_literal(written)), Type::Int8)
    }

    /// Returns the call of `nextval` or `setval`; `rest` are the arguments behind the sequence.
    pub(super) fn call(&self, function: &str, mut rest: Vec<Expr>) -> Expr {
        if function == "setval" && rest.len() == 1 {
            rest.push(Expr::typed("1", Type::Bool));
        }
        let mut words = match self {
            Self::Sequence(written) => vec![text_literal(written)],
            Self::Key(written, table, most) => {
                vec![text_literal(written), text_literal(table), most.to_string()]
            }
        };
        words.extend(rest.iter().map(|value| value.sql.clone()));
        let function = match (self, function) {
            (Self::Sequence(_), "nextval") => NEXT,
            (Self::Sequence(_), _) => SET,
            (Self::Key(..), "nextval") => NEXT_KEY,
            (Self::Key(..), _) => SET_KEY,
        };
        let sql = format!("{function}({})", words.join(", "));
        Expr::made(sql, Type::Int8, &rest.iter().collect::<Vec<_>>())
    }
}

/// Returns the sequence that a constant of the type `regclass` names.
pub(super) fn sequence_named(catalog: &dyn Catalog, constant: &Expr) -> Translated<Named> {
    let ExprKind::Literal(text) = &constant.kind else {
        return Err(hints::refuse("a sequence by its value").into());
    };
    let missing = || Failure::new("42P01", format!("relation \"{text}\" does not exist"));
    let called = match &sql_text::name_parts(text).unwrap_or_default()[..] {
        [only] => only.clone(),
        [schema, only] if schema == "public" => only.clone(),
        [schema, only] => format!("{schema}.{only}"),
        _ => return Err(missing().into()),
    };
    if let Some((table, is)) = catalog.key_sequence(&called) {
        let most = largest(is);
        return Ok(Named::Key(called, table, most));
    }
    let definition = catalog.definition(&called).ok_or_else(missing)?;
    match Sequence::read(&definition) {
        Some(_) => Ok(Named::Sequence(called)),
        None => {
            let message = format!("\"{called}\" is not a sequence");
            Err(Failure::new("42809", message).into())
        }
    }
}

/// Returns the CREATE TABLE of a sequence.
pub(super) fn definition(called: &str, sequence: &Sequence) -> String {
    format!(
        "CREATE TABLE {} (\"last_value\" {} BIGINT NOT NULL, \"log_cnt\" BIGINT NOT NULL, \
         \"is_called\" BOOLEAN NOT NULL)",
        name(called),
        sequence.mark()
    )
}

/// Returns the statement that makes a sequence's row.
pub(super) fn first_row(called: &str, start: i64) -> String {
    let columns = "rowid, \"last_value\", \"log_cnt\", \"is_called\"";
    format!("INSERT INTO {} ({columns}) VALUES (random(), {start}, 0, 0)", name(called))
}

/// Returns the largest number of a type.
pub(super) fn largest(is: Type) -> i64 {
    match is {
        Type::Int2 => i64::from(i16::MAX),
        Type::Int4 => i64::from(i32::MAX),
        _ => i64::MAX,
    }
}

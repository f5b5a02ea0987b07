//! The parse tree of one statement, for code that translates it.
//!
//! What always holds: a returned tree can be walked by recursion on a thread with the usual stack.
//! A text that nests deeper is refused, in C or while the tree is handed over ([`Fault::Deep`]).

use pg_query::Error;
use pg_query::protobuf::Node;

use crate::names;

/// The reason why a text has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// PostgreSQL's grammar does not accept it; with the grammar's message.
    Syntax(String),
    /// It nests too deeply.
    Deep,
    /// There is no statement, or more than one.
    NotOne,
}

/// The beginning of the grammar's message for a text that nests too deeply.
const DEEP: &[&str] = &["stack depth limit", "memory exhausted"];

/// Parses a text with one statement.
///
/// # Errors
/// [`Fault`].
pub fn statement(text: &str) -> Result<Node, Fault> {
    if names::has_long_run(text.as_bytes()) {
        return Err(Fault::Deep);
    }
    let parsed = pg_query::parse(text, 0).map_err(|error| match error {
        Error::Parse(why) if DEEP.iter().any(|words| why.starts_with(words)) => Fault::Deep,
        Error::Parse(why) => Fault::Syntax(why),
        _ => Fault::Deep,
    })?;
    let mut statements = parsed.protobuf.stmts.into_iter();
    match (statements.next().and_then(|raw| raw.stmt), statements.next()) {
        (Some(statement), None) => Ok(*statement),
        _ => Err(Fault::NotOne),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_stack_is_enough() {
        let parens = |depth: usize| format!("SELECT {}1{}", "(1+".repeat(depth), ")".repeat(depth));
        let queries =
            |depth: usize| format!("SELECT {}1{}", "(SELECT ".repeat(depth), ")".repeat(depth));
        for make in [&parens as &dyn Fn(usize) -> String, &queries] {
            let deepest = (1..200).take_while(|depth| statement(&make(*depth)).is_ok()).last();
            assert!(deepest.is_some_and(|deepest| deepest >= 15), "{deepest:?}");
            assert_eq!(statement(&make(5000)), Err(Fault::Deep));
        }
        assert_eq!(statement(""), Err(Fault::NotOne));
        assert!(matches!(statement("SELEC 1"), Err(Fault::Syntax(_))));
    }
}

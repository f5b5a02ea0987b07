//! Which texts may write, as far as a text shows.
//!
//! After a write, what a cache of results keeps may be out of date.

use crate::lex::{Lexer, TokenKind};
use crate::scan::{Kind, Scan};
use crate::traits::Traits;

/// Commands of one statement that write no rows, by their first words.
const HARMLESS: &[&str] = &[
    "abort",
    "analyse",
    "analyze",
    "begin",
    "checkpoint",
    "close",
    "commit",
    "deallocate",
    "discard",
    "end",
    "listen",
    "lock",
    "notify",
    "prepare",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "show",
    "start",
    "unlisten",
    "vacuum",
];
/// Commands that write rows only if one of [`WRITING`] is in them.
const READING: &[&str] = &["explain", "select", "table", "values", "with"];
/// Words without which a query writes no rows itself.
const WRITING: &[&str] = &[
    "analyse", "analyze", "call", "copy", "delete", "execute", "insert", "into", "merge", "update",
];

/// True if a text may write rows or change the schema, as far as it shows: the functions behind
/// operators, casts and views are not seen (see [`may_read`]).
pub fn may_write(text: &[u8], scan: &Scan, backslash: bool) -> bool {
    match scan.kind {
        Kind::Empty => return false,
        Kind::Select => return scan.calls != 0 || scan.traits.contains(Traits::DDL),
        Kind::Many | Kind::Insert | Kind::Update | Kind::Delete | Kind::Execute(_) => return true,
        _ => {}
    }
    let mut lexer = Lexer::new(text, backslash);
    let mut first = None;
    let (mut reads, mut writes) = (false, false);
    while let Some(token) = lexer.significant() {
        let word = token.of(text);
        if first.is_none() {
            // A query in parentheses.
            if token.kind == TokenKind::Open {
                continue;
            }
            first = Some(token);
            if is_among(HARMLESS, word) {
                return ends_prepared(text, &mut lexer);
            }
            reads = token.kind == TokenKind::Word && is_among(READING, word);
        }
        writes |= token.kind == TokenKind::Word && is_among(WRITING, word);
    }
    !reads || writes || scan.calls != 0
}

/// True if a text may read rows, and so run what its words hide ([`crate::hidden`]), though it does
/// not write itself ([`may_write`]).
pub fn may_read(text: &[u8], scan: &Scan, backslash: bool) -> bool {
    match scan.kind {
        Kind::Select | Kind::With => true,
        Kind::Other => {
            let mut lexer = Lexer::new(text, backslash);
            let mut first = std::iter::from_fn(|| lexer.significant());
            let first = first.find(|token| token.kind != TokenKind::Open);
            first.is_some_and(|token| is_among(READING, token.of(text)))
        }
        _ => false,
    }
}

/// True if a text may end a transaction block, or begins by ending one.
pub fn may_commit(scan: &Scan) -> bool {
    matches!(scan.kind, Kind::TransactionEnd | Kind::Chain | Kind::Many)
}

/// True if COMMIT or ROLLBACK ends a transaction that another session has prepared.
fn ends_prepared(text: &[u8], lexer: &mut Lexer<'_>) -> bool {
    let next = lexer.significant();
    next.is_some_and(|token| token.of(text).eq_ignore_ascii_case(b"prepared"))
}

fn is_among(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scan;

    #[test]
    fn what_may_read() {
        let reads = |text: &str| may_read(text.as_bytes(), &scan(text.as_bytes()), false);
        let reading = ["select 1", "(((select 1)))", "with x as (select 1) table x", "table t"];
        for text in reading.iter().chain(&["values (1)", "explain select 1", "(table t)"]) {
            assert!(reads(text), "{text}");
        }
        for text in ["", "begin", "set a = 1", "show a", "commit", "listen x", "vacuum", "(("] {
            assert!(!reads(text), "{text}");
        }
    }

    #[test]
    fn what_may_write() {
        let writes = |text: &str| may_write(text.as_bytes(), &scan(text.as_bytes()), false);
        for text in [
            "insert into t values (1)",
            "update t set a = 1",
            "delete from t",
            "with x as (delete from t returning *) select * from x",
            "select f(1)",
            "select 1 into t",
            "call p()",
            "do $$ begin end $$",
            "copy t from stdin",
            "merge into t using u on true when matched then delete",
            "truncate t",
            "create table t (a int)",
            "grant select on t to public",
            "commit prepared 'x'",
            "rollback prepared 'x'",
            "explain analyze delete from t",
            "execute s",
            "fetch all from c",
            "select 1; select 2",
            "(select f(1))",
            "refresh materialized view m",
        ] {
            assert!(writes(text), "{text}");
        }
        for text in [
            "",
            "select * from t where a = 1",
            "select count(*), max(a) from t",
            "with x as (select 1) select * from x",
            "(select 1) union (select 2)",
            "table t",
            "values (1)",
            "begin",
            "start transaction",
            "commit",
            "rollback",
            "rollback to savepoint s",
            "set search_path = a",
            "set local x.y = 'update'",
            "show all",
            "explain select * from t",
            "listen x",
            "savepoint s",
            "discard all",
            "deallocate all",
            "vacuum (full) t",
            "analyze t",
        ] {
            assert!(!writes(text), "{text}");
        }
    }
}

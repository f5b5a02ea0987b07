//! Which texts may change what the databases of a cluster share: roles with their memberships and
//! attributes, databases, tablespaces, the configuration of the server.
//!
//! A word of the text says so, or the text runs code that it does not show.

use crate::lex::{Lexer, TokenKind};
use crate::scan::Scan;

/// The part of what databases share that a text may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// None.
    Nothing,
    /// The roles, and what else is shared: not which database has which name.
    Rights,
    /// Databases as well: another may have the name of one.
    Databases,
}

/// Words without which a command changes nothing that is shared, by GRANT and REVOKE aside.
const RIGHTS: &[&str] = &["group", "owned", "role", "system", "tablespace", "user"];
/// Words of commands that run code which the text does not show.
const HIDDEN: &[&str] = &["call", "do", "execute", "fetch", "prepared"];
/// Words of commands that may call functions: a text that names others may write a table.
const CALLING: &[&str] = &["returning", "select", "values"];

/// Returns the part of what databases share that a text may change, if it may change more than
/// rows.
pub fn shared_changes(text: &[u8], scan: &Scan, backslash: bool) -> Shared {
    let mut lexer = Lexer::new(text, backslash);
    let (mut grants, mut on, mut roles, mut hidden, mut calls) = (0, 0, false, false, false);
    while let Some(token) = lexer.significant() {
        let word = token.of(text);
        if token.kind != TokenKind::Word {
            continue;
        }
        if is_among(&["database"], word) {
            return Shared::Databases;
        }
        grants += usize::from(is_among(&["grant", "revoke"], word));
        on += usize::from(is_among(&["on"], word));
        roles |= is_among(RIGHTS, word);
        hidden |= is_among(HIDDEN, word);
        calls |= is_among(CALLING, word);
    }
    // A right on an object names the object behind ON; a membership has no ON.
    let member = grants > on;
    if roles || member || hidden || calls && scan.calls != 0 {
        Shared::Rights
    } else {
        Shared::Nothing
    }
}

fn is_among(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scan;

    #[test]
    fn what_databases_share() {
        let changes = |text: &str| shared_changes(text.as_bytes(), &scan(text.as_bytes()), false);
        for text in [
            "create table t (a int)",
            "alter table t add b int",
            "grant select on t to a",
            "revoke all on schema s from a",
            "drop table \"role\"",
            "comment on table t is 'user'",
            "truncate t",
            "create function f() returns int language sql as $$ select 1 $$",
        ] {
            assert_eq!(changes(text), Shared::Nothing, "{text}");
        }
        for text in [
            "alter role a nologin",
            "create user a",
            "drop group a",
            "grant a to b",
            "revoke /* on */ a from b cascade",
            "revoke admin option for a from b",
            "grant a to b; grant select on t to c",
            "drop owned by a",
            "reassign owned by a to b",
            "alter system set log_statement = 'all'",
            "drop tablespace x",
            "do $$ begin end $$",
            "call p()",
            "select f()",
            "create table t as select f()",
            "commit prepared 'x'",
            "execute s",
        ] {
            assert_eq!(changes(text), Shared::Rights, "{text}");
        }
        for text in
            ["drop database a", "create database a template b", "grant connect on database a to b"]
        {
            assert_eq!(changes(text), Shared::Databases, "{text}");
        }
    }
}

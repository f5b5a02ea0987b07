//! Words that show that a text is in SQLite's dialect, and PostgreSQL's types that Refrain does not
//! have.

use std::borrow::Cow;

use refrain_sql::lex::{Lexer, Token, TokenKind};

/// Functions that show that a text is in SQLite's dialect: PostgreSQL does not have them, or has
/// them with the same meaning for SQLite's values.
pub(super) const SQLITE_FUNCTIONS: &[&str] = &[
    "changes",
    "datetime",
    "group_concat",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json_array",
    "json_array_insert",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_tree",
    "json_type",
    "json_valid",
    "julianday",
    "last_insert_rowid",
    "likelihood",
    "likely",
    "load_extension",
    "printf",
    "quote",
    "randomblob",
    "sqlite_compileoption_get",
    "sqlite_compileoption_used",
    "sqlite_source_id",
    "sqlite_version",
    "strftime",
    "timediff",
    "total",
    "total_changes",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "zeroblob",
    "glob",
];

/// SQLite's names of types that PostgreSQL does not have.
pub(super) const SQLITE_TYPES: &[&str] =
    &["blob", "clob", "datetime", "double", "mediumint", "nvarchar", "string", "tinyint"];

/// PostgreSQL's types that Refrain does not have.
pub(super) const OTHER_TYPES: &[&str] = &[
    "aclitem",
    "bit",
    "box",
    "cid",
    "cidr",
    "circle",
    "inet",
    "int4range",
    "int8range",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "numrange",
    "path",
    "pg_lsn",
    "point",
    "polygon",
    "refcursor",
    "regconfig",
    "regdictionary",
    "regoper",
    "regoperator",
    "regrole",
    "tid",
    "timetz",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "varbit",
    "xid",
    "xid8",
    "xml",
    "daterange",
    "record",
    "jsonpath",
    "void",
    "unknown",
    "pg_snapshot",
];

/// Words that make a text SQLite's if PostgreSQL's grammar does not accept it.
pub(super) const SQLITE_WORDS: &[&str] = &[
    "abort",
    "attach",
    "autoincrement",
    "detach",
    "glob",
    "indexed",
    "match",
    "plan",
    "pragma",
    "raise",
    "regexp",
    "replace",
    "rowid",
    "strict",
    "virtual",
];

/// True if a text calls a function that only SQLite has.
pub(super) fn calls_sqlites(text: &str) -> bool {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut before = String::new();
    while let Some(token) = lexer.significant() {
        if token.kind == TokenKind::Open && SQLITE_FUNCTIONS.contains(&before.as_str()) {
            return true;
        }
        let word = text.get(token.start as usize..token.end as usize).unwrap_or_default();
        before = word.to_ascii_lowercase();
    }
    false
}

/// Words that both reserve, but that SQLite accepts as a name in a CREATE.
const RESERVED: &[&str] = &["with"];

/// True if a text that PostgreSQL's grammar does not accept has a word or a sign of SQLite's.
/// `near` is the word at which the grammar stops.
pub(super) fn is_sqlites(text: &str, near: Option<&str>) -> bool {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut first = None;
    while let Some(token) = lexer.significant() {
        let word = text.get(token.start as usize..token.end as usize).unwrap_or_default();
        let word = word.to_ascii_lowercase();
        if token.kind == TokenKind::Word && SQLITE_WORDS.contains(&word.as_str()) {
            return true;
        }
        if word.starts_with('`') {
            return true;
        }
        first.get_or_insert(word);
    }
    let reserved = near.is_some_and(|near| RESERVED.contains(&&*near.to_ascii_lowercase()));
    // `CREATE TABLE t (a, b)`, SQLite's triggers, `VACUUM INTO`.
    !reserved && first.is_some_and(|first| first == "create" || first == "vacuum")
}

/// Replaces `INSERT OR REPLACE` and `REPLACE`, which are SQLite's, by INSERT: the rest of such a
/// statement may be PostgreSQL's. Returns the text, and the words that were replaced.
pub(super) fn without_or(text: &str) -> (Cow<'_, str>, String) {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut words =
        std::iter::from_fn(|| lexer.significant().filter(|token| token.kind == TokenKind::Word));
    let word = |token: Option<Token>| {
        let token = token?;
        let word = text.get(token.start as usize..token.end as usize)?;
        Some((token, word.to_ascii_lowercase()))
    };
    let (first, second, third) = (word(words.next()), word(words.next()), word(words.next()));
    let blanked = |from: u32, to: u32| {
        let (from, to) = (from as usize, to as usize);
        format!("{}{}{}", &text[..from], " ".repeat(to - from), &text[to..])
    };
    match (first, second, third) {
        (Some((_, insert)), Some((or_at, or)), Some((what_at, what)))
            if insert == "insert" && or == "or" =>
        {
            (blanked(or_at.start, what_at.end).into(), format!("OR {} ", what.to_ascii_uppercase()))
        }
        (Some((replace_at, replace)), Some((_, into)), _)
            if replace == "replace" && into == "into" =>
        {
            let rest = &text[replace_at.end as usize..];
            let head = &text[..replace_at.start as usize];
            // The blanks keep the length of REPLACE, so that positions stay right.
            (format!("{head}INSERT {rest}").into(), "OR REPLACE ".to_owned())
        }
        _ => (text.into(), String::new()),
    }
}

//! Names to which rules refer.

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::rules::{EXTRACT, INDEXED, Rule};

/// Functions whose arguments may have any type, so that a string argument has none.
const ANY: &[&str] = &[
    "concat",
    "concat_ws",
    "count",
    "cume_dist",
    "dense_rank",
    "format",
    "json_build_array",
    "json_build_object",
    "json_object_agg",
    "json_object_agg_strict",
    "json_object_agg_unique",
    "json_object_agg_unique_strict",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_object_agg",
    "jsonb_object_agg_strict",
    "jsonb_object_agg_unique",
    "jsonb_object_agg_unique_strict",
    "num_nonnulls",
    "num_nulls",
    "percent_rank",
    "pg_collation_for",
    "pg_column_compression",
    "pg_column_size",
    "pg_typeof",
    "rank",
];

/// Arguments that are kept: the function's name, and the first and last place.
const KEPT: &[(&str, usize, usize, &Rule)] = &[
    ("date_bin", 0, 0, &INDEXED),
    ("date_part", 0, 0, &INDEXED),
    ("date_trunc", 0, 0, &INDEXED),
    ("extract", 0, 0, &EXTRACT),
    ("json_extract_path", 1, usize::MAX, &INDEXED),
    ("json_extract_path_text", 1, usize::MAX, &INDEXED),
    ("jsonb_extract_path", 1, usize::MAX, &INDEXED),
    ("jsonb_extract_path_text", 1, usize::MAX, &INDEXED),
    ("timezone", 0, 0, &INDEXED),
    ("to_char", 1, 1, &INDEXED),
    ("to_date", 1, 1, &INDEXED),
    ("to_number", 1, 1, &INDEXED),
    ("to_timestamp", 1, 1, &INDEXED),
    ("to_tsvector", 0, 0, &INDEXED),
];

/// Types whose values are read by the clock or by names. A cast that is done early would get them
/// wrong later.
const MOVING_TYPES: &[&str] = &[
    "abstime",
    "date",
    "interval",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
];

/// The other types that are built in.
const TYPES: &[&str] = &[
    "aclitem",
    "bit",
    "bool",
    "box",
    "bpchar",
    "bytea",
    "char",
    "cid",
    "cidr",
    "circle",
    "datemultirange",
    "daterange",
    "float4",
    "float8",
    "inet",
    "int2",
    "int2vector",
    "int4",
    "int4multirange",
    "int4range",
    "int8",
    "int8multirange",
    "int8range",
    "json",
    "jsonb",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "numeric",
    "nummultirange",
    "numrange",
    "oid",
    "oidvector",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "refcursor",
    "text",
    "tid",
    "tsmultirange",
    "tsquery",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "uuid",
    "varbit",
    "varchar",
    "xid",
    "xid8",
    "xml",
];

/// Operators whose right operand is a key.
const KEYED: &[&str] = &["->", "->>", "#>", "#>>"];

/// Operators that an index may answer.
const COMPARING: &[&str] =
    &["=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "@>", "<@", "&&", "@@"];

/// Names that a text must not contain if it is to be prepared under another text.
const REFLECTING: &[&[u8]] = &[
    b"current_query",
    b"pg_cursor",
    b"pg_cursors",
    b"pg_prepared_statement",
    b"pg_prepared_statements",
    b"pg_stat_activity",
    b"pg_stat_get_activity",
    b"pg_stat_get_backend_activity",
];

/// Functions that return the time at which the server received the last message of a statement: a
/// query string has one, a prepared statement several, and the transaction begins with the first.
const CLOCK: &[&[u8]] = &[b"statement_timestamp"];

/// Columns that each table has, but for `tableoid`, which says what the query says.
const SYSTEM_COLUMNS: &[&str] = &["cmax", "cmin", "ctid", "xmax", "xmin"];

/// Types to which a text is cast without becoming a date or time.
const NO_DATES: &[&str] = &[
    "bit", "bool", "box", "bpchar", "bytea", "cidr", "circle", "float4", "float8", "inet", "int2",
    "int4", "int8", "interval", "json", "jsonb", "line", "lseg", "macaddr", "money", "name",
    "numeric", "oid", "path", "point", "polygon", "regclass", "regtype", "text", "tsquery",
    "tsvector", "uuid", "varbit", "varchar", "xml",
];

/// Functions that are known not to turn a text into a date or time.
const KEEPING_TEXTS: &[&str] = &[
    "abs",
    "array_agg",
    "array_length",
    "array_position",
    "array_to_string",
    "avg",
    "bool_and",
    "bool_or",
    "btrim",
    "cardinality",
    "ceil",
    "char_length",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "date_part",
    "date_trunc",
    "dense_rank",
    "extract",
    "first_value",
    "floor",
    "format",
    "generate_series",
    "greatest",
    "json_agg",
    "json_build_object",
    "jsonb_agg",
    "jsonb_build_object",
    "lag",
    "last_value",
    "lead",
    "least",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "min",
    "mod",
    "ntile",
    "percent_rank",
    "position",
    "power",
    "rank",
    "replace",
    "right",
    "round",
    "row_number",
    "row_to_json",
    "rpad",
    "rtrim",
    "split_part",
    "string_agg",
    "string_to_array",
    "strpos",
    "substr",
    "substring",
    "sum",
    "to_char",
    "to_json",
    "to_jsonb",
    "to_tsquery",
    "to_tsvector",
    "trunc",
    "unnest",
    "upper",
];

pub(crate) fn is_system_column(name: &str) -> bool {
    SYSTEM_COLUMNS.contains(&name)
}

/// True if no value of a type of this name is a date or time.
pub(crate) fn is_no_date(name: &str) -> bool {
    NO_DATES.contains(&name)
}

/// True if a function of this name does not turn a text into a date or time.
pub(crate) fn keeps_texts(name: &str) -> bool {
    KEEPING_TEXTS.contains(&name)
}

pub(crate) fn takes_any(function: &str) -> bool {
    ANY.contains(&function)
}

/// Returns the rule by which the argument at place `at`, counted from 0, is kept.
pub(crate) fn kept_argument(function: &str, at: usize) -> Option<&'static Rule> {
    let mut rows = KEPT.iter();
    let row = rows.find(|(name, from, to, _)| *name == function && (*from..=*to).contains(&at));
    row.map(|(_, _, _, rule)| *rule)
}

pub(crate) fn is_moving_type(name: &str) -> bool {
    MOVING_TYPES.contains(&name)
}

pub(crate) fn is_type(name: &str) -> bool {
    TYPES.contains(&name) || is_moving_type(name)
}

pub(crate) fn is_keyed(operator: &str) -> bool {
    KEYED.contains(&operator)
}

pub(crate) fn is_comparing(operator: &str) -> bool {
    COMPARING.contains(&operator)
}

/// True if the text contains, as a name anywhere, a view or function that shows statements as the
/// server knows them.
pub(crate) fn looks_at_itself(text: &[u8]) -> bool {
    mentions(text, REFLECTING)
}

/// True if the text contains, as a name anywhere, a function that tells when the server received
/// it.
pub(crate) fn looks_at_the_clock(text: &[u8]) -> bool {
    mentions(text, CLOCK)
}

fn mentions(text: &[u8], names: &[&[u8]]) -> bool {
    Lexer::new(text, false).any(|token| {
        let name = name(text, token);
        name.is_some_and(|name| names.iter().any(|known| name.eq_ignore_ascii_case(known)))
    })
}

/// Returns the name that a token is, without its quotes.
fn name(text: &[u8], token: Token) -> Option<&[u8]> {
    let written = token.of(text);
    match token.kind {
        TokenKind::Word => Some(written),
        TokenKind::Quoted => Some(&written[1..written.len() - 1]),
        _ => None,
    }
}

/// Returns all names before a parenthesis, each once: the functions that a text calls are among
/// them.
pub(crate) fn calls(text: &[u8]) -> Vec<String> {
    let mut calls = Vec::new();
    let mut before = None;
    for token in Lexer::new(text, false).filter(|token| !token.kind.is_trivia()) {
        if token.kind == TokenKind::Open {
            calls.extend(before.take());
        }
        before = name(text, token).map(|name| {
            let name = String::from_utf8_lossy(name);
            if token.kind == TokenKind::Word { name.to_lowercase() } else { name.into_owned() }
        });
    }
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// The most operator characters in a row that are given to the grammar. Its scanner reads all of
/// them for each operator or comment that begins among them (`xcstart` and `operator` in scan.l),
/// and then all but that again.
const RUN_MAX: usize = 256;

/// True if so many operator characters stand in a row that the grammar's time would grow with the
/// square of their number.
pub(crate) fn has_long_run(text: &[u8]) -> bool {
    let mut run = 0;
    for token in Lexer::new(text, false) {
        let written = token.of(text);
        let counts = match token.kind {
            TokenKind::Operator | TokenKind::BlockComment => true,
            TokenKind::Unterminated => written.starts_with(b"/*"),
            _ => false,
        };
        if !counts {
            run = 0;
            continue;
        }
        for byte in written {
            run = if b"~!@#^&|`?+-*/%<>=".contains(byte) { run + 1 } else { 0 };
            if run > RUN_MAX {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many bytes the server's scanner reads of a text's operators and comments: at the
    /// beginning of each one, the whole run.
    fn steps(text: &[u8]) -> usize {
        let is_operator = |byte: &u8| b"~!@#^&|`?+-*/%<>=".contains(byte);
        (0..text.len()).map(|at| text[at..].iter().take_while(|b| is_operator(b)).count()).sum()
    }

    #[test]
    fn what_is_given_to_the_grammar_takes_a_bounded_number_of_steps_for_each_byte() {
        let size = 4_000;
        let quadratic = ["/*", "/**/", "+", "/**/+", "-/**/", "<>"];
        for part in quadratic {
            let text = format!("SELECT 1 {}", part.repeat(size / part.len()));
            assert!(steps(text.as_bytes()) > 1000 * size, "{part}");
            assert!(has_long_run(text.as_bytes()), "{part}");
        }
        let linear = ["/* ", "/* */ ", "+ ", "'++' ", "-1 ", "\"/*/*\" "];
        for part in linear {
            let text = format!("SELECT 1 {}", part.repeat(size / part.len()));
            assert!(steps(text.as_bytes()) <= RUN_MAX * text.len(), "{part}");
            assert!(!has_long_run(text.as_bytes()), "{part}");
        }
        let long = format!("SELECT '{}', \"{0}\" -- {0}", "+".repeat(size));
        assert!(!has_long_run(long.as_bytes()), "strings, names and line comments are read once");
    }
}

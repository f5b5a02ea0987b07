//! Which texts of reads mean the same at any time and in any session with the same settings.
//!
//! A read may call functions that show the present time or the session: a prepared statement may,
//! a reply that is kept may not. The text of a read is looked through for calls; a function that is
//! not among those that are known to depend on their arguments and on settings alone counts as one
//! that does not.

use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sql::writes::names_moment;

/// Words that may stand before a parenthesis: functions that depend on their arguments and on
/// settings alone, and words of the grammar.
const KNOWN: &[&str] = &[
    "abs",
    "all",
    "and",
    "any",
    "array",
    "array_agg",
    "array_length",
    "array_to_string",
    "as",
    "avg",
    "between",
    "bigint",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "btrim",
    "by",
    "case",
    "cast",
    "ceil",
    "ceiling",
    "char",
    "char_length",
    "character",
    "coalesce",
    "concat",
    "concat_ws",
    "corr",
    "count",
    "cume_dist",
    "date_part",
    "date_trunc",
    "decimal",
    "decode",
    "dense_rank",
    "distinct",
    "div",
    "else",
    "encode",
    "except",
    "exists",
    "exp",
    "extract",
    "filter",
    "first_value",
    "float",
    "floor",
    "format",
    "from",
    "generate_series",
    "greatest",
    "grouping",
    "having",
    "in",
    "initcap",
    "int",
    "integer",
    "intersect",
    "interval",
    "join",
    "json_agg",
    "json_array_elements",
    "json_build_array",
    "json_build_object",
    "json_each",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_array_elements",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_each",
    "jsonb_object_agg",
    "lag",
    "last_value",
    "lateral",
    "lead",
    "least",
    "left",
    "length",
    "like",
    "limit",
    "ln",
    "log",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "min",
    "mod",
    "not",
    "nth_value",
    "ntile",
    "nullif",
    "numeric",
    "octet_length",
    "offset",
    "on",
    "or",
    "order",
    "over",
    "partition",
    "percent_rank",
    "percentile_cont",
    "percentile_disc",
    "position",
    "power",
    "rank",
    "regexp_matches",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row",
    "row_number",
    "row_to_json",
    "rpad",
    "rtrim",
    "select",
    "sign",
    "some",
    "split_part",
    "sqrt",
    "stddev",
    "string_agg",
    "strpos",
    "substr",
    "substring",
    "sum",
    "text",
    "then",
    "to_char",
    "to_json",
    "to_jsonb",
    "to_number",
    "trim",
    "trunc",
    "union",
    "unnest",
    "upper",
    "using",
    "values",
    "varchar",
    "variance",
    "when",
    "where",
    "width_bucket",
    "with",
    "within",
];
/// Words that stand for the present time or the session without a parenthesis.
const PRESENT: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
    "system_user",
    "tablesample",
    "ctid",
    "xmin",
    "xmax",
    "cmin",
    "cmax",
];

/// Whether a text means the same at any time. Its strings count if `strings` says so: those of a
/// query string are looked at each time.
pub(crate) fn is_timeless(text: &[u8], strings: bool) -> bool {
    let mut lexer = Lexer::new(text, false);
    let mut before = None;
    while let Some(token) = lexer.significant() {
        let word = token.of(text);
        let is = |words: &[&str], word: &[u8]| {
            words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        };
        let refused = match (token.kind, before) {
            (TokenKind::Word, _) => is(PRESENT, word),
            (TokenKind::Open, Some((TokenKind::Word, word))) => !is(KNOWN, word),
            (TokenKind::Open, Some((TokenKind::Quoted | TokenKind::UnicodeQuoted, _))) => true,
            (kind, _) if kind.is_text() => strings && names_moment(word),
            _ => false,
        };
        if refused {
            return false;
        }
        before = Some((token.kind, word));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_the_time_or_the_session_is_not_timeless() {
        for text in [
            "select abalance from accounts where aid = $1",
            "select count(*), to_char(d, 'YYYY') from t where a in (1, 2) group by 2",
            "with x(a) as (values (1)) select x.a from x",
        ] {
            let text = text.replace("x(a)", "x");
            assert!(is_timeless(text.as_bytes(), true), "{text}");
        }
        for text in [
            "select now()",
            "select current_date",
            "select * from t where d = 'today'",
            "select age(d) from t",
            "select current_setting('x.y')",
            "select pg_backend_pid()",
            "select \"now\"()",
            "select pg_catalog.now()",
            "select USER",
            "select xmin from t",
        ] {
            assert!(!is_timeless(text.as_bytes(), true), "{text}");
        }
    }
}

//! The user-defined code that a text may run, by the names in the text.
//!
//! What: [`Names`] combines the names of functions that a text calls, and of tables that it writes,
//! into one number. Texts with the same names have the same number. Zero means no names.
//!
//! Why: functions and triggers may change a session in ways that the text does not show. Only the
//! server can tell whether they did. After it was asked about these names, it need not be asked
//! again.
//!
//! What always holds: a name before a parenthesis counts, however it is written, unless it is one
//! of [`HARMLESS`] and unqualified or in `pg_catalog`. So does the name after `INSERT INTO`, `MERGE
//! INTO`, `UPDATE`, `DELETE FROM`, `TRUNCATE` and `COPY`.
//!
//! What it does not do: see the calls of views, rules, operators, casts, defaults and policies, or
//! what a user's own function does that has the name of one of PostgreSQL's.

use crate::ahead::Ahead;
use crate::lex::{TokenKind, is_word};
use crate::name::unquoted;

/// The names in a text, as one number.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names {
    number: u64,
    vague: bool,
}

/// The number of a text with names that it perhaps does not call, or that it defines anew.
pub const VAGUE: u64 = 1;
/// The first words of such texts.
const VAGUE_HEADS: &[&str] = &["alter", "create", "declare", "drop", "explain"];

/// FNV-1a.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Words that may stand between a command and the name of the table that it writes.
const BETWEEN: &[&str] = &["only", "into", "from", "table"];
/// Words after an UPDATE that is no command: FOR UPDATE OF, DO UPDATE SET and the like.
const NO_TABLE: &[&str] =
    &["of", "set", "nowait", "skip", "limit", "offset", "or", "then", "cascade", "restrict"];

impl Names {
    /// Returns the number of the names so far; zero for none.
    pub(crate) fn number(self) -> u64 {
        if self.vague && self.number != 0 { VAGUE } else { self.number }
    }

    /// Takes note of the first word of a statement.
    pub(crate) fn begin(&mut self, word: &[u8]) {
        self.vague |= VAGUE_HEADS.iter().any(|head| crate::rules::is_word(word, head));
    }

    /// Adds the name, if it is one, that begins at `start` and ends before a parenthesis.
    #[inline]
    pub(crate) fn before_parenthesis(&mut self, text: &[u8], start: usize) {
        let (before, rest) = text.split_at(start);
        let end = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let word = &rest[..end];
        if is_harmless(word) && stands_alone(before) {
            return;
        }
        self.add(qualifier(before));
        self.add(if word.is_empty() { first_quoted(rest) } else { word });
    }

    /// Adds the table that a command writes; `ahead` stands after the first word of the command.
    pub(crate) fn written(&mut self, mut ahead: Ahead<'_>) {
        while ahead.take_word(BETWEEN) {}
        if ahead.at_word(NO_TABLE) {
            return;
        }
        while let Some(name) = ahead.take_name() {
            self.add(ahead.of(name));
            if !ahead.at(TokenKind::Dot) {
                break;
            }
            ahead.take();
        }
    }

    fn add(&mut self, written: &[u8]) {
        if written.is_empty() {
            return;
        }
        let name = unquoted(written).unwrap_or(written);
        let quoted = name.len() < written.len();
        let mut hash = self.number.rotate_left(7) ^ BASIS;
        for byte in name {
            let byte = if quoted { *byte } else { byte.to_ascii_lowercase() };
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        self.number = hash.max(VAGUE + 1);
    }
}

/// True if a name with these bytes before it is unqualified, or qualified by `pg_catalog`.
#[inline]
fn stands_alone(before: &[u8]) -> bool {
    match before.trim_ascii_end() {
        // A comment may stand between a name and its qualifier.
        [.., b'.' | b'/'] => qualifier(before).eq_ignore_ascii_case(b"pg_catalog"),
        _ => true,
    }
}

/// Returns the last name in `before`, if a dot follows it.
fn qualifier(before: &[u8]) -> &[u8] {
    let Some(name) = before.trim_ascii_end().strip_suffix(b".") else { return &[] };
    let name = name.trim_ascii_end();
    if let Some(inside) = name.strip_suffix(b"\"") {
        let start = inside.iter().rposition(|byte| *byte == b'"').unwrap_or(inside.len());
        return &name[start..];
    }
    let start = name.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
    &name[start..]
}

/// Returns the quoted name at the beginning of `rest`, up to the first quote in it.
fn first_quoted(rest: &[u8]) -> &[u8] {
    let inside = rest.get(1..).unwrap_or_default();
    let end = inside.iter().position(|byte| *byte == b'"').map_or(rest.len(), |at| at + 2);
    &rest[..end]
}

/// True if `word` and a parenthesis call no user-defined code.
#[inline]
fn is_harmless(word: &[u8]) -> bool {
    let letter = word.first().map_or(0, |first| first & 31);
    let (from, to) = STARTS[letter as usize];
    HARMLESS[from as usize..to as usize].iter().any(|known| crate::rules::is_word(word, known))
}

/// Names that may stand before a parenthesis without calling user-defined code: key words, types
/// with modifiers, and common functions of PostgreSQL that leave nothing in a session, or whose
/// effect [`crate::rules::MENTIONS`] describes. The server is asked about every other name.
#[rustfmt::skip]
static HARMLESS: &[&str] = &[
    "abs", "acos", "age", "all", "and", "any", "any_value", "array", "array_agg", "array_append", "array_cat", "array_length", "array_lower",
    "array_ndims", "array_position", "array_positions", "array_prepend", "array_remove", "array_replace", "array_to_json",
    "array_to_string", "array_upper", "as", "ascii", "asin", "atan", "atan2", "avg",
    "between", "bit", "bit_and", "bit_length", "bit_or", "bool_and", "bool_or", "bpchar", "btrim", "by",
    "cardinality", "case", "cast", "cbrt", "ceil", "ceiling", "char", "char_length", "character", "character_length", "check", "chr", "clock_timestamp",
    "coalesce", "col_description", "concat", "concat_ws", "conflict", "cos", "count", "covar_pop", "cube", "cume_dist",
    "current_database", "current_schema", "current_schemas", "current_setting", "currval",
    "date", "date_bin", "date_part", "date_trunc", "decimal", "decode", "degrees", "dense_rank", "digest", "distinct",
    "else", "encode", "every", "except", "exists", "exp", "extract",
    "filter", "first_value", "float", "floor", "foreign", "format", "format_type", "from",
    "gcd", "gen_random_uuid", "generate_series", "generate_subscripts", "get_bit", "get_byte", "greatest", "group", "grouping",
    "having", "hashtext", "host",
    "in", "initcap", "intersect", "interval", "is",
    "json_agg", "json_array_elements", "json_array_elements_text", "json_array_length", "json_build_array", "json_build_object",
    "json_each", "json_each_text", "json_extract_path", "json_extract_path_text", "json_object", "json_object_agg", "json_object_keys",
    "json_populate_record", "json_strip_nulls", "json_to_recordset", "json_typeof", "jsonb_agg", "jsonb_array_elements", "jsonb_array_elements_text",
    "jsonb_array_length", "jsonb_build_array", "jsonb_build_object", "jsonb_each", "jsonb_each_text", "jsonb_extract_path",
    "jsonb_extract_path_text", "jsonb_insert", "jsonb_object_agg", "jsonb_object_keys", "jsonb_path_exists", "jsonb_path_query",
    "jsonb_populate_record", "jsonb_pretty", "jsonb_set", "jsonb_strip_nulls", "jsonb_to_recordset", "jsonb_typeof", "join", "justify_interval",
    "key",
    "lag", "last_value", "lastval", "lateral", "lead", "least", "left", "length", "like", "limit", "ln", "log", "lower", "lpad", "ltrim",
    "make_date", "make_interval", "make_timestamp", "make_timestamptz", "materialized", "max", "md5", "min", "mod", "mode",
    "nextval", "not", "now", "nth_value", "ntile", "nullif", "num_nonnulls", "num_nulls", "numeric",
    "obj_description", "octet_length", "offset", "on", "or", "over", "overlay",
    "partition", "percent_rank", "percentile_cont", "percentile_disc", "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_unlock",
    "pg_advisory_unlock_all", "pg_advisory_unlock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_backend_pid",
    "pg_cancel_backend", "pg_column_size", "pg_current_wal_lsn", "pg_database_size", "pg_get_constraintdef", "pg_get_expr",
    "pg_get_function_arguments", "pg_get_functiondef", "pg_get_indexdef", "pg_get_serial_sequence", "pg_get_userbyid",
    "pg_get_viewdef", "pg_is_in_recovery", "pg_my_temp_schema", "pg_notify", "pg_relation_size", "pg_size_pretty", "pg_sleep", "pg_table_is_visible",
    "pg_table_size", "pg_terminate_backend", "pg_total_relation_size", "pg_try_advisory_lock", "pg_try_advisory_lock_shared",
    "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared", "pg_typeof", "position", "power", "primary",
    "quote_ident", "quote_literal", "quote_nullable",
    "radians", "random", "range", "rank", "regexp_count", "regexp_like", "regexp_match", "regexp_matches", "regexp_replace", "regexp_split_to_array",
    "regexp_split_to_table", "repeat", "replace", "returning", "reverse", "right", "rollup", "round", "row", "row_number", "row_to_json", "rpad", "rtrim",
    "select", "set", "set_config", "setof", "sets", "setseed", "setval", "sha256", "shobj_description", "sign", "similar", "sin", "some", "split_part", "sqrt",
    "starts_with", "statement_timestamp", "stddev", "stddev_pop", "stddev_samp", "string_agg", "string_to_array", "string_to_table", "strpos", "substr",
    "substring", "sum", "symmetric",
    "tan", "then", "time", "timeofday", "timestamp", "timestamptz", "timetz", "timezone", "to_char", "to_date", "to_hex", "to_json", "to_jsonb", "to_number",
    "to_regclass", "to_timestamp", "to_tsquery", "to_tsvector", "transaction_timestamp", "translate", "treat", "trim", "trunc", "ts_headline", "ts_rank",
    "txid_current", "type",
    "union", "unique", "unnest", "upper", "using",
    "values", "var_pop", "var_samp", "varbit", "varchar", "variance", "varying", "version",
    "websearch_to_tsquery", "when", "where", "width_bucket", "window", "with", "within",
    "xmlagg", "xmlconcat", "xmlelement", "xmlforest", "xmlparse", "xmlserialize",
    "zone",
];

/// The range of the names with each first letter.
static STARTS: [(u16, u16); 32] = {
    let mut table = [(0, 0); 32];
    let mut at = 0;
    while at < HARMLESS.len() {
        let letter = (HARMLESS[at].as_bytes()[0] & 31) as usize;
        assert!(
            table[letter].1 == 0 || table[letter].1 as usize == at,
            "names of a letter stand together"
        );
        if table[letter].1 == 0 {
            table[letter].0 = at as u16;
        }
        at += 1;
        table[letter].1 = at as u16;
    }
    table
};

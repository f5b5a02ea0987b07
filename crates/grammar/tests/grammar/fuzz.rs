//! Random texts: tokens are the server's, and the prepared text has the tree of the text that was
//! sent.
//!
//! `REFRAIN_FUZZ` says how many; without it, some thousands.

use std::env;

use crate::text::{Text, lexed_as_by_the_server, on_its_thread};
use refrain_sql::normalize::Analysis;

/// The parts of random texts: text that lexers get wrong, and text that rules are about.
const PIECES: &[&str] = &[
    "'",
    "''",
    "'a'",
    "\"",
    "\"a\"",
    "$",
    "$$",
    "$x$",
    "--",
    "/*",
    "*/",
    "/* a */",
    "\\",
    "\n",
    "\r",
    "\t",
    "\u{c}",
    "E'",
    "E'\\n'",
    "b'1'",
    "x'1f'",
    "U&'",
    "N'a'",
    "n",
    "-",
    "- ",
    "+",
    "0",
    "5",
    "1.5",
    ".5",
    "1.",
    "1e5",
    "2147483648",
    "9223372036854775808",
    ".",
    "..",
    ";",
    ":",
    "::",
    "::int4",
    "::mood",
    "(",
    ")",
    ",",
    ", ",
    "=",
    "<",
    ">=",
    "!",
    "~",
    "@",
    "#",
    "|",
    "||",
    "?",
    "%",
    "^",
    "&",
    "*",
    "/",
    "[",
    "]",
    " ",
    " ",
    " ",
    " ",
    "a",
    "a ",
    "é",
    "_",
    "date ",
    "date'",
    "interval ",
    "interval '1' minute ",
    "int4 ",
    "f(",
    "concat(",
    "date('",
    "SELECT ",
    " FROM t ",
    " WHERE ",
    " ORDER BY ",
    " GROUP BY ",
    " LIMIT ",
    "DISTINCT ",
    " AS ",
    " IN (",
    " BETWEEN ",
    " AND ",
    "NOT ",
    "NULL",
    " IS NULL",
    " UNION ",
    "ARRAY[",
    "ROW(",
    "CASE WHEN ",
    " THEN ",
    " END ",
    "extract(",
    " COLLATE ",
    " AT TIME ZONE ",
    " OVER (",
    "CAST(",
    " AS numeric(5)",
    " ->> ",
    "{",
    "}",
    "\u{a0}",
];

/// Beginnings for many of the texts, so that random texts come near to SQL.
const BEGINNINGS: &[&str] = &[
    "SELECT ",
    "SELECT a FROM t WHERE b = ",
    "INSERT INTO t VALUES (",
    "UPDATE t SET a = ",
    "DELETE FROM t WHERE ",
    "SELECT 1, ",
    "WITH x AS (SELECT 1) SELECT ",
    "VALUES (1, ",
    "SELECT -",
    "SELECT date '2020-01-01' ",
    "SELECT a + 1 FROM t GROUP BY ",
];

#[test]
fn random_texts() {
    let turns = env::var("REFRAIN_FUZZ").map_or(20_000, |turns| turns.parse().expect("a number"));
    let (mut state, mut lexed, mut queries) = (0x5eed_u64, 0, 0);
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    on_its_thread(|| {
        for _ in 0..turns {
            let mut text = BEGINNINGS[random(BEGINNINGS.len())].to_owned();
            for _ in 0..=random(10) {
                text.push_str(PIECES[random(PIECES.len())]);
            }
            let Ok(text) = Text::new(&text) else { continue };
            lexed += 1;
            lexed_as_by_the_server(text.text);
            let Analysis::Normalized(plan) = text.analysed() else { continue };
            queries += 1;
            assert_eq!(text.shape(&plan), text.prepared_shape(&plan), "{:?}", text.text);
            let mutant = text.mutant(&plan, random(9));
            let mutant =
                Text::new(&mutant).unwrap_or_else(|why| panic!("{mutant:?}: {}", why.name));
            assert_eq!(mutant.key, text.key, "{:?} of {:?}", mutant.text, text.text);
            assert_eq!(mutant.analysed(), Analysis::Normalized(plan.clone()), "{:?}", mutant.text);
            assert_eq!(
                mutant.shape(&plan),
                text.shape(&plan),
                "{:?} of {:?}",
                mutant.text,
                text.text
            );
        }
    });
    assert!(lexed > turns / 10 && queries > turns / 100, "{lexed} lexed, {queries} queries");
    eprintln!("{turns} texts, {lexed} lexed, {queries} queries");
}

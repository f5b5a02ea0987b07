//! Token boundaries, as a table; and that the tokens tile any bytes, and that nothing panics on
//! them.

use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sql::{scan_with, set_names, tag};

/// Returns the tokens of `text` but blanks, each as its bytes, with a bar between them.
fn cut(text: &str, backslash: bool) -> String {
    let tokens = Lexer::new(text.as_bytes(), backslash)
        .filter(|token| token.kind != TokenKind::Space)
        .map(|token| String::from_utf8_lossy(token.of(text.as_bytes())).into_owned());
    tokens.collect::<Vec<_>>().join("|")
}

#[test]
fn texts_are_cut_into_tokens() {
    let rows = [
        ("a b", "a|b"),
        ("abc$1 _x é1", "abc$1|_x|é1"),
        // Strings.
        ("'a''b' 'c'", "'a''b'|'c'"),
        ("'a\\' b", "'a\\'|b"),
        ("E'a\\'b' e'\\\\'", "E'a\\'b'|e'\\\\'"),
        ("x'1F' B'01''1'", "x'1F'|B'01'|'1'"),
        ("U&'a\\0041''' u&\"a\"\"b\"x", "U&'a\\0041'''|u&\"a\"\"b\"|x"),
        ("U & 'a' U&a", "U|&|'a'|U|&|a"),
        ("N'a'", "N|'a'"),
        ("'a' 'b'", "'a'|'b'"),
        ("'a' \n \t'b'", "'a' \n \t'b'"),
        ("'a' -- c 'x'\n -- d\n'b'", "'a' -- c 'x'\n -- d\n'b'"),
        ("'a' - \n'b'", "'a'|-|'b'"),
        ("'a' /* */ \n'b'", "'a'|/* */|'b'"),
        ("E'a'\r'\\''", "E'a'\r'\\''"),
        ("\"a\"\n\"b\"", "\"a\"|\"b\""),
        // Dollars.
        ("$$a$b$$c", "$$a$b$$|c"),
        ("$a$ $b$ $a $$ $a$x", "$a$ $b$ $a $$ $a$|x"),
        ("$a$x$b$a$", "$a$x$b$a$"),
        ("$1 $12a $a", "$1|$12|a|$|a"),
        ("$1$a$", "$1|$a$"),
        ("$é$x$é$", "$é$x$é$"),
        // Comments.
        ("a--b\nc", "a|--b|c"),
        ("a/*/*b*/c*/d", "a|/*/*b*/c*/|d"),
        ("/*/ */x", "/*/ */|x"),
        ("/***/x/**/", "/***/|x|/**/"),
        ("-- a", "-- a"),
        // Numbers.
        ("1.5e3 1e5 1E-5 .5 1. 1.e5", "1.5e3|1e5|1E-5|.5|1.|1.e5"),
        ("1..2 1...2", "1|..|2|1|..|.2"),
        ("1e 1e+ 1ex", "1|e|1|e|+|1|ex"),
        ("0x1F 0o17 0b11 0X_1_f", "0x1F|0o17|0b11|0X_1_f"),
        ("0x 0b2 0o8", "0|x|0|b2|0|o8"),
        ("1_000 1__0 1_ _1 1_0.5_0e1_0", "1_000|1|__0|1|_|_1|1_0.5_0e1_0"),
        ("1._5", "1.|_5"),
        ("1.5.3", "1.5|.3"),
        ("a.b.*", "a|.|b|.|*"),
        // Operators.
        ("a<=b<>c!=d>=e=>f", "a|<=|b|<>|c|!=|d|>=|e|=>|f"),
        ("a*-1", "a|*|-|1"),
        ("a=-+-1", "a|=|-|+|-|1"),
        ("a@-1", "a|@-|1"),
        ("a->>'b' #>> c @> d ?| e || f", "a|->>|'b'|#>>|c|@>|d|?||e||||f"),
        ("a*/*b*/c", "a|*|/*b*/|c"),
        ("a+--b", "a|+|--b"),
        ("a::b:c:=d", "a|::|b|:|c|:=|d"),
        ("a[1:2](b,c);", "a|[|1|:|2|]|(|b|,|c|)|;"),
        ("{\\}", "{|\\|}"),
    ];
    for (text, tokens) in rows {
        assert_eq!(cut(text, false), tokens, "of {text:?}");
    }
    assert_eq!(cut("'a\\'b' 'c'", true), "'a\\'b'|'c'");
    assert_eq!(cut("'a'\n'\\'b'", true), "'a'\n'\\'b'");
}

#[test]
fn each_token_has_its_kind() {
    use TokenKind::*;
    let text = b"a \"b\" U&\"c\" 'd' E'e' U&'f' B'0' $$g$$ 1 1.5 $1 + ( ) [ ] , ; . .. : :: := \\ /**/--\n'";
    let kinds: Vec<_> =
        Lexer::new(text, false).map(|token| token.kind).filter(|kind| *kind != Space).collect();
    let expected = [
        Word,
        Quoted,
        UnicodeQuoted,
        Text,
        EscapeText,
        UnicodeText,
        BitText,
        DollarText,
        Integer,
        Decimal,
        Parameter,
        Operator,
        Open,
        Close,
        OpenBracket,
        CloseBracket,
        Comma,
        Semicolon,
        Dot,
        DotDot,
        Colon,
        Cast,
        Assign,
        Other,
        BlockComment,
        LineComment,
        Unterminated,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_literal_without_its_end_is_one_unterminated_token() {
    for text in
        ["'a", "E'a\\", "E'a\\'", "\"a", "\"a\"\"", "$$a$", "$a$ $b$", "/* /* */", "U&\"", "'a'\n'"]
    {
        let kinds: Vec<_> = Lexer::new(text.as_bytes(), false).map(|token| token.kind).collect();
        assert_eq!(kinds, [TokenKind::Unterminated], "of {text:?}");
    }
}

/// Checks what holds for any bytes.
fn check(bytes: &[u8], backslash: bool) {
    let mut end = 0;
    for token in Lexer::new(bytes, backslash) {
        assert_eq!(token.start, end, "a gap in {bytes:?}");
        assert!(token.end > token.start, "an empty token in {bytes:?}");
        end = token.end;
    }
    assert_eq!(end as usize, bytes.len(), "{bytes:?} is not read to its end");
    let scan = scan_with(bytes, backslash);
    let names = set_names(bytes, backslash).count();
    let sets =
        refrain_sql::Traits::SET | refrain_sql::Traits::SET_REPORTED | refrain_sql::Traits::ROLE;
    // What ends with the transaction has no names.
    let sets = scan.traits.intersects(sets);
    assert_eq!(sets, names > 0, "names of {bytes:?}: {scan:?}");
    tag(bytes);
}

/// xorshift64*, seeded: the same bytes in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

#[test]
fn random_bytes_are_read_to_their_end() {
    let mut random = Random(0x5eed);
    let alphabet = b"'\"$$--/**/\\\nEeUu&xX01_.;:()@+= a\xff\0";
    let mut bytes = Vec::new();
    for turn in 0..1_000_000 {
        bytes.clear();
        for _ in 0..random.below(24) {
            let any = random.below(256) as u8;
            bytes.push(if turn % 4 == 0 { any } else { alphabet[random.below(alphabet.len())] });
        }
        check(&bytes, turn % 2 == 0);
    }
}

#[test]
fn random_pieces_of_sql_are_read_to_their_end() {
    let pieces = [
        "SET ",
        "RESET ",
        "LOCAL ",
        "SESSION ",
        "TIME ZONE ",
        "ROLE ",
        "ALL ",
        "names",
        "x",
        ".",
        "=",
        "1",
        ",",
        "(",
        ")",
        ";",
        "set_config",
        "'role'",
        "'a'",
        "true",
        "UPDATE ",
        "ONLY ",
        "pg_settings",
        "CREATE ",
        "TEMP ",
        "TABLE ",
        "AS ",
        "EXECUTE ",
        "EXPLAIN ",
        "ANALYZE ",
        "FUNCTION ",
        "BEGIN ATOMIC ",
        "END ",
        "CASE ",
        "INTO ",
        "pg_temp",
        "DEALLOCATE ",
        "PREPARE ",
        "TRANSACTION ",
        "DECLARE ",
        "CURSOR WITH HOLD ",
        "COPY ",
        "FROM STDIN ",
        "ON COMMIT DROP ",
        "\"a\"",
        "\"",
        "'",
        "$$",
        "/*",
        "*/",
        "--",
        "\n",
        " ",
        "U&\"x\"",
        "E'",
        "lastval",
        "set_limit",
    ];
    let mut random = Random(0xfeed);
    let mut text = String::new();
    for turn in 0..300_000 {
        text.clear();
        for _ in 0..random.below(14) {
            text.push_str(pieces[random.below(pieces.len())]);
        }
        check(text.as_bytes(), turn % 2 == 0);
    }
}

/// Checks that the time for long repetitive texts is linear: quadratic time would be minutes.
#[test]
fn the_time_to_read_a_text_is_linear_in_its_length() {
    let pieces = [
        "+",
        "-+",
        "$a",
        "$$ ",
        "'a' ",
        "'a'\n",
        "'a' -- \n",
        "/*",
        "(",
        "(;",
        "set_config(",
        "set_config('a',",
        "U&\"x\"(",
        "SET ",
        "SET a.",
        "CREATE ",
        "CREATE TABLE AS ",
        "CREATE;",
        "EXPLAIN ",
        "EXPLAIN (",
        "INTO ",
        "UPDATE ",
        "currval /* */ ",
        "CREATE FUNCTION BEGIN ATOMIC;",
        "CREATE FUNCTION ",
        "0x",
        "1_",
        "1.",
        "\"\"",
        "DECLARE CURSOR ",
        "CREATE TEMP TABLE ON COMMIT ",
        "$a$ ",
    ];
    for piece in pieces {
        let text = piece.repeat(200_000 / piece.len());
        check(text.as_bytes(), false);
    }
}

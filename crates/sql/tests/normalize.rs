//! Classes, refusals, keys, values and the text that is prepared, as tables; and random bytes.

use foldhash::fast::FixedState;
use refrain_sql::lex::Lexer;
use refrain_sql::normalize::{
    Class, Edit, Key, Mentions, Plan, REFUSALS, Reason, Sample, Slot, Span, has_plan, may_keep_all,
    normalize, value,
};

fn made(text: &[u8]) -> Result<(Key, Vec<Span>), &'static Reason> {
    let mut spans = vec![Span { start: 9, end: 9, class: Class::Hex }];
    let most = if text == b"SELECT 1, 2, 3" { 2 } else { 1000 };
    normalize(text, &FixedState::with_seed(7), most, &mut spans).map(|key| (key, spans))
}

/// Returns the literals of a text, each as its class and its bytes.
fn literals(text: &str) -> String {
    let spans = made(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {}", why.name)).1;
    let show = |span: &Span| {
        format!("{:?} {}", span.class, String::from_utf8_lossy(span.of(text.as_bytes())))
    };
    spans.iter().map(show).collect::<Vec<_>>().join(" | ")
}

#[test]
fn each_literal_has_a_class() {
    let rows = [
        ("SELECT 1", "Int4 1"),
        ("SELECT 0,007,2147483647", "Int4 0 | Int4 007 | Int4 2147483647"),
        ("SELECT 2147483648, 0002147483648", "Int4Edge 2147483648 | Int4Edge 0002147483648"),
        ("SELECT 2147483649, 9223372036854775807", "Int8 2147483649 | Int8 9223372036854775807"),
        ("SELECT 9223372036854775808", "Int8Edge 9223372036854775808"),
        ("SELECT 9223372036854775809", "Numeric 9223372036854775809"),
        ("SELECT 99999999999999999999", "Numeric 99999999999999999999"),
        ("SELECT 18446744073709551617", "Numeric 18446744073709551617"),
        (
            "SELECT 1.5, .5, 1., 1e5, 1.e5, 1E-5",
            "Numeric 1.5 | Numeric .5 | Numeric 1. | Numeric 1e5 | Numeric 1.e5 | Numeric 1E-5",
        ),
        ("SELECT a[1..2]", "Int4 1 | Int4 2"),
        ("SELECT -5, a-5, a<-1", "Int4 5 | Int4 5 | Int4 1"),
        (
            "SELECT 'a''b', E'a\\'b', e'', $$a$$, $x$'$$'$x$",
            "Str 'a''b' | EStr E'a\\'b' | EStr e'' | Dollar $$a$$ | Dollar $x$'$$'$x$",
        ),
        (
            "SELECT 'a\\', B'01', b'', X'1f', x'1F'",
            "Str 'a\\' | Bit B'01' | Bit b'' | Hex X'1f' | Hex x'1F'",
        ),
        ("SELECT N'a', date'a', \"5\", a1, _2, é3, t.x5", "Str 'a' | Str 'a'"),
        ("SELECT 1 -- 2\r, 3 /* 4 /* 5 */ 6 */, 7 /*+ 8 */", "Int4 1 | Int4 3 | Int4 7"),
        ("SELECT 1; ; /* 5 */ -- ;", "Int4 1"),
        ("(TABLE t) UNION VALUES (TRUE, NULL)", ""),
        ("/* a */ WITH x AS (SELECT 1) UPDATE t SET a = 'b'", "Int4 1 | Str 'b'"),
    ];
    for (text, expected) in rows {
        assert_eq!(literals(text), expected, "of {text:?}");
    }
}

#[test]
fn each_refusal_has_its_text() {
    let (last, texts) = REFUSALS.split_last().unwrap();
    assert_eq!(last.0.name, "moving-time");
    for (reason, text) in texts {
        assert_eq!(made(text.as_bytes()).unwrap_err(), reason, "of {text:?}");
    }
    let rows = [
        ("", "utility"),
        (" ; ", "utility"),
        ("BEGIN", "utility"),
        ("SELECTS 1", "utility"),
        ("SELECT 1; -- \n;SELECT", "several"),
        ("SELECT 0x1F", "number-junk"),
        ("SELECT 123abc", "number-junk"),
        ("SELECT 1.5e", "number-junk"),
        ("SELECT 1_0.5", "number-junk"),
        ("SELECT 1$a", "number-junk"),
        ("SELECT 'a' -- x\n 'b'", "continued"),
        ("SELECT E'a'\r'b'", "continued"),
        ("SELECT B'0'\n'1'", "continued"),
        ("SELECT U&\"a\"", "unicode"),
        ("SELECT\x0b1", "malformed"),
        ("SELECT 1 $", "malformed"),
        ("SELECT \\ 1", "malformed"),
        ("SELECT 1 \0", "malformed"),
        ("SELECT 1 /* ", "malformed"),
        ("SELECT $a$ 1", "malformed"),
        (
            "SELECT \"a234567890123456789012345678901234567890123456789012345678901234\"",
            "long-name",
        ),
    ];
    for (text, name) in rows {
        assert_eq!(made(text.as_bytes()).unwrap_err().name, name, "of {text:?}");
    }
    let longest = "SELECT \"a23456789012345678901234567890123456789012345678901234567890123\" AS \
                   a23456789012345678901234567890123456789012345678901234567890123";
    assert!(made(longest.as_bytes()).is_ok());
}

#[test]
fn a_template_is_all_but_the_values() {
    let same = [
        ("SELECT 1, 'a', 2.5", "SELECT 2147483647, 'it''s -- /* $1', .5e10"),
        ("SELECT E'a\\n', $$b$$, X'1'", "SELECT e'\\'', $long$ $$ ' $long$, x''"),
        ("SELECT -5", "SELECT -7"),
    ];
    let different = [
        ("SELECT 1", "SELECT  1"),
        ("SELECT 1", "select 1"),
        ("SELECT 1", "SELECT 2147483648"),
        ("SELECT 'a'", "SELECT E'a'"),
        ("SELECT 'a'", "SELECT $$a$$"),
        ("SELECT B'1'", "SELECT X'1'"),
        ("SELECT 1 -- a\r, 2", "SELECT 1 -- a\r, b"),
        ("SELECT 1/*+ a */", "SELECT 1/*+ b */"),
        ("SELECT -5", "SELECT 5"),
        ("SELECT 1, 2", "SELECT 1"),
        ("SELECT 1", "SELECT 1;"),
    ];
    let compare = |one: &str, other: &str| {
        let (key, spans) = made(one.as_bytes()).unwrap();
        let (other_key, other_spans) = made(other.as_bytes()).unwrap();
        let sample = Sample::new(one.as_bytes(), &spans);
        (key == other_key, sample.matches(other.as_bytes(), &other_spans))
    };
    for (one, other) in same {
        assert_eq!(compare(one, other), (true, true), "{one:?} and {other:?}");
    }
    for (one, other) in different {
        assert_eq!(compare(one, other), (false, false), "{one:?} and {other:?}");
    }
}

#[test]
fn a_literal_becomes_the_text_of_its_value() {
    let rows: &[(Class, &str, Option<&str>)] = &[
        (Class::Int4, "007", Some("007")),
        (Class::Numeric, "1.", Some("1.")),
        (Class::Str, "''", Some("")),
        (Class::Str, "'it''s \\n'", Some("it's \\n")),
        (Class::Str, "''''''", Some("''")),
        (Class::Dollar, "$$a'b$$", Some("a'b")),
        (Class::Dollar, "$t$ $$ $t$", Some(" $$ ")),
        (Class::Dollar, "$$$$", Some("")),
        (Class::Bit, "b'01'", Some("b01")),
        (Class::Hex, "X'1f'", Some("x1f")),
        (Class::EStr, "E''", Some("")),
        (Class::EStr, "E'a''b'", Some("a'b")),
        (Class::EStr, r"e'\b\f\n\r\t\\\q\''", None),
        (Class::EStr, r"e'\b\f\n\r\t\\\q'", Some("\x08\x0c\n\r\t\\q")),
        (Class::EStr, r"E'\v'", None),
        (Class::EStr, r"E'\1018\7\x41\x4x4g\xg'", Some("A8\x07A\x04x4gxg")),
        (Class::EStr, r"E'\303\251\xC3\xa9'", Some("éé")),
        (Class::EStr, r"E'\0'", None),
        (Class::EStr, r"E'\x00'", None),
        (Class::EStr, r"E'\400'", None),
        (Class::EStr, r"E'\u00e9\U0001F600\uD83D\uDE00\uD83D\U0000DE00'", Some("é😀😀😀")),
        (Class::EStr, r"E'\u00e'", None),
        (Class::EStr, r"E'\uD83D'", None),
        (Class::EStr, r"E'\uD83Dx'", None),
        (Class::EStr, r"E'\uD83D\u0041'", None),
        (Class::EStr, r"E'\uDE00'", None),
        (Class::EStr, r"E'\u0000'", None),
        (Class::EStr, r"E'\U00110000'", None),
        (Class::EStr, "E'\\\n\\é'", Some("\né")),
    ];
    for (class, literal, expected) in rows {
        let mut out = b"-".to_vec();
        let got = value(*class, literal.as_bytes(), true, &mut out).ok();
        assert_eq!(got.map(|()| &out[1..]), expected.map(str::as_bytes), "of {literal:?}");
    }
    for (literal, decodes) in
        [(r"E'\x41\u0041é'", true), (r"E'\xe9'", false), (r"E'\u00e9'", false)]
    {
        let got = value(Class::EStr, literal.as_bytes(), false, &mut Vec::new());
        assert_eq!(got.is_ok(), decodes, "of {literal:?} in another encoding");
    }
}

/// Returns a plan by a letter for each literal in `what`: `k` keeps the literal, `-` folds the sign
/// before it, and `t` takes a type of 4 bytes before it.
fn plan(text: &str, what: &str) -> (Plan, Vec<Span>) {
    static KEPT: Reason = Reason { name: "kept", text: "for a test" };
    let spans = made(text.as_bytes()).expect("a normalized query").1;
    let back = |span: &Span, byte| {
        let before = &text.as_bytes()[..span.start as usize];
        span.start - before.iter().rposition(|it| *it == byte).unwrap_or_default() as u32
    };
    let slot = |(span, what): (&Span, char)| {
        let edit = match what {
            'k' => return Slot::Keep(&KEPT),
            '-' => Edit::Sign { back: back(span, b'-') },
            't' => Edit::Typed { back: back(span, b'd'), length: 4 },
            _ => Edit::None,
        };
        Slot::Parameter { oid: span.class.oid(what == '-'), edit }
    };
    let slots = spans.iter().zip(what.chars()).map(slot).collect();
    (Plan { slots, frozen: false, mentions: Mentions::default() }, spans)
}

const RENDERED: &[(&str, &str, &str)] = &[
    ("SELECT 1", "p", "SELECT $1"),
    ("SELECT 1, 'a' ORDER BY 2 LIMIT 3", "ppkp", "SELECT $1, $2 ORDER BY 2 LIMIT $3"),
    ("SELECT'a'FROM t", "p", "SELECT $1 FROM t"),
    ("SELECT-5", "-", "SELECT $1"),
    ("SELECT - /*é*/ 5, a - -6", "--", "SELECT   /*é*/ $1, a -  $2"),
    ("SELECT date'x'", "t", "SELECT CAST($1 AS date)"),
    ("SELECT/*é*/date 'x'FROM t WHERE é=2", "tp", "SELECT/*é*/CAST($1 AS date) FROM t WHERE é=$2"),
];

#[test]
fn the_text_to_prepare() {
    for (text, what, expected) in RENDERED {
        let (plan, spans) = plan(text, what);
        let mut out = Vec::new();
        plan.render(text.as_bytes(), &spans, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), *expected, "of {text:?}");
    }
}

#[test]
fn positions_point_back() {
    for (text, what, rendered) in RENDERED {
        let (plan, spans) = plan(text, what);
        // Every letter outside of what was changed is found again.
        let back = |place: usize| plan.position(text.as_bytes(), &spans, place, true);
        for (at, letter) in
            rendered.chars().enumerate().filter(|(_, letter)| "Fé=O".contains(*letter))
        {
            let found = text.chars().nth(back(at + 1) - 1);
            assert_eq!(found, Some(letter), "character {at} of {rendered:?}");
        }
        assert_eq!(back(rendered.chars().count() + 1), text.chars().count() + 1);
        assert_eq!(back(0), 1);
        for (number, bound) in (1..).zip(plan.bound(&spans)) {
            let place = rendered.find(&format!("${number}")).unwrap();
            let place = rendered[..place].chars().count() + 1;
            assert_eq!(back(place), text[..bound.start() as usize].chars().count() + 1);
            assert_eq!(plan.place(text.as_bytes(), &spans, number, true), Some(back(place)));
        }
    }
    let (plan, spans) = plan("SELECT é, 5", "p");
    assert_eq!(plan.place("SELECT é, 5".as_bytes(), &spans, 1, false), Some(12));
    assert_eq!(plan.place("SELECT é, 5".as_bytes(), &spans, 2, false), None);
    assert_eq!(plan.place("SELECT é, 5".as_bytes(), &spans, 0, false), None);
}

#[test]
fn kept_strings_that_move_are_refused() {
    let rows = [
        ("SELECT 'a'", "k", false),
        ("SELECT 'now'", "p", false),
        ("SELECT 'now'", "k", true),
        ("SELECT 'x Today 12:00'", "k", true),
        ("SELECT E'n\\157w'", "k", true),
        ("SELECT E'\\v'", "k", true),
        ("SELECT $$tomorrow$$", "k", true),
        ("SELECT 'nowhere', 'known', 5", "kkk", false),
    ];
    for (text, what, refused) in rows {
        let (plan, spans) = plan(text, what);
        assert_eq!(plan.refuses(text.as_bytes(), &spans).is_some(), refused, "of {text:?}");
    }
}

#[test]
fn a_plan_binds_the_literals_that_are_parameters() {
    let text = "SELECT - 5, '6', -2147483648, 7";
    let (plan, spans) = plan(text, "-p-k");
    let values = plan.bound(&spans).map(|bound| {
        let mut out = Vec::new();
        bound.value(text.as_bytes(), true, &mut out).unwrap();
        (bound.oid, String::from_utf8(out).unwrap())
    });
    let expected = [(23, "-5"), (0, "6"), (23, "-2147483648")];
    assert_eq!(values.collect::<Vec<_>>(), expected.map(|(oid, value)| (oid, value.to_owned())));
    assert!(plan.keeps());
    assert_eq!(plan.kept(text.as_bytes(), &spans).collect::<Vec<_>>(), [b"7"]);
}

/// Random texts cause no panic. If two share a key, a sample of one matches the other if and only
/// if the texts differ only within literals of the same classes.
#[test]
fn random_texts_match_if_only_their_literals_differ() {
    let alphabet: &[&[u8]] = &[
        b"'",
        b"''",
        b"\"",
        b"$",
        b"$$",
        b"--",
        b"/*",
        b"*/",
        b"\\",
        b"\n",
        b"E'",
        b"b'",
        b"U&'",
        b"n",
        b"-",
        b"0",
        b"5",
        b"2147483648",
        b".",
        b";",
        b":",
        b"(",
        b")",
        b",",
        b"=",
        b" ",
        b" ",
        b"a",
        b"date",
        b"\xff",
        b"\0",
        b"\x0b",
        b"\r",
        b"_",
    ];
    let mut state = 0x5eed_u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let mut seen = std::collections::HashMap::new();
    let (mut queries, mut hits) = (0, 0);
    for _ in 0..300_000 {
        let mut text = b"SELECT ".to_vec();
        (0..random(9)).for_each(|_| text.extend_from_slice(alphabet[random(alphabet.len())]));
        let Ok((key, spans)) = made(&text) else { continue };
        // Literals are tokens of their own, as the lexer makes them.
        let mut tokens = Lexer::new(&text, false);
        for span in &spans {
            assert!(tokens.any(|it| (it.start, it.end) == (span.start, span.end)), "{text:?}");
            let _ = value(span.class, span.of(&text), true, &mut Vec::new());
        }
        let sample = Sample::new(&text, &spans);
        assert!(sample.matches(&text, &spans));
        let outside = outside(&text, &spans);
        match seen.get(&key.0) {
            None => {
                queries += 1;
                seen.insert(key.0, (sample, outside));
            }
            Some((other, others)) => {
                hits += 1;
                assert_eq!(other.matches(&text, &spans), *others == outside, "{text:?}");
            }
        }
    }
    assert!(queries > 10_000 && hits > 10_000, "{queries} queries, {hits} hits");
}

/// Returns the text with nothing but the class in the place of each literal.
fn outside(text: &[u8], spans: &[Span]) -> Vec<(Vec<u8>, Option<Class>)> {
    let mut at = 0;
    let mut parts = Vec::new();
    for span in spans {
        parts.push((text[at..span.start as usize].to_vec(), Some(span.class)));
        at = span.end as usize;
    }
    parts.push((text[at..].to_vec(), None));
    parts
}

#[test]
fn texts_that_may_keep_their_literals_and_parameters() {
    for text in [
        "SELECT a FROM t WHERE b = $1 AND d = 'nowhere'",
        "INSERT INTO t VALUES ($1, 5, $$then$$); ",
        "with x as (select $1::int) select 1_000 from x",
    ] {
        assert_eq!(may_keep_all(text.as_bytes()), Ok(()), "{text}");
    }
    for (text, why) in [
        ("SELECT $1::timestamp < 'now'", "moving-time"),
        ("SELECT a FROM t WHERE b = $1 AND c = 'now and then'", "moving-time"),
        ("SELECT $1; SELECT 2", "several"),
        ("BEGIN", "utility"),
        ("EXPLAIN SELECT $1", "utility"),
        ("fetch 1 from c", "utility"),
        ("SELECT $1, U&'a'", "unicode"),
        ("SELECT $1, 'a'\n'b'", "continued"),
        ("SELECT $1, 'a", "malformed"),
        (
            "SELECT $1 AS a234567890123456789012345678901234567890123456789012345678901234",
            "long-name",
        ),
    ] {
        assert_eq!(may_keep_all(text.as_bytes()).map_err(|it| it.name), Err(why), "{text}");
        assert_eq!(has_plan(text.as_bytes()), why != "utility", "{text}");
    }
}

#[test]
fn strings_that_name_a_moment() {
    let names = |text: &str| {
        let mut spans = Vec::new();
        let seed = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        // Some are refused by this very test.
        let _ = normalize(text.as_bytes(), &seed, 10, &mut spans);
        spans.iter().any(|span| span.names_moment(text.as_bytes()))
    };
    let quoted = "select ' NOW '' ', 1";
    for text in ["select 'now'", "select $$ today$$", r"select e'\156ow'", "select E'now'", quoted]
    {
        assert!(names(text), "{text}");
    }
    for text in ["select 'know'", r"select e'k\now'", "select 'it''s'", "select $$a$$, 12, b'1'"] {
        assert!(!names(text), "{text}");
    }
}

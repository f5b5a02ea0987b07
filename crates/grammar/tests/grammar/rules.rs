//! Every row of the table has the effect that it claims, and the prepared text is the expected one.

use crate::text::on_its_thread;
use foldhash::fast::FixedState;
use refrain_grammar::{Effect, PgGrammar, RULES, Rule, explain};
use refrain_sql::normalize::{Analysis, Edit, Grammar, Plan, Slot, Span, normalize};

fn analysed(text: &str) -> (Vec<Span>, Analysis) {
    let mut spans = Vec::new();
    let seed = FixedState::with_seed(7);
    if let Err(why) = normalize(text.as_bytes(), &seed, 1000, &mut spans) {
        panic!("{text:?}: {}", why.name);
    }
    let analysis = on_its_thread(|| PgGrammar.analyse(text, &spans));
    (spans, analysis)
}

#[track_caller]
fn planned(text: &str) -> (Vec<Span>, Plan) {
    match analysed(text) {
        (spans, Analysis::Normalized(plan)) => (spans, plan),
        (_, Analysis::Never(why)) => panic!("{text:?}: never for {}", why.name),
    }
}

/// Returns the text that is prepared, and its parameters as `type:value`.
#[track_caller]
fn made(text: &str) -> (String, String) {
    let (spans, plan) = planned(text);
    let mut prepared = Vec::new();
    plan.render(text.as_bytes(), &spans, &mut prepared);
    let values = plan.bound(&spans).map(|bound| {
        let mut value = Vec::new();
        bound.value(text.as_bytes(), true, &mut value).expect("a value");
        format!("{}:{}", bound.oid, String::from_utf8_lossy(&value))
    });
    (String::from_utf8(prepared).expect("UTF-8"), values.collect::<Vec<_>>().join(" "))
}

#[test]
fn each_row_does_what_it_says() {
    for rule in RULES {
        assert!(!rule.examples.is_empty(), "{} has no text", rule.reason.name);
        for text in rule.examples {
            match rule.effect {
                Effect::Never => {
                    assert_eq!(analysed(text).1, Analysis::Never(&rule.reason), "{text}")
                }
                Effect::Keep => keeps(rule, text),
                Effect::Parameter => becomes_parameters(rule, text),
            }
        }
    }
}

fn keeps(rule: &Rule, text: &str) {
    let (spans, plan) = planned(text);
    let mut shown = false;
    for (span, slot) in spans.iter().zip(&plan.slots) {
        let written = String::from_utf8_lossy(span.of(text.as_bytes()));
        let marked = written.contains("keep") || written.bytes().all(|byte| byte == b'7');
        match slot {
            Slot::Keep(why) => assert_eq!(*why, &rule.reason, "{written} of {text:?}"),
            Slot::Parameter { .. } => {}
        }
        assert_eq!(matches!(slot, Slot::Keep(_)), marked, "{written} of {text:?}");
        shown |= marked;
    }
    assert!(shown, "{text:?} shows nothing of {}", rule.reason.name);
}

fn becomes_parameters(rule: &Rule, text: &str) {
    let (spans, plan) = planned(text);
    let mut shown = false;
    for (span, slot) in spans.iter().zip(&plan.slots) {
        let written = String::from_utf8_lossy(span.of(text.as_bytes()));
        let edit = match slot {
            Slot::Keep(why) => panic!("{written} of {text:?} is kept for {}", why.name),
            Slot::Parameter { edit, .. } => edit,
        };
        shown |= match rule.reason.name {
            "sign" => matches!(edit, Edit::Sign { .. }),
            "typed-literal" => matches!(edit, Edit::Typed { .. }),
            "string" => span.class.is_string() && *edit == Edit::None,
            _ => !span.class.is_string() && *edit == Edit::None,
        };
    }
    assert!(shown, "{text:?} shows nothing of {}", rule.reason.name);
}

#[test]
fn names_of_rows_are_unique() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.reason.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn what_is_prepared() {
    let rows = [
        ("SELECT 1, 'a''b'", "SELECT $1, $2", "23:1 0:a'b"),
        ("SELECT -5, a-5, a<-1", "SELECT  $1, a-$2, a< $3", "23:-5 23:5 23:-1"),
        (
            "SELECT -2147483648, 2147483648, -9223372036854775808, 9223372036854775808",
            "SELECT  $1, $2,  $3, $4",
            "23:-2147483648 20:2147483648 20:-9223372036854775808 1700:9223372036854775808",
        ),
        ("SELECT - /* x */ 5.50", "SELECT   /* x */ $1", "1700:-5.50"),
        (
            "SELECT date'2020-01-01' , time with time zone '1:00'",
            "SELECT CAST($1 AS date) , CAST($2 AS time with time zone)",
            "0:2020-01-01 0:1:00",
        ),
        ("SELECT b'101', X'1F'", "SELECT $1, $2", "1560:b101 1560:x1F"),
        (
            "SELECT a FROM t WHERE b = 1 ORDER BY 2 LIMIT 3",
            "SELECT a FROM t WHERE b = $1 ORDER BY 2 LIMIT $2",
            "23:1 23:3",
        ),
    ];
    for (text, prepared, values) in rows {
        assert_eq!(made(text), (prepared.to_owned(), values.to_owned()), "{text}");
    }
}

/// A literal of the values (`(a, b) = (…)`) is one parameter, though the tree shows it once per
/// column.
#[test]
fn a_literal_shown_twice_is_one_parameter() {
    let (text, values) = made("UPDATE t SET (a, b) = (1, 'x') WHERE c = (SELECT 2)");
    assert_eq!(text, "UPDATE t SET (a, b) = ($1, $2) WHERE c = (SELECT $3)");
    assert_eq!(values, "23:1 0:x 23:2");
}

/// A literal that is kept, and read while the statement is prepared, depends on the parameters of
/// that moment.
#[test]
fn kept_strings_freeze() {
    for (text, frozen) in [
        ("SELECT a FROM t ORDER BY 1", false),
        ("SELECT a FROM t WHERE b = '01/02/2020' ORDER BY 1", false),
        ("SELECT a, '01/02/2020'::date FROM t GROUP BY 1", true),
        ("SELECT interval '1' minute", true),
        ("SELECT 5::positive", false),
    ] {
        assert_eq!(planned(text).1.frozen, frozen, "{text}");
    }
    for (text, refused) in [
        ("SELECT a, 'Today'::date FROM t GROUP BY 1", true),
        ("SELECT a, 'to day'::date FROM t GROUP BY 1", false),
        ("SELECT a, E'\\x6eow'::date FROM t GROUP BY 1", true),
        ("SELECT a FROM t WHERE b = 'now'", false),
    ] {
        let (spans, plan) = planned(text);
        let why = plan.refuses(text.as_bytes(), &spans).map(|why| why.name);
        assert_eq!(why, refused.then_some("moving-time"), "{text}");
    }
}

/// However deep a text nests, it needs no more than the thread's stack.
#[test]
fn depth_is_survived() {
    let nests =
        [("a+(", ")"), ("f(", ")"), ("NOT ", ""), ("a+", ""), ("- ", ""), ("(SELECT ", ")")];
    for (left, right) in nests.into_iter().chain([("SELECT a UNION ALL ", "")]) {
        for depth in 30..100 {
            analysed(&format!("SELECT {}a{}", left.repeat(depth), right.repeat(depth)));
        }
        let depth = 60_000 / (left.len() + right.len());
        let text = format!("SELECT {}a{}", left.repeat(depth), right.repeat(depth));
        let Analysis::Never(why) = analysed(&text).1 else { panic!("{left}") };
        assert!(["depth", "syntax"].contains(&why.name), "{left}: {}", why.name);
    }
}

#[test]
fn what_is_explained() {
    let text = "SELECT 'é', -5, date '2020-01-01' FROM t WHERE a = 1.5 ORDER BY 2";
    let explanation = on_its_thread(|| explain(text, 10)).expect("a normalized query");
    let rows = explanation.literals.iter().map(|row| {
        let (name, effect) = (row.reason.name, row.effect);
        format!("{} {} {} {effect:?} {name}", row.place, row.literal, row.class.name())
    });
    let expected = [
        "8 'é' string Parameter string",
        "14 5 int4 Parameter sign",
        "22 '2020-01-01' string Parameter typed-literal",
        "52 1.5 numeric Parameter number",
        "65 2 int4 Keep order-by",
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let normalized = "SELECT $1, $2, CAST($3 AS date) FROM t WHERE a = $4 ORDER BY 2";
    assert_eq!(explanation.normalized.replace(",  ", ", "), normalized);
    let refused = [
        ("EXPLAIN SELECT 1", "utility"),
        ("SELECT 1, 2, 3", "many-literals"),
        ("SELECT date('x')", "called-time-type"),
        ("SELECT a, 'now'::date FROM t GROUP BY 1", "moving-time"),
    ];
    for (text, name) in refused {
        let why = on_its_thread(|| explain(text, 2).map(|explanation| explanation.literals.len()));
        assert_eq!(why.map_err(|why| why.name), Err(name), "{text}");
    }
}

//! Common parts of the tests over many texts: a text, its normalized query, and its tree with
//! parameters in place of the literals that become parameters.

use std::collections::HashMap;
use std::thread;

use foldhash::fast::FixedState;
use pg_query::protobuf::Token as Scanned;
use refrain_grammar::{PgGrammar, STACK};
use refrain_sql::lex::Lexer;
use refrain_sql::normalize::{
    Analysis, Bound, Class, Grammar, Key, Plan, Reason, Span, Undecodable, normalize,
};

/// Runs a function that parses, on a thread with the stack that it needs.
pub(crate) fn on_its_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.expect("a thread").join().expect("no panic")
    })
}

/// Checks that Refrain's lexer and the server's scanner see tokens begin at the same places, if the
/// scanner accepts the text.
pub(crate) fn lexed_as_by_the_server(text: &str) {
    let Ok(scanned) = pg_query::scan(text) else { return };
    let comments = [Scanned::SqlComment as i32, Scanned::CComment as i32];
    let tokens = scanned.tokens.iter().filter(|it| !comments.contains(&it.token));
    let theirs: Vec<u32> = tokens.map(|it| u32::try_from(it.start).expect("an offset")).collect();
    let tokens = Lexer::new(text.as_bytes(), false).filter(|it| !it.kind.is_trivia());
    let ours: Vec<u32> = tokens.map(|it| it.start).collect();
    assert_eq!(ours, theirs, "tokens of {text:?}");
}

/// A text and its literals.
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    pub(crate) key: Key,
    pub(crate) spans: Vec<Span>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Text<'a>, &'static Reason> {
        let mut spans = Vec::new();
        let seed = FixedState::with_seed(7);
        let key = normalize(text.as_bytes(), &seed, 1000, &mut spans)?;
        Ok(Text { text, key, spans })
    }

    pub(crate) fn analysed(&self) -> Analysis {
        PgGrammar.analyse(self.text, &self.spans)
    }

    /// Returns the tree, with `$n` for the literals that are parameters in `plan`. Their values
    /// must be those in the tree.
    pub(crate) fn shape(&self, plan: &Plan) -> String {
        let bound = plan.bound(&self.spans).zip(1..);
        let places = bound.map(|(bound, number)| (i64::from(bound.start()), (bound, number)));
        let places: HashMap<i64, (Bound, usize)> = places.collect();
        shaped(&tree(self.text), |constant| {
            let (bound, number) = places.get(&location(constant)?)?;
            let said = said(*bound, self.text);
            assert!(said.is_none_or(|it| constant.contains(&it)), "{constant} of {:?}", self.text);
            Some(format!("${number}"))
        })
    }

    /// Returns the tree of the prepared text.
    pub(crate) fn prepared_shape(&self, plan: &Plan) -> String {
        let mut prepared = Vec::new();
        plan.render(self.text.as_bytes(), &self.spans, &mut prepared);
        shaped(&tree(std::str::from_utf8(&prepared).expect("UTF-8")), |_| None)
    }

    /// Returns the kept literals, as written.
    pub(crate) fn kept(&self, plan: &Plan) -> Vec<&'a [u8]> {
        plan.kept(self.text.as_bytes(), &self.spans).collect()
    }

    /// Returns the text with other values for the literals that are parameters in `plan`: for each
    /// class, its `turn`th value first.
    pub(crate) fn mutant(&self, plan: &Plan, turn: usize) -> String {
        let (mut mutant, mut at) = (String::new(), 0);
        for (bound, number) in plan.bound(&self.spans).zip(turn..) {
            let values = nasty(bound.span.class);
            mutant.push_str(&self.text[at..bound.span.start as usize]);
            mutant.push_str(values[number % values.len()]);
            at = bound.span.end as usize;
        }
        mutant + &self.text[at..]
    }
}

/// Values that a lexer or a reader of values may get wrong.
fn nasty(class: Class) -> &'static [&'static str] {
    match class {
        Class::Int4 => &["0", "007", "2147483647"],
        Class::Int4Edge => &["2147483648", "0002147483648"],
        Class::Int8 => &["2147483649", "9223372036854775807", "09999999999"],
        Class::Int8Edge => &["9223372036854775808", "009223372036854775808"],
        Class::Numeric => {
            &["1.", ".5", "1e10", "1.e5", "9223372036854775809", "00.00", "99999999999999999999999"]
        }
        Class::Str => {
            &["''", "'--x'", "'/*'", "'$x$'", "'it''s'", "'\\'", "'é;\n'", "'\"'", "'$1'"]
        }
        Class::EStr => &[
            "E''",
            "e'--\\\\'",
            "E'/*\\n'",
            "E'it''s'",
            "E'\\x41\\u00e9\\102'",
            "E'\\''",
            "E'$x$'",
        ],
        Class::Dollar => &["$$$$", "$$'$$", "$x$$$'--$x$", "$é$/*\\$e$$é$"],
        Class::Bit => &["B''", "b'0101'"],
        Class::Hex => &["X''", "x'1Ff'"],
    }
}

/// Returns the constant that the tree should have for a literal, as it is printed; nothing if its
/// value is not read.
fn said(bound: Bound, text: &str) -> Option<String> {
    let mut value = Vec::new();
    match bound.value(text.as_bytes(), true, &mut value) {
        Ok(()) => {}
        Err(Undecodable) => return None,
    }
    // The server refuses bytes that are not UTF-8.
    let value = String::from_utf8(value).ok()?;
    Some(match (bound.span.class, bound.oid) {
        (Class::Int4, _) => format!("ival: {} ", value.parse::<i32>().expect("an integer")),
        (_, 0) => format!("sval: {value:?} "),
        (_, 1560) => format!("bsval: {value:?} "),
        _ => format!("fval: {value:?} "),
    })
}

fn tree(text: &str) -> String {
    let parsed = pg_query::parse(text, 0).unwrap_or_else(|error| panic!("{error} of {text:?}"));
    format!("{:?}", parsed.protobuf.stmts)
}

/// Returns a printed tree without places, with each constant replaced by `replace`.
fn shaped(tree: &str, replace: impl Fn(&str) -> Option<String>) -> String {
    const PLACES: [&str; 4] = ["location: ", "stmt_len: ", "list_start: ", "list_end: "];
    const CONSTANT: &str = "AConst(AConst {";
    const PARAMETER: &str = "ParamRef(ParamRef { number: ";
    let (mut shape, mut rest) = (String::new(), tree);
    while let Some(first) = rest.chars().next() {
        if let Some(name) = PLACES.iter().find(|name| rest.starts_with(**name)) {
            let value = &rest[name.len()..];
            let digits = value.find(|it: char| it != '-' && !it.is_ascii_digit());
            rest = &value[digits.unwrap_or(value.len())..];
            continue;
        }
        let length = match first {
            '"' => string_end(rest),
            'A' if rest.starts_with(CONSTANT) => {
                let end = braces_end(rest);
                match replace(&rest[..end]) {
                    Some(other) => {
                        shape.push_str(&other);
                        rest = &rest[end..];
                        continue;
                    }
                    None => CONSTANT.len(),
                }
            }
            'P' if rest.starts_with(PARAMETER) => {
                let number = &rest[PARAMETER.len()..];
                shape.push('$');
                shape.push_str(&number[..number.find(',').expect("a comma")]);
                rest = &rest[braces_end(rest)..];
                continue;
            }
            other => other.len_utf8(),
        };
        shape.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    shape
}

/// Returns the offset just past the bracket that closes the first one.
fn braces_end(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '"' => {
                at += string_end(&text[at..]);
                continue;
            }
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        at += letter.len_utf8();
        if depth == 0 && matches!(letter, ')' | '}') {
            break;
        }
    }
    at
}

/// Returns the offset just past a string that is printed at the beginning of `text`.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn location(constant: &str) -> Option<i64> {
    let (_, after) = constant.split_once("location: ")?;
    after[..after.find(|it: char| !it.is_ascii_digit())?].parse().ok()
}

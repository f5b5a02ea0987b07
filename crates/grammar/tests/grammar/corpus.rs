//! Many texts: tokens are the server's, texts of one normalized query have one tree, and the
//! prepared text has the tree of the text that was sent.
//!
//! Runs over texts in this file, and over PostgreSQL's own regression suite if `REFRAIN_SUITE`
//! names the folder of its scripts (`cargo xtask test --only grammar` fetches it).

use std::collections::HashMap;
use std::path::PathBuf;
use std::{env, fs};

use crate::text::{Text, lexed_as_by_the_server, on_its_thread};
use refrain_grammar::RULES;
use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sql::normalize::{Analysis, Plan, REFUSALS, Sample};

/// How many texts with other values are made of each normalized query.
const MUTANTS: usize = 4;

/// Texts that lexers get wrong.
const TEXTS: &[&str] = &[
    "SELECT 1 -- a\r, 2",
    "SELECT a=-5, a<-1, a@-5, a*-5, 3-2, 3 - -2",
    "SELECT 1 /* 2 /* '3 */ 4 */, '/*', $$--$$ -- $$ 5\n, 6",
    "SELECT foo'x', N'y', n 'z', \"a\"\"1\", a1, _2, é3",
    "SELECT a[1..2], 1., .5, 1.e5, t.x5",
    "SELECT 'a\\', E'\\'', 'it''s', e'\\\\'",
    "SELECT $a$$$ $b$ $a$, $$'$$, a$$b$$ FROM t",
    "SELECT a::int4-1, (1), -(1), - 1, -\n--2\n3",
];

/// The findings so far.
#[derive(Debug, Default)]
struct Tally {
    texts: usize,
    refused: usize,
    never: usize,
    queries: usize,
    hits: usize,
    mutants: usize,
}

/// A normalized query, and the tree of each set of literals that it keeps.
struct Known {
    sample: Sample,
    analysed: HashMap<Vec<Vec<u8>>, (Analysis, String)>,
}

#[derive(Default)]
struct Corpus {
    known: HashMap<u64, Known>,
    tally: Tally,
}

impl Corpus {
    fn take(&mut self, sql: &str) {
        lexed_as_by_the_server(sql);
        let Ok(text) = Text::new(sql) else {
            self.tally.refused += 1;
            return;
        };
        self.tally.texts += 1;
        let analysis = text.analysed();
        let Analysis::Normalized(plan) = &analysis else {
            self.tally.never += 1;
            return;
        };
        let shape = text.shape(plan);
        assert_eq!(shape, text.prepared_shape(plan), "what is prepared for {sql:?}");
        self.mutate(&text, plan, &shape);
        self.compare(&text, analysis, shape);
    }

    /// Checks that a text of a known normalized query has the known tree.
    fn compare(&mut self, text: &Text<'_>, analysis: Analysis, shape: String) {
        let known = self.known.entry(text.key.0).or_insert_with(|| Known {
            sample: Sample::new(text.text.as_bytes(), &text.spans),
            analysed: HashMap::new(),
        });
        assert!(known.sample.matches(text.text.as_bytes(), &text.spans), "{:?}", text.text);
        let Analysis::Normalized(plan) = &analysis else { return };
        let kept = text.kept(plan).into_iter().map(<[u8]>::to_vec).collect();
        match known.analysed.get(&kept) {
            Some(other) => {
                self.tally.hits += 1;
                assert_eq!(*other, (analysis, shape), "{:?}", text.text);
            }
            None => {
                self.tally.queries += 1;
                known.analysed.insert(kept, (analysis, shape));
            }
        }
    }

    /// Checks that the text with other values has the same normalized query and the same tree.
    fn mutate(&mut self, text: &Text<'_>, plan: &Plan, shape: &str) {
        if plan.bound(&text.spans).next().is_none() {
            return;
        }
        let sample = Sample::new(text.text.as_bytes(), &text.spans);
        for turn in 0..MUTANTS {
            let mutant = text.mutant(plan, turn);
            self.tally.mutants += 1;
            let mutant =
                Text::new(&mutant).unwrap_or_else(|why| panic!("{mutant:?}: {}", why.name));
            assert_eq!(mutant.key, text.key, "{:?} of {:?}", mutant.text, text.text);
            assert!(sample.matches(mutant.text.as_bytes(), &mutant.spans), "{:?}", mutant.text);
            assert_eq!(mutant.analysed(), Analysis::Normalized(plan.clone()), "{:?}", mutant.text);
            assert_eq!(mutant.shape(plan), shape, "{:?} of {:?}", mutant.text, text.text);
        }
    }
}

#[test]
fn texts_of_our_own() {
    let mut corpus = Corpus::default();
    let refused = REFUSALS.iter().map(|(_, text)| text);
    let texts = RULES.iter().flat_map(|rule| rule.examples).chain(refused).chain(TEXTS);
    on_its_thread(|| texts.for_each(|text| corpus.take(text)));
    assert!(corpus.tally.mutants > 200, "{:?}", corpus.tally);
}

#[test]
#[ignore = "takes the scripts of PostgreSQL's regression suite: cargo xtask test --only grammar"]
fn texts_of_the_regression_suite() {
    let folder = PathBuf::from(env::var_os("REFRAIN_SUITE").expect("REFRAIN_SUITE names a folder"));
    let mut corpus = Corpus::default();
    on_its_thread(|| {
        for entry in fs::read_dir(folder).expect("the folder") {
            let path = entry.expect("a file").path();
            if path.extension().is_some_and(|extension| extension == "sql") {
                let script =
                    String::from_utf8_lossy(&fs::read(&path).expect("a script")).into_owned();
                statements(&script, |text| corpus.take(text));
            }
        }
    });
    eprintln!("{:?}", corpus.tally);
    assert!(corpus.tally.texts > 15_000, "{:?}", corpus.tally);
}

/// Iterates over the statements of a script approximately as `psql` sends them: without its own
/// commands and the lines of COPY.
fn statements(script: &str, mut each: impl FnMut(&str)) {
    let mut rest = script;
    while !rest.trim().is_empty() {
        let (statement, after) = statement(rest);
        let is_copy =
            statement.len() > 4 && statement.as_bytes()[..4].eq_ignore_ascii_case(b"copy");
        rest = match after.find("\n\\.") {
            Some(end) if is_copy && statement.to_ascii_lowercase().contains("stdin") => {
                &after[end + 3..]
            }
            _ => after,
        };
        if !statement.is_empty() {
            each(statement);
        }
    }
}

/// Returns the first statement of a script without leading blanks and comments, and the rest of the
/// script.
fn statement(script: &str) -> (&str, &str) {
    let (mut begin, mut depth) = (None, 0_usize);
    for token in Lexer::new(script.as_bytes(), false) {
        let (start, end) = (token.start as usize, token.end as usize);
        match token.kind {
            kind if kind.is_trivia() => continue,
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Semicolon if depth == 0 => {
                return (&script[begin.unwrap_or(start)..end], &script[end..]);
            }
            // A command of `psql`, up to the end of its line; it may send the text before it.
            TokenKind::Other if &script[start..end] == "\\" => {
                let line = script[start..].find('\n').map_or(script.len(), |at| start + at);
                return (script[begin.unwrap_or(start)..start].trim_end(), &script[line..]);
            }
            _ => {}
        }
        begin.get_or_insert(start);
    }
    (&script[begin.unwrap_or(script.len())..], "")
}

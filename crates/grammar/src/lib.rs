//! PostgreSQL's own grammar, asked once per template what is to become of its literals.
//!
//! What: [`PgGrammar`] parses a text as the server would and judges it by the rows of [`RULES`]. There is one function
//! to call: [`Grammar::judge`] takes a text and the spans that [`refrain_sql::template::generalise`] found in it, and
//! says whether it may be prepared and what becomes of each literal. It takes some tens of microseconds and more for
//! long texts, and allocates: it belongs on a thread of its own, one that lives on, with a stack of [`STACK`] bytes.
//!
//! ```
//! use std::hash::{BuildHasherDefault, DefaultHasher};
//! use refrain_grammar::PgGrammar;
//! use refrain_sql::template::{Grammar, Verdict, generalise};
//!
//! let text = "SELECT a FROM t WHERE b = -1 ORDER BY 2";
//! let mut spans = Vec::new();
//! let seed = BuildHasherDefault::<DefaultHasher>::default();
//! generalise(text.as_bytes(), &seed, 1000, &mut spans).expect("a template");
//! let Verdict::Template(plan) = PgGrammar.judge(text, &spans) else { panic!("no template") };
//! let mut prepared = Vec::new();
//! plan.render(text.as_bytes(), &spans, &mut prepared);
//! assert_eq!(prepared, b"SELECT a FROM t WHERE b =  $1 ORDER BY 2");
//! ```
//!
//! Why: which literals may become parameters without any client noticing is a question about the tree, not about the
//! text: a number in ORDER BY is a column, a string in `concat` has no type, a minus sign belongs to its number or
//! not. Whoever reads SQL otherwise than the server does, gets some of it wrong.
//!
//! Why a crate of its own: the grammar is libpg_query's, in C, and takes minutes to compile. Nothing that decides,
//! and none of its tests, has to wait for it.
//!
//! What always holds: what is not known is kept, and a text the grammar does not take is left alone. A grammar newer
//! than the server does no harm, for the server prepares the text, or refuses to, before anything relies on it.
//!
//! What it does not do: know types, tables or functions. What only the catalogue tells, the first preparation shows.

#![forbid(unsafe_code)]

mod rules;

mod names;

mod slots;

mod tree;

mod stores;

mod walk;

mod explain;

mod parse;

pub use explain::{Explained, Explanation, explain};
pub use parse::{Fault, statement};
pub use pg_query::{NodeEnum, protobuf};
pub use rules::{Effect, RULES, Rule};

use pg_query::Error;
use refrain_sql::template::{Grammar, Mentions, Span, Verdict};

use crate::rules::{CLOCK, DEPTH, OPERATORS, SELF, SYNTAX};
use crate::slots::Slots;
use crate::walk::Walk;

/// How much stack, in bytes, the thread needs that judges. A text that would take more than that is not looked at.
pub const STACK: usize = 16 << 20;

/// The grammar of libpg_query.
#[derive(Clone, Copy, Debug, Default)]
pub struct PgGrammar;

impl Grammar for PgGrammar {
    fn judge(&self, text: &str, spans: &[Span]) -> Verdict {
        judge(text, spans).unwrap_or_else(|rule| Verdict::Never(&rule.reason))
    }
}

fn judge(text: &str, spans: &[Span]) -> Result<Verdict, &'static Rule> {
    if names::looks_at_itself(text.as_bytes()) {
        return Err(&SELF);
    }
    if names::has_long_run(text.as_bytes()) {
        return Err(&OPERATORS);
    }
    if names::looks_at_the_clock(text.as_bytes()) {
        return Err(&CLOCK);
    }
    let parsed = pg_query::parse(text, 0).map_err(|error| refusal(&error))?;
    let [statement] = &*parsed.protobuf.stmts else { return Err(&SYNTAX) };
    let slots = Slots::new(text.as_bytes(), spans);
    let mut walk = Walk::new(slots);
    walk.statement(statement.stmt.as_deref().ok_or(&SYNTAX)?);
    match walk.never {
        Some(rule) => Err(rule),
        None => {
            let mentions = Mentions {
                writes: walk.writes.into(),
                reads: walk.reads.into(),
                calls: names::calls(text.as_bytes()).into(),
                constant_calls: walk.constant_calls.into(),
                starred: walk.starred,
                stores: walk.stores.into(),
                computes: walk.computes,
            };
            Ok(Verdict::Template(walk.slots.plan(mentions)))
        }
    }
}

/// Why a text has no tree. There are two limits of depth: the stack, in C, and a number of levels where the tree is
/// handed over.
fn refusal(error: &Error) -> &'static Rule {
    match error {
        Error::Decode(_) => &DEPTH,
        Error::Parse(why) if why.starts_with("stack depth limit") => &DEPTH,
        _ => &SYNTAX,
    }
}

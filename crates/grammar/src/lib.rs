//! PostgreSQL's own grammar, which decides once per normalized query how its literals are treated.
//!
//! What: [`PgGrammar`] parses a text as the server would, and treats it by the rows of [`RULES`].
//! [`Grammar::analyse`] takes a text and the spans that [`refrain_sql::normalize::normalize`] found
//! in it, and decides if the text may be prepared and how each literal is treated. It takes some
//! tens of microseconds, more for long texts, and allocates. So it belongs on a long-lived thread
//! of its own, with a stack of [`STACK`] bytes.
//!
//! ```
//! use std::hash::{BuildHasherDefault, DefaultHasher};
//! use refrain_grammar::PgGrammar;
//! use refrain_sql::normalize::{Analysis, Grammar, normalize};
//!
//! let text = "SELECT a FROM t WHERE b = -1 ORDER BY 2";
//! let mut spans = Vec::new();
//! let seed = BuildHasherDefault::<DefaultHasher>::default();
//! normalize(text.as_bytes(), &seed, 1000, &mut spans).expect("a normalized query");
//! let Analysis::Normalized(plan) = PgGrammar.analyse(text, &spans) else { panic!("refused") };
//! let mut prepared = Vec::new();
//! plan.render(text.as_bytes(), &spans, &mut prepared);
//! assert_eq!(prepared, b"SELECT a FROM t WHERE b =  $1 ORDER BY 2");
//! ```
//!
//! Why: a literal may become a parameter if no client notices, and this is a question about the
//! parse tree, not about the text: a number in ORDER BY is a column, a string in `concat` has no
//! type, and a minus sign belongs to its number or not. A reader of SQL that differs from the
//! server's gets some of this wrong.
//!
//! Why a crate of its own: the grammar is libpg_query's, in C, and takes minutes to compile. The
//! crates that decide, and their tests, do not have to wait for it.
//!
//! What always holds: a literal in an unknown place is kept, and a text that the grammar does not
//! accept is left alone. A grammar newer than the server does no harm, because the server prepares
//! or refuses the text before Refrain relies on it.
//!
//! What it does not do: know types, tables or functions. The first preparation at the server shows
//! the facts that are in the catalogue only.

#![forbid(unsafe_code)]

mod rules;

mod names;

mod slots;

mod tree;

mod stores;

mod walk;

mod explain;

mod parse;

mod reads;

mod effect;

pub use effect::effect;
pub use explain::{Explained, Explanation, explain};
pub use parse::{Fault, statement};
pub use pg_query::{NodeEnum, protobuf};
pub use reads::read;
pub use rules::{Effect, RULES, Rule};

use pg_query::Error;
use refrain_sql::normalize::{Analysis, Grammar, Mentions, Span};

use crate::rules::{CLOCK, DEPTH, OPERATORS, SELF, SYNTAX};
use crate::slots::Slots;
use crate::walk::Walk;

/// The stack size, in bytes, of the thread that runs [`Grammar::analyse`]. A text that would need
/// more is not analyzed.
pub const STACK: usize = 16 << 20;

/// The grammar of libpg_query.
#[derive(Clone, Copy, Debug, Default)]
pub struct PgGrammar;

impl Grammar for PgGrammar {
    fn analyse(&self, text: &str, spans: &[Span]) -> Analysis {
        analyse(text, spans).unwrap_or_else(|rule| Analysis::Never(&rule.reason))
    }
}

fn analyse(text: &str, spans: &[Span]) -> Result<Analysis, &'static Rule> {
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
            Ok(Analysis::Normalized(walk.slots.plan(mentions)))
        }
    }
}

/// Returns the reason why a text has no tree. There are two limits of depth: the stack, in C, and a
/// number of levels at which libpg_query hands over the tree.
fn refusal(error: &Error) -> &'static Rule {
    match error {
        Error::Decode(_) => &DEPTH,
        Error::Parse(why) if why.starts_with("stack depth limit") => &DEPTH,
        _ => &SYNTAX,
    }
}

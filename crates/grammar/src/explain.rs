//! Explains, literal by literal, how a text would be normalized.

use std::hash::{BuildHasherDefault, DefaultHasher};

use refrain_sql::normalize::{Analysis, Class, Grammar, Reason, Slot, Span, normalize};

use crate::PgGrammar;
use crate::rules::{Effect, parameter};

/// The treatment of one literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained<'a> {
    /// Its place, in characters from 1.
    pub place: usize,
    /// The literal as written, without its sign.
    pub literal: &'a str,
    /// Its class.
    pub class: Class,
    /// Says if it is kept or becomes a parameter.
    pub effect: Effect,
    /// The reason.
    pub reason: &'static Reason,
}

/// The treatment of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// Its literals, in the order of the text.
    pub literals: Vec<Explained<'a>>,
    /// The text that would be prepared.
    pub normalized: String,
}

/// Explains how `text` would be treated; or returns the reason why it would run as it was sent,
/// which may be that it has more than `most` literals. This function runs [`PgGrammar`] in the
/// calling thread.
pub fn explain(text: &str, most: usize) -> Result<Explanation<'_>, &'static Reason> {
    let mut spans = Vec::new();
    normalize(text.as_bytes(), &BuildHasherDefault::<DefaultHasher>::default(), most, &mut spans)?;
    let plan = match PgGrammar.analyse(text, &spans) {
        Analysis::Never(why) => return Err(why),
        Analysis::Normalized(plan) => plan,
    };
    if let Some(why) = plan.refuses(text.as_bytes(), &spans) {
        return Err(why);
    }
    let slots = spans.iter().zip(&plan.slots);
    let mut normalized = Vec::new();
    plan.render(text.as_bytes(), &spans, &mut normalized);
    Ok(Explanation {
        literals: slots.map(|(span, slot)| explained(text, *span, *slot)).collect(),
        normalized: String::from_utf8_lossy(&normalized).into_owned(),
    })
}

fn explained(text: &str, span: Span, slot: Slot) -> Explained<'_> {
    let (start, end) = (span.start as usize, span.end as usize);
    let (effect, reason) = match slot {
        Slot::Keep(reason) => (Effect::Keep, reason),
        Slot::Parameter { edit, .. } => (Effect::Parameter, &parameter(span.class, edit).reason),
    };
    let place = text.get(..start).unwrap_or_default().chars().count() + 1;
    let literal = text.get(start..end).unwrap_or_default();
    Explained { place, literal, class: span.class, effect, reason }
}

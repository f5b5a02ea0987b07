//! What would be done with a text, literal by literal, for whoever asks why.

use std::hash::{BuildHasherDefault, DefaultHasher};

use refrain_sql::template::{Class, Grammar, Reason, Slot, Span, Verdict, generalise};

use crate::PgGrammar;
use crate::rules::{Effect, parameter};

/// What would become of one literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained<'a> {
    /// Where it stands, in characters from 1.
    pub place: usize,
    /// The literal as written, without its sign.
    pub literal: &'a str,
    /// What it is.
    pub class: Class,
    /// Whether it is kept or becomes a parameter.
    pub effect: Effect,
    /// Why.
    pub reason: &'static Reason,
}

/// What would become of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// Its literals, in their order.
    pub literals: Vec<Explained<'a>>,
    /// The text that would be prepared.
    pub template: String,
}

/// Says what would become of `text`; or why it would be run as it was sent, which is so too if it has more than
/// `most` literals. What [`PgGrammar`] asks of its thread, this does.
pub fn explain(text: &str, most: usize) -> Result<Explanation<'_>, &'static Reason> {
    let mut spans = Vec::new();
    generalise(text.as_bytes(), &BuildHasherDefault::<DefaultHasher>::default(), most, &mut spans)?;
    let plan = match PgGrammar.judge(text, &spans) {
        Verdict::Never(why) => return Err(why),
        Verdict::Template(plan) => plan,
    };
    if let Some(why) = plan.refuses(text.as_bytes(), &spans) {
        return Err(why);
    }
    let slots = spans.iter().zip(&plan.slots);
    let mut template = Vec::new();
    plan.render(text.as_bytes(), &spans, &mut template);
    Ok(Explanation {
        literals: slots.map(|(span, slot)| explained(text, *span, *slot)).collect(),
        template: String::from_utf8_lossy(&template).into_owned(),
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

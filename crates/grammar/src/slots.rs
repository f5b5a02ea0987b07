//! Finds the literal of the text for each constant of the tree.
//!
//! What: [`Slots`] takes the constants that the walk over the tree meets, finds their literals by
//! their place, and records how each literal is treated.
//!
//! What always holds: a literal without a constant is kept, because the grammar accepts nothing
//! else in its place, or the walk did not look there. A literal that was kept once stays kept,
//! however often the tree shows it.

use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{AConst, TypeName};
use refrain_sql::lex::{Lexer, Token};
use refrain_sql::normalize::{Edit, Mentions, Plan, Slot, Span};

use crate::rules::{GRAMMAR, Rule};

pub(crate) struct Slots<'a> {
    text: &'a [u8],
    spans: &'a [Span],
    found: Vec<Option<Slot>>,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(text: &'a [u8], spans: &'a [Span]) -> Self {
        Slots { text, spans, found: vec![None; spans.len()] }
    }

    /// Makes the literal of `constant` a parameter.
    pub(crate) fn parameter(&mut self, constant: &AConst) {
        if let Some((at, edit)) = self.find(constant) {
            self.note(at, edit);
        }
    }

    /// Keeps the literal of `constant`.
    pub(crate) fn keep(&mut self, constant: &AConst, rule: &'static Rule) {
        if let Some((at, _)) = self.find(constant) {
            self.found[at] = Some(Slot::Keep(&rule.reason));
        }
    }

    /// Makes the literal of `constant`, with the name of a type in front, a parameter of a cast.
    pub(crate) fn typed(&mut self, constant: &AConst, name: &TypeName) {
        let Some((at, Edit::None)) = self.find(constant) else { return };
        let (Ok(start), end) = (u32::try_from(name.location), self.spans[at].start) else { return };
        let Some(before) = self.text.get(start as usize..end as usize) else { return };
        let tokens = Lexer::new(before, false).filter(|token| !token.kind.is_trivia());
        let Some(last) = tokens.last() else { return };
        self.note(at, Edit::Typed { back: end - start, length: last.end });
    }

    /// Returns the index of a constant's literal, if it became a parameter.
    pub(crate) fn parameter_at(&self, constant: &AConst) -> Option<usize> {
        let (at, _) = self.find(constant)?;
        matches!(self.found[at], Some(Slot::Parameter { .. })).then_some(at)
    }

    /// Returns how many literals have become parameters.
    pub(crate) fn parameters(&self) -> usize {
        self.found.iter().filter(|slot| matches!(slot, Some(Slot::Parameter { .. }))).count()
    }

    /// Returns the treatment of all literals.
    pub(crate) fn plan(self, mentions: Mentions) -> Plan {
        let kept = Slot::Keep(&GRAMMAR.reason);
        let slots: Box<[Slot]> = self.found.iter().map(|slot| slot.unwrap_or(kept)).collect();
        let is_kept_string =
            |(slot, span): (&Slot, &Span)| matches!(slot, Slot::Keep(_)) && span.class.is_string();
        let frozen = slots.iter().zip(self.spans).any(is_kept_string);
        Plan { slots, frozen, mentions }
    }

    fn note(&mut self, at: usize, edit: Edit) {
        let oid = self.spans[at].class.oid(matches!(edit, Edit::Sign { .. }));
        self.found[at].get_or_insert(Slot::Parameter { oid, edit });
    }

    /// Finds the literal at the place of `constant`, or after the minus sign with which `constant`
    /// begins.
    fn find(&self, constant: &AConst) -> Option<(usize, Edit)> {
        let location = u32::try_from(constant.location).ok()?;
        let (start, edit) = match self.text.get(location as usize)? {
            b'-' => {
                let start = self.significant(location + 1)?.start;
                (start, Edit::Sign { back: start - location })
            }
            _ => (location, Edit::None),
        };
        let at = self.spans.binary_search_by_key(&start, |span| span.start).ok()?;
        let class = self.spans[at].class;
        let is_same = match constant.val.as_ref()? {
            Val::Ival(_) | Val::Fval(_) => class.is_number(),
            Val::Sval(_) => class.is_string() && edit == Edit::None,
            Val::Bsval(_) => class.oid(false) == 1560 && edit == Edit::None,
            Val::Boolval(_) => false,
        };
        is_same.then_some((at, edit))
    }

    /// Returns the first token from `from` on that is no blank or comment.
    fn significant(&self, from: u32) -> Option<Token> {
        let token = Lexer::new(self.text.get(from as usize..)?, false).significant()?;
        Some(Token { start: token.start + from, end: token.end + from, ..token })
    }
}

//! A text to compare others with.

use super::Span;

/// The first text that was seen of a template.
///
/// Two texts are of the same template if all bytes outside of their literals are the same and their literals, one
/// by one, of the same class. Nothing less is asked
/// on every use: who has found out how to make two texts share a key still gets no more than his own statement.
#[derive(Clone, Debug)]
pub struct Exemplar {
    text: Box<[u8]>,
    spans: Box<[Span]>,
}

impl Exemplar {
    /// Keeps a copy of `text` and of the spans that [`super::generalise`] found in it.
    pub fn new(text: &[u8], spans: &[Span]) -> Self {
        Exemplar { text: text.into(), spans: spans.into() }
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its literals.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.spans)
    }

    /// Whether `text`, with the spans found in it, is of the same template.
    pub fn matches(&self, text: &[u8], spans: &[Span]) -> bool {
        if self.spans.len() != spans.len() {
            return false;
        }
        let (mut own, mut other) = (0, 0);
        for (kept, span) in self.spans.iter().zip(spans) {
            if kept.class != span.class
                || self.text.get(own..kept.start as usize) != text.get(other..span.start as usize)
            {
                return false;
            }
            (own, other) = (kept.end as usize, span.end as usize);
        }
        self.text.get(own..) == text.get(other..)
    }
}

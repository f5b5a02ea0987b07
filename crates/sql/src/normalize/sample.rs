//! A text with which others are compared.

use super::Span;

/// The first text of a normalized query.
///
/// Two texts have the same normalized query if all bytes outside their literals are equal and their
/// literals, one by one, have the same class. Every use checks all of this: a user who finds out
/// how to make two texts share a key still runs just their own statement.
#[derive(Clone, Debug)]
pub struct Sample {
    text: Box<[u8]>,
    spans: Box<[Span]>,
}

impl Sample {
    /// Copies `text` and the spans that [`super::normalize`] found in it.
    pub fn new(text: &[u8], spans: &[Span]) -> Self {
        Sample { text: text.into(), spans: spans.into() }
    }

    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns its literals.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.spans)
    }

    /// True if `text`, with the spans found in it, has the same normalized query.
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

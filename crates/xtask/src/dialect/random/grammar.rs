//! Templates of expressions, from a text.
//!
//! A plain template never fails, whatever its holes have, since SQL leaves open whether and when
//! an expression is computed. One that may fail stands alone, in the section `risky`.

use std::sync::LazyLock;

use super::kinds::ValueKind;

/// A template with the kind of its result; none if it has any.
pub(super) type Template = (Option<ValueKind>, &'static str);

/// The sections of the text.
#[derive(Debug, Default)]
pub(super) struct Grammar {
    pub(super) plain: Vec<Template>,
    /// Templates that may fail.
    pub(super) risky: Vec<Template>,
    /// Aggregates. ORDER BY within them settles the order.
    pub(super) aggregates: Vec<Template>,
    /// Window functions; the order of rows follows behind.
    pub(super) windows: Vec<Template>,
    /// Frames of windows.
    pub(super) frames: Vec<Template>,
}

/// The templates.
pub(super) static GRAMMAR: LazyLock<Grammar> =
    LazyLock::new(|| read(include_str!("templates.txt")));

fn read(text: &'static str) -> Grammar {
    let mut grammar = Grammar::default();
    let mut section = "";
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        if let Some(name) = line.strip_prefix("== ") {
            section = name;
            continue;
        }
        let letter = line.chars().next().unwrap_or('?');
        let template = (ValueKind::of(letter), line.get(2..).unwrap_or_default());
        match section {
            "plain" => grammar.plain.push(template),
            "risky" => grammar.risky.push(template),
            "aggregates" => grammar.aggregates.push(template),
            "windows" => grammar.windows.push(template),
            _ => grammar.frames.push(template),
        }
    }
    grammar
}

impl Grammar {
    /// Returns the plain templates of a kind.
    pub(super) fn of(&self, kind: ValueKind) -> Vec<&'static str> {
        let all = self.plain.iter().filter(|(of, _)| *of == Some(kind));
        all.map(|(_, template)| *template).collect()
    }
}

//! New labels in the SQL of definitions: of views, checks, defaults, generated columns and indexes.
//!
//! Such SQL has the labels of an enum in a few forms ([`EnumType::listed`]), each behind a comment
//! with the type's OID, and single labels in front of another comment ([`EnumType::single_mark`]).
//! So a change of the labels is a change of these texts, and of no other ones.

use refrain_sql::lex::{Lexer, TokenKind};

use crate::arrays::{self, json_string};
use crate::enums::EnumType;

use super::value::text_literal;

/// A change of the labels of an enum: a label more, or another name for one.
#[derive(Clone, Debug)]
pub(crate) struct Relabel {
    pub(crate) from: EnumType,
    pub(crate) to: EnumType,
}

impl PartialEq for Relabel {
    fn eq(&self, other: &Self) -> bool {
        self.from.is_unchanged(other.from) && self.to.is_unchanged(other.to)
    }
}

impl Eq for Relabel {}

impl Relabel {
    /// Returns the label that gets another name, and that name.
    pub(crate) fn renamed(&self) -> Option<(&'static str, &'static str)> {
        let (from, to) = (self.from.labels(), self.to.labels());
        if from.len() != to.len() {
            return None;
        }
        let mut pairs = from.iter().zip(to).filter(|(old, new)| old != new);
        pairs.next().map(|(old, new)| (old.as_str(), new.as_str()))
    }

    /// Returns the label that the type did not have before.
    pub(crate) fn added(&self) -> Option<&'static str> {
        let is_new = |label: &&String| !self.from.labels().contains(label);
        match self.renamed() {
            Some(_) => None,
            None => self.to.labels().iter().find(is_new).map(String::as_str),
        }
    }

    /// Returns a CREATE statement with the new labels; none if it has the old ones in a form that
    /// is not known.
    pub(crate) fn apply(&self, sql: &str) -> Option<String> {
        let listed = self.with_lists(sql)?;
        match self.renamed() {
            Some((old, new)) => self.with_single(&listed, old, new),
            None => Some(listed),
        }
    }

    fn with_lists(&self, sql: &str) -> Option<String> {
        let (mark, forms) = (self.from.listed_mark(), self.from.listed());
        let new = self.to.listed();
        let (mut made, mut rest) = (String::new(), sql);
        while let Some(at) = rest.find(&mark) {
            let (before, behind) = rest.split_at_checked(at)?;
            made.push_str(before);
            let (place, form) =
                forms.iter().enumerate().find(|(_, form)| behind.starts_with(form.as_str()))?;
            made.push_str(new.get(place)?);
            rest = behind.get(form.len()..)?;
        }
        made.push_str(rest);
        Some(made)
    }

    fn with_single(&self, sql: &str, old: &str, new: &str) -> Option<String> {
        let mark = self.from.single_mark();
        let mut made = String::new();
        let mut done = 0;
        let mut lexer = Lexer::new(sql.as_bytes(), false);
        while let Some(token) = lexer.significant() {
            let (start, end) = (token.start as usize, token.end as usize);
            if token.kind == TokenKind::Unterminated {
                return None;
            }
            if token.kind != TokenKind::Text || !sql.get(end..)?.starts_with(&mark) {
                continue;
            }
            made.push_str(sql.get(done..start)?);
            made.push_str(&renamed_literal(sql.get(start..end)?, old, new)?);
            done = end;
        }
        made.push_str(sql.get(done..)?);
        Some(made)
    }
}

/// Returns the literal of a label, or of an array of labels as JSON, with a label's new name.
pub(super) fn renamed_literal(literal: &str, old: &str, new: &str) -> Option<String> {
    if literal == text_literal(old) {
        return Some(text_literal(new));
    }
    let text = literal.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'");
    let Some(labels) = arrays::read(&text).filter(|_| text.starts_with('[')) else {
        return Some(literal.to_owned());
    };
    if !labels.iter().flatten().any(|label| label == old) {
        return Some(literal.to_owned());
    }
    let written = |label: Option<String>| match label {
        Some(label) => json_string(if label == old { new } else { &label }),
        None => "null".to_owned(),
    };
    let all: Vec<String> = labels.into_iter().map(written).collect();
    Some(text_literal(&format!("[{}]", all.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[&str]) -> EnumType {
        EnumType::new("mood", 1_000_448, labels.iter().map(|it| (*it).to_owned()).collect())
    }

    #[test]
    fn every_form_of_the_labels_becomes_the_new_one() {
        let from = of(&["sad", "o'k"]);
        for labels in [&["sad", "meh", "o'k"][..], &["sad", "fine"]] {
            let change = Relabel { from, to: of(labels) };
            let definition = |of: EnumType, label: &str| {
                format!(
                    "CREATE VIEW \"v\" AS SELECT {}, {}, {}, {}, 'o''k', {}{}, '[\"{}\"]'{}",
                    of.place("\"m\""),
                    of.label_at(&of.place("x")),
                    of.of_text(),
                    of.listed().join(", "),
                    text_literal(label),
                    of.single_mark(),
                    label.replace('\'', "''"),
                    of.single_mark(),
                )
            };
            let label = labels[labels.len() - 1];
            let made = change.apply(&definition(from, "o'k"));
            assert_eq!(made, Some(definition(change.to, label)));
        }
        let change = Relabel { from, to: of(&["sad", "o'k", "x"]) };
        assert_eq!((change.added(), change.renamed()), (Some("x"), None));
        assert_eq!(change.apply("SELECT (CASE /*labels of 1000448*/ m WHEN 'sad' END)"), None);
    }
}

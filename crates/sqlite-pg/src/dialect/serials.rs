//! The sequences of columns whose values are generated.
//!
//! The sequence of a key that is SQLite's row number is SQLite's own; the key's mark has its name.
//! Other columns get a sequence as CREATE SEQUENCE makes it.

use crate::key_mark::GivenBy;
use crate::key_sequences::ENDING;
use crate::sequences::{NEXT, Sequence};
use crate::sql_text::object_name;

use super::definer::{Declared, Definer};
use super::edits::FollowUp;
use super::schema_names::is_free;
use super::sequence_calls::{definition, first_row, largest};
use super::value::text_literal;

impl Definer<'_, '_> {
    /// Gives the generated columns of a new table their sequences.
    pub(super) fn with_sequences(&mut self, columns: &mut [Declared]) {
        let table = self.translator.scopes.open.last().and_then(|scope| scope.sources.first());
        let table = table.map(|table| table.alias.clone()).unwrap_or_default();
        let mut chosen = Vec::new();
        for column in columns {
            if matches!(column.given, GivenBy::Statement | GivenBy::Key) {
                continue;
            }
            let called = self.sequence_name(&table, &column.name, &chosen);
            chosen.push(called.clone());
            match (column.key, column.given) {
                (true, _) => column.sequence = Some(called),
                (false, GivenBy::Next) => self.with_sequence(&table, column, &called),
                // It is refused where it is written.
                _ => {}
            }
        }
    }

    /// Chooses the name of the sequence of a column (`ChooseRelationName` of the server). `chosen`
    /// are those of the same statement.
    fn sequence_name(&self, table: &str, column: &str, chosen: &[String]) -> String {
        let catalog = self.edits.basis.catalog;
        // A temporary table may have the name of a permanent one.
        let of_another =
            |called: &str| catalog.key_sequence(called).is_some_and(|(owner, _)| owner != table);
        let mut called = object_name(table, column, ENDING);
        let mut number = 0;
        while chosen.contains(&called) || !is_free(catalog, &called) || of_another(&called) {
            number += 1;
            called = object_name(table, column, &format!("{ENDING}{number}"));
        }
        called
    }

    /// Gives a SERIAL column that is no key its sequence.
    fn with_sequence(&mut self, table: &str, column: &mut Declared, called: &str) {
        let sequence = Sequence {
            is: column.is,
            start: 1,
            increment: 1,
            minimum: 1,
            maximum: largest(column.is),
            cache: 1,
            cycle: false,
            owner: Some((table.to_owned(), column.name.clone())),
        };
        self.edits.follow_ups.push(FollowUp::Sqlite(definition(called, &sequence)));
        self.edits.follow_ups.push(FollowUp::Sqlite(first_row(called, 1)));
        column.given = GivenBy::Statement;
        let not_null = if column.rest.contains(" NOT NULL") { "" } else { " NOT NULL" };
        let default = format!("{not_null} DEFAULT ({NEXT}({}))", text_literal(called));
        column.rest.push_str(&default);
    }
}

//! The judge: compares two answers, and says which differences are faults.
//!
//! Two answers are the same if their rows, the names and types of their columns and their command
//! tags are. Rows without an ORDER BY may come in any order. Two errors are the same if their
//! SQLSTATEs are. If SQLite refuses a statement that PostgreSQL accepts, its error needs a hint.

use super::wire::Answer;

/// Calls whose values may differ, and why. Names, types and the command tag must agree.
const ALLOWED: &[(&str, &str)] = &[
    ("version()", "Refrain has its own version"),
    ("pg_backend_pid()", "the two sessions have different process ids"),
    ("random()", "random values differ"),
    ("gen_random_uuid()", "random values differ"),
    ("now()", "the statements run at different times"),
    ("current_timestamp", "the statements run at different times"),
    ("localtimestamp", "the statements run at different times"),
];

/// Parts of statements whose rows may differ, and why. Names and types must agree.
const OPEN: &[(&str, &str)] = &[
    ("from pg_settings", "the two servers have different settings"),
    (
        "first_emp = 1 or last_emp = 1",
        "two rows have one date: SQL leaves open which comes first, and PostgreSQL's two sorts \
         always disagree",
    ),
];

fn opens(statement: &str) -> bool {
    OPEN.iter().any(|(words, _)| statement.contains(words))
}

/// The verdict on the two answers to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The same answer.
    Same,
    /// The same error.
    BothRefuse,
    /// Both refuse the statement, SQLite with another SQLSTATE and a hint.
    BothRefuseWithHint,
    RefusedWithHint,
    DiffersAsItMay,
    /// PostgreSQL's own answer depends on the place of its rows ([`super::settled`]).
    LeftOpen,
    /// Both refuse the statement, SQLite with another SQLSTATE and without a hint.
    BothRefuseWithoutHint,
    RefusedWithoutHint,
    Differs,
    AnsweredHereOnly,
}

impl Verdict {
    pub(super) fn is_fault(self) -> bool {
        self >= Verdict::BothRefuseWithoutHint
    }
}

/// The judge of a script's statements, in their order.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Tables with a key declared INTEGER, spelled in full: SQLite fills such a key itself
    /// (`docs/sqlite.md`).
    numbered: Vec<String>,
}

impl Judge {
    pub(super) fn verdict(&mut self, statement: &str, here: &Answer, there: &Answer) -> Verdict {
        let lower = statement.to_ascii_lowercase();
        self.note(&lower);
        let may = ALLOWED.iter().any(|(words, _)| lower.contains(words));
        match (&here.error, &there.error) {
            (Some(ours), Some(theirs)) if ours.sqlstate == theirs.sqlstate => Verdict::BothRefuse,
            (Some(ours), Some(_)) if ours.hint.is_empty() => Verdict::BothRefuseWithoutHint,
            (Some(_), Some(_)) => Verdict::BothRefuseWithHint,
            (Some(ours), None) if ours.hint.is_empty() => Verdict::RefusedWithoutHint,
            (Some(_), None) => Verdict::RefusedWithHint,
            (None, Some(theirs)) if theirs.sqlstate == "23502" && self.is_numbered(&lower) => {
                Verdict::DiffersAsItMay
            }
            (None, Some(_)) => Verdict::AnsweredHereOnly,
            (None, None) if same(&lower, here, there) => Verdict::Same,
            (None, None) if may && alike(here, there) => Verdict::DiffersAsItMay,
            (None, None) if opens(&lower) && here.columns == there.columns => {
                Verdict::DiffersAsItMay
            }
            (None, None) => Verdict::Differs,
        }
    }

    fn note(&mut self, statement: &str) {
        let words: Vec<&str> = words(statement).collect();
        if let ["create", "table", table, ..] | ["create", "temp", "table", table, ..] = words[..]
            && words.windows(3).any(|three| three == ["integer", "primary", "key"])
        {
            self.numbered.push(table.to_owned());
        }
    }

    fn is_numbered(&self, statement: &str) -> bool {
        let into = words(statement).skip_while(|word| *word != "into").nth(1);
        into.is_some_and(|table| self.numbered.iter().any(|known| known == table))
    }
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    let other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    statement.split(other).filter(|word| !word.is_empty())
}

/// Whether two answers have the same columns and command tag.
fn alike(here: &Answer, there: &Answer) -> bool {
    here.columns == there.columns && here.tag == there.tag
}

/// Returns PostgreSQL's answer without the sign of zeros: SQLite's zero has none
/// (`docs/sqlite.md`).
fn without_signs(there: &Answer) -> Answer {
    let mut there = there.clone();
    for (index, (_, oid)) in there.columns.iter().enumerate() {
        if ![700, 701].contains(oid) {
            continue;
        }
        for value in there.rows.iter_mut().filter_map(|row| row.get_mut(index)) {
            if value.as_deref() == Some(b"-0") {
                *value = Some(b"0".to_vec());
            }
        }
    }
    there
}

/// Whether two answers are the same. Rows without an ORDER BY may come in any order.
fn same(statement: &str, here: &Answer, there: &Answer) -> bool {
    if !alike(here, there) {
        return false;
    }
    let there = without_signs(there);
    if here.rows == there.rows && here.sums == there.sums {
        return true;
    }
    let sorted = |answer: &Answer| {
        let mut rows = answer.rows.clone();
        rows.sort();
        (rows, answer.sums.map(|sums| sums.unordered))
    };
    // An ORDER BY in parentheses orders no rows outside of them.
    let outside = statement.rsplit(')').next().unwrap_or(statement);
    let ordered =
        outside.contains("order by") || !statement.contains('(') && statement.contains("order by");
    !ordered && sorted(here) == sorted(&there)
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Answer, Refusal};
    use super::*;

    fn refused(sqlstate: &str, hint: &str) -> Answer {
        let error =
            Refusal { sqlstate: sqlstate.to_owned(), hint: hint.to_owned(), ..Refusal::default() };
        Answer { error: Some(error), ..Answer::default() }
    }

    fn answered(name: &str, value: &str) -> Answer {
        let rows = vec![vec![Some(value.as_bytes().to_vec())]];
        let columns = vec![(name.to_owned(), 25)];
        Answer { columns, rows, tag: "SELECT 1".to_owned(), ..Answer::default() }
    }

    #[test]
    fn what_is_not_the_same_comes_with_a_hint() {
        let mut judge = Judge::default();
        let ok = answered("a", "1");
        for (here, there, expected) in [
            (refused("22012", ""), refused("22012", ""), Verdict::BothRefuse),
            (refused("0A000", "so"), refused("22012", ""), Verdict::BothRefuseWithHint),
            (refused("0A000", ""), refused("22012", ""), Verdict::BothRefuseWithoutHint),
            (refused("0A000", "so"), ok.clone(), Verdict::RefusedWithHint),
            (refused("0A000", ""), ok.clone(), Verdict::RefusedWithoutHint),
            (ok.clone(), refused("23502", ""), Verdict::AnsweredHereOnly),
            (ok.clone(), ok.clone(), Verdict::Same),
            (ok.clone(), answered("a", "2"), Verdict::Differs),
        ] {
            assert_eq!(judge.verdict("insert into t values (1)", &here, &there), expected);
        }
    }

    #[test]
    fn what_may_differ_differs_in_its_values_only() {
        let mut judge = Judge::default();
        let (one, two) = (answered("now", "1"), answered("now", "2"));
        assert_eq!(judge.verdict("select now()", &one, &two), Verdict::DiffersAsItMay);
        let other = answered("moment", "2");
        assert_eq!(judge.verdict("select now()", &one, &other), Verdict::Differs);
        let missing = refused("23502", "");
        judge.verdict("create table T (a integer primary key)", &one, &one);
        let insert = "insert into t default values";
        assert_eq!(judge.verdict(insert, &one, &missing), Verdict::DiffersAsItMay);
    }
}

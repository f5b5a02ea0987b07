//! The judge: compares two answers, and says which differences are faults.
//!
//! Two answers are the same if their rows, the names and types of their columns and their command
//! tags are. Rows without an ORDER BY may come in any order. Two errors are the same if their
//! SQLSTATEs are. If SQLite refuses a statement that PostgreSQL accepts, its error needs a hint.

use super::wire::{Answer, Refusal};

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
    ("reltoastrelid", "there are no TOAST tables"),
    ("pg_proc", "PostgreSQL's own functions are not listed"),
    ("pg_rewrite", "there are no rules"),
    ("where relname = 'pg_class'", "the catalog does not list its own relations"),
    ("amhandler", "the access methods have no handlers"),
    ("nspname like 'pg_temp%'", "temporary objects are not in the catalog"),
    ("'tp_pkey', 'tp_b_a_key'", "temporary objects are not in the catalog"),
    ("^unlogged\\d", "temporary objects are not in the catalog, and all tables are logged"),
    ("view_definition", "the queries of views are SQLite's"),
    ("pg_get_viewdef(", "the queries of views are SQLite's"),
    ("from information_schema.views", "the queries of views are SQLite's"),
    ("log_cnt in (31, 32)", "log_cnt counts changes"),
    ("relname = 'disappear'", "OIDs differ"),
    ("from pg_type as t1", "the catalog has the types that are supported, not how they are stored"),
    ("pg_views", "the catalog does not list its own views"),
    ("pg_rules", "there are no rules"),
    ("relnamespace = 'pg_catalog'::regnamespace", "the catalog does not list its own relations"),
    ("where indrelid < 16384", "the catalog does not list its own relations"),
    ("relreplident from pg_class where oid = 'pg_", "the catalog does not list its own relations"),
    ("pg_get_indexdef('concur_exprs", "expressions of indexes are SQLite's"),
    ("collate_test%_idx%", "the only collation is not written"),
    (
        "first_emp = 1 or last_emp = 1",
        "two rows have one date: SQL leaves open which comes first, and PostgreSQL's two sorts \
         always disagree",
    ),
];

/// Parts of statements of which any answer will do, and why.
const FREE: &[(&str, &str)] = &[
    ("has_table_privilege", "there are no roles: every privilege is given"),
    ("has_any_column_privilege", "there are no roles: every privilege is given"),
    ("has_column_privilege", "there are no roles: every privilege is given"),
    ("has_schema_privilege", "there are no roles: every privilege is given"),
    ("has_sequence_privilege", "there are no roles: every privilege is given"),
    ("pg_partition_ancestors", "there are no partitions: nothing has a row"),
    ("lock_view7", "SQLite has no view that reads itself"),
    ("drop view lock_view3", "SQLite has no view that reads itself"),
];

/// Statements that SQLite alone answers: a word of the statement, PostgreSQL's SQLSTATE, and why.
const ALONE: &[(&str, &str, &str)] = &[
    ("", "25001", "the scripts run in a transaction block"),
    ("", "55006", "SQLite counts violated keys, and has no pending events"),
    ("authorization", "42704", "there are no roles"),
    ("repeat('x*y*z*', 1000)", "2201B", "the other engine of regular expressions has room"),
    ("to_regnamespace('foo.bar')", "42602", "a name with a dot is one of no schema"),
    ("\"posix\"", "42P21", "\"C\" and \"POSIX\" are one collation"),
];

fn may_answer_alone(statement: &str, theirs: &Refusal) -> bool {
    let is = |(words, sqlstate, _): &(&str, &str, &str)| {
        statement.contains(words) && theirs.sqlstate == *sqlstate
    };
    ALONE.iter().any(is)
}

/// OIDs of PostgreSQL's types, and of the types that stand for them here: trees of its parser are
/// texts, and arrays of types those of their OIDs.
const STAND_INS: &[(u32, u32)] = &[(194, 25), (2211, 1028)];

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
    /// True if both answer the same, or refuse the statement with the same SQLSTATE.
    pub(super) fn is_alike(self) -> bool {
        matches!(self, Verdict::Same | Verdict::BothRefuse)
    }

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
        if FREE.iter().any(|(words, _)| lower.contains(words)) && here != there {
            return Verdict::DiffersAsItMay;
        }
        let may = ALLOWED.iter().any(|(words, _)| lower.contains(words));
        match (&here.error, &there.error) {
            (Some(ours), Some(theirs)) if ours.sqlstate == theirs.sqlstate => Verdict::BothRefuse,
            (_, Some(theirs)) if may_answer_alone(&lower, theirs) => Verdict::DiffersAsItMay,
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
    let columns = here.columns.iter().zip(&there.columns);
    let mut all = columns.map(|((ours, is), (theirs, of))| {
        ours == theirs
            && (is == of || is_own(*is) && is_own(*of) || STAND_INS.contains(&(*of, *is)))
    });
    here.columns.len() == there.columns.len() && all.all(|same| same) && here.tag == there.tag
}

/// The first OID of an object that a client has made.
const FIRST_OWN_OID: u32 = 16_384;

/// True if a type is one that a client has made: each side gives it an OID of its own.
fn is_own(oid: u32) -> bool {
    oid >= FIRST_OWN_OID
}

/// Returns an answer without the sign of zeros: SQLite's zero has none where it was stored
/// (`docs/sqlite.md`).
fn without_signs(answer: &Answer) -> Answer {
    let mut there = answer.clone();
    for (index, (_, oid)) in answer.columns.iter().enumerate() {
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
    let (here, there) = (&without_signs(here), without_signs(there));
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

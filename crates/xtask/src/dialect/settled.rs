//! Answers that SQL leaves open: the order of equal rows decides what a window or an aggregate
//! takes first.
//!
//! The statement runs in PostgreSQL again and again, with the tables' rows in random places and
//! with other plans. A part of the answer that varies is left open. A part that is the same each
//! time must be the same in SQLite.

use super::wire::{Answer, Wire};

use anyhow::Result;

/// SQL that puts the rows of all tables into random order.
const MOVE: &str = "DO $$ DECLARE t regclass; list text; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND NOT relispartition
        AND relnamespace IN ('public'::regnamespace, pg_my_temp_schema()) LOOP
      BEGIN
        SELECT string_agg(quote_ident(attname), ', ') INTO list FROM pg_attribute
            WHERE attrelid = t AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        EXECUTE format('CREATE TEMP TABLE moved_rows AS SELECT %s FROM ONLY %s ORDER BY random()',
            list, t);
        EXECUTE format('DELETE FROM ONLY %s', t);
        EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT * FROM moved_rows',
            t, list);
        DROP TABLE moved_rows;
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
    SET LOCAL session_replication_role = origin;
  END $$";

/// Settings that make PostgreSQL choose other plans, one after the other.
const PLANS: &[&str] = &[
    "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; \
     SET LOCAL enable_bitmapscan = off",
    "SET LOCAL enable_hashagg = off; SET LOCAL enable_hashjoin = off",
    "SET LOCAL enable_sort = off; SET LOCAL enable_mergejoin = off",
];

/// The most runs with each of them.
const ROUNDS: usize = 6;

/// Whether PostgreSQL might have given SQLite's answer to a statement that ran after the savepoint
/// `s`. PostgreSQL runs the statement once more at the end, so that its effects are there.
pub(super) fn is_left_open(
    there: &mut Wire,
    statement: &str,
    here: &Answer,
    first: &Answer,
) -> Result<bool> {
    // Order changes no names, types or numbers of rows; and sums have no columns to compare.
    if !is_alike(here, first) || here.sums.is_some() {
        return Ok(false);
    }
    let mut all = vec![first.clone()];
    for plan in PLANS.iter().cycle().take(PLANS.len() * ROUNDS) {
        there.query("ROLLBACK TO s")?;
        there.query(plan)?;
        there.query(MOVE)?;
        all.push(there.query(statement)?);
        if agrees(here, &all) {
            break;
        }
    }
    there.query("ROLLBACK TO s")?;
    there.query(statement)?;
    Ok(agrees(here, &all))
}

/// Whether PostgreSQL's answers vary, and SQLite's agrees with them in every column in which they
/// do not.
pub(super) fn agrees(here: &Answer, there: &[Answer]) -> bool {
    let Some((first, rest)) = there.split_first() else { return false };
    if !is_alike(here, first) || !rest.iter().all(|answer| is_alike(answer, first)) {
        return false;
    }
    let varies = rest.iter().any(|answer| answer.rows != first.rows);
    let agrees = |column: usize| {
        [in_order, sorted].iter().all(|read| {
            let wanted = read(first, column);
            let stable = rest.iter().all(|answer| read(answer, column) == wanted);
            !stable || read(here, column) == wanted
        })
    };
    varies && (0..first.columns.len()).all(agrees)
}

fn is_alike(one: &Answer, other: &Answer) -> bool {
    one.columns == other.columns && one.tag == other.tag
}

type Values<'a> = Vec<Option<&'a [u8]>>;

fn in_order(answer: &Answer, column: usize) -> Values<'_> {
    answer.rows.iter().map(|row| row.get(column).and_then(|value| value.as_deref())).collect()
}

fn sorted(answer: &Answer, column: usize) -> Values<'_> {
    let mut values = in_order(answer, column);
    values.sort_unstable();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[[&str; 2]]) -> Answer {
        let columns = vec![("a".to_owned(), 23), ("b".to_owned(), 23)];
        let row = |row: &[&str; 2]| row.iter().map(|it| Some(it.as_bytes().to_vec())).collect();
        let rows = rows.iter().map(row).collect();
        Answer { columns, rows, ..Answer::default() }
    }

    #[test]
    fn what_is_the_same_each_time_must_be_the_same_here() {
        let one = answer(&[["1", "x"], ["1", "y"]]);
        let two = answer(&[["1", "y"], ["1", "x"]]);
        assert!(agrees(&one, &[two.clone(), one.clone()]));
        assert!(!agrees(&one, &[two.clone(), two.clone()]), "it is settled");
        let other = answer(&[["1", "y"], ["1", "z"]]);
        assert!(!agrees(&other, &[two.clone(), one.clone()]), "there is no z");
        let last = answer(&[["1", "y"], ["2", "x"]]);
        assert!(!agrees(&last, &[two, one]), "there is no 2");
    }
}

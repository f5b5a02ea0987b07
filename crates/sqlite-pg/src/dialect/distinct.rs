//! DISTINCT ON: of the rows with the same values, the first in the query's order.
//!
//! SQLite numbers the rows with the same values in that order, and a query around takes the first
//! of each.

use crate::failure::Failure;

use super::hints;
use super::sequence_calls::takes_numbers;
use super::targets::Sorted;
use super::value::{Expr, name};

/// The name of a row's number among those with the same values.
const NUMBER: &str = "refrain_number";

/// The DISTINCT ON of a query, with its ORDER BY.
pub(super) struct DistinctOn {
    pub(super) by: Vec<Expr>,
    pub(super) order: Vec<Sorted>,
}

/// Returns a name for the column of a query at a place.
pub(super) fn own_name(place: usize) -> String {
    format!("refrain_column_{place}")
}

/// Checks that the order begins with the values of DISTINCT ON (`transformDistinctOnClause` of the
/// server).
///
/// # Errors
/// 42P10.
pub(super) fn begins_with(by: &[Expr], order: &[Sorted]) -> Result<(), Failure> {
    let is_by = |sorted: &Sorted| by.iter().any(|value| value.sql == sorted.value.sql);
    let first = order.iter().take_while(|sorted| is_by(sorted)).count();
    let missing = |value: &&Expr| !order[..first].iter().any(|it| it.value.sql == value.sql);
    if first < order.len() && (order[first..].iter().any(is_by) || by.iter().any(|it| missing(&it)))
    {
        let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
        return Err(Failure::new("42P10", message));
    }
    Ok(())
}

impl DistinctOn {
    /// Returns its expressions, and those of the order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Expr> {
        self.by.iter().chain(self.order.iter().map(|sorted| &sorted.value)).cloned()
    }

    /// Writes the query. `columns` are its columns with their names, `rest` is SQLite's text from
    /// FROM on, without ORDER BY and LIMIT.
    ///
    /// # Errors
    /// 0A000 for a query that takes numbers of sequences, which would be taken for all rows.
    pub(super) fn written(
        &self,
        columns: &[(String, &str)],
        rest: &str,
    ) -> Result<String, Failure> {
        let column = own_name;
        let (mut inside, mut outside) = (vec![], vec![]);
        for (place, (sql, called)) in columns.iter().enumerate() {
            inside.push(sql.clone());
            outside.push(format!("{} AS {}", column(place), name(called)));
        }
        let mut order = vec![];
        for sorted in &self.order {
            let place = sorted.target.unwrap_or_else(|| added(&mut inside, &sorted.value.sql));
            order.push(format!("{}{}", sorted.by(&column(place)), sorted.tail));
        }
        let by = self.by.iter().map(|value| column(added(&mut inside, &value.sql)));
        let by: Vec<String> = by.collect();
        let order = if order.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", order.join(", "))
        };
        let named =
            inside.iter().enumerate().map(|(place, sql)| format!("{sql} AS {}", column(place)));
        let sql = format!(
            "SELECT {} FROM (SELECT *, row_number() OVER (PARTITION BY {}{order}) AS {NUMBER} \
             FROM (SELECT {}{rest})) WHERE {NUMBER} = 1{order}",
            outside.join(", "),
            by.join(", "),
            named.collect::<Vec<_>>().join(", ")
        );
        if takes_numbers(&sql) {
            return Err(hints::refuse("DISTINCT ON"));
        }
        Ok(sql)
    }
}

/// Returns the place of a column with this SQL, which is added if there is none.
fn added(columns: &mut Vec<String>, sql: &str) -> usize {
    columns.iter().position(|known| known == sql).unwrap_or_else(|| {
        columns.push(sql.to_owned());
        columns.len() - 1
    })
}

//! Rules for every row of every table.

use std::collections::BTreeSet;

use crate::cache::{CacheOptions, CacheRule};
use crate::database::DatabaseKeys;
use crate::general::General;
use crate::peer::PeerKeys;
use crate::pool::PoolOptions;
use crate::table::{Row, Table};
use crate::user::UserKeys;
use crate::value::Given;

fn text(text: &str) -> Given {
    Given::Text(text.to_owned())
}

fn check<T: Table + PartialEq>() {
    for row in T::ROWS {
        documented(row);
        default_is_canonical(row);
        examples_hold(row);
    }
}

fn documented<T>(row: &Row<T>) {
    assert!(row.summary().ends_with('.'), "{}: the first paragraph is a sentence", row.name);
    assert!(row.summary().len() <= 100, "{}: the first paragraph is short", row.name);
}

/// Checks that the default is within the bounds, and written as it is shown.
fn default_is_canonical<T: Table>(row: &Row<T>) {
    let Some(default) = row.default else { return };
    let mut table = T::default();
    assert_eq!((row.show)(&table), default, "{}", row.name);
    row.set(&mut table, &text(default)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
    assert_eq!((row.show)(&table), default, "{}", row.name);
}

fn examples_hold<T: Table + PartialEq>(row: &Row<T>) {
    for taken in row.takes {
        let mut table = T::default();
        row.set(&mut table, &text(taken)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        assert!(!(row.same)(&table, &T::default()), "{} = {taken} is the default", row.name);
        let mut copy = T::default();
        (row.copy)(&mut copy, &table);
        assert!(copy == table, "{} = {taken} is copied", row.name);
    }
    for refused in row.refuses {
        let error = row.set(&mut T::default(), &text(refused)).expect_err(row.name);
        assert!(error.starts_with("expected "), "{}: {error}", row.name);
    }
    if let Some((least, greatest)) = row.bounds {
        for bound in [least, greatest] {
            assert_eq!(row.set(&mut T::default(), &text(bound)), Ok(()), "{}", row.name);
        }
    }
}

#[test]
fn every_row_keeps_the_rules() {
    check::<General>();
    check::<PoolOptions>();
    check::<DatabaseKeys>();
    check::<UserKeys>();
    check::<PeerKeys>();
    check::<CacheOptions>();
    check::<CacheRule>();
}

/// In a URL, an option is identified by its name alone. Those with which a database differs from
/// the program as a whole are the database's there, which comes to the same.
#[test]
fn names_are_unique() {
    let both = ["auth_user", "auth_query", "auth_dbname"];
    let names = General::ROWS.iter().map(|row| row.name).filter(|name| !both.contains(name));
    let names = names.chain(PoolOptions::ROWS.iter().map(|row| row.name));
    let names: Vec<_> = names.chain(DatabaseKeys::ROWS.iter().map(|row| row.name)).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

//! The workloads: statements with literals, as scripts of pgbench.
//!
//! With the simple protocol pgbench replaces the name of a variable by its value everywhere, also
//! within a string or a name. So a script can put random values into a string, and give a column a
//! new name in each text.

use std::fmt::Write as _;

use crate::bench::rounds::SCALE;

/// Number of rows of one INSERT.
const INSERTED: usize = 100;
/// Number of rows of the join's first table.
const LINES: u32 = 20_000;

/// A statement whose literals differ each time.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// The least ratio of the server's CPU time without autoprepare to that with it.
    pub(super) bar: f64,
    pub(super) script: String,
    /// SQL to run before each measurement.
    pub(super) before: Option<&'static str>,
}

/// Returns the workloads that autoprepare can prepare.
pub(super) fn workloads() -> Vec<Workload> {
    let accounts = SCALE * 100_000;
    let select = format!(
        "\\set aid random(1, {accounts})\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    );
    let update = format!(
        "\\set aid random(1, {accounts})\n\
         \\set delta random(1, 5000)\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
    );
    let workload = |name, bar, script| Workload { name, bar, script, before: None };
    vec![
        workload("SELECT by key", 1.3, select),
        workload("UPDATE by key", 1.3, update),
        workload("join of 4 by key", 4.0, join()),
        Workload {
            name: "INSERT of 100 rows of int, int, text",
            bar: 2.0,
            script: insert("entries", |a, b, _| format!("{a}, {b}, 'entry {a} of {b}'")),
            before: Some("TRUNCATE entries"),
        },
        Workload {
            name: "INSERT of 100 rows of bigint, int, varchar(40), numeric(10,2), timestamp, text",
            bar: 2.0,
            script: insert("events", |a, b, day| {
                let time = format!("'2026-11-{day} 10:30:00'");
                format!("{a}, {b}, 'name of {a}', {b}.25, {time}, 'event {a} of {b}'")
            }),
            before: Some("TRUNCATE events"),
        },
    ]
}

/// Returns a lookup with a different normalized query each time: the column's name has 62 random
/// bits.
pub(super) fn novel() -> String {
    let accounts = SCALE * 100_000;
    format!(
        "\\set aid random(1, {accounts})\n\
         \\set name random(1, 4611686018427387904)\n\
         SELECT abalance AS c:name FROM pgbench_accounts WHERE aid = :aid;\n"
    )
}

/// Returns SQL that creates the tables which pgbench does not create.
pub(super) fn tables() -> String {
    format!(
        "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL); \
         CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL); \
         CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL, \
         customer_id int NOT NULL REFERENCES customers); \
         CREATE TABLE lines (id int PRIMARY KEY, amount int NOT NULL, \
         order_id int NOT NULL REFERENCES orders, product_id int NOT NULL REFERENCES products); \
         CREATE TABLE entries (number int, amount int, note text); \
         CREATE TABLE events (id bigint, customer int, name varchar(40), price numeric(10,2), \
         at timestamp, note text); \
         INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(1, 3000) n; \
         INSERT INTO products SELECT n, 'product ' || n, n % 500 FROM generate_series(1, 2000) n; \
         INSERT INTO orders SELECT n, CASE n % 3 WHEN 0 THEN 'open' ELSE 'sent' END, n % 3000 + 1 \
         FROM generate_series(1, 8000) n; \
         INSERT INTO lines SELECT n, n % 9 + 1, n % 8000 + 1, n % 2000 + 1 \
         FROM generate_series(1, {LINES}) n; \
         ANALYZE"
    )
}

fn join() -> String {
    format!(
        "\\set id random(1, {LINES})\n\
         \\set price random(400, 600)\n\
         SELECT c.name, p.name, o.status, l.amount FROM lines l \
         JOIN orders o ON o.id = l.order_id \
         JOIN customers c ON c.id = o.customer_id \
         JOIN products p ON p.id = l.product_id \
         WHERE l.id = :id AND p.price < :price AND o.status <> 'returned';\n"
    )
}

/// Returns a script with one INSERT of 100 rows. Ten variables for each of two numbers make a
/// hundred pairs; a day has two digits. `row` writes the values of one row from the names of its
/// three variables.
fn insert(table: &str, row: impl Fn(&str, &str, &str) -> String) -> String {
    let mut script = String::new();
    for n in 0..10 {
        for (variable, bounds) in [("a", "1, 1000000"), ("b", "1, 1000000"), ("day", "10, 28")] {
            let _ = writeln!(script, "\\set {variable}{n} random({bounds})");
        }
    }
    let rows = (0..INSERTED).map(|place| {
        let (tens, ones) = (place / 10, place % 10);
        row(&format!(":a{tens}"), &format!(":b{ones}"), &format!(":day{ones}"))
    });
    let rows: Vec<String> = rows.map(|row| format!("({row})")).collect();
    let _ = writeln!(script, "INSERT INTO {table} VALUES {};", rows.join(", "));
    script
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the names after a colon or a `\set`.
    fn names<'a>(script: &'a str, before: &str) -> BTreeSet<&'a str> {
        let parts = script.split(before).skip(1);
        let names = parts.filter_map(|part| part.split(|c: char| !c.is_alphanumeric()).next());
        names.filter(|name| name.starts_with(char::is_alphabetic)).collect()
    }

    #[test]
    fn scripts_have_one_statement_and_set_what_it_uses() {
        let scripts = workloads().into_iter().map(|workload| workload.script);
        for script in scripts.chain([novel()]) {
            let statements: Vec<_> =
                script.lines().filter(|line| !line.starts_with('\\')).collect();
            assert!(matches!(statements[..], [one] if one.ends_with(';')), "{script}");
            assert!(names(&script, "\\set ").is_superset(&names(statements[0], ":")), "{script}");
        }
    }

    #[test]
    fn an_insert_has_its_rows_all_different() {
        let script = insert("t", |a, b, day| format!("{a}, {b}, '{day}'"));
        let (_, rows) = script.split_once("VALUES ").unwrap();
        let rows: BTreeSet<_> = rows.trim_end_matches(";\n").split("), ").collect();
        assert_eq!(rows.len(), INSERTED);
        assert!(rows.contains("(:a4, :b2, ':day2'"), "{rows:?}");
    }
}

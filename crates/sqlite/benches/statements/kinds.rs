//! Kinds of statements, in memory on one connection; and texts that come once.

use std::cell::Cell;

use refrain_sqlite::{Connection, Database, Step, Value};
use rusqlite::Connection as Theirs;

use crate::cpu;
use crate::table::{head, judged, line, micros, passes, ratio};
use crate::world::options;

/// Executions in one pass.
const COUNT: usize = 3_000;

const SCHEMA: &[&str] = &[
    "CREATE TABLE monster (id INTEGER PRIMARY KEY, name TEXT, hp INTEGER, attack INTEGER)",
    "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE post (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT, day INTEGER)",
    "CREATE INDEX post_author ON post (author_id)",
    "CREATE TABLE comment (id INTEGER PRIMARY KEY, post_id INTEGER, body TEXT)",
    "CREATE INDEX comment_post ON comment (post_id)",
    "CREATE TABLE log (id INTEGER, text TEXT)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
     INSERT INTO monster SELECT i, 'monster ' || i, i * 7 % 100, i % 13 FROM n",
    "INSERT INTO author SELECT id, 'author ' || id FROM monster",
    "INSERT INTO post SELECT m.id * 3 + k.id, m.id, 'post ' || m.id, k.id
     FROM monster m, monster k WHERE k.id <= 3",
    "INSERT INTO comment SELECT NULL, id, 'comment' FROM post",
];

/// A kind, its text, and how many times cheaper a kept statement must be.
const KINDS: &[(&str, &str, f64)] = &[
    ("look-up", "SELECT id, name, hp, attack FROM monster WHERE id = ?", 2.2),
    (
        "join of three",
        "SELECT a.name, p.title, c.body FROM author a JOIN post p ON p.author_id = a.id
         JOIN comment c ON c.post_id = p.id WHERE a.id = ? ORDER BY p.day DESC LIMIT 3",
        3.0,
    ),
    (
        "subqueries",
        "SELECT name, (SELECT count(*) FROM post WHERE author_id = a.id),
         (SELECT max(day) FROM post WHERE author_id = a.id),
         EXISTS (SELECT 1 FROM comment WHERE post_id = a.id * 3 + 1) FROM author a WHERE id = ?",
        5.0,
    ),
    (
        "upsert returning",
        "INSERT INTO monster (id, name, hp, attack) VALUES (?1, 'monster ' || ?1, ?1 % 100, ?1 % 13)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, hp = excluded.hp,
         attack = excluded.attack RETURNING id, hp, attack",
        3.5,
    ),
    ("insert", "INSERT INTO log VALUES (?, 'something')", 1.0),
];

fn ours(size: usize) -> Connection {
    let connection = Database::new(":memory:", options(size)).connect().unwrap();
    for sql in SCHEMA {
        connection.execute(sql, &[]).unwrap();
    }
    connection
}

fn run_ours(connection: &Connection, sql: &str, id: i64) {
    let mut run = connection.statement(sql).unwrap().start();
    run.bind(1, Value::Integer(id)).unwrap();
    while run.step() == Ok(Step::Row) {
        std::hint::black_box(run.column(0));
    }
}

fn run_theirs(connection: &Theirs, sql: &str, id: i64) {
    let mut statement = connection.prepare_cached(sql).unwrap();
    let mut rows = statement.query([id]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        std::hint::black_box(row.get_ref(0).unwrap());
    }
}

fn pass(each: impl Fn(i64)) -> f64 {
    cpu::each(COUNT, || (0..COUNT as i64).for_each(|turn| each(turn % 1000 + 1)))
}

/// Measures and prints kinds of statements.
pub(crate) fn run(count: usize) {
    let title =
        "Kinds of statements, in memory, one connection: CPU µs each, and uncached by cached.";
    head(
        title,
        &[
            "kind",
            "ours, uncached",
            "ours, cached",
            "uncached / cached",
            "rusqlite `prepare_cached`",
            "/ ours",
        ],
    );
    let (plain, kept, other) = (ours(0), ours(16), Theirs::open_in_memory().unwrap());
    for sql in SCHEMA {
        other.execute(sql, []).unwrap();
    }
    for (kind, sql, bar) in KINDS {
        let times = passes(
            count,
            &mut [
                &mut || pass(|id| run_ours(&plain, sql, id)),
                &mut || pass(|id| run_ours(&kept, sql, id)),
                &mut || pass(|id| run_theirs(&other, sql, id)),
            ],
        );
        line(&[
            (*kind).to_owned(),
            micros(&times[0]),
            micros(&times[1]),
            judged(ratio(&times[0], &times[1]), *bar),
            micros(&times[2]),
            format!("{:.2}", ratio(&times[2], &times[1])),
        ]);
    }
    let stats = kept.cache_stats();
    println!(
        "\nCompiled anew by SQLite in {} cached executions: {}.",
        stats.hits, stats.reprepares
    );
}

/// Measures and prints the cost of texts that come once.
pub(crate) fn run_one_offs(count: usize) {
    let (plain, kept) = (ours(0), ours(16));
    let next = Cell::new(0);
    let once = |connection: &Connection| {
        pass(|id| {
            next.set(next.get() + 1);
            let number: i64 = next.get();
            let sql =
                format!("SELECT id, name, hp, attack FROM monster WHERE id = ? AND {number} > 0");
            run_ours(connection, &sql, id);
        })
    };
    let times = passes(count, &mut [&mut || once(&plain), &mut || once(&kept)]);
    head("Every text once: CPU µs each.", &["no cache", "cache of 16", "cache / no cache"]);
    let costs = ratio(&times[1], &times[0]);
    let verdict = if costs <= 1.10 { "" } else { ", **missed**" };
    line(&[micros(&times[0]), micros(&times[1]), format!("{costs:.2} (≤ 1.10{verdict})")]);
}

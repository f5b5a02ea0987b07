//! Stopping statements: by steps, by time, from another thread, and never the wrong one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refrain_sqlite::{Connection, Error, Interruption, Limits};

use crate::{memory, rows, run};

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn endless(connection: &Connection) -> Error {
    connection.execute(ENDLESS, &[]).unwrap_err()
}

#[test]
fn steps_and_moments_are_limits() {
    let connection = memory(4);
    let limits =
        |steps, deadline| connection.set_limits(Limits { steps, deadline, ..Limits::default() });
    limits(Some(5_000), None);
    assert_eq!(endless(&connection).interruption, Some(Interruption::Steps));
    limits(None, Some(Instant::now() + Duration::from_millis(5)));
    assert_eq!(endless(&connection).interruption, Some(Interruption::Deadline));
    limits(None, None);
    assert_eq!(rows(&connection, "SELECT 1", &[]), ["1"]);
}

#[test]
fn short_statements_pass_any_number_of_times_under_a_limit() {
    let connection = memory(4);
    for _ in 0..1000 {
        connection.set_limits(Limits { steps: Some(1000), deadline: None, ..Limits::default() });
        assert_eq!(rows(&connection, "SELECT 1", &[]), ["1"]);
    }
}

#[test]
fn an_interrupt_stops_the_job_it_names() {
    let connection = memory(4);
    let interrupter = connection.interrupter();
    assert!(!interrupter.interrupt(1), "there is no job");
    let stop = thread::spawn(move || {
        while !interrupter.interrupt(7) {
            thread::yield_now();
        }
        // The interrupt may have come between two statements, so it is repeated until the job ends.
        while interrupter.interrupt(7) {
            thread::yield_now();
        }
    });
    let job = connection.job(7);
    assert_eq!(endless(&connection).interruption, Some(Interruption::Cancel));
    drop(job);
    stop.join().unwrap();
    assert_eq!(rows(&connection, "SELECT 1", &[]), ["1"]);
}

#[test]
fn a_late_interrupt_does_not_hit_the_next_job() {
    let connection = memory(4);
    run(&connection, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    let interrupter = connection.interrupter();
    let (current, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                interrupter.interrupt(current.load(Ordering::Relaxed));
            }
        });
        // The other thread stops odd jobs, or tries to until they are over.
        for token in 1..=20_000 {
            if token % 2 == 1 {
                current.store(token, Ordering::Relaxed);
            }
            let job = connection.job(token);
            let done = connection.execute("SELECT * FROM t", &[]);
            drop(job);
            assert!(token % 2 == 1 || done.is_ok(), "{done:?}");
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_stopped_write_ends_its_transaction() {
    let connection = memory(4);
    run(&connection, "CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1)");
    connection.set_limits(Limits { steps: Some(5_000), deadline: None, ..Limits::default() });
    assert_eq!(endless(&connection).sqlstate(), "57014");
    assert!(connection.in_transaction(), "a stopped read does not");
    let write = ENDLESS.replace("SELECT count(*) FROM n", "INSERT INTO t SELECT i FROM n");
    assert_eq!(connection.execute(&write, &[]).unwrap_err().sqlstate(), "57014");
    assert!(connection.autocommit());
    connection.set_limits(Limits::default());
    assert_eq!(rows(&connection, "SELECT count(*) FROM t", &[]), ["0"]);
}

//! The look-up by key: one connection, and pools of connections under many threads.

use std::hint::black_box;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

use refrain_sqlite::{CacheStats, Connection, Step, Text, Value};
use rusqlite::Connection as Theirs;

use crate::cpu;
use crate::golang::Go;
use crate::table::{head, judged, line, micros, passes, ratio};
use crate::world::{ROWS, World};

const SQL: &str = "SELECT id, name, hp, attack FROM monster WHERE id = ?";
/// Queries of a pass with few threads, and with many: waking the threads must not dominate the
/// time.
const QUERIES: [usize; 2] = [16_000, 64_000];
/// Size of the statement cache, where there is one.
const SIZE: usize = 16;
/// Connections, threads, and how many times cheaper a kept statement must be.
const SHAPES: [(usize, usize, f64); 5] =
    [(1, 1, 2.2), (1, 16, 2.2), (2, 2, 3.0), (4, 16, 3.0), (4, 160, 3.0)];

fn queries(threads: usize) -> usize {
    QUERIES[usize::from(threads > 2)]
}

/// Connections that threads take and return.
///
/// The thread that returns one wakes a waiting thread, unless one was woken and has not come yet.
/// Otherwise, with many threads on few cores, most threads would be woken in vain, and the
/// benchmark would measure that.
struct Pool<C> {
    free: Mutex<Free<C>>,
    returned: Condvar,
}

struct Free<C> {
    connections: Vec<C>,
    waiting: usize,
    /// True if a thread was woken that has not come yet.
    woken: bool,
}

impl<C> Pool<C> {
    fn new(count: usize, open: impl Fn() -> C) -> Pool<C> {
        let connections = (0..count).map(|_| open()).collect();
        let free = Mutex::new(Free { connections, waiting: 0, woken: false });
        Pool { free, returned: Condvar::new() }
    }

    fn with(&self, work: impl FnOnce(&C)) {
        let connection = self.take();
        work(&connection);
        self.put(connection);
    }

    fn take(&self) -> C {
        let mut free = self.free.lock().unwrap();
        loop {
            if let Some(connection) = free.connections.pop() {
                return connection;
            }
            free.waiting += 1;
            free = self.returned.wait(free).unwrap();
            free.waiting -= 1;
            free.woken = false;
        }
    }

    fn put(&self, connection: C) {
        let mut free = self.free.lock().unwrap();
        free.connections.push(connection);
        if free.waiting > 0 && !free.woken {
            free.woken = true;
            drop(free);
            self.returned.notify_one();
        }
    }
}

/// Returns the CPU nanoseconds of one query, for all threads together.
fn pass<C: Send>(pool: &Pool<C>, threads: usize, query: impl Fn(&C, i64) + Sync) -> f64 {
    let count = queries(threads) / threads;
    let (barrier, query) = (Barrier::new(threads), &query);
    let used: f64 = thread::scope(|scope| {
        let start = |number: usize| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                cpu::each(1, || {
                    for turn in 0..count {
                        let id = ((number + turn * threads) % ROWS) as i64 + 1;
                        pool.with(|connection| query(connection, id));
                    }
                })
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    used / (count * threads) as f64
}

fn ours(connection: &Connection, text: Text<'_>, id: i64) {
    let mut run = connection.prepare(text).unwrap().statement.unwrap().start();
    run.bind(1, Value::Integer(id)).unwrap();
    assert_eq!(run.step(), Ok(Step::Row));
    black_box((run.column(0), run.column(1), run.column(2), run.column(3)));
    assert_eq!(run.step(), Ok(Step::Done));
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
    black_box((row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?, row.get_ref(3)?));
    Ok(())
}

/// Runs a query as [`rusqlite::Connection::query_row`] does, but steps to the end, as the other
/// variants do.
fn theirs(statement: &mut rusqlite::Statement<'_>, id: i64) {
    let mut rows = statement.query([id]).unwrap();
    read(rows.next().unwrap().unwrap()).unwrap();
    assert!(rows.next().unwrap().is_none());
}

/// Measures and prints the look-ups.
pub(crate) fn run(world: &World, count: usize) {
    let mut go = Go::start(&world.path);
    let text = Text::new(SQL);
    let title =
        format!("`{SQL}`, {ROWS} rows, file, WAL: CPU µs a query, and ours uncached by cached.");
    let heads = [
        "connections / threads",
        "ours, uncached",
        "ours, cached",
        "uncached / cached",
        "rusqlite `prepare`",
        "`prepare_cached`",
        "/ ours",
        "go-sqlite3",
        "`_stmt_cache_size`",
        "/ ours",
    ];
    head(&title, &heads);
    let mut stats = CacheStats::default();
    for (connections, threads, bar) in SHAPES {
        let plain = Pool::new(connections, || world.connect(0));
        let kept = Pool::new(connections, || world.connect(SIZE));
        let other = Pool::new(connections, || Theirs::open(&world.path).unwrap());
        let mut go_pass = |cache| match &mut go {
            Some(go) => go.pass(cache, connections, threads, queries(threads)),
            None => f64::NAN,
        };
        let go_pass = std::cell::RefCell::new(&mut go_pass);
        let query = |connection: &Connection, id| ours(connection, text, id);
        let times = passes(
            count,
            &mut [
                &mut || pass(&plain, threads, query),
                &mut || pass(&kept, threads, query),
                &mut || {
                    pass(&other, threads, |c: &Theirs, id| theirs(&mut c.prepare(SQL).unwrap(), id))
                },
                &mut || {
                    pass(&other, threads, |c: &Theirs, id| {
                        theirs(&mut c.prepare_cached(SQL).unwrap(), id)
                    })
                },
                &mut || (go_pass.borrow_mut())(0),
                &mut || (go_pass.borrow_mut())(SIZE),
            ],
        );
        let beside = |place: usize| format!("{:.2}", ratio(&times[place], &times[1]));
        line(&[
            format!("{connections} / {threads}"),
            micros(&times[0]),
            micros(&times[1]),
            judged(ratio(&times[0], &times[1]), bar),
            micros(&times[2]),
            micros(&times[3]),
            beside(3),
            micros(&times[4]),
            micros(&times[5]),
            beside(5),
        ]);
        for connection in kept.free.into_inner().unwrap().connections {
            stats += connection.cache_stats();
        }
    }
    println!("\nCompiled anew by SQLite in {} cached queries: {}.", stats.hits, stats.reprepares);
}

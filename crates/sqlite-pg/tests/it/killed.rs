//! A writer that is killed loses no commit that it acknowledged.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use refrain_sqlite::{Database, OpenOptions, Step, Value};
use refrain_sqlite_pg::{Backend, Pool, Progress, Session};

/// The environment variable with the file of the process that writes.
const FILE: &str = "REFRAIN_KILLED_FILE";
/// Number of writers that are killed.
const TIMES: u32 = 200;

/// Number of clients of a writer.
const CLIENTS: usize = 8;

/// The writer: its clients insert numbers, and print each number once it is committed. Runs as a
/// child of the test below.
#[test]
#[ignore = "the child of another test"]
fn writer() {
    let Ok(path) = std::env::var(FILE) else { return };
    let database = Database::new(path, OpenOptions::default());
    let backend = Backend::new("db", 1).unwrap();
    let pool = Pool::new(&backend, database, Duration::from_secs(5));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| write(pool.clone()));
        }
    });
}

fn write(pool: Arc<Pool>) {
    let (wake, woken) = std::sync::mpsc::channel();
    let mut session = Session::new(pool, Arc::new(move || wake.send(()).unwrap_or(())));
    let mut ask = |bytes: &[u8]| {
        let mut out = Vec::new();
        let mut progress = session.receive(bytes.to_vec(), &mut out);
        while progress != Progress::Idle {
            woken.recv().unwrap();
            progress = session.resume(&mut out);
        }
        out
    };
    let mut bytes = Vec::new();
    refrain_pg_wire::startup::write(&mut bytes, 0, [(&b"user"[..], &b"ann"[..])].into_iter());
    ask(&bytes);
    loop {
        bytes.clear();
        refrain_pg_wire::write::query(&mut bytes, b"INSERT INTO t DEFAULT VALUES RETURNING id");
        let out = ask(&bytes);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains("INSERT 0 1"), "{text}");
        let row = out.windows(3).position(|window| window == b"D\0\0").unwrap();
        let number =
            refrain_pg_wire::back::columns(&out[row + 5..]).next().unwrap().unwrap().to_vec();
        let mut said = number;
        said.push(b'\n');
        let mut output = std::io::stdout().lock();
        output.write_all(&said).and_then(|()| output.flush()).unwrap();
    }
}

#[test]
fn no_acknowledged_commit_is_lost() {
    let place = crate::client::Place::new();
    place.client().query("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let mut seed = 0x9e37_79b9_u32;
    let mut acknowledged = Vec::new();
    for _ in 0..TIMES {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killed::writer", "--exact", "--ignored", "--nocapture", "--quiet"])
            .env(FILE, &place.path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = |line: std::io::Result<String>| line.unwrap().trim().parse::<i64>().ok();
        // The writer is killed after a varying number of commits and a varying time.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut after = seed >> 29;
        for line in lines.by_ref() {
            if let Some(number) = numbers(line) {
                acknowledged.push(number);
                after = after.saturating_sub(1);
            }
            if after == 0 {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(u64::from(seed >> 20)));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines.filter_map(numbers));
    }
    let database = Database::new(&place.path, OpenOptions::default());
    let connection = database.connect().unwrap();
    let number = |text: &str| {
        let mut run = connection.statement(text).unwrap().start();
        assert_eq!(run.step().unwrap(), Step::Row);
        match run.column(0) {
            Value::Integer(number) => number,
            Value::Text(text) => i64::from(text == b"ok"),
            other => panic!("{other:?}"),
        }
    };
    assert!(acknowledged.len() > TIMES as usize, "the writers wrote");
    for number in acknowledged {
        let mut run = connection.statement("SELECT 1 FROM t WHERE id = ?").unwrap().start();
        run.bind(1, Value::Integer(number)).unwrap();
        assert_eq!(run.step().unwrap(), Step::Row, "{number} was acknowledged");
    }
    assert_eq!(number("SELECT count(*) FROM t"), number("SELECT max(id) FROM t"));
    assert_eq!(number("PRAGMA integrity_check"), 1);
}

//! A loss of power takes what was not on disk, and no commit that was acknowledged.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refrain_sqlite::{Database, OpenOptions, Step, Value};
use refrain_sqlite_pg::{Backend, Pool, Progress, Session};

/// Number of clients that write at once.
const CLIENTS: usize = 16;
/// Number of losses of power.
const LOSSES: usize = 15;
/// Number of rows between two losses. A commit writes a page or two, and the WAL is copied into the
/// file once it has a thousand: this disk knows nothing of that.
const ROWS: usize = 40;
/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(60);

/// A disk that has of a WAL what was in it at the last wait.
struct Disk {
    wal: Mutex<Vec<u8>>,
    waits: AtomicUsize,
}

impl Disk {
    /// Waits as the disk does. What comes meanwhile is not on disk.
    fn sync(&self, wal: &Path) -> std::io::Result<()> {
        let now = fs::read(wal)?;
        // Others write in the meantime.
        std::thread::yield_now();
        *self.wal.lock().unwrap() = now;
        self.waits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Runs queries in a session of its own.
fn client(pool: &Arc<Pool>) -> impl FnMut(&str) -> String + use<> {
    let (wake, woken) = std::sync::mpsc::channel();
    let mut session = Session::new(pool.clone(), Arc::new(move || wake.send(()).unwrap_or(())));
    let mut ask = move |bytes: Vec<u8>| {
        let mut out = Vec::new();
        let mut progress = session.receive(bytes, &mut out);
        while progress != Progress::Idle {
            woken.recv().unwrap();
            progress = session.resume(&mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    let mut start = Vec::new();
    refrain_pg_wire::startup::write(&mut start, 0, [(&b"user"[..], &b"ann"[..])].into_iter());
    ask(start);
    move |text| {
        let mut bytes = Vec::new();
        refrain_pg_wire::write::query(&mut bytes, text.as_bytes());
        ask(bytes)
    }
}

/// Returns the rows that are there after a loss of power: the file, and what the disk has of its
/// WAL.
fn after_a_loss(file: &Path, disk: &Disk, folder: &Path) -> HashSet<i64> {
    let kept = folder.join("kept.db");
    let _ = fs::remove_file(folder.join("kept.db-shm"));
    fs::copy(file, &kept).unwrap();
    fs::write(folder.join("kept.db-wal"), &*disk.wal.lock().unwrap()).unwrap();
    let connection = Database::new(&kept, OpenOptions::default()).connect().unwrap();
    let mut run = connection.statement("SELECT id FROM t").unwrap().start();
    let mut all = HashSet::new();
    while run.step().unwrap() == Step::Row {
        let Value::Integer(id) = run.column(0) else { panic!("an id is a number") };
        all.insert(id);
    }
    all
}

#[test]
fn no_acknowledged_commit_is_lost_with_the_power() {
    let folder = std::env::temp_dir().join(format!("refrain-power-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file: PathBuf = folder.join("power.db");
    let disk = Arc::new(Disk { wal: Mutex::default(), waits: AtomicUsize::new(0) });
    let own = disk.clone();
    let sync = Arc::new(move |wal: &Path| own.sync(wal));
    let backend = Backend::with_disk("power", 1, Arc::new(|_, _| {}), sync).unwrap();
    let pool = Pool::new(&backend, Database::new(&file, OpenOptions::default()), PATIENCE);
    let mut first = client(&pool);
    assert!(first("CREATE TABLE t (id bigint, by_client int)").contains("CREATE TABLE"));
    let (told, ended) = (Mutex::new(HashSet::new()), AtomicBool::new(false));
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (pool, told, ended, written) = (&pool, &told, &ended, &written);
            scope.spawn(move || {
                let mut ask = client(pool);
                for row in 0_i64.. {
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    let id = row * CLIENTS as i64 + number as i64;
                    let text = match row % 3 {
                        0 => format!("BEGIN; INSERT INTO t VALUES ({id}, {number}); COMMIT"),
                        1 => format!("INSERT INTO t VALUES ({id}, {number}); SELECT 1"),
                        _ => format!("INSERT INTO t VALUES ({id}, {number})"),
                    };
                    let reply = ask(&text);
                    assert!(reply.contains("INSERT 0 1"), "{reply}");
                    told.lock().unwrap().insert(id);
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for loss in 1..=LOSSES {
            while written.load(Ordering::SeqCst) < loss * ROWS {
                std::thread::yield_now();
            }
            // The disk is looked at behind the replies.
            let told = told.lock().unwrap().clone();
            let kept = after_a_loss(&file, &disk, &folder);
            let lost: Vec<&i64> = told.difference(&kept).collect();
            assert!(lost.is_empty(), "lost {lost:?}");
        }
        ended.store(true, Ordering::SeqCst);
    });
    let (rows, waits) = (written.load(Ordering::SeqCst), disk.waits.load(Ordering::SeqCst));
    assert!(waits < rows, "{rows} commits had {waits} waits");
    drop((first, pool, backend));
    fs::remove_dir_all(&folder).unwrap();
}

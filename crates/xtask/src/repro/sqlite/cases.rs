//! The cases: work of one client.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::{Case, FILE, House, session};
use crate::bench::session::{message, parse, sync};
use crate::command;
use crate::postgres::Version;
use crate::provision;

/// Sizes of the data of COPY, in megabytes.
const COPIES: [u64; 3] = [1, 100, 1000];
/// Sizes of a parameter, in mebibytes.
const PARAMETERS: [usize; 4] = [1, 16, 64, 256];
/// The text after the number in a row of COPY.
const ROW: &str = "somebody wrote this line to be read again\n";
const MIB: usize = 1 << 20;
/// Number of slow reads at a time.
const SLOW: usize = 8;

/// Returns the cases whose time should grow with their size and no faster.
pub(super) fn sizes() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in COPIES {
        cases.push(Case::new(format!("\\copy {size} MB"), move |house| copy(house, size)));
    }
    for (form, binary) in [("binary", true), ("text", false)] {
        for size in PARAMETERS {
            let name = format!("bytea parameter {size} MiB, {form}");
            cases.push(Case::new(name, move |house| parameter(house, size, binary)));
        }
    }
    for size in PARAMETERS {
        let sql = format!("SELECT b FROM bytes WHERE length(b) = {} LIMIT 1", size * MIB);
        cases.push(Case::query(&format!("bytea read, {size} MiB"), &sql));
    }
    cases
}

/// Returns the cases that take long, as a whole or in a single step.
pub(super) fn lasting() -> Vec<Case> {
    let list = vec!["1"; 20_000].join(", ");
    let rows = vec!["('a')"; 9_000].join(", ");
    let tables: Vec<_> = (0..40).map(|n| format!("lookups t{n}")).collect();
    let numbers = |last: u32| {
        format!(
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
             SELECT i FROM n) AS numbers"
        )
    };
    let count = format!("SELECT count(*) FROM {}", numbers(20_000_000));
    let sort = format!("SELECT i FROM {} ORDER BY i % 7, i LIMIT 1", numbers(2_000_000));
    let fill = format!(
        "CREATE TABLE wide (first BYTEA, behind INTEGER); \
         INSERT INTO wide VALUES (zeroblob(250000000), 7); \
         CREATE TABLE many (v TEXT); INSERT INTO many SELECT printf('%.*c', 900, 'x') FROM {}",
        numbers(200_000)
    );
    vec![
        Case::query(
            "instr of 100 KB in 400 KB",
            "SELECT instr(printf('%.*c', 400000, 'a'), printf('%.*c', 100000, 'a') || 'b')",
        ),
        Case::query("count of 20 million numbers", &count),
        Case::query("sort of 2 million numbers", &sort),
        Case::query("list of 20,000 constants", &format!("SELECT 1 WHERE 1 IN ({list})")),
        Case::query("INSERT of 9,000 rows", &format!("INSERT INTO lookups (v) VALUES {rows}")),
        Case::query(
            "join of 40 tables",
            &format!("SELECT 1 AS a FROM {} LIMIT 1", tables.join(", ")),
        ),
        Case::query("views over views", &views(6)),
        Case::query("rows of those views", "SELECT i FROM v6"),
        Case::query("a row of 250 MB, and 200 MB of rows", &fill),
        Case::query("a column behind 250 MB", "SELECT behind FROM wide"),
        Case::query("count of 200 MB of rows", "SELECT count(*) FROM many"),
        Case::query(
            "json_each of 4 MB",
            "SELECT count(*) AS n FROM json_each('[' || printf('%.*c', 4000000, '1') || ']')",
        ),
        Case::new("slow reads at a time".to_owned(), slow),
    ]
}

/// Returns SQL that creates views of which each joins the one before with itself.
fn views(depth: usize) -> String {
    let mut sql = "CREATE VIEW v0 AS SELECT 1 AS i; ".to_owned();
    for number in 1..=depth {
        let below = number - 1;
        sql += &format!("CREATE VIEW v{number} AS SELECT a.i FROM v{below} a, v{below} b; ");
    }
    sql
}

impl Case {
    fn new(name: String, work: impl Fn(&House) -> Result<Duration> + 'static) -> Case {
        Case { name, work: Box::new(work) }
    }

    fn query(name: &str, sql: &str) -> Case {
        let sql = sql.to_owned();
        Case::new(name.to_owned(), move |house| house.session()?.ask(&sql))
    }
}

fn copy(house: &House, megabytes: u64) -> Result<Duration> {
    house.session()?.ask("DROP TABLE IF EXISTS copied")?;
    house.session()?.ask("CREATE TABLE copied (n INT, line TEXT)")?;
    let path = house.folder.join("rows");
    let mut rows = BufWriter::new(File::create(&path)?);
    let (mut written, mut number) = (0, 0);
    while written < megabytes * 1_000_000 {
        let row = format!("{number}\t{ROW}");
        rows.write_all(row.as_bytes())?;
        written += row.len() as u64;
        number += 1;
    }
    rows.flush()?;
    let url = format!("postgres://postgres@127.0.0.1:{}/{FILE}", house.proxy.port());
    let mut psql = Command::new(provision::postgres(Version::V15)?.join("psql"));
    psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c"]);
    psql.arg(format!("\\copy copied from '{}'", path.display()));
    let begun = Instant::now();
    command::output(&mut psql)?;
    Ok(begun.elapsed())
}

fn parameter(house: &House, mebibytes: usize, binary: bool) -> Result<Duration> {
    let mut client = house.session()?;
    client.ask("CREATE TABLE IF NOT EXISTS bytes (b BYTEA)")?;
    let bytes = mebibytes * MIB;
    let value = match binary {
        true => vec![7; bytes],
        false => [&b"\\x"[..], &vec![b'7'; 2 * bytes]].concat(),
    };
    let length = u32::try_from(value.len())?.to_be_bytes();
    let head = [&[0, 0, 0, 1, 0, u8::from(binary), 0, 1][..], &length].concat();
    let bind = message(b'B', &[&head[..], &value, &[0, 0]].concat());
    let execute = message(b'E', b"\0\0\0\0\0");
    let run = [parse("", "INSERT INTO bytes VALUES ($1)"), bind, execute, sync()].concat();
    client.send(&run)
}

fn slow(house: &House) -> Result<Duration> {
    let port = house.proxy.port();
    let begun = Instant::now();
    let sleep = move || session(port, FILE)?.ask("SELECT pg_sleep(1)");
    let sleepers: Vec<_> = (0..SLOW).map(|_| thread::spawn(sleep)).collect();
    for sleeper in sleepers {
        sleeper.join().map_err(|_| anyhow!("a reader panicked"))??;
    }
    Ok(begun.elapsed())
}

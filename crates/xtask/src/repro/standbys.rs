//! Reads on a standby that lags by 0 to 5 s (`reads = "standby"`): no client may miss what it has
//! written itself. And what such reads cost, in CPU time of the proxy, the primary and the standby.
//!
//! The same clients also read from the standby without a proxy. They have to find old rows: where
//! they find none, the standby has not lagged, and the check would say nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::bench::process::{cpu_ns, family_cpu_ns};
use crate::bench::session::{Answer, Session, message, parse, query, run as bind};
use crate::command;
use crate::postgres::Cluster;
use crate::provision::{self, Version};
use crate::proxy::Refrain;
use crate::soak::dice::Dice;

use super::Plan;
use super::verdict::Verdict;

/// Reads of all clients together, between their writes.
const READS: u64 = 1_000_000;
/// Reads of all clients straight from the standby.
const READS_BESIDE: u64 = 20_000;
/// Most reads between two writes of a client.
const READS_OF_A_WRITE: u64 = 400;
/// The longest that a client rests between two reads, in microseconds.
const REST_US: u64 = 300;
/// The delays with which the standby replays what it has got, in milliseconds.
const DELAYS_MS: [u64; 7] = [0, 0, 20, 100, 500, 2_000, 5_000];
/// The longest for which the standby stays as it is, in milliseconds.
const STAYS_MS: u64 = 4_000;
/// The part of the reads that has to run on the standby, as one in so many.
const AWAY: u64 = 20;
/// Time without a reply after which a session fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Scale of pgbench's tables.
const SCALE: &str = "10";

/// A primary, and a standby that follows it.
struct Replicas {
    primary: Cluster,
    standby: Cluster,
}

/// Writes and reads with both checks, and measures.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    let program = plan.program()?;
    let pair = Replicas::start(plan)?;
    let proxy = Refrain::start_as(&program, &pair.config(plan.clients, "standby"))?;
    let mut verdict = Verdict::default();
    // Reads move once it is known that they are reads.
    let through = (proxy.port(), proxy.port());
    pair.reads(plan, through, READS_BESIDE / 10, 0)?;
    let before = Moves::of(&proxy)?;
    let tally = pair.lagging(|| pair.reads(plan, through, READS, 1))?;
    let moves = Moves::of(&proxy)?.since(before);
    println!("through the proxy: {tally:?}; {moves:?}");
    verdict.check(format!("reads through the proxy: {}", tally.reads), tally.reads >= READS);
    verdict.check(format!("older than the client's own write: {}", tally.old), tally.old == 0);
    let away = format!("answered by the standby: {}", moves.stayed());
    verdict.check(away, moves.stayed() > tally.reads / AWAY);
    let beside = (pair.primary.port(), pair.standby.port());
    let tally = pair.lagging(|| pair.reads(plan, beside, READS_BESIDE, 2))?;
    println!("reads straight from the standby: {tally:?}");
    let found = format!("without a proxy, reads that are older: {}", tally.old);
    verdict.check(found, tally.old > 0);
    drop(proxy);
    pair.measure(plan, &program)?;
    Ok(verdict)
}

/// Counts of reads.
#[derive(Clone, Copy, Debug, Default)]
struct SeenReads {
    writes: u64,
    reads: u64,
    /// Reads that returned something older than their client's own last write.
    old: u64,
}

/// Reads that Refrain has sent to the standby, and those of them that came back.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    sent: u64,
    returned: u64,
    unproven: u64,
}

impl Moves {
    fn of(proxy: &Refrain) -> Result<Moves> {
        let mut console = Session::open(proxy.port(), "refrain", PATIENCE)?;
        let rows = console.query("SHOW COUNTERS")?.rows;
        let of = |name: &str| -> u64 {
            let rows = rows.iter().filter(|row| row.iter().any(|word| word == name.as_bytes()));
            let last = |row: &Vec<Vec<u8>>| String::from_utf8_lossy(row.last()?).parse().ok();
            rows.filter_map(last).map(|count: u64| count).sum()
        };
        Ok(Moves {
            sent: of("standby_reads"),
            returned: of("standby_reads_returned"),
            unproven: of("standby_reads_unproven"),
        })
    }

    fn since(self, before: Moves) -> Moves {
        Moves {
            sent: self.sent - before.sent,
            returned: self.returned - before.returned,
            unproven: self.unproven - before.unproven,
        }
    }

    fn stayed(self) -> u64 {
        self.sent - self.returned
    }
}

impl Replicas {
    fn start(plan: &Plan) -> Result<Replicas> {
        let primary = Cluster::start(plan.version(), &[("wal_keep_size", "1GB")])?;
        primary.psql("postgres", "CREATE TABLE seen (w int PRIMARY KEY, n bigint NOT NULL)")?;
        let rows =
            format!("INSERT INTO seen SELECT w, 0 FROM generate_series(0, {}) w", plan.clients);
        primary.psql("postgres", &rows)?;
        let mut fill = pgbench(primary.port())?;
        command::output(fill.args(["-i", "-q", "-s", SCALE, "postgres"]))?;
        let standby = primary.start_standby(&[])?;
        Ok(Replicas { primary, standby })
    }

    fn config(&self, pool_size: u32, reads: &str) -> String {
        let ports = format!("{},{}", self.primary.port(), self.standby.port());
        format!(
            "auth = \"trust\"\nadmin_users = [\"postgres\"]\n\
             [pool]\npool_mode = \"transaction\"\npool_size = {pool_size}\n\
             [databases.postgres]\nhost = \"127.0.0.1,127.0.0.1\"\nport = \"{ports}\"\n\
             user = \"postgres\"\ntarget_session_attrs = \"read-write\"\n\
             reads = \"{reads}\"\nmax_lag = \"10s\"\n"
        )
    }

    /// Does something while the standby lags, more or less from time to time.
    fn lagging<T>(&self, does: impl FnOnce() -> Result<T>) -> Result<T> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let lags = scope.spawn(|| self.lag(&over));
            let done = does();
            over.store(true, Relaxed);
            lags.join().map_err(|_| anyhow!("the standby cannot be told to lag"))??;
            done
        })
    }

    /// Has the standby lag until it is `over`: it replays late, or it stands still for a while.
    fn lag(&self, over: &AtomicBool) -> Result<()> {
        let mut session = Session::open(self.standby.port(), "postgres", PATIENCE)?;
        let mut say = |text: &str| -> Result<()> {
            let errors = session.query(text)?.errors;
            ensure!(errors.is_empty(), "{text}: {errors:?}");
            Ok(())
        };
        let mut dice = Dice::new(7);
        while !over.load(Relaxed) {
            if dice.once_in(3) {
                say("SELECT pg_wal_replay_pause()")?;
                rest(&mut dice, over);
                say("SELECT pg_wal_replay_resume()")?;
            } else {
                let delay = DELAYS_MS[dice.index(DELAYS_MS.len())];
                say(&format!("ALTER SYSTEM SET recovery_min_apply_delay = {delay}"))?;
                say("SELECT pg_reload_conf()")?;
                rest(&mut dice, over);
            }
        }
        say("ALTER SYSTEM SET recovery_min_apply_delay = 0")?;
        say("SELECT pg_reload_conf()")
    }

    /// Has clients write and read, each a row of its own, until there are so many reads. Writes and
    /// reads may go to two ports.
    fn reads(&self, plan: &Plan, ports: (u16, u16), reads: u64, seed: u64) -> Result<SeenReads> {
        let left = AtomicU64::new(reads);
        thread::scope(|scope| {
            let client = |number| {
                let dice = Dice::new((seed << 32) + u64::from(number));
                RowClient::open(ports, number).and_then(|client| client.works(dice, &left))
            };
            let clients = (0..plan.clients).map(|number| scope.spawn(move || client(number)));
            let clients: Vec<_> = clients.collect();
            clients.into_iter().try_fold(SeenReads::default(), |all, client| {
                let one = client.join().map_err(|_| anyhow!("a client panicked"))??;
                let (writes, reads) = (all.writes + one.writes, all.reads + one.reads);
                Ok(SeenReads { writes, reads, old: all.old + one.old })
            })
        })
    }

    /// Measures lookups without a proxy, through it on the primary alone, and on both servers.
    fn measure(&self, plan: &Plan, program: &std::path::Path) -> Result<()> {
        // One session of a server for each client, so that none shares one.
        let proxy = |reads| Refrain::start_as(program, &self.config(plan.clients, reads));
        let ways = [
            ("direct", None),
            ("primary", Some(proxy("primary")?)),
            ("standby", Some(proxy("standby")?)),
        ];
        for round in 0..plan.rounds {
            for (name, proxy) in &ways {
                let port = proxy.as_ref().map_or(self.primary.port(), Refrain::port);
                let (from, began) = (self.cpu(proxy.as_ref())?, Instant::now());
                let transactions = lookups(port, plan)?;
                let (to, took) = (self.cpu(proxy.as_ref())?, began.elapsed());
                let cores =
                    |place: usize| (to[place] - from[place]) as f64 / took.as_nanos() as f64;
                println!(
                    "{round} {name}: {:.0} lookups a second; cores: Refrain {:.2}, primary {:.2}, \
                     standby {:.2}",
                    transactions as f64 / took.as_secs_f64(),
                    cores(0),
                    cores(1),
                    cores(2),
                );
            }
        }
        Ok(())
    }

    /// Returns the CPU time of the proxy, of the primary and of the standby so far.
    fn cpu(&self, proxy: Option<&Refrain>) -> Result<[u64; 3]> {
        let of = |cluster: &Cluster| family_cpu_ns(cluster.postmaster().context("no postmaster")?);
        let own = proxy.map_or(Ok(0), |proxy| cpu_ns(proxy.id()))?;
        Ok([own, of(&self.primary)?, of(&self.standby)?])
    }
}

/// Waits for some time, and not much longer than until it is `over`.
fn rest(dice: &mut Dice, over: &AtomicBool) {
    let until = Instant::now() + Duration::from_millis(dice.below(STAYS_MS));
    while Instant::now() < until && !over.load(Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
}

fn pgbench(port: u16) -> Result<std::process::Command> {
    let mut pgbench =
        std::process::Command::new(provision::postgres(Version::V15)?.join("pgbench"));
    pgbench.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
    Ok(pgbench)
}

/// Runs lookups, and returns their number.
fn lookups(port: u16, plan: &Plan) -> Result<u64> {
    let (clients, seconds) = (plan.clients.to_string(), format!("{:.0}", plan.seconds.max(1.0)));
    let mut pgbench = pgbench(port)?;
    pgbench.args(["-n", "-S", "-M", "prepared", "-j", "1", "-c", &clients, "-T", &seconds]);
    let report = command::output(pgbench.arg("postgres"))?;
    let label = "number of transactions actually processed: ";
    let line = report.lines().find_map(|line| line.strip_prefix(label)).context("no report")?;
    Ok(line.split('/').next().unwrap_or_default().trim().parse()?)
}

/// A client with a row of its own.
struct RowClient {
    writes: Session,
    /// The session that reads, if it is another one.
    reads: Option<Session>,
    row: u32,
    /// The value that it has written last.
    written: u64,
}

impl RowClient {
    fn open((writes, reads): (u16, u16), row: u32) -> Result<RowClient> {
        let open = |port| Session::open(port, "postgres", PATIENCE);
        let mut first = open(writes)?;
        let mut second = (reads != writes).then(|| open(reads)).transpose()?;
        let reader = second.as_mut().unwrap_or(&mut first);
        let text = parse("s", "SELECT n FROM seen WHERE w = $1");
        reader.send(&[text, message(b'S', &[])].concat())?;
        right(&reader.answer()?)?;
        let found = first.query(&format!("SELECT n FROM seen WHERE w = {row}"))?;
        Ok(RowClient { writes: first, reads: second, row, written: value(&found)? })
    }

    /// Writes and reads until nothing is left to read.
    fn works(mut self, mut dice: Dice, left: &AtomicU64) -> Result<SeenReads> {
        let mut tally = SeenReads::default();
        loop {
            self.write(&mut dice)?;
            tally.writes += 1;
            for _ in 0..dice.below(READS_OF_A_WRITE) {
                if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
                    return Ok(tally);
                }
                let found = self.read(&mut dice)?;
                tally.reads += 1;
                tally.old += u64::from(found < self.written);
                thread::sleep(Duration::from_micros(dice.below(REST_US)));
            }
        }
    }

    /// Writes the row: in a statement, in a block, with a pipeline, or without a flush.
    fn write(&mut self, dice: &mut Dice) -> Result<()> {
        let next = self.written + 1;
        let update = format!("UPDATE seen SET n = {next} WHERE w = {}", self.row);
        let texts: &[&str] = match dice.below(4) {
            0 => &[&update],
            1 => &["BEGIN", &update, "COMMIT"],
            2 => &["BEGIN; SET LOCAL synchronous_commit = off", &update, "COMMIT"],
            _ => {
                self.writes.send(&[parse("", &update), bind("", &[])].concat())?;
                right(&self.writes.answer()?)?;
                &[]
            }
        };
        for text in texts {
            right(&self.writes.query(text)?)?;
        }
        self.written = next;
        Ok(())
    }

    /// Reads the row: by a query string, an unnamed statement, or a named one.
    fn read(&mut self, dice: &mut Dice) -> Result<u64> {
        let session = self.reads.as_mut().unwrap_or(&mut self.writes);
        let row = self.row.to_string();
        let request = match dice.below(3) {
            0 => query(&format!("SELECT n FROM seen WHERE w = {row}")),
            1 => [parse("", "SELECT n FROM seen WHERE w = $1"), bind("", &[&row])].concat(),
            _ => bind("s", &[&row]),
        };
        session.send(&request)?;
        value(&session.answer()?)
    }
}

fn right(answer: &Answer) -> Result<()> {
    ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
    Ok(())
}

/// Returns the number that a read has found.
fn value(answer: &Answer) -> Result<u64> {
    right(answer)?;
    let found = answer.rows.first().and_then(|row| row.first()).context("no row")?;
    Ok(std::str::from_utf8(found)?.parse()?)
}

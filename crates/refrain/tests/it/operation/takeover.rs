//! Take-overs: a new program gets the sockets of a running one, which lets its clients finish.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use xtask::leash::Leash;
use xtask::mysql::{Flavour, PASSWORD};
use xtask::ports::free_port;
use xtask::provision;
use xtask::proxy::program;

use crate::session::{Session, cancel_request, query, startup};
use crate::world::{Version, cluster, eventually, psql};
use crate::{mysql, mysql_client};

/// Clients with one transaction behind the other.
const BUSY: usize = 64;
/// Clients that connect for each transaction.
const SHORT: usize = 8;
/// The number of take-overs, rather than three.
const TAKEOVERS: &str = "REFRAIN_TAKEOVERS";

/// The folder and the addresses of the programs of a test.
struct Site {
    folder: PathBuf,
    port: u16,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program. It ends when this is dropped.
struct Running {
    process: Leash,
    log: PathBuf,
}

impl Site {
    fn new(name: &str) -> Self {
        let folder = format!("refrain-takeover-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let site = Self { folder, port: free_port().unwrap() };
        site.configure(&format!("listen = [\"127.0.0.1:{}\"]", site.port), "");
        site
    }

    /// Writes the configuration, with further options of the program, and further tables.
    fn configure(&self, general: &str, more: &str) {
        let (cluster, socket) = (cluster(Version::V15), self.asking());
        let metrics =
            if general.contains("metrics_listen") { "" } else { "metrics_listen = \"off\"" };
        let text = format!(
            "{general}\n{metrics}\ntakeover_socket = {socket:?}\nauth = \"trust\"\nworkers = 2\n\
             worker_load = 0\n{more}\n[databases.postgres]\nhost = {:?}\nport = {}\n",
            cluster.host(),
            cluster.port()
        );
        fs::write(self.folder.join("config.toml"), text).unwrap();
    }

    fn asking(&self) -> PathBuf {
        self.folder.join("asking")
    }

    fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn open(&self) -> Session {
        Session::open(self.addr(), "postgres")
    }

    fn run(&self, flags: &[&str]) -> Running {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let log = self.folder.join(format!("log-{}", NEXT.fetch_add(1, Relaxed)));
        let mut command = Command::new(program().unwrap());
        command.args(flags).arg("config.toml").current_dir(&self.folder);
        let process = Leash::start(&command, "TERM", &File::create(&log).unwrap()).unwrap();
        Running { process, log }
    }

    /// Starts the first program.
    fn start(&self, flags: &[&str]) -> Running {
        let running = self.run(flags);
        // The socket for the next program is there before those for clients.
        eventually("it serves", || running.log().contains("listening on "));
        running
    }

    /// Starts a program that takes over, and waits until it has.
    fn take_over(&self, flags: &[&str]) -> Running {
        let mut running = self.run(&[&["--takeover"], flags].concat());
        eventually("it takes over", || {
            assert!(running.process.is_running(), "{}", running.log());
            running.log().contains("took the place of process ")
        });
        running
    }

    /// Checks that a take-over fails with these words.
    fn is_refused(&self, words: &str) {
        let mut running = self.run(&["--takeover"]);
        eventually("it gives up", || !running.process.is_running());
        let log = running.log();
        assert!(log.contains(words), "{log}");
    }
}

impl Running {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn ends(&mut self) {
        eventually("the old program ends", || !self.process.is_running());
    }
}

/// The outcomes of clients. Any other outcome than these is a panic.
#[derive(Default)]
struct Tally {
    stop: AtomicBool,
    transactions: AtomicU32,
    short: AtomicU32,
    /// Clients that were told, between two transactions, that the program ends.
    told: AtomicU32,
    told_short: AtomicU32,
}

impl Tally {
    /// Runs transactions in one session after the other.
    fn transacts(&self, addr: SocketAddr) {
        while !self.stop.load(Relaxed) {
            let mut session = Session::open(addr, "postgres");
            while !self.stop.load(Relaxed) {
                let begun = session.query("begin");
                if begun.status().is_none() {
                    assert_eq!(begun.words(), "E(57P01)");
                    self.told.fetch_add(1, Relaxed);
                    break;
                }
                assert_eq!(session.query("select 1").words(), "T D(1) C(SELECT 1) Z(T)");
                assert_eq!(session.query("commit").words(), "C(COMMIT) Z(I)");
                self.transactions.fetch_add(1, Relaxed);
            }
        }
    }

    /// Connects for each transaction.
    fn connects(&self, addr: SocketAddr) {
        let ended = |words: String| {
            assert_eq!(words, "E(57P01)");
            self.told_short.fetch_add(1, Relaxed);
        };
        while !self.stop.load(Relaxed) {
            let packet = startup(0x0003_0000, &[("user", "postgres"), ("database", "postgres")]);
            let mut session = Session::raw(addr, &packet);
            let welcome = session.ready();
            if welcome.status().is_none() {
                ended(welcome.words());
                continue;
            }
            let reply = session.query("select 1");
            if reply.status().is_none() {
                ended(reply.words());
                continue;
            }
            assert_eq!(reply.words(), "T D(1) C(SELECT 1) Z(I)");
            self.short.fetch_add(1, Relaxed);
            session.leave();
        }
    }
}

/// Returns the number of take-overs of a test.
fn takeovers() -> usize {
    std::env::var(TAKEOVERS).ok().map_or(3, |count| count.parse().unwrap())
}

/// Takes programs with these flags over in turn, while clients work.
fn nothing_is_lost(name: &str, flags: &[&[&str]]) {
    let site = Site::new(name);
    let tally = Tally::default();
    let count = takeovers();
    let mut running = site.start(flags[0]);
    thread::scope(|scope| {
        let busy = (0..BUSY).map(|_| scope.spawn(|| tally.transacts(site.addr())));
        let short = (0..SHORT).map(|_| scope.spawn(|| tally.connects(site.addr())));
        let clients: Vec<_> = busy.collect::<Vec<_>>().into_iter().chain(short).collect();
        let told_off = || clients.iter().any(thread::ScopedJoinHandle::is_finished);
        for number in 1..=count {
            let before = tally.short.load(Relaxed);
            eventually("clients come and go", || {
                told_off() || tally.short.load(Relaxed) > before + 100
            });
            let next = site.take_over(flags[number % flags.len()]);
            running.ends();
            running = next;
            if told_off() {
                break;
            }
        }
        tally.stop.store(true, Relaxed);
    });
    let of = |count: &AtomicU32| count.load(Relaxed);
    println!(
        "{name}: {count} take-overs, {} transactions, {} of 57P01 between two; {} short sessions, {} of 57P01",
        of(&tally.transactions),
        of(&tally.told),
        of(&tally.short),
        of(&tally.told_short)
    );
    assert!(of(&tally.told) > 0);
}

#[test]
fn nothing_is_lost_in_takeovers_between_both_drivers() {
    nothing_is_lost("drivers", &[&["--driver", "auto"], &["--driver", "epoll"]]);
}

#[test]
fn nothing_is_lost_in_takeovers_with_epoll() {
    nothing_is_lost("epoll", &[&["--driver", "epoll"]]);
}

#[test]
fn nothing_is_lost_in_takeovers_with_io_uring() {
    nothing_is_lost("uring", &[&["--driver", "auto"]]);
}

/// PostgreSQL's own benchmark, which ends a client at its first error.
#[test]
fn nothing_is_lost_by_pgbench_that_connects_for_each_transaction() {
    let site = Site::new("pgbench");
    fs::write(site.folder.join("script"), "begin;\nselect 1;\ncommit;\n").unwrap();
    let mut running = site.start(&[]);
    let mut pgbench = Command::new(provision::postgres(Version::V15).unwrap().join("pgbench"));
    let transactions = (300 * takeovers()).to_string();
    pgbench.args(["-n", "-C", "-c", "8", "-j", "2", "-f", "script", "-t", &transactions]);
    pgbench.args(["-h", "127.0.0.1", "-p", &site.port.to_string(), "-U", "postgres", "postgres"]);
    pgbench.current_dir(&site.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let bench = pgbench.spawn().unwrap();
    let bench = thread::spawn(|| bench.wait_with_output().unwrap());
    let mut count = 0;
    while !bench.is_finished() {
        let next = site.take_over(&[]);
        running.ends();
        (running, count) = (next, count + 1);
    }
    let output = bench.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{complaint}");
    let all = format!("actually processed: {0}/{0}", 8 * 300 * takeovers());
    assert!(said.contains(&all) && !complaint.contains("rror"), "{said}\n{complaint}");
    println!("pgbench -C: {count} take-overs, {} transactions", 8 * 300 * takeovers());
}

fn cancel(site: &Site, key: &[u8]) {
    Session::raw(site.addr(), &cancel_request(key)).rest();
}

#[test]
fn a_cancel_request_finds_the_program_that_has_the_client() {
    let site = Site::new("cancel");
    let first = site.start(&[]);
    let mut oldest = site.open();
    oldest.run("begin");
    let second = site.take_over(&[]);
    let mut older = site.open();
    older.run("begin");
    let third = site.take_over(&[]);
    let mut young = site.open();
    for session in [&mut oldest, &mut older, &mut young] {
        session.send(&[query("select pg_sleep(600)")]);
    }
    for (session, rest) in [(&mut oldest, "E"), (&mut older, "E"), (&mut young, "I")] {
        // The request may come before the statement.
        let (key, is_over) = (session.key.clone(), AtomicBool::new(false));
        let reply = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    cancel(&site, &key);
                    thread::sleep(std::time::Duration::from_millis(50));
                }
            });
            let reply = session.ready().words();
            is_over.store(true, Relaxed);
            reply
        });
        assert_eq!(reply, format!("T E(57014) Z({rest})"));
    }
    for (mut session, mut program) in [(older, second), (oldest, first)] {
        session.send(&[query("rollback")]);
        assert_eq!(session.rest().words(), "C(ROLLBACK) Z(I) E(57P01)");
        program.ends();
    }
    young.run("select 1");
    drop(third);
}

/// Connects to the program as a new one does.
fn asks(site: &Site, text: &str) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let line = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&line, &SocketAddrUnix::new(site.asking()).unwrap()).unwrap();
    send(&line, text.as_bytes(), SendFlags::NOSIGNAL).unwrap();
    line
}

fn hears(line: &OwnedFd) -> String {
    let mut bytes = [0; 4096];
    let (_, count) = recv(line, &mut bytes[..], RecvFlags::empty()).unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

#[test]
fn what_fails_changes_nothing() {
    let site = Site::new("fails");
    let listen = format!("listen = [\"127.0.0.1:{}\"", site.port);
    let old = site.start(&[]);
    let (mut busy, mut idle) = (site.open(), site.open());
    busy.run("begin");
    idle.run("select 1");
    site.configure(&format!("{listen}]\nno_such_option = 1"), "");
    site.is_refused("no_such_option");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    site.configure(&format!("{listen}, \"{}\"]", taken.local_addr().unwrap()), "");
    site.is_refused("Address already in use");
    site.configure(&format!("{listen}]\nlogfile = \"/no/such/folder/log\""), "");
    site.is_refused("No such file or directory");
    // Another version; a program that gets the sockets and dies; one that says nonsense.
    let line = asks(&site, "takeover 9999");
    assert!(hears(&line).starts_with("refused version 1 of the take-over is spoken here"));
    let line = asks(&site, "takeover 1");
    assert_eq!(hears(&line), "socket listen bound");
    drop(line);
    let line = asks(&site, "takeover 1");
    while hears(&line) != "offered" {}
    send(&line, b"ready maybe", SendFlags::NOSIGNAL).unwrap();
    assert_eq!(hears(&line), "refused said \"ready maybe\"");
    for session in [&mut busy, &mut idle, &mut site.open()] {
        session.run("select 1");
    }
    assert!(!old.log().contains("serves clients from now on"), "{}", old.log());
    // And then it works.
    site.configure(&format!("{listen}]"), "");
    let _new = site.take_over(&[]);
    assert_eq!(idle.rest().words(), "E(57P01)");
    busy.send(&[query("commit")]);
    assert_eq!(busy.rest().words(), "C(COMMIT) Z(I) E(57P01)");
}

#[test]
fn addresses_and_files_are_those_of_the_new_configuration() {
    let site = Site::new("addresses");
    let other = free_port().unwrap();
    let pid_file = site.folder.join("pid");
    let more = format!("unix_socket_dir = {:?}\npidfile = {pid_file:?}", site.folder);
    let listen = |addresses: &[u16]| {
        let addresses: Vec<_> = addresses.iter().map(|it| format!("127.0.0.1:{it}")).collect();
        format!("listen = {addresses:?}\nunix_socket_port = 7\n{more}")
    };
    site.configure(&listen(&[site.port]), "");
    let mut old = site.start(&[]);
    let by_unix = format!("postgres://postgres@/postgres?host={}&port=7", site.folder.display());
    assert_eq!(psql(&by_unix, "", "select 7").as_deref(), Ok("7"));
    let running = |program: &Running| {
        let number = format!("{}\n", program.process.id());
        eventually("the number is written", || {
            fs::read_to_string(&pid_file).ok() == Some(number.clone())
        });
    };
    running(&old);
    site.configure(&listen(&[other]), "");
    let mut new = site.take_over(&[]);
    // A core closes it in a turn of its own.
    eventually("it is closed", || TcpStream::connect(site.addr()).is_err());
    Session::open(([127, 0, 0, 1], other).into(), "postgres").run("select 1");
    old.ends();
    running(&new);
    // A third program sees that the number is that of the second.
    let newest = site.take_over(&[]);
    new.ends();
    running(&newest);
    let mut new = newest;
    assert_eq!(psql(&by_unix, "", "select 7").as_deref(), Ok("7"));
    let id = new.process.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    new.ends();
    for file in [&pid_file, &site.folder.join(".s.PGSQL.7"), &site.asking()] {
        assert!(!file.exists(), "{}", file.display());
    }
    // With none there, the program starts as it would without.
    let mut alone = site.run(&["--takeover"]);
    eventually("it serves", || {
        assert!(alone.process.is_running(), "{}", alone.log());
        TcpStream::connect(("127.0.0.1", other)).is_ok()
    });
    eventually("it is logged", || alone.log().contains("nothing to take over"));
}

/// Asks for the metrics, and returns the number of the process that answers.
fn start_time(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    let line = said.lines().find(|line| line.starts_with("refrain_clients_waiting "));
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    Ok(line.unwrap_or_default().to_owned())
}

#[test]
fn metrics_are_those_of_the_new_program() {
    let site = Site::new("metrics");
    let metrics = free_port().unwrap();
    let general = "listen = [\"127.0.0.1:PORT\"]\nmetrics_listen = \"127.0.0.1:METRICS\"";
    let general = general.replace("PORT", &site.port.to_string());
    site.configure(&general.replace("METRICS", &metrics.to_string()), "");
    let mut old = site.start(&[]);
    start_time(metrics).unwrap();
    let mut busy = site.open();
    busy.run("begin");
    let _new = site.take_over(&[]);
    // The old program is draining: if it answered, its health check would fail.
    for _ in 0..50 {
        start_time(metrics).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", metrics)).unwrap();
        io::Write::write_all(&mut stream, b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    }
    busy.send(&[query("commit")]);
    assert_eq!(busy.rest().words(), "C(COMMIT) Z(I) E(57P01)");
    old.ends();
}

#[test]
fn clients_of_mysql_finish_their_transactions() {
    let world = mysql::World::start(Flavour::MariaDb, &[]);
    let site = Site::new("mysql");
    let port = free_port().unwrap();
    let listen =
        format!("listen = [\"127.0.0.1:{}\"]\nmysql_listen = [\"127.0.0.1:{port}\"]", site.port);
    let url = format!("mysql://app:{PASSWORD}@127.0.0.1:{}", world.port());
    site.configure(&listen, &format!("[databases.shop]\nurl = \"{url}\""));
    let mut old = site.start(&[]);
    let port = port.to_string();
    let start = || mysql_client::Session::start(&port, "shop");
    let (mut busy, mut idle) = (start(), start());
    busy.query("begin").unwrap();
    idle.query("select 1").unwrap();
    let new = site.take_over(&[]);
    let mut young = start();
    young.query("select 7").unwrap();
    busy.query("select 1").unwrap();
    busy.query("commit").unwrap();
    assert_eq!(busy.told(), Err(1053));
    assert_eq!(idle.told(), Err(1053));
    old.ends();
    young.query("select 1").unwrap();
    drop((young, new));
}

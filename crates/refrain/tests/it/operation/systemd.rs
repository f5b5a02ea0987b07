//! Under systemd: sockets that it has opened, and the news that it gets. The test plays systemd.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use xtask::leash::Leash;
use xtask::ports::free_port;
use xtask::proxy::program;

use crate::session::{LIMIT, Session, query};
use crate::world::{Version, cluster, eventually, psql};

/// A folder of a test's own, which goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("refrain-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The supervisor of a unit of `Type=notify-reload` with sockets.
struct Systemd {
    news: Receiver<String>,
    process: Leash,
}

impl Systemd {
    /// Starts the program with these sockets and their names.
    fn start(folder: &Path, notify: &str, sockets: &[(BorrowedFd<'_>, &str)]) -> Self {
        let address = match notify.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).unwrap(),
            None => SocketAddr::from_pathname(notify).unwrap(),
        };
        let news = read_on(UnixDatagram::bind_addr(&address).unwrap());
        // The shell gives the descriptors their numbers, and its process becomes the program.
        let names: Vec<_> = sockets.iter().map(|(_, name)| *name).collect();
        let (mut moves, mut closes) = (String::new(), String::new());
        // Numbers that the shells of the leash do not use.
        let passed = sockets.iter().map(|(fd, _)| fcntl_dupfd_cloexec(fd, 50).unwrap());
        let passed: Vec<_> = passed.collect();
        for (place, fd) in passed.iter().enumerate() {
            fcntl_setfd(fd, FdFlags::empty()).unwrap();
            moves += &format!(" {}<&{}", place + 3, fd.as_raw_fd());
            closes += &format!(" {}<&-", fd.as_raw_fd());
        }
        let script = format!("export LISTEN_PID=$$; exec{moves}; exec{closes}; exec \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script, "bash"]).arg(program().unwrap()).arg("config.toml");
        command.env("LISTEN_FDS", sockets.len().to_string());
        command.env("LISTEN_FDNAMES", names.join(":"));
        command.env("NOTIFY_SOCKET", notify).env("WATCHDOG_USEC", "200000").current_dir(folder);
        let log = File::create(folder.join("log")).unwrap();
        Self { news, process: Leash::start(&command, "TERM", &log).unwrap() }
    }

    /// Returns the next news but for signs of life.
    fn told(&self) -> String {
        loop {
            let news = self.heard();
            if news != "WATCHDOG=1" {
                return news;
            }
        }
    }

    fn heard(&self) -> String {
        self.news.recv_timeout(LIMIT).unwrap()
    }

    fn signal(&self, name: &str) {
        signal(&self.process, name);
    }
}

fn signal(process: &Leash, name: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

/// Reads news, whether somebody wants them yet or not: the kernel keeps few of them, and then lets
/// those wait who tell any.
fn read_on(socket: UnixDatagram) -> Receiver<String> {
    let (sender, news) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 1000];
        while let Ok(count) = socket.recv(&mut bytes) {
            let text = String::from_utf8(bytes[..count].to_vec()).unwrap();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    news
}

/// Writes a configuration that listens at a port on which nothing is to listen.
fn write_config(folder: &Path, more: &str) -> u16 {
    let (cluster, unused) = (cluster(Version::V15), free_port().unwrap());
    let text = format!(
        "listen = [\"127.0.0.1:{unused}\"]\nmetrics_listen = \"127.0.0.1:0\"\n\
         mysql_listen = [\"127.0.0.1:0\"]\nunix_socket_dir = {folder:?}\n\
         auth = \"trust\"\nworkers = 1\n{more}\n[databases.postgres]\nhost = {:?}\nport = {}\n\
         [databases.other]\nurl = \"mysql://root@127.0.0.1:{}\"\n",
        cluster.host(),
        cluster.port(),
        free_port().unwrap()
    );
    fs::write(folder.join("config.toml"), text).unwrap();
    unused
}

fn serves_at_the_sockets_of_systemd(name: &str, notify: impl Fn(&Path) -> String) {
    let folder = Folder::new(name);
    let folder = &folder.0;
    let unused = write_config(folder, "");
    let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (clients, mysql, metrics) = (tcp(), tcp(), tcp());
    let unix = folder.join("s").join(".s.PGSQL.5");
    fs::create_dir(folder.join("s")).unwrap();
    let by_path = UnixListener::bind(&unix).unwrap();
    let sockets = [
        (clients.as_fd(), "listen"),
        (by_path.as_fd(), "refrain.socket"),
        (mysql.as_fd(), "mysql"),
        (metrics.as_fd(), "metrics"),
    ];
    let systemd = Systemd::start(folder, &notify(folder), &sockets);
    let id = systemd.process.id();
    let address = clients.local_addr().unwrap();
    let ready = format!("MAINPID={id}\nREADY=1\nSTATUS=Serving at {address}, ");
    assert!(systemd.told().starts_with(&ready));
    let mut session = Session::open(address, "postgres");
    session.run("select 1");
    let url = format!("postgres://postgres@/postgres?host={}&port=5", folder.join("s").display());
    assert_eq!(psql(&url, "", "select 7").as_deref(), Ok("7"));
    let asked = |at: &TcpListener| TcpStream::connect(at.local_addr().unwrap()).unwrap();
    assert!(asked(&mysql).read(&mut [0]).is_ok());
    let mut scrape = asked(&metrics);
    scrape.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut said = String::new();
    scrape.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert!(TcpStream::connect(("127.0.0.1", unused)).is_err(), "systemd says where");
    eventually("there is a sign of life", || systemd.heard() == "WATCHDOG=1");

    systemd.signal("HUP");
    assert!(systemd.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(systemd.told().starts_with(&ready));
    write_config(folder, "no_such_option = 1");
    systemd.signal("HUP");
    assert!(systemd.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    let told = systemd.told();
    assert!(told.contains("READY=1\nSTATUS=Not reloaded: "), "{told}");

    session.run("begin");
    systemd.signal("TERM");
    assert_eq!(systemd.told(), "STOPPING=1\nSTATUS=Waiting for transactions of 1 clients");
    session.send(&[query("commit")]);
    assert_eq!(session.rest().words(), "C(COMMIT) Z(I) E(57P01)");
    assert_eq!(systemd.told(), "STOPPING=1\nSTATUS=Stopping");
    assert!(unix.exists(), "the file is systemd's");
}

#[test]
fn sockets_of_systemd_are_served_and_systemd_is_told() {
    serves_at_the_sockets_of_systemd("systemd-path", |folder| {
        folder.join("notify").display().to_string()
    });
    let abstract_name = format!("@refrain-systemd-{}", std::process::id());
    serves_at_the_sockets_of_systemd("systemd-abstract", |_| abstract_name.clone());
}

/// An address of systemd's choice may be one where nobody may be trusted.
#[test]
fn clients_of_other_machines_are_not_trusted_at_a_socket_of_systemd() {
    let folder = Folder::new("systemd-trust");
    write_config(&folder.0, "");
    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let notify = folder.0.join("notify").display().to_string();
    let mut systemd = Systemd::start(&folder.0, &notify, &[(open.as_fd(), "listen")]);
    eventually("it ends", || !systemd.process.is_running());
    let log = fs::read_to_string(folder.0.join("log")).unwrap();
    assert!(log.contains("would get in under any name"), "{log}");
}

#[test]
fn a_supervisor_that_does_not_read_holds_up_no_end() {
    let folder = Folder::new("systemd-deaf");
    let port = write_config(&folder.0, "");
    let notify = folder.0.join("notify");
    let _deaf = UnixDatagram::bind(&notify).unwrap();
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send_to(b"WATCHDOG=1", &notify).is_ok() {}
    let mut command = Command::new(program().unwrap());
    command.arg("config.toml").current_dir(&folder.0).env("NOTIFY_SOCKET", &notify);
    let log = File::create(folder.0.join("log")).unwrap();
    let mut process = Leash::start(&command, "KILL", &log).unwrap();
    eventually("it serves", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    signal(&process, "TERM");
    eventually("it ends", || !process.is_running());
}

/// The new program knows nothing of systemd but from the old one, and its sockets stay systemd's.
#[test]
fn systemd_is_told_of_a_takeover() {
    let folder = Folder::new("systemd-takeover");
    let folder = &folder.0;
    let unused = write_config(folder, &format!("takeover_socket = {:?}", folder.join("asking")));
    let clients = TcpListener::bind("127.0.0.1:0").unwrap();
    let notify = folder.join("notify").display().to_string();
    let mut systemd = Systemd::start(folder, &notify, &[(clients.as_fd(), "listen")]);
    assert!(systemd.told().contains("READY=1"));
    let address = clients.local_addr().unwrap();
    let mut session = Session::open(address, "postgres");
    session.run("begin");
    let mut command = Command::new(program().unwrap());
    command.args(["--takeover", "config.toml"]).current_dir(folder);
    let log = File::create(folder.join("log-of-new")).unwrap();
    let new = Leash::start(&command, "TERM", &log).unwrap();
    assert_eq!(systemd.told(), format!("MAINPID={}", new.id()));
    let ready = format!("MAINPID={}\nREADY=1\nSTATUS=Serving at {address}", new.id());
    let told = systemd.told();
    assert!(told.starts_with(&ready), "{told}");
    Session::open(address, "postgres").run("select 1");
    assert!(TcpStream::connect(("127.0.0.1", unused)).is_err(), "systemd says where");
    session.send(&[query("commit")]);
    assert_eq!(session.rest().words(), "C(COMMIT) Z(I) E(57P01)");
    eventually("the old program ends", || !systemd.process.is_running());
    eventually("there is a sign of life", || systemd.heard() == "WATCHDOG=1");
    drop(new);
    assert!(systemd.told().starts_with("STOPPING=1\n"));
}

//! Throwaway servers of MariaDB and MySQL.
//!
//! A server has its data in a folder of `scratch.rs`, listens on a Unix socket beside its data, and
//! does not wait for the disk. It ends when its [`Server`] is dropped or the
//! test process dies. Its user `root` needs no password there.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::command;
use crate::leash::Leash;
use crate::ports::free_port;
use crate::provision;
use crate::scratch;

/// The longest that a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Arguments of both servers, when they make their data as well as later.
const SMALL: &[&str] = &[
    "--innodb-buffer-pool-size=8M",
    "--innodb-doublewrite=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--key-buffer-size=1M",
    "--skip-log-bin",
];
/// Further arguments of MariaDB.
const MARIADB: &[&str] = &[
    "--innodb-log-file-size=4M",
    "--innodb-undo-tablespaces=0",
    "--aria-pagecache-buffer-size=1M",
];
/// Further arguments of MySQL 8.0. A thread that reads in parallel is waited for by a loop that
/// takes a processor, so no read has such threads.
const MYSQL: &[&str] = &[
    "--innodb-log-file-size=4M",
    "--innodb-parallel-read-threads=1",
    "--mysqlx=0",
    "--lc-messages-dir=share",
];
/// Further arguments of MySQL 9. Its build expects a folder for files that is not there.
const MYSQL_9: &[&str] = &[
    "--innodb-redo-log-capacity=8M",
    "--innodb-parallel-read-threads=1",
    "--mysqlx=0",
    "--secure-file-priv=",
];

/// The user of a server that listens on a port, and the user's password and schema.
pub const USER: &str = "app";
/// The password of [`USER`].
pub const PASSWORD: &str = "secret";
/// A schema without tables.
pub const SCHEMA: &str = "shop";

/// A server that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB 10.11, from Debian's packages.
    MariaDb,
    /// MySQL 8.0.15, from a Maven artifact.
    MySql,
    /// MySQL 9, from Debian's release that is made now. See [`Flavour::is_there`].
    MySql9,
}

impl Flavour {
    /// Whether this machine can have the server.
    pub fn is_there(self) -> Result<bool> {
        Ok(self != Self::MySql9 || provision::mysql_9()?.is_some())
    }

    /// Returns the command of the server, after fetching it if it is missing, and its own folder.
    fn program(self) -> Result<(Command, PathBuf)> {
        match self {
            Self::MariaDb => Ok((Command::new(provision::mariadb()?), PathBuf::from("/usr"))),
            Self::MySql => {
                let dir = provision::mysql()?;
                Ok((Command::new(dir.join("bin/mysqld")), dir))
            }
            Self::MySql9 => {
                let nine = provision::mysql_9()?.context("MySQL 9 is not there")?;
                Ok((nine.server(), nine.home()))
            }
        }
    }

    fn arguments(self) -> Vec<&'static str> {
        let further = match self {
            Self::MariaDb => MARIADB,
            Self::MySql => MYSQL,
            Self::MySql9 => MYSQL_9,
        };
        let mut arguments = [SMALL, further].concat();
        if provision::is_root() {
            arguments.push("--user=root");
        }
        arguments
    }

    fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
            Self::MySql9 => "mysql-9",
        }
    }

    /// Adds this flavour's arguments for data at `data` to the command of a program.
    fn command(self, mut command: Command, home: &Path, data: &Path) -> Command {
        // It must be the first argument: files of the system must not matter.
        command.arg("--no-defaults").args(self.arguments());
        // A script reads them as well, which takes no other form.
        command.arg(format!("--basedir={}", home.display()));
        command.arg(format!("--datadir={}", data.display())).current_dir(home);
        command
    }

    /// Makes the data of a new server.
    fn make(self, data: &Path) -> Result<()> {
        let (program, home) = self.program()?;
        match self {
            Self::MariaDb => {
                let install = Command::new("mariadb-install-db");
                let mut install = self.command(install, &home, data);
                install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
                command::output(install.arg("--skip-name-resolve"))?;
            }
            Self::MySql | Self::MySql9 => {
                let mut server = self.command(program, &home, data);
                command::output(server.arg("--initialize-insecure"))?;
            }
        }
        Ok(())
    }

    /// Returns the data that each new server copies, and makes them if there are none of this
    /// version and these arguments.
    fn template(self) -> Result<PathBuf> {
        let (mut program, _) = self.program()?;
        let version = command::output(program.args(["--no-defaults", "--version"]))?;
        // The path of the program, which stands first, does not matter to the data.
        let version = version.split_once(" Ver ").map_or(&*version, |(_, version)| version);
        let mut hasher = DefaultHasher::new();
        (version, self.arguments()).hash(&mut hasher);
        let name = format!("template.{}.{:016x}", self.name(), hasher.finish());
        let template = scratch::base()?.join(name);
        if !template.is_dir() {
            let unfinished = scratch::unused()?;
            fs::create_dir(&unfinished)?;
            let made = unfinished.join("data");
            self.make(&made)?;
            // Another process may have made them first. Then these are not needed.
            if fs::rename(&made, &template).is_err() {
                ensure!(template.is_dir(), "cannot create {}", template.display());
            }
            fs::remove_dir_all(unfinished)?;
        }
        Ok(template)
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    flavour: Flavour,
    settings: Vec<(String, String)>,
    port: u16,
    /// The time zone of the machine, as far as the server knows.
    zone: Option<&'static str>,
    dir: PathBuf,
    server: Option<Leash>,
}

impl Server {
    /// Starts a server, and fetches its program first if it is missing.
    ///
    /// `settings` are names and values as on the server's command line.
    pub fn start(flavour: Flavour, settings: &[(&str, &str)]) -> Result<Server> {
        Server::start_at(flavour, 0, None, settings)
    }

    /// Starts a server in a time zone. It also listens on a port of `address`, which is one of this
    /// machine.
    pub fn start_in(
        zone: &'static str,
        flavour: Flavour,
        address: &str,
        settings: &[(&str, &str)],
    ) -> Result<Server> {
        let port = free_port()?;
        let text = port.to_string();
        let own = [("skip-networking", "0"), ("bind-address", address), ("port", &*text)];
        Server::start_at(flavour, port, Some(zone), &[&own, settings].concat())
    }

    /// Starts a server that listens on a port of this machine as well, and has the user [`USER`]
    /// with the [`SCHEMA`].
    pub fn start_listening(flavour: Flavour, settings: &[(&str, &str)]) -> Result<Server> {
        let port = free_port()?;
        let text = port.to_string();
        let own = [("skip-networking", "0"), ("bind-address", "127.0.0.1"), ("port", &*text)];
        let server = Server::start_at(flavour, port, None, &[&own, settings].concat())?;
        let plugin = match flavour {
            // The default, which MariaDB names in other words.
            Flavour::MariaDb => "",
            Flavour::MySql | Flavour::MySql9 => "WITH caching_sha2_password ",
        };
        server.run(&format!(
            "CREATE USER {USER}@'%' IDENTIFIED {plugin}BY '{PASSWORD}'; \
             GRANT ALL ON *.* TO {USER}@'%'; CREATE DATABASE {SCHEMA}"
        ))?;
        Ok(server)
    }

    fn start_at(
        flavour: Flavour,
        port: u16,
        zone: Option<&'static str>,
        settings: &[(&str, &str)],
    ) -> Result<Server> {
        let template = flavour.template()?;
        let dir = scratch::for_data()?;
        fs::create_dir(&dir)?;
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(text).collect();
        let mut server = Server { flavour, settings, port, zone, dir, server: None };
        let data = server.data();
        fs::create_dir_all(data.parent().context("no parent folder")?)?;
        let mut copy = Command::new("cp");
        command::run(copy.args(["-a", "--reflink=auto"]).arg(template).arg(&data))?;
        server.serve()?;
        Ok(server)
    }

    /// Returns the path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// Returns the folder of the server's files.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder of the server's data: where MariaDB's own suite has it.
    fn data(&self) -> PathBuf {
        self.dir.join("mysqld.1/data")
    }

    /// Returns the port of a server that was told to listen.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("server.log")).unwrap_or_default()
    }

    /// Runs texts as `root` and returns the rows.
    pub fn run(&self, texts: &str) -> Result<String> {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-uroot", "-N", "-e", texts]).arg("-S").arg(self.socket());
        command::output(&mut client)
    }

    /// Shuts the server down, and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        self.run("SHUTDOWN")?;
        let asked = Instant::now();
        while self.server.as_mut().is_some_and(Leash::is_running) {
            ensure!(
                asked.elapsed() < START_MAX,
                "{:?} does not end:\n{}",
                self.flavour,
                self.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
        self.serve()
    }

    fn serve(&mut self) -> Result<()> {
        let (program, home) = self.flavour.program()?;
        let (data, pid_file) = (self.data(), self.dir.join("pid"));
        let mut command = self.flavour.command(program, &home, &data);
        command.arg("--skip-networking").arg("--socket").arg(self.socket());
        command.arg("--pid-file").arg(&pid_file);
        // A server that starts deletes the temporary tables that it finds, also those of others.
        let temporary = self.dir.join("temporary");
        fs::create_dir_all(&temporary)?;
        command.arg("--tmpdir").arg(&temporary);
        command.args(self.settings.iter().map(|(name, value)| format!("--{name}={value}")));
        command.envs(self.zone.map(|zone| ("TZ", zone)));
        let log = File::options().append(true).create(true).open(self.dir.join("server.log"))?;
        let mut server = Leash::start_in(&self.dir, &command, "KILL", &log)?;
        let started = Instant::now();
        // The server writes the file when it takes connections.
        while !fs::read_to_string(&pid_file).is_ok_and(|id| id.ends_with('\n')) {
            if !server.is_running() || started.elapsed() > START_MAX {
                bail!("{:?} did not start:\n{}", self.flavour, self.log());
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.server = Some(server);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server = None;
        let _ = fs::remove_dir_all(&self.dir);
    }
}

//! Throwaway servers of MariaDB and MySQL.
//!
//! A server has its data under the system's folder for temporary files, listens on a Unix socket
//! beside its data, and does not wait for the disk. It ends when its [`Server`] is dropped or the
//! test process dies. Its user `root` needs no password.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::command;
use crate::leash::Leash;
use crate::provision;
use crate::scratch;

/// The longest that a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Arguments of both servers, when they make their data as well as later.
const SMALL: &[&str] = &[
    "--innodb-log-file-size=4M",
    "--innodb-buffer-pool-size=8M",
    "--innodb-doublewrite=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--key-buffer-size=1M",
    "--skip-log-bin",
];
/// Further arguments of MariaDB.
const MARIADB: &[&str] = &["--innodb-undo-tablespaces=0", "--aria-pagecache-buffer-size=1M"];
/// Further arguments of MySQL.
const MYSQL: &[&str] = &["--mysqlx=0", "--lc-messages-dir=share"];

/// A server that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB 10.11, from Debian's packages.
    MariaDb,
    /// MySQL 8.0.15, from a Maven artifact.
    MySql,
}

impl Flavour {
    /// Returns the server's program, after fetching it if it is missing, and its own folder.
    fn program(self) -> Result<(PathBuf, PathBuf)> {
        match self {
            Self::MariaDb => Ok((provision::mariadb()?, PathBuf::from("/usr"))),
            Self::MySql => {
                let dir = provision::mysql()?;
                Ok((dir.join("bin/mysqld"), dir))
            }
        }
    }

    fn arguments(self) -> Vec<&'static str> {
        let further = match self {
            Self::MariaDb => MARIADB,
            Self::MySql => MYSQL,
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
        }
    }

    /// Returns a command of a program with this flavour's arguments, for data at `data`.
    fn command(self, program: &Path, home: &Path, data: &Path) -> Command {
        let mut command = Command::new(program);
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
                let install = Path::new("mariadb-install-db");
                let mut install = self.command(install, &home, data);
                install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
                command::output(install.arg("--skip-name-resolve"))?;
            }
            Self::MySql => {
                let mut server = self.command(&program, &home, data);
                command::output(server.arg("--initialize-insecure"))?;
            }
        }
        Ok(())
    }

    /// Returns the data that each new server copies, and makes them if there are none of this
    /// version and these arguments.
    fn template(self) -> Result<PathBuf> {
        let (program, _) = self.program()?;
        let version = command::output(Command::new(program).args(["--no-defaults", "--version"]))?;
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
    dir: PathBuf,
    server: Option<Leash>,
}

impl Server {
    /// Starts a server, and fetches its program first if it is missing.
    ///
    /// `settings` are names and values as on the server's command line.
    pub fn start(flavour: Flavour, settings: &[(&str, &str)]) -> Result<Server> {
        let template = flavour.template()?;
        let dir = scratch::unused()?;
        fs::create_dir(&dir)?;
        let mut server = Server { dir, server: None };
        let data = server.dir.join("data");
        let mut copy = Command::new("cp");
        command::run(copy.args(["-a", "--reflink=auto"]).arg(template).arg(&data))?;
        server.serve(flavour, settings)?;
        Ok(server)
    }

    /// Returns the path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// Returns the server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    fn serve(&mut self, flavour: Flavour, settings: &[(&str, &str)]) -> Result<()> {
        let (program, home) = flavour.program()?;
        let (data, pid_file) = (self.dir.join("data"), self.dir.join("pid"));
        let mut command = flavour.command(&program, &home, &data);
        command.arg("--skip-networking").arg("--socket").arg(self.socket());
        command.arg("--pid-file").arg(&pid_file);
        command.args(settings.iter().map(|(name, value)| format!("--{name}={value}")));
        let log = File::options().append(true).create(true).open(self.dir.join("log"))?;
        let mut server = Leash::start(&command, "KILL", &log)?;
        let started = Instant::now();
        // The server writes the file when it takes connections.
        while !fs::read_to_string(&pid_file).is_ok_and(|id| id.ends_with('\n')) {
            if !server.is_running() || started.elapsed() > START_MAX {
                bail!("{flavour:?} did not start:\n{}", self.log());
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

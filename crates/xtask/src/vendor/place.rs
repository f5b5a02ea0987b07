//! A server as the suite expects it, and runs of the suite at it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::mysql::{Flavour, Server};
use crate::proxy::Refrain;

use super::scripts;

/// The time zone of the suite's servers and clients.
const ZONE: &str = "GMT-3";
/// The server's address. Refrain has the same port at 127.0.0.1: tests compare the server's port
/// with the one that they connect to.
const ADDRESS: &str = "127.0.0.2";
/// Options of the suite's own configuration that are left out: they make servers large or slow, or
/// are words without a value that are so by default.
const LEFT_OUT: &[&str] =
    &["performance-schema", "feedback", "pam-", "prefix-matching", "ssl-", "secure-file-priv"];
/// Options that the suite gives its servers elsewhere. Tests write files, which the server reads,
/// and the other way round.
const OPTIONS: &[(&str, &str)] =
    &[("secure-file-priv", ""), ("log-bin", "mysqld-bin"), ("server-id", "1")];
/// The most servers of a pool: more than a test has sessions.
const POOL_SIZE: u32 = 60;
/// The longest that a test may take, in minutes, which the suite counts in.
const MINUTES: &str = "--testcase-timeout=1";
/// Schemas that stay from test to test.
const OWN_SCHEMAS: &str = "'mysql','information_schema','performance_schema','sys','mtr'";
/// Statements that the suite runs in a new server before the first test.
const SETUP: &str = "DROP DATABASE IF EXISTS test; CREATE DATABASE mtr;\n\
                     DELETE FROM mysql.global_priv WHERE user = ''; FLUSH PRIVILEGES;\n";

/// A way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Without Refrain.
    Direct,
    /// Through Refrain, with a pool of this mode.
    Through(&'static str),
}

/// A server. Its folder is that of the suite's own files, too.
pub(super) struct Place<'a> {
    /// A folder like `/usr`, with the suite.
    usr: &'a Path,
    /// Refrain's program.
    program: &'a Path,
    server: Server,
}

impl<'a> Place<'a> {
    pub(super) fn new(usr: &'a Path, program: &'a Path) -> Result<Place<'a>> {
        let place = Place { usr, program, server: start(usr)? };
        place.set_up()?;
        Ok(place)
    }

    /// Starts a server in place of the one that a failed test has left in an unknown state.
    pub(super) fn renew(&mut self) -> Result<()> {
        *self = Self::new(self.usr, self.program)?;
        Ok(())
    }

    fn set_up(&self) -> Result<()> {
        let own = self.server.folder();
        for folder in ["log", "run", "tmp"] {
            fs::create_dir_all(own.join(folder))?;
        }
        let mut text = SETUP.to_owned();
        for name in ["mtr_check.sql", "mtr_warnings.sql"] {
            text.push_str("USE mtr;\n");
            let texts = fs::read_to_string(suite(self.usr).join("include").join(name))?;
            // A form of the command that the suite's client knows, and no other.
            text.push_str(&texts.replace("delimiter ||;", "delimiter ||"));
            text.push_str("\ndelimiter ;\n");
        }
        text.push_str("USE mysql;\n");
        let zones = self.usr.join("share/mysql/mysql_test_data_timezone.sql");
        text.push_str(&fs::read_to_string(zones)?);
        let path = own.join("setup.sql");
        fs::write(&path, text)?;
        // The suite's own procedures have a statement that this client does not send as they mean.
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--force", "-uroot", "-S"]).arg(self.server.socket());
        client.stdin(File::open(path)?).stdout(Stdio::null()).stderr(Stdio::null());
        client.status().context("cannot run `mariadb`")?;
        let has = self.server.run("SHOW PROCEDURE STATUS LIKE 'add_suppression'")?;
        ensure!(!has.is_empty(), "the suite's procedures are not there");
        Ok(())
    }

    /// Runs tests one after another, until one fails, and returns the output.
    pub(super) fn run(&self, names: &[String], way: Way, arguments: &[&str]) -> Result<Ran> {
        self.clear()?;
        let refrain = match way {
            Way::Direct => None,
            Way::Through(mode) => Some(self.refrain(mode, names)?),
        };
        let port = self.server.port();
        let socket = match &refrain {
            None => self.server.socket(),
            Some((_, socket)) => socket.clone(),
        };
        let mut suite_run = Command::new("perl");
        suite_run.arg("./mysql-test-run.pl").current_dir(suite(self.usr));
        suite_run.args(["--extern", &format!("socket={}", socket.display())]);
        suite_run.args(["--extern", "user=root"]);
        suite_run.arg(format!("--vardir={}", self.server.folder().display()));
        suite_run.args(["--noreorder", MINUTES]).args(arguments).args(names);
        suite_run.env("HOME", self.server.folder()).env("MASTER_MYPORT", port.to_string());
        suite_run.env("MASTER_MYSOCK", &socket);
        suite_run.env("LD_LIBRARY_PATH", self.usr.join("lib/x86_64-linux-gnu"));
        let output = suite_run.stdin(Stdio::null()).output().context("cannot run the suite")?;
        let log = refrain.map(|(refrain, _)| refrain.log()).unwrap_or_default();
        let text = [output.stdout, output.stderr].concat();
        Ok(Ran { output: String::from_utf8_lossy(&text).into_owned(), log })
    }

    /// Drops what tests may have left, and makes the schema that they begin in.
    fn clear(&self) -> Result<()> {
        let drops = self.server.run(&format!(
            "SELECT CONCAT('DROP DATABASE `', schema_name, '`;') FROM information_schema.schemata \
             WHERE schema_name NOT IN ({OWN_SCHEMAS})"
        ))?;
        self.server.run(&format!("{drops}CREATE DATABASE test CHARACTER SET latin1")).map(drop)
    }

    /// Starts Refrain for these tests, and returns it with its socket.
    fn refrain(&self, mode: &str, names: &[String]) -> Result<(Refrain, PathBuf)> {
        let port = self.server.port();
        let socket = self.server.folder().join("refrain.sock");
        let mut config = format!(
            "mysql_listen = [\"127.0.0.1:{port}\"]\nmysql_socket = {socket:?}\nauth = \"trust\"\n\
             [pool]\npool_mode = \"{mode}\"\npool_size = {POOL_SIZE}\n\
             [databases.\"*\"]\nbackend = \"mysql\"\nhost = {:?}\n",
            self.server.socket()
        );
        for (user, password) in scripts::users(&suite(self.usr), names)? {
            config.push_str(&format!("[users.{user:?}]\npassword = {password:?}\n"));
        }
        Ok((Refrain::start_as(self.program, &config)?, socket))
    }
}

/// The output of a run of tests.
pub(super) struct Ran {
    /// The suite's output.
    pub(super) output: String,
    /// Refrain's log, or nothing.
    pub(super) log: String,
}

/// Returns the suite's own folder.
pub(super) fn suite(usr: &Path) -> PathBuf {
    usr.join("share/mysql/mysql-test")
}

/// Starts a server with the options of the suite's own configuration.
fn start(usr: &Path) -> Result<Server> {
    let suite = suite(usr);
    let file = fs::read_to_string(suite.join("include/default_mysqld.cnf"))?;
    let section = file.split("[mysqld]").nth(1).and_then(|rest| rest.split("\n[").next());
    let section = section.context("the suite's configuration has no section of the server")?;
    let mut settings: Vec<(&str, &str)> = Vec::new();
    for line in section.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once('=').unwrap_or((line, "1"));
        if !name.is_empty() && !LEFT_OUT.iter().any(|word| name.contains(word)) {
            settings.push((name.trim(), value.trim()));
        }
    }
    let path = |name: &str| suite.join("std_data").join(name).display().to_string();
    let names = ["cacert.pem", "server-cert.pem", "server-key.pem"].map(path);
    settings.extend(OPTIONS);
    settings.extend([
        ("ssl-ca", &*names[0]),
        ("ssl-cert", &*names[1]),
        ("ssl-key", &*names[2]),
        ("character-sets-dir", "/usr/share/mysql/charsets"),
    ]);
    Server::start_in(ZONE, Flavour::MariaDb, ADDRESS, &settings)
}

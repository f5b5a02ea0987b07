//! Throwaway PostgreSQL clusters.
//!
//! A cluster has fsync off, its data in a folder of `scratch.rs`, a free port on 127.0.0.1 and a
//! Unix socket beside its data. It ends when its [`Cluster`] is dropped or the test
//! process dies. If `REFRAIN_PG15` or `REFRAIN_PG18` names a running server as `host:port`, tests
//! use that server with its own settings instead.
//!
//! PostgreSQL refuses to run as root, so root runs it as the user `postgres` of Debian's package.

pub mod account;
mod template;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificates::{Authority, Signed};
use crate::command;
use crate::leash::Leash;
use crate::ports::free_port;
use crate::scratch;

pub use self::template::{AUTH_DATABASE, PASSWORD};
pub use crate::provision::Version;

/// The longest that a cluster may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// A running cluster.
///
/// The superuser `postgres` needs no password. [`AUTH_DATABASE`] has users who do.
#[derive(Debug)]
pub struct Cluster {
    host: String,
    port: u16,
    own: Option<Own>,
}

/// The parts of a cluster that this program started itself.
#[derive(Debug)]
struct Own {
    bin: PathBuf,
    dir: PathBuf,
    settings: Vec<String>,
    server: Option<Leash>,
}

impl Cluster {
    /// Starts a cluster, and fetches PostgreSQL first if it is missing.
    ///
    /// `settings` are names and values as in `postgresql.conf`. They override the template's.
    pub fn start(version: Version, settings: &[(&str, &str)]) -> Result<Cluster> {
        Self::start_with_files(version, &[], settings)
    }

    /// Starts a cluster that encrypts, with a certificate of `authority` for `localhost` and
    /// `127.0.0.1`, and these lines of `pg_hba.conf` and `pg_ident.conf`. It trusts certificates of
    /// `authority`.
    pub fn start_encrypting(
        version: Version,
        authority: &Authority,
        hba: &str,
        ident: &str,
    ) -> Result<Cluster> {
        Self::start_encrypting_with(version, authority, hba, ident, &[])
    }

    /// Starts such a cluster with further settings.
    pub fn start_encrypting_with(
        version: Version,
        authority: &Authority,
        hba: &str,
        ident: &str,
        settings: &[(&str, &str)],
    ) -> Result<Cluster> {
        let signed = authority.sign("server", &["localhost", "127.0.0.1"])?;
        Self::start_with_certificate(version, (authority, &signed), (hba, ident), settings)
    }

    /// Starts a cluster that encrypts, with this certificate, which trusts certificates of this
    /// authority, and with these lines of `pg_hba.conf`.
    pub fn start_showing(
        version: Version,
        certificates: (&Authority, &Signed),
        hba: &str,
    ) -> Result<Cluster> {
        Self::start_with_certificate(version, certificates, (hba, ""), &[])
    }

    fn start_with_certificate(
        version: Version,
        (authority, signed): (&Authority, &Signed),
        (hba, ident): (&str, &str),
        settings: &[(&str, &str)],
    ) -> Result<Cluster> {
        let root = authority.certificate();
        let files = [
            ("server.crt", signed.certificate.as_str()),
            ("server.key", &signed.key),
            ("root.crt", &root),
            ("pg_hba.conf", hba),
            ("pg_ident.conf", ident),
        ];
        let all = [&[("ssl", "on"), ("ssl_ca_file", "root.crt")], settings].concat();
        Self::start_with_files(version, &files, &all)
    }

    fn start_with_files(
        version: Version,
        files: &[(&str, &str)],
        settings: &[(&str, &str)],
    ) -> Result<Cluster> {
        if let Ok(running) = std::env::var(format!("REFRAIN_PG{}", version.name())) {
            let (host, port) = running.rsplit_once(':').context("REFRAIN_PG… is not host:port")?;
            return Ok(Cluster { host: host.to_owned(), port: port.parse()?, own: None });
        }
        let bin = account::reachable_bin(version)?;
        let template = template::of(version, &bin)?;
        let dir = new_dir(scratch::for_data()?)?;
        template::copy(&template, &dir.join("data"))?;
        for (name, text) in files {
            let path = dir.join("data").join(name);
            fs::write(&path, text)?;
            // PostgreSQL reads no key that belongs to another, or that others may read.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            chown(&path, Some(fs::metadata(dir.join("data"))?.uid()), None)?;
        }
        Self::start_in(bin, dir, settings)
    }

    /// Starts a standby of this cluster, by streaming replication. This program has started the
    /// cluster.
    pub fn start_standby(&self, settings: &[(&str, &str)]) -> Result<Cluster> {
        self.start_standby_by(self.port, settings)
    }

    /// Starts a standby that reaches this cluster by a proxy on this port.
    pub fn start_standby_by(&self, port: u16, settings: &[(&str, &str)]) -> Result<Cluster> {
        let own = self.own.as_ref().context("the primary is not ours")?;
        let (bin, dir) = (own.bin.clone(), new_dir(scratch::for_data()?)?);
        let primary = format!("host={} port={port} user=postgres", self.host);
        let mut backup = account::command(&bin.join("pg_basebackup"));
        backup.args(["--checkpoint=fast", "--no-sync", "-d", &primary, "-D"]);
        command::output(backup.arg(dir.join("data")))?;
        let signal = dir.join("data/standby.signal");
        fs::write(&signal, "")?;
        chown(&signal, Some(fs::metadata(dir.join("data"))?.uid()), None)?;
        Self::start_in(bin, dir, &[settings, &[("primary_conninfo", &primary)]].concat())
    }

    /// Starts a cluster whose data are in this folder.
    fn start_in(bin: PathBuf, dir: PathBuf, settings: &[(&str, &str)]) -> Result<Cluster> {
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let own = Own { bin, dir, settings, server: None };
        let host = "127.0.0.1".to_owned();
        let mut cluster = Cluster { host, port: free_port()?, own: Some(own) };
        cluster.resume()?;
        Ok(cluster)
    }

    /// Returns the host name or address on which the server listens.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the TCP port on which the server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the Unix socket and of the data (`data/`), if this program started
    /// the server.
    pub fn dir(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.dir.as_path())
    }

    /// Returns the server's first process, if this program started the server and it runs.
    pub fn postmaster(&self) -> Option<u32> {
        let text = fs::read_to_string(self.dir()?.join("data/postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// Returns a connection string for the superuser, over TCP.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}:{}/{database}", self.host, self.port)
    }

    /// Returns a program of this version of PostgreSQL, such as `pg_receivewal`. This program has
    /// started the cluster.
    pub fn program(&self, name: &str) -> Result<Command> {
        let own = self.own.as_ref().context("the cluster is not ours")?;
        Ok(account::command(&own.bin.join(name)))
    }

    /// Runs `sql` as the superuser with `psql`, and returns the rows without decoration.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        // A build of a server may come without it.
        let own = self.own.as_ref().map(|own| own.bin.join("psql")).filter(|path| path.exists());
        let psql = own.unwrap_or("psql".into());
        let mut psql = Command::new(psql);
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-c", sql]);
        command::output(&mut psql)
    }

    /// Stops the server at once, as a crash would, and keeps its data. Does nothing to a server
    /// that this program did not start.
    pub fn stop(&mut self) {
        if let Some(own) = &mut self.own {
            own.server = None;
        }
    }

    /// Starts the server again, on the same port, after [`Cluster::stop`].
    pub fn resume(&mut self) -> Result<()> {
        match &mut self.own {
            Some(own) => own.serve(self.port),
            None => Ok(()),
        }
    }

    /// Returns the server's log.
    pub fn log(&self) -> String {
        self.own.as_ref().map_or(String::new(), Own::log)
    }
}

impl Own {
    fn serve(&mut self, port: u16) -> Result<()> {
        let data = self.dir.join("data");
        let mut postgres = account::command(&self.bin.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        postgres.arg("-k").arg(&self.dir).current_dir(&self.dir);
        for setting in &self.settings {
            postgres.arg("-c").arg(setting);
        }
        let log = File::options().append(true).create(true).open(self.dir.join("log"))?;
        let mut server = Leash::start_in(&self.dir, &postgres, "QUIT", &log)?;
        let started = Instant::now();
        while !is_ready(&data, server.id()) {
            if !server.is_running() || started.elapsed() > START_MAX {
                bail!("PostgreSQL did not start:\n{}", self.log());
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.server = Some(server);
        Ok(())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        if let Some(dir) = self.dir() {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

/// Whether the server with this process id says in its pid file that it takes connections.
fn is_ready(data: &Path, id: u32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
    let mut lines = text.lines();
    let same = lines.next().is_some_and(|line| line.trim() == id.to_string());
    // A standby is ready as well.
    let is_up = |status: &str| matches!(status.trim(), "ready" | "standby");
    same && lines.nth(6).is_some_and(is_up)
}

/// Creates this folder, for one cluster, and returns its path.
fn new_dir(dir: PathBuf) -> Result<PathBuf> {
    account::own_dir(&dir, "0755")?;
    Ok(dir)
}

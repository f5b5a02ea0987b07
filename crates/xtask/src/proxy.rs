//! Throwaway processes of the proxy.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::leash::Leash;
use crate::ports::{self, free_port};
use crate::postgres::Cluster;
use crate::workspace;

/// The longest that the proxy may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);

/// A running proxy on a free port of 127.0.0.1. Dropping this ends it.
#[derive(Debug)]
pub struct Refrain {
    port: u16,
    dir: PathBuf,
    process: Leash,
}

impl Refrain {
    /// Starts a proxy with a transaction pool of 20 servers over every database of `cluster`.
    pub fn over(cluster: &Cluster) -> Result<Refrain> {
        Refrain::start(&over(cluster, "transaction", 20))
    }

    /// Starts [`program`] with this configuration (TOML), preceded by `listen` and, unless the
    /// configuration has it, `metrics_listen`.
    pub fn start(config: &str) -> Result<Refrain> {
        Refrain::start_as(&program()?, config)
    }

    /// Starts another build of the program, as [`Refrain::start`] does.
    pub fn start_as(program: &Path, config: &str) -> Result<Refrain> {
        Refrain::start_command(&Command::new(program), config)
    }

    /// Starts [`program`] with at most `most` file descriptors, as [`Refrain::start`] does.
    pub fn start_with_descriptors(most: u32, config: &str) -> Result<Refrain> {
        Refrain::start_within(&program()?, &format!("-n {most}"), config)
    }

    /// Starts a program within a limit of the shell's `ulimit`, as [`Refrain::start`] does.
    pub fn start_within(program: &Path, limit: &str, config: &str) -> Result<Refrain> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]);
        shell.arg(program);
        Refrain::start_command(&shell, config)
    }

    /// Starts [`program`] with a variable of the environment, as [`Refrain::start`] does.
    pub fn start_with_variable(name: &str, value: &str, config: &str) -> Result<Refrain> {
        let mut env = Command::new("env");
        env.arg(format!("{name}={value}")).arg(program()?);
        Refrain::start_command(&env, config)
    }

    /// Starts `begin`, a program with arguments, with the path of the configuration appended.
    fn start_command(begin: &Command, config: &str) -> Result<Refrain> {
        let port = free_port()?;
        let dir = new_dir()?;
        let mut text = format!("listen = [\"127.0.0.1:{port}\"]\n");
        if !config.contains("metrics_listen") {
            text.push_str("metrics_listen = \"off\"\n");
        }
        fs::write(dir.join("config.toml"), text + config)?;
        let log = File::create(dir.join("log"))?;
        let mut command = Command::new(begin.get_program());
        command.args(begin.get_args()).arg(dir.join("config.toml")).current_dir(&dir);
        let process = Leash::start(&command, "TERM", &log)?;
        let mut refrain = Refrain { port, dir, process };
        refrain.wait_until_listening()?;
        Ok(refrain)
    }

    /// Starts [`program`] with a `pgbouncer.ini` and other files in its folder. In all of them,
    /// `{port}` and `{dir}` stand for the port that is free and for the folder.
    pub fn start_ini(ini: &str, files: &[(&str, &str)]) -> Result<Refrain> {
        let port = free_port()?;
        let dir = new_dir()?;
        let named = |text: &str| {
            let text = text.replace("{dir}", &dir.display().to_string());
            text.replace("{port}", &port.to_string())
        };
        for (name, text) in files.iter().chain([&("config.ini", ini)]) {
            fs::write(dir.join(name), named(text))?;
        }
        let log = File::create(dir.join("log"))?;
        let mut command = Command::new(program()?);
        command.arg("config.ini").current_dir(&dir);
        let process = Leash::start(&command, "TERM", &log)?;
        let mut refrain = Refrain { port, dir, process };
        refrain.wait_until_listening()?;
        Ok(refrain)
    }

    /// Returns the folder in which the proxy runs.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Starts [`program`] in a folder without a configuration, so that it serves an SQLite file
    /// there.
    pub fn alone(folder: &Path) -> Result<Refrain> {
        let (port, metrics) = (free_port()?, free_port()?);
        let dir = new_dir()?;
        let log = File::create(dir.join("log"))?;
        let mut command = Command::new(program()?);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--metrics-listen", &format!("127.0.0.1:{metrics}")]).current_dir(folder);
        let process = Leash::start(&command, "TERM", &log)?;
        let mut refrain = Refrain { port, dir, process };
        refrain.wait_until_listening()?;
        Ok(refrain)
    }

    fn wait_until_listening(&mut self) -> Result<()> {
        ports::wait_for(self.port, START_MAX, || self.process.is_running())
            .with_context(|| format!("the proxy does not listen:\n{}", self.log()))
    }

    /// Returns the TCP port on which the proxy listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the process id, for signals.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the proxy still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Returns the path of the configuration file, which a test may change before a reload.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    /// Returns the proxy's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Returns a connection string for the superuser through the proxy.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Refrain {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns a configuration with one pool over every database of `cluster`.
pub fn over(cluster: &Cluster, pool_mode: &str, pool_size: u32) -> String {
    over_with(cluster, pool_mode, pool_size, "")
}

/// Returns such a configuration with further lines for the pool's options.
pub fn over_with(cluster: &Cluster, pool_mode: &str, pool_size: u32, options: &str) -> String {
    let (host, port) = (cluster.host(), cluster.port());
    format!(
        "auth = \"trust\"\n\n\
         [pool]\npool_mode = \"{pool_mode}\"\npool_size = {pool_size}\n{options}\n\
         [databases.\"*\"]\nurl = \"postgres://postgres@{host}:{port}\"\n"
    )
}

/// Returns the path of the built program: in an integration test the one that cargo names, else the
/// newest in the target folder.
pub fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("CARGO_BIN_EXE_refrain") {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    let beside = own.ancestors().skip(1).take(2).map(Path::to_path_buf);
    let target = workspace::target();
    let folders = beside.chain([target.join("release"), target.join("debug")]);
    let found = folders.map(|dir| dir.join("refrain")).filter(|path| path.is_file());
    let newest = found.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.context("the program `refrain` is not built: cargo build --package refrain")
}

fn new_dir() -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("refrain-proxy-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

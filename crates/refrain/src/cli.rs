//! The command line.

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use refrain_config::{DriverChoice, LogFormat, LogLevel, PoolMode, Workers};
use refrain_drive::Address;

use crate::program::Program;
use crate::source::{From, Overrides, PasswordFrom, Source};
use crate::{check, descriptors, log, program, source};

/// What cannot work was asked for.
const USAGE: u8 = 2;

/// What is served where nothing else was asked for.
const OWN_DATABASE: &str = "sqlite:./refrain.db";

const EXAMPLES: &str = "\
Examples:
  Serve a database of its own, the file ./refrain.db, which is made if it is not there:
      refrain
      psql -h localhost -p 6432

  Pool the database on this machine; clients connect to port 6432:
      refrain postgres://postgres@localhost/app
      psql -h localhost -p 6432 -U postgres app

  The same with a limit of ten server connections, for other machines as well:
      refrain postgres://app:secret@db.internal/app --pool-size 10 --listen 0.0.0.0:6432

  The password kept out of the list of processes: in a file, or in the environment (REFRAIN_PASSWORD; or the
  whole URL as REFRAIN_URL):
      refrain postgres://app@db.internal/app --password-file /etc/refrain/password
      REFRAIN_URL=postgres://app:secret@db.internal/app refrain

  With a file, for several databases and users; checked first:
      refrain check --connect refrain.toml
      refrain refrain.toml

  Look at it while it runs:
      psql -h localhost -p 6432 -U postgres refrain -c 'SHOW POOLS'
      curl http://localhost:9432/metrics

Signals: HUP reads the file again; INT or TERM lets transactions finish and ends (twice: at once);
QUIT ends at once; USR1 and USR2 pause and resume all databases.";

/// A database proxy that refrains from doing work twice: it pools connections to PostgreSQL and lets
/// prepared statements work across them. Without a server it is one, on an SQLite file.
#[derive(Debug, Parser)]
#[command(name = "refrain", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    action: Option<Action>,
    /// URL of the server (postgres://user:password@host:port/dbname) or of an SQLite file (sqlite:path), or
    /// a configuration file [default: REFRAIN_URL of the environment, else sqlite:./refrain.db]
    #[arg(value_name = "URL | FILE")]
    target: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check a configuration, and tell everything that is wrong with it.
    Check {
        /// URL of the server, or a configuration file.
        #[arg(value_name = "URL | FILE")]
        target: String,
        /// File with the password of the URL's user
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// Also resolve each server's name and connect to it.
        #[arg(long)]
        connect: bool,
        /// Clients of other machines may be trusted.
        #[arg(long)]
        insecure_trust: bool,
    },
}

/// What the command line says goes before what the file says.
#[derive(Debug, Args)]
struct Flags {
    /// File with the password of the URL's user: a command line is for everybody to see who may list processes
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Address to accept clients on; may be given several times [default: 127.0.0.1:6432]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Directory for a Unix socket to accept clients on
    #[arg(long, value_name = "DIR")]
    unix_socket_dir: Option<PathBuf>,
    /// Threads that serve clients: a number, or "cores" [default: cores]
    #[arg(long, value_name = "N", value_parser = workers)]
    workers: Option<Workers>,
    /// Server connections of each pool (one user of one database) [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pool_size: Option<u32>,
    /// How long a client keeps its server: transaction, session or statement [default: transaction]
    #[arg(long, value_name = "MODE", value_parser = word(&POOL_MODES))]
    pool_mode: Option<PoolMode>,
    /// How to talk to the kernel: auto, uring or epoll [default: auto]
    #[arg(long, value_name = "DRIVER", value_parser = word(&DRIVERS))]
    driver: Option<DriverChoice>,
    /// Form of the log: text or json [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = word(&LOG_FORMATS))]
    log_format: Option<LogFormat>,
    /// Least important lines of the log: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = word(&LOG_LEVELS))]
    log_level: Option<LogLevel>,
    /// Address for Prometheus metrics, or "off" [default: 127.0.0.1:9432]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_or_off)]
    metrics_listen: Option<OrOff>,
    /// Trust clients of other machines: whoever reaches the address gets in under any name
    #[arg(long)]
    insecure_trust: bool,
}

type Words<T> = [(&'static str, T)];

const POOL_MODES: [(&str, PoolMode); 3] = [
    ("transaction", PoolMode::Transaction),
    ("session", PoolMode::Session),
    ("statement", PoolMode::Statement),
];
const DRIVERS: [(&str, DriverChoice); 3] =
    [("auto", DriverChoice::Auto), ("uring", DriverChoice::Uring), ("epoll", DriverChoice::Epoll)];
const LOG_FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const LOG_LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

fn word<T: Copy + Send + Sync>(
    words: &'static Words<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, value)| *value).ok_or_else(|| format!("expected one of {}", known()))
    }
}

fn workers(text: &str) -> Result<Workers, String> {
    match text.parse() {
        _ if text == "cores" => Ok(Workers::Cores),
        Ok(count @ 1..=1024) => Ok(Workers::Fixed(count)),
        _ => Err("expected a number from 1 to 1024, or \"cores\"".to_owned()),
    }
}

/// An address, or the wish for none.
#[derive(Clone, Copy, Debug)]
struct OrOff(Option<SocketAddr>);

fn address_or_off(text: &str) -> Result<OrOff, String> {
    match text {
        "off" => Ok(OrOff(None)),
        _ => text.parse().map(|address| OrOff(Some(address))).map_err(|_| {
            "expected an address and port such as 127.0.0.1:9432, or \"off\"".to_owned()
        }),
    }
}

impl Flags {
    fn overrides(self) -> Overrides {
        Overrides {
            listen: self.listen,
            unix_socket_dir: self.unix_socket_dir,
            workers: self.workers,
            pool_size: self.pool_size,
            pool_mode: self.pool_mode,
            driver: self.driver,
            log_format: self.log_format,
            log_level: self.log_level,
            metrics_listen: self.metrics_listen.map(|OrOff(address)| address),
            insecure_trust: self.insecure_trust,
            password: password_from(self.password_file),
        }
    }
}

fn password_from(file: Option<PathBuf>) -> PasswordFrom {
    match file {
        Some(file) => PasswordFrom::File(file),
        None if env::var_os(source::PASSWORD).is_some() => PasswordFrom::Environment,
        None => PasswordFrom::Url,
    }
}

/// Does what the command line says, to the end of the program.
pub fn run() -> ExitCode {
    let CommandLine { action, target, flags } = CommandLine::parse();
    match (action, target) {
        (Some(Action::Check { target, password_file, connect, insecure_trust }), _) => {
            let password = password_from(password_file);
            let overrides = Overrides { insecure_trust, password, ..Overrides::default() };
            let source = Source { from: From::parse(&target), overrides };
            match check::check(&source, connect, &mut io::stdout().lock()) {
                Ok(true) => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
        (None, target) => {
            let target = target.or_else(|| env::var(source::TARGET).ok());
            let from = From::parse(target.as_deref().unwrap_or(OWN_DATABASE));
            serve(&Source { from, overrides: flags.overrides() }, target.is_none())
        }
    }
}

/// Runs to the end; `welcome` says whether to tell how to begin.
fn serve(source: &Source, welcome: bool) -> ExitCode {
    let options = match source.load() {
        Ok(options) => options,
        Err(problems) => return complain(&problems),
    };
    log::start(options.general.log_format, options.general.log_level);
    log::abort_on_panic();
    descriptors::raise();
    let outcome = program::start(source.clone(), options).and_then(|program| {
        program.obey_signals()?;
        if welcome {
            // Nobody has to read it.
            let _ = self::welcome(&program, &mut io::stdout().lock());
        }
        program.wait()
    });
    if let Err(error) = &outcome {
        tracing::error!(cause = "end", "{error}");
    }
    log::flush();
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells somebody who started the program without knowing it what to do next.
fn welcome(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let tcp = program.addresses().iter().find_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    let Some(address) = tcp else { return Ok(()) };
    let (host, port) = (address.ip(), address.port());
    writeln!(out, "Refrain serves the SQLite database ./refrain.db to PostgreSQL's clients.\n")?;
    writeln!(out, "  connect      psql -h {host} -p {port}")?;
    writeln!(out, "  look inside  psql -h {host} -p {port} refrain -c 'SHOW POOLS'")?;
    if let Some(metrics) = program.metrics() {
        writeln!(out, "  metrics      curl http://{metrics}/metrics")?;
    }
    writeln!(out, "  PostgreSQL   refrain postgres://user@localhost/dbname serves that instead")?;
    writeln!(out, "  more         refrain --help\n")?;
    out.flush()
}

/// Says what is wrong with what was asked for, before there is a log.
fn complain(problem: &str) -> ExitCode {
    // Nobody is left to tell when standard error cannot be written to.
    let _ = writeln!(io::stderr(), "{problem}");
    ExitCode::from(USAGE)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn flags_and_targets() {
        let parse = |line: &str| CommandLine::try_parse_from(line.split(' '));
        let line = parse("refrain x.toml --pool-mode session --metrics-listen off --workers 3");
        let line = line.unwrap();
        assert_eq!(line.target.as_deref(), Some("x.toml"));
        let overrides = line.flags.overrides();
        assert_eq!(overrides.pool_mode, Some(PoolMode::Session));
        assert_eq!(overrides.metrics_listen, Some(None));
        assert_eq!(overrides.workers, Some(Workers::Fixed(3)));
        assert!(matches!(
            parse("refrain check --connect x.toml").unwrap().action,
            Some(Action::Check { connect: true, .. })
        ));
        assert!(parse("refrain x.toml --pool-mode sessions").is_err());
        assert!(parse("refrain x.toml --workers 0").is_err());
        assert!(parse("refrain").unwrap().target.is_none());
    }
}

//! The command line.

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use refrain_config::{DriverChoice, LogFormat, LogLevel, Options, PoolMode, Workers};
use refrain_drive::Address;

use crate::pgbouncer::Asked;
use crate::place::Estate;
use crate::program::Program;
use crate::running::Console;
use crate::source::{From, Loaded, Overrides, PasswordFrom, Source};
use crate::{
    advise, check, descriptors, log, machine, manual, pgbouncer, program, publication, source,
};

/// The exit code for a command line or a configuration that cannot work.
const USAGE: u8 = 2;

/// The database that Refrain serves if neither the command line nor the environment names one.
const OWN_DATABASE: &str = "sqlite:./refrain.db";

const EXAMPLES: &str = "\
Examples:
  Serve a local SQLite database, the file ./refrain.db, which is created if it does not exist:
      refrain
      psql -h localhost -p 6432

  Pool connections to a PostgreSQL database on this machine; clients connect to port 6432:
      refrain postgres://postgres@localhost/app
      psql -h localhost -p 6432 -U postgres app

  Allow at most ten server connections per pool, and accept clients from other machines:
      refrain postgres://app:secret@db.internal/app --pool-size 10 --listen 0.0.0.0:6432

  Keep the password out of the process list: in a file, or in the environment (as REFRAIN_PASSWORD,
  or in the whole URL as REFRAIN_URL):
      refrain postgres://app@db.internal/app --password-file /etc/refrain/password
      REFRAIN_URL=postgres://app:secret@db.internal/app refrain

  Check a configuration file, for several databases and users, and run with it:
      refrain check --connect refrain.toml
      refrain refrain.toml

  Run with the file of a PgBouncer, or turn it into a file of Refrain's own:
      refrain /etc/pgbouncer/pgbouncer.ini
      refrain convert /etc/pgbouncer/pgbouncer.ini > refrain.toml

  Replace a running Refrain, without a connection lost (docs/restart.md):
      refrain --takeover refrain.toml

  Watch a running Refrain:
      psql -h localhost -p 6432 -U postgres refrain -c 'SHOW POOLS'
      curl http://localhost:9432/metrics
      and http://localhost:9432/ in a browser

  See which reads a cache would answer best:
      refrain advise
      PGSSLMODE=require refrain advise pooler.internal:6432

  Print the publication that rules of the cache by commits need, and run it:
      refrain publication app | psql -h db.internal -U postgres app

Signals: HUP reloads the configuration. INT or TERM lets transactions finish and then exits;
a second INT or TERM exits at once, as does QUIT. USR1 pauses all databases, USR2 resumes them.";

/// PostgreSQL connection pooler with prepared statements in transaction mode.
/// Without a server URL it serves a local SQLite file.
#[derive(Debug, Parser)]
#[command(name = "refrain", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    action: Option<Action>,
    /// URL of the server (postgres://user:password@host:port/dbname) or of an SQLite file
    /// (sqlite:path), or a configuration file: TOML, or a pgbouncer.ini [default: the environment
    /// variable REFRAIN_URL, else sqlite:./refrain.db]
    #[arg(value_name = "URL | FILE")]
    target: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check a configuration and report every error.
    Check {
        /// URL of the server or of an SQLite file, or a configuration file.
        #[arg(value_name = "URL | FILE")]
        target: String,
        /// File with the password for the user of the URL
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// Also resolve the name of each server and connect to it.
        #[arg(long)]
        connect: bool,
        /// Allow clients from other machines to be trusted.
        #[arg(long)]
        insecure_trust: bool,
    },
    /// Print the TOML file that does the same as a pgbouncer.ini, with its comments.
    Convert {
        /// The pgbouncer.ini.
        file: PathBuf,
    },
    /// Ask a running Refrain which reads are repeated, and print up to ten rules of the cache.
    Advise {
        /// Address of Refrain, or its URL (postgres://user@host:port?sslmode=require). Options for
        /// TLS are also taken from PGSSLMODE, PGSSLROOTCERT and the like, as libpq does
        #[arg(value_name = "URL | ADDRESS:PORT", default_value = "127.0.0.1:6432")]
        target: String,
        /// User to log in as, one of `admin_users` or `stats_users`, unless the URL has one; the
        /// password is taken from PGPASSWORD
        #[arg(long, value_name = "NAME", env = "PGUSER", default_value = "postgres")]
        user: String,
    },
    /// Ask a running Refrain which tables rules with `consistency = "commits"` depend on, and print
    /// the SQL of their publication
    Publication {
        /// Database, by the name that clients use
        database: String,
        /// Address of Refrain, or its URL, as for `refrain advise`
        #[arg(value_name = "URL | ADDRESS:PORT", default_value = "127.0.0.1:6432")]
        target: String,
        /// Print the SQL of an event trigger instead, by which changes of the schema and of rights
        /// that pass by Refrain count as well
        #[arg(long)]
        ddl: bool,
        /// User to log in as, one of `admin_users` or `stats_users`, and a user of the database,
        /// unless the URL has one; the password is taken from PGPASSWORD
        #[arg(long, value_name = "NAME", env = "PGUSER", default_value = "postgres")]
        user: String,
    },
    /// Print the completions of a shell: bash, zsh, fish, elvish or powershell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory, which is made if it is not there
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Options of the command line, which take precedence over the configuration file.
#[derive(Debug, Args)]
struct Flags {
    /// File with the password for the user of the URL: the process list shows the command line
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Address on which to accept clients; may be given several times [default: 127.0.0.1:6432]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Address on which to accept clients of MySQL, if there is a database of MySQL; may be given
    /// several times [default: 127.0.0.1:6033]
    #[arg(long, value_name = "ADDRESS:PORT")]
    mysql_listen: Vec<SocketAddr>,
    /// Directory of the Unix socket on which to accept clients
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
    /// Kernel interface for socket I/O: auto, uring or epoll [default: auto]
    #[arg(long, value_name = "DRIVER", value_parser = word(&DRIVERS))]
    driver: Option<DriverChoice>,
    /// Log format: text or json [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = word(&LOG_FORMATS))]
    log_format: Option<LogFormat>,
    /// Write no log to standard error, but to the file of `logfile` alone
    #[arg(long)]
    quiet: bool,
    /// Take the place of a running Refrain: serve at its sockets while it lets its clients finish.
    /// PATH is its `takeover_socket`, which by default follows from the configuration
    #[arg(short = 'R', long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    takeover: Option<Option<PathBuf>>,
    /// Log level: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = word(&LOG_LEVELS))]
    log_level: Option<LogLevel>,
    /// Address for Prometheus metrics, or "off" [default: 127.0.0.1:9432]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_or_off)]
    metrics_listen: Option<OrOff>,
    /// Allow clients from other machines to be trusted, so that everyone who reaches the address
    /// can log in under any user name
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

/// An address, or `off`.
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
            mysql_listen: self.mysql_listen,
            unix_socket_dir: self.unix_socket_dir,
            workers: self.workers,
            pool_size: self.pool_size,
            pool_mode: self.pool_mode,
            driver: self.driver,
            log_format: self.log_format,
            log_level: self.log_level,
            verbose: 0,
            user: None,
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

/// Runs what the command line asks for, until the program ends.
pub fn run() -> ExitCode {
    if pgbouncer::is_name(env::args_os().next()) {
        return as_pgbouncer();
    }
    let CommandLine { action, target, flags } = CommandLine::parse();
    match (action, target) {
        (Some(Action::Check { target, password_file, connect, insecure_trust }), _) => {
            let password = password_from(password_file);
            let overrides = Overrides { insecure_trust, password, ..Overrides::default() };
            let source = Source::new(From::parse(&target), overrides);
            match check::check(&source, connect, &mut io::stdout().lock()) {
                Ok(true) => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
        (Some(Action::Convert { file }), _) => convert(file),
        (Some(Action::Completions { shell }), _) => {
            manual::completions(CommandLine::command(), shell, &mut io::stdout().lock());
            ExitCode::SUCCESS
        }
        (Some(Action::Man { dir }), _) => {
            let written = manual::pages(CommandLine::command(), &dir);
            ended("man", written.map_err(|error| format!("{}: {error}", dir.display())))
        }
        (Some(Action::Advise { target, user }), _) => {
            let console = Console::read(&target, user, |name| env::var(name).ok());
            ended(
                "advise",
                console.and_then(|console| advise::advise(&console, &mut io::stdout().lock())),
            )
        }
        (Some(Action::Publication { ddl: true, .. }), _) => {
            ended("publication", publication::ddl(&mut io::stdout().lock()))
        }
        (Some(Action::Publication { database, target, user, .. }), _) => {
            let console = Console::read(&target, user, |name| env::var(name).ok());
            let print =
                |console| publication::publication(&console, &database, &mut io::stdout().lock());
            ended("publication", console.and_then(print))
        }
        (None, target) => {
            let target = target.or_else(|| env::var(source::TARGET).ok());
            if target.is_none() && !cfg!(feature = "sqlite") {
                return complain("no server is named, such as postgres://postgres@localhost/app");
            }
            let from = From::parse(target.as_deref().unwrap_or(OWN_DATABASE));
            let takeover = flags.takeover.clone().map(Takeover);
            let how = How { takeover, welcome: target.is_none(), quiet: flags.quiet };
            serve(&Source::new(from, flags.overrides()), how)
        }
    }
}

/// Returns the exit code of a subcommand, and prints why it failed.
fn ended(name: &str, outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Nothing is left to tell if that fails.
            let _ = writeln!(io::stderr(), "refrain {name}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs under the name of PgBouncer, with its command line.
fn as_pgbouncer() -> ExitCode {
    match pgbouncer::read(env::args_os()) {
        Ok(Asked::Version) => {
            let version = pgbouncer::version();
            let written = writeln!(io::stdout(), "{version}");
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(Asked::Serve { file, quiet, reboot, verbose, user }) => {
            let overrides = Overrides { verbose, user, ..Overrides::default() };
            let source = Source::new(From::File(file), overrides);
            let takeover = reboot.then_some(Takeover(None));
            serve(&source, How { takeover, welcome: false, quiet })
        }
        Err(problem) => complain(&problem),
    }
}

/// Prints the TOML file that does the same as a `pgbouncer.ini`.
fn convert(file: PathBuf) -> ExitCode {
    let source = Source::new(From::File(file), Overrides::default());
    match source.convert() {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(problems) => complain(&problems),
    }
}

/// The take-over of a running program: of that at a path, or where one with the same options is
/// asked.
#[derive(Clone, Debug)]
struct Takeover(Option<PathBuf>);

/// How the program starts, and says what it does.
#[derive(Clone, Debug, Default)]
struct How {
    takeover: Option<Takeover>,
    /// Whether it prints how to connect.
    welcome: bool,
    /// Whether the log leaves standard error alone.
    quiet: bool,
}

/// Serves clients until the program ends.
fn serve(source: &Source, how: How) -> ExitCode {
    refrain_drive::free_little_at_once();
    let loaded = match source.load_and_tell() {
        Ok(loaded) => loaded,
        Err(problems) => return complain(&problems),
    };
    source.keep(&loaded);
    let Loaded { options, remarks, .. } = loaded;
    if let Some(user) = &options.general.os_user
        && let Err(error) = machine::become_user(user)
    {
        return complain(&error.to_string());
    }
    if how.quiet {
        log::be_quiet();
    }
    log::start(options.general.log_format, options.general.log_level);
    log::set_timezone(&options.general.log_timezone);
    log::set_sessions(&options.general);
    log::remarks(&remarks, "start");
    log::abort_on_panic();
    descriptors::raise();
    let outcome = start(source, options, how.takeover.as_ref()).and_then(|program| {
        program.handle_signals()?;
        if how.welcome {
            // Standard output may be closed: then there is no reader to welcome.
            let _ = welcome(&program, &mut io::stdout().lock());
        }
        program.wait()
    });
    if let Err(error) = &outcome {
        tracing::error!(cause = "end", "{error}");
    }
    log::flush();
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Starts the program, with the sockets that a supervisor has passed, and those of the program that
/// it takes over.
fn start(source: &Source, options: Options, takeover: Option<&Takeover>) -> io::Result<Program> {
    let mut estate = Estate::from_environment()?;
    if let Some(Takeover(path)) = takeover {
        estate.take_over(path.as_deref(), &options.general)?;
    }
    program::start_with(source.clone(), options, estate)
}

/// Prints how to connect, for a user who started the program without arguments.
fn welcome(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let tcp = program.addresses().iter().find_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    let Some(address) = tcp else { return Ok(()) };
    let (host, port) = (address.ip(), address.port());
    writeln!(out, "Refrain serves the SQLite database ./refrain.db to PostgreSQL clients.\n")?;
    writeln!(out, "  connect      psql -h {host} -p {port}")?;
    writeln!(out, "  look inside  psql -h {host} -p {port} refrain -c 'SHOW POOLS'")?;
    if let Some(metrics) = program.metrics() {
        writeln!(out, "  dashboard    http://{metrics}/")?;
        writeln!(out, "  metrics      curl http://{metrics}/metrics")?;
    }
    writeln!(out, "  PostgreSQL   refrain postgres://user@localhost/dbname serves that instead")?;
    writeln!(out, "  more         refrain --help\n")?;
    out.flush()
}

/// Prints an error in the command line or the configuration, before the log is set up.
fn complain(problem: &str) -> ExitCode {
    // If standard error cannot be written to, there is nowhere left to report the error.
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

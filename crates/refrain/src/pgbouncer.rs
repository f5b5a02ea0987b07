//! The command line of PgBouncer, which the program takes where it is installed under that name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, Parser};

/// The name of PgBouncer's program.
const NAME: &str = "pgbouncer";
/// The version of PgBouncer whose console Refrain's is like.
const LIKE: &str = "1.24.1";

/// The wish of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The version.
    Version,
    /// Clients to be served.
    Serve {
        /// The configuration.
        file: PathBuf,
        /// Whether nothing goes to standard error.
        quiet: bool,
        /// Whether a running process is taken over.
        reboot: bool,
        /// Levels by which the log says more.
        verbose: u8,
        /// The user to become.
        user: Option<String>,
    },
}

/// Refrain, a connection pooler for PostgreSQL, under the name of PgBouncer.
#[derive(Debug, Parser)]
#[command(name = NAME, disable_version_flag = true)]
struct CommandLine {
    /// The pgbouncer.ini, or a TOML file.
    #[arg(value_name = "CONFIG_FILE", required_unless_present = "version")]
    file: Option<PathBuf>,
    /// Run in the background. Refused: a supervisor such as systemd does that
    #[arg(short, long)]
    daemon: bool,
    /// Write no log to standard error
    #[arg(short, long)]
    quiet: bool,
    /// Take over the sockets of a running process, which lets its clients finish
    #[arg(short = 'R', long)]
    reboot: bool,
    /// Become this user of the operating system
    #[arg(short, long, value_name = "USERNAME")]
    user: Option<String>,
    /// Log more
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
}

/// Whether the program was started under the name of PgBouncer.
pub(crate) fn is_name(program: Option<OsString>) -> bool {
    program.is_some_and(|program| Path::new(&program).file_name() == Some(NAME.as_ref()))
}

/// Returns the line that tells the version, in PgBouncer's form.
pub(crate) fn version() -> String {
    format!("PgBouncer {LIKE} (Refrain {})", env!("CARGO_PKG_VERSION"))
}

/// Reads a command line.
///
/// # Errors
/// What is wrong with it, or what of it is not built.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Asked, String> {
    let line = CommandLine::try_parse_from(args).map_err(|error| {
        if error.kind() == ErrorKind::DisplayHelp {
            error.exit();
        }
        error.to_string()
    })?;
    let CommandLine { file, daemon, quiet, reboot, user, verbose, version } = line;
    if version {
        return Ok(Asked::Version);
    }
    if daemon {
        return Err("-d is not built: let systemd or another supervisor start Refrain in the \
                    background, or use `&` and nohup"
            .to_owned());
    }
    let file = file.ok_or("no configuration file specified")?;
    Ok(Asked::Serve { file, quiet, reboot, verbose, user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_that_of_pgbouncer() {
        let parsed = |line: &str| read(line.split(' ').map(OsString::from));
        let (file, user) = (PathBuf::from("p.ini"), Some("me".to_owned()));
        assert_eq!(
            parsed("pgbouncer -R -q -v -v -u me p.ini"),
            Ok(Asked::Serve { file: file.clone(), quiet: true, reboot: true, verbose: 2, user })
        );
        let plain = Asked::Serve { file, quiet: false, reboot: false, verbose: 0, user: None };
        assert_eq!(parsed("pgbouncer p.ini"), Ok(plain));
        assert_eq!(parsed("pgbouncer -V"), Ok(Asked::Version));
        assert!(parsed("pgbouncer -d p.ini").unwrap_err().contains("supervisor"));
        assert!(parsed("pgbouncer").is_err() && parsed("pgbouncer -x p.ini").is_err());
        assert!(is_name(Some("/usr/sbin/pgbouncer".into())) && !is_name(Some("refrain".into())));
        assert!(version().starts_with("PgBouncer 1."));
    }
}

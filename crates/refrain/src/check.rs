//! `refrain check`: checks the configuration, and on request connects to the servers in it.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use refrain_config::{General, Host, Options};

use crate::descriptors::{self, Shares};
use crate::exposure;
use crate::pg::sqlite;
use crate::resolve;
use crate::source::{Loaded, Source};
use crate::tls::Setup;

/// Maximum time of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the findings to `out`. Returns true if there is no error.
///
/// # Errors
/// If `out` cannot be written to.
pub(crate) fn check(source: &Source, connect: bool, out: &mut dyn Write) -> io::Result<bool> {
    let Loaded { options, remarks, .. } = match source.load_and_tell() {
        Ok(loaded) => loaded,
        Err(problems) => {
            writeln!(out, "{problems}")?;
            return Ok(false);
        }
    };
    if let Err(problem) = Setup::read(&options) {
        writeln!(out, "{}: {problem}", source.from)?;
        return Ok(false);
    }
    let clashes = clashes(&options);
    if !clashes.is_empty() {
        clashes.iter().try_for_each(|clash| writeln!(out, "{}: {clash}", source.from))?;
        return Ok(false);
    }
    let (databases, users) = (options.databases.len(), options.users.len());
    writeln!(out, "{}: no errors; databases: {databases}, users: {users}", source.from)?;
    let shares = Shares::of(&options, descriptors::limit_after_raise());
    if let Some(warning) = shares.warning(&options.general) {
        writeln!(out, "warning: {warning}")?;
    }
    for warning in exposure::warnings(source, &options) {
        writeln!(out, "warning: {warning}")?;
    }
    for (place, remark) in remarks {
        let kind = if remark.is_warning { "warning" } else { "note" };
        writeln!(out, "{kind}: {place}{remark}")?;
    }
    if connect { reach(&options, out) } else { Ok(true) }
}

/// Returns an error for each address that stands for two things: the program would not start.
fn clashes(options: &Options) -> Vec<String> {
    let mut clashes = Vec::new();
    let listed = options.addresses();
    for (at, address) in listed.iter().enumerate() {
        if let Some(other) = listed[..at].iter().find(|other| is_same(address, other)) {
            clashes.push(format!("clients cannot be accepted on {other} and on {address}"));
        }
    }
    if let Some(metrics) = options.general.metrics_listen
        && let Some(address) = listed.iter().find(|address| is_same(address, &metrics))
    {
        clashes.push(format!(
            "metrics_listen = \"{metrics}\" is where clients are accepted ({address})"
        ));
    }
    clashes
}

/// Whether two addresses cannot both be listened on.
fn is_same(one: &SocketAddr, other: &SocketAddr) -> bool {
    let covers = one.ip().is_unspecified() || other.ip().is_unspecified();
    let is_one_family = one.is_ipv4() == other.is_ipv4();
    one.port() != 0
        && one.port() == other.port()
        && (one.ip() == other.ip() || covers && is_one_family)
}

fn reach(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let mut all = true;
    for database in &options.databases {
        let name = &database.name;
        for host in database.server.hosts() {
            let found = try_host(&options.general, host, CONNECT_TIMEOUT);
            all &= found.is_ok();
            match found {
                Ok(()) => writeln!(out, "database {name}: {host} accepts connections")?,
                Err(why) => writeln!(out, "database {name}: {host} cannot be reached: {why}")?,
            }
        }
    }
    Ok(all)
}

/// Connects and disconnects. Does not log in, because that would need a user. `timeout` is for each
/// address of the host.
pub(crate) fn try_host(general: &General, host: &Host, timeout: Duration) -> Result<(), String> {
    match host {
        Host::Unix { dir, port } => try_socket(&dir.join(format!(".s.PGSQL.{port}"))),
        Host::Socket(path) => try_socket(path),
        Host::Tcp { host, port, .. } => {
            let mut last = String::new();
            for address in resolve::look_up_by(general.resolv_conf.as_deref(), host)? {
                let address = SocketAddr::new(address, *port);
                match TcpStream::connect_timeout(&address, timeout) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = format!("{address}: {error}"),
                }
            }
            Err(last)
        }
        Host::Sqlite(file) => sqlite::try_open(file),
    }
}

fn try_socket(path: &Path) -> Result<(), String> {
    UnixStream::connect(path).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_one_thing() {
        let count = |text: &str| {
            let text = format!("auth = \"trust\"\n{text}\n[databases.d]\nhost = \"h\"\n");
            clashes(&Options::from_toml(&text).unwrap()).len()
        };
        assert_eq!(count("listen = [\"127.0.0.1:1\", \"127.0.0.2:1\", \"127.0.0.1:2\"]"), 0);
        assert_eq!(count("listen = [\"127.0.0.1:1\", \"127.0.0.1:1\"]"), 1);
        assert_eq!(count("listen = [\"127.0.0.1:1\", \"0.0.0.0:1\"]"), 1);
        assert_eq!(count("listen = [\"127.0.0.1:1\", \"[::]:1\"]"), 0);
        assert_eq!(count("listen = [\"127.0.0.1:0\", \"127.0.0.1:0\"]"), 0);
        assert_eq!(count("listen = [\"127.0.0.1:1\"]\nmetrics_listen = \"127.0.0.1:1\""), 1);
    }

    #[test]
    fn a_server_that_is_not_there() {
        assert!(
            try_host(
                &General::default(),
                &Host::Unix { dir: "/no/such/dir".into(), port: 5432 },
                CONNECT_TIMEOUT
            )
            .is_err()
        );
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = Options::from_url(&format!("postgres://127.0.0.1:{port}")).unwrap();
        assert_eq!(
            try_host(&options.general, &options.databases[0].server.host, CONNECT_TIMEOUT),
            Ok(())
        );
    }
}

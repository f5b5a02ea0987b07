//! Splits the URL of a server, as libpq writes it, or of an SQLite file, into options.
//!
//! `mysql://` and `mariadb://` stand for the same with a server of MySQL or MariaDB.
//!
//! `postgres://user:password@host:port/dbname?option=value&…`: each part is optional and
//! percent-encoded. The host is a name, an address, an IPv6 address in brackets, or the directory
//! of a Unix socket (as `%2Frun%2Fpostgresql` or `?host=/run/postgresql`). Several hosts have
//! commas between them, each with its own port.
//!
//! The URL of an SQLite file is `sqlite:path?option=value&…`.
//!
//! The meaning of options is not known here. Messages never repeat a part of the URL, because it
//! may be a password.

use percent_encoding::percent_decode_str;

use crate::value::{Entry, Given};

/// The schemes of servers, and the backend of each. That of PostgreSQL is the default.
const SCHEMES: [(&str, &str); 4] =
    [("postgres", ""), ("postgresql", ""), ("mysql", "mysql"), ("mariadb", "mysql")];
/// The port of a host without one, where other hosts of the URL have one.
const USUAL_PORT: &str = "5432";
const NO_SCHEME: &str =
    "expected a URL that begins with postgres://, postgresql://, mysql://, mariadb:// or sqlite:";
const NO_PASSWORD: &str =
    "expected a password (if there is none, leave out the : or password= too)";

/// Splits a URL into entries. If an option occurs twice, the later one takes precedence.
pub(crate) fn parse(url: &str, line: Option<usize>) -> Result<Vec<Entry>, &'static str> {
    if let Some(rest) = url.strip_prefix("sqlite:") {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Users of other tools write three slashes: `sqlite:///srv/app.db`.
        let path = path.strip_prefix("//").unwrap_or(path);
        return entries(vec![("backend", "sqlite"), ("path", path)], query, line);
    }
    let scheme = |(scheme, backend): &(&str, &'static str)| {
        Some((url.strip_prefix(scheme)?.strip_prefix("://")?, *backend))
    };
    let (rest, backend) = SCHEMES.iter().find_map(scheme).ok_or(NO_SCHEME)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, dbname) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    // An unset variable in a start script must not turn into "no password": clients would be
    // trusted.
    if login.ends_with(':') && password.is_empty() {
        return Err(NO_PASSWORD);
    }
    let (host, port) = hosts_and_ports(place)?;
    let (host, port) = (host.as_str(), port.as_str());

    let parts = [
        ("backend", backend),
        ("host", host),
        ("port", port),
        ("user", user),
        ("password", password),
        ("dbname", dbname),
    ];
    entries(parts.into_iter().filter(|(_, text)| !text.is_empty()).collect(), query, line)
}

/// Returns the parts of a URL, and the `option=value` pairs after it, as entries.
fn entries<'a>(
    mut found: Vec<(&'a str, &'a str)>,
    query: &'a str,
    line: Option<usize>,
) -> Result<Vec<Entry>, &'static str> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        found.push(pair.split_once('=').ok_or("expected option=value pairs after the ?")?);
    }
    if found.iter().any(|(name, _)| *name == "url") {
        return Err("cannot contain a url option");
    }
    if found.contains(&("password", "")) {
        return Err(NO_PASSWORD);
    }
    let entry = |(name, text): (&str, &str)| {
        Ok(Entry { name: decode(name)?, line, given: Given::Text(decode(text)?) })
    };
    found.into_iter().map(entry).collect()
}

/// Returns the hosts and the ports of a place, each with commas between them. A host without a port
/// has the usual one, if another has a port.
fn hosts_and_ports(place: &str) -> Result<(String, String), &'static str> {
    let places: Vec<_> = place.split(',').map(host_and_port).collect::<Result<_, _>>()?;
    let hosts: Vec<_> = places.iter().map(|(host, _)| *host).collect();
    let ports: Vec<_> = places.iter().map(|(_, port)| *port).collect();
    if ports.iter().all(|port| port.is_empty()) {
        return Ok((hosts.join(","), String::new()));
    }
    let ports = ports.iter().map(|port| if port.is_empty() { USUAL_PORT } else { port });
    Ok((hosts.join(","), ports.collect::<Vec<_>>().join(",")))
}

fn host_and_port(place: &str) -> Result<(&str, &str), &'static str> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("expected a ] after the IPv6 address")?;
        let port = rest.strip_prefix(':').unwrap_or(rest);
        return if rest.len() == port.len() && !rest.is_empty() {
            Err("expected : and a port after the ]")
        } else {
            Ok((host, port))
        };
    }
    let (host, port) = place.split_once(':').unwrap_or((place, ""));
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok((host, port));
    }
    Err("expected a number as the port (write an IPv6 address in [], and / in a password as %2F)")
}

fn decode(text: &str) -> Result<String, &'static str> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| "expected UTF-8 in the % escapes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> String {
        let entry = |entry: Entry| format!("{}={}", entry.name, entry.given.text().unwrap());
        match parse(url, None) {
            Ok(entries) => entries.into_iter().map(entry).collect::<Vec<_>>().join(" "),
            Err(message) => message.to_owned(),
        }
    }

    #[test]
    fn forms() {
        let table = [
            ("postgres://h", "host=h"),
            ("postgresql://h/", "host=h"),
            ("postgres://h:6000/d", "host=h port=6000 dbname=d"),
            ("postgres://u@h", "host=h user=u"),
            ("postgres://u:p%40%2F@h/d%20d", "host=h user=u password=p@/ dbname=d d"),
            ("postgres://u:p@p@h", "host=h user=u password=p@p"),
            ("postgres://[::1]/d", "host=::1 dbname=d"),
            ("postgres://u@[fe80::1]:6000", "host=fe80::1 port=6000 user=u"),
            ("postgres:///d?host=/run/pg", "dbname=d host=/run/pg"),
            ("postgres://%2Frun%2Fpg/d", "host=/run/pg dbname=d"),
            ("postgres://h?pool_size=5&pool_mode=session", "host=h pool_size=5 pool_mode=session"),
            ("postgres://h1,h2/d", "host=h1,h2 dbname=d"),
            ("postgres://u@a:1,b:2/d", "host=a,b port=1,2 user=u dbname=d"),
            ("postgres://[::1]:1,b/d", "host=::1,b port=1,5432 dbname=d"),
            (
                "postgres://a,%2Frun/d?target_session_attrs=primary",
                "host=a,/run dbname=d target_session_attrs=primary",
            ),
            ("sqlite:app.db", "backend=sqlite path=app.db"),
            (
                "sqlite:./a%20b.db?stmt_cache_size=9",
                "backend=sqlite path=./a b.db stmt_cache_size=9",
            ),
            ("sqlite:///srv/app.db", "backend=sqlite path=/srv/app.db"),
            ("postgres://h?a=b+c=d&", "host=h a=b+c=d"),
            ("mysql://u:p@h/", "backend=mysql host=h user=u password=p"),
            ("mariadb://h:3307/d", "backend=mysql host=h port=3307 dbname=d"),
        ];
        for (url, expected) in table {
            assert_eq!(parts(url), expected, "{url}");
        }
    }

    #[test]
    fn refused() {
        let table = [
            ("mssql://h", "expected a URL that begins with"),
            ("postgres://[::1", "expected a ]"),
            ("postgres://[::1]5432", "expected : and a port"),
            ("postgres://::1/d", "expected a number as the port"),
            ("postgres://u:p/q@h/d", "expected a number as the port"),
            ("postgres://h?pool_size", "expected option=value"),
            ("postgres://u:@h", "expected a password"),
            ("postgres://h?password=", "expected a password"),
            ("postgres://h?url=x", "cannot contain"),
            ("postgres://h/%ff", "expected UTF-8"),
        ];
        for (url, expected) in table {
            assert!(parts(url).starts_with(expected), "{url}: {}", parts(url));
        }
    }
}

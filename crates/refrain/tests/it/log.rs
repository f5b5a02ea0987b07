//! The log: one line for each event, whatever names clients have.

use crate::session::{Session, query, startup};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

/// Text that no line of the log may have in it, because terminals and log readers act on it.
const FORGED: &str =
    "\n2026-01-01T00:00:00.000000Z  INFO forged\r\u{1b}[2J\u{7f}\u{9b}2J\u{2028}\u{202e}";

/// Logs in, with success and without, with such names, and sends such texts.
fn misbehave(proxy: &Proxy, database: &str) {
    let name = format!("me{FORGED}");
    for params in [
        vec![("user", name.as_str()), ("database", database)],
        vec![("user", "postgres"), ("database", name.as_str())],
        vec![("user", "postgres"), ("database", database), ("application_name", name.as_str())],
        vec![("user", "postgres"), ("database", database), (name.as_str(), "x")],
        vec![("user", "postgres"), ("database", database), ("replication", name.as_str())],
    ] {
        let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &params));
        session.write(b"X\0\0\0\x04");
        session.rest();
    }
    // Texts of a server are trusted as little.
    let mut session = proxy.open(database);
    let raise = FORGED.replace('\u{202e}', "");
    let raise = format!("do $f$ begin raise exception using message = $m${raise}$m$; end $f$");
    session.send(&[query(&raise)]);
    session.ready();
    let mut console = proxy.console();
    console.query(&format!("reload -- {FORGED}"));
    console.query(&format!("kill \"{name}\""));
    console.query(&format!("resume \"{name}\""));
    console.leave();
}

#[test]
fn names_do_not_forge_lines() {
    let database = database("log_names");
    for format in ["text", "json"] {
        let users = "[users.postgres]\npassword = \"x\"\n";
        let config = Config::over(cluster(Version::V15)).general("log_level", "\"debug\"");
        let config = config.general("log_format", &format!("{format:?}"));
        // One program lets no unknown user in, and one trusts everybody.
        let closed = config.clone().general("auth", "\"password\"").more(users).start();
        let open = config.start();
        let name = format!("me{FORGED}");
        let params = [("user", name.as_str()), ("database", database)];
        let mut session = Session::raw(closed.addr(), &startup(0x0003_0000, &params));
        session.write(b"p\0\0\0\x06x\0");
        session.rest();
        misbehave(&open, database);
        for proxy in [closed, open] {
            eventually("such a name is logged", || proxy.log().contains("INFO forged"));
            // The signal is logged as well. Its lines are the last.
            proxy.signal("TERM");
            eventually("the end is logged", || proxy.log().contains("stopping: "));
            is_sound(&proxy.log(), format);
        }
    }
}

fn is_sound(log: &str, format: &str) {
    for line in log.lines() {
        let begins = if format == "json" { "{\"timestamp\":\"20" } else { "20" };
        assert!(line.starts_with(begins) && !line.starts_with("2026-01-01"), "{line:?}");
        let acted_on = line.chars().find(|c| c.is_control() || "\u{2028}\u{202e}".contains(*c));
        assert_eq!(acted_on, None, "{line:?}");
    }
}

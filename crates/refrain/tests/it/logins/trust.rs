//! The method `trust` needs an address that no other machine reaches, or an explicit permission.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output};

use xtask::proxy::program;

/// Starts the program, which fails at the latest at its metrics: their port is taken. Returns its
/// output.
fn begin(arguments: &[&str]) -> String {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    let mut command = Command::new(program().unwrap());
    command.args(arguments).args(["--metrics-listen", &metrics]);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    said(&output)
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Words of the error for a port that other machines can reach.
const REFUSED: &str = "would get in under any name";
/// Words of the error at the metrics, if the program gets that far.
const BEGAN: &str = "cannot serve metrics";

#[test]
fn a_url_without_a_password_is_for_this_machine() {
    let url = "postgres://me@127.0.0.1:1/app";
    for public in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let said = begin(&[url, "--listen", "127.0.0.1:0", "--listen", public]);
        assert!(said.contains(REFUSED) && said.contains("--insecure-trust"), "{said}");
        assert!(begin(&["sqlite:x.db", "--listen", public]).contains(REFUSED));
        let with_password = "postgres://me:pw@127.0.0.1:1/app";
        assert!(begin(&[with_password, "--listen", public]).contains(BEGAN));
        assert!(begin(&[url, "--listen", public, "--insecure-trust"]).contains(BEGAN));
        let meant = format!("{url}?insecure_trust=true");
        assert!(begin(&[&meant, "--listen", public]).contains(BEGAN));
    }
    for own in ["127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
        assert!(begin(&[url, "--listen", own]).contains(BEGAN), "{own}");
    }
}

#[test]
fn a_file_is_checked_likewise() {
    let check = |top: &str, flags: &[&str]| {
        let name = format!("refrain-trust-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let users = "[users.me]\npassword = \"pw\"\n[databases.app]\nhost = \"127.0.0.1\"\n";
        fs::write(&path, format!("{top}\n{users}")).unwrap();
        let mut command = Command::new(program().unwrap());
        let output = command.arg("check").args(flags).arg(&path).output().unwrap();
        fs::remove_file(&path).unwrap();
        (output.status.success(), said(&output))
    };
    let public = "listen = [\"0.0.0.0:6432\"]\n";
    let (fine, words) = check(&format!("{public}auth = \"trust\""), &[]);
    assert!(!fine && words.contains(REFUSED) && words.contains("0.0.0.0:6432"), "{words}");
    let meant = format!("{public}auth = \"trust\"\ninsecure_trust = true");
    for (top, flags) in [
        (public, &[][..]),
        ("auth = \"trust\"", &[]),
        ("auth = \"trust\"\nunix_socket_dir = \"/run/refrain\"", &[]),
        (&meant, &[]),
        (&format!("{public}auth = \"trust\""), &["--insecure-trust"]),
    ] {
        let (fine, words) = check(top, flags);
        assert!(fine, "{top}: {words}");
    }
}

//! Files of the packages, each with its mode and owner, and scripts that the packages run.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::command;
use crate::provision;

/// Files of both packages: permissions, and the path.
const BOTH: &[(&str, &str)] = &[
    ("-rwxr-xr-x", "/usr/bin/refrain"),
    ("-rw-r-----", "/etc/refrain/refrain.toml"),
    ("-rw-r-----", "/etc/refrain/userlist.txt"),
    ("-rw-r--r--", "/etc/logrotate.d/refrain"),
    ("-rw-r--r--", "/usr/lib/systemd/system/refrain.service"),
    ("-rw-r--r--", "/usr/lib/systemd/system/refrain.socket"),
    ("-rw-r--r--", "/usr/lib/systemd/system/refrain-metrics.socket"),
    ("-rw-r--r--", "/usr/share/bash-completion/completions/refrain"),
    ("-rw-r--r--", "/usr/share/fish/vendor_completions.d/refrain.fish"),
    ("-rw-r--r--", "/usr/share/doc/refrain/examples/pgbouncer.ini"),
];

/// Files of the deb alone. Its manual pages are compressed.
const DEB: &[(&str, &str)] = &[
    ("-rw-r--r--", "/usr/share/man/man1/refrain.1.gz"),
    ("-rw-r--r--", "/usr/share/man/man1/refrain-check.1.gz"),
    ("-rw-r--r--", "/usr/share/zsh/vendor-completions/_refrain"),
    ("-rw-r--r--", "/usr/share/doc/refrain/copyright"),
];

/// Files of the rpm alone.
const RPM: &[(&str, &str)] = &[
    ("-rw-r--r--", "/usr/share/man/man1/refrain.1"),
    ("-rw-r--r--", "/usr/share/man/man1/refrain-check.1"),
    ("-rw-r--r--", "/usr/share/zsh/site-functions/_refrain"),
    ("-rw-r--r--", "/usr/share/licenses/refrain/LICENSE-MIT"),
];

/// Checks the deb: its files, its fields, its scripts.
pub(super) fn deb(package: &Path) -> Result<()> {
    let ask = |options: &[&str]| {
        command::output(
            Command::new("dpkg-deb").args(options[..1].iter()).arg(package).args(&options[1..]),
        )
    };
    let listing = ask(&["-c"])?;
    has_files(&listing.replace(" ./", " /"), &[BOTH, DEB])?;
    let fields = ask(&["-f"])?;
    ensure!(fields.contains("\nDepends: libc6 (>= 2."), "no C library among\n{fields}");
    ensure!(fields.contains(&format!("\nVersion: {}-1\n", super::stage::version())), "{fields}");
    let conffiles = ask(&["-I", "conffiles"])?;
    for file in
        ["/etc/refrain/refrain.toml", "/etc/refrain/userlist.txt", "/etc/logrotate.d/refrain"]
    {
        ensure!(conffiles.lines().any(|line| line == file), "an upgrade replaces {file}");
    }
    for script in ["postinst", "prerm", "postrm"] {
        let text = ask(&["-I", script])?;
        // Clients wait in the queues of these sockets.
        let restarts =
            text.lines().any(|line| line.contains("try-restart") && line.contains(".socket"));
        ensure!(!restarts, "{script} restarts the sockets:\n{text}");
        is_shell(&text)?;
    }
    ensure!(ask(&["-I", "postinst"])?.contains("try-restart refrain.service"), "no restart");
    Ok(())
}

/// Checks the rpm: its files, their owners, its scripts.
pub(super) fn rpm(package: &Path) -> Result<()> {
    provision::program("/usr/bin/rpm", "rpm")?;
    let ask = |options: &[&str]| command::output(Command::new("rpm").args(options).arg(package));
    let listing = ask(&["-qplv"])?;
    has_files(&listing, &[BOTH, RPM])?;
    for file in ["refrain.toml", "userlist.txt"] {
        let owned = |line: &&str| line.ends_with(&format!("/etc/refrain/{file}"));
        let line = listing.lines().find(owned).unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        ensure!(words.get(2..4) == Some(&["root", "refrain"]), "the owners of {line}");
    }
    ensure!(ask(&["-qpc"])?.lines().count() == 3, "three files are configuration");
    let scripts = ask(&["-qp", "--scripts"])?;
    ensure!(scripts.contains("useradd --system") && scripts.contains("daemon-reload"), "{scripts}");
    for script in ["%{PREIN}", "%{POSTIN}", "%{PREUN}", "%{POSTUN}"] {
        is_shell(&ask(&["-qp", "--queryformat", script])?)?;
    }
    Ok(())
}

/// Whether a listing has each file with its permissions. Other files are for people.
fn has_files(listing: &str, tables: &[&[(&str, &str)]]) -> Result<()> {
    for (mode, path) in tables.iter().copied().flatten() {
        let found = listing.lines().find(|line| line.ends_with(&format!(" {path}")));
        let line = found.unwrap_or("nothing");
        ensure!(line.starts_with(mode), "{path} should be {mode}, and is {line}");
    }
    Ok(())
}

/// Checks a script's syntax.
fn is_shell(text: &str) -> Result<()> {
    command::output(Command::new("sh").args(["-n", "-c", text])).map(drop)
}

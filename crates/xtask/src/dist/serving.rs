//! The program of an unpacked package serves: by its own name, and under that of PgBouncer.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::unit;
use crate::command;
use crate::postgres::Version;
use crate::provision;
use crate::proxy::Refrain;

/// Where the packages have their configuration.
const FOLDER: &str = "/etc/refrain";
/// Where they have their Unix socket.
const RUN: &str = "/run/refrain";

/// A user and a password, in the file that the sample names.
pub(super) const USERS: &str = "\"ann\" \"secret\"\n";

/// Starts the command of the service with the configuration of the package, within its folder, and
/// asks for a row.
pub(super) fn as_installed(root: &Path) -> Result<()> {
    let words = unit::start_command(root)?;
    let [program, config] = &*words else { bail!("the service starts {words:?}") };
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    let here = |path: &str| inside(path).display().to_string();
    fs::create_dir_all(inside(RUN))?;
    fs::write(inside("/etc/refrain/userlist.txt"), USERS)?;
    let sample = fs::read_to_string(inside(config))?;
    let sample = sample.replace(FOLDER, &here(FOLDER)).replace(RUN, &here(RUN));
    let config = with_notes(&sample, &here("/notes.db"))?;
    let proxy = Refrain::start_as(&inside(program), &config)?;
    ask(proxy.port(), || proxy.log())
}

/// Returns the sample of a configuration with a database of SQLite, and without addresses, which
/// are the test's own: another program may listen at the sample's.
pub(super) fn with_notes(sample: &str, path: &str) -> Result<String> {
    let sample = without_line(sample, "listen = ")?;
    let sample = without_line(&sample, "metrics_listen = ")?;
    Ok(format!(
        "metrics_listen = \"off\"\n{sample}\n\
         [databases.notes]\nbackend = \"sqlite\"\npath = {path:?}\n"
    ))
}

/// Starts the program by a link of PgBouncer's name, with PgBouncer's file.
pub(super) fn as_pgbouncer(root: &Path) -> Result<()> {
    let link = root.join("usr/bin/pgbouncer");
    std::os::unix::fs::symlink("refrain", &link)?;
    let version = command::output(Command::new(&link).arg("-V"))?;
    ensure!(version.starts_with("PgBouncer "), "the link says {version}");
    Ok(())
}

/// Returns a text without its one line that begins so.
fn without_line(text: &str, start: &str) -> Result<String> {
    let kept: Vec<_> = text.lines().filter(|line| !line.starts_with(start)).collect();
    ensure!(kept.len() + 1 == text.lines().count(), "the sample has not one `{start}`");
    Ok(kept.join("\n"))
}

/// Asks the program that listens at a port for a row.
pub(super) fn ask(port: u16, log: impl Fn() -> String) -> Result<()> {
    let url = format!("postgres://ann@127.0.0.1:{port}/notes");
    let mut psql = Command::new(provision::postgres(Version::V15)?.join("psql"));
    psql.args(["-XAtqw", "-d", &url, "-c", "select 6 * 7"]).env("PGPASSWORD", "secret");
    let row = command::output(&mut psql).with_context(&log)?;
    ensure!(row.trim() == "42", "the program answers {row:?}");
    Ok(())
}

//! The deb in a fresh Debian: it installs, serves by the command of its unit, and leaves nothing
//! but its configuration and its databases.
//!
//! This takes root, who may make devices: it is left out elsewhere.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::serving;
use super::unit;
use crate::command;
use crate::leash::Leash;
use crate::ports::{self, free_port};
use crate::provision;

/// Folders whose files do not count: those of apt and dpkg, and of what runs.
const ASIDE: [&str; 12] = [
    "dev",
    "proc",
    "root",
    "srv",
    "run",
    "sys",
    "tmp",
    "var/cache",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/log/apt",
    "var/log/dpkg.log",
];

/// Files that may be left when the package is removed.
const STAYS: [&str; 4] =
    ["etc/refrain", "etc/logrotate.d/refrain", "var/lib/refrain", "var/log/refrain"];

/// Folders that systemd makes for the service.
const MADE: [&str; 3] = ["run/refrain", "var/lib/refrain", "var/log/refrain"];

/// The longest that the program may take until it listens.
const START_MAX: Duration = Duration::from_secs(60);

/// Installs the deb in a fresh root below `folder`, asks its program for a row, and takes it away.
pub(super) fn comes_and_goes(deb: &Path, folder: &Path) -> Result<()> {
    let root = folder.join("debian");
    fs::create_dir_all(&root)?;
    let mut unpack = Command::new("tar");
    unpack.args(["--numeric-owner", "-xpf"]).arg(provision::fresh_debian()?);
    command::run(unpack.arg("-C").arg(&root))?;
    fs::copy(deb, root.join("srv/refrain.deb"))?;
    let before = files(&root)?;
    apt(&root, &["install", "--no-install-recommends", "/srv/refrain.deb"])?;
    serves(&root)?;
    apt(&root, &["remove", "refrain"])?;
    let left = files(&root)?;
    let mut left = left.difference(&before);
    let stray = left.find(|path| !STAYS.iter().any(|stays| path.starts_with(stays)));
    ensure!(stray.is_none(), "the removed package leaves {stray:?}");
    fs::remove_dir_all(root.join("var/lib/refrain"))?;
    apt(&root, &["purge", "refrain"])?;
    let left = files(&root)?;
    let left: Vec<_> = left.difference(&before).collect();
    ensure!(left.is_empty(), "the purged package leaves {left:?}");
    let users = fs::read_to_string(root.join("etc/passwd"))?;
    ensure!(!users.contains("refrain:"), "the purged package leaves its user");
    Ok(())
}

/// Starts the command of the unit as its user, and asks for a row.
fn serves(root: &Path) -> Result<()> {
    for folder in MADE {
        let made = ["install", "-d", "-o", "refrain", "-g", "refrain", &format!("/{folder}")];
        command::run(&mut within(root, &[], &made))?;
    }
    let port = free_port()?;
    let config = root.join("etc/refrain/refrain.toml");
    let sample = serving::with_notes(&fs::read_to_string(&config)?, "/var/lib/refrain/notes.db")?;
    fs::write(&config, format!("listen = [\"127.0.0.1:{port}\"]\n{sample}"))?;
    fs::write(root.join("etc/refrain/userlist.txt"), serving::USERS)?;
    let words = unit::start_command(root)?;
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let log = root.join("srv/log");
    let start = within(root, &["--userspec=refrain:refrain"], &words);
    let mut running = Leash::start(&start, "TERM", &File::create(&log)?)?;
    let log = || fs::read_to_string(&log).unwrap_or_default();
    ports::wait_for(port, START_MAX, || running.is_running())
        .with_context(|| format!("the program does not listen:\n{}", log()))?;
    serving::ask(port, log)
}

fn apt(root: &Path, words: &[&str]) -> Result<()> {
    let mut apt = within(root, &[], &[&["apt-get", "-y", "-qq"], words].concat());
    command::run(apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

/// Returns a command that runs in the root.
fn within(root: &Path, options: &[&str], words: &[&str]) -> Command {
    let mut chroot = Command::new("chroot");
    chroot.args(options).arg(root).args(words);
    chroot
}

/// Returns the paths of the root's files, but for those aside and copies that programs keep of the
/// lists of users.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut find = Command::new("find");
    let listing = command::output(find.args([".", "-xdev", "-printf", "%P\\n"]).current_dir(root))?;
    let paths = listing.lines().filter(|path| !path.is_empty() && !path.ends_with('-'));
    let kept =
        paths.map(PathBuf::from).filter(|path| !ASIDE.iter().any(|aside| path.starts_with(aside)));
    Ok(kept.collect())
}

//! The units of systemd: they are sound, and the service has little power.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::provision;

/// The units that the packages install.
const UNITS: [&str; 3] = ["refrain.service", "refrain.socket", "refrain-metrics.socket"];

/// Units of the system that these name, which the unpacked package does not have.
const OTHERS: [&str; 6] =
    ["sysinit", "basic", "shutdown", "sockets", "network-online", "multi-user"];

/// The most power the service may have, in tenths of the points of `systemd-analyze security`:
/// "OK".
const EXPOSURE_MAX: &str = "20";

/// Checks the units of an unpacked package, which gets files that it names of the system.
pub(super) fn verify(root: &Path) -> Result<()> {
    provision::program("/usr/bin/systemd-analyze", "systemd")?;
    let folder = root.join("usr/lib/systemd/system");
    for name in OTHERS {
        fs::write(folder.join(format!("{name}.target")), "[Unit]\nDescription=Of the system\n")?;
    }
    fs::create_dir_all(root.join("bin"))?;
    fs::copy("/bin/sh", root.join("bin/sh")).context("cannot copy /bin/sh")?;
    // The manual is not where `man` looks.
    let told = analyze(root, &["verify", "--man=no"], &UNITS)?;
    // Other lines are about the machine, such as one without systemd.
    let of_ours: Vec<_> = told.lines().filter(|line| line.contains("refrain")).collect();
    ensure!(of_ours.is_empty(), "systemd-analyze says of the units:\n{told}");
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    analyze(root, &["security", "--offline=true", &threshold], &UNITS[..1])?;
    Ok(())
}

/// Returns what `systemd-analyze` says. Fails if it fails.
fn analyze(root: &Path, words: &[&str], units: &[&str]) -> Result<String> {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(words).arg(format!("--root={}", root.display())).args(units);
    let output = analyze.output().context("cannot run systemd-analyze")?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    ensure!(output.status.success(), "systemd-analyze refuses the units:\n{told}");
    Ok(told)
}

/// Returns the command that the service starts, as words.
pub(super) fn start_command(root: &Path) -> Result<Vec<String>> {
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/refrain.service"))?;
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let line = line.context("the service starts nothing")?;
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

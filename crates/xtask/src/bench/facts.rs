//! Facts that a measurement depends on: the machine, the commit and the versions.

use std::fs;
use std::process::Command;
use std::thread;

use crate::command;
use crate::postgres::Cluster;
use crate::workspace;

use super::launch;

/// Returns a list in Markdown: the machine, PostgreSQL and PgBouncer.
pub(super) fn facts(cluster: &Cluster) -> String {
    without_pgbouncer(cluster) + &list(&[("PgBouncer", launch::pgbouncer_version())])
}

/// Returns a list in Markdown: the machine and PostgreSQL.
pub(super) fn without_pgbouncer(cluster: &Cluster) -> String {
    let version = cluster.psql("postgres", "SHOW server_version").ok();
    machine() + &list(&[("PostgreSQL", version)])
}

/// Returns a list in Markdown: the date, the commit and the compiler. Counts of instructions depend
/// on no more than the last two.
pub(super) fn code() -> String {
    list(&[
        ("Date", said("date", &["-u", "+%Y-%m-%d"])),
        ("Commit", commit()),
        ("Compiler", said("rustc", &["--version"])),
    ])
}

/// Returns a list in Markdown: the machine and the code.
pub(super) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let cpu = from_proc("/proc/cpuinfo", "model name");
    let machine = list(&[
        ("Kernel", said("uname", &["-srm"])),
        ("CPU", cpu.map(|cpu| format!("{cpu}, {cores} cores"))),
        ("Memory", from_proc("/proc/meminfo", "MemTotal")),
    ]);
    code() + &machine
}

fn list(lines: &[(&str, Option<String>)]) -> String {
    let known = lines.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    known.map(|(name, value)| format!("- {name}: {}\n", value.trim())).collect()
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    command::output(Command::new(program).args(arguments).current_dir(workspace::root())).ok()
}

fn commit() -> Option<String> {
    let commit = said("git", &["rev-parse", "--short", "HEAD"])?;
    let changed = said("git", &["status", "--short", "--untracked-files=no"])?;
    let note = if changed.trim().is_empty() { "" } else { ", with changes" };
    Some(format!("{}{note}", commit.trim()))
}

fn from_proc(file: &str, field: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

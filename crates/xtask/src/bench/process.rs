//! Figures of a process from `/proc`: its CPU time and its memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// Nanoseconds of one tick in `/proc/PID/stat`. Linux reports 100 ticks a second on every machine.
const TICK_NS: u64 = 10_000_000;

/// Returns the CPU time of a process's threads, in nanoseconds.
///
/// The figure is from `schedstat`, exact to the nanosecond, or else from `stat`, in steps of 10 ms.
pub fn cpu_ns(process: u32) -> Result<u64> {
    let threads = fs::read_dir(format!("/proc/{process}/task"))?;
    let of_thread = |thread: &Path| -> Option<u64> {
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let precise: Option<u64> = threads.map(|thread| of_thread(&thread.ok()?.path())).sum();
    match precise {
        Some(ns) if ns > 0 => Ok(ns),
        _ => Ok(Stat::of(process).context("the process has gone")?.own_ns),
    }
}

/// Returns the CPU time of a process and its children in nanoseconds, with the children that have
/// ended.
pub fn family_cpu_ns(process: u32) -> Result<u64> {
    let own = Stat::of(process).context("the process has gone")?;
    let mut total = cpu_ns(process)? + own.ended_ns;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) = Stat::of(child).filter(|stat| stat.parent == process) {
            total += cpu_ns(child).unwrap_or(stat.own_ns);
        }
    }
    Ok(total)
}

/// Returns the memory that a process has in use (`VmRSS`), in bytes.
pub fn resident_bytes(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")).context("no VmRSS")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}

/// Sets the limit of open files of this process, and of processes that it starts from now on.
pub fn allow_open_files(count: u32) -> Result<()> {
    let mut prlimit = Command::new("prlimit");
    prlimit.arg(format!("--pid={}", std::process::id()));
    command::run(prlimit.arg(format!("--nofile={count}:{count}")))
}

/// The fields of `/proc/PID/stat` that this module uses.
struct Stat {
    parent: u32,
    own_ns: u64,
    /// CPU time of children that have ended and been waited for.
    ended_ns: u64,
}

impl Stat {
    fn of(process: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // The second field is the program's name, which may have spaces and parentheses.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |first: usize| -> Option<u64> {
            Some(
                fields.get(first)?.parse::<u64>().ok()?
                    + fields.get(first + 1)?.parse::<u64>().ok()?,
            )
        };
        let parent = fields.get(1)?.parse().ok()?;
        Some(Stat { parent, own_ns: ticks(11)? * TICK_NS, ended_ns: ticks(13)? * TICK_NS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 0 0 5 6 7 8 20 0 1 0 1 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.own_ns, stat.ended_ns), (3, 11 * TICK_NS, 15 * TICK_NS));
    }

    #[test]
    fn a_process_that_worked_has_run() {
        let own = std::process::id();
        // The kernel may count in ticks, so the time is zero before the first one.
        let worked = (0..1_000_000_000_u64).any(|n| n % 1_000_000 == 0 && cpu_ns(own).unwrap() > 0);
        assert!(worked);
        assert!(family_cpu_ns(own).is_ok());
        assert!(resident_bytes(own).unwrap() > 0);
    }
}

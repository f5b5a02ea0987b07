//! The most memory that a process held at once.

use std::fs;

use anyhow::{Context, Result};

/// What makes the kernel begin anew to look for the most that a process holds.
const FORGET: &str = "5";

/// The most that a process has held since this was made.
pub(super) struct Peak(u32);

impl Peak {
    pub(super) fn of(process: u32) -> Result<Peak> {
        fs::write(format!("/proc/{process}/clear_refs"), FORGET)?;
        Ok(Peak(process))
    }

    pub(super) fn bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")).context("no VmHWM")?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }
}

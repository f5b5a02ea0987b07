//! The most memory that a process has used at once.

use std::fs;

use anyhow::{Context, Result};

/// The value for `clear_refs` that resets the kernel's peak.
const FORGET: &str = "5";

/// A process whose peak of memory is counted from the creation of this value on.
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

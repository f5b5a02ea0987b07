//! Folders of throwaway servers, under the system's folder for temporary files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::command;

/// Returns the folder of all servers of this user of the machine.
pub(crate) fn base() -> Result<PathBuf> {
    let user = command::output(Command::new("id").arg("-u"))?;
    let base = std::env::temp_dir().join(format!("refrain-clusters-{}", user.trim()));
    fs::create_dir_all(&base).with_context(|| format!("cannot make {}", base.display()))?;
    Ok(base)
}

/// Returns a path for the folder of one server, named after this process. Removes folders of
/// processes that have ended.
pub(crate) fn unused() -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = base()?;
    for entry in fs::read_dir(&base)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.split_once('-').and_then(|(id, _)| id.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(base.join(format!("{}-{number}", std::process::id())))
}

//! Folders of throwaway servers: under the system's folder for temporary files, or in memory.
//!
//! A test's cluster makes a thousand files, and removes them soon after. On a disk that is most of
//! the tests' time: ext4 gives a removed file's inode to no other file for a minute, and reads each
//! such inode whenever it looks for one that is free.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use rustix::fs::statfs;
use rustix::process::getuid;

/// The folder that Linux systems keep in memory.
const MEMORY: &str = "/dev/shm";
/// The kernel's number for file systems in memory.
const TMPFS: u32 = 0x0102_1994;
/// Bytes that are free, in that folder as well as in memory, if data go there: some three times as
/// many as the tests of the part `it` have there at once, with two hundred databases.
const ROOM: u64 = 6 << 30;
/// The variable of the environment that names the folder for temporary files. If it is set, data go
/// there.
const CHOSEN: &str = "TMPDIR";

/// Returns the folder of all servers of this user of the machine. Programs can run there.
pub(crate) fn base() -> Result<PathBuf> {
    base_in(&std::env::temp_dir())
}

/// Returns a path for a folder, named after this process. Removes folders of processes that have
/// ended.
pub(crate) fn unused() -> Result<PathBuf> {
    let base = base()?;
    sweep(&base)?;
    Ok(fresh(&base))
}

/// Returns such a path for the data of one server. The folder is in memory if there is room.
pub(crate) fn for_data() -> Result<PathBuf> {
    let memory = Path::new(MEMORY);
    if !has_room_if_swept(memory) || std::env::var_os(CHOSEN).is_some() {
        return unused();
    }
    Ok(fresh(&base_in(memory)?))
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join(format!("refrain-clusters-{}", getuid().as_raw()))
}

fn base_in(folder: &Path) -> Result<PathBuf> {
    let base = path_in(folder);
    fs::create_dir_all(&base).with_context(|| format!("cannot make {}", base.display()))?;
    Ok(base)
}

/// Returns a path that no folder of a running process has.
fn fresh(base: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    base.join(format!("{}-{number}", process::id()))
}

/// Removes folders of processes that have ended.
fn sweep(base: &Path) -> Result<()> {
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.split_once('-').and_then(|(id, _)| id.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Removes such folders, which may take the room, and returns whether there is some.
fn has_room_if_swept(folder: &Path) -> bool {
    // Most often an error says that there is no base yet.
    let _ = sweep(&path_in(folder));
    has_room(folder)
}

/// Whether a folder is in memory, and has room for the data of tests.
fn has_room(folder: &Path) -> bool {
    let Ok(system) = statfs(folder) else { return false };
    let free = system.f_bavail * u64::try_from(system.f_bsize).unwrap_or(0);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = available(&read("/proc/meminfo"));
    let allowed =
        allowed(&read("/sys/fs/cgroup/memory.max"), &read("/sys/fs/cgroup/memory.current"));
    system.f_type == i64::from(TMPFS) && free.min(memory).min(allowed) >= ROOM
}

/// Returns the bytes of memory that a container may still take, from the kernel's words for its
/// limit and for what it has. Files in memory count there.
fn allowed(most: &str, current: &str) -> u64 {
    let bytes = |words: &str| words.trim().parse::<u64>().ok();
    bytes(most).map_or(u64::MAX, |most| most.saturating_sub(bytes(current).unwrap_or(0)))
}

/// Returns the bytes of memory that programs may still ask for, from the system's list.
fn available(list: &str) -> u64 {
    let line = list.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_that_is_available_is_read() {
        let list = "MemTotal:       24684084 kB\nMemAvailable:   22 kB\nBuffers: 1 kB\n";
        assert_eq!(available(list), 22 * 1024);
        assert_eq!(available("MemTotal: 1 kB\n"), 0);
    }

    #[test]
    fn a_container_may_have_a_limit() {
        assert_eq!(allowed("max\n", "7\n"), u64::MAX);
        assert_eq!(allowed("", ""), u64::MAX);
        assert_eq!(allowed("10\n", "7\n"), 3);
        assert_eq!(allowed("10\n", "12\n"), 0);
    }

    #[test]
    fn a_folder_on_a_disk_is_not_in_memory() {
        assert!(!has_room(Path::new("/proc")) && !has_room(Path::new("/nowhere")));
    }

    #[test]
    fn leftovers_are_removed_where_there_is_no_room() {
        let folder = unused().expect("a folder");
        let base = base_in(&folder).expect("a base");
        // No process has the largest number.
        let [ended, alive] = [u32::MAX, process::id()].map(|id| base.join(format!("{id}-0/data")));
        for data in [&ended, &alive] {
            fs::create_dir_all(data).expect("data");
        }
        assert!(!has_room_if_swept(Path::new("/nowhere")));
        has_room_if_swept(&folder);
        assert!(!base.join(format!("{}-0", u32::MAX)).exists() && alive.exists());
        fs::remove_dir_all(&folder).expect("removed");
    }
}

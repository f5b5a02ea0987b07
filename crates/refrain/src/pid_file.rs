//! The file with the number of the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid, test_kill_process};

/// The file with the number of the process. It is removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes the file, if there is to be one.
    ///
    /// # Errors
    /// If the process that a file there names is alive, or if the file cannot be written.
    pub(crate) fn write(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let name = path.display();
        if let Some(pid) = alive(path) {
            let message = format!("pidfile {name}: process {pid} is running");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let text = format!("{}\n", getpid().as_raw_nonzero());
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("pidfile {name}: {error}"));
        fs::write(path, text).map_err(failed)?;
        Ok(Self(Some(path.to_owned())))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the number in a file, if another process has it.
fn alive(path: &Path) -> Option<i32> {
    let number = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let pid = Pid::from_raw(number).filter(|pid| *pid != getpid())?;
    // A process of another user is alive as well.
    let answer = test_kill_process(pid);
    (answer != Err(rustix::io::Errno::SRCH)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_the_process() {
        let path = std::env::temp_dir().join(format!("refrain-pid-{}", std::process::id()));
        let file = PidFile::write(Some(&path)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
        let parent = std::os::unix::process::parent_id();
        fs::write(&path, format!("{parent}\n")).unwrap();
        assert_eq!(PidFile::write(Some(&path)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // No process has this number.
        fs::write(&path, "4194305\n").unwrap();
        drop(PidFile::write(Some(&path)).unwrap());
        assert!(!path.exists());
    }
}

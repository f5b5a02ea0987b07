//! The file with the number of the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid, test_kill_process};

/// The file with the number of the process. It is removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Checks that no process is alive that a file there names, but for one whose place this
    /// process takes.
    ///
    /// # Errors
    /// If such a process is alive.
    pub(crate) fn check(path: Option<&Path>, predecessor: Option<i32>) -> io::Result<()> {
        let Some(path) = path else { return Ok(()) };
        match alive(path).filter(|pid| Some(*pid) != predecessor) {
            None => Ok(()),
            Some(pid) => {
                let message = format!("pidfile {}: process {pid} is running", path.display());
                Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
            }
        }
    }

    /// Writes the file, if there is to be one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let name = path.display();
        let text = format!("{}\n", getpid().as_raw_nonzero());
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("pidfile {name}: {error}"));
        fs::write(path, text).map_err(failed)?;
        Ok(Self(Some(path.to_owned())))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A process that has taken the place of this one has written its own number.
        if let Some(path) = self.0.take()
            && named(&path) == Some(getpid())
        {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

fn named(path: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(path).ok()?.trim().parse().ok()?)
}

/// Returns the number in a file, if another process has it.
fn alive(path: &Path) -> Option<i32> {
    let pid = named(path).filter(|pid| *pid != getpid())?;
    // A process of another user is alive as well.
    let answer = test_kill_process(pid);
    (answer != Err(rustix::io::Errno::SRCH)).then(|| pid.as_raw_nonzero().get())
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
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        let file = PidFile::write(Some(&path)).unwrap();
        fs::write(&path, format!("{parent}\n")).unwrap();
        drop(file);
        assert!(path.exists(), "it is another process's by now");
        let refused = PidFile::check(Some(&path), None).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        PidFile::check(Some(&path), Some(parent)).unwrap();
        // No process has this number.
        fs::write(&path, "4194305\n").unwrap();
        PidFile::check(Some(&path), None).unwrap();
        drop(PidFile::write(Some(&path)).unwrap());
        assert!(!path.exists());
    }
}

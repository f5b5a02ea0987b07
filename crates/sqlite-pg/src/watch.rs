//! Checks whether the file that is served is still in its place.
//!
//! A file that was moved, replaced or deleted takes no more commits, and neither does a file in its
//! place: a backup that an operator put there must not be mixed with the WAL of the old file. The
//! file is checked before each write and after its commit; reads check it at intervals. The rest of
//! the WAL is copied into the file that it was written for, which empties the WAL. Then any file in
//! that place can be opened.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use refrain_sqlite::{Connection, FileId};

use crate::failure::{Failure, state};

/// The time between two checks that reads make. A check is a system call, and a read takes about as
/// long as five of them.
const PAUSE: Duration = Duration::from_millis(50);

/// The file, and the results of the checks.
pub(crate) struct Watch {
    /// The file that was opened first.
    is: Mutex<Option<FileId>>,
    /// True if the file was gone at the last check.
    gone: AtomicBool,
    begun: Instant,
    /// When the file was checked last, in nanoseconds since `begun`.
    looked: AtomicU64,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Here,
    /// It is gone, and was not at the check before.
    Lost,
    Gone,
    /// It is here, and was gone at the check before.
    Back,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let (gone, looked) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { is: Mutex::default(), gone, begun: Instant::now(), looked }
    }

    /// True if no connection has been opened yet. Only then may a missing file be created.
    pub(crate) fn is_new(&self) -> bool {
        self.is.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// True if the path leads to the file that is served, which is the first that was opened.
    pub(crate) fn leads_there(&self, path: &Path) -> bool {
        let is = *self.is.lock().unwrap_or_else(PoisonError::into_inner);
        is.is_none() || FileId::of(path) == is
    }

    /// Notes that a connection was opened: the first one says which file is served.
    pub(crate) fn opened(&self, path: &Path) {
        let mut is = self.is.lock().unwrap_or_else(PoisonError::into_inner);
        *is = is.or_else(|| FileId::of(path));
    }

    /// True if it is time for a read to check the file.
    pub(crate) fn is_due(&self) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        let due = self.is_gone() || now.saturating_sub(looked) >= PAUSE.as_nanos() as u64;
        if due {
            self.looked.store(now, Ordering::Relaxed);
        }
        due
    }

    /// Checks the file.
    pub(crate) fn look(&self, connection: &Connection) -> Look {
        let gone = !connection.is_in_place();
        match (self.gone.swap(gone, Ordering::Relaxed), gone) {
            (false, false) => Look::Here,
            (false, true) => Look::Lost,
            (true, true) => Look::Gone,
            (true, false) => Look::Back,
        }
    }

    /// Notes that the path leads to another file. Returns false if that was known.
    pub(crate) fn lose(&self) -> bool {
        !self.gone.swap(true, Ordering::Relaxed)
    }

    /// True if the file was gone at the last check.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// Makes the error for a client whose file is gone.
pub(crate) fn gone(path: &Path) -> Failure {
    let message = format!(
        "the file \"{}\" was moved, replaced or deleted while it was served",
        path.display()
    );
    let hint = "put it back, or restart Refrain to serve the file that is there now";
    Failure::new(state::UNDEFINED_FILE, message).hint(hint)
}

/// Makes the error for a client whose transaction went to a file that is gone.
pub(crate) fn committed_to_nothing(path: &Path) -> Failure {
    let message = format!(
        "the transaction was written to the file \"{}\", which was moved, replaced or deleted meanwhile",
        path.display()
    );
    Failure::new(state::IO_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_sqlite::Database;
    use refrain_sqlite::OpenOptions;

    #[test]
    fn what_is_lost_is_said_once_and_what_is_back_as_well() {
        let path = std::env::temp_dir().join(format!("refrain-watch-{}.db", std::process::id()));
        let away = path.with_extension("away");
        let connection = Database::new(&path, OpenOptions::default()).connect().unwrap();
        let watch = Watch::new();
        assert!(watch.is_new() && watch.leads_there(&path));
        watch.opened(&path);
        assert!(!watch.is_new());
        assert_eq!(watch.look(&connection), Look::Here);
        std::fs::rename(&path, &away).unwrap();
        assert!(!watch.leads_there(&path));
        assert_eq!(watch.look(&connection), Look::Lost);
        assert_eq!(watch.look(&connection), Look::Gone);
        assert!(watch.is_due() && watch.is_due(), "while it is gone, all look");
        std::fs::rename(&away, &path).unwrap();
        assert_eq!(watch.look(&connection), Look::Back);
        assert!(watch.leads_there(&path));
        drop(connection);
        std::fs::remove_file(&path).unwrap();
    }
}

//! The file that is served, and whether it is still in its place.
//!
//! What was moved, replaced or deleted takes no more commits, nor does what stands in its place: a backup that was put
//! there must not be mixed with the log of what was there before. Before a write and behind its commit each is asked;
//! reads ask now and then. What is in the log still is copied into the file it was written for, which empties the log:
//! whatever stands in its place then opens as it is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use refrain_sqlite::{Connection, FileId};

use crate::failure::{Failure, state};

/// How often reads have the file looked at. A look is a system call, a read takes about as long as five.
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of the file.
pub(crate) struct Watch {
    /// The file as it was opened first.
    is: Mutex<Option<FileId>>,
    /// Whether it was gone at the last look.
    gone: AtomicBool,
    begun: Instant,
    /// When it was looked at last, in nanoseconds from the beginning.
    looked: AtomicU64,
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Here,
    /// It is gone, and was not at the look before.
    Lost,
    Gone,
    /// It is here, and was gone at the look before.
    Back,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let (gone, looked) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { is: Mutex::default(), gone, begun: Instant::now(), looked }
    }

    /// Whether nobody has opened the file yet. What is not there may be made then, and only then.
    pub(crate) fn is_new(&self) -> bool {
        self.is.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether the name leads to the file that is served. The first that is opened is.
    pub(crate) fn leads_there(&self, path: &Path) -> bool {
        let is = *self.is.lock().unwrap_or_else(PoisonError::into_inner);
        is.is_none() || FileId::of(path) == is
    }

    /// A connection was opened.
    pub(crate) fn opened(&self, path: &Path) {
        let mut is = self.is.lock().unwrap_or_else(PoisonError::into_inner);
        *is = is.or_else(|| FileId::of(path));
    }

    /// Whether a read is to look.
    pub(crate) fn is_due(&self) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        let due = self.is_gone() || now.saturating_sub(looked) >= PAUSE.as_nanos() as u64;
        if due {
            self.looked.store(now, Ordering::Relaxed);
        }
        due
    }

    /// Looks.
    pub(crate) fn look(&self, connection: &Connection) -> Look {
        let gone = !connection.is_in_place();
        match (self.gone.swap(gone, Ordering::Relaxed), gone) {
            (false, false) => Look::Here,
            (false, true) => Look::Lost,
            (true, true) => Look::Gone,
            (true, false) => Look::Back,
        }
    }

    /// The name leads elsewhere: whether that is news.
    pub(crate) fn lose(&self) -> bool {
        !self.gone.swap(true, Ordering::Relaxed)
    }

    /// Whether it was gone at the last look.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// What a client is told whose file is gone.
pub(crate) fn gone(path: &Path) -> Failure {
    let message = format!(
        "the file \"{}\" was moved, replaced or deleted while it was served",
        path.display()
    );
    let hint = "put it back, or restart Refrain to serve the file that is there now";
    Failure::new(state::UNDEFINED_FILE, message).hint(hint)
}

/// What a client is told whose transaction was written to a file that is gone.
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

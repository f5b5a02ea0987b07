//! Commits that share one wait for the disk.
//!
//! With `synchronous = full` SQLite waits for the disk while a commit has the right to write, so a
//! disk that takes a tenth of a millisecond bounds all sessions together. Here SQLite writes a
//! commit into the WAL and does not wait ([`Synchronous::Later`](refrain_sqlite::Synchronous)). The
//! session gives up the right to write, the next one writes, and the reply stays here until the WAL
//! is on disk. One wait serves all commits that were written before it began, since the WAL is one
//! file that grows at its end.
//!
//! Always true: no reply to a commit leaves before the WAL is on disk up to that commit. Other
//! sessions may read its rows earlier.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::failure::{Failure, state};

/// Waits until the WAL of a database is on disk.
pub type SyncWal = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

/// The work that waits for the disk: it gets the error if the disk failed.
type Finish = Box<dyn FnOnce(Option<Failure>) + Send>;

/// A commit whose reply waits for the disk.
struct Pending {
    wal: Arc<Path>,
    finish: Finish,
}

/// The thread that waits for the disk, for all commits of a file.
pub(crate) struct GroupCommit {
    sync: SyncWal,
    sender: Sender<Pending>,
    pending: Arc<AtomicUsize>,
}

impl GroupCommit {
    /// Starts the thread. It ends once this is dropped and its work is done.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start(sync: SyncWal) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let pending = Arc::new(AtomicUsize::new(0));
        let (own, count) = (sync.clone(), pending.clone());
        let run = move || work(&receiver, &own, &count);
        std::thread::Builder::new().name("sqlite-sync".to_owned()).spawn(run)?;
        Ok(Self { sync, sender, pending })
    }

    /// Waits for the disk on this thread.
    ///
    /// # Errors
    /// 58030.
    pub(crate) fn wait(&self, wal: &Path) -> Result<(), Failure> {
        (self.sync)(wal).map_err(|error| not_on_disk(&error))
    }

    /// Calls `finish` once the disk has all commits that are in the WAL now.
    pub(crate) fn after(&self, wal: Arc<Path>, finish: Finish) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        // Sending cannot fail: the thread listens as long as this sender exists.
        let _ = self.sender.send(Pending { wal, finish });
    }

    /// True if no commit waits for the disk on the thread.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Relaxed) == 0
    }
}

fn work(receiver: &Receiver<Pending>, sync: &SyncWal, count: &AtomicUsize) {
    while let Ok(first) = receiver.recv() {
        // All of these were written before the wait begins.
        let mut group = vec![first];
        group.extend(receiver.try_iter());
        let synced = sync(&group[0].wal).err().map(|error| not_on_disk(&error));
        count.fetch_sub(group.len(), Ordering::Relaxed);
        for pending in group {
            (pending.finish)(synced.clone());
        }
    }
}

/// Returns 58030 for commits that may be lost. Whether they are, only the next start tells, so the
/// session ends.
fn not_on_disk(error: &io::Error) -> Failure {
    let message = format!("could not write the commit to disk: {error}");
    Failure::new(state::IO_ERROR, message).hint("look whether the transaction is there")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn commits_that_come_during_a_wait_share_the_next_one() {
        let (enter, entered) = channel();
        let (leave, left) = sync_channel::<bool>(0);
        let (enter, left) = (Mutex::new(enter), Mutex::new(left));
        let sync: SyncWal = Arc::new(move |_| {
            enter.lock().unwrap().send(()).unwrap();
            match left.lock().unwrap().recv().unwrap() {
                true => Ok(()),
                false => Err(io::Error::other("no disk")),
            }
        });
        let group = GroupCommit::start(sync).unwrap();
        let (done, finished) = channel();
        let commit = |number: u32| {
            let done = done.clone();
            let finish = move |failed: Option<Failure>| {
                done.send((number, failed.map(|failure| failure.sqlstate))).unwrap();
            };
            group.after(Arc::from(Path::new("x-wal")), Box::new(finish));
        };
        assert!(group.is_idle());
        commit(1);
        entered.recv().unwrap();
        (2..=9).for_each(commit);
        assert!(finished.try_recv().is_err() && !group.is_idle());
        leave.send(true).unwrap();
        assert_eq!(finished.recv().unwrap(), (1, None));
        entered.recv().unwrap();
        assert!(finished.try_recv().is_err());
        leave.send(false).unwrap();
        for number in 2..=9 {
            assert_eq!(finished.recv().unwrap(), (number, Some(state::IO_ERROR)));
        }
        assert!(group.is_idle() && entered.try_recv().is_err());
    }
}

//! A thread that writes the answers of one kind, one after another, for the thread that has the
//! connections.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use super::Written;
use super::exchange::Wanted;

/// Maximum number of texts of one kind that are being sent. With thousands of pools the metrics
/// have megabytes.
const TEXTS_MAX: usize = 4;

/// A thread that writes answers, as the thread of the connections knows it.
pub(super) struct Clerk {
    asks: Sender<Wanted>,
    written: Receiver<Written>,
    /// The request whose answer is being written.
    writing: Option<Wanted>,
    /// Texts that are still being sent, the oldest first.
    texts: Vec<Arc<[u8]>>,
}

impl Clerk {
    /// Starts a thread, which gives a byte to `rope` for each answer.
    ///
    /// # Errors
    /// If the system refuses the thread.
    pub(super) fn start(
        name: &str,
        mut rope: UnixStream,
        write: impl Fn(&Wanted) -> Written + Send + 'static,
    ) -> io::Result<Self> {
        let (asks, asked) = mpsc::channel::<Wanted>();
        let (texts, written) = mpsc::channel();
        let work = move || {
            for wanted in asked {
                if texts.send(write(&wanted)).is_err() {
                    return;
                }
                // If the socket is full, the other thread has not read the earlier bytes yet: it
                // will wake.
                let _ = rope.write(&[0]);
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { asks, written, writing: None, texts: Vec::new() })
    }

    /// Whether the thread writes an answer.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Has the thread write an answer. Returns a text that is being sent and has to make room.
    pub(super) fn ask(&mut self, wanted: &Wanted) -> Option<Arc<[u8]>> {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        // The thread ends with the process.
        self.writing = self.asks.send(wanted.clone()).is_ok().then(|| wanted.clone());
        (self.texts.len() >= TEXTS_MAX).then(|| self.texts.remove(0))
    }

    /// Returns an answer that was written since the last call.
    pub(super) fn take(&mut self) -> Option<Written> {
        let written = self.written.try_recv().ok()?;
        self.writing = None;
        self.texts.push(Arc::clone(&written.body));
        Some(written)
    }
}

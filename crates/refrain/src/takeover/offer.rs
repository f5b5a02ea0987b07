//! The old program of a take-over: a thread that hears who asks for its sockets.
//!
//! One program is heard at a time. Until it says that it serves clients, nothing changes here; a
//! program that goes before that, or says nothing for [`READY`], gets nothing. From then on the
//! supervisor drains this program, and the thread passes on cancel requests for the clients that
//! are still here.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use super::heir::Elders;
use super::wire::{Line, VERSION, from_hex};
use crate::inherit::{Held, SocketFile};
use crate::state::State;
use crate::supervisor::SupervisorCommand;

/// Time in which a program that has connected asks.
const ASKING: Duration = Duration::from_secs(10);
/// Time in which a program that has got the sockets serves clients.
const READY: Duration = Duration::from_secs(60);
/// Pause after a failed accept.
const REST: Duration = Duration::from_secs(1);

/// The socket at which this program is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) path: PathBuf,
    pub(crate) socket: OwnedFd,
    pub(crate) file: SocketFile,
}

/// The parts of the program that a take-over needs.
pub(crate) struct Offering {
    pub(crate) state: Arc<State>,
    pub(crate) commands: Sender<SupervisorCommand>,
    pub(crate) elders: Arc<Elders>,
    /// Cancels what the client with this process ID and key does, on any core.
    pub(crate) cancel: Box<dyn Fn(u32, Box<[u8]>) + Send>,
}

/// The sockets that a new program serves, by their places.
#[derive(Debug)]
struct Wanted {
    places: Vec<usize>,
    /// Whether it is asked where this one was.
    asking_stays: bool,
}

impl Offering {
    /// Hears programs from now on, in a thread of its own.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start(self, mut asked: Asked) -> io::Result<()> {
        // The file goes when this program accepts no clients any more.
        self.state.handles.keep_asking(mem::take(&mut asked.file));
        let thread = thread::Builder::new().name("takeover".to_owned());
        thread.spawn(move || self.hear_all(asked)).map(drop)
    }

    fn hear_all(&self, asked: Asked) {
        loop {
            let line = match Line::accept(&asked.socket) {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(cause = "takeover", "cannot be asked: {error}");
                    thread::sleep(REST);
                    continue;
                }
            };
            match self.hear(&line, &asked) {
                Ok(()) => {
                    drop(asked);
                    return self.cancel_all(&line);
                }
                Err(error) => {
                    tracing::warn!(cause = "takeover", "nothing is handed over: {error}");
                    // It may have gone.
                    let _ = line.send(&format!("refused {error}"), None);
                }
            }
        }
    }

    /// Hears a program out, and lets it have the sockets that it serves.
    fn hear(&self, line: &Line, asked: &Asked) -> io::Result<()> {
        let pid = line.peer()?;
        line.set_patience(Some(ASKING))?;
        let text = next(line)?;
        if text != format!("takeover {VERSION}") {
            let why = format!("version {VERSION} of the take-over is spoken here, not {text:?}");
            return Err(io::Error::other(why));
        }
        tracing::info!(cause = "takeover", "process {pid} asks for the sockets");
        self.offer(line, asked)?;
        line.set_patience(Some(READY))?;
        let wanted = next(line)?;
        let wanted = read(&wanted).ok_or_else(|| io::Error::other(format!("said {wanted:?}")))?;
        let (answer, answered) = mpsc::channel();
        let Wanted { places, asking_stays } = wanted;
        let order = SupervisorCommand::HandOver { places, asking_stays, pid, answer };
        let gone = || io::Error::other("the program ends");
        self.commands.send(order).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?;
        // If it has gone by now, nobody serves, and that cannot be changed any more.
        let _ = line.send("yours", None);
        Ok(())
    }

    fn offer(&self, line: &Line, asked: &Asked) -> io::Result<()> {
        let handles = self.state.handles.lock();
        if handles.is_empty() {
            return Err(io::Error::other("the program ends"));
        }
        for Held { kind, is_activated, fd, .. } in handles.iter() {
            let origin = if *is_activated { "activated" } else { "bound" };
            line.send(&format!("socket {} {origin}", kind.word()), Some(fd.as_fd()))?;
        }
        drop(handles);
        let path = asked.path.display();
        line.send(&format!("asking {path}"), Some(asked.socket.as_fd()))?;
        self.elders.introduce(line)?;
        if let Some((name, us)) = self.state.supervising.shown() {
            line.send(&format!("notify {us} {name}"), None)?;
        }
        line.send("offered", None)
    }

    /// Cancels what the new program asks for, until it has ended.
    fn cancel_all(&self, line: &Line) {
        let _ = line.set_patience(None);
        while let Ok(Some((text, _))) = line.receive() {
            let mut words = text.split(' ').skip_while(|word| *word != "cancel").skip(1);
            let pid = words.next().and_then(|pid| pid.parse().ok());
            if let Some((pid, key)) = pid.zip(words.next().and_then(from_hex)) {
                (self.cancel)(pid, key);
            }
        }
    }
}

fn next(line: &Line) -> io::Result<String> {
    let heard = line.receive()?;
    let (text, _) = heard.ok_or_else(|| io::Error::other("the new program has gone"))?;
    Ok(text)
}

/// Reads the word of a program that serves.
fn read(text: &str) -> Option<Wanted> {
    let mut words = text.strip_prefix("ready")?.split_ascii_whitespace().peekable();
    let asking_stays = words.next_if(|word| *word == "asking").is_some();
    let places = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some(Wanted { places, asking_stays })
}

impl Asked {
    /// Opens the socket at a path.
    ///
    /// # Errors
    /// If another program can be asked there; all errors of the system.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let socket = super::wire::open(&path)?;
        Ok(Self { file: SocketFile::new(path.clone()), path, socket })
    }

    /// Takes the socket of the old program, which keeps its file until it has handed over.
    pub(crate) fn inherited(path: PathBuf, socket: OwnedFd) -> Self {
        Self { path, socket, file: SocketFile::default() }
    }

    /// Makes the socket and its file this program's.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn own(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = SocketFile::new(self.path.clone());
        }
        super::wire::hear(&self.socket)
    }
}

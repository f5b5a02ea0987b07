//! The new program of a take-over.
//!
//! It asks for the sockets when its configuration is known to be good, and says that it is ready
//! when it serves clients at them. Until then it has changed nothing of what the old program has.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use refrain_drive::Listener;

use super::wire::{self, Line, VERSION};
use crate::inherit::{Inherited, Kind, Passed};
use crate::systemd::Supervising;

/// Time for each message of the old program.
const PATIENCE: Duration = Duration::from_secs(10);

/// The old program, which still serves.
#[derive(Debug)]
pub(crate) struct Predecessor {
    line: Line,
    /// The process of the old program.
    pub(crate) pid: i32,
    /// The number of sockets that the old program has offered.
    offered: usize,
    /// The programs that the old one has taken over, as far as they are left.
    elders: Vec<Line>,
}

/// The offer of an old program.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) predecessor: Predecessor,
    pub(crate) sockets: Inherited,
    /// The socket at which the old program is asked, and its path.
    pub(crate) asking: Option<(PathBuf, OwnedFd)>,
    /// The supervisor of the old program, if it has one.
    pub(crate) supervising: Supervising,
}

/// Asks the program that listens at a path for its sockets. Returns `None` if there is none.
///
/// # Errors
/// Why the other program does not hand over.
pub(crate) fn ask(path: &Path) -> io::Result<Option<Offer>> {
    let line = match Line::connect(path) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        line => line?,
    };
    let pid = line.peer()?;
    line.set_patience(Some(PATIENCE))?;
    line.send(&format!("takeover {VERSION}"), None)?;
    let (mut sockets, mut elders) = (Vec::new(), Vec::new());
    let (mut asking, mut supervising) = (None, Supervising::default());
    loop {
        let (text, fd) = hear(&line)?;
        match (text.split(' ').collect::<Vec<_>>().as_slice(), fd) {
            (["socket", kind, origin @ ("activated" | "bound")], Some(fd)) => {
                let (place, is_activated) = (Some(sockets.len()), *origin == "activated");
                let kind = Kind::named(kind).ok_or_else(|| strange(&text))?;
                let listener = Listener::inherited(fd)?;
                let address = listener.local()?;
                sockets.push(Passed { kind, is_activated, place, address, listener });
            }
            (["asking", ..], Some(fd)) => {
                let path = text.split_once(' ').unwrap_or_default().1;
                asking = Some((PathBuf::from(path), fd));
            }
            (["elder"], Some(fd)) => elders.push(Line::inherited(fd)),
            (["notify", us, ..], None) => {
                let name = text.splitn(3, ' ').nth(2).map(str::to_owned);
                supervising = Supervising::read(name, Some(us));
            }
            (["offered"], None) => break,
            _ => return Err(strange(&text)),
        }
    }
    let predecessor = Predecessor { line, pid, offered: sockets.len(), elders };
    Ok(Some(Offer { predecessor, sockets: Inherited::new(sockets), asking, supervising }))
}

fn hear(line: &Line) -> io::Result<(String, Option<OwnedFd>)> {
    let heard = line.receive().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::other("the old program does not answer"),
        _ => error,
    })?;
    let (text, fd) = heard.ok_or_else(|| io::Error::other("the old program has gone"))?;
    match text.strip_prefix("refused ") {
        Some(why) => Err(io::Error::other(format!("the old program refuses: {why}"))),
        None => Ok((text, fd)),
    }
}

fn strange(text: &str) -> io::Error {
    io::Error::other(format!("the old program says {text:?}: another version of Refrain?"))
}

impl Predecessor {
    /// Returns the places of the offered sockets, but for those that are left.
    pub(crate) fn taken(&self, left: &[Passed]) -> Vec<usize> {
        let is_taken = |place: &usize| left.iter().all(|socket| socket.place != Some(*place));
        (0..self.offered).filter(is_taken).collect()
    }

    /// Tells the old program that this one serves clients at the sockets of these places, and is
    /// asked at the old one's socket if that stays. Then waits until the old one has stopped to
    /// accept clients.
    ///
    /// # Errors
    /// If the old program has not heard that, so that it goes on to serve.
    pub(crate) fn ready(self, taken: &[usize], asking_stays: bool) -> io::Result<Elders> {
        let taken: String = taken.iter().map(|place| format!(" {place}")).collect();
        let asking = if asking_stays { " asking" } else { "" };
        self.line.send(&format!("ready{asking}{taken}"), None)?;
        // From here on this program serves, whatever the old one does.
        match hear(&self.line) {
            Ok((text, _)) if text == "yours" => {}
            Ok((text, _)) => tracing::warn!(cause = "takeover", "{}", strange(&text)),
            Err(error) => tracing::warn!(cause = "takeover", "{error}"),
        }
        let lines = self.elders.into_iter().chain([self.line]).collect();
        Ok(Elders(Mutex::new(lines)))
    }
}

/// The programs that have been taken over and may still have clients.
#[derive(Debug, Default)]
pub(crate) struct Elders(Mutex<Vec<Line>>);

impl Elders {
    /// Passes a cancel request on to all of them: each knows its clients by their keys.
    pub(crate) fn cancel(&self, pid: u32, key: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("cancel {pid} {}", wire::to_hex(key));
        // One that does not take the message has gone, or is stuck.
        lines.retain(|line| line.send(&text, None).is_ok());
    }

    /// Sets the programs that there are.
    pub(crate) fn set(&self, elders: Elders) {
        let lines = elders.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    /// Introduces them to another program.
    ///
    /// # Errors
    /// If the other program does not take the message.
    pub(crate) fn introduce(&self, to: &Line) -> io::Result<()> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().try_for_each(|line| to.send("elder", Some(line.as_fd())))
    }
}

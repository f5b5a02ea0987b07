//! The place that the program takes when it starts: among sockets that others have opened, in that
//! of an old program, in the file of the process's number, under a supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use refrain_config::{General, OrBeside};

use crate::inherit::{Inherited, Passed};
use crate::pid_file::PidFile;
use crate::systemd::Supervising;
use crate::takeover::{Asked, Offer, Offering, Predecessor};
use crate::{listen, systemd, takeover};

/// Time in which all cores of a new program end a turn before it takes the place of another.
const ANSWERING: Duration = Duration::from_secs(5);

/// The things that the program has from others when it starts.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    pub(crate) inherited: Inherited,
    pub(crate) supervising: Supervising,
    predecessor: Option<Predecessor>,
    /// The socket at which the old program is asked, and its path.
    asking: Option<(PathBuf, OwnedFd)>,
}

impl Estate {
    /// Reads what a supervisor has passed.
    ///
    /// # Errors
    /// If that is not as the supervisor says.
    pub(crate) fn from_environment() -> io::Result<Self> {
        let (inherited, supervising) = (systemd::passed()?, Supervising::from_environment());
        Ok(Self { inherited, supervising, ..Self::default() })
    }

    /// Asks a program for its sockets: that at the path, or where one with these options is asked.
    /// If there is none, this one starts as it would without.
    ///
    /// # Errors
    /// Why the other program does not hand over, or that the options name no place to ask at.
    pub(crate) fn take_over(&mut self, path: Option<&Path>, general: &General) -> io::Result<()> {
        let path = path.map(Path::to_owned).or_else(|| takeover::path(general));
        let unknown =
            "--takeover: set takeover_socket, pidfile or unix_socket_dir, or name the socket";
        let path = path.ok_or_else(|| io::Error::other(unknown))?;
        let name = path.display();
        let offer = takeover::ask(&path);
        let offer =
            offer.map_err(|error| io::Error::other(format!("take-over by {name}: {error}")))?;
        let Some(Offer { predecessor, sockets, asking, supervising }) = offer else {
            tracing::warn!(
                cause = "takeover",
                "no program is asked at {name}: nothing to take over"
            );
            return Ok(());
        };
        self.inherited.add(sockets);
        if !self.supervising.is_there() {
            self.supervising = supervising;
        }
        (self.predecessor, self.asking) = (Some(predecessor), asking);
        Ok(())
    }
}

/// The place of the program, while it starts.
pub(crate) struct Place {
    predecessor: Option<Predecessor>,
    /// The places of the sockets that are taken from the old program.
    taken: Vec<usize>,
    asked: Option<Asked>,
    /// Whether the next program asks where this one has asked.
    asking_stays: bool,
}

impl Place {
    /// Checks that the place is free, and opens the socket at which this program is asked.
    ///
    /// # Errors
    /// If another process has the place.
    pub(crate) fn prepare(general: &General, estate: &mut Estate) -> io::Result<Self> {
        let predecessor = estate.predecessor.take();
        let pid = predecessor.as_ref().map(|old| old.pid);
        PidFile::check(general.pidfile.as_deref(), pid)?;
        let path = takeover::path(general);
        let asking = estate.asking.take().filter(|(old, _)| Some(old) == path.as_ref());
        let asking_stays = asking.is_some();
        let asked = match (asking, path) {
            (Some((path, socket)), _) => Some(Asked::inherited(path, socket)),
            (None, Some(path)) => {
                let failed = |error| {
                    io::Error::other(format!("takeover_socket {}: {error}", path.display()))
                };
                match Asked::open(path.clone()).map_err(failed) {
                    Ok(asked) => Some(asked),
                    Err(error) if general.takeover_socket == OrBeside::Auto => {
                        tracing::warn!(cause = "takeover", "cannot be taken over: {error}");
                        None
                    }
                    Err(error) => return Err(error),
                }
            }
            (None, None) => None,
        };
        Ok(Self { predecessor, taken: Vec::new(), asked, asking_stays })
    }

    /// Notes which of the sockets have found no use.
    pub(crate) fn note_left(&mut self, left: &[Passed]) {
        for Passed { kind, address, .. } in left.iter().filter(|socket| socket.is_activated) {
            let kind = kind.word();
            tracing::warn!(cause = "start", "the socket {address} ({kind}) of systemd has no use");
        }
        self.taken = self.predecessor.as_ref().map(|old| old.taken(left)).unwrap_or_default();
    }

    /// Takes the place, when the program serves clients: what fails from here on is told, and the
    /// program goes on.
    ///
    /// # Errors
    /// If a core does not work, if the old program has gone, or the file of the process's number of
    /// a program that takes no other's place cannot be written.
    pub(crate) fn take(self, offering: Offering) -> io::Result<PidFile> {
        let state = Arc::clone(&offering.state);
        let general = &state.options().general;
        let has_predecessor = self.predecessor.is_some();
        if let Some(old) = self.predecessor {
            if !state.all_cores_answer(ANSWERING) {
                return Err(io::Error::other("a core does not work: nothing is taken over"));
            }
            let (pid, sockets) = (old.pid, self.taken.len());
            offering.elders.set(old.ready(&self.taken, self.asking_stays)?);
            tracing::info!(cause = "takeover", sockets, "took the place of process {pid}");
        }
        if let Err(error) = listen::adjust(&mut state.handles.lock(), general) {
            tracing::warn!(cause = "start", "{error}");
        }
        let pid_file = match PidFile::write(general.pidfile.as_deref()) {
            Err(error) if has_predecessor => {
                tracing::warn!(cause = "start", "{error}");
                PidFile::default()
            }
            written => written?,
        };
        let start = |mut asked: Asked| asked.own().and_then(|()| offering.start(asked));
        if let Some(Err(error)) = self.asked.map(start) {
            tracing::warn!(cause = "takeover", "cannot be taken over: {error}");
        }
        Ok(pid_file)
    }
}

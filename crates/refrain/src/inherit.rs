//! Sockets that listen already when the program starts: systemd has opened them, or the program
//! that this one takes over. And second handles on those of this program, for the next one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, mem};

use refrain_drive::{Address, Listener};

/// The use of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Clients of PostgreSQL.
    Postgres,
    /// Clients of MySQL and MariaDB.
    Mysql,
    /// Requests for the metrics, and health checks.
    Metrics,
}

impl Kind {
    const WORDS: [(Self, &str); 3] =
        [(Self::Postgres, "listen"), (Self::Mysql, "mysql"), (Self::Metrics, "metrics")];

    /// Whether clients of a database come in.
    pub(crate) fn has_clients(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql)
    }

    /// Returns the name by which a socket of this kind is passed.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// Returns the kind with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(_, word)| *word == name).map(|(kind, _)| kind)
    }
}

/// A socket that listens already.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) kind: Kind,
    /// Whether systemd has opened the socket: then it counts whatever the options say.
    pub(crate) is_activated: bool,
    /// The place in the list of the program that this one takes over.
    pub(crate) place: Option<usize>,
    pub(crate) address: Address,
    pub(crate) listener: Listener,
}

/// The sockets that listen already and are not in use yet.
#[derive(Debug, Default)]
pub(crate) struct Inherited(Vec<Passed>);

impl Inherited {
    pub(crate) fn new(sockets: Vec<Passed>) -> Self {
        Self(sockets)
    }

    /// Adds sockets.
    pub(crate) fn add(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Takes the sockets of this kind that systemd has opened, either those of TCP or of Unix.
    pub(crate) fn activated(&mut self, kind: Kind, is_tcp: bool) -> Vec<Passed> {
        let fits = |socket: &mut Passed| {
            let of_tcp = matches!(socket.address, Address::Tcp(_));
            socket.is_activated && socket.kind == kind && of_tcp == is_tcp
        };
        self.0.extract_if(.., fits).collect()
    }

    /// Takes the socket of this kind that listens at an address.
    pub(crate) fn at(&mut self, kind: Kind, address: &Address) -> Option<Passed> {
        let fits = |socket: &Passed| socket.kind == kind && socket.address == *address;
        let at = self.0.iter().position(fits)?;
        Some(self.0.swap_remove(at))
    }

    /// Returns the sockets that nothing has taken.
    pub(crate) fn left(&self) -> &[Passed] {
        &self.0
    }
}

/// The file of a Unix socket. It is removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct SocketFile(Option<PathBuf>);

impl SocketFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(Some(path))
    }

    /// True if there is no file to be removed.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Leaves the file to another program.
    fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Another process may have removed the file, or its directory.
            let _ = fs::remove_file(path);
        }
    }
}

/// A second handle on a socket at which this program listens, and its file.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) kind: Kind,
    pub(crate) is_activated: bool,
    pub(crate) address: Address,
    pub(crate) fd: OwnedFd,
    pub(crate) file: SocketFile,
}

impl Held {
    /// Makes a handle on the socket of a listener.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub(crate) fn of(kind: Kind, listener: &impl AsFd, address: Address) -> io::Result<Self> {
        let fd = listener.as_fd().try_clone_to_owned()?;
        Ok(Self { kind, is_activated: false, address, fd, file: SocketFile::default() })
    }
}

/// The second handles on all sockets at which this program listens. As long as they are here, the
/// sockets listen.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    held: Mutex<Vec<Held>>,
    /// The file at which this program is asked to hand over.
    asking: Mutex<SocketFile>,
}

impl Handles {
    pub(crate) fn new(held: Vec<Held>) -> Self {
        Self { held: Mutex::new(held), asking: Mutex::default() }
    }

    /// Keeps the file at which this program is asked to hand over.
    pub(crate) fn keep_asking(&self, file: SocketFile) {
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// Returns all handles.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the handles up, and removes the files of Unix sockets.
    pub(crate) fn close(&self) {
        drop(mem::take(&mut *self.lock()));
        self.keep_asking(SocketFile::default());
    }

    /// Gives the handles up. The files of those whose places are in the list stay for the program
    /// that has them from now on, and so does that at which it is asked, if `asking_stays`.
    pub(crate) fn hand_over(&self, places: &[usize], asking_stays: bool) {
        if asking_stays {
            self.asking.lock().unwrap_or_else(PoisonError::into_inner).leave();
        }
        let mut handles = mem::take(&mut *self.lock());
        for place in places {
            if let Some(held) = handles.get_mut(*place) {
                held.file.leave();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(kind: Kind, is_activated: bool) -> Passed {
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(&any, 8).unwrap();
        Passed { kind, is_activated, place: None, address: listener.local().unwrap(), listener }
    }

    #[test]
    fn a_socket_of_systemd_counts_wherever_it_listens() {
        let (activated, bound) = (passed(Kind::Postgres, true), passed(Kind::Postgres, false));
        let (there, elsewhere) = (bound.address.clone(), activated.address.clone());
        let mut inherited = Inherited::new(vec![activated, bound, passed(Kind::Mysql, false)]);
        assert!(inherited.activated(Kind::Postgres, false).is_empty());
        let [one] = &inherited.activated(Kind::Postgres, true)[..] else { panic!() };
        assert_eq!(one.address, elsewhere);
        assert!(inherited.at(Kind::Mysql, &there).is_none());
        assert_eq!(inherited.at(Kind::Postgres, &there).unwrap().address, there);
        assert_eq!(inherited.left().len(), 1);
    }

    #[test]
    fn files_go_unless_another_program_has_them() {
        let dir = std::env::temp_dir().join(format!("refrain-handles-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (gone, kept) = (dir.join("gone"), dir.join("kept"));
        let handles = Handles::default();
        for path in [&gone, &kept] {
            fs::write(path, "").unwrap();
            let socket = passed(Kind::Postgres, false).listener;
            let address = Address::Unix(path.clone());
            let held = Held::of(Kind::Postgres, &socket, address).unwrap();
            handles.lock().push(Held { file: SocketFile::new(path.clone()), ..held });
        }
        handles.hand_over(&[1, 7], true);
        assert!(!gone.exists() && kept.exists() && handles.lock().is_empty());
        fs::remove_dir_all(dir).unwrap();
    }
}

//! Listening for clients.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::unistd::Group;
use refrain_config::General;
use refrain_drive::{Address, Listener, Listening, Socket, Tuning};
use refrain_pool::Parts;
use refrain_pool::shared::Shared;

use crate::inherit::{Held, Inherited, Kind, SocketFile};

/// Time for which binding is tried again while the address is in use.
const IN_USE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two attempts to bind.
const RETRY: Duration = Duration::from_millis(20);

/// The places at which clients of a protocol are accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) kind: Kind,
    pub(crate) addresses: &'a [SocketAddr],
    pub(crate) socket: Option<UnixSocket<'a>>,
    /// Whether a client says something before it hears anything.
    pub(crate) client_speaks_first: bool,
}

/// The path of a Unix socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnixSocket<'a> {
    At(&'a Path),
    /// In this directory, where libpq looks for it, with this port in its name.
    Postgres(&'a Path, Option<u16>),
}

/// The bound sockets and their addresses, with second handles on the sockets. The files of Unix
/// sockets are removed when the handles are dropped.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) sockets: Vec<Listener>,
    pub(crate) addresses: Vec<Address>,
    pub(crate) held: Vec<Held>,
}

/// Binds all addresses of a protocol, but for those at which an inherited socket listens. Where
/// systemd has opened sockets of TCP or of Unix, these take the place of the configured ones.
///
/// The options say which users of the machine may connect to the Unix socket; by default every one
/// may, and the login checks who they are.
///
/// # Errors
/// The error of the first address that cannot be bound, with the address.
pub(crate) fn bind(
    places: Places<'_>,
    general: &General,
    inherited: &mut Inherited,
) -> io::Result<Listeners> {
    let how = listening(general);
    let kind = places.kind;
    let mut bound = Listeners::default();
    let activated = inherited.activated(kind, true);
    let is_configured = activated.is_empty();
    for socket in activated {
        bound.add(socket.listener, socket.address, &places, SocketFile::default(), true)?;
    }
    for address in places.addresses.iter().filter(|_| is_configured) {
        let address = Address::Tcp(*address);
        let listener = match inherited.at(kind, &address) {
            Some(socket) => socket.listener,
            None => retry_in_use(|| Listener::bind_as(&address, &how)).map_err(named(&address))?,
        };
        let local = listener.local().map_err(named(&address))?;
        bound.add(listener, local, &places, SocketFile::default(), false)?;
    }
    let activated = inherited.activated(kind, false);
    let is_configured = activated.is_empty();
    for socket in activated {
        bound.add(socket.listener, socket.address, &places, SocketFile::default(), true)?;
    }
    if let Some(socket) = places.socket.filter(|_| is_configured) {
        let path = socket.path(bound.addresses.first());
        let address = Address::Unix(path.clone());
        let (listener, file) = match inherited.at(kind, &address) {
            Some(socket) => (socket.listener, SocketFile::default()),
            None => {
                let listener = retry_in_use(|| Listener::bind_as(&address, &how));
                let listener = listener.map_err(named(&address))?;
                let file = SocketFile::new(path.clone());
                admit(&path, general).map_err(named(&address))?;
                (listener, file)
            }
        };
        bound.add(listener, address, &places, file, false)?;
    }
    Ok(bound)
}

fn named(address: &Address) -> impl Fn(io::Error) -> io::Error {
    let address = address.clone();
    move |error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}

/// Returns how the options want sockets to listen.
fn listening(general: &General) -> Listening {
    Listening {
        backlog: i32::try_from(general.listen_backlog).unwrap_or(i32::MAX),
        is_shared: general.so_reuseport,
        tuning: tuning(general),
    }
}

impl Listeners {
    fn add(
        &mut self,
        socket: Listener,
        address: Address,
        places: &Places<'_>,
        file: SocketFile,
        is_activated: bool,
    ) -> io::Result<()> {
        // A core that is told of such a client before its first bytes wakes up twice.
        if places.client_speaks_first {
            socket.await_first_bytes().map_err(named(&address))?;
        }
        let held = Held::of(places.kind, &socket, address.clone()).map_err(named(&address))?;
        self.held.push(Held { is_activated, file, ..held });
        self.addresses.push(address);
        self.sockets.push(socket);
        Ok(())
    }
}

/// Returns the options of TCP sockets.
pub(crate) fn tuning(general: &General) -> Tuning {
    Tuning {
        keepalive: general.tcp_keepalive,
        idle: general.tcp_keepidle.0,
        interval: general.tcp_keepintvl.0,
        retries: general.tcp_keepcnt.0,
        user_timeout: general.tcp_user_timeout.0,
        buffer: general.tcp_socket_buffer.0,
    }
}

/// Lets users of the machine connect to a Unix socket.
fn admit(path: &Path, general: &General) -> io::Result<()> {
    if let Some(name) = &general.unix_socket_group {
        let group = Group::from_name(name)?;
        let unknown = || io::Error::other(format!("there is no group {name:?}"));
        chown(path, None, Some(group.ok_or_else(unknown)?.gid.as_raw()))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(general.unix_socket_mode.0))
}

/// Makes sockets that came from elsewhere listen as the options say. The files of Unix sockets are
/// this program's from now on, but for those that a supervisor has made.
///
/// # Errors
/// The first error of the system; the others are tried all the same.
pub(crate) fn adjust(held: &mut [Held], general: &General) -> io::Result<()> {
    let how = listening(general);
    let adjusted = held.iter_mut().filter(|held| held.kind.has_clients()).map(|held| {
        let listener = Listener::inherited(held.fd.try_clone()?)?;
        listener.adjust(&how)?;
        match &held.address {
            Address::Unix(path) if !held.is_activated && held.file.is_none() => {
                held.file = SocketFile::new(path.clone());
                admit(path, general)
            }
            _ => Ok(()),
        }
        .map_err(named(&held.address))
    });
    adjusted.fold(Ok(()), Result::and)
}

/// Calls `bind` again, for up to [`IN_USE_TIMEOUT`], while the address is in use: a program that
/// was killed keeps its sockets until the kernel has ended its io_uring operations.
pub(crate) fn retry_in_use<T>(mut bind: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match bind() {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && start.elapsed() < IN_USE_TIMEOUT =>
            {
                thread::sleep(RETRY);
            }
            bound => return bound,
        }
    }
}

impl UnixSocket<'_> {
    /// Returns the path. If it has a port in it, and none is given, that is the port of the first
    /// TCP address.
    pub(crate) fn path(self, first: Option<&Address>) -> PathBuf {
        match (self, first) {
            (Self::At(path), _) => path.to_owned(),
            (Self::Postgres(dir, Some(port)), _) => dir.join(format!(".s.PGSQL.{port}")),
            (Self::Postgres(dir, None), Some(Address::Tcp(address))) => {
                dir.join(format!(".s.PGSQL.{}", address.port()))
            }
            (Self::Postgres(dir, None), _) => dir.join(".s.PGSQL.6432"),
        }
    }
}

/// Refuses clients that would take the file descriptors kept for others.
#[derive(Debug)]
pub(crate) struct Door<P: Parts> {
    pub(crate) shared: Arc<Shared<P>>,
    /// The first descriptor number that no client may have. The system gives out the lowest free
    /// number, so at this number all descriptors for clients are in use.
    pub(crate) gate: u32,
}

impl<P: Parts> Door<P> {
    /// True if a new client's descriptor is beyond the gate. Counts that client as turned away.
    pub(crate) fn is_shut(&self, socket: &Socket) -> bool {
        let number = socket.as_fd().as_raw_fd();
        let shut = u32::try_from(number).is_ok_and(|number| number >= self.gate);
        if shut {
            self.shared.lobby.turn_away();
        }
        shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_file_goes_with_its_listener() {
        let dir = std::env::temp_dir().join(format!("refrain-listen-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let addresses = &["127.0.0.1:0".parse().unwrap()];
        let own = dir.join("own.sock");
        for socket in [UnixSocket::Postgres(&dir, None), UnixSocket::At(&own)] {
            let (kind, socket) = (Kind::Postgres, Some(socket));
            let places = Places { kind, addresses, socket, client_speaks_first: true };
            let bound = bind(places, &General::default(), &mut Inherited::default()).unwrap();
            let Address::Unix(path) = bound.addresses[1].clone() else { panic!("{bound:?}") };
            assert!(path.exists());
            drop(bound);
            assert!(!path.exists());
        }
        fs::remove_dir(dir).unwrap();
    }
}

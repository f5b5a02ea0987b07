//! Cancel requests that are passed on to other processes that serve the same clients (`[peers]`).
//!
//! Each has a connection and a thread of its own, which ends when the other process closes the
//! connection: it has handled the request then. There are few of both at a time for each process,
//! so that requests for one that does not answer take no more than that, and nothing from the
//! others. Anybody can send such requests, without a login.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use refrain_config::PeerPlace;
use refrain_pg_wire::startup;
use refrain_pool::event::{Level, News, Note};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::log;
use crate::resolve;
use crate::state::State;

/// Requests that are under way to a process at the same time, at most.
const PASSED_ON_MAX: u32 = 64;
/// Time for a request, if `cancel_timeout` has no end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The requests that are passed on.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    state: Weak<State>,
    /// How many are under way to each process, by its number.
    under_way: Mutex<HashMap<u32, u32>>,
}

impl Peers {
    pub(crate) fn new(state: &Arc<State>) -> Arc<Self> {
        Arc::new(Self { state: Arc::downgrade(state), under_way: Mutex::default() })
    }

    /// Passes a cancel request on to the process with this number, if there is one.
    pub(crate) fn pass_on(self: &Arc<Self>, peer: u32, pid: u32, key: &[u8]) {
        let Some(options) = self.state.upgrade().map(|state| state.options()) else { return };
        let Some(peer) = options.peer(peer).cloned() else {
            tracing::debug!(cause = "cancel", "a cancel request is for peer {peer}: there is none");
            return;
        };
        let Some(under_way) = self.begin(peer.id) else {
            return tell(format!("too many are under way to peer {}", peer.id));
        };
        let mut request = Vec::new();
        startup::write_cancel(&mut request, pid, key);
        let until = deadline(options.general.cancel_timeout.unwrap_or(PATIENCE));
        let file = options.general.resolv_conf.clone();
        let pass = move || {
            if let Err(error) = send(&peer.place, file.as_deref(), &request, until) {
                tell(format!("peer {} at {}: {error}", peer.id, peer.host()));
            }
            drop(under_way);
        };
        if let Err(error) = thread::Builder::new().name("cancel".to_owned()).spawn(pass) {
            tell(error.to_string());
        }
    }

    /// Counts a request to a process; `None` if there are too many.
    fn begin(self: &Arc<Self>, peer: u32) -> Option<UnderWay> {
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        if *count >= PASSED_ON_MAX {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(UnderWay { peers: Arc::clone(self), peer })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u32, u32>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is counted until it ends.
#[derive(Debug)]
struct UnderWay {
    peers: Arc<Peers>,
    peer: u32,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(count) = self.peers.counts().get_mut(&self.peer) {
            *count -= 1;
        }
    }
}

/// Logs that a request is lost.
fn tell(detail: String) {
    let (level, cause) = (Level::Warn, News::CancelLost.key());
    let (code, client, peer, server) = (None, None, None, None);
    let (database, user) = (None, None);
    let is_each = false;
    log::note(&Note { level, is_each, cause, code, client, peer, database, user, server, detail });
}

fn deadline(timeout: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + PATIENCE)
}

/// Returns the time that is left.
///
/// # Errors
/// If there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sends a request to a process, and waits until the process has handled it.
fn send(
    place: &PeerPlace,
    resolv_conf: Option<&Path>,
    request: &[u8],
    until: Instant,
) -> io::Result<()> {
    match place {
        PeerPlace::Unix(path) => say(connect_unix(path, until)?, request, until),
        PeerPlace::Tcp(host, port) => {
            let addresses = resolve::look_up_by(resolv_conf, host).map_err(io::Error::other)?;
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in addresses {
                let address = SocketAddr::new(address, *port);
                match TcpStream::connect_timeout(&address, left(until)?) {
                    Ok(stream) => return say(stream, request, until),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

/// Connects to a Unix socket. If its queue is full, that waits as long as sending may.
fn connect_unix(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(left(until)?))?;
    let address = SocketAddrUnix::new(path)?;
    retry_on_intr(|| connect(&socket, &address))?;
    Ok(socket.into())
}

fn say(mut stream: impl Read + Write + AsFd, request: &[u8], until: Instant) -> io::Result<()> {
    set_socket_timeout(&stream, Timeout::Send, Some(left(until)?))?;
    stream.write_all(request)?;
    set_socket_timeout(&stream, Timeout::Recv, Some(left(until)?))?;
    // Nothing comes but the end.
    let mut end = [0];
    match stream.read(&mut end) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        read => read.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_process_that_does_not_answer_takes_no_place_of_another() {
        let peers = Arc::<Peers>::default();
        let mut silent: Vec<_> = (0..PASSED_ON_MAX).map(|_| peers.begin(1).unwrap()).collect();
        assert!(peers.begin(1).is_none());
        assert!(peers.begin(2).is_some());
        silent.pop();
        assert!(peers.begin(1).is_some());
    }

    #[test]
    fn a_request_ends_at_a_socket_whose_queue_is_full() {
        let dir = std::env::temp_dir().join(format!("refrain-peers-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let place = PeerPlace::Unix(path);
        for _ in 0..3 {
            let until = Instant::now() + Duration::from_millis(50);
            assert!(send(&place, None, b"request", until).is_err());
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn no_address_is_tried_when_the_time_is_over() {
        let place = PeerPlace::Tcp("127.0.0.1".to_owned(), 1);
        let error = send(&place, None, b"request", Instant::now()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

//! Cancel requests that are passed on to other processes that serve the same clients (`[peers]`).
//!
//! Each has a connection and a thread of its own, which ends when the other process closes the
//! connection: it has handled the request then. There are few of both at a time, so that requests
//! for a process that does not answer take no more than that.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use refrain_config::{Peer, PeerPlace};
use refrain_pg_wire::startup;

use crate::resolve;
use crate::state::State;

/// Requests that are under way at the same time, at most.
const PASSED_ON_MAX: u32 = 64;
/// Time for a request, if `cancel_timeout` has no end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The requests that are passed on.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    state: Weak<State>,
    under_way: AtomicU32,
}

impl Peers {
    pub(crate) fn new(state: &Arc<State>) -> Arc<Self> {
        Arc::new(Self { state: Arc::downgrade(state), under_way: AtomicU32::new(0) })
    }

    /// Passes a cancel request on to the process with this number, if there is one.
    pub(crate) fn pass_on(self: &Arc<Self>, peer: u32, pid: u32, key: &[u8]) {
        let Some(options) = self.state.upgrade().map(|state| state.options()) else { return };
        let Some(peer) = options.peer(peer).cloned() else {
            tracing::debug!(cause = "cancel", "a cancel request is for peer {peer}: there is none");
            return;
        };
        if self.under_way.fetch_add(1, Relaxed) >= PASSED_ON_MAX {
            self.under_way.fetch_sub(1, Relaxed);
            tracing::warn!(cause = "cancel", "too many cancel requests are under way to peers");
            return;
        }
        let mut request = Vec::new();
        startup::write_cancel(&mut request, pid, key);
        let (timeout, peers) = (options.general.cancel_timeout, Arc::clone(self));
        let pass = move || {
            if let Err(error) = send(&peer, &request, timeout.unwrap_or(PATIENCE)) {
                let (id, host) = (peer.id, peer.host());
                tracing::warn!(cause = "cancel", "peer {id} at {host} got no request: {error}");
            }
            peers.under_way.fetch_sub(1, Relaxed);
        };
        if let Err(error) = thread::Builder::new().name("cancel".to_owned()).spawn(pass) {
            self.under_way.fetch_sub(1, Relaxed);
            tracing::warn!(cause = "cancel", "a cancel request is not passed on: {error}");
        }
    }
}

/// Sends a request to a process, and waits until the process has handled it.
fn send(peer: &Peer, request: &[u8], timeout: Duration) -> io::Result<()> {
    match &peer.place {
        PeerPlace::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            say(stream, request)
        }
        PeerPlace::Tcp(host, port) => {
            let addresses = resolve::look_up(host).map_err(io::Error::other)?;
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in addresses {
                match TcpStream::connect_timeout(&SocketAddr::new(address, *port), timeout) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(timeout))?;
                        stream.set_write_timeout(Some(timeout))?;
                        return say(stream, request);
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

fn say(mut stream: impl Read + Write, request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    // Nothing comes but the end.
    let mut end = [0];
    match stream.read(&mut end) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        read => read.map(|_| ()),
    }
}

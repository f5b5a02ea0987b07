//! systemd, or another supervisor with its protocol: the sockets that it has opened for this
//! program (`LISTEN_FDS`), and the news that it is told (`NOTIFY_SOCKET`).
//!
//! The news go out from threads that serve no client, and an error in telling them changes nothing:
//! the supervisor may have gone.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{env, io, process};

use refrain_drive::Listener;
use rustix::time::{ClockId, clock_gettime};

use crate::inherit::{Inherited, Kind, Passed};

/// Reads the sockets that systemd has passed. Names that say nothing (`refrain.socket`, or none)
/// stand for clients of PostgreSQL.
///
/// # Errors
/// If the environment or a socket is not as systemd says.
pub(crate) fn passed() -> io::Result<Inherited> {
    let own = process::id().to_string();
    if env::var("LISTEN_PID").ok() != Some(own) {
        return Ok(Inherited::default());
    }
    let bad = |what: &str| io::Error::other(format!("LISTEN_FDS: {what}"));
    let count = env::var("LISTEN_FDS").unwrap_or_default();
    let count = count.parse().map_err(|_| bad("expected a number"))?;
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').chain(std::iter::repeat(""));
    let descriptors = refrain_drive::passed_descriptors(count)?;
    let passed = |(place, (fd, name)): (usize, (_, &str))| {
        let no_listener =
            |error| bad(&format!("descriptor {} ({name}): {error}", FIRST_DESCRIPTOR + place));
        let listener = Listener::inherited(fd).map_err(no_listener)?;
        let address = listener.local().map_err(no_listener)?;
        let kind = Kind::named(name).unwrap_or(Kind::Postgres);
        Ok(Passed { kind, is_activated: true, place: None, address, listener })
    };
    let passed = descriptors.into_iter().zip(names).enumerate().map(passed);
    Ok(Inherited::new(passed.collect::<io::Result<_>>()?))
}

/// Time after which news are dropped. The kernel keeps few of them for a supervisor that does not
/// read, and the program has to end nevertheless.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of the first descriptor that systemd passes.
const FIRST_DESCRIPTOR: usize = 3;

/// The supervisor that started the program.
#[derive(Debug, Default)]
pub(crate) struct Supervising {
    /// The supervisor's address, as `NOTIFY_SOCKET` has it.
    name: Option<String>,
    /// Time within which the supervisor wants a sign of life.
    watchdog: Option<Duration>,
    /// True if another program is in the place of this one.
    is_over: AtomicBool,
}

impl Supervising {
    /// Reads the environment.
    pub(crate) fn from_environment() -> Self {
        let for_another =
            env::var("WATCHDOG_PID").is_ok_and(|pid| pid != process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| !for_another);
        Self::read(env::var("NOTIFY_SOCKET").ok(), watchdog.as_deref())
    }

    /// Makes the supervisor of an address and of its watchdog's period in microseconds.
    pub(crate) fn read(name: Option<String>, watchdog_us: Option<&str>) -> Self {
        let us = watchdog_us.and_then(|us| us.parse().ok()).filter(|us| *us > 0);
        let watchdog = us.map(Duration::from_micros);
        Self { name: name.filter(|name| !name.is_empty()), watchdog, is_over: false.into() }
    }

    /// Returns the address and the time of the watchdog in microseconds, for the next program.
    pub(crate) fn shown(&self) -> Option<(&str, u128)> {
        let us = self.watchdog.map_or(0, |watchdog| watchdog.as_micros());
        self.name.as_deref().map(|name| (name, us))
    }

    /// True if there is a supervisor.
    pub(crate) fn is_there(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the time within which a sign of life is wanted, if it is.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.name.is_some())
    }

    /// Tells that this process serves clients.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&[&format!("MAINPID={}", process::id()), "READY=1", &shown(status)]);
    }

    /// Tells that the configuration is being read again. [`Self::ready`] ends that.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let us = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&["RELOADING=1", &format!("MONOTONIC_USEC={us}")]);
    }

    /// Tells that the program ends.
    pub(crate) fn stopping(&self, status: &str) {
        self.tell(&["STOPPING=1", &shown(status)]);
    }

    /// Tells that all cores work.
    pub(crate) fn alive(&self) {
        self.tell(&["WATCHDOG=1"]);
    }

    /// Tells that another process is in the place of this one, which says nothing more.
    pub(crate) fn replaced(&self, pid: i32) {
        self.tell(&[&format!("MAINPID={pid}")]);
        self.is_over.store(true, Relaxed);
    }

    fn tell(&self, lines: &[&str]) {
        if self.is_over.load(Relaxed) {
            return;
        }
        let Some(name) = self.name.as_deref() else { return };
        if let Err(error) = send(name, &lines.join("\n")) {
            tracing::debug!(cause = "systemd", "{name}: {error}");
        }
    }
}

/// Returns the line of a status, which systemd shows. It must be a line.
fn shown(status: &str) -> String {
    format!("STATUS={}", status.lines().next().unwrap_or_default())
}

fn send(name: &str, text: &str) -> io::Result<()> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    socket.send_to_addr(text.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_is_told_at_a_path_and_at_an_abstract_name() {
        let path = env::temp_dir().join(format!("refrain-notify-{}", process::id()));
        let path = path.to_str().unwrap();
        for name in [path.to_owned(), format!("@{path}")] {
            let there = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name).unwrap(),
                None => SocketAddr::from_pathname(&name).unwrap(),
            };
            let socket = UnixDatagram::bind_addr(&there).unwrap();
            let supervising = Supervising::read(Some(name), Some("3000000"));
            let told = || {
                let mut bytes = [0; 500];
                let count = socket.recv(&mut bytes).unwrap();
                String::from_utf8(bytes[..count].to_vec()).unwrap()
            };
            supervising.ready("serving\nwell");
            assert_eq!(told(), format!("MAINPID={}\nREADY=1\nSTATUS=serving", process::id()));
            supervising.reloading();
            let (start, us) = (told(), "RELOADING=1\nMONOTONIC_USEC=");
            assert!(start.strip_prefix(us).unwrap().parse::<u64>().unwrap() > 0, "{start}");
            assert_eq!(supervising.watchdog(), Some(Duration::from_secs(3)));
            supervising.replaced(7);
            supervising.stopping("the end");
            assert_eq!(told(), "MAINPID=7");
            socket.set_nonblocking(true).unwrap();
            assert!(socket.recv(&mut [0; 9]).is_err(), "what is replaced says nothing more");
        }
        std::fs::remove_file(path).unwrap();
        Supervising::read(None, Some("5")).alive();
        assert_eq!(Supervising::read(None, Some("5")).watchdog(), None);
    }
}

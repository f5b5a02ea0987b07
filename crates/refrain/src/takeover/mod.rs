//! A new program takes the place of one that runs: it gets the sockets at which the old one
//! listens, and serves; the old one then lets its clients finish (`docs/restart.md`).
//!
//! ```text
//! new ── takeover 1 ─────────────────────────────► old
//!     ◄─ socket listen bound (a descriptor), … ───
//!     ◄─ asking /run/refrain.takeover (one more) ─
//!     ◄─ offered ─────────────────────────────────
//!     ── ready asking 0 1 ───────────────────────►     old stops to accept, and drains
//!     ◄─ yours ───────────────────────────────────
//!     ── cancel 4711 8899aabb ───────────────────►     as long as old has clients
//! ```

mod wire;
mod heir;
mod offer;

use std::env;
use std::path::{Path, PathBuf};

use refrain_config::{General, OrBeside};
use refrain_drive::Address;

use crate::listen::UnixSocket;

pub(crate) use heir::{Elders, Offer, Predecessor, ask};
pub(crate) use offer::{Asked, Offering};

/// Returns the path of the socket at which a program with these options is asked.
pub(crate) fn path(general: &General) -> Option<PathBuf> {
    match &general.takeover_socket {
        OrBeside::Off => None,
        OrBeside::At(path) => Some(path.clone()),
        OrBeside::Auto => beside(general),
    }
}

fn beside(general: &General) -> Option<PathBuf> {
    let General { pidfile, unix_socket_dir, unix_socket_port, mysql_socket, listen, .. } = general;
    let first = listen.first().copied().map(Address::Tcp);
    let of_dir = |dir: &PathBuf| {
        UnixSocket::Postgres(dir, unix_socket_port.map(|port| port.0)).path(first.as_ref())
    };
    let by_unix = || unix_socket_dir.as_ref().map(of_dir);
    let file = pidfile.clone().or_else(by_unix).or_else(|| mysql_socket.clone());
    let behind = |file: PathBuf| {
        let mut path = file.into_os_string();
        path.push(".takeover");
        PathBuf::from(path)
    };
    file.map(behind).or_else(|| {
        let directories = env::var("RUNTIME_DIRECTORY").ok()?;
        let first = directories.split(':').next().filter(|first| !first.is_empty())?;
        Some(Path::new(first).join("refrain.takeover"))
    })
}

#[cfg(test)]
mod tests {
    use refrain_config::Options;

    use super::*;

    #[test]
    fn the_path_follows_from_other_options() {
        let path = |options: &str| {
            let url = format!("postgres://h/d?{options}");
            let found = path(&Options::from_url(&url).unwrap().general);
            found.map(|path| path.display().to_string())
        };
        let both = path("pidfile=/run/r.pid&unix_socket_dir=/run/pg");
        assert_eq!(both.as_deref(), Some("/run/r.pid.takeover"));
        let unix = path("unix_socket_dir=/run/pg");
        assert_eq!(unix.as_deref(), Some("/run/pg/.s.PGSQL.6432.takeover"));
        assert_eq!(path("takeover_socket=/t&pidfile=/p").as_deref(), Some("/t"));
        assert_eq!(path("takeover_socket=off&pidfile=/p"), None);
    }
}

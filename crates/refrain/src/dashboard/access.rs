//! Access to the dashboard.
//!
//! At an address of this machine alone, everybody on this machine may, as they may see the metrics.
//! A page of another site in somebody's browser must not: its requests can get here under a name
//! that its owner lets lead to this machine, so the name in `Host` has to be one of this machine's.
//! At any other address, a user of the console logs in with each request (RFC 7617), and who sends
//! a wrong password has to wait ([`Attempts`]).

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use refrain_pool::event::{Level, News, Note};

use super::attempts::Attempts;
use crate::http::PageRequest;
use crate::log;
use crate::pg::PgState;

pub(super) const WRONG_HOST: &str =
    "this address is served to localhost alone: no login protects it (docs/dashboard.md)\n";
pub(super) const NO_LOGIN: &str =
    "log in as a user of admin_users or stats_users, with a password (docs/dashboard.md)\n";

pub(super) const TOO_OFTEN: &str =
    "wrong logins have come from this address: wait, and try again (docs/dashboard.md)\n";

/// Most characters of a user's name in the log.
const NAME_MAX: usize = 64;

/// Why a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The name in `Host` is none of this machine's.
    Host,
    /// There is no login, or it is not right.
    Login,
    /// There were wrong logins from the same address, which has to wait for this long.
    Wait(Duration),
}

/// Checks a request at an address.
///
/// # Errors
/// Why the request is denied.
pub(super) fn check(
    asked: &PageRequest,
    address: SocketAddr,
    pg: &PgState,
    attempts: &RefCell<Attempts>,
) -> Result<(), Denied> {
    if address.ip().is_loopback() {
        let is_own = asked.host.as_deref().is_some_and(|host| is_own(host, address.ip()));
        return is_own.then_some(()).ok_or(Denied::Host);
    }
    // A browser asks without a login first.
    let login = asked.authorization.as_deref().and_then(login);
    let (user, password) = login.ok_or(Denied::Login)?;
    if let Some(left) = attempts.borrow().wait(asked.peer, Instant::now()) {
        return Err(Denied::Wait(left));
    }
    if refrain_pg::may_look(&pg.cores.shared, &user, &password) {
        return Ok(());
    }
    let pause = attempts.borrow_mut().note(asked.peer, Instant::now());
    note_wrong(&user, asked.peer, pause);
    Err(Denied::Login)
}

/// Logs a wrong login. The user is one that somebody names, so it is no reason for a line of its
/// own.
fn note_wrong(user: &str, peer: IpAddr, pause: Duration) {
    let user: String = user.chars().take(NAME_MAX).collect();
    log::note(&Note {
        level: Level::Warn,
        is_each: false,
        cause: News::DashboardLogin.key(),
        code: None,
        client: None,
        peer: Some(peer.to_string()),
        database: None,
        user: None,
        server: None,
        detail: format!("user {user:?} from {peer}, which has to wait {} s", pause.as_secs()),
    });
}

/// Whether the host of a request is this machine, whatever the port: another program may forward
/// one of its ports.
fn is_own(host: &str, address: IpAddr) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_known = |known: IpAddr| name.parse() == Ok(known);
    name.eq_ignore_ascii_case("localhost")
        || [[127, 0, 0, 1].into(), IpAddr::V6(1.into()), address].into_iter().any(is_known)
}

/// Reads user and password.
fn login(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(decoded).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        let address = IpAddr::from([127, 0, 0, 9]);
        for host in ["localhost", "LocalHost:9432", "127.0.0.1:1", "[::1]:9432", "127.0.0.9"] {
            assert!(is_own(host, address), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9432",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1",
            "[::2]",
            "127.0.0.2",
            "0.0.0.0",
            "::1",
        ] {
            assert!(!is_own(host, address), "{host}");
        }
    }

    #[test]
    fn a_login_is_a_user_and_a_password() {
        let header =
            |scheme: &str, text: &str| format!("{scheme} {}", BASE64_STANDARD.encode(text));
        let is = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(login(&header("Basic", "ann:a:b")), is("ann", "a:b"));
        assert_eq!(login(&header("basic", ":")), is("", ""));
        assert_eq!(login(&header("Basic", "ann")), None);
        assert_eq!(login(&header("Bearer", "ann:x")), None);
        assert_eq!(login("Basic"), None);
        assert_eq!(login("Basic !"), None);
    }
}

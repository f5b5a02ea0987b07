//! The dashboard: a page for people, and the JSON that it is made of.
//!
//! The page is three files that are part of the program, and loads nothing from elsewhere. It asks
//! for listings of the console as JSON ([`json`]), once in a few seconds and only while somebody
//! looks at it: without a request, this module does nothing. All that it serves is read-only.
//!
//! [`access`] says who may see it, and `docs/dashboard.md` describes the JSON.

mod query;
mod json;
mod attempts;
mod access;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use crate::console::{Call, Glance, Sight, Table};
use crate::dashboard::access::Denied;
use crate::dashboard::attempts::Attempts;
use crate::dashboard::query::Query;
use crate::http::{
    BAD, FORBIDDEN, LOGIN_NEEDED, OK, PageRequest, Status, TOO_MANY, UNAVAILABLE, UNKNOWN, Written,
    compressed,
};
use crate::pg::PgState;
use crate::state::State;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The policy that the browser gets: nothing from elsewhere, and nothing within the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Time that a request waits for the console.
const WAIT: Duration = Duration::from_secs(2);
/// Length from which an answer is compressed, in bytes.
const COMPRESSED_MIN: usize = 1024;

/// The parts of the program that the dashboard shows.
pub(crate) struct Dashboard {
    state: Arc<State>,
    pg: PgState,
    console: Sender<Call>,
    /// The address at which it is served.
    address: SocketAddr,
    /// The addresses that wrong logins have come from.
    attempts: RefCell<Attempts>,
}

impl Dashboard {
    /// Makes the dashboard that is served at an address.
    pub(crate) fn at(
        address: SocketAddr,
        state: Arc<State>,
        pg: PgState,
        console: Sender<Call>,
    ) -> Self {
        Self { state, pg, console, address, attempts: RefCell::default() }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, asked: &PageRequest) -> Written {
        if !self.state.options().general.dashboard {
            return Written::line(UNKNOWN, "the dashboard is off; try /metrics\n");
        }
        match access::check(asked, self.address, &self.pg, &self.attempts) {
            Ok(()) => self.part(asked),
            Err(Denied::Host) => Written::line(FORBIDDEN, access::WRONG_HOST),
            Err(Denied::Login) => Written::line(LOGIN_NEEDED, access::NO_LOGIN),
            Err(Denied::Wait(left)) => {
                let mut told = Written::line(TOO_MANY, access::TOO_OFTEN);
                told.headers += &format!("Retry-After: {}\r\n", left.as_secs() + 1);
                told
            }
        }
    }

    fn part(&self, asked: &PageRequest) -> Written {
        match asked.path {
            "/" => page(asked, "text/html", PAGE.as_bytes()),
            "/dashboard.css" => page(asked, "text/css", STYLE.as_bytes()),
            "/dashboard.js" => page(asked, "text/javascript", SCRIPT.as_bytes()),
            "/api/1/show" => self.show(asked),
            _ => self.explain(asked),
        }
    }

    fn show(&self, asked: &PageRequest) -> Written {
        let query = match Query::read(&asked.query) {
            Ok(query) => query,
            Err(why) => return refused(asked, BAD, &why),
        };
        let names = query.choices.iter().map(|choice| choice.listing).collect();
        match self.look(Sight::Listings(names)) {
            Some(tables) => reply(asked, OK, &json::listings(&query.choices, &tables)),
            None => refused(asked, UNAVAILABLE, TOO_LATE),
        }
    }

    fn explain(&self, asked: &PageRequest) -> Written {
        let sight = match query::explained(&asked.query) {
            Ok(sight) => sight,
            Err(why) => return refused(asked, BAD, &why),
        };
        match self.look(sight) {
            Some(tables) => reply(asked, OK, &json::reasons(&tables)),
            None => refused(asked, UNAVAILABLE, TOO_LATE),
        }
    }

    /// Asks the console. `None` if it does not answer in time.
    fn look(&self, at: Sight) -> Option<Vec<Table>> {
        let (answer, answered) = mpsc::channel();
        // The caller may have stopped waiting.
        let answer = Box::new(move |tables| drop(answer.send(tables)));
        let until = Instant::now() + WAIT;
        self.console.send(Call::Dashboard(Glance { at, until, answer })).ok()?;
        answered.recv_timeout(WAIT).ok()
    }
}

const TOO_LATE: &str = "the console did not answer in time";

/// Makes the answer with a JSON text.
fn reply(asked: &PageRequest, status: Status, text: &str) -> Written {
    Written { status, ..page(asked, "application/json", text.as_bytes()) }
}

/// Makes the answer to a request that is refused, with the reason.
fn refused(asked: &PageRequest, status: Status, why: &str) -> Written {
    reply(asked, status, &json::error(why))
}

fn page(asked: &PageRequest, kind: &str, text: &[u8]) -> Written {
    let is_compressed = asked.gzip && text.len() >= COMPRESSED_MIN;
    let encoding = if is_compressed { "Content-Encoding: gzip\r\n" } else { "" };
    let headers = format!(
        "Content-Type: {kind}; charset=utf-8\r\n{encoding}Vary: Accept-Encoding\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n"
    );
    let body = if is_compressed { compressed(text).into() } else { text.into() };
    Written { status: OK, headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy forbids scripts and styles within the page, and `innerHTML` would read markup
    /// from what is shown.
    #[test]
    fn nothing_in_the_page_needs_more_than_the_policy_allows() {
        for words in ["style=", "<style", "onclick", "javascript:", "http://", "https://"] {
            assert!(!PAGE.contains(words), "{words}");
        }
        assert_eq!(PAGE.matches("<script").count(), 1);
        for words in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "cookie"] {
            assert!(!SCRIPT.contains(words), "{words}");
        }
        assert!(!STYLE.contains("@import") && !STYLE.contains("http"));
    }
}

//! One exchange: reads the request and makes the answer. No socket and no clock.
//!
//! A connection serves one exchange: callers ask once in a few seconds, and no caller can hold a
//! connection that is closed after each answer. A body of a request is ignored.

use std::net::IpAddr;
use std::sync::Arc;

use httparse::{EMPTY_HEADER, Error};

use super::form::Form;
use super::page_request::PageRequest;

/// Maximum length of a request up to the end of its headers, in bytes.
const HEAD_MAX: usize = 8 << 10;
/// Maximum number of headers.
const HEADERS_MAX: usize = 64;

/// The page that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The metrics, in this form.
    Metrics(Form),
    /// Whether the program accepts clients.
    Health,
    /// Whether the program accepts clients and each database has a host that may serve.
    Readiness,
    /// A part of the dashboard.
    Dashboard(Arc<PageRequest>),
}

/// The state of an exchange.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The request of a caller at this address is incomplete.
    Asking(IpAddr, Vec<u8>),
    /// The request is complete and waits for its answer.
    Asked { wanted: Wanted, with_body: bool },
    /// The answer is being sent.
    Answering(Answer),
    /// The answer has been sent.
    Over,
}

/// An answer, and how many bytes of it have been sent. Several answers may share one body.
#[derive(Debug)]
pub(super) struct Answer {
    head: Vec<u8>,
    body: Arc<[u8]>,
    sent: usize,
}

impl Exchange {
    pub(super) fn new(peer: IpAddr) -> Self {
        Self::Asking(peer, Vec::new())
    }

    /// Adds received bytes to the request.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if let Self::Asking(peer, head) = self {
            head.extend_from_slice(bytes);
            if let Some(next) = read(head, *peer) {
                *self = next;
            }
        }
    }

    /// Answers the request.
    pub(super) fn answer(&mut self, status: Status, headers: &str, body: &Arc<[u8]>) {
        if let Self::Asked { with_body, .. } = *self {
            *self = Self::Answering(Answer::new(status, headers, body, with_body));
        }
    }

    /// Returns the rest of the answer. It is empty before the answer is there and after it was
    /// sent.
    pub(super) fn unsent(&self) -> &[u8] {
        match self {
            Self::Answering(answer) => answer.unsent(),
            _ => &[],
        }
    }

    /// Notes that `count` more bytes have been sent.
    pub(super) fn sent(&mut self, count: usize) {
        if let Self::Answering(answer) = self {
            answer.sent += count;
            if answer.unsent().is_empty() {
                *self = Self::Over;
            }
        }
    }

    /// True if `text` is the body of an answer that is being sent.
    pub(super) fn has(&self, text: &Arc<[u8]>) -> bool {
        matches!(self, Self::Answering(answer) if Arc::ptr_eq(&answer.body, text))
    }
}

impl Answer {
    fn new(status: Status, headers: &str, body: &Arc<[u8]>, with_body: bool) -> Self {
        let Status { line, more } = status;
        let head = format!(
            "HTTP/1.1 {line}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n{more}\r\n",
            body.len()
        );
        let body = if with_body { Arc::clone(body) } else { Arc::default() };
        Self { head: head.into_bytes(), body, sent: 0 }
    }

    fn unsent(&self) -> &[u8] {
        match self.head.get(self.sent..) {
            Some(head) if !head.is_empty() => head,
            _ => self.body.get(self.sent - self.head.len()..).unwrap_or_default(),
        }
    }
}

/// The status line of an answer, and headers that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    line: &'static str,
    more: &'static str,
}

const fn status(line: &'static str) -> Status {
    Status { line, more: "" }
}

pub(crate) const OK: Status = status("200 OK");
pub(crate) const UNAVAILABLE: Status = status("503 Service Unavailable");
pub(crate) const BAD: Status = status("400 Bad Request");
pub(crate) const LOGIN_NEEDED: Status = Status {
    line: "401 Unauthorized",
    more: "WWW-Authenticate: Basic realm=\"Refrain\", charset=\"UTF-8\"\r\n",
};
pub(crate) const FORBIDDEN: Status = status("403 Forbidden");
pub(crate) const UNKNOWN: Status = status("404 Not Found");
pub(crate) const TOO_MANY: Status = status("429 Too Many Requests");
const NOT_ALLOWED: Status = Status { line: "405 Method Not Allowed", more: "Allow: GET, HEAD\r\n" };
const TOO_LONG: Status = status("431 Request Header Fields Too Large");

/// Reads the request: returns what follows from it, or `None` while it is incomplete.
fn read(head: &[u8], peer: IpAddr) -> Option<Exchange> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let refused = |status, why: &str, with_body| {
        let body = Arc::from(why.as_bytes());
        Some(Exchange::Answering(Answer::new(status, &Form::default().headers(), &body, with_body)))
    };
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MAX => {}
        Ok(httparse::Status::Partial) if head.len() <= HEAD_MAX => return None,
        Ok(_) | Err(Error::TooManyHeaders) => {
            return refused(TOO_LONG, "too many headers, or too long\n", true);
        }
        Err(_) => return refused(BAD, "this is no request\n", true),
    }
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return refused(NOT_ALLOWED, "only GET and HEAD\n", true),
    };
    let target = request.path.unwrap_or_default();
    let wanted = match target.split('?').next() {
        Some("/metrics") => Wanted::Metrics(Form::of(request.headers)),
        Some("/healthz") => Wanted::Health,
        Some("/readyz") => Wanted::Readiness,
        _ => match PageRequest::of(target, request.headers, peer) {
            Some(asked) => Wanted::Dashboard(Arc::new(asked)),
            None => return refused(UNKNOWN, "try /, /metrics, /healthz or /readyz\n", with_body),
        },
    };
    Some(Exchange::Asked { wanted, with_body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> Exchange {
        let mut exchange = Exchange::new([127, 0, 0, 1].into());
        exchange.take(request.as_bytes());
        exchange
    }

    /// Returns the whole answer, taken one byte at a time.
    fn answer(mut exchange: Exchange) -> String {
        let mut sent = Vec::new();
        while let Some(byte) = exchange.unsent().first() {
            sent.push(*byte);
            exchange.sent(1);
        }
        assert!(matches!(exchange, Exchange::Over), "{exchange:?}");
        String::from_utf8(sent).unwrap()
    }

    #[test]
    fn a_request_is_the_same_however_it_comes() {
        let request = "GET /metrics?x=y HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        for cut in 1..request.len() {
            let mut exchange = asked(&request[..cut]);
            assert!(matches!(exchange, Exchange::Asking(..)), "{cut}: {exchange:?}");
            exchange.take(&request.as_bytes()[cut..]);
            assert!(
                matches!(exchange, Exchange::Asked { wanted: Wanted::Metrics(_), with_body: true }),
                "{cut}: {exchange:?}"
            );
        }
    }

    #[test]
    fn an_answer_has_a_head_and_a_body() {
        let mut exchange = asked("GET /healthz HTTP/1.1\r\n\r\n");
        exchange.answer(OK, &Form::default().headers(), &Arc::from(*b"ok\n"));
        assert_eq!(
            answer(exchange),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Vary: Accept, Accept-Encoding\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
        );
        let mut exchange = asked("HEAD /healthz HTTP/1.1\r\n\r\n");
        exchange.answer(UNAVAILABLE, "", &Arc::from(*b"draining\n"));
        let answer = answer(exchange);
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("\r\n\r\n"), "{answer:?}");
        assert!(answer.contains("\r\nContent-Length: 9\r\n"), "{answer:?}");
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let begins = |request: &str, with: &str| {
            let answer = answer(asked(request));
            assert!(answer.starts_with(&format!("HTTP/1.1 {with} ")), "{request:?}: {answer:?}");
        };
        begins("GET /x HTTP/1.1\r\n\r\n", "404");
        begins("POST / HTTP/1.1\r\n\r\n", "405");
        begins("PUT /metrics HTTP/1.1\r\n\r\n", "405");
        begins("\u{16}\u{3}\u{1}", "400");
        begins("GET /metrics HTTP/9\r\n\r\n", "400");
        begins(&format!("GET /{}", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(HEADERS_MAX + 1)), "431");
    }
}

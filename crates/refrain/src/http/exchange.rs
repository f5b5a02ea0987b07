//! One exchange: the request as it comes, the answer as it goes. No socket and no clock.
//!
//! A connection is good for one exchange: what is asked here is asked every few seconds, and a connection that is
//! closed behind each answer cannot be kept by anybody. A body that comes with a request is not
//! looked at.

use std::sync::Arc;

use httparse::{EMPTY_HEADER, Error};

/// Bytes that a request may have up to the end of its headers.
const HEAD_MAX: usize = 8 << 10;
/// Headers that it may have.
const HEADERS_MAX: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The figures of now.
    Metrics,
    /// Whether the program is well.
    Health,
}

/// How far an exchange has come.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The request is not all there yet.
    Asking(Vec<u8>),
    /// It is, and its answer has to be found.
    Asked { wanted: Wanted, with_body: bool },
    /// The answer is being sent.
    Answering(Answer),
    /// All is said.
    Over,
}

/// An answer, and how much of it has been sent. Its body may be that of other answers as well.
#[derive(Debug)]
pub(super) struct Answer {
    head: Vec<u8>,
    body: Arc<str>,
    sent: usize,
}

impl Exchange {
    pub(super) fn new() -> Self {
        Self::Asking(Vec::new())
    }

    /// Takes in what has come.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if let Self::Asking(head) = self {
            head.extend_from_slice(bytes);
            if let Some(next) = read(head) {
                *self = next;
            }
        }
    }

    /// Answers what was asked.
    pub(super) fn answer(&mut self, status: Status, body: &Arc<str>) {
        if let Self::Asked { with_body, .. } = *self {
            *self = Self::Answering(Answer::new(status, body, with_body));
        }
    }

    /// What is to be sent next. Nothing where there is no answer yet, or no more of it.
    pub(super) fn unsent(&self) -> &[u8] {
        match self {
            Self::Answering(answer) => answer.unsent(),
            _ => &[],
        }
    }

    /// Notes that so many bytes more have been sent.
    pub(super) fn sent(&mut self, count: usize) {
        if let Self::Answering(answer) = self {
            answer.sent += count;
            if answer.unsent().is_empty() {
                *self = Self::Over;
            }
        }
    }

    /// Whether the answer, or what is left of it, is this text.
    pub(super) fn has(&self, text: &Arc<str>) -> bool {
        matches!(self, Self::Answering(answer) if Arc::ptr_eq(&answer.body, text))
    }
}

impl Answer {
    fn new(status: Status, body: &Arc<str>, with_body: bool) -> Self {
        let Status { line, more } = status;
        let head = format!(
            "HTTP/1.1 {line}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n{more}\r\n",
            body.len()
        );
        let body = if with_body { Arc::clone(body) } else { Arc::from("") };
        Self { head: head.into_bytes(), body, sent: 0 }
    }

    fn unsent(&self) -> &[u8] {
        match self.head.get(self.sent..) {
            Some(head) if !head.is_empty() => head,
            _ => self.body.as_bytes().get(self.sent - self.head.len()..).unwrap_or_default(),
        }
    }
}

/// How a request ends: the line that says so, and headers that go with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    line: &'static str,
    more: &'static str,
}

const fn status(line: &'static str) -> Status {
    Status { line, more: "" }
}

pub(super) const OK: Status = status("200 OK");
pub(super) const UNAVAILABLE: Status = status("503 Service Unavailable");
const BAD: Status = status("400 Bad Request");
const UNKNOWN: Status = status("404 Not Found");
const NOT_ALLOWED: Status = Status { line: "405 Method Not Allowed", more: "Allow: GET, HEAD\r\n" };
const TOO_LONG: Status = status("431 Request Header Fields Too Large");

/// What becomes of a request of which so much has come, if that can be said already.
fn read(head: &[u8]) -> Option<Exchange> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let refused = |status, why: &str, with_body| {
        Some(Exchange::Answering(Answer::new(status, &Arc::from(why), with_body)))
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
    let path = request.path.unwrap_or_default().split('?').next();
    let wanted = match path {
        Some("/metrics") => Wanted::Metrics,
        Some("/healthz") => Wanted::Health,
        _ => return refused(UNKNOWN, "try /metrics or /healthz\n", with_body),
    };
    Some(Exchange::Asked { wanted, with_body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> Exchange {
        let mut exchange = Exchange::new();
        exchange.take(request.as_bytes());
        exchange
    }

    /// All that is said, a byte at a time.
    fn said(mut exchange: Exchange) -> String {
        let mut said = Vec::new();
        while let Some(byte) = exchange.unsent().first() {
            said.push(*byte);
            exchange.sent(1);
        }
        assert!(matches!(exchange, Exchange::Over), "{exchange:?}");
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn a_request_is_the_same_however_it_comes() {
        let request = "GET /metrics?x=y HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        for cut in 1..request.len() {
            let mut exchange = asked(&request[..cut]);
            assert!(matches!(exchange, Exchange::Asking(_)), "{cut}: {exchange:?}");
            exchange.take(&request.as_bytes()[cut..]);
            assert!(
                matches!(exchange, Exchange::Asked { wanted: Wanted::Metrics, with_body: true }),
                "{cut}: {exchange:?}"
            );
        }
    }

    #[test]
    fn an_answer_has_a_head_and_a_body() {
        let mut exchange = asked("GET /healthz HTTP/1.1\r\n\r\n");
        exchange.answer(OK, &Arc::from("ok\n"));
        assert_eq!(
            said(exchange),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: 3\r\nConnection: close\r\n\r\nok\n"
        );
        let mut exchange = asked("HEAD /healthz HTTP/1.1\r\n\r\n");
        exchange.answer(UNAVAILABLE, &Arc::from("draining\n"));
        let said = said(exchange);
        assert!(said.starts_with("HTTP/1.1 503 ") && said.ends_with("\r\n\r\n"), "{said:?}");
        assert!(said.contains("\r\nContent-Length: 9\r\n"), "{said:?}");
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let begins = |request: &str, with: &str| {
            let said = said(asked(request));
            assert!(said.starts_with(&format!("HTTP/1.1 {with} ")), "{request:?}: {said:?}");
        };
        begins("GET / HTTP/1.1\r\n\r\n", "404");
        begins("PUT /metrics HTTP/1.1\r\n\r\n", "405");
        begins("\u{16}\u{3}\u{1}", "400");
        begins("GET /metrics HTTP/9\r\n\r\n", "400");
        begins(&format!("GET /{}", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_MAX)), "431");
        begins(&format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(HEADERS_MAX + 1)), "431");
    }
}

//! The HTTP server: `/metrics` for Prometheus, `/healthz` and `/readyz` for load balancers and
//! orchestrators, and the dashboard for people.
//!
//! One thread has all connections and never waits for one of them. The metrics, whether the
//! databases can be reached, and the parts of the dashboard are written by a thread each
//! ([`clerk`]), one text for all callers that asked for it in the meantime. So a look of the
//! dashboard that takes long holds up looks alone. None of them starts a thread, and none relies on
//! a resource that the system may refuse: a panic here would end the process, and with it all
//! clients.
//!
//! Always true, whatever a caller sends or does not read: there are at most [`CALLERS_MAX`]
//! connections, and a new one takes the place of the oldest; a request has a maximum length
//! ([`exchange`]) and a maximum time, and its answer a maximum time; a limited number of texts are
//! being sent. So a health check is answered while other callers send nothing, never
//! end, or do not read. If the process has no file descriptor left, a caller gets one of a few that
//! are kept for this ([`SPARES`]).
//!
//! Not here: TLS, passwords, keep-alive. Use a private address, or a proxy in front. The module
//! [`crate::dashboard`] says who may see the dashboard.

mod form;
mod page_request;
mod exchange;
mod clerk;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use refrain_drive::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::inherit::{Held, Inherited, Kind};
use crate::listen;
use crate::state::State;

pub(crate) use exchange::{
    BAD, FORBIDDEN, LOGIN_NEEDED, OK, Status, TOO_MANY, UNAVAILABLE, UNKNOWN,
};
pub(crate) use form::Form;
pub(crate) use page_request::PageRequest;

use clerk::Clerk;
use exchange::{Exchange, Wanted};

/// Maximum number of connections.
const CALLERS_MAX: usize = 64;
/// File descriptors kept for connections.
const SPARES: usize = 4;
/// Connections accepted before the open ones are served again.
const ACCEPTS_MAX: usize = 16;
/// Time that a caller has to send its request.
const ASKING: Duration = Duration::from_secs(5);
/// Time that a caller has to take the answer: Prometheus' default timeout of a scrape.
const ANSWERING: Duration = Duration::from_secs(10);
/// Time and number of bytes that a caller may still send after its answer. If this side closed the
/// connection at once, the caller could lose the answer.
const LINGERING: Duration = Duration::from_secs(1);
const LINGERING_BYTES: usize = 1 << 20;
/// Pause after a failed accept.
const REST: Duration = Duration::from_millis(100);

/// An answer.
pub(crate) struct Written {
    pub(crate) status: Status,
    /// The lines of the headers that the answer has beside those of every answer.
    pub(crate) headers: String,
    pub(crate) body: Arc<[u8]>,
}

impl Written {
    /// Makes the answer to a caller who is told in a line.
    pub(crate) fn line(status: Status, words: &str) -> Self {
        let body = Arc::from(words.as_bytes());
        Self { status, headers: Form::default().headers(), body }
    }
}

/// A bound address, for [`serve`].
pub(crate) struct Bound {
    listener: TcpListener,
    is_activated: bool,
    pub(crate) address: SocketAddr,
}

/// Binds the address, unless an inherited socket listens there, or systemd has opened one.
///
/// # Errors
/// The error of the system, with the address.
pub(crate) fn bind(
    address: Option<SocketAddr>,
    inherited: &mut Inherited,
) -> io::Result<Option<Bound>> {
    let activated = inherited.activated(Kind::Metrics, true).pop();
    let is_activated = activated.is_some();
    let at = |address| inherited.at(Kind::Metrics, &Address::Tcp(address));
    let found = activated.or_else(|| address.and_then(at));
    let found = found.map(|socket| TcpListener::from(OwnedFd::from(socket.listener)));
    let listener = match (found, address) {
        (Some(listener), _) => listener,
        (None, Some(address)) => {
            let bound = listen::retry_in_use(|| TcpListener::bind(address));
            bound.map_err(|error| failed(address, &error))?
        }
        (None, None) => return Ok(None),
    };
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok(Some(Bound { listener, is_activated, address }))
}

fn failed(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot serve metrics on {address}: {error}"))
}

impl Bound {
    /// Makes a second handle on the socket.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub(crate) fn held(&self) -> io::Result<Held> {
        let held = Held::of(Kind::Metrics, &self.listener, Address::Tcp(self.address))?;
        Ok(Held { is_activated: self.is_activated, ..held })
    }
}

/// Answers requests from now on. `metrics` writes the metrics as they are when it is called,
/// `obstacles` a line for each database that cannot be reached, and `dashboard` a part of the
/// dashboard.
///
/// # Errors
/// If the system refuses a thread or a file descriptor.
pub(crate) fn serve(
    bound: Bound,
    state: Arc<State>,
    metrics: impl Fn(Form) -> String + Send + 'static,
    obstacles: impl Fn() -> String + Send + 'static,
    dashboard: impl Fn(&PageRequest) -> Written + Send + 'static,
) -> io::Result<()> {
    let (bell, rope) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    rope.set_nonblocking(true)?;
    let spares = (0..SPARES).map(|_| bound.listener.try_clone()).collect::<io::Result<_>>()?;
    state.metrics.ring_by(rope.try_clone()?);
    // Each is asked for its own kind alone.
    let other = || Written::line(UNKNOWN, "");
    let metrics = move |wanted: &Wanted| {
        let Wanted::Metrics(form) = wanted else { return other() };
        let text = metrics(*form).into_bytes();
        let body = if form.gzip { compressed(&text).into() } else { text.into() };
        Written { status: OK, headers: form.headers(), body }
    };
    let readiness = move |_: &Wanted| match obstacles() {
        ready if ready.is_empty() => Written::line(OK, "ready\n"),
        obstacles => Written::line(UNAVAILABLE, &obstacles),
    };
    let dashboard = move |wanted: &Wanted| match wanted {
        Wanted::Dashboard(asked) => dashboard(asked),
        _ => other(),
    };
    let clerks = [
        Clerk::start("metrics", rope.try_clone()?, metrics)?,
        Clerk::start("readiness", rope.try_clone()?, readiness)?,
        Clerk::start("dashboard", rope, dashboard)?,
    ];
    let mut server = Server {
        listener: Some(bound.listener),
        spares,
        rests_until: None,
        is_scarce: false,
        bell,
        clerks,
        state,
        callers: Vec::new(),
    };
    thread::Builder::new().name("http".to_owned()).spawn(move || server.run())?;
    Ok(())
}

/// Returns the place of the thread that writes the answer to a request; `None` if the thread of the
/// connections answers at once.
fn clerk_of(wanted: &Wanted) -> Option<usize> {
    match wanted {
        Wanted::Metrics(_) => Some(0),
        Wanted::Readiness => Some(1),
        Wanted::Dashboard(_) => Some(2),
        Wanted::Health => None,
    }
}

/// Compresses a text quickly: what it saves is the time of a megabyte on the wire.
pub(crate) fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The thread that has all connections.
struct Server {
    /// `None` once another program has the socket.
    listener: Option<TcpListener>,
    /// Open descriptors without a use; one is closed when a caller needs a descriptor.
    spares: Vec<TcpListener>,
    /// The end of the pause after a failed accept.
    rests_until: Option<Instant>,
    /// True if the log has a line about the failed accepts.
    is_scarce: bool,
    /// Gets a byte when there is a new text.
    bell: UnixStream,
    /// The threads that write answers, in the order of [`clerk_of`].
    clerks: [Clerk; 3],
    state: Arc<State>,
    /// The connections, the oldest first.
    callers: Vec<Caller>,
}

struct Caller {
    stream: TcpStream,
    exchange: Exchange,
    /// True if the text that is being written is for this caller.
    is_next: bool,
    /// Bytes that came after the end of the answer.
    ignored: usize,
    until: Instant,
}

/// The descriptors that are ready.
#[derive(Default)]
struct Ready {
    listener: bool,
    bell: bool,
    /// Whether each caller is ready, in the order of `Server::callers`.
    callers: Vec<bool>,
}

impl Server {
    fn run(&mut self) {
        loop {
            let ready = self.wait();
            if self.state.metrics.are_given() {
                self.listener = None;
                self.spares.clear();
            }
            let now = Instant::now();
            self.go_on(now, &ready.callers);
            if ready.bell {
                self.receive_texts(now);
            }
            self.rests_until = self.rests_until.filter(|until| *until > now);
            if let Some(listener) = &self.listener
                && self.spares.len() < SPARES
            {
                self.spares.extend(listener.try_clone());
            }
            if ready.listener {
                self.accept(now);
            }
            self.ask_for_texts();
        }
    }

    /// Waits until a descriptor is ready or a time is over.
    fn wait(&self) -> Ready {
        let interest = |caller: &Caller| match caller.exchange {
            Exchange::Asking(..) | Exchange::Over => PollFlags::IN,
            Exchange::Asked { .. } => PollFlags::empty(),
            Exchange::Answering(_) => PollFlags::OUT,
        };
        let accepting = if self.rests_until.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(&self.bell, PollFlags::IN)];
        fds.extend(self.callers.iter().map(|caller| PollFd::new(&caller.stream, interest(caller))));
        fds.extend(self.listener.iter().map(|listener| PollFd::new(listener, accepting)));
        let ends = self.callers.iter().map(|caller| caller.until);
        let next = ends.chain(self.rests_until).min();
        let wait = next.map(|next| next.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        if let Err(error) = poll(&mut fds, wait.as_ref()) {
            if error != Errno::INTR {
                thread::sleep(REST);
            }
            return Ready::default();
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let bell = ready.next() == Some(true);
        let callers = ready.by_ref().take(self.callers.len()).collect();
        Ready { listener: ready.next() == Some(true), bell, callers }
    }

    /// Reads from ready callers and writes to them, as far as the kernel allows, and removes the
    /// callers that have ended.
    fn go_on(&mut self, now: Instant, ready: &[bool]) {
        let mut ready = ready.iter().copied();
        let state = &self.state;
        self.callers.retain_mut(|caller| {
            let is_ready = ready.next() == Some(true);
            caller.until > now && (!is_ready || caller.go_on(now, state).is_some())
        });
    }

    /// Takes the written texts, and answers the callers that they are for.
    fn receive_texts(&mut self, now: Instant) {
        // One byte may stand for several texts, and several bytes for one text.
        let _ = (&self.bell).read(&mut [0; 64]);
        for (place, clerk) in self.clerks.iter_mut().enumerate() {
            while let Some(Written { status, headers, body }) = clerk.take() {
                self.callers.retain_mut(|caller| {
                    if !caller.is_next || caller.clerk() != Some(place) {
                        return true;
                    }
                    caller.is_next = false;
                    caller.exchange.answer(status, &headers, &body);
                    caller.send(now).is_some()
                });
            }
        }
    }

    /// Asks each thread that writes nothing for the text that the oldest of its callers waits for.
    fn ask_for_texts(&mut self) {
        for (place, clerk) in self.clerks.iter_mut().enumerate() {
            let of_clerk = |caller: &&mut Caller| caller.clerk() == Some(place);
            let first = self.callers.iter_mut().find(of_clerk).filter(|_| !clerk.is_writing());
            let Some(first) = first.and_then(|caller| caller.wanted().cloned()) else { continue };
            if let Some(oldest) = clerk.ask(&first) {
                self.callers.retain(|caller| !caller.exchange.has(&oldest));
            }
            let alike = self.callers.iter_mut().filter(|it| it.wanted() == Some(&first));
            alike.for_each(|caller| caller.is_next = true);
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) => self.add_caller(now, stream, peer.ip()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return self.accept_in_need(now, &error),
            }
        }
    }

    /// Accepts after closing a spare descriptor, or else the oldest connection. The kernel reports
    /// the lack of descriptors whether or not a caller waits, so this runs once, for the caller
    /// that `poll` announced.
    fn accept_in_need(&mut self, now: Instant, error: &io::Error) {
        let made_room = self.spares.pop().is_some() || {
            let has_callers = !self.callers.is_empty();
            has_callers.then(|| self.callers.remove(0)).is_some()
        };
        let listener = self.listener.as_ref().filter(|_| made_room);
        if let Some(Ok((stream, peer))) = listener.map(TcpListener::accept) {
            return self.add_caller(now, stream, peer.ip());
        }
        self.rests_until = Some(now + REST);
        if !self.is_scarce {
            self.is_scarce = true;
            tracing::warn!(
                cause = "metrics",
                "cannot accept connections for metrics for now: {error}"
            );
        }
    }

    fn add_caller(&mut self, now: Instant, stream: TcpStream, peer: IpAddr) {
        self.is_scarce = false;
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.callers.len() >= CALLERS_MAX {
            self.callers.remove(0);
        }
        let (exchange, until) = (Exchange::new(peer), now + ASKING);
        self.callers.push(Caller { stream, exchange, is_next: false, ignored: 0, until });
    }
}

impl Caller {
    /// Returns the page that the caller waits for.
    fn wanted(&self) -> Option<&Wanted> {
        match &self.exchange {
            Exchange::Asked { wanted, .. } => Some(wanted),
            _ => None,
        }
    }

    /// Returns the place of the thread whose answer the caller waits for.
    fn clerk(&self) -> Option<usize> {
        self.wanted().and_then(clerk_of)
    }

    /// Reads or writes as much as is possible now. Returns `None` at the end of the connection.
    fn go_on(&mut self, now: Instant, state: &State) -> Option<()> {
        match self.exchange {
            Exchange::Asking(..) => self.receive(now, state),
            // `wait` asks for no event of such a caller, so the connection is broken.
            Exchange::Asked { .. } => None,
            Exchange::Answering(_) => self.send(now),
            Exchange::Over => self.ignore(),
        }
    }

    fn receive(&mut self, now: Instant, state: &State) -> Option<()> {
        let mut bytes = [0; 2048];
        let Some(count) = done(self.stream.read(&mut bytes))? else { return Some(()) };
        self.exchange.take(bytes.get(..count).filter(|bytes| !bytes.is_empty())?);
        if matches!(self.exchange, Exchange::Asking(..)) {
            return Some(());
        }
        self.until = now + ANSWERING;
        let Exchange::Asked { wanted, .. } = &self.exchange else { return self.send(now) };
        let form = Form::default();
        match (wanted, state.is_draining()) {
            (Wanted::Health | Wanted::Readiness, true) => {
                self.exchange.answer(UNAVAILABLE, &form.headers(), &Arc::from(*b"draining\n"));
            }
            (Wanted::Health, false) => {
                self.exchange.answer(OK, &form.headers(), &Arc::from(*b"ok\n"));
            }
            // Another thread writes the answer.
            (Wanted::Readiness, false) | (Wanted::Metrics(_) | Wanted::Dashboard(_), _) => {}
        }
        self.send(now)
    }

    fn send(&mut self, now: Instant) -> Option<()> {
        while !self.exchange.unsent().is_empty() {
            match done(self.stream.write(self.exchange.unsent()))? {
                Some(0) => return None,
                Some(count) => self.exchange.sent(count),
                None => return Some(()),
            }
        }
        if matches!(self.exchange, Exchange::Over) {
            self.stream.shutdown(Shutdown::Write).ok()?;
            self.until = now + LINGERING;
        }
        Some(())
    }

    fn ignore(&mut self) -> Option<()> {
        let mut bytes = [0; 16 << 10];
        let Some(count) = done(self.stream.read(&mut bytes))? else { return Some(()) };
        self.ignored += count;
        (count > 0 && self.ignored < LINGERING_BYTES).then_some(())
    }
}

/// Returns how many bytes the kernel read or wrote: `Some(None)` if none for now, `None` at the end
/// of the connection.
fn done(outcome: io::Result<usize>) -> Option<Option<usize>> {
    match outcome {
        Ok(count) => Some(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Some(None),
            _ => None,
        },
    }
}

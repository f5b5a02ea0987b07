//! The HTTP server: `/metrics` for Prometheus, `/healthz` for load balancers and orchestrators.
//!
//! One thread has all connections and waits for none of them; another writes the metrics, for whoever asked
//! meanwhile. Neither starts a thread, and neither relies on getting what the system may refuse:
//! a panic here would end the process, and with it all clients.
//!
//! What holds, whatever is sent here or left unread: there are [`CALLERS_MAX`] connections at most, and the oldest makes room
//! for one more; a request has a length ([`exchange`]) and a time, its answer has a time; texts of metrics that are
//! still being sent are [`TEXTS_MAX`] at most. So a health check is answered while others say nothing, never end, or do
//! not read. Where the process is out of descriptors, a few that are kept for it ([`SPARES`]) go to a caller.
//!
//! Not here: TLS, passwords, connections that are kept, compression. A private address does, or a proxy in front.

mod exchange;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::listen;
use crate::metrics;
use crate::state::State;

use exchange::{Exchange, OK, UNAVAILABLE, Wanted};

/// Connections at a time.
const CALLERS_MAX: usize = 64;
/// Texts of metrics that may be on their way out at a time: with thousands of pools one is megabytes.
const TEXTS_MAX: usize = 4;
/// Descriptors kept for connections.
const SPARES: usize = 4;
/// Connections taken before those that are there are looked at again.
const ACCEPTS_MAX: usize = 16;
/// Time for a request.
const ASKING: Duration = Duration::from_secs(5);
/// Time for its answer: that which Prometheus gives it by default.
const ANSWERING: Duration = Duration::from_secs(10);
/// Time, and bytes, that a caller has left to say when all is answered. A connection that is closed before takes the answer
/// along.
const LINGERING: Duration = Duration::from_secs(1);
const LINGERING_BYTES: usize = 1 << 20;
/// How long nobody is accepted when that fails.
const REST: Duration = Duration::from_millis(100);

/// A bound address, for [`serve`].
pub(crate) struct Bound {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

/// Binds the address.
///
/// # Errors
/// What the system says, with the address.
pub(crate) fn bind(address: SocketAddr) -> io::Result<Bound> {
    let failed = |error| io::Error::other(format!("cannot serve metrics on {address}: {error}"));
    let listener = listen::retry_in_use(|| TcpListener::bind(address)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, address })
}

/// Answers requests from now on.
///
/// # Errors
/// Where no thread can be started, or a descriptor is not to be had.
pub(crate) fn serve(bound: Bound, state: &Arc<State>) -> io::Result<()> {
    let (bell, rope) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    rope.set_nonblocking(true)?;
    let (asks, asked) = mpsc::channel();
    let (texts, told) = mpsc::channel();
    let spares = (0..SPARES).map(|_| bound.listener.try_clone()).collect::<io::Result<_>>()?;
    let mut server = Server {
        listener: bound.listener,
        spares,
        rests_until: None,
        is_scarce: false,
        bell,
        asks,
        told,
        is_writing: false,
        texts: Vec::new(),
        state: Arc::clone(state),
        callers: Vec::new(),
    };
    let state = Arc::clone(state);
    let writer = move || write_metrics(&asked, &texts, &rope, &state);
    thread::Builder::new().name("metrics".to_owned()).spawn(writer)?;
    thread::Builder::new().name("http".to_owned()).spawn(move || server.run())?;
    Ok(())
}

/// Writes the metrics whenever it is asked to, and rings when it has.
fn write_metrics(
    asked: &Receiver<()>,
    texts: &Sender<Arc<str>>,
    mut rope: &UnixStream,
    state: &State,
) {
    for () in asked {
        if texts.send(metrics::text(state).into()).is_err() {
            return;
        }
        // Where there is no room for one ring more, those before it have not been heard yet.
        let _ = rope.write(&[0]);
    }
}

/// The thread that has all connections.
struct Server {
    listener: TcpListener,
    /// Descriptors of no use but to be closed when another is needed.
    spares: Vec<TcpListener>,
    /// Until when nobody is accepted.
    rests_until: Option<Instant>,
    /// Whether it was logged that nobody can be accepted.
    is_scarce: bool,
    /// Rings when there is a text.
    bell: UnixStream,
    asks: Sender<()>,
    told: Receiver<Arc<str>>,
    is_writing: bool,
    /// Texts that are still being sent, the oldest first.
    texts: Vec<Arc<str>>,
    state: Arc<State>,
    /// The oldest first.
    callers: Vec<Caller>,
}

struct Caller {
    stream: TcpStream,
    exchange: Exchange,
    /// Whether the metrics that are being written are for this one.
    is_next: bool,
    /// Bytes that came when all was said.
    ignored: usize,
    until: Instant,
}

/// What the kernel has to tell.
#[derive(Default)]
struct Ready {
    listener: bool,
    bell: bool,
    /// By their place.
    callers: Vec<bool>,
}

impl Server {
    fn run(&mut self) {
        loop {
            let ready = self.wait();
            let now = Instant::now();
            self.go_on(now, &ready.callers);
            if ready.bell {
                self.receive_text(now);
            }
            self.rests_until = self.rests_until.filter(|until| *until > now);
            if self.spares.len() < SPARES {
                self.spares.extend(self.listener.try_clone());
            }
            if ready.listener {
                self.accept(now);
            }
            self.ask_for_metrics();
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> Ready {
        let interest = |caller: &Caller| match caller.exchange {
            Exchange::Asking(_) | Exchange::Over => PollFlags::IN,
            Exchange::Asked { .. } => PollFlags::empty(),
            Exchange::Answering(_) => PollFlags::OUT,
        };
        let accepting = if self.rests_until.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds =
            vec![PollFd::new(&self.listener, accepting), PollFd::new(&self.bell, PollFlags::IN)];
        fds.extend(self.callers.iter().map(|caller| PollFd::new(&caller.stream, interest(caller))));
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
        let (listener, bell) = (ready.next() == Some(true), ready.next() == Some(true));
        Ready { listener, bell, callers: ready.collect() }
    }

    /// Reads from callers and writes to them, as far as the kernel goes along. Those that have come to an end leave.
    fn go_on(&mut self, now: Instant, ready: &[bool]) {
        let mut ready = ready.iter().copied();
        let state = &self.state;
        self.callers.retain_mut(|caller| {
            let is_ready = ready.next() == Some(true);
            caller.until > now && (!is_ready || caller.go_on(now, state).is_some())
        });
    }

    /// Takes the text that was written, and gives it to those for whom it was.
    fn receive_text(&mut self, now: Instant) {
        // One ring may be for several texts, and the other way about.
        let _ = (&self.bell).read(&mut [0; 64]);
        while let Ok(text) = self.told.try_recv() {
            self.is_writing = false;
            self.callers.retain_mut(|caller| {
                if !std::mem::take(&mut caller.is_next) {
                    return true;
                }
                caller.exchange.answer(OK, &text);
                caller.send(now).is_some()
            });
            self.texts.push(text);
        }
    }

    /// Has the metrics written for those who ask for them, unless that is being done for others.
    fn ask_for_metrics(&mut self) {
        let wants = |caller: &Caller| {
            matches!(caller.exchange, Exchange::Asked { wanted: Wanted::Metrics, .. })
        };
        if self.is_writing || !self.callers.iter().any(wants) {
            return;
        }
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        if self.texts.len() >= TEXTS_MAX {
            let oldest = self.texts.remove(0);
            self.callers.retain(|caller| !caller.exchange.has(&oldest));
        }
        // The other thread ends with the process.
        self.is_writing = self.asks.send(()).is_ok();
        for caller in self.callers.iter_mut().filter(|caller| wants(caller)) {
            caller.is_next = true;
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => self.add_caller(now, stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return self.accept_in_need(now, &error),
            }
        }
    }

    /// Accepts in the place of a spare descriptor, or of the oldest caller. The kernel says that there are no descriptors whether or
    /// not somebody waits, so this is done once, for the caller who was announced.
    fn accept_in_need(&mut self, now: Instant, error: &io::Error) {
        let made_room = self.spares.pop().is_some() || {
            let has_callers = !self.callers.is_empty();
            has_callers.then(|| self.callers.remove(0)).is_some()
        };
        if made_room && let Ok((stream, _)) = self.listener.accept() {
            return self.add_caller(now, stream);
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

    fn add_caller(&mut self, now: Instant, stream: TcpStream) {
        self.is_scarce = false;
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.callers.len() >= CALLERS_MAX {
            self.callers.remove(0);
        }
        let (exchange, until) = (Exchange::new(), now + ASKING);
        self.callers.push(Caller { stream, exchange, is_next: false, ignored: 0, until });
    }
}

impl Caller {
    /// Reads or writes what can be read or written now. `None` is the end.
    fn go_on(&mut self, now: Instant, state: &State) -> Option<()> {
        match self.exchange {
            Exchange::Asking(_) => self.receive(now, state),
            // Nothing is asked of the kernel but this: the connection is broken.
            Exchange::Asked { .. } => None,
            Exchange::Answering(_) => self.send(now),
            Exchange::Over => self.ignore(),
        }
    }

    fn receive(&mut self, now: Instant, state: &State) -> Option<()> {
        let mut bytes = [0; 2048];
        let Some(count) = done(self.stream.read(&mut bytes))? else { return Some(()) };
        self.exchange.take(bytes.get(..count).filter(|bytes| !bytes.is_empty())?);
        if matches!(self.exchange, Exchange::Asking(_)) {
            return Some(());
        }
        self.until = now + ANSWERING;
        if matches!(self.exchange, Exchange::Asked { wanted: Wanted::Health, .. }) {
            let is_ending = state.is_draining();
            let (status, words) =
                if is_ending { (UNAVAILABLE, "draining\n") } else { (OK, "ok\n") };
            self.exchange.answer(status, &Arc::from(words));
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

/// How much the kernel took or gave: `Some(None)` is nothing for now, `None` the end of the connection.
fn done(outcome: io::Result<usize>) -> Option<Option<usize>> {
    match outcome {
        Ok(count) => Some(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Some(None),
            _ => None,
        },
    }
}

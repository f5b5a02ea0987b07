//! The log: writes a line for each event that an operator may need to know, to standard error, to a
//! file and to syslog.
//!
//! The thread that an event concerns makes the line, and a thread of the log writes it, with a
//! bounded queue between them: a stopped terminal or a pipe without a reader must not hold up a
//! core. If the queue is full, the log drops lines, counts them, and writes the number.
//!
//! An engine logs by a [`Note`], whose fields become those of the line. `cause` is a short key out
//! of a closed set, for counting and alerting; the sentence is the message. Of notes that say the
//! same, the first becomes a line at once, and the others are counted (`limit`), unless the log
//! has the level `debug` or `trace`: then each is a line.

mod limit;
mod zone;
mod line;
mod syslog;
mod places;
mod recent;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use refrain_config::{General, LogFormat, LogLevel, Remark};
use refrain_pg::logged_words;
use refrain_pool::event::{Level, News, Note, SessionNotes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::{Registry, reload};

use crate::log::limit::{Kind, Limiter, More};
use crate::scene;

pub(crate) use crate::log::places::{be_quiet, open_file, open_syslog};
pub(crate) use crate::log::recent::warnings;

/// Maximum number of lines that wait to be written.
const QUEUE_LINES_MAX: usize = 8192;
/// Time that the end of the process waits for the last lines.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

static LOG: OnceLock<Log> = OnceLock::new();
/// Whether logins are logged in normal times.
static LOGINS: AtomicBool = AtomicBool::new(false);
/// Whether ends of sessions are.
static ENDS: AtomicBool = AtomicBool::new(false);

struct Log {
    queue: Queue,
    level: reload::Handle<LevelFilter, Registry>,
    limiter: Mutex<Limiter>,
}

impl Log {
    /// Locks the limiter, for a moment: a core waits for the log thread here, and nothing is
    /// written meanwhile.
    fn limited<T>(&self, work: impl FnOnce(&mut Limiter) -> T) -> T {
        work(&mut self.limiter.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Starts logging. A second call changes only the level.
pub fn start(format: LogFormat, level: LogLevel) {
    if LOG.get().is_some() {
        return set_level(level);
    }
    let (queue, lines) = Queue::new();
    let lost = Arc::clone(&queue.lost);
    let (filter, handle) = reload::Layer::new(filter_of(level));
    let lines_made = Lines { format, queue: queue.clone() };
    let registry = tracing_subscriber::registry().with(filter).with(lines_made);
    let set = tracing::subscriber::set_global_default(registry);
    // Both fail only if another thread or a host of this library was first: its log is used.
    let log = Log { queue, level: handle, limiter: Mutex::default() };
    if set.is_ok() && LOG.set(log).is_ok() {
        let writing = thread::Builder::new().name("log".to_owned());
        let started = writing.spawn(move || write_lines(&lines, &lost));
        started.expect("a thread can be started");
    }
}

/// Logs what there is to tell about lines of a `pgbouncer.ini`, each with its file.
pub(crate) fn remarks(remarks: &[(String, Remark)], cause: &'static str) {
    for (place, remark) in remarks {
        match remark.is_warning {
            true => tracing::warn!(cause, "{place}{remark}"),
            false => tracing::info!(cause, "{place}{remark}"),
        }
    }
}

/// Changes which lines are logged.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(log) = LOG.get() {
        // Fails only when the subscriber is gone, and then nothing is logged at all.
        let _ = log.level.modify(|filter| *filter = filter_of(level));
    }
}

/// Sets which parts of sessions are logged in normal times.
pub(crate) fn set_sessions(options: &General) {
    LOGINS.store(options.log_connections, Relaxed);
    ENDS.store(options.log_disconnections, Relaxed);
}

/// Returns which parts of sessions are logged in normal times.
pub(crate) fn sessions() -> SessionNotes {
    SessionNotes { logins: LOGINS.load(Relaxed), ends: ENDS.load(Relaxed) }
}

/// Sets the time zone of the times, or tells why that is not possible.
pub(crate) fn set_timezone(name: &str) {
    if let Err(problem) = zone::set(name) {
        tracing::warn!(cause = "log_timezone", "{problem}");
    }
}

/// Waits up to `FLUSH_WAIT` until all lines are written. Returns true if they are.
pub fn flush() -> bool {
    let Some(log) = LOG.get() else { return false };
    // A thread that panics may have the limiter locked.
    if let Ok(mut limiter) = log.limiter.try_lock() {
        limiter.rest(Instant::now()).iter().for_each(tell_more);
    }
    let until = Instant::now() + FLUSH_WAIT;
    let (done, wait) = mpsc::channel();
    // The queue may be full, and standard error may have no reader.
    while log.queue.lines.try_send(Line::Flush(done.clone())).is_err() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(FLUSH_WAIT / 100);
    }
    wait.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
}

/// Logs every panic and then aborts the process: clients of a core that is gone would hang.
///
/// The hook runs before the stack is unwound, so it works the same with every panic strategy.
pub fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let thread = thread.name().unwrap_or("?");
        let why = panic.payload_as_str().unwrap_or("a panic without words");
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        let scene = scene::words().map(|scene| format!(", {scene}")).unwrap_or_default();
        let words = format!("Refrain aborts: thread {thread} panicked{place}{scene}: {why}");
        // Flush first, so that the queue has room for the line.
        if thread == "log" || !flush() {
            say_at_once(&words);
            std::process::abort();
        }
        tracing::error!(cause = "panic", thread, "{words}");
        for line in std::backtrace::Backtrace::force_capture().to_string().lines() {
            tracing::error!(cause = "panic", thread, "{line}");
        }
        if !flush() {
            say_at_once(&words);
        }
        std::process::abort();
    }));
}

/// Writes the last words straight to standard error, when the log thread does not write. Writes no
/// more than is possible without a long wait, and does not take the lock of standard error, because
/// another thread may hold it.
fn say_at_once(words: &str) {
    let error = rustix::stdio::stderr();
    let mut ready = [PollFd::new(&error, PollFlags::OUT)];
    let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
    if poll(&mut ready, Some(&wait)) == Ok(1) {
        let line = line::bare(words);
        // A pipe that is ready has room for this many bytes.
        let line = line.as_bytes();
        let _ = rustix::io::write(error, &line[..line.len().min(4096)]);
    }
}

/// Returns the least important level that is logged.
pub(crate) fn level() -> Level {
    match LevelFilter::current() {
        LevelFilter::OFF | LevelFilter::ERROR => Level::Error,
        LevelFilter::WARN => Level::Warn,
        LevelFilter::INFO => Level::Info,
        _ => Level::Debug,
    }
}

/// Logs a note of an engine, unless one that says the same was logged lately: then it is counted.
/// Where its level is not logged, its sentence is not made: each login has such a note.
pub(crate) fn note(note: &Note) {
    let logged = level();
    if note.level > logged {
        return;
    }
    let is_limited = logged < Level::Debug && !note.is_each;
    if is_limited && let Some(log) = LOG.get() {
        let kind = Kind::of(note);
        if !log.limited(|limiter| limiter.admits(kind, &note.detail, Instant::now())) {
            return;
        }
    }
    write(note, &sentence(note));
}

/// Logs the number of notes of one kind that were counted, and the details of the last one.
fn tell_more(more: &More) {
    let Kind { level, cause, is_of_client, database, user } = more.kind.clone();
    let why = words_of(cause);
    let mut words = beginning(is_of_client, why);
    words += &format!(" … {} more in {} s", more.count, more.span.as_secs());
    let says_no_more = more.last.is_empty() || is_of_client && more.last == why;
    if !says_no_more {
        words += &format!(", the last one: {}", more.last);
    }
    let (code, client, peer, server) = (None, None, None, None);
    let detail = String::new();
    let is_each = false;
    let note = Note { level, is_each, cause, code, client, peer, database, user, server, detail };
    write(&note, &words);
}

fn write(note: &Note, sentence: &str) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                cause = note.cause,
                sqlstate = note.code.as_deref(),
                client = note.client.map(|client| client.0),
                database = note.database.as_deref(),
                user = note.user.as_deref(),
                peer = note.peer.as_deref(),
                server = note.server.as_deref(),
                "{sentence}"
            )
        };
    }
    match note.level {
        Level::Error => line!(error),
        Level::Warn => line!(warn),
        Level::Info => line!(info),
        Level::Debug => line!(debug),
    }
}

/// Returns the sentence of a line: what happened, and why.
fn sentence(note: &Note) -> String {
    let why = words_of(note.cause);
    let detail = match note.detail.as_str() {
        "" => String::new(),
        detail if detail == why && note.client.is_some() => String::new(),
        detail => format!(" ({detail})"),
    };
    // What ends no session is told as it is.
    let ends = note.client.is_some() && News::words(note.cause).is_none();
    beginning(ends, why) + &detail
}

/// Returns the words for a key.
fn words_of(cause: &'static str) -> &'static str {
    logged_words(cause).or_else(|| News::words(cause)).unwrap_or(cause)
}

/// Returns the beginning of a sentence about a client or about something else.
fn beginning(is_of_client: bool, why: &str) -> String {
    if is_of_client { format!("client disconnected: {why}") } else { why.to_owned() }
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

enum Line {
    Text(tracing::Level, String),
    Flush(mpsc::Sender<()>),
}

/// The sender of lines to the log thread.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

impl Queue {
    fn new() -> (Self, Receiver<Line>) {
        let (lines, taken) = mpsc::sync_channel(QUEUE_LINES_MAX);
        (Self { lines, lost: Arc::default() }, taken)
    }

    fn put(&self, level: tracing::Level, line: String) {
        if self.lines.try_send(Line::Text(level, line)).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

/// The layer that makes a line of each event, in the thread of the event.
struct Lines {
    format: LogFormat,
    queue: Queue,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = line::of(event, self.format);
        if *event.metadata().level() <= tracing::Level::WARN {
            recent::keep(match self.format {
                LogFormat::Text => line.clone(),
                LogFormat::Json => line::of(event, LogFormat::Text),
            });
        }
        self.queue.put(*event.metadata().level(), line);
    }
}

/// Writes lines to their places, and tells in time how many were not written. An error of a write
/// is ignored: there is nowhere to report it.
fn write_lines(lines: &Receiver<Line>, lost: &AtomicU64) {
    while let Some(line) = next_line(lines) {
        match line {
            Line::Text(level, text) => places::write(level, &text),
            Line::Flush(done) => drop(done.send(())),
        }
        let count = lost.swap(0, Relaxed);
        if count > 0 {
            let _ = writeln!(
                io::stderr(),
                "{count} log lines were dropped: standard error was not read fast enough"
            );
        }
    }
}

/// Returns the next line, which may be the number of those that were not written. Each such number
/// follows a line, so whoever waits for a line knows when a number is due.
fn next_line(lines: &Receiver<Line>) -> Option<Line> {
    loop {
        let Some(log) = LOG.get() else { return lines.recv().ok() };
        let more = log.limited(|limiter| limiter.due(Instant::now()));
        more.iter().for_each(tell_more);
        let Some(due) = log.limited(|limiter| limiter.next_due()) else {
            return lines.recv().ok();
        };
        match lines.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

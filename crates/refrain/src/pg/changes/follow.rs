//! Follow: the thread that follows one stream, from attempt to attempt.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use refrain_config::Host;
use refrain_drive::{Driver, Event, Kernel, Token};
use refrain_pg::changes::{Follower, RowBody, StreamQuestion};
use refrain_pg_wire::write;
use refrain_pool::Now;

use super::connection::{KernelTold, OwnConnection};
use super::session::{Account, ServerSaid};
use crate::clock::Clock;
use crate::resolve::Resolver;
use crate::tls::Store;

/// The connection of the walsender.
const STREAM: Token = Token(0);
/// The connection for questions.
const QUESTIONS: Token = Token(1);
/// A walsender whose client is gone has to notice it, so that its slot does not stay.
const OF_STREAM: &[(&str, &str)] = &[("replication", "database"), ("wal_sender_timeout", "5s")];
/// Makes a server look every second whether its client is there while a command runs, which a
/// walsender does not do on its own: one that makes a slot waits for all open transactions, and its
/// slot would stay for as long. The second statement arms the timer by which the server looks.
/// Systems other than Linux may refuse the setting.
const LOOK_FOR_CLIENT: &str = "SELECT pg_catalog.set_config(s.name, '1s', false) \
     FROM pg_catalog.pg_settings s WHERE s.name = 'client_connection_check_interval' \
     AND pg_catalog.version() LIKE '%linux%'; SELECT 1";
/// Time for the logins.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest and longest time between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// A stream that a thread follows, and the means for it.
pub(super) struct Follow {
    pub(super) database: String,
    pub(super) host: Host,
    pub(super) account: Account,
    pub(super) follower: Follower,
    pub(super) kernel: Kernel,
    pub(super) clock: Clock,
    pub(super) store: Arc<Store>,
    pub(super) resolver: Arc<Resolver>,
    /// Set when the stream is to be followed no more.
    pub(super) stop: Arc<AtomicBool>,
}

/// One attempt.
struct StreamAttempt {
    stream: OwnConnection,
    questions: OwnConnection,
    /// Whether each has logged in.
    is_ready: [bool; 2],
    /// When the logins have to be over.
    until: Now,
    /// The queries in front of a command of the walsender that have no answer yet.
    in_front: u32,
    /// The questions that are under way, and the rows that have come of the first.
    owed: VecDeque<StreamQuestion>,
    rows: Vec<RowBody>,
}

impl Follow {
    /// Follows the stream until it is told to stop.
    pub(super) fn run(mut self) {
        let mut pause = PAUSES[0];
        let mut last = String::new();
        while !self.stop.load(Relaxed) {
            let (why, was_live) = self.attempt();
            self.kernel.close(STREAM);
            self.kernel.close(QUESTIONS);
            if self.stop.load(Relaxed) {
                return;
            }
            self.follower.lose(&why);
            if was_live {
                pause = PAUSES[0];
            }
            // An error that stays is told once.
            if was_live || why != last {
                let database = &self.database;
                tracing::warn!(cause = "changes", "changes of database {database} are lost: {why}");
                last = why;
            }
            self.rest(pause);
            pause = PAUSES[1].min(2 * pause);
        }
    }

    /// Waits until the next attempt.
    fn rest(&mut self, pause: Duration) {
        let until = self.clock.now().after(pause);
        while !self.stop.load(Relaxed) {
            let now = self.clock.now();
            if now >= until {
                return;
            }
            let wait = between(now, until);
            if self.kernel.turn(Some(wait), &mut |_| ()).is_err() {
                // The kernel does not wait: without a sleep, an error that stays would take a core.
                thread::sleep(wait.min(PAUSES[0]));
            }
        }
    }

    /// Follows the stream. Returns why it was lost, and whether it was live.
    fn attempt(&mut self) -> (String, bool) {
        let mut was_live = false;
        let why = match self.open() {
            Ok(mut attempt) => loop {
                match self.turn(&mut attempt) {
                    Ok(()) if self.stop.load(Relaxed) => break String::new(),
                    Ok(()) => {}
                    Err(why) => break why,
                }
                if self.follower.is_live() && !was_live {
                    was_live = true;
                    let database = &self.database;
                    tracing::info!(cause = "changes", "changes of database {database} are live");
                }
            },
            Err(why) => why,
        };
        (why, was_live)
    }

    fn open(&mut self) -> Result<StreamAttempt, String> {
        let by = (&*self.resolver, &*self.store, &self.host);
        let stream = OwnConnection::open((&mut self.kernel, STREAM), by, &self.account, OF_STREAM)?;
        let questions = OwnConnection::open((&mut self.kernel, QUESTIONS), by, &self.account, &[])?;
        Ok(StreamAttempt {
            stream,
            questions,
            is_ready: [false; 2],
            until: self.clock.now().after(LOGIN_TIMEOUT),
            in_front: 0,
            owed: VecDeque::new(),
            rows: Vec::new(),
        })
    }

    /// Sends what is due, waits, and takes in what has come.
    fn turn(&mut self, attempt: &mut StreamAttempt) -> Result<(), String> {
        let now = self.clock.now();
        self.follower.check(now)?;
        if attempt.is_ready != [true; 2] && attempt.until <= now {
            return Err("the server does not answer".to_owned());
        }
        self.ask(attempt);
        attempt.stream.send(&mut self.kernel)?;
        attempt.questions.send(&mut self.kernel)?;
        let now = self.clock.now();
        let wait = between(now, self.follower.wakes(now));
        let mut happened = Vec::new();
        let turned = self.kernel.turn(Some(wait), &mut |event| happened.extend(told(event)));
        turned.map_err(|error| error.to_string())?;
        for (token, told) in happened {
            self.hear(attempt, token, told)?;
        }
        Ok(())
    }

    /// Writes the questions, the commands and the status updates that are due.
    fn ask(&mut self, attempt: &mut StreamAttempt) {
        // The time is that of the question: what is proven by it was acknowledged before.
        while let Some((question, text)) = self.follower.question(self.clock.now()) {
            write::query(&mut attempt.questions.out, text.as_bytes());
            attempt.owed.push_back(question);
        }
        if let Some(command) = self.follower.command() {
            write::query(&mut attempt.stream.out, LOOK_FOR_CLIENT.as_bytes());
            attempt.in_front += 1;
            write::query(&mut attempt.stream.out, command.as_bytes());
        }
        self.follower.status(self.clock.now(), &mut attempt.stream.out);
    }

    fn hear(
        &mut self,
        attempt: &mut StreamAttempt,
        token: Token,
        told: KernelTold,
    ) -> Result<(), String> {
        let (follower, clock) = (&mut self.follower, self.clock);
        let StreamAttempt { stream, questions, is_ready, in_front, owed, rows, .. } = attempt;
        if token == STREAM {
            let ready = &mut is_ready[0];
            stream.hear(&mut self.kernel, told, &mut |said| match said {
                ServerSaid::Ready if *in_front > 0 => {
                    *in_front -= 1;
                    Ok(())
                }
                ServerSaid::Ready if *ready => follower.commanded(),
                ServerSaid::Ready => {
                    *ready = true;
                    Ok(())
                }
                ServerSaid::Streams => {
                    follower.streams(clock.now());
                    Ok(())
                }
                ServerSaid::Piece(body) => follower.hear(clock.now(), body),
                ServerSaid::Row(_) => Ok(()),
            })?;
        } else {
            let ready = &mut is_ready[1];
            questions.hear(&mut self.kernel, told, &mut |said| match said {
                ServerSaid::Ready => match owed.pop_front() {
                    Some(question) => follower.answer(clock.now(), question, &std::mem::take(rows)),
                    None => {
                        *ready = true;
                        Ok(())
                    }
                },
                ServerSaid::Row(row) => {
                    rows.push(row.to_vec());
                    Ok(())
                }
                ServerSaid::Streams | ServerSaid::Piece(_) => {
                    Err("a stream comes unasked".to_owned())
                }
            })?;
        }
        if attempt.is_ready == [true; 2] && attempt.until != Now(u64::MAX) {
            attempt.until = Now(u64::MAX);
            self.follower.begin(self.clock.now(), attempt.stream.pid());
        }
        Ok(())
    }
}

/// Returns the time from one moment to another.
fn between(now: Now, until: Now) -> Duration {
    Duration::from_micros(until.0.saturating_sub(now.0))
}

/// Returns what an event tells of a connection.
fn told(event: Event<'_>) -> Option<(Token, KernelTold)> {
    let words = |error: io::Error| error.to_string();
    Some(match event {
        Event::Connected { token, .. } => (token, KernelTold::Connected),
        Event::Failed { token, error } => (token, KernelTold::Failed(words(error))),
        Event::Received { token, bytes } => (token, KernelTold::Received(bytes.to_vec())),
        Event::Sent { token, .. } => (token, KernelTold::Sent),
        Event::Closed { token, error } => (token, KernelTold::Closed(error.map(words))),
        Event::Accepted { .. } | Event::Detached { .. } | Event::Woken => return None,
    })
}

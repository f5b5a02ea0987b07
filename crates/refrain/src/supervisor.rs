//! Carries out what an operator orders, by signal or on the console, and sees the program to its end.
//!
//! The end has stages. *Draining*: no client is accepted, and each is disconnected when its transaction is
//! over, within `shutdown_timeout`. *Stopping*: everything is closed at once; cores that do not come to
//! an end are left behind after [`STOP_WAIT`]. A second order to drain goes to the next stage.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use refrain_config::{Change, Options, When};
use refrain_drive::Address;
use refrain_pg::event::{Command, Core};

use crate::listen::Loads;
use crate::log;
use crate::mail::Mail;
use crate::source::{Source, trusts_strangers};
use crate::state::State;

/// How long cores may take to stop.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// How often clients are counted while waiting for the last of them to leave.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// Something an operator wants done to the program as a whole, or a core has to say about its end.
#[derive(Debug)]
pub enum SupervisorCommand {
    /// Read the configuration again. Whoever waits is told how it went.
    Reload(Option<Sender<Result<(), String>>>),
    /// Pause all databases.
    Pause,
    /// Resume all databases.
    Resume,
    /// Let clients finish their transactions, then end. The second time: end at once.
    Drain,
    /// Accept no clients, and end when the last has left on its own.
    DrainSlowly,
    /// End at once.
    Stop,
    /// This core has no client left, after a drain.
    Drained(Core),
    /// This core has ended.
    Ended(Core, io::Result<()>),
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Clients leave on their own; then everything is stopped.
    Emptying,
    /// Clients leave at the end of their transactions; after the deadline, at once.
    Draining(Option<Instant>),
    /// Everything is closed; after the deadline, whatever is left is abandoned.
    Stopping(Instant),
}

/// Who carries out orders.
pub(crate) struct Supervisor {
    pub(crate) state: Arc<State>,
    pub(crate) source: Source,
    pub(crate) loads: Loads,
    pub(crate) orders: Receiver<SupervisorCommand>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    stage: Stage,
    drained: usize,
    ended: usize,
    failure: Option<io::Error>,
}

impl Supervisor {
    pub(crate) fn new(
        state: Arc<State>,
        source: Source,
        loads: Loads,
        orders: Receiver<SupervisorCommand>,
        threads: Vec<JoinHandle<()>>,
    ) -> Self {
        let stage = Stage::Serving;
        let (drained, ended, failure) = (0, 0, None);
        Self { state, source, loads, orders, threads, stage, drained, ended, failure }
    }

    /// Carries out orders until all cores have ended.
    ///
    /// # Errors
    /// What the kernel refused a core that ended because of it.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while self.ended < self.threads.len() {
            match self.next() {
                Ok(order) => self.obey(order),
                Err(RecvTimeoutError::Timeout) => match self.stage {
                    Stage::Emptying if self.loads.total() == 0 => {
                        self.stop("all clients have left")
                    }
                    Stage::Draining(_) => self.stop("shutdown_timeout is over"),
                    Stage::Stopping(_) => {
                        tracing::error!(cause = "stop", "a core does not end; it is left behind");
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    Stage::Serving | Stage::Emptying => {}
                },
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for thread in self.threads {
            // A thread that panicked has been logged by the hook.
            let _ = thread.join();
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn next(&self) -> Result<SupervisorCommand, RecvTimeoutError> {
        let until = match self.stage {
            Stage::Serving | Stage::Draining(None) => {
                return self.orders.recv().map_err(|_| RecvTimeoutError::Disconnected);
            }
            Stage::Emptying => return self.orders.recv_timeout(COUNT_EVERY),
            Stage::Draining(Some(until)) | Stage::Stopping(until) => until,
        };
        self.orders.recv_timeout(until.saturating_duration_since(Instant::now()))
    }

    fn obey(&mut self, order: SupervisorCommand) {
        match order {
            SupervisorCommand::Reload(answer) => {
                let outcome = self.reload();
                if let Some(answer) = answer {
                    // Whoever asked may have lost patience.
                    let _ = answer.send(outcome);
                }
            }
            SupervisorCommand::Pause => {
                tracing::info!(cause = "pause", "all databases are paused");
                self.state.pause(None);
            }
            SupervisorCommand::Resume => {
                tracing::info!(cause = "resume", "all databases are resumed");
                self.state.resume(None);
            }
            SupervisorCommand::Drain if matches!(self.stage, Stage::Serving | Stage::Emptying) => {
                self.drain()
            }
            SupervisorCommand::Drain => self.stop("told to twice"),
            SupervisorCommand::DrainSlowly => self.empty(),
            SupervisorCommand::Stop => self.stop("told to"),
            SupervisorCommand::Drained(_) => {
                self.drained += 1;
                if self.drained == self.threads.len() {
                    self.stop("all clients have finished");
                }
            }
            SupervisorCommand::Ended(core, outcome) => {
                self.ended += 1;
                if let Err(error) = outcome {
                    tracing::error!(cause = "kernel", core = core.0, "a core failed: {error}");
                    self.failure = Some(error);
                    self.stop("a core failed");
                }
            }
        }
    }

    /// Reads the configuration again. One that has errors changes nothing.
    fn reload(&self) -> Result<(), String> {
        let old = self.state.options();
        let new = self.load().inspect_err(|why| {
            for problem in why.lines() {
                tracing::error!(cause = "reload", "the configuration is not changed: {problem}");
            }
        })?;
        let changes = old.differences(&new);
        changes.iter().for_each(log_change);
        tracing::info!(
            cause = "reload",
            changes = changes.len(),
            "the configuration was read again"
        );
        log::set_level(new.general.log_level);
        let new: Arc<Options> = Arc::new(new);
        self.state.shared.reload(Arc::clone(&new));
        self.state.post.command(&Command::Reload(new));
        Ok(())
    }

    /// Reads the configuration. The addresses at which clients are accepted are those of the start.
    fn load(&self) -> Result<Options, String> {
        let options = self.source.load()?;
        let tcp = |address: &Address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        };
        let bound: Vec<_> = self.state.addresses.iter().filter_map(tcp).collect();
        trusts_strangers(&options, &bound).map_or(Ok(options), Err)
    }

    fn empty(&mut self) {
        if self.stage == Stage::Serving {
            tracing::info!(cause = "shutdown", "waiting for clients to leave");
            self.refuse_clients();
            self.stage = Stage::Emptying;
        }
    }

    fn drain(&mut self) {
        let timeout = self.state.options().general.shutdown_timeout;
        let clients = self.loads.total();
        let most =
            timeout.map_or_else(String::new, |most| format!(" for {} s", most.as_secs_f64()));
        tracing::info!(cause = "shutdown", clients, "waiting for transactions to end{most}");
        self.refuse_clients();
        self.state.post.command(&Command::Drain);
        self.stage = Stage::Draining(timeout.map(|timeout| Instant::now() + timeout));
    }

    fn refuse_clients(&self) {
        self.state.set_draining();
        self.state.post.send(Core(0), Mail::Unlisten);
    }

    fn stop(&mut self, why: &str) {
        if !matches!(self.stage, Stage::Stopping(_)) {
            tracing::info!(cause = "shutdown", clients = self.loads.total(), "stopping: {why}");
            self.state.set_draining();
            self.state.post.command(&Command::Stop);
            self.stage = Stage::Stopping(Instant::now() + STOP_WAIT);
        }
    }
}

fn log_change(change: &Change) {
    let absent = "(not set)".to_owned();
    let old = change.old.as_ref().unwrap_or(&absent);
    let new = change.new.as_ref().unwrap_or(&absent);
    let (key, when) = (&change.key, change.when.words());
    if change.when == When::Restart {
        tracing::warn!(cause = "reload", "{key}: {old} → {new}, {when}");
    } else {
        tracing::info!(cause = "reload", "{key}: {old} → {new}, {when}");
    }
}

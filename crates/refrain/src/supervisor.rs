//! The supervisor: handles the commands of signals and of the console, and ends the process.
//!
//! A shutdown has stages. *Draining*: Refrain accepts no client, and disconnects each one at the
//! end of its transaction, within `shutdown_timeout`. *Stopping*: Refrain closes everything at
//! once, and after [`STOP_WAIT`] exits without the cores that have not ended. A second command to
//! drain goes to the next stage.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use refrain_config::{Assignment, Change, Options, When};
use refrain_pool::event::Command;
use refrain_pool::ids::Core;

use crate::exposure;
use crate::log;
use crate::source::{Loaded, Source, trusts_strangers};
use crate::state::State;
use crate::tls::Setup;

/// Time that cores have to stop.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// Time after a take-over in which clients that have just connected may log in, ask and leave on
/// their own. No client comes to this program any more, so it costs nothing to wait.
const SHORT_CLIENTS: Duration = Duration::from_secs(1);
/// How often clients are counted while waiting for the last of them to leave.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// A command for the whole process, or a report of a core about its end.
#[derive(Debug)]
pub enum SupervisorCommand {
    /// Read the configuration again, and send the outcome to the sender, if there is one.
    Reload(Option<Sender<Result<(), String>>>),
    /// Set an option until the next reload. The sender is told the outcome: notes for the operator,
    /// or the reason why it is not set.
    Set(Assignment, Sender<Result<Vec<String>, NotSet>>),
    /// Pause all databases.
    Pause,
    /// Resume all databases.
    Resume,
    /// Let clients finish their transactions, then end. The second time: end at once.
    Drain,
    /// Accept no clients, and end when the last one has left on its own.
    DrainSlowly,
    /// Leave the sockets in these places to another process, which serves clients at them, and
    /// drain. The sender is told when no client is accepted any more.
    HandOver {
        /// The places of the sockets in the list of handles.
        places: Vec<usize>,
        /// Whether the other process is asked where this one was.
        asking_stays: bool,
        /// The other process.
        pid: i32,
        /// Hears that it is done.
        answer: Sender<()>,
    },
    /// End at once.
    Stop,
    /// This core has no client left, after a drain.
    Drained(Core),
    /// This core has ended.
    Ended(Core, io::Result<()>),
}

/// The reason why an option was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSet {
    /// The value is not valid, or breaks a rule with another option.
    Invalid(String),
    /// The option takes a restart.
    TakesRestart(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Clients leave on their own; then everything is stopped.
    Emptying,
    /// Another program has the sockets. Clients leave on their own until this time.
    HandedOver(Instant),
    /// Clients leave at the end of their transactions; after the deadline, at once.
    Draining(Option<Instant>),
    /// Everything is closed; after the deadline, whatever is left is abandoned.
    Stopping(Instant),
}

/// Handles commands until all cores have ended.
pub(crate) struct Supervisor {
    pub(crate) state: Arc<State>,
    pub(crate) source: Source,
    pub(crate) commands: Receiver<SupervisorCommand>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// The options that were set since the last reload.
    set: Vec<Assignment>,
    stage: Stage,
    drained: usize,
    ended: usize,
    failure: Option<io::Error>,
}

impl Supervisor {
    pub(crate) fn new(
        state: Arc<State>,
        source: Source,
        commands: Receiver<SupervisorCommand>,
        threads: Vec<JoinHandle<()>>,
    ) -> Self {
        let stage = Stage::Serving;
        let (set, drained, ended, failure) = (Vec::new(), 0, 0, None);
        Self { state, source, commands, threads, set, stage, drained, ended, failure }
    }

    /// Handles commands until all cores have ended.
    ///
    /// # Errors
    /// The error of a core that failed.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while self.ended < self.threads.len() {
            match self.next() {
                Ok(command) => self.handle(command),
                Err(RecvTimeoutError::Timeout) => match self.stage {
                    Stage::Emptying | Stage::HandedOver(_) if self.state.clients() == 0 => {
                        self.stop("all clients have left")
                    }
                    Stage::HandedOver(until) if until <= Instant::now() => self.drain(),
                    Stage::Draining(_) => self.stop("shutdown_timeout has passed"),
                    Stage::Stopping(_) => {
                        tracing::error!(
                            cause = "stop",
                            "a worker thread did not stop in time; Refrain exits without it"
                        );
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    Stage::Serving | Stage::Emptying | Stage::HandedOver(_) => {}
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
                return self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected);
            }
            Stage::Emptying | Stage::HandedOver(_) => {
                return self.commands.recv_timeout(COUNT_EVERY);
            }
            Stage::Draining(Some(until)) | Stage::Stopping(until) => until,
        };
        self.commands.recv_timeout(until.saturating_duration_since(Instant::now()))
    }

    fn handle(&mut self, command: SupervisorCommand) {
        match command {
            SupervisorCommand::Reload(answer) => {
                self.state.supervising.reloading();
                let outcome = self.reload();
                self.state.note_reload(outcome.clone());
                let failed = outcome.as_ref().err().map(|why| format!("Not reloaded: {why}"));
                self.state.supervising.ready(&failed.unwrap_or_else(|| self.state.status()));
                if let Some(answer) = answer {
                    // The client that asked may have stopped waiting.
                    let _ = answer.send(outcome.map(|_| ()));
                }
            }
            SupervisorCommand::Set(assignment, answer) => {
                // The client that asked may have stopped waiting.
                let _ = answer.send(self.set(assignment));
            }
            SupervisorCommand::Pause => {
                tracing::info!(cause = "pause", "all databases are paused");
                self.state.pause(None);
            }
            SupervisorCommand::Resume => {
                tracing::info!(cause = "resume", "all databases are resumed");
                self.state.resume(None);
            }
            SupervisorCommand::Drain if self.may_drain() => self.drain(),
            SupervisorCommand::Drain => self.stop("shutdown was requested a second time"),
            SupervisorCommand::DrainSlowly => self.empty(),
            SupervisorCommand::HandOver { places, asking_stays, pid, answer } => {
                self.state.hand_over(&places, asking_stays);
                self.handed_over(pid);
                // The thread of the take-over ends with the process.
                let _ = answer.send(());
            }
            SupervisorCommand::Stop => self.stop("immediate shutdown was requested"),
            SupervisorCommand::Drained(_) => {
                self.drained += 1;
                if self.drained == self.threads.len() {
                    self.stop("all clients have finished");
                }
            }
            SupervisorCommand::Ended(core, outcome) => {
                self.ended += 1;
                if let Err(error) = outcome {
                    tracing::error!(
                        cause = "kernel",
                        core = core.0,
                        "a worker thread failed: {error}"
                    );
                    self.failure = Some(error);
                    self.stop("a worker thread failed");
                }
            }
        }
    }

    /// Reads the configuration again. A configuration with errors changes nothing. Returns the
    /// number of options that changed.
    fn reload(&mut self) -> Result<usize, String> {
        let old = self.state.options();
        // The file may have been renamed: what follows goes to one of its old name.
        open_log(&old);
        let (loaded, setup) = self.load().inspect_err(|why| {
            for problem in why.lines() {
                tracing::error!(cause = "reload", "configuration not reloaded: {problem}");
            }
        })?;
        self.set.clear();
        self.source.keep(&loaded);
        let Loaded { options: new, remarks, .. } = loaded;
        let changes = old.differences(&new);
        changes.iter().for_each(log_change);
        tracing::info!(cause = "reload", changes = changes.len(), "configuration reloaded");
        let warnings = exposure::warnings(&self.source, &new);
        for warning in warnings.into_iter().chain(self.state.unserved(&new)) {
            tracing::warn!(cause = "reload", "{warning}");
        }
        log::remarks(&remarks, "reload");
        open_log(&new);
        self.put_into_force(new, setup);
        Ok(changes.len())
    }

    /// Sets an option, beside those that were set since the last reload. Returns what there is to
    /// tell about its key.
    fn set(&mut self, assignment: Assignment) -> Result<Vec<String>, NotSet> {
        let old = self.state.options();
        let path = format!("pgbouncer.{}", assignment.key());
        let mut set = self.set.clone();
        set.retain(|other| other.option() != assignment.option());
        set.push(assignment);
        let (loaded, setup) = self.load_with(&set).map_err(NotSet::Invalid)?;
        let changes = old.differences(&loaded.options);
        if let Some(change) = changes.iter().find(|change| change.when == When::Restart) {
            return Err(NotSet::TakesRestart(change.key.clone()));
        }
        self.source.keep(&loaded);
        let Loaded { options: new, remarks, .. } = loaded;
        changes.iter().for_each(log_change);
        if old.general.logfile != new.general.logfile {
            open_log(&new);
        }
        self.set = set;
        self.put_into_force(new, setup);
        let of_key = remarks.into_iter().filter(|(_, remark)| remark.key == path);
        Ok(of_key.map(|(_, remark)| remark.message).collect())
    }

    fn put_into_force(&self, options: Options, setup: Setup) {
        log::set_level(options.general.log_level);
        log::set_timezone(&options.general.log_timezone);
        log::set_sessions(&options.general);
        log::open_syslog(&options.general);
        self.state.reload(options, setup);
    }

    /// Reads the configuration and the files that it names.
    fn load(&self) -> Result<(Loaded, Setup), String> {
        let loaded = self.source.load_and_tell()?;
        self.check(&loaded.options)?;
        let setup = Setup::read(&loaded.options)?;
        Ok((loaded, setup))
    }

    /// Reads the configuration in force with options that are set beside it, and the files of TLS
    /// that it did not name before.
    fn load_with(&self, set: &[Assignment]) -> Result<(Loaded, Setup), String> {
        let loaded = self.source.load_with(set)?;
        self.check(&loaded.options)?;
        let setup = self.state.tls.changed(&loaded.options)?;
        Ok((loaded, setup))
    }

    /// Checks options against the addresses that were bound at the start.
    fn check(&self, options: &Options) -> Result<(), String> {
        trusts_strangers(options, &self.state.tcp_addresses()).map_or(Ok(()), Err)
    }

    fn may_drain(&self) -> bool {
        matches!(self.stage, Stage::Serving | Stage::Emptying | Stage::HandedOver(_))
    }

    /// Begins to drain, when another process serves. A shutdown that has begun goes on.
    fn handed_over(&mut self, pid: i32) {
        let clients = self.state.clients();
        tracing::info!(cause = "takeover", clients, "process {pid} serves clients from now on");
        self.state.supervising.replaced(pid);
        if self.stage == Stage::Serving {
            self.stage = Stage::HandedOver(Instant::now() + SHORT_CLIENTS);
        }
    }

    fn empty(&mut self) {
        if self.stage == Stage::Serving {
            tracing::info!(cause = "shutdown", "waiting for clients to leave");
            self.state.refuse_clients();
            self.state.supervising.stopping("Waiting for clients to leave");
            self.stage = Stage::Emptying;
        }
    }

    fn drain(&mut self) {
        let timeout = self.state.options().general.shutdown_timeout;
        let clients = self.state.clients();
        let most =
            timeout.map_or_else(String::new, |most| format!(" for {} s", most.as_secs_f64()));
        tracing::info!(cause = "shutdown", clients, "waiting for transactions to end{most}");
        self.state.refuse_clients();
        self.state.supervising.stopping(&format!("Waiting for transactions of {clients} clients"));
        self.state.command(&Command::Drain);
        self.stage = Stage::Draining(timeout.map(|timeout| Instant::now() + timeout));
    }

    fn stop(&mut self, why: &str) {
        if !matches!(self.stage, Stage::Stopping(_)) {
            tracing::info!(cause = "shutdown", clients = self.state.clients(), "stopping: {why}");
            self.state.set_draining();
            self.state.supervising.stopping("Stopping");
            self.state.command(&Command::Stop);
            self.stage = Stage::Stopping(Instant::now() + STOP_WAIT);
        }
    }
}

/// Opens the file of the log anew.
fn open_log(options: &Options) {
    if let Err(error) = log::open_file(options.general.logfile.as_deref()) {
        tracing::error!(cause = "reload", "the logfile cannot be opened: {error}");
    }
}

fn log_change(change: &Change) {
    let absent = "(not set)".to_owned();
    let old = change.old.as_ref().unwrap_or(&absent);
    let new = change.new.as_ref().unwrap_or(&absent);
    let (key, when) = (&change.key, change.when.words());
    if change.when == When::Restart {
        tracing::warn!(
            cause = "reload",
            "option {key} changed from {old} to {new}, effective {when}"
        );
    } else {
        tracing::info!(
            cause = "reload",
            "option {key} changed from {old} to {new}, effective {when}"
        );
    }
}

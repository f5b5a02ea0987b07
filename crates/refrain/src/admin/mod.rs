//! The console: the databases `refrain` and `pgbouncer`, answered with rows.
//!
//! An engine logs the client in and passes its queries on; one helper thread, the desk, answers all
//! clients of the console. The desk asks each core for a snapshot, which the core makes between two
//! turns, and sends commands to the cores; it shares no lock with them.
//!
//! Names, columns, their order and types are those of the version of PgBouncer that `SHOW VERSION`
//! names (`pgbouncer_version`), because exporters and scripts read them by position. Everything
//! else that Refrain shows has commands of its own ([`own`]). Each listing is a row in the table
//! [`show::LISTINGS`], each command one in [`commands::COMMANDS`]. Listings that PostgreSQL's
//! protocol alone has are in the folder `pg`.
//!
//! Not here: who may log in (in the engine), the messages of a question and a reply (each protocol
//! that the program serves has its own, [`crate::console`]), and metrics.

mod words;
mod averages;
mod view;
mod table;
mod sockets;
mod pgbouncer;
mod own;
mod sharing;
mod summary;
mod overview;
mod hosts;
mod pg;
mod show;
#[cfg(feature = "sqlite")]
mod select;
mod asked;
mod glance;
mod set;
mod commands;

pub(crate) use glance::{SHOWN, shown_text};

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{io, thread};

use asked::Outcome;
use averages::Averages;
use refrain_pg::{ServerView, Snapshot};
use refrain_pool::ids::ClientSerial;
use refrain_pool::snapshot::Extent;
use view::View;

use crate::console::{Answer, Call, Part, Question, Refusal};
use crate::pg::PgState;
use crate::state::State;
use crate::supervisor::SupervisorCommand;

/// Time that the desk waits for the snapshots of the cores.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two checks whether a client's wait is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time between two checks whether a period of statistics is over.
const IDLE: Duration = Duration::from_secs(1);

/// The command that waits until all servers are closed.
const PAUSE: &str = "PAUSE";

/// A command whose reply waits until servers are closed.
struct Wait {
    /// The command, as its reply names it.
    tag: &'static str,
    /// The database of the command; `None` for all databases.
    database: Option<Arc<str>>,
}

impl Wait {
    /// True if the wait is over. A PAUSE waits for the last server on any core: one may be on its
    /// way from core to core.
    fn is_over(&self, state: &State, snapshots: &[Snapshot]) -> bool {
        if self.is_pause() {
            return state.database_servers(self.database.as_deref()) == 0;
        }
        let named = |server: &&ServerView| match &self.database {
            Some(database) => server.database == *database,
            None => true,
        };
        let mut servers = snapshots.iter().flat_map(|snapshot| &snapshot.servers).filter(named);
        !servers.any(|server| server.close_needed)
    }

    fn is_pause(&self) -> bool {
        self.tag == PAUSE
    }

    fn is_pause_of_all(&self) -> bool {
        self.is_pause() && self.database.is_none()
    }
}

/// A client whose reply waits.
struct Waiting {
    wait: Wait,
    client: ClientSerial,
    answer: Answer,
}

impl Waiting {
    fn is_gone(&self, snapshots: &[Snapshot]) -> bool {
        let mut clients = snapshots.iter().flat_map(|snapshot| &snapshot.clients);
        !clients.any(|client| client.serial == self.client)
    }
}

/// The state of the thread that answers.
struct Desk {
    state: Arc<State>,
    pg: PgState,
    commands: Sender<SupervisorCommand>,
    averages: Averages,
    waiting: Vec<Waiting>,
}

/// Starts the thread that answers. It ends when all senders of questions are gone.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn open(
    state: Arc<State>,
    pg: PgState,
    commands: Sender<SupervisorCommand>,
    questions: Receiver<Call>,
) -> io::Result<()> {
    let averages = Averages::new(state.clock.now());
    let desk = Desk { state, pg, commands, averages, waiting: Vec::new() };
    // EXPLAIN AUTOPREPARE parses here.
    let thread =
        thread::Builder::new().name("console".to_owned()).stack_size(refrain_grammar::STACK);
    thread.spawn(move || desk.run(&questions))?;
    Ok(())
}

impl Desk {
    fn run(mut self, questions: &Receiver<Call>) {
        loop {
            let poll_timeout = if self.waiting.is_empty() { IDLE } else { LOOK_EVERY };
            match questions.recv_timeout(poll_timeout) {
                Ok(Call::Client(question)) => self.answer(question),
                Ok(Call::Dashboard(glance)) if glance.is_over(Instant::now()) => {}
                Ok(Call::Dashboard(glance)) => glance::answer(&self, glance),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let period = self.state.options().general.stats_period;
            if self.averages.is_due(self.state.clock.now(), period) {
                self.end_period();
            }
            self.look();
        }
    }

    /// Begins a period of statistics, and logs those of the one that is over.
    fn end_period(&mut self) {
        let view = self.view_of(Extent::OUTLINE);
        let (now, totals, sums) = (view.now, view.totals(), view.sums());
        if view.options.general.log_stats {
            tracing::info!(cause = "stats", "{}", self.averages.words(now, &totals));
        }
        self.averages.roll(now, totals, sums);
    }

    fn answer(&mut self, question: Question) {
        match commands::run(self, &question) {
            Outcome::Reply(reply) => (question.answer)(reply),
            Outcome::Wait(wait) => {
                let Question { client, answer, .. } = question;
                self.waiting.push(Waiting { wait, client, answer });
            }
        }
    }

    fn view(&self) -> View<'_> {
        self.view_of(Extent::WHOLE)
    }

    fn view_of(&self, extent: Extent) -> View<'_> {
        View::of(&self.state, &self.pg, &self.averages, extent)
    }

    /// Replies to the clients whose wait is over.
    fn look(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let snapshots = self.pg.snapshots(SNAPSHOT_TIMEOUT, Extent::CLIENTS);
        let paused = self.state.is_paused();
        self.give_up(|wait| wait.is_pause_of_all() && !paused);
        let over = |waiting: &mut Waiting| {
            waiting.wait.is_over(&self.state, &snapshots) || waiting.is_gone(&snapshots)
        };
        let done: Vec<_> = self.waiting.extract_if(.., over).collect();
        for Waiting { wait, answer, .. } in done {
            answer(vec![Part::Done(wait.tag.into())]);
        }
    }

    /// Sends an error to the clients whose PAUSE was undone by a RESUME, on the console or by
    /// signal.
    fn give_up(&mut self, undone: impl Fn(&Wait) -> bool) {
        let undone: Vec<_> = self.waiting.extract_if(.., |waiting| undone(&waiting.wait)).collect();
        for Waiting { answer, .. } in undone {
            answer(vec![Part::Refused(Refusal::undone())]);
        }
    }
}

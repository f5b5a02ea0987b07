//! A session: bytes of a client in, bytes for it out.
//!
//! A [`Session`] stands in the place of a socket to a PostgreSQL server: it takes the startup
//! packet and every later message, split in any way, and appends the replies. A session does no I/O
//! but SQLite's. It does not block its caller, except for a commit where [`Session::set_alone`]
//! allows that. A statement that takes long runs on another thread; a session that wants to write
//! waits in the write queue. The waker then says when to call [`Session::resume`].

use std::sync::{Arc, Mutex};
use std::time::Instant;

use refrain_pg_wire::startup::{self, Opening, Startup};
use refrain_pg_wire::write;

use crate::backend::{Backend, Pool};
use crate::context::Context;
use crate::control::{CancelHandle, Control, Waker};
use crate::failure::{Failure, TIMEOUT, state};
use crate::input::Input;
use crate::machine::{Machine, Need};
use crate::pieces::Pieces;
use crate::runs_on::RunsOn;
use crate::settings::Settings;
use crate::thread_job::{self, ResultSlot, ThreadJob, ThreadResult};
use crate::threads::Lane;
use crate::write_queue::{Permit, Ticket};

/// Startup parameters that are not run-time parameters.
const NOT_SETTINGS: &[&str] = &["user", "database", "replication", "options"];

/// The event that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The session waits for more bytes from the client.
    Idle,
    /// The session waits for a thread or for the right to write. The waker is called when it is
    /// time for [`Session::resume`].
    Waiting,
    /// The caller sends the output, then calls [`Session::resume`].
    More,
    /// The session is over.
    Closed,
}

/// A session of a client with an SQLite database.
pub struct Session {
    pool: Arc<Pool>,
    control: Arc<Control>,
    pid: u32,
    key: [u8; 4],
    /// Bytes of the client that the session has not handled yet.
    input: Input,
    state: SessionState,
    slot: Arc<ResultSlot>,
    /// True if the caller's loop serves no other client.
    alone: bool,
}

/// The place of the session's [`Machine`].
enum SessionState {
    /// The startup packet has not come yet.
    Opening,
    /// The machine is here and idle.
    OnLoop(Box<Machine>),
    /// The machine is here and waits in the write queue.
    WaitsToWrite(Box<Machine>, Ticket, WaitLimit),
    /// The machine is here; its output has to be sent before it goes on.
    OutputFull(Box<Machine>),
    /// The machine is on a thread, or waits for one.
    OnThread(ThreadJob),
    /// The machine is back from a thread, with more output than the loop sends at once.
    HasOutput(Box<ThreadResult>),
    Closed,
}

/// The time limit of a session that waits for the right to write.
struct WaitLimit {
    until: Option<Instant>,
    /// The error that the client gets at that moment.
    ends: Failure,
}

impl Session {
    /// Makes a session that waits for the startup packet. Any thread may call `waker`; the owner
    /// then calls [`Session::resume`].
    pub fn new(pool: Arc<Pool>, waker: Waker) -> Self {
        let (pid, key, control) = pool.backend.enter(waker);
        let slot = Arc::new(Mutex::new(None));
        Self {
            pool,
            control,
            pid,
            key,
            input: Input::default(),
            state: SessionState::Opening,
            slot,
            alone: false,
        }
    }

    /// Returns a handle that cancels the session's statements.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle { control: Arc::downgrade(&self.control) }
    }

    /// Returns the pool that the session's connections come from.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Sets whether the caller's loop serves no other client. Such a session may wait for a commit
    /// on the loop.
    pub fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Takes bytes from the client and appends the replies.
    pub fn receive(&mut self, bytes: Vec<u8>, out: &mut Vec<u8>) -> Progress {
        self.input.receive(bytes);
        self.go_on(out)
    }

    /// Takes the empty buffer of the bytes that were received last, once the session is done with
    /// them: [`Progress::Idle`].
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.input.take_buffer()
    }

    /// Goes on after the waker was called, or after the output was sent.
    pub fn resume(&mut self, out: &mut Vec<u8>) -> Progress {
        match std::mem::replace(&mut self.state, SessionState::Closed) {
            SessionState::OutputFull(machine) => return self.send_away(machine),
            SessionState::OnThread(job) => {
                let back = thread_job::slot(&self.slot).take();
                let Some(back) = back else { return self.wait_for_thread(job, out) };
                return self.tell(back, out);
            }
            SessionState::HasOutput(back) => return self.tell(back, out),
            state => self.state = state,
        }
        self.go_on(out)
    }

    fn go_on(&mut self, out: &mut Vec<u8>) -> Progress {
        match std::mem::replace(&mut self.state, SessionState::Closed) {
            SessionState::Opening => self.open(out),
            SessionState::OnLoop(machine) if !self.input.may_go_on(self.pool.longest_message()) => {
                self.wait_for_input(machine)
            }
            SessionState::OnLoop(machine) => self.run_input(machine, out),
            SessionState::WaitsToWrite(machine, ticket, wait_limit) => {
                self.turn(machine, ticket, wait_limit, out)
            }
            state @ (SessionState::OutputFull(_) | SessionState::HasOutput(_)) => {
                self.state = state;
                Progress::More
            }
            state @ SessionState::OnThread(_) => {
                self.state = state;
                Progress::Waiting
            }
            SessionState::Closed => Progress::Closed,
        }
    }

    /// Runs the machine on the waiting input: on a thread if the session has the right to write,
    /// else here.
    fn run_input(&mut self, mut machine: Box<Machine>, out: &mut Vec<u8>) -> Progress {
        if machine.access.permit.is_some() && self.input.may_go_on(self.pool.longest_message()) {
            return self.send_away(machine);
        }
        machine.access.alone = self.alone;
        let before = out.len();
        let (used, need) = machine.run(self.input.bytes(), out, RunsOn::Loop);
        self.input.consume(used);
        if let Err(failure) = machine.access.sync_here() {
            self.pool.failed(&failure);
            out.truncate(before);
            failure.write(out, "FATAL");
            return Progress::Closed;
        }
        self.wait(machine, need, out)
    }

    /// Moves the machine to the place where it gets what it needs.
    fn wait(&mut self, machine: Box<Machine>, need: Need, out: &mut Vec<u8>) -> Progress {
        match need {
            Need::Input => self.wait_for_input(machine),
            Need::Thread => self.send_away(machine),
            Need::Writer if machine.access.permit.is_some() => self.send_away(machine),
            Need::Writer => self.stand_in_line(machine, out),
            Need::OutputRoom => {
                self.state = SessionState::OutputFull(machine);
                Progress::More
            }
            Need::Close => Progress::Closed,
        }
    }

    /// Waits for the rest of a message. A thread copies what has come of a long one.
    fn wait_for_input(&mut self, machine: Box<Machine>) -> Progress {
        if self.input.is_long() {
            return self.send_away(machine);
        }
        self.state = SessionState::OnLoop(machine);
        Progress::Idle
    }

    fn stand_in_line(&mut self, machine: Box<Machine>, out: &mut Vec<u8>) -> Progress {
        let backend = machine.access.backend().clone();
        let ticket = backend.queue.join(self.control.waker());
        let ticket = match ticket.redeem() {
            Ok(permit) => return self.may_write(machine, permit),
            Err(ticket) => ticket,
        };
        backend.shared.advisory.stands_in_line(self.pid, true);
        let wait_limit = wait_limit(&machine);
        if let Some(until) = wait_limit.until {
            backend.threads.wake_at(until, self.control.waker());
        }
        self.turn(machine, ticket, wait_limit, out)
    }

    /// Goes on if the session now has the right to write, or has waited too long for it.
    fn turn(
        &mut self,
        mut machine: Box<Machine>,
        ticket: Ticket,
        wait_limit: WaitLimit,
        out: &mut Vec<u8>,
    ) -> Progress {
        let advisory = &machine.access.backend().shared.advisory;
        let ticket = match ticket.redeem() {
            Ok(permit) => {
                advisory.stands_in_line(self.pid, false);
                return self.may_write(machine, permit);
            }
            Err(ticket) => ticket,
        };
        match self.why_to_give_up(&wait_limit) {
            Some(failure) => {
                advisory.stands_in_line(self.pid, false);
                drop(ticket);
                machine.access.write_refused = Some(failure);
                self.run_input(machine, out)
            }
            None => {
                self.state = SessionState::WaitsToWrite(machine, ticket, wait_limit);
                Progress::Waiting
            }
        }
    }

    /// Returns why a waiting session stops waiting: a cancel request, or the end of its time.
    fn why_to_give_up(&self, wait_limit: &WaitLimit) -> Option<Failure> {
        if self.control.take_cancelled() {
            let message = "canceling statement due to user request";
            return Some(Failure::new(state::CANCELLED, message));
        }
        let late = wait_limit.until.is_some_and(|until| Instant::now() >= until);
        late.then(|| wait_limit.ends.clone())
    }

    fn may_write(&mut self, mut machine: Box<Machine>, permit: Permit) -> Progress {
        machine.access.permit = Some(permit);
        self.send_away(machine)
    }

    /// Sends the machine and its input to a thread. If the first message is not complete, the
    /// thread just copies what has come.
    fn send_away(&mut self, machine: Box<Machine>) -> Progress {
        let lane = if machine.access.permit.is_some() { Lane::Write } else { Lane::Read };
        let backend = machine.access.backend().clone();
        if let Some(until) = machine.access.deadline().filter(|_| lane == Lane::Read) {
            backend.threads.wake_at(until, self.control.waker());
        }
        let job = ThreadJob::new(machine, std::mem::take(&mut self.input));
        let (slot, control, work) = (self.slot.clone(), self.control.clone(), job.clone());
        let longest = self.pool.longest_message();
        self.state = SessionState::OnThread(job);
        let task = move || {
            let Some((mut machine, mut rest)) = work.take() else { return };
            let mut out = Vec::new();
            let mut need = Need::Input;
            if rest.may_go_on(longest) || machine.has_work() {
                let (used, after) = machine.run(rest.bytes(), &mut out, RunsOn::Thread);
                rest.consume(used);
                need = after;
            }
            rest.keep();
            let unsynced = machine.access.take_unsynced();
            let out = Pieces::new(out);
            let result = Box::new(ThreadResult { machine, rest, out, need });
            result.leave_behind(unsynced, slot, control);
        };
        backend.threads.send(lane, Box::new(task));
        Progress::Waiting
    }

    /// Waits for a thread, or ends the statement if no thread took it in time.
    fn wait_for_thread(&mut self, job: ThreadJob, out: &mut Vec<u8>) -> Progress {
        let ended = job.take_back(|machine| {
            let ends = Failure::new(state::CANCELLED, TIMEOUT);
            self.why_to_give_up(&WaitLimit { until: machine.access.deadline(), ends })
        });
        let Some(((mut machine, rest), failure)) = ended else {
            self.state = SessionState::OnThread(job);
            return Progress::Waiting;
        };
        machine.wait_ended = Some(failure);
        self.take_rest(rest);
        self.run_input(machine, out)
    }

    /// Puts input that a thread did not handle in front of input that came meanwhile.
    fn take_rest(&mut self, rest: Input) {
        let mut later = std::mem::replace(&mut self.input, rest);
        if !later.is_empty() {
            self.input.receive(later.bytes().to_vec());
        }
    }

    /// Appends one piece of a thread's output. After the last piece the machine is back here.
    fn tell(&mut self, mut back: Box<ThreadResult>, out: &mut Vec<u8>) -> Progress {
        back.out.hand_on(out);
        if !back.out.is_empty() {
            self.state = SessionState::HasOutput(back);
            return Progress::More;
        }
        let ThreadResult { machine, rest, out: handed_on, need } = *back;
        if handed_on.is_large() {
            self.pool.backend.threads.send(Lane::Read, Box::new(move || drop(handed_on)));
        }
        self.take_rest(rest);
        match need {
            Need::Input => self.state = SessionState::OnLoop(machine),
            Need::Close => self.state = SessionState::Closed,
            need => drop(self.wait(machine, need, out)),
        }
        self.go_on(out)
    }

    /// Reads the startup packet.
    fn open(&mut self, out: &mut Vec<u8>) -> Progress {
        let mut input = std::mem::take(&mut self.input);
        let (opening, used) = match startup::parse(input.bytes()) {
            Ok(Some(read)) => read,
            Ok(None) => {
                self.input = input;
                self.state = SessionState::Opening;
                return Progress::Idle;
            }
            Err(bad) => {
                Failure::protocol(bad.to_string()).write(out, "FATAL");
                return Progress::Closed;
            }
        };
        self.state = match opening {
            Opening::Ssl | Opening::Gss => {
                out.push(b'N');
                SessionState::Opening
            }
            Opening::Cancel { pid, key } => {
                self.pool.backend.cancel(pid, key);
                SessionState::Closed
            }
            Opening::Startup(startup) => match self.begin(&startup, out) {
                Ok(machine) => SessionState::OnLoop(machine),
                Err(failure) => {
                    failure.write(out, "FATAL");
                    SessionState::Closed
                }
            },
        };
        input.consume(used);
        self.input = input;
        match self.state {
            SessionState::Closed => Progress::Closed,
            _ if self.input.is_empty() => Progress::Idle,
            _ => self.go_on(out),
        }
    }

    /// Answers the startup packet. Authentication is the caller's: a session lets every client in.
    fn begin(&self, startup: &Startup<'_>, out: &mut Vec<u8>) -> Result<Box<Machine>, Failure> {
        if startup.major != 3 {
            let message =
                format!("unsupported frontend protocol {}.{}", startup.major, startup.minor);
            return Err(Failure::unsupported(message));
        }
        let mut given = Vec::new();
        for (name, value) in startup.parameters() {
            let text = |bytes| {
                std::str::from_utf8(bytes)
                    .map_err(|_| Failure::protocol("startup packet is no UTF-8"))
            };
            given.push((text(name)?, text(value)?));
        }
        let get =
            |wanted: &str| given.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let user = get("user").unwrap_or("refrain");
        let unknown: Vec<&[u8]> = given
            .iter()
            .filter(|(name, _)| name.starts_with("_pq_."))
            .map(|(name, _)| name.as_bytes())
            .collect();
        if startup.minor > 0 || !unknown.is_empty() {
            write::negotiate(out, 0, &unknown);
        }
        let settings = given
            .iter()
            .copied()
            .filter(|(name, _)| !NOT_SETTINGS.contains(name) && !name.starts_with("_pq_."));
        let options = options(get("options").unwrap_or_default());
        let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let server_version = Backend::server_version();
        let settings = Settings::begin(user, &server_version, options.chain(settings))?;
        write::authentication(out, 0, &[]);
        for (name, value) in settings.reported() {
            write::parameter_status(out, name.as_bytes(), value.as_bytes());
        }
        write::backend_key(out, self.pid, &self.key);
        let version = format!("PostgreSQL {server_version}");
        let database = get("database").unwrap_or(self.pool.backend.name()).to_owned();
        let context = Context::new(
            user.to_owned(),
            database,
            version,
            self.pid,
            self.control.clone(),
            self.pool.backend.shared.clone(),
            settings,
        );
        let machine = Box::new(Machine::new(self.pool.clone(), context));
        write::ready(out, refrain_pg_wire::back::Status::Idle);
        Ok(machine)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, SessionState::Closed);
        let input = std::mem::take(&mut self.input);
        // Work that still waits for a thread never begins. Work on a thread ends soon because of
        // the cancel; its result is dropped.
        let waits = if let SessionState::OnThread(job) = &state { job.take() } else { None };
        self.cancel_handle().cancel();
        self.pool.backend.leave(self.pid);
        let at_rest = match &state {
            SessionState::Opening | SessionState::Closed => true,
            SessionState::OnLoop(machine) => machine.is_at_rest(),
            _ => false,
        };
        if !at_rest || !input.is_empty() {
            // Rolling back a transaction may take long, and so may freeing much memory: a thread
            // does both.
            let left = (state, waits, input);
            self.pool.backend.threads.send(Lane::Read, Box::new(move || drop(left)));
        }
    }
}

/// Returns how long a session waits to write and the error it then gets: the nearer of
/// `lock_timeout` (or the pool's) and `statement_timeout`.
fn wait_limit(machine: &Machine) -> WaitLimit {
    let settings = machine.access.context.settings();
    let line = settings.duration("lock_timeout").unwrap_or(machine.access.pool().lock_timeout());
    let message = "canceling statement due to lock timeout";
    let until = Instant::now().checked_add(line);
    drop(settings);
    if let Some(statement) =
        machine.access.deadline().filter(|end| until.is_none_or(|until| *end < until))
    {
        return WaitLimit { until: Some(statement), ends: Failure::new(state::CANCELLED, TIMEOUT) };
    }
    WaitLimit { until, ends: Failure::new(state::LOCK_NOT_AVAILABLE, message) }
}

/// Returns the parameters in `-c name=value` and `--name=value`.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = text.split_ascii_whitespace();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next().unwrap_or_default(),
            Some(assignment) => assignment,
            None => continue,
        };
        if let Some((name, value)) = assignment.split_once('=') {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

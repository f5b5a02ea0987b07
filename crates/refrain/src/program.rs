//! The program: opens everything first and starts it last, so that errors come before a client is
//! accepted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use refrain_config::{General, Host, Options};
use refrain_drive::Address;
use refrain_mysql::parts::My;
use refrain_pg::parts::Pg;
use refrain_pool::ids::Core;
use refrain_pool::message::CoreMessage;

use crate::console::Call;
use crate::cores::Cores;
use crate::dashboard::Dashboard;
use crate::http::Bound;
use crate::mail::Mail;
use crate::mysql_console::MyHelpers;
use crate::opened::{Opened, Opening};
use crate::pg::sqlite::Files;
use crate::pg::{Helpers, Peers, PgState, follow_changes, parser};
use crate::pid_file::PidFile;
use crate::place::{Estate, Place};
use crate::source::{Source, trusts_strangers};
use crate::state::State;
use crate::supervisor::{Supervisor, SupervisorCommand};
use crate::takeover::{Elders, Offering};
use crate::workers::{Shared, Threads};
use crate::{admin, core_files, http, log, metrics, ready, signals, watchdog};

/// A running program.
pub struct Program {
    supervisor: Supervisor,
    commands: Sender<SupervisorCommand>,
    addresses: Vec<Address>,
    metrics: Option<SocketAddr>,
    parser: JoinHandle<()>,
    /// The file is removed at the end.
    _pid_file: PidFile,
}

impl Program {
    /// Returns the addresses at which clients are accepted, with the ports that the system chose.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the address at which metrics are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns the sender of commands to the running program.
    pub fn commands(&self) -> Sender<SupervisorCommand> {
        self.commands.clone()
    }

    /// Handles signals as commands from now on.
    ///
    /// # Errors
    /// If the system refuses a signal handler.
    pub fn handle_signals(&self) -> io::Result<()> {
        signals::watch(self.commands())
    }

    /// Waits until the program ends.
    ///
    /// # Errors
    /// If a core failed or did not stop.
    pub fn wait(self) -> io::Result<()> {
        drop(self.commands);
        let state = Arc::clone(&self.supervisor.state);
        let outcome = self.supervisor.run();
        // The files of Unix sockets go with the program, also if no shutdown has removed them.
        state.handles.close();
        outcome?;
        // All cores have ended, so the parser thread ends as well. A panic of it was logged.
        drop(self.parser.join());
        Ok(())
    }
}

/// Starts the program.
///
/// # Errors
/// If an address cannot be bound, an SQLite file cannot be opened, or the kernel lacks what the
/// driver needs.
pub fn start(source: Source, options: Options) -> io::Result<Program> {
    start_with(source, options, Estate::default())
}

/// Starts the program with what it has from others.
///
/// # Errors
/// As [`start`], and if the program that this one takes over does not hand over.
pub(crate) fn start_with(
    source: Source,
    options: Options,
    mut estate: Estate,
) -> io::Result<Program> {
    core_files::keep_secrets(&options.general);
    log_to_file(&options.general)?;
    let mut place = Place::prepare(&options.general, &mut estate)?;
    let mut opened = Opened::open(options, estate.inherited)?;
    let pg = opened.protocol::<Pg>()?;
    let has_mysql = opened.options.has_mysql();
    let my = has_mysql.then(|| opened.protocol::<My>()).transpose()?;
    place.note_left(opened.inherited.left());
    let files = Arc::new(Files::new(pg.cores.shared.cores));
    open_files(&files, &opened.options)?;
    let of_mysql = my.as_ref().map(Opening::front);
    let others = of_mysql.iter().map(|(cores, _)| Arc::clone(cores)).collect();
    let fronts = [pg.front()].into_iter().chain(of_mysql).collect();
    let state = opened.state(&source, pg.kernels.first(), fronts, estate.supervising);
    refuse_trust(&opened.options, &state)?;
    opened.announce(&source, pg.kernels.first(), &state);
    state.follow_names();
    let (commands, ordered) = mpsc::channel();
    let (questions, asked) = mpsc::channel();
    let (parser_queue, parser) = parser::open(Arc::clone(&pg.cores.post))?;
    let shared_of_pg = Arc::clone(&pg.cores.shared);
    let (post, cancel) = (Arc::clone(&pg.cores.post), canceller(&pg.cores));
    let pg_state = PgState { cores: Arc::clone(&pg.cores), others, files: Arc::clone(&files) };
    let elders = Arc::<Elders>::default();
    let (console, peers) = (questions.clone(), Peers::new(&state));
    let asked_by_mysql = questions.clone();
    let elders_of_cores = Arc::clone(&elders);
    let helpers = Helpers { post, files, questions, parser_queue, elders: elders_of_cores, peers };
    let (gate, metrics) = (opened.shares.gate(), opened.metrics_address());
    let shared = Shared { state: &state, gate, commands: &commands };
    admin::open(Arc::clone(&state), pg_state.clone(), commands.clone(), asked)?;
    if let Some(bound) = opened.metrics {
        serve_http(bound, &state, pg_state, console)?;
    }
    let mut threads = Threads::default();
    threads.start(shared, pg, helpers)?;
    if let Some(my) = my {
        let post = Arc::clone(&my.cores.post);
        threads.start(shared, my, MyHelpers { post, questions: asked_by_mysql })?;
    }
    let addresses = state.addresses.clone();
    let offering =
        Offering { state: Arc::clone(&state), commands: commands.clone(), elders, cancel };
    follow_changes(&state, &shared_of_pg)?;
    watchdog::start(Arc::clone(&state))?;
    let pid_file = place.take(offering)?;
    state.supervising.ready(&state.status());
    let supervisor = Supervisor::new(state, source, ordered, threads.0);
    Ok(Program { supervisor, commands, addresses, metrics, parser, _pid_file: pid_file })
}

/// Serves the metrics and the dashboard.
fn serve_http(
    bound: Bound,
    state: &Arc<State>,
    pg: PgState,
    console: Sender<Call>,
) -> io::Result<()> {
    let (of, reached) = (Arc::clone(state), Arc::clone(state));
    let dashboard = Dashboard::at(bound.address, Arc::clone(state), pg.clone(), console);
    let text = move |form| metrics::text(form, &of, &pg);
    let obstacles = move || ready::obstacles(&reached);
    http::serve(bound, Arc::clone(state), text, obstacles, move |asked| dashboard.answer(asked))
}

/// Returns a function that cancels what a client does, on whatever core.
fn canceller(cores: &Arc<Cores<Pg>>) -> Box<dyn Fn(u32, Box<[u8]>) + Send> {
    let (post, shared) = (Arc::clone(&cores.post), Arc::clone(&cores.shared));
    Box::new(move |pid, key| {
        let (pid, key) = match shared.protocol.cancel_key(pid, &key) {
            Some(found) => found,
            None if shared.protocol.is_inner_pid(pid) => return,
            None => (pid, key),
        };
        let message = || CoreMessage::Cancel { pid, key: key.clone() };
        post.cores().for_each(|core| post.send(core, Mail::Message(message())));
    })
}

/// Refuses to serve clients who would be trusted at an address that systemd has chosen: the options
/// were checked with their own addresses.
fn refuse_trust(options: &Options, state: &State) -> io::Result<()> {
    match trusts_strangers(options, &state.tcp_addresses()) {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(()),
    }
}

/// Opens the file of the log, so that an error ends the start, and syslog.
fn log_to_file(general: &General) -> io::Result<()> {
    let path = general.logfile.as_deref();
    let name = path.map(|path| path.display().to_string()).unwrap_or_default();
    let failed =
        |error: io::Error| io::Error::new(error.kind(), format!("logfile {name}: {error}"));
    log::open_syslog(general);
    log::open_file(path).map_err(failed)
}

/// Opens the SQLite files, so that an error in one ends the start, before a client connects.
fn open_files(files: &Files, options: &Options) -> io::Result<()> {
    for database in &options.databases {
        if let Host::Sqlite(file) = &database.server.host {
            let opened = files.open(file, Core(0));
            opened.map_err(|why| io::Error::other(format!("{}: {why}", file.path.display())))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;
    use std::time::{Duration, Instant};

    use refrain_config::Workers;

    use super::*;
    use crate::http::{PageRequest, Written};
    use crate::inherit::Inherited;
    use crate::source::{From, Overrides};
    use crate::systemd::Supervising;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A reload compares with the addresses that were bound: those of the file are for the next
    /// start.
    #[test]
    fn a_reload_does_not_begin_to_trust() {
        let name = format!("refrain-trust-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let write = |listen: &str, auth: &str| {
            let users = "[users.me]\npassword = \"pw\"\n[databases.app]\nhost = \"127.0.0.1\"\n";
            let top = format!("listen = [{listen:?}]\nauth = {auth}\nmetrics_listen = \"off\"\n");
            std::fs::write(&path, top + users).unwrap();
        };
        write("0.0.0.0:0", "\"scram\"");
        let source = Source::new(From::File(path.clone()), Overrides::default());
        let options = source.load().unwrap();
        let program = start(source, options).unwrap();
        let commands = program.commands();
        let state = Arc::clone(&program.supervisor.state);
        let running = thread::spawn(move || program.wait());
        let reload = || {
            let (answer, answered) = mpsc::channel();
            commands.send(SupervisorCommand::Reload(Some(answer))).unwrap();
            answered.recv().unwrap()
        };
        for listen in ["0.0.0.0:0", "127.0.0.1:0"] {
            write(listen, "\"trust\"");
            let why = reload().unwrap_err();
            assert!(why.contains("would get in under any name"), "{why}");
            assert_eq!(state.options().general.auth, refrain_config::AuthMethod::Scram);
        }
        write("0.0.0.0:0", "\"trust\"\ninsecure_trust = true");
        reload().unwrap();
        assert_eq!(state.options().general.auth, refrain_config::AuthMethod::Trust);
        commands.send(SupervisorCommand::Stop).unwrap();
        running.join().unwrap().unwrap();
        std::fs::remove_file(path).unwrap();
    }

    /// The test that runs itself as the process that panics, and the environment variable for it.
    const PANICS: (&str, &str) = ("program::tests::a_panic_leaves_a_line", "REFRAIN_TEST_PANICS");

    /// Serves until the first bytes of a client. If `chatty`, fills the pipe of the log first.
    fn panic_in_a_core(chatty: bool) {
        use refrain_config::{LogFormat, LogLevel};
        log::start(LogFormat::Text, LogLevel::Info);
        log::abort_on_panic();
        let any = "127.0.0.1:0".parse().unwrap();
        let overrides = Overrides {
            listen: vec![any],
            metrics_listen: Some(None),
            workers: Some(Workers::Fixed(1)),
            ..Overrides::default()
        };
        let source = Source::new(From::parse("postgres://me@127.0.0.1:1/app"), overrides);
        let options = source.load().unwrap();
        let program = start(source, options).unwrap();
        let Address::Tcp(address) = program.addresses()[0].clone() else { panic!() };
        for _ in 0..if chatty { 20_000 } else { 0 } {
            tracing::info!("a line that fills a pipe which nobody reads");
        }
        crate::worker_state::PLANTED.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut client = TcpStream::connect(address).unwrap();
        tracing::info!("it is client {}", client.local_addr().unwrap());
        client.write_all(&[0]).unwrap();
        program.wait().unwrap();
    }

    fn child(how: &str) -> std::process::Child {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", PANICS.0, "--nocapture"]).env(PANICS.1, how);
        child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        child.spawn().unwrap()
    }

    /// The test starts itself as a child process, because no other build has the planted panic.
    #[test]
    fn a_panic_leaves_a_line() {
        use std::os::unix::process::ExitStatusExt;
        const ABORTED: Option<i32> = Some(6);
        if let Ok(how) = std::env::var(PANICS.1) {
            return panic_in_a_core(how == "chatty");
        }
        let output = child("plain").wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.signal(), ABORTED, "{log}");
        let client = log.split_once("it is client ").unwrap().1.split(' ').next().unwrap().trim();
        let client = client.lines().next().unwrap();
        let line = log.lines().find(|line| line.contains("Refrain aborts")).unwrap();
        for words in ["ERROR", "thread core-0 panicked at ", "cause=panic", ": planted", client] {
            assert!(line.contains(words), "{words:?} is not in {line:?}");
        }
        assert!(log.lines().all(|line| line.starts_with("20")), "{log}");
        // The child also ends if its log has no reader.
        let mut child = child("chatty");
        assert_eq!(child.wait().unwrap().signal(), ABORTED);
    }

    /// The answers that a supervisor of the process waits for do not stand behind a look of the
    /// page that nobody answers.
    #[test]
    fn a_look_that_stalls_holds_up_no_other_answer() {
        let any = Some("127.0.0.1:0".parse().unwrap());
        let overrides = Overrides { metrics_listen: Some(any), ..Overrides::default() };
        let source = Source::new(From::parse("postgres://me@127.0.0.1:1/app"), overrides);
        let mut opened = Opened::open(source.load().unwrap(), Inherited::default()).unwrap();
        let state = opened.state(&source, None, Vec::new(), Supervising::default());
        let (go_on, stalls) = mpsc::channel::<()>();
        let look = move |_: &PageRequest| {
            let _ = stalls.recv_timeout(Duration::from_secs(60));
            Written::line(http::OK, "looked\n")
        };
        let bound = opened.metrics.take().unwrap();
        let address = bound.address;
        http::serve(bound, state, |_| "figures\n".to_owned(), String::new, look).unwrap();
        let looks = [(); 3].map(|()| thread::spawn(move || get(address, "/")));
        thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        for (path, end) in [("/readyz", "ready\n"), ("/metrics", "figures\n"), ("/healthz", "ok\n")]
        {
            assert!(get(address, path).ends_with(end), "{path}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30) && !looks[0].is_finished());
        drop(go_on);
        for look in looks {
            assert!(look.join().unwrap().ends_with("looked\n"));
        }
    }

    #[test]
    fn it_starts_serves_and_ends() {
        let any = "127.0.0.1:0".parse().unwrap();
        let overrides = Overrides {
            listen: vec![any],
            metrics_listen: Some(Some(any)),
            workers: Some(Workers::Fixed(2)),
            ..Overrides::default()
        };
        let source = Source::new(From::parse("postgres://me@127.0.0.1:1/app"), overrides);
        let options = source.load().unwrap();
        let program = start(source, options).unwrap();
        let metrics = program.metrics().unwrap();
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 200"));
        assert!(get(metrics, "/metrics").contains("\nrefrain_cores_answering 2\n"));
        assert!(get(metrics, "/x").starts_with("HTTP/1.1 404"));
        let Address::Tcp(address) = program.addresses()[0].clone() else { panic!() };
        program.commands().send(SupervisorCommand::Drain).unwrap();
        program.wait().unwrap();
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 503"));
        assert!(TcpStream::connect(address).is_err());
    }
}

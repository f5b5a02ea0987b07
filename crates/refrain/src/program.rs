//! The program: opens everything first and starts it last, so that errors come before a client is
//! accepted.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use refrain_config::{DriverChoice, Host, Options, Workers};
use refrain_drive::{Address, Driver, Kernel, Kind, Listener, Sizing};
use refrain_pg::{Engine, Ports, Shared};
use refrain_pool::ids::Core;

use crate::clock::Clock;
use crate::core::Worker;
use crate::descriptors::{self, Shares};
use crate::dial::Dialer;
use crate::listen::{self, Door, SocketFile};
use crate::loads::{Gauge, Loads};
use crate::machine::UserNames;
use crate::mail::Post;
use crate::parser::{self, ParserQueue};
use crate::resolve::Resolver;
use crate::source::Source;
use crate::sqlite_host::{Files, SqliteHost};
use crate::state::{Flags, State};
use crate::supervisor::{Supervisor, SupervisorCommand};
use crate::tls::{Setup, Store, TlsHost};
use crate::worker_state::{Links, WorkerState};
use crate::{admin, core_files, exposure, http, random, signals};

/// A running program.
pub struct Program {
    supervisor: Supervisor,
    commands: Sender<SupervisorCommand>,
    addresses: Vec<Address>,
    metrics: Option<SocketAddr>,
    parser: JoinHandle<()>,
    /// The file is removed at the end.
    _file: SocketFile,
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
        self.supervisor.run()?;
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
    core_files::keep_secrets(&options.general);
    let options = Arc::new(options);
    let cores = worker_count(options.general.workers);
    let shares = Shares::of(&options, descriptors::limit());
    let sizing = Sizing { gate: shares.gate(), ..Sizing::default() };
    let kernels = open_kernels(options.general.driver, cores, sizing)?;
    // Bound first: a client that finds the port for clients open finds this one open as well.
    let metrics = options.general.metrics_listen.map(http::bind).transpose()?;
    let setup = Setup::read(&options).map_err(io::Error::other)?;
    let mut listeners = listen::bind(&options.general)?;
    let files = Arc::new(Files::new(cores));
    open_files(&files, &options)?;
    let clock = Clock::start();
    let post = Arc::new(Post::new(kernels.iter().map(Driver::waker)));
    let resolver = Resolver::new(Arc::clone(&post));
    let shared = Shared::new(Arc::clone(&options), cores, &mut random::fill);
    shared.lobby.set_room(shares.room());
    let door = Door { shared: Arc::clone(&shared), gate: shares.gate() };
    let loads = Loads::new(usize::from(cores), options.general.worker_load);
    let (commands, ordered) = mpsc::channel();
    let (questions, asked) = mpsc::channel();
    let (parser_queue, parser) = parser::open(Arc::clone(&post))?;
    let addresses = listeners.addresses.clone();
    let state = Arc::new(State {
        clock,
        started: clock.now(),
        post,
        shared,
        resolver,
        files,
        tls: Arc::new(Store::new(setup)),
        addresses: addresses.clone(),
        driver: kernels.first().map_or("", Driver::name),
        source: source.from.to_string(),
        flags: Flags::default(),
    });
    announce(&state, &kernels, metrics.as_ref().map(|bound| bound.address));
    if let Some(warning) = shares.warning(&options.general) {
        tracing::warn!(cause = "start", "{warning}");
    }
    for warning in exposure::warnings(&source, &options) {
        tracing::warn!(cause = "start", "{warning}");
    }
    let parts =
        Parts { state: &state, loads: &loads, door, questions, parser_queue, commands: &commands };
    let threads = start_workers(parts, kernels, std::mem::take(&mut listeners.sockets))?;
    admin::open(Arc::clone(&state), commands.clone(), asked)?;
    let metrics_address = metrics.as_ref().map(|bound| bound.address);
    if let Some(bound) = metrics {
        http::serve(bound, &state)?;
    }
    let supervisor = Supervisor::new(state, source, loads, ordered, threads);
    Ok(Program {
        supervisor,
        commands,
        addresses,
        metrics: metrics_address,
        parser,
        _file: listeners.file,
    })
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

fn worker_count(workers: Workers) -> u16 {
    match workers {
        Workers::Fixed(count) => count,
        Workers::Cores => {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            u16::try_from(cores).unwrap_or(u16::MAX)
        }
    }
}

fn open_kernels(choice: DriverChoice, count: u16, sizing: Sizing) -> io::Result<Vec<Kernel>> {
    let kind = match choice {
        DriverChoice::Auto => Kind::Auto,
        DriverChoice::Uring => Kind::Uring,
        DriverChoice::Epoll => Kind::Epoll,
    };
    (0..count).map(|_| refrain_drive::open(kind, sizing)).collect()
}

fn announce(state: &State, kernels: &[Kernel], metrics: Option<SocketAddr>) {
    let asked = state.options().general.driver != DriverChoice::Auto;
    let why =
        if asked { "the configuration asks for it" } else { "this kernel has all that it needs" };
    let why = kernels.first().and_then(Kernel::why).unwrap_or(why);
    let addresses: Vec<_> = state.addresses.iter().map(ToString::to_string).collect();
    tracing::info!(
        cause = "start",
        version = env!("CARGO_PKG_VERSION"),
        configuration = state.source,
        workers = kernels.len(),
        driver = state.driver,
        driver_because = why,
        metrics = metrics.map(|address| format!("http://{address}/metrics")),
        "listening on {}",
        addresses.join(", ")
    );
    let options = state.options();
    if let Some(address) = options.trusts_strangers(&options.general.listen) {
        tracing::warn!(
            cause = "trust",
            "auth is trust: every client that can reach {address} can log in as any user"
        );
    }
}

/// Shared parts from which each worker thread gets its own.
struct Parts<'a> {
    state: &'a Arc<State>,
    loads: &'a Loads,
    door: Door,
    questions: Sender<admin::Question>,
    parser_queue: ParserQueue,
    commands: &'a Sender<SupervisorCommand>,
}

/// Starts a thread for each core. The first core accepts the clients of all cores.
fn start_workers(
    parts: Parts<'_>,
    kernels: Vec<Kernel>,
    mut listeners: Vec<Listener>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::with_capacity(kernels.len());
    for (core, kernel) in parts.state.post.cores().zip(kernels) {
        let worker_state = worker_state(&parts, core);
        let listeners = std::mem::take(&mut listeners);
        let commands = parts.commands.clone();
        let thread = thread::Builder::new().name(format!("core-{}", core.0));
        threads.push(thread.spawn(move || {
            let run = || Worker::new(kernel, worker_state(), listeners)?.run();
            // The supervisor ends last.
            let _ = commands.send(SupervisorCommand::Ended(core, run()));
        })?);
    }
    Ok(threads)
}

/// Returns a function that makes a core's state in that core's thread: an engine does not leave its
/// thread.
fn worker_state(parts: &Parts<'_>, core: Core) -> impl FnOnce() -> WorkerState + Send + use<> {
    let (state, loads) = (Arc::clone(parts.state), parts.loads.clone());
    let (questions, commands) = (parts.questions.clone(), parts.commands.clone());
    let (parser_queue, door) = (parts.parser_queue.clone(), parts.door.clone());
    let mut supply = random::Supply::new();
    let entropy = Box::new(move |bytes: &mut [u8]| supply.fill(bytes));
    move || WorkerState {
        core,
        clock: state.clock,
        engine: Engine::new(core, Arc::clone(&state.shared), entropy),
        ports: Ports::default(),
        dialer: Dialer::new(core, Arc::clone(&state.resolver)),
        tls: TlsHost::new(Arc::clone(&state.tls)),
        sqlite_host: SqliteHost::new(core, Arc::clone(&state.post), Arc::clone(&state.files)),
        loads,
        gauge: Gauge::default(),
        giving: None,
        door,
        user_names: UserNames::default(),
        links: Links {
            outgoing: state.post.cores().map(|_| Vec::new()).collect(),
            post: Arc::clone(&state.post),
            questions,
            parser_queue,
            commands,
        },
        leaving: HashMap::new(),
        inbox: Vec::new(),
        woken: false,
        stopped: false,
        drained: false,
        counted: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::log;
    use crate::source::{From, Overrides};

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
        let source = Source { from: From::File(path.clone()), overrides: Overrides::default() };
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
        let source = Source { from: From::parse("postgres://me@127.0.0.1:1/app"), overrides };
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

    #[test]
    fn it_starts_serves_and_ends() {
        let any = "127.0.0.1:0".parse().unwrap();
        let overrides = Overrides {
            listen: vec![any],
            metrics_listen: Some(Some(any)),
            workers: Some(Workers::Fixed(2)),
            ..Overrides::default()
        };
        let source = Source { from: From::parse("postgres://me@127.0.0.1:1/app"), overrides };
        let options = source.load().unwrap();
        let program = start(source, options).unwrap();
        let metrics = program.metrics().unwrap();
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 200"));
        assert!(get(metrics, "/metrics").contains("\nrefrain_cores_answering 2\n"));
        assert!(get(metrics, "/").starts_with("HTTP/1.1 404"));
        let Address::Tcp(address) = program.addresses()[0].clone() else { panic!() };
        program.commands().send(SupervisorCommand::Drain).unwrap();
        program.wait().unwrap();
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 503"));
        assert!(TcpStream::connect(address).is_err());
    }
}

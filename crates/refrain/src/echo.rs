//! The program's loop with another protocol than PostgreSQL's: clients and servers that send each
//! other lines (`crates/echo`), over sockets.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

use refrain_config::{Backend, General, Host};
use refrain_drive::Address;
use refrain_echo::Echo;
use refrain_pg::parts::Pg;
use refrain_pg::snapshot::{ClientSessionView, ServerSessionView};
use refrain_pool::Engine;
use refrain_pool::ids::Core;
use refrain_pool::snapshot::{Extent, Snapshot};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use xtask::certificates::Authority;

use crate::balance::Order;
use crate::cores::Cores;
use crate::inherit::{Inherited, Kind};
use crate::listen::Places;
use crate::mail::Mail;
use crate::opened::{Opened, Opening};
use crate::pg::sqlite::Files;
use crate::pg::{Helpers, parser};
use crate::served::{LocalServers, Served};
use crate::source::{From, Overrides, Source};
use crate::supervisor::{Supervisor, SupervisorCommand};
use crate::systemd::Supervising;
use crate::tls::{Session, Store};
use crate::workers::{Shared, Threads};

/// No servers in this process: all are behind sockets.
pub(crate) struct Nowhere;

impl LocalServers for Nowhere {
    type Session = Infallible;
}

impl Served for Echo {
    const THREADS: &'static str = "echo";

    fn serves(_backend: Backend) -> bool {
        true
    }
    fn client_view_of((): ()) -> ClientSessionView {
        ClientSessionView::default()
    }
    fn server_view_of((): ()) -> ServerSessionView {
        ServerSessionView::default()
    }
    fn places(general: &General) -> Places<'_> {
        let addresses = &general.mysql_listen;
        Places { kind: Kind::Mysql, addresses, socket: None, client_speaks_first: false }
    }

    type Statements = ();

    fn statements_of(_engine: &Engine<Self>) {}

    type Helpers = ();
    type Local = Nowhere;

    fn local((): &(), _core: Core) -> Nowhere {
        Nowhere
    }
    fn ask((): &(), _core: Core, (): ()) {}
    fn name((): &()) -> &'static str {
        "nothing"
    }
    fn server_tls(_store: &Store, _host: &Host) -> Result<Option<Session>, String> {
        Ok(None)
    }
}

/// The time in which everything has to happen that a test waits for.
const SOON: Duration = Duration::from_secs(10);

/// Waits until something is so.
fn soon(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "it does not become so");
        thread::sleep(SOON / 1000);
    }
}

/// A server that sends each line back.
struct EchoServer {
    address: SocketAddr,
    /// Connections that are open now, and the most that ever were.
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    /// All lines, of all connections.
    lines: Arc<Mutex<Vec<String>>>,
}

impl EchoServer {
    fn start() -> Self {
        Self::start_with(Ok)
    }

    /// Starts a server that makes what it speaks on of each connection.
    fn start_with<S: Read + Write>(
        begin: impl Fn(TcpStream) -> io::Result<S> + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server =
            Self { address, open: Arc::default(), most: Arc::default(), lines: Arc::default() };
        let (open, most, lines) =
            (Arc::clone(&server.open), Arc::clone(&server.most), Arc::clone(&server.lines));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (open, lines, begin) = (Arc::clone(&open), Arc::clone(&lines), begin.clone());
                most.fetch_max(open.fetch_add(1, Relaxed) + 1, Relaxed);
                thread::spawn(move || {
                    // Refrain may close the connection at any time.
                    let _ = begin(stream).and_then(|stream| answer(stream, &lines));
                    open.fetch_sub(1, Relaxed);
                });
            }
        });
        server
    }

    fn has_seen(&self, line: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|seen| seen == line)
    }
}

/// Answers one connection of Refrain's until it is over.
fn answer(stream: impl Read + Write, lines: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end();
        lines.lock().unwrap().push(line.to_owned());
        match line.split(' ').next() {
            Some("hello") => stream.get_mut().write_all(b"welcome 7 secret\n")?,
            Some("quit" | "cancel") => return Ok(()),
            _ => stream.get_mut().write_all(format!("{line}\n").as_bytes())?,
        }
    }
}

/// Speaks first on a connection of Refrain's, which asks for TLS in the clear.
fn secure(
    mut stream: TcpStream,
    config: &Arc<ServerConfig>,
) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    stream.write_all(b"host tls\n")?;
    // The handshake stands right behind the request.
    let mut request = [0; 4];
    stream.read_exact(&mut request)?;
    assert_eq!(&request, b"tls\n");
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// A client of Refrain's.
struct Client<S = TcpStream>(BufReader<S>);

/// Connects to Refrain.
fn reach(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let mut client = Self(BufReader::new(reach(address)));
        client.log_in("shop app");
        client
    }
}

impl Client<StreamOwned<ClientConnection, TcpStream>> {
    /// Connects with TLS, which the client asks for in the clear. The handshake stands right behind
    /// the request.
    fn connect_secured(address: SocketAddr, config: Arc<ClientConfig>) -> Self {
        let mut stream = reach(address);
        let name = "localhost".try_into().unwrap();
        let mut connection = ClientConnection::new(config, name).unwrap();
        let mut first = b"tls\n".to_vec();
        connection.write_tls(&mut first).unwrap();
        stream.write_all(&first).unwrap();
        Self(BufReader::new(StreamOwned::new(connection, stream)))
    }
}

impl<S: Read + Write> Client<S> {
    fn log_in(&mut self, names: &str) {
        self.send(names);
        assert!(self.line().starts_with("welcome "));
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Returns the next line, which is empty at the end of the stream.
    fn line(&mut self) -> String {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => String::new(),
            read => read.map(|_| line.trim_end().to_owned()).unwrap(),
        }
    }

    fn says(&mut self, line: &str) {
        self.send(line);
        assert_eq!(self.line(), line);
    }
}

/// The files of TLS, and what is made of them for both of Refrain's sides.
struct Certificates {
    folder: PathBuf,
    of_servers: Arc<ServerConfig>,
    of_clients: Arc<ClientConfig>,
}

impl Certificates {
    fn new() -> Self {
        let authority = Authority::new("root").unwrap();
        let signed = authority.sign("server", &["localhost"]).unwrap();
        let folder = std::env::temp_dir().join(format!("refrain-echo-tls-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("root"), authority.certificate()).unwrap();
        fs::write(folder.join("certificate"), &signed.certificate).unwrap();
        fs::write(folder.join("key"), &signed.key).unwrap();
        let certificate = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
        let of_servers = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate(&signed.certificate)], key);
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&authority.certificate())).unwrap();
        let of_clients = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (of_servers, of_clients) = (Arc::new(of_servers.unwrap()), Arc::new(of_clients));
        Self { folder, of_servers, of_clients }
    }

    fn file(&self, name: &str) -> String {
        format!("{:?}", self.folder.join(name).to_str().unwrap())
    }
}

/// The program, as far as it knows no protocol, with cores that serve lines, and with others that
/// serve PostgreSQL's protocol.
struct Running {
    address: SocketAddr,
    /// The address at which PostgreSQL's protocol is spoken.
    postgres: SocketAddr,
    cores: Arc<Cores<Echo>>,
    commands: Sender<SupervisorCommand>,
    supervisor: JoinHandle<io::Result<()>>,
    file: PathBuf,
}

impl Running {
    /// Starts two cores of each kind, with these options of a pool.
    fn start(name: &str, server: &EchoServer, pool: &str) -> Self {
        let file = format!("refrain-echo-{name}-{}.toml", std::process::id());
        let file = std::env::temp_dir().join(file);
        write_options(&file, server, pool);
        let from = From::File(file.clone());
        let source = Source::new(from, Overrides::default());
        let mut opened = Opened::open(source.load().unwrap(), Inherited::default()).unwrap();
        let (lines, pg) = (opened.protocol::<Echo>().unwrap(), opened.protocol::<Pg>().unwrap());
        let (address, postgres) = (address(&lines), address(&pg));
        let (cores, pg_cores) = (Arc::clone(&lines.cores), Arc::clone(&pg.cores));
        let fronts = vec![lines.front(), pg.front()];
        let state = opened.state(&source, None, fronts, Supervising::default());
        let (commands, ordered) = mpsc::channel();
        let (questions, _) = mpsc::channel();
        let (parser_queue, _) = parser::open(Arc::clone(&pg_cores.post)).unwrap();
        let (post, files) = (Arc::clone(&pg_cores.post), Arc::new(Files::new(2)));
        let elders = Arc::default();
        let peers = Arc::default();
        let helpers = Helpers { post, files, questions, parser_queue, elders, peers };
        let mut threads = Threads::default();
        let shared = Shared { state: &state, gate: opened.shares.gate(), commands: &commands };
        threads.start(shared, lines, ()).unwrap();
        threads.start(shared, pg, helpers).unwrap();
        let supervisor = Supervisor::new(state, source, ordered, threads.0);
        let supervisor = thread::spawn(move || supervisor.run());
        Self { address, postgres, cores, commands, supervisor, file }
    }

    fn reload(&self) {
        let (answer, answered) = mpsc::channel();
        self.commands.send(SupervisorCommand::Reload(Some(answer))).unwrap();
        answered.recv_timeout(SOON).unwrap().unwrap();
    }

    /// Waits until the snapshots of the cores show something.
    fn wait_until(&self, is_there: impl Fn(&[Snapshot<Echo>]) -> bool) {
        soon(|| is_there(&self.cores.snapshots(SOON, Extent::WHOLE)));
    }

    /// Waits for the end that a command leads to.
    fn end(self) {
        self.supervisor.join().unwrap().unwrap();
        fs::remove_file(self.file).unwrap();
    }
}

fn address<P: Served>(opening: &Opening<P>) -> SocketAddr {
    let Address::Tcp(address) = opening.listeners.addresses[0] else { panic!("it is of TCP") };
    address
}

/// Writes the options of a pool. If `pool` has tables, they are options of the whole configuration.
fn write_options(file: &PathBuf, server: &EchoServer, pool: &str) {
    let address = server.address;
    let pool = match pool.contains("[pool]") {
        true => pool.to_owned(),
        false => format!("[pool]\n{pool}\n[databases.\"*\"]"),
    };
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nmysql_listen = [\"127.0.0.1:0\"]\nmetrics_listen = \"off\"\nauth = \"trust\"\nworkers = 2\n\
         {pool}\nurl = \"postgres://u@{address}\"\n"
    );
    fs::write(file, text).unwrap();
}

#[test]
fn many_clients_share_few_servers() {
    let server = EchoServer::start();
    let running = Running::start("many", &server, "pool_size = 2");
    let clients: Vec<_> = (0..8).map(|_| Client::connect(running.address)).collect();
    let talk = |(number, mut client): (usize, Client)| {
        thread::spawn(move || {
            for round in 0..50 {
                client.says("begin");
                client.says(&format!("line {round} of {number}"));
                client.says("commit");
            }
        })
    };
    let talks: Vec<_> = clients.into_iter().enumerate().map(talk).collect();
    talks.into_iter().for_each(|talk| talk.join().unwrap());
    assert!((1..=2).contains(&server.most.load(Relaxed)));
    let transactions = |cores: &[Snapshot<Echo>]| {
        let pools = cores.iter().flat_map(|core| &core.pools);
        pools.map(|pool| pool.counters.pool.xacts).sum::<u64>() == 8 * 50
    };
    running.wait_until(transactions);
    running.commands.send(SupervisorCommand::Stop).unwrap();
    running.end();
}

#[test]
fn one_process_serves_two_protocols() {
    let server = EchoServer::start();
    let running = Running::start("two", &server, "pool_size = 1");
    let mut anna = Client::connect(running.address);
    let mut postgres = reach(running.postgres);
    postgres.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut no = [0];
    postgres.read_exact(&mut no).unwrap();
    assert_eq!(&no, b"N", "to a request for TLS");
    anna.says("mine");
    let addresses = [running.address, running.postgres];
    running.commands.send(SupervisorCommand::Drain).unwrap();
    assert_eq!(anna.line(), "error shutdown");
    running.end();
    assert!(addresses.into_iter().all(|address| TcpStream::connect(address).is_err()));
}

#[test]
fn a_client_that_leaves_gives_its_server_back() {
    let server = EchoServer::start();
    let running = Running::start("leaves", &server, "pool_size = 1");
    let [mut anna, mut bob] = [(); 2].map(|()| Client::connect(running.address));
    anna.says("begin");
    bob.send("mine");
    drop(anna);
    assert_eq!(bob.line(), "mine");
    assert!(server.has_seen("rollback"));
    assert_eq!(server.most.load(Relaxed), 1);
    running.commands.send(SupervisorCommand::Stop).unwrap();
    assert_eq!(bob.line(), "error shutdown");
    running.end();
}

#[test]
fn clients_and_servers_go_from_core_to_core() {
    let server = EchoServer::start();
    let running = Running::start("moves", &server, "pool_size = 1");
    let [mut anna, mut bob] = [(); 2].map(|()| Client::connect(running.address));
    anna.says("one");
    bob.says("two");
    let order = Order { from: Core(0), to: Core(1), share: 500 };
    running.cores.post.send(order.from, Mail::Give(order));
    running.wait_until(|cores| cores.iter().all(|core| core.clients.len() == 1));
    for _ in 0..3 {
        anna.says("three");
        bob.says("four");
    }
    assert_eq!(server.most.load(Relaxed), 1);
    running.commands.send(SupervisorCommand::Stop).unwrap();
    running.end();
}

#[test]
fn a_reload_reaches_the_cores() {
    let server = EchoServer::start();
    let running = Running::start("reload", &server, "pool_size = 1");
    let [mut anna, mut bob] = [(); 2].map(|()| Client::connect(running.address));
    anna.says("begin");
    bob.send("mine");
    running.wait_until(|cores| {
        cores.iter().flat_map(|core| &core.pools).any(|pool| pool.waiting == 1)
    });
    write_options(&running.file, &server, "pool_size = 2");
    running.reload();
    assert_eq!(bob.line(), "mine");
    assert_eq!(server.most.load(Relaxed), 2);
    running.commands.send(SupervisorCommand::Stop).unwrap();
    running.end();
}

#[test]
fn a_drain_waits_for_transactions() {
    let server = EchoServer::start();
    let running = Running::start("drain", &server, "pool_size = 2");
    let [mut anna, mut bob] = [(); 2].map(|()| Client::connect(running.address));
    anna.says("begin");
    bob.says("mine");
    running.commands.send(SupervisorCommand::Drain).unwrap();
    assert_eq!(bob.line(), "error shutdown");
    anna.says("still here");
    anna.says("commit");
    assert_eq!(anna.line(), "error shutdown");
    let address = running.address;
    running.end();
    assert!(TcpStream::connect(address).is_err());
    soon(|| server.open.load(Relaxed) == 0);
}

#[test]
fn the_protocol_asks_for_tls_on_both_sides() {
    let certificates = Certificates::new();
    let config = Arc::clone(&certificates.of_servers);
    let server = EchoServer::start_with(move |stream| secure(stream, &config));
    let file = |name| certificates.file(name);
    let options = format!(
        "client_tls_sslmode = \"prefer\"\nclient_tls_cert_file = {}\nclient_tls_key_file = {}\n\
         [pool]\npool_size = 1\n[databases.\"*\"]\nsslmode = \"verify-ca\"\nsslrootcert = {}",
        file("certificate"),
        file("key"),
        file("root")
    );
    let running = Running::start("tls", &server, &options);
    let config = Arc::clone(&certificates.of_clients);
    let mut anna = Client::connect_secured(running.address, config);
    assert_eq!(anna.line(), "secured");
    anna.log_in("secure app");
    for _ in 0..3 {
        anna.says("one");
    }
    let is_encrypted = |cores: &[Snapshot<Echo>]| {
        let clients = cores.iter().flat_map(|core| &core.clients);
        let mut servers = cores.iter().flat_map(|core| &core.servers);
        clients.filter(|client| client.secured.is_some()).count() == 1
            && servers.all(|server| server.secured.is_some())
    };
    running.wait_until(is_encrypted);
    running.commands.send(SupervisorCommand::Stop).unwrap();
    running.end();
    fs::remove_dir_all(&certificates.folder).unwrap();
}

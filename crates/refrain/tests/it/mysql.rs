//! MySQL and MariaDB: clients of theirs with real servers, beside PostgreSQL's side of the program.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use xtask::certificates::Authority;
use xtask::mysql::{Flavour, PASSWORD as SECRET, Server};
use xtask::ports::free_port;
use xtask::proxy::Refrain;

use crate::world::{eventually, psql};

/// Statements whose replies are the same through Refrain as directly, errors included.
const SCRIPT: &str = "
    SELECT 1, 'x', NULL, 1.5, CURRENT_USER();
    DROP TABLE IF EXISTS t;
    CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20), c MEDIUMBLOB);
    INSERT INTO t (b, c) VALUES ('one', x'00FF'), ('two', NULL), ('three', REPEAT('x', 70000));
    SELECT a, b, LENGTH(c) FROM t ORDER BY a;
    SELECT a FROM t WHERE a > 10;
    SELEC;
    SELECT * FROM nowhere;
    BEGIN; UPDATE t SET b = 'other' WHERE a = 1; SELECT b FROM t; ROLLBACK; SELECT b FROM t;
    SET SESSION sql_mode = 'ANSI_QUOTES'; SELECT \"a\" FROM t; SET NAMES latin1;
    SELECT @@sql_mode, @@character_set_results, DATABASE();
    SELECT 1/0, CAST('x' AS SIGNED); SHOW WARNINGS;
    PREPARE s FROM 'SELECT a + ? FROM t'; SET @x = 5; EXECUTE s USING @x; DEALLOCATE PREPARE s;
    USE mysql; SELECT DATABASE(); USE shop; SELECT REPEAT('y', 1000000) LIKE 'y%'; DROP TABLE t;
";

/// A server with a user and a database.
pub(crate) struct World {
    server: Server,
}

impl World {
    pub(crate) fn start(flavour: Flavour, settings: &[(&str, &str)]) -> Self {
        Self { server: Server::start_listening(flavour, settings).unwrap() }
    }

    /// Counts the connections of the user to the server.
    pub(crate) fn connections(&self) -> usize {
        self.number("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'")
    }

    /// Whether the user runs a statement that begins like this.
    pub(crate) fn is_running(&self, text: &str) -> bool {
        let of_user = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";
        self.number(&format!("{of_user} AND info LIKE '{text}%'")) > 0
    }

    /// Returns a number of the server's status.
    pub(crate) fn status(&self, name: &str) -> usize {
        let asked = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let told = told(&self.client(&["-uroot", "-N", "-e", &asked]));
        told.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn number(&self, asked: &str) -> usize {
        told(&self.client(&["-uroot", "-N", "-e", asked])).trim_end().parse().unwrap()
    }

    /// Returns the port that the server listens on.
    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Runs texts as `root`.
    pub(crate) fn run(&self, texts: &str) {
        self.server.run(texts).expect("they are right");
    }

    /// Runs the command line client on the server itself.
    fn client(&self, arguments: &[&str]) -> Output {
        let socket = self.server.socket();
        client(&[&["-S", socket.to_str().unwrap()], arguments].concat())
    }
}

/// Runs the command line client.
fn client(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", "mariadb", "--no-defaults"]).args(arguments).output().unwrap()
}

/// Returns what a client has written, which has to have been content.
#[track_caller]
pub(crate) fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the error that a client has ended with.
#[track_caller]
pub(crate) fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// The program over a server.
pub(crate) struct Program {
    refrain: Refrain,
    port: String,
    socket: PathBuf,
    _folder: tempfolder::Folder,
}

impl Program {
    /// Starts the program. `general` has options of the program, `server` those of the database.
    pub(crate) fn start(general: &str, server: &str) -> Self {
        let folder = tempfolder::Folder::new();
        let socket = folder.path().join("mysqld.sock");
        let port = free_port().unwrap().to_string();
        let config = format!(
            "mysql_listen = [\"127.0.0.1:{port}\"]\nmysql_socket = {socket:?}\nworkers = 2\n\
             worker_load = 0\nadmin_users = [\"app\"]\n{general}\n[users.app]\n\
             password = \"{SECRET}\"\n[pool]\npool_size = 1\n[databases.\"*\"]\n{server}\n"
        );
        let refrain = Refrain::start(&config).unwrap();
        eventually("it listens", || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
        Self { refrain, port, socket, _folder: folder }
    }

    /// Runs the command line client as the user.
    pub(crate) fn client(&self, arguments: &[&str]) -> Output {
        self.client_with("-psecret", arguments)
    }

    fn client_with(&self, password: &str, arguments: &[&str]) -> Output {
        self.client_as("app", password, arguments)
    }

    /// Runs the command line client as a user.
    pub(crate) fn client_as(&self, user: &str, password: &str, arguments: &[&str]) -> Output {
        let user = format!("-u{user}");
        let own = ["-h127.0.0.1", "-P", &self.port, &user, password];
        client(&[&own, arguments].concat())
    }

    /// Runs the command line client as a user without a password, by the Unix socket.
    pub(crate) fn client_at_socket(&self, user: &str, arguments: &[&str]) -> Output {
        let (socket, user) = (self.socket.display().to_string(), format!("-u{user}"));
        client(&[&["-S", &socket, &user, "--password="], arguments].concat())
    }

    /// Changes a part of the configuration, and has the program read it.
    pub(crate) fn change(&self, part: &str, new: &str) {
        let text = fs::read_to_string(self.refrain.config()).unwrap();
        assert!(text.contains(part), "{text}");
        fs::write(self.refrain.config(), text.replace(part, new)).unwrap();
        signal(self, "HUP");
    }

    /// Returns the program's log.
    pub(crate) fn log(&self) -> String {
        self.refrain.log()
    }

    /// Returns the port for clients of MySQL.
    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    /// Returns what the console answers.
    pub(crate) fn console(&self, command: &str) -> String {
        psql(&self.postgres("refrain"), SECRET, command).unwrap()
    }

    /// Returns the URL of a database for clients of PostgreSQL.
    fn postgres(&self, database: &str) -> String {
        format!("postgres://app@127.0.0.1:{}/{database}", self.refrain.port())
    }
}

/// A test that fails shows the program's log.
impl Drop for Program {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}", self.refrain.log());
        }
    }
}

mod tempfolder {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// A folder, which goes when it is dropped.
    pub(super) struct Folder(PathBuf);

    impl Folder {
        pub(super) fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Relaxed);
            let name = format!("refrain-it-mysql-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(super) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A script through Refrain and directly, by TCP and by a Unix socket on both sides.
fn a_script_is_answered_as_directly(flavour: Flavour) {
    let world = World::start(flavour, &[]);
    let file = tempfolder::Folder::new();
    let path = file.path().join("script.sql");
    fs::write(&path, SCRIPT).unwrap();
    // A script of an argument ends with its first error.
    let source = format!("source {}", path.display());
    let script = ["-f", "-t", "--show-warnings", "--column-type-info", "shop", "-e", &source];
    let user = ["-uapp", "-psecret"];
    let direct = world.client(&[&user[..], &script].concat());
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("", &url);
    let through = program.client(&script);
    assert_eq!(both(&direct), both(&through));
    let socket = program.socket.to_str().unwrap();
    let through = client(&[&["-S", socket][..], &user, &script].concat());
    assert_eq!(both(&direct), both(&through), "by the Unix socket");
    let by_socket = format!(
        "backend = \"mysql\"\nuser = \"app\"\npassword = \"{SECRET}\"\nhost = {:?}",
        world.server.socket()
    );
    let program = Program::start("", &by_socket);
    assert_eq!(both(&direct), both(&program.client(&script)), "the server's Unix socket");
}

/// Returns what a client has written to both of its outputs.
fn both(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned())
}

#[test]
fn a_script_is_answered_as_by_mariadb() {
    a_script_is_answered_as_directly(Flavour::MariaDb);
}

#[test]
fn a_script_is_answered_as_by_mysql() {
    a_script_is_answered_as_directly(Flavour::MySql);
}

#[test]
fn a_login_is_refused_as_by_the_server() {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let world = World::start(flavour, &[]);
        let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
        let program = Program::start("", &url);
        let port = world.port().to_string();
        let own = |password| ["-h127.0.0.1", "-P", &port, "-uapp", password];
        for (password, database) in [("-pwrong", "shop"), ("--password=", "shop")] {
            let direct = client(&[&own(password)[..], &[database, "-e", "SELECT 1"]].concat());
            let through = program.client_with(password, &[database, "-e", "SELECT 1"]);
            assert_eq!(complaint(&direct), complaint(&through), "{flavour:?} {password}");
        }
        let nowhere = ["nowhere", "-e", "SELECT 1"];
        let direct = client(&[&own("-psecret")[..], &nowhere].concat());
        assert_eq!(complaint(&direct), complaint(&program.client(&nowhere)), "{flavour:?}");
    }
}

#[test]
fn both_sides_are_encrypted() {
    let authority = Authority::new("root").unwrap();
    let folder = tempfolder::Folder::new();
    let signed = authority.sign("server", &["localhost"]).unwrap();
    signed.write(folder.path(), "server").unwrap();
    let root = folder.path().join("root.crt");
    fs::write(&root, authority.certificate()).unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("server.crt"), file("server.key"));
    let settings =
        [("ssl-cert", &*certificate), ("ssl-key", &key), ("ssl-ca", root.to_str().unwrap())];
    let world = World::start(Flavour::MariaDb, &settings);
    let general = format!(
        "client_tls_sslmode = \"require\"\nclient_tls_cert_file = {certificate:?}\n\
         client_tls_key_file = {key:?}"
    );
    let server = format!(
        "url = \"mysql://app:{SECRET}@localhost:{}/?sslmode=verify-full\"\nsslrootcert = {root:?}",
        world.port()
    );
    let program = Program::start(&general, &server);
    let ca = format!("--ssl-ca={}", root.display());
    let status = ["-N", "-e", "SHOW STATUS LIKE 'Ssl_cipher'"];
    let output = program.client(&[&[ca.as_str()][..], &status].concat());
    assert!(told(&output).contains("TLS_AES"), "{output:?}");
    let servers = program.console("SHOW SERVERS");
    assert!(servers.contains("TLSv1.3/"), "{servers}");
    let refused = complaint(&program.client(&["--skip-ssl", "-e", "SELECT 1"]));
    assert!(refused.starts_with("ERROR 3159 (HY000): Connections using insecure"), "{refused}");
}

#[test]
fn one_program_serves_both_protocols() {
    let world = World::start(Flavour::MariaDb, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("", &url);
    assert_eq!(told(&program.client(&["-N", "-e", "SELECT 2"])), "2\n");
    let pools = program.console("SHOW POOLS");
    assert!(pools.contains("*|app|"), "{pools}");
    let refused = psql(&program.postgres("shop"), SECRET, "SELECT 1").unwrap_err();
    assert!(refused.contains("database \"shop\" does not exist"), "it is of MySQL: {refused}");
    assert!(is_socket(&program.socket));
    program.console("PAUSE");
    assert_eq!(world.connections(), 0, "its servers are closed");
    program.console("RESUME");
    assert_eq!(told(&program.client(&["-N", "-e", "SELECT 3"])), "3\n");
}

#[test]
fn the_console_says_why_a_client_keeps_its_server() {
    let world = World::start(Flavour::MariaDb, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("", &url);
    thread::scope(|scope| {
        let text = "SET @a = 1; SELECT SLEEP(1)";
        let kept = scope.spawn(|| program.client(&["-N", "-e", text]));
        eventually("the reason is told", || {
            let pins = program.console("SHOW PINS");
            pins.contains("user variables, temporary tables or PREPARE")
        });
        told(&kept.join().unwrap());
    });
    eventually("nobody keeps a server", || program.console("SHOW PINS").lines().count() <= 1);
}

#[test]
fn a_shutdown_waits_for_statements() {
    let world = World::start(Flavour::MariaDb, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let mut program = Program::start("", &url);
    thread::scope(|scope| {
        let slow = scope.spawn(|| program.client(&["-N", "-e", "SELECT SLEEP(1) + 5"]));
        eventually("the server works", || world.is_running("SELECT SLEEP"));
        signal(&program, "TERM");
        assert_eq!(told(&slow.join().unwrap()), "5\n");
    });
    eventually("it ends", || !program.refrain.is_running());
    assert!(!program.socket.exists(), "the file goes with the program");
}

#[test]
fn a_reload_changes_who_may_log_in() {
    let world = World::start(Flavour::MariaDb, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("", &url);
    let logs_in = |password| program.client_with(password, &["-e", "SELECT 1"]).status.success();
    assert!(logs_in("-psecret") && !logs_in("-pother"));
    let text = fs::read_to_string(program.refrain.config()).unwrap();
    let users = "[users.app]\npassword = \"secret\"";
    // The hash of `other`.
    let other = "[users.app]\npassword = \"*023494FBCDFBF9C93B6B2663B348A1C4A939B247\"";
    fs::write(program.refrain.config(), text.replace(users, other)).unwrap();
    signal(&program, "HUP");
    eventually("the new password counts", || logs_in("-pother"));
    assert!(!logs_in("-psecret"));
}

/// Sends the program a signal.
fn signal(program: &Program, name: &str) {
    let mut command = Command::new("kill");
    command.args([&format!("-{name}"), &program.refrain.id().to_string()]);
    assert!(command.status().unwrap().success());
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.file_type().is_socket())
}
